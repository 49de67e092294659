//! What messages say of mistakes in the definitions of parts.

use super::vocabulary::words;
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic};
use crate::field::words::listed;
use crate::source::Span;
use crate::syntax::equation::{Term, TermKind};
use crate::syntax::expr::{Expr, ExprKind, Operator};

/// That two of these have one name, which may be written in two ways.
pub fn twins(what: &str, name: &str, other: &str) -> String {
    if name == other {
        format!("two {what} are named `{name}`")
    } else {
        format!("two {what} are named `{other}` and `{name}`, which are the same name in lower case")
    }
}

/// The error that a function of numbers is given a tensor, which is shown in this way.
pub(super) fn of_numbers(term: &Term, at: Span, tensor: &str) -> Diagnostic {
    if let TermKind::Number(Expr { kind: ExprKind::Binary(Operator::Power, ..), .. }) = &term.kind {
        let message = format!("`{term}` is a power of numbers, but `{tensor}` is a tensor");
        return Diagnostic::error(Code::WrongArguments, at, message)
            .help("the square of a tensor is `square(x)`, its root `sqrt(x)`, and another power of what is positive `exp(n * log(x))`");
    }
    let message = format!("`{term}` is a function of numbers, but `{tensor}` is a tensor");
    let diagnostic = Diagnostic::error(Code::WrongArguments, at, message);
    let name = if let TermKind::Call { part, .. } = &term.kind { part.as_str() } else { "" };
    match name {
        "max" => diagnostic.help(
            "the larger of two tensors is `y + relu(x - y)`, of a tensor and a number `clamp(x, min: 0)`",
        ),
        "min" => diagnostic.help(
            "the smaller of two tensors is `y - relu(y - x)`, of a tensor and a number `clamp(x, max: 1)`",
        ),
        _ => {
            let known: Vec<&str> = words().map(|word| word.name).collect();
            diagnostic.help(format!("of tensors there are {}", listed(&known)))
        }
    }
}

/// What to write instead of a call that parts do not have, if that is known: `exp` instead of `torch.exp`.
pub(super) fn instead_of(part: &str, known: &[&str]) -> Option<String> {
    let last = part.rsplit('.').next().unwrap_or(part);
    if last != part && known.contains(&last) {
        return Some(format!("write `{last}`"));
    }
    Some(match last {
        "Linear" => "write `linear(x, size)`, which has its own parameters".to_owned(),
        "pow" => "`square(x)` is the second power, `exp(n * log(x))` that of a positive number".to_owned(),
        "attention" => "slots are called in a block's equation; a part has `attend(q, k, v)`".to_owned(),
        "norm" => {
            "slots are called in a block's equation; a part has `layer_norm(x)` and `rms_norm(x)`".to_owned()
        }
        "ffn" => "slots are called in a block's equation; a part calls another part by its name".to_owned(),
        _ => return None,
    })
}

/// The number of arguments that a call takes.
pub(super) fn amount_of(least: usize, most: usize) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The diagnostic for a name without a meaning in a part. `known` are the names that mean something, each with whether it
/// is what is needed there.
pub fn unknown_name(
    name: &str,
    place: Span,
    part: &str,
    known: &[(&str, bool)],
    is_tensor: bool,
) -> Diagnostic {
    // Where a tensor is combined with a number, a slip may mean the number; another library's word may not.
    let fits = known.iter().filter(|(known, fits)| *fits || is_near(name, known));
    let names: Vec<&str> = fits.map(|(known, _)| *known).collect();
    let message = format!("nothing is named `{name}` in the part `{part}`");
    let unknown = Diagnostic::error(Code::UnknownName, place, message);
    match suggest(name, &names) {
        Some(near) => unknown.meant(name, &near),
        None if is_tensor => {
            unknown.help(format!("assign it in an earlier line: `{name} = linear(x, d_model)`"))
        }
        None => unknown.help(format!(
            "give it a value in an earlier line: `{name} = 4 * d_model` makes it a field of the part"
        )),
    }
}
