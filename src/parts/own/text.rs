//! Reads the text of a definition under `parts`.

use super::vocabulary::word;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::syntax::equation::{self, PartText};
use crate::syntax::expr::Function;
use crate::syntax::text::NAMES;
use crate::syntax::tree::Entry;

/// A definition's text, if it can be parsed and its name can be used.
pub fn parse(e: &Entry, is_taken: &dyn Fn(&str) -> bool, cx: &mut Context<'_>) -> Option<PartText> {
    let name = e.key.as_str();
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_known = is_taken(name) || word(name).is_some() || Function::of_numbers(name).is_some();
    let mut sound = Some(());
    if !is_word || is_known {
        let message = format!("`{name}` cannot be the name of a part");
        let help =
            if is_word { "this word already has a meaning in the language; choose another" } else { NAMES };
        cx.report(Diagnostic::error(Code::BadKey, e.key_span, message).help(help));
        sound = None;
    }
    // Parsed even if the name is wrong, for the errors in the equation.
    match equation::parse_part(cx.sources(), &e.value) {
        Ok(text) => sound.map(|()| text),
        Err(faults) => {
            faults.into_iter().for_each(|fault| cx.report(fault));
            None
        }
    }
}
