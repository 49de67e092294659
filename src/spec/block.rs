//! One kind of block: its wiring and the part at every call site.

use super::wiring::{PartKind, Wiring, resolve};
use crate::diag::{Code, Diagnostic};
use crate::field::record::{entry, listed, unknown_key};
use crate::field::value::{Field, Shape, Value};
use crate::field::{Context, value::DefaultDoc};
use crate::parts::{Attention, Cross, Ffn, Gain, Norm, Position};
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node, Scalar, Style};

/// One kind of block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name under `blocks`, if it has one.
    pub name: Option<String>,
    /// The equation.
    pub wiring: Wiring,
    /// The positional scheme of its attentions.
    pub position: Position,
    /// The part of every call site, in the wiring's order.
    pub instances: Vec<Instance>,
}

/// Names aside.
impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.wiring == other.wiring && self.position == other.position && self.instances == other.instances
    }
}

/// A part at a call site.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its name, the segment of its parameters' paths.
    pub name: String,
    /// The part.
    pub part: Part,
}

/// What a call site holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A norm.
    Norm(Norm),
    /// Attention of the stack's sequence to itself.
    Attention(Attention),
    /// Attention to the memory.
    Cross(Cross),
    /// A feed-forward part.
    Ffn(Ffn),
    /// A learned scale.
    Gain(Gain),
}

/// What may be said of a block, in a stack, under `blocks` and under `ranges`.
pub fn fields() -> Vec<Field> {
    vec![
        Field {
            name: "block",
            doc: "The block's equation, or the name of a wiring. Every call of a part is an instance with its own parameters; its name is also a key here that changes that instance.",
            shape: || Shape::Equation,
            default: DefaultDoc::Value(|| Node::plain("pre_norm", Span::default())),
        },
        Field {
            name: "position",
            doc: "The positional scheme of attention in this block, where it differs from `embed.position`: `rotary`, `alibi`, `t5` or `none`.",
            shape: Position::describe,
            default: DefaultDoc::Absent,
        },
        Field { name: "norm", doc: "What `norm(x)` is.", shape: Norm::describe, default: DefaultDoc::Absent },
        Field {
            name: "attention",
            doc: "What `attention(x)` is.",
            shape: Attention::describe,
            default: DefaultDoc::Absent,
        },
        Field {
            name: "cross",
            doc: "What `cross(x, memory)` is; fields not given are those of `attention`.",
            shape: Cross::describe,
            default: DefaultDoc::Absent,
        },
        Field { name: "ffn", doc: "What `ffn(x)` is.", shape: Ffn::describe, default: DefaultDoc::Absent },
        Field { name: "gain", doc: "What `gain(x)` is.", shape: Gain::describe, default: DefaultDoc::Absent },
    ]
}

/// What blocks make of the keys of their trees, over all blocks of a stack: a key is at fault only if
/// it is in every block that has it.
#[derive(Debug, Default)]
pub struct Keys(Vec<(Entry, Use)>);

/// What a block makes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It is no key of a block and no call site.
    Unknown,
    /// It is the key of a part that the equation does not call.
    Idle,
    /// It changes the block.
    Used,
}

impl Keys {
    fn note(&mut self, entry: &Entry, state: Use) {
        match self.0.iter_mut().find(|(e, _)| e.key_span == entry.key_span && e.key == entry.key) {
            Some((_, best)) => *best = state.max(*best),
            None => self.0.push((entry.clone(), state)),
        }
    }

    /// Marks a key as used.
    pub fn mark(&mut self, entry: &Entry) {
        self.note(entry, Use::Used);
    }

    /// Whether the key at that place changes something.
    pub fn is_used(&self, place: Span) -> bool {
        self.0.iter().any(|(e, state)| e.key_span == place && *state == Use::Used)
    }

    /// Reports keys no block knows and keys without effect. `title` is the stack; `given` tells whether
    /// a key stands in the stack itself, and not in the model around it, which answers for its own.
    pub fn report(&self, title: &str, given: &dyn Fn(Span) -> bool, calls: &[&str], cx: &mut Context<'_>) {
        let mut known: Vec<&str> = fields().iter().map(|f| f.name).collect();
        let others: Vec<&str> = calls.iter().copied().filter(|c| !known.contains(c)).collect();
        known.extend(others);
        for (e, state) in self.0.iter().filter(|(e, _)| given(e.key_span)) {
            match state {
                Use::Used => {}
                Use::Idle => {
                    let message = format!("no block of the {title} calls `{}`", e.key);
                    cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(format!(
                        "call `{}(...)` in the block's equation, or take the key away",
                        e.key
                    )));
                }
                Use::Unknown => {
                    let diagnostic = unknown_key(e, title, &known);
                    let kind = e.key.trim_end_matches(|c: char| c.is_ascii_digit());
                    let is_instance = PartKind::from_word(kind).is_some() && !calls.is_empty();
                    cx.report(if is_instance {
                        diagnostic.help(format!("the equation calls {}", listed(calls)))
                    } else {
                        diagnostic
                    });
                }
            }
        }
    }
}

/// Decodes one kind of block from its merged tree. `keys` collects what became of each key.
pub fn decode(
    tree: &Node,
    name: Option<&str>,
    wirings: &[Equation],
    has_memory: bool,
    cx: &mut Context<'_>,
    keys: &mut Keys,
) -> Option<Block> {
    let default = Node::plain("pre_norm", tree.span);
    let wiring = resolve(tree.get("block").unwrap_or(&default), wirings, has_memory, cx);
    let position = match tree.get("position") {
        Some(node) => Position::decode(node, cx),
        None => Some(Position::None(crate::parts::position::NoPosition { places: Default::default() })),
    };
    let Some(wiring) = wiring else {
        // Without call sites the parts are still checked as they stand, and a key may be that of a call
        // site if the equation's text has its name.
        let text = tree.get("block").and_then(Node::text).unwrap_or("");
        let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        for e in tree.entries().unwrap_or(&[]) {
            if let Some(kind) = PartKind::from_word(&e.key) {
                part(kind, &e.value, tree, cx);
            }
            let is_known = fields().iter().any(|f| f.name == e.key) || words.contains(&e.key.as_str());
            keys.note(e, if is_known { Use::Used } else { Use::Unknown });
        }
        return None;
    };
    let mut instances = Vec::new();
    let mut complete = true;
    for site in &wiring.sites {
        let node = config(tree, site.kind, &site.name, cx);
        match part(site.kind, &node, tree, cx) {
            Some(part) => instances.push(Instance { name: site.name.clone(), part }),
            None => complete = false,
        }
    }
    for e in tree.entries().unwrap_or(&[]) {
        let calls = |s: &super::wiring::Site| s.name == e.key || s.kind.word() == e.key;
        let feeds_cross = e.key == "attention" && wiring.sites.iter().any(|s| s.kind == PartKind::Cross);
        let state = match PartKind::from_word(&e.key) {
            _ if wiring.sites.iter().any(calls) || feeds_cross => Use::Used,
            Some(_) => Use::Idle,
            None if matches!(e.key.as_str(), "block" | "position") => Use::Used,
            None => Use::Unknown,
        };
        keys.note(e, state);
    }
    let position = position?;
    complete.then(|| Block { name: name.map(str::to_owned), wiring, position, instances })
}

/// The tree of one instance: the part's key, with the instance's own key laid over it.
fn config(tree: &Node, kind: PartKind, name: &str, cx: &mut Context<'_>) -> Node {
    let mut base = tree.get(kind.word()).cloned();
    if kind == PartKind::Cross {
        base = match (inherited(tree), base) {
            (Some(under), Some(over)) => Some(merge(&under, &over, &super::is_part, cx.sink())),
            (one, other) => other.or(one),
        };
    }
    let own = tree.get(name).filter(|_| name != kind.word()).cloned();
    match (base, own) {
        (Some(base), Some(own)) => merge(&base, &own, &super::is_part, cx.sink()),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Node { kind: Kind::Null, span: tree.span },
    }
}

/// What `cross` takes over from a multi-head `attention`: the fields it has too.
fn inherited(tree: &Node) -> Option<Node> {
    let node = tree.get("attention")?;
    let fields = node.get("multi_head").unwrap_or(node);
    let names: Vec<&str> = Cross::fields().iter().map(|f| f.name).collect();
    let entries: Vec<Entry> =
        fields.entries()?.iter().filter(|e| names.contains(&e.key.as_str())).cloned().collect();
    Some(Node::map(entries, node.span))
}

fn part(kind: PartKind, node: &Node, tree: &Node, cx: &mut Context<'_>) -> Option<Part> {
    let missing = matches!(node.kind, Kind::Null);
    match kind {
        PartKind::Norm if missing => {
            let norm = Node::plain("layer_norm", tree.span);
            Norm::decode(&norm, cx).map(Part::Norm)
        }
        PartKind::Norm => Norm::decode(node, cx).map(Part::Norm),
        PartKind::Attention if missing => {
            absent(kind, "attention: {heads: 8}", tree, cx);
            None
        }
        PartKind::Attention => Attention::decode(node, cx).map(Part::Attention),
        PartKind::Cross if missing => {
            absent(kind, "cross: {heads: 8}", tree, cx);
            None
        }
        PartKind::Cross => Cross::decode(node, cx).map(Part::Cross),
        PartKind::Ffn => Ffn::decode(node, cx).map(Part::Ffn),
        PartKind::Gain => Gain::decode(node, cx).map(Part::Gain),
    }
}

fn absent(kind: PartKind, example: &str, tree: &Node, cx: &mut Context<'_>) {
    let message = format!("the block calls `{}`, which is not described", kind.word());
    cx.report(Diagnostic::error(Code::MissingKey, tree.span, message).help(format!("add `{example}`")));
}

impl Part {
    /// Written out in full.
    pub fn encode(&self) -> Node {
        match self {
            Part::Norm(p) => p.encode(),
            Part::Attention(p) => p.encode(),
            Part::Cross(p) => p.encode(),
            Part::Ffn(p) => p.encode(),
            Part::Gain(p) => p.encode(),
        }
    }

    /// The name of the part in its slot.
    pub fn word(&self) -> &'static str {
        match self {
            Part::Norm(p) => p.part(),
            Part::Attention(p) => p.part(),
            Part::Cross(_) => "cross",
            Part::Ffn(p) => p.part(),
            Part::Gain(_) => "gain",
        }
    }
}

impl Block {
    /// The block written out: its equation, its positions where they are not the embedding's, and every
    /// instance under its name.
    pub fn encode(&self, of_embedding: &Position) -> Node {
        let text = Scalar { text: format!("{}\n", self.wiring.text), style: Style::Block };
        let mut entries = vec![entry("block", Node { kind: Kind::Scalar(text), span: Span::default() })];
        if self.position != *of_embedding {
            entries.push(entry("position", self.position.encode()));
        }
        entries.extend(self.instances.iter().map(|i| entry(&i.name, i.part.encode())));
        Node::map(entries, Span::default())
    }
}
