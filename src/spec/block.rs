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

/// Decodes one kind of block from its merged tree. `used` collects the keys something looked at.
pub fn decode(
    tree: &Node,
    name: Option<&str>,
    wirings: &[Equation],
    has_memory: bool,
    cx: &mut Context<'_>,
    used: &mut Vec<Span>,
) -> Option<Block> {
    let default = Node::plain("pre_norm", tree.span);
    let wiring = resolve(tree.get("block").unwrap_or(&default), wirings, has_memory, cx);
    let position = match tree.get("position") {
        Some(node) => Position::decode(node, cx),
        None => Some(Position::None(crate::parts::position::NoPosition { places: Default::default() })),
    };
    let Some(wiring) = wiring else {
        // Without call sites the parts are still checked as they stand.
        for kind in PartKind::ALL {
            if let Some(node) = tree.get(kind.word()) {
                part(*kind, node, tree, cx);
            }
        }
        return None;
    };
    let mut instances = Vec::new();
    let mut complete = true;
    for site in &wiring.sites {
        let node = config(tree, site.kind, &site.name, used, cx);
        match part(site.kind, &node, tree, cx) {
            Some(part) => instances.push(Instance { name: site.name.clone(), part }),
            None => complete = false,
        }
    }
    report_unknown(tree, &wiring, cx);
    used.extend(
        tree.entries()
            .unwrap_or(&[])
            .iter()
            .filter(|e| matches!(e.key.as_str(), "block" | "position"))
            .map(|e| e.key_span),
    );
    let position = position?;
    complete.then(|| Block { name: name.map(str::to_owned), wiring, position, instances })
}

/// The tree of one instance: the part's key, with the instance's own key laid over it.
fn config(tree: &Node, kind: PartKind, name: &str, used: &mut Vec<Span>, cx: &mut Context<'_>) -> Node {
    let mut note = |key: &str| {
        used.extend(tree.entry(key).map(|e| e.key_span));
        tree.get(key).cloned()
    };
    let mut base = note(kind.word());
    if kind == PartKind::Cross {
        base = match (inherited(tree), base) {
            (Some(under), Some(over)) => Some(merge(&under, &over, &super::is_part, cx.sink())),
            (one, other) => other.or(one),
        };
    }
    let own = (name != kind.word()).then(|| note(name)).flatten();
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

fn report_unknown(tree: &Node, wiring: &Wiring, cx: &mut Context<'_>) {
    let mut known: Vec<&str> = fields().iter().map(|f| f.name).collect();
    known.extend(wiring.sites.iter().map(|s| s.name.as_str()));
    known.dedup();
    for e in tree.entries().unwrap_or(&[]) {
        if !known.contains(&e.key.as_str()) {
            let calls: Vec<&str> = wiring.sites.iter().map(|s| s.name.as_str()).collect();
            let diagnostic = unknown_key(e, "block", &known);
            let is_instance =
                PartKind::from_word(e.key.trim_end_matches(|c: char| c.is_ascii_digit())).is_some();
            cx.report(if is_instance {
                diagnostic.help(format!("the equation's calls are {}", listed(&calls)))
            } else {
                diagnostic
            });
        }
    }
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
