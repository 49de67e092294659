//! Masks: which keys a query may see.

use crate::diag::{Code, Diagnostic};
use crate::field::mend_part::mended_part;
use crate::field::record::{check_each, entry, record, slot};
use crate::field::value::{Shape, Value};
use crate::field::{Context, Size};
use crate::ir::op::{MaskRule, Window};
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

record! {
    /// A query sees itself and what is before it.
    pub struct Causal as "causal" {}
}
record! {
    /// A query sees everything.
    pub struct Bidirectional as "bidirectional" {}
}
record! {
    /// A query sees this many positions, its own counted: the last ones where attention is causal, and half
    /// of the others on each side where it is bidirectional, where the number must be odd. Keys of a prefix
    /// that come after the query must be nearer than this, too.
    pub struct WindowMask as "window" {
        /// The number of positions seen, including the query's own.
        size: Size = required;
    }
}
record! {
    /// Causal, but every query may look ahead at the first positions (a prefix language model). A window or
    /// a chunk given with it still hides what it hides.
    pub struct Prefix as "prefix" {
        /// Length of the prefix.
        size: Size = required;
    }
}
record! {
    /// A query sees only positions of its own chunk.
    pub struct Chunk as "chunk" {
        /// Length of a chunk.
        size: Size = required;
    }
}

slot! {
    /// A rule on which keys a query may see.
    pub enum MaskPart as "mask" {
        /// Nothing after the query.
        "causal" => Causal(Causal),
        /// Everything, before and after the query.
        "bidirectional" => Bidirectional(Bidirectional),
        /// Only the nearest positions: the query's own and those before it where attention is causal, and as many on each
        /// side of the query where it is bidirectional, so that their number is odd there. Keys of a `prefix` after the
        /// query must be as near.
        "window" => Window(WindowMask),
        /// Nothing after the query except the first positions, in an encoder, too; a `window` or a `chunk` still hides
        /// what it hides.
        "prefix" => Prefix(Prefix),
        /// Only keys of the query's own chunk.
        "chunk" => Chunk(Chunk),
    }
}

/// The rules about the direction in which a query sees; a mask has at most one of them.
pub const DIRECTIONS: &[&str] = &["causal", "bidirectional", "prefix"];

/// One rule or several, which must all allow a key. Without `causal`, `bidirectional` or `prefix` the
/// stack decides: a decoder is causal, an encoder bidirectional.
#[derive(Clone, Debug, PartialEq)]
pub struct Mask(pub Vec<MaskPart>);

impl Mask {
    /// Leaves everything to the stack.
    pub fn of_stack() -> Self {
        Self(Vec::new())
    }

    /// The rule in a stack that is causal or not.
    pub fn rule(&self, is_causal: bool) -> MaskRule {
        // The stack's direction, unless one of the parts names a direction itself.
        let mut rule = MaskRule { causal: is_causal, ..MaskRule::default() };
        for part in &self.0 {
            match part {
                MaskPart::Causal(_) => rule.causal = true,
                MaskPart::Bidirectional(_) => rule.causal = false,
                MaskPart::Prefix(p) => {
                    // A prefix is an exception from causality, so it implies causality in an encoder, too.
                    rule.causal = true;
                    rule.prefix = Some(*p.size);
                }
                MaskPart::Chunk(c) => rule.chunk = Some(*c.size),
                MaskPart::Window(_) => {}
            }
        }
        // Where the query is in its window depends on the direction, which any of the parts may set.
        for part in &self.0 {
            if let MaskPart::Window(w) = part {
                rule.window = Some(Window { size: *w.size, centred: !rule.causal });
            }
        }
        rule
    }

    /// The mask as it is compared: its rules in one order, since all of them hold, and without the direction that the stack has
    /// anyway.
    pub fn compared(&self, is_causal: bool) -> Self {
        let is_said = |part: &&MaskPart| match part {
            MaskPart::Causal(_) => !is_causal,
            MaskPart::Bidirectional(_) => is_causal,
            MaskPart::Window(_) | MaskPart::Prefix(_) | MaskPart::Chunk(_) => true,
        };
        let mut parts: Vec<MaskPart> = self.0.iter().filter(is_said).cloned().collect();
        parts.sort_by_key(MaskPart::part);
        Self(parts)
    }

    /// Checks that a window fits the direction of the stack.
    pub fn check(&self, is_causal: bool) -> Option<Diagnostic> {
        // A causal window counts backwards only, so every number has a meaning there.
        let causal = self.rule(is_causal).causal;
        self.0.iter().find_map(|part| match part {
            MaskPart::Window(w) if !causal && *w.size % 2 == 0 => {
                let message = format!("a window of {} has no middle", *w.size);
                Some(
                    Diagnostic::error(Code::EvenWindow, w.places.of("size"), message)
                        .here("seen from the middle, so odd")
                        .help(format!(
                            "{} or {} would do: the query and as many on each side",
                            w.size.saturating_sub(1),
                            w.size.saturating_add(1)
                        )),
                )
            }
            MaskPart::Window(_)
            | MaskPart::Causal(_)
            | MaskPart::Bidirectional(_)
            | MaskPart::Prefix(_)
            | MaskPart::Chunk(_) => None,
        })
    }
}

/// `{window: 4096}` is short for `{window: {size: 4096}}`.
fn expand(node: &Node, cx: &mut Context<'_>) -> Node {
    // Names are corrected first, so that `{windo: 4}` is expanded as well.
    let node = mended_part(node, &MaskPart::documentation(), cx);
    let Kind::Map(entries) = &node.kind else { return node.into_owned() };
    let mut entries = entries.clone();
    for e in &mut entries {
        if matches!(e.key.as_str(), "window" | "prefix" | "chunk") && e.value.text().is_some() {
            let size = entry("size", e.value.clone());
            e.value = Node::map(vec![size], e.value.span);
        }
    }
    Node::map(entries, node.span)
}

/// The rules that one map gives, each as an item of a list; `None` unless these are several rules by their names.
fn rules_in_one(node: &Node) -> Option<Vec<String>> {
    let entries = node.entries().filter(|entries| entries.len() > 1)?;
    let names: Vec<&str> = MaskPart::documentation().parts.iter().map(|part| part.name).collect();
    let item = |e: &Entry| {
        let name = names.iter().find(|name| **name == e.key)?;
        let size = e.value.get("size").and_then(Node::text);
        Some(match (*name, size, e.value.text()) {
            // Without one direction it is the other.
            ("causal", _, Some("false")) => "bidirectional".to_owned(),
            ("bidirectional", _, Some("false")) => "causal".to_owned(),
            ("causal" | "bidirectional", _, _) => (*name).to_owned(),
            (name, size, _) => format!("{{{name}: {}}}", size.unwrap_or("...")),
        })
    };
    entries.iter().map(item).collect()
}

/// Decodes one rule. Several in one map are reported, with what is wrong in each of them.
fn one_rule(node: &Node, cx: &mut Context<'_>) -> Option<MaskPart> {
    let Some((second, rules)) = node.entries().and_then(|e| Some((e.get(1)?.key_span, rules_in_one(node)?)))
    else {
        return MaskPart::decode(node, cx);
    };
    let message = "a mask has several rules as a list, each an item of its own";
    let help = format!("write `mask: [{}]`", rules.join(", "));
    cx.report(Diagnostic::error(Code::SeveralParts, second, message).help(help));
    let check = |part: &str, fields: &Node, cx: &mut Context<'_>| {
        // The help has taken `causal: false` for the other direction.
        if !(DIRECTIONS.contains(&part) && fields.text().is_some()) {
            drop(MaskPart::decode(&Node::map(vec![entry(part, fields.clone())], fields.span), cx));
        }
    };
    check_each(node, &MaskPart::documentation(), &check, cx);
    None
}

impl Value for Mask {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let items: Vec<Node> = match &node.kind {
            Kind::List(items) => items.iter().map(|item| expand(item, cx)).collect(),
            Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => vec![expand(node, cx)],
        };
        // All rules are decoded before one with an error ends this, so that the errors of each are reported.
        let parts: Vec<Option<MaskPart>> = items.iter().map(|item| one_rule(item, cx)).collect();
        let parts: Vec<MaskPart> = parts.into_iter().collect::<Option<_>>()?;
        let directions = |p: &MaskPart| DIRECTIONS.contains(&p.part());
        // A rule that is given twice, or a second direction, would silently win over the first.
        for (i, part) in parts.iter().enumerate() {
            let twin = parts
                .iter()
                .take(i)
                .find(|other| other.part() == part.part() || (directions(part) && directions(other)));
            if let Some(twin) = twin {
                let message = if twin.part() == part.part() {
                    format!("`{}` is given twice", part.part())
                } else {
                    format!("`{}` and `{}` exclude each other", twin.part(), part.part())
                };
                cx.report(
                    Diagnostic::error(Code::MaskConflict, part.places().whole(), message)
                        .label(twin.places().whole(), "the other one")
                        .help("keep one of them"),
                );
                return None;
            }
        }
        Some(Self(parts))
    }
    fn encode(&self) -> Node {
        let items = self.0.iter().map(MaskPart::encode).collect();
        Node { kind: Kind::List(items), span: Span::default() }
    }
    fn describe() -> Shape {
        MaskPart::describe()
    }
}
