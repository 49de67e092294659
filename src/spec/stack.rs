//! An encoder or a decoder: its blocks and which stands where.

use super::block::{self, Block, Keys};
use super::layers;
use crate::diag::{Code, Diagnostic};
use crate::field::record::entry;
use crate::field::value::{DefaultDoc, Field, Shape, Value, plain};
use crate::field::{Context, Size};
use crate::parts::{Embed, Norm};
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Kind, Node};

/// A stack of blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// How many layers.
    pub layers: u64,
    /// The kinds of blocks, all different.
    pub blocks: Vec<Block>,
    /// Which stand where.
    pub segments: Vec<Segment>,
    /// How many times in a row every block is applied: 1 unless layers are shared.
    pub each: u64,
    /// The norm after the last block, if there is one.
    pub final_norm: Option<Norm>,
    /// From tokens to vectors.
    pub embed: Embed,
    /// Where it stands.
    pub place: Place,
}

/// A place that does not take part in equality.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub Span);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Consecutive layers that cycle through some blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How many layers; with shared layers, how many physical blocks.
    pub count: u64,
    /// Indices of blocks.
    pub cycle: Vec<usize>,
}

/// The fields of a stack, those of a block among them.
pub fn fields() -> Vec<Field> {
    fn field(name: &'static str, doc: &'static str, shape: fn() -> Shape, default: DefaultDoc) -> Field {
        Field { name, doc, shape, default }
    }
    fn block_shape() -> Shape {
        Shape::Record("block", block::fields)
    }
    fn text_list() -> Shape {
        Shape::List(String::describe)
    }
    fn run_shape() -> Shape {
        Shape::List(|| Shape::Record("run", run_fields))
    }
    fn run_fields() -> Vec<Field> {
        vec![
            field("count", "How many layers.", Size::describe, DefaultDoc::Required),
            field(
                "cycle",
                "Names of the blocks they cycle through.",
                || Shape::List(String::describe),
                DefaultDoc::Required,
            ),
        ]
    }
    let mut all = vec![field("layers", "How many layers.", Size::describe, DefaultDoc::Required)];
    all.extend(block::fields());
    all.extend([
        field("blocks", "Named blocks; each gives what it changes of the stack's block.", || Shape::Map(block_shape), DefaultDoc::Absent),
        field("pattern", "Names of blocks that the layers cycle through.", text_list, DefaultDoc::Absent),
        field("ranges", "What ranges of layers change: `\"0..3\": {...}`; the end is not included.", || Shape::Map(block_shape), DefaultDoc::Absent),
        field("runs", "Layers as runs that each cycle through named blocks, in place of `pattern` and `ranges`.", run_shape, DefaultDoc::Absent),
        field("share", "How many blocks have parameters of their own; each is applied `layers / share` times in a row (ALBERT has 1).", Size::describe, DefaultDoc::Absent),
        field("final_norm", "Whether the stack's norm follows the last block, or which norm does.", bool::describe, DefaultDoc::Value(|| plain("true"))),
        field("embed", "What differs from the model's `embed` in this stack.", Embed::describe, DefaultDoc::Absent),
    ]);
    all
}

/// What a stack takes from the model around it.
pub struct Surroundings<'a> {
    /// `encoder` or `decoder`.
    pub name: &'static str,
    /// The model's `embed` tree.
    pub embed: Option<&'a Node>,
    /// The model's `norm` tree.
    pub norm: Option<&'a Node>,
    /// Whether there is an encoder to attend to.
    pub has_memory: bool,
    /// Unresolved `let` entries, tried again where `layers` is known.
    pub lets: &'a mut super::model::Lets,
    /// The named wirings.
    pub wirings: &'a [Equation],
    /// Whether something in a stack is the model's `norm`.
    pub uses_norm: &'a mut bool,
}

/// Decodes a stack.
pub fn decode(node: &Node, around: Surroundings<'_>, cx: &mut Context<'_>) -> Option<Stack> {
    if !matches!(node.kind, Kind::Map(_)) {
        crate::field::value::wrong_kind(node, &format!("a map that describes the {}", around.name), cx);
        return None;
    }
    let mark = cx.mark();
    let stack = decode_inner(node, around, cx);
    cx.forget_since(mark);
    stack
}

fn decode_inner(node: &Node, around: Surroundings<'_>, cx: &mut Context<'_>) -> Option<Stack> {
    let layers = match node.get("layers") {
        Some(n) => Size::decode(n, cx).inspect(|size| {
            if let Some(number) = size.number() {
                cx.bind("layers", number, Some(n.span));
            }
        }),
        None => {
            let message = format!("`{}` needs `layers`", around.name);
            cx.report(Diagnostic::error(Code::MissingKey, node.span, message).help("add `layers: 12`"));
            None
        }
    };
    around.lets.resolve(cx);
    let empty = Node::map(Vec::new(), node.span);
    let embed_tree = match (around.embed, node.get("embed")) {
        (Some(base), Some(over)) => merge(base, over, &super::is_part, cx.sink()),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => empty.clone(),
    };
    let embed = Embed::decode(&embed_tree, cx);
    let base = base_tree(node, &embed_tree, around.norm, cx);
    let share = node.entry("share").map(|e| (e, Size::decode(&e.value, cx)));
    let runs = layers.and_then(|layers| layers::runs(node, &base, *layers, cx));
    let mut keys = Keys::default();
    let Some(runs) = runs else {
        // The block is still checked on its own.
        block::decode(&base, None, around.wirings, around.has_memory, cx, &mut keys);
        keys.report(around.name, &within(node), &[], cx);
        return None;
    };
    let layers = *layers?;
    let mut trees: Vec<(Node, Option<usize>)> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut complete = true;
    let mut segments = Vec::new();
    for run in runs {
        let mut cycle = Vec::new();
        for (name, tree) in run.cycle {
            let known = trees.iter().find(|(t, _)| *t == tree).map(|(_, index)| *index);
            let index = known.unwrap_or_else(|| {
                let decoded =
                    block::decode(&tree, name.as_deref(), around.wirings, around.has_memory, cx, &mut keys);
                let index = decoded.map(|new| {
                    blocks.iter().position(|b| *b == new).unwrap_or_else(|| {
                        blocks.push(new);
                        blocks.len() - 1
                    })
                });
                trees.push((tree, index));
                index
            });
            match index {
                Some(index) => cycle.push(index),
                None => complete = false,
            }
        }
        segments.push(Segment { count: run.count, cycle });
    }
    let final_norm = final_norm(node, &base, &mut keys, cx);
    let mut calls: Vec<&str> =
        blocks.iter().flat_map(|b| b.instances.iter().map(|i| i.name.as_str())).collect();
    calls.sort_unstable();
    calls.dedup();
    keys.report(around.name, &within(node), &calls, cx);
    if around.norm.is_some_and(|norm| keys.is_used(norm.span)) {
        *around.uses_norm = true;
    }
    let each = sharing(share, layers, &mut segments, cx)?;
    if !complete {
        return None;
    }
    let segments = simplify(segments);
    Some(Stack {
        layers,
        blocks,
        segments,
        each,
        final_norm: final_norm?,
        embed: embed?,
        place: Place(node.span),
    })
}

/// Joins neighbouring segments of the same single block and shortens cycles that repeat.
fn simplify(segments: Vec<Segment>) -> Vec<Segment> {
    let mut simple: Vec<Segment> = Vec::new();
    for mut segment in segments {
        let length = segment.cycle.len();
        let period = (1..=length)
            .find(|p| {
                length % p == 0 && (0..length).all(|i| segment.cycle.get(i) == segment.cycle.get(i % p))
            })
            .unwrap_or(length);
        segment.cycle.truncate(period);
        match simple.last_mut() {
            Some(last) if last.cycle == segment.cycle && last.count % last.cycle.len() as u64 == 0 => {
                last.count = last.count.saturating_add(segment.count);
            }
            Some(_) | None => simple.push(segment),
        }
    }
    simple
}

/// The tree a block starts from: the model's norm and position, and what the stack says of its block.
fn base_tree(node: &Node, embed: &Node, norm: Option<&Node>, cx: &mut Context<'_>) -> Node {
    let mut under = Vec::new();
    if let Some(norm) = norm {
        under.push(entry_at("norm", norm));
    }
    if let Some(position) = embed.get("position") {
        under.push(entry_at("position", position));
    }
    let own: Vec<_> =
        node.entries().unwrap_or(&[]).iter().filter(|e| !is_stack_key(&e.key)).cloned().collect();
    merge(&Node::map(under, node.span), &Node::map(own, node.span), &super::is_part, cx.sink())
}

fn entry_at(key: &str, value: &Node) -> crate::syntax::tree::Entry {
    crate::syntax::tree::Entry { key: key.to_owned(), key_span: value.span, value: value.clone() }
}

const STACK_KEYS: &[&str] =
    &["layers", "blocks", "pattern", "ranges", "runs", "share", "final_norm", "embed"];

fn is_stack_key(key: &str) -> bool {
    STACK_KEYS.contains(&key)
}

/// `final_norm: false`, `true`, or a norm of its own. `Some(None)` is none.
fn final_norm(node: &Node, base: &Node, keys: &mut Keys, cx: &mut Context<'_>) -> Option<Option<Norm>> {
    let own = match node.get("final_norm") {
        Some(n) if n.text() == Some("false") => return Some(None),
        Some(n) if n.text() != Some("true") => Some(n),
        Some(_) | None => None,
    };
    let default = Node::plain("layer_norm", node.span);
    if let Some(e) = base.entry("norm").filter(|_| own.is_none()) {
        keys.mark(e);
    }
    match Norm::decode(own.or(base.get("norm")).unwrap_or(&default), cx)? {
        Norm::None(_) => Some(None),
        norm => Some(Some(norm)),
    }
}

/// Whether a place lies in the stack's own text, in whatever file that is.
fn within(node: &Node) -> impl Fn(Span) -> bool {
    fn collect(node: &Node, keys: &mut Vec<Span>) {
        for e in node.entries().unwrap_or(&[]) {
            keys.push(e.key_span);
            collect(&e.value, keys);
        }
    }
    let mut keys = Vec::new();
    collect(node, &mut keys);
    move |span| keys.contains(&span)
}

fn sharing(
    share: Option<(&crate::syntax::tree::Entry, Option<Size>)>,
    layers: u64,
    segments: &mut Vec<Segment>,
    cx: &mut Context<'_>,
) -> Option<u64> {
    let Some((e, share)) = share else { return Some(1) };
    let share = *share?;
    let [Segment { cycle, .. }] = segments.as_slice() else {
        let message = "shared layers are all of one kind; `ranges` make several";
        cx.report(Diagnostic::error(Code::KeysExclude, e.key_span, message));
        return None;
    };
    if cycle.iter().any(|i| Some(i) != cycle.first()) {
        let message = "shared layers are all of one kind; `pattern` makes several";
        cx.report(Diagnostic::error(Code::KeysExclude, e.key_span, message));
        return None;
    }
    if !layers.is_multiple_of(share) {
        let message = format!("share ({share}) does not divide layers ({layers})");
        cx.report(
            Diagnostic::error(Code::NotDivisible, e.value.span, message)
                .help("every block with parameters of its own is applied equally often"),
        );
        return None;
    }
    let cycle = cycle.first().copied().into_iter().collect();
    *segments = vec![Segment { count: share, cycle }];
    Some(layers / share)
}

impl Stack {
    /// The stack written out in full.
    pub fn encode(&self) -> Node {
        let names: Vec<String> = (0..self.blocks.len()).map(|i| self.block_name(i)).collect();
        let position = &self.embed.position;
        let list = |items: Vec<Node>| Node { kind: Kind::List(items), span: Span::default() };
        let mut entries = vec![entry("layers", plain(self.layers.to_string()))];
        if self.each > 1 {
            entries.push(entry("share", plain((self.layers / self.each).to_string())));
        }
        let norm = self.final_norm.as_ref().map_or_else(|| plain("false"), Norm::encode);
        entries.push(entry("final_norm", norm));
        entries.push(entry("embed", self.embed.encode()));
        match self.blocks.as_slice() {
            [only] => entries.extend(only.encode(position).entries().unwrap_or(&[]).iter().cloned()),
            blocks => {
                let named =
                    blocks.iter().zip(&names).map(|(b, name)| entry(name, b.encode(position))).collect();
                entries.push(entry("blocks", Node::map(named, Span::default())));
                let runs = self.segments.iter().map(|s| {
                    let cycle = s.cycle.iter().filter_map(|i| names.get(*i)).map(plain).collect();
                    let fields =
                        vec![entry("count", plain(s.count.to_string())), entry("cycle", list(cycle))];
                    Node::map(fields, Span::default())
                });
                entries.push(entry("runs", list(runs.collect())));
            }
        }
        Node::map(entries, Span::default())
    }

    /// A name for a kind of block: the author's, or its number.
    pub fn block_name(&self, index: usize) -> String {
        let name = self.blocks.get(index).and_then(|b| b.name.clone());
        let is_unique = |n: &String| self.blocks.iter().filter(|b| b.name.as_ref() == Some(n)).count() == 1;
        name.filter(is_unique).unwrap_or_else(|| format!("block{index}"))
    }
}
