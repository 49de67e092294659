//! What to write in the place of a text that has the quotes of one and reads as a number.

use super::context::Context;
use crate::syntax::Notation;
use crate::syntax::tree::Node;

/// How a quoted text that was probably meant as an expression is written as one. `None` for any other text.
pub(super) fn unquoted(node: &Node, text: &str, cx: &Context<'_>) -> Option<&'static str> {
    let is_expression = text.parse::<f64>().is_ok() || text.contains(['(', '*', '/', '+']);
    let help = if is_cut(node, text, cx) {
        "remove the quotes, and put it on its own line: inside `{ }` and `[ ]` a comma ends a value"
    } else {
        "remove the quotes"
    };
    is_expression.then_some(help)
}

/// Whether a text is inside of the brackets of YAML and would end at its comma without its quotes.
fn is_cut(node: &Node, text: &str, cx: &Context<'_>) -> bool {
    let Some(source) = cx.sources().get(node.span.source) else { return false };
    let notation = Notation::from_path(&source.name).unwrap_or_else(|| Notation::guess(&source.text));
    let after = source.text.get(node.span.end as usize..).unwrap_or("").trim_start();
    notation == Notation::Yaml && text.contains(',') && after.starts_with([',', '}', ']'])
}
