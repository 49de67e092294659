//! A single value in the place of several, and several values in the place of one.

use crate::syntax::tree::{Kind, Node, Style};

/// The help for a single value in the place of a list, which keeps the quotes that it has: without them `[*.bias]` would
/// be something else.
pub fn alone(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar(s) if s.style == Style::Quoted => Some(format!("write `[{:?}]`", s.text)),
        Kind::Scalar(s) => Some(format!("write `[{}]`", s.text)),
        Kind::Null | Kind::List(_) | Kind::Map(_) | Kind::Delete => None,
    }
}

/// The number that a map with one entry, or a list of equal numbers, has in the place of a number: `{norm: 1.0}`,
/// `[16, 16]`.
pub fn only_number(node: &Node) -> Option<&str> {
    let is_number = |text: &&str| text.parse::<f64>().is_ok();
    match &node.kind {
        Kind::Map(entries) => match entries.as_slice() {
            [only] => only.value.text().filter(is_number),
            _ => None,
        },
        Kind::List(items) => {
            let first = items.first()?.text().filter(is_number)?;
            items.iter().all(|item| item.text() == Some(first)).then_some(first)
        }
        Kind::Scalar(_) | Kind::Null | Kind::Delete => None,
    }
}
