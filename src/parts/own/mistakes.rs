//! What messages say of mistakes in the definitions of parts.

use super::vocabulary::{activation, words};
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic, ideas};
use crate::field::definition::OwnDefault;
use crate::field::words::listed;
use crate::parts::activation::Activation;
use crate::source::Span;
use crate::syntax::equation::{Term, TermKind};
use crate::syntax::expr::{Expr, ExprKind, Function, Operator};

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
fn instead_of(part: &str, known: &[&str]) -> Option<String> {
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
/// is what is needed there; `sizes` are those of them that the author has not named.
pub fn unknown_name(
    name: &str,
    place: Span,
    part: &str,
    (known, sizes): (&[(&str, bool)], &[&str]),
    is_tensor: bool,
) -> Diagnostic {
    // Where a tensor is combined with a number, a slip may mean the number; another library's word may not.
    let fits = known.iter().filter(|(known, fits)| *fits || is_near(name, known));
    let names: Vec<&str> = fits.map(|(known, _)| *known).collect();
    // A name of the author's own is meant before another library's word for a size: `widths` next to `width`.
    let own: Vec<&str> = names.iter().copied().filter(|name| !sizes.contains(name)).collect();
    let unknown = unnamed(name, place, part);
    match suggest(name, &own).or_else(|| suggest(name, &names)) {
        Some(near) => unknown.meant(name, &near),
        None if is_tensor => {
            unknown.help(format!("assign it in an earlier line: `{name} = linear(x, d_model)`"))
        }
        None => unknown.help(format!(
            "give it a value in an earlier line: `{name} = 4 * d_model` makes it a field of the part"
        )),
    }
}

/// The error that a name has no meaning in a part.
pub(super) fn unnamed(name: &str, place: Span, part: &str) -> Diagnostic {
    Diagnostic::error(Code::UnknownName, place, format!("nothing is named `{name}` in the part `{part}`"))
}

/// The word that a name means as the whole value of a field, `required` or an activation for example: the name itself, or
/// what it was meant for if it is none of the `known` names.
pub(super) fn default_meant(name: &str, known: &[&String]) -> Option<String> {
    if known.iter().any(|known| *known == name) {
        return None;
    }
    let activations = Activation::ALL.iter().map(|a| a.word()).filter(|word| activation(word).is_some());
    let words: Vec<&str> = ["required", "true", "false"].into_iter().chain(activations).collect();
    let all: Vec<&str> = known.iter().map(|known| known.as_str()).chain(words.iter().copied()).collect();
    let meant = || suggest(name, &all).filter(|near| words.contains(&near.as_str()));
    if words.contains(&name) { Some(name.to_owned()) } else { meant() }
}

/// The diagnostic for a call of what a part cannot call. `known` is what it can.
pub(super) fn unknown_call(part: &str, span: Span, known: &[&str]) -> Diagnostic {
    let message = format!("a part cannot call `{part}`");
    let diagnostic = Diagnostic::error(Code::UnknownCall, span, message);
    if let Some(help) = instead_of(part, known) {
        return diagnostic.help(help);
    }
    match suggest(part, known) {
        Some(near) => diagnostic.meant(part, &near),
        // All that it can call would be a line of 600 characters.
        None => ideas::outside(part, ideas::Met::Call).into_iter().fold(diagnostic, Diagnostic::help).help(
            "`trafoc explain part` lists what it can call, from `linear(x, size)` to parts of the spec",
        ),
    }
}

/// The default of a field that a word is.
pub(super) fn default_of(word: &str, span: Span) -> Option<OwnDefault> {
    match word {
        "required" => Some(OwnDefault::Required),
        "true" => Some(OwnDefault::Truth(true)),
        "false" => Some(OwnDefault::Truth(false)),
        word => activation(word).map(|_| OwnDefault::Word(word.to_owned(), span)),
    }
}

/// The first call in a number of what is no function.
pub(super) fn unknown_function(term: &Term) -> Option<(&str, Span)> {
    if let TermKind::Call { part, .. } = &term.kind
        && Function::of_numbers(part).is_none()
    {
        return Some((part, term.span));
    }
    term.operands().find_map(unknown_function)
}

/// The error that the first argument of `call` is no part of one input.
pub(super) fn no_expert(call: &str, term: &Term) -> Diagnostic {
    let message = format!("`{call}` takes a call of a part with one input here, but `{term}` is not one");
    let help =
        format!("define what an expert computes as a part, `expert`, and write `{call}(expert(x), w, k)`");
    Diagnostic::error(Code::WrongArguments, term.span, message).help(help)
}
