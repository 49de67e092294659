//! Numbers that are arguments: where they come from, and as sizes.

use super::fault::{Fault, Lowered};
use super::plan::Amount;
use super::value::Places;
use crate::diag::{Code, Diagnostic};
use crate::ir::Extent;

/// Where the last size of a tensor comes from that has it from an argument: the argument, and the names in
/// it.
pub(super) fn origin(amount: &Amount) -> Places {
    let words = if amount.text == amount.number.to_string() {
        format!("{} here", amount.text)
    } else {
        format!("`{}` is {} here", amount.text, amount.number)
    };
    // A name alone is shown where it has its value, and not where it is used.
    let is_name = amount.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let own = (!is_name || amount.names.is_empty()).then_some((amount.span, words));
    own.into_iter().chain(amount.names.iter().cloned()).collect()
}

/// An amount as messages show it: the number, after its text if that is an expression.
pub(super) fn valued(amount: &Amount) -> String {
    if amount.text == amount.number.to_string() {
        format!("{}", amount.number)
    } else {
        format!("`{}` = {}", amount.text, amount.number)
    }
}

/// An amount as a size of at least this.
pub(super) fn size(amount: &Amount, least: u64) -> Lowered<Extent> {
    if let Some(size) = amount.size.filter(|size| size.get() >= least) {
        return Ok(size);
    }
    let value = valued(amount);
    let is_whole = amount.number.is_integer();
    let (code, message) = match is_whole {
        true => (Code::OutOfRange, format!("{value} is not between {least} and 2^40")),
        false => (Code::NotWhole, format!("{value} is not a whole number")),
    };
    let diagnostic = Diagnostic::error(code, amount.span, message);
    let names = amount.names.iter();
    let diagnostic = names.fold(diagnostic, |d, (span, words)| d.label(*span, words.clone()));
    let help = "`floor(..)`, `round(..)` and `multiple_of(x, n)` round";
    Err(Fault::Wrong(Box::new(if is_whole { diagnostic } else { diagnostic.help(help) })))
}
