//! Names and parts of a spec that nothing uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lets::Lets;
use crate::diag::suggest::is_near;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// In a spec with errors and more values or other words than this, what is unused is not looked for.
const MOST: usize = 500;

/// Reports the names under `let` and the parts of the spec that nothing uses, once everything else has been decoded. After an
/// error, what uses one may not have been decoded. Then only those are reported that no word in the spec can mean.
pub fn report(lets: &Lets, spec: &Node, cx: &mut Context<'_>) {
    let mut found: Vec<(String, Diagnostic)> = Vec::new();
    let mut add = |name: &str, place: Span, message: String, help: String| {
        found.push((name.to_owned(), Diagnostic::error(Code::UnusedKey, place, message).help(help)));
    };
    for e in lets.unused(cx) {
        let help = "use it in an expression or an equation, or remove it".to_owned();
        add(&e.key, e.key_span, format!("nothing uses `{}`", e.key), help);
    }
    let definitions = Arc::clone(cx.definitions());
    let is_idle = |name: &str| !definitions.shared.contains(name) && !cx.uses_part(name);
    for definition in definitions.all.iter().filter(|d| is_idle(&d.name)) {
        let name = &definition.name;
        let help = format!("put it into `ffn: {name}`, call `{name}(x)` in a block's equation, or remove it");
        add(name, definition.span, format!("nothing uses the part `{name}`"), help);
    }
    if found.is_empty() {
        return;
    }
    let words = if cx.has_failed() { words_of(spec) } else { Some(BTreeSet::new()) };
    let Some(words) = words.filter(|_| !(cx.has_failed() && definitions.may_be_more)) else { return };
    let is_meant = |name: &str| words.iter().any(|word| *word == name || is_near(word, name));
    // What cannot be a name cannot be used either.
    let wrong: BTreeSet<Span> = cx.sink().iter().map(Diagnostic::span).collect();
    let is_one = |(name, d): &(String, Diagnostic)| !is_meant(name) && !wrong.contains(&d.span());
    found.into_iter().filter(is_one).for_each(|(_, d)| cx.report(d));
}

/// The words in the texts of a spec, and its keys but for those that define names; `None` if there are too many.
fn words_of(spec: &Node) -> Option<BTreeSet<String>> {
    if !spec.has_at_most(MOST) {
        return None;
    }
    let defines =
        |node: &Node| ["let", "parts"].iter().any(|key| spec.get(key).is_some_and(|n| std::ptr::eq(n, node)));
    let mut words = BTreeSet::new();
    for node in spec.nodes() {
        match &node.kind {
            Kind::Scalar(scalar) => {
                // With hyphens, which subtract, a word with `_` may be meant as well.
                let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
                words.extend(scalar.text.split(|c: char| !is_in_word(c)).map(str::to_owned));
                let hyphenated = scalar.text.split(|c: char| !(is_in_word(c) || c == '-'));
                words.extend(hyphenated.map(|word| word.replace('-', "_")));
            }
            Kind::Map(entries) if !defines(node) => words.extend(entries.iter().map(|e| e.key.clone())),
            Kind::Map(_) | Kind::List(_) | Kind::Null | Kind::Delete => {}
        }
    }
    (words.len() <= MOST).then_some(words)
}
