//! `sweep:` variants of a spec, named ones or a grid.
//!
//! ```yaml
//! sweep:
//!   wide: {d_model: 1024}                       # named: laid over the spec
//!   grid: {decoder.layers: [6, 12], d_model: [512, 768]}   # every combination
//! ```

use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::value::wrong_kind;
use crate::source::Span;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node};

/// The most variants a sweep may have.
pub const MAX_VARIANTS: usize = 1_000;

/// One variant.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name: the author's, or the grid's values, `decoder.layers=6,d_model=512`.
    pub name: String,
    /// The spec's tree without the sweep, the variant laid over it.
    pub tree: Node,
}

/// Checks the form of a sweep.
pub fn check(node: &Node, cx: &mut Context<'_>) {
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map of variants", cx);
        return;
    };
    for e in entries {
        match (&e.value.kind, e.key.as_str()) {
            (Kind::Map(axes), "grid") => {
                let mut count = 1usize;
                for axis in axes {
                    match &axis.value.kind {
                        Kind::List(values) if !values.is_empty() => {
                            count = count.saturating_mul(values.len())
                        }
                        Kind::List(_) | Kind::Map(_) | Kind::Scalar(_) | Kind::Null | Kind::Delete => {
                            wrong_kind(&axis.value, "a list of values", cx);
                        }
                    }
                }
                if count > MAX_VARIANTS {
                    let message =
                        format!("the grid has {count} combinations; at most {MAX_VARIANTS} are built");
                    cx.report(
                        Diagnostic::error(Code::TooLarge, e.key_span, message).help("take values away"),
                    );
                }
            }
            (Kind::Map(_), _) => {}
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete, _) => {
                wrong_kind(&e.value, "a map that is laid over the spec", cx);
            }
        }
    }
}

/// The variants of a spec's tree; none where it has no sweep.
pub fn variants(tree: &Node, cx: &mut Context<'_>) -> Vec<Variant> {
    let Some(sweep) = tree.get("sweep").and_then(Node::entries) else { return Vec::new() };
    let own: Vec<Entry> =
        tree.entries().unwrap_or(&[]).iter().filter(|e| e.key != "sweep").cloned().collect();
    let base = Node::map(own, tree.span);
    let mut variants = Vec::new();
    for e in sweep {
        match (&e.value.kind, e.key.as_str()) {
            (Kind::Map(axes), "grid") => {
                let mut combinations: Vec<(Vec<String>, Node)> = vec![(Vec::new(), base.clone())];
                for axis in axes {
                    let Kind::List(values) = &axis.value.kind else { continue };
                    let mut next = Vec::new();
                    for (names, tree) in &combinations {
                        for value in values.iter().take(MAX_VARIANTS) {
                            let over = nested(&axis.key, value);
                            let tree = merge(tree, &over, &super::is_part, cx.sink());
                            let said = value.text().map_or_else(|| value.describe(), str::to_owned);
                            let name = format!("{}={said}", axis.key);
                            next.push((names.iter().cloned().chain([name]).collect(), tree));
                        }
                    }
                    next.truncate(MAX_VARIANTS);
                    combinations = next;
                }
                variants.extend(
                    combinations.into_iter().map(|(names, tree)| Variant { name: names.join(","), tree }),
                );
            }
            (Kind::Map(_), name) => {
                let tree = merge(&base, &e.value, &super::is_part, cx.sink());
                variants.push(Variant { name: name.to_owned(), tree });
            }
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete, _) => {}
        }
    }
    variants
}

/// `decoder.layers` and 6 as `{decoder: {layers: 6}}`.
fn nested(path: &str, value: &Node) -> Node {
    path.rsplit('.').fold(value.clone(), |inner, key| {
        let span: Span = inner.span;
        Node::map(vec![Entry { key: key.to_owned(), key_span: span, value: inner }], span)
    })
}
