//! Decodes an encoder or a decoder: its blocks, and which block each layer has.

use std::collections::{BTreeMap, BTreeSet};

use super::block::{self, Block, Decoded};
use super::idle;
use super::keys;
use super::layers;
use super::lets::Lets;
use super::used::{Used, is_stack_key};
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, ideas};
use crate::field::record::{decoded, entry};
use crate::field::rule::{self, Is, Rule};
use crate::field::value::{DefaultDoc, Field, Shape, Value, plain};
use crate::field::words::boolean;
use crate::field::{Context, Places, Size};
use crate::ir::op::Sequence;
use crate::parts::{Embed, Norm, Position, StackNorm, embed};
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node};

/// A decoded encoder or decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The number of layers.
    pub layers: u64,
    /// The blocks without repetition: layers with equal blocks refer to the same one.
    pub blocks: Vec<Block>,
    /// The layers in order, as runs that refer to the blocks.
    pub segments: Vec<Segment>,
    /// The number of times in a row that every layer's block is applied: 1 unless layers share parameters.
    pub each: u64,
    /// The norm after the last block, if there is one.
    pub final_norm: Option<StackNorm>,
    /// The embedding, which turns tokens or an image into vectors.
    pub embed: Embed,
    /// The stack's place in the text.
    pub places: Places,
}

/// Consecutive layers that cycle through some blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of layers; if layers share parameters, the number of blocks with parameters of their own.
    pub count: u64,
    /// Layer `i` of the segment has the block `blocks[cycle[i % cycle.len()]]` of the stack.
    pub cycle: Vec<usize>,
}

/// The rules that relate the fields of a stack to one another.
pub const RULES: &[Rule] = &[
    Rule::divides("share", "layers"),
    of_runs("pattern"),
    of_runs("ranges"),
    of_one_kind("ranges"),
    of_one_kind("runs"),
];

/// The rule for a field that, like `runs`, determines which block each layer has.
const fn of_runs(field: &'static str) -> Rule {
    Rule::excludes(
        (field, Is::Given),
        ("runs", Is::Given),
        "`runs` and `{field}` both say which block each layer has",
    )
}

/// The rule for a field that gives layers different blocks, which shared layers cannot have.
const fn of_one_kind(other: &'static str) -> Rule {
    Rule::excludes(("share", Is::Given), (other, Is::Given), SEVERAL_KINDS).label("these make several")
}

const SEVERAL_KINDS: &str = "shared layers must all be of one kind, but there are several here";

/// Reports every rule that a stack breaks; `None` if there is one. Of `pattern`, `ranges` and `runs` it only
/// matters whether they are given.
fn obeys(node: &Node, layers: Option<u64>, share: Option<Size>, cx: &mut Context<'_>) -> Option<()> {
    let given = ["pattern", "ranges", "runs"].into_iter().filter(|key| node.get(key).is_some());
    // Their values are trees that have not been decoded yet.
    let mut values: Vec<Entry> = given.map(|key| entry(key, plain("given"))).collect();
    values.extend(layers.map(|n| entry("layers", plain(n.to_string()))));
    values.extend(share.map(|n| entry("share", n.encode())));
    rule::check(RULES, node, &Node::map(values, node.span), cx)
}

/// The fields of a stack, including those of its blocks.
pub fn fields() -> Vec<Field> {
    fn block_shape() -> Shape {
        Shape::Record("block", block::fields)
    }
    fn text_list() -> Shape {
        Shape::List(String::describe, None)
    }
    fn run_shape() -> Shape {
        Shape::List(|| Shape::Record("run", layers::run_fields), None)
    }
    let mut all = vec![Field::new("layers", "How many layers.", Size::describe, DefaultDoc::Required)];
    all.extend(block::fields());
    all.extend([
        Field::new(
            "blocks",
            "Named blocks; each gives what it changes in the stack's \
            block.",
            || Shape::Map(block_shape),
            DefaultDoc::Absent,
        ),
        Field::new(
            "pattern",
            "Names of blocks that the layers cycle through.",
            text_list,
            DefaultDoc::Absent,
        ),
        Field::new(
            "ranges",
            "What ranges of layers change: `\"0..3\": {...}`; the end is not included.",
            || Shape::Map(block_shape),
            DefaultDoc::Absent,
        ),
        Field::new(
            "runs",
            "Layers as runs that each cycle through named blocks, in place of `pattern` and `ranges`.",
            run_shape,
            DefaultDoc::Absent,
        ),
        Field::new(
            "share",
            "How many blocks have their own parameters; each is applied `layers / share` \
            times in a row (ALBERT has 1).",
            Size::describe,
            DefaultDoc::Absent,
        ),
        Field::new(
            "final_norm",
            "Whether the stack's norm follows the last block, or which norm does.",
            bool::describe,
            DefaultDoc::Value(|| plain("true")),
        ),
        Field::new(
            "embed",
            "What this stack changes in the model's `embed`.",
            Embed::describe,
            DefaultDoc::Absent,
        ),
    ]);
    all.iter_mut().for_each(|field| field.rules = RULES);
    all
}

/// What a stack takes from the model around it.
pub struct Surroundings<'a> {
    /// The key of the stack: `encoder` or `decoder`.
    pub name: &'static str,
    /// The place of that key.
    pub key: Span,
    /// The model's `embed` tree.
    pub embed: Option<&'a Node>,
    /// The model's `norm` tree.
    pub norm: Option<&'a Node>,
    /// Whether this is a decoder with an encoder to attend to.
    pub has_memory: bool,
    /// Whether the model has both an encoder and a decoder.
    pub both: bool,
    /// The size of this stack's vocabulary and the place where it is given, if it is known.
    pub vocab: Option<(u64, Span)>,
    /// The names under `let`. Those that depend on `layers` are resolved once its value is known.
    pub lets: &'a Lets,
    /// The wirings that a block can refer to by name.
    pub wirings: &'a [Equation],
    /// Collects the places of the model's own trees that have an effect.
    pub used: &'a mut Used,
}

/// Decodes a stack. All errors are reported. The names that the stack defines are forgotten at the end.
pub fn decode(node: &Node, around: Surroundings<'_>, cx: &mut Context<'_>) -> Option<Stack> {
    if !matches!(node.kind, Kind::Map(_)) {
        let wanted = format!("a map such as `{}: {{layers: 12, attention: {{heads: 12}}}}`", around.name);
        crate::field::value::wrong_kind(node, &wanted, cx);
        return None;
    }
    // A name such as `layers` means nothing outside of its stack.
    let mark = cx.mark();
    let stack = decode_inner(node, around, cx);
    cx.forget_since(mark);
    stack
}

fn decode_inner(node: &Node, around: Surroundings<'_>, cx: &mut Context<'_>) -> Option<Stack> {
    // First, since everything below looks up keys by their names.
    let node = &keys::mend(node, around.name, &fields(), around.wirings, around.has_memory, cx);
    let layers = decode_layers(node, &around, cx);
    // Names under `let` may depend on the number of layers, which every stack has for itself.
    around.lets.resolve(cx);
    let embed_tree = match (around.embed, node.get("embed")) {
        (Some(base), Some(over)) => merge(base, over, &super::Parts::known(cx), cx.sink()),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => Node::map(Vec::new(), node.span),
    };
    let embed = Embed::decode(&embed_tree, cx);
    if let Some(embed) = &embed {
        let at =
            embed::Surroundings { has_encoder: around.has_memory, both: around.both, vocab: around.vocab };
        embed.check(&at).into_iter().for_each(|d| cx.report(d));
    }
    let base = base_tree(node, &embed_tree, around.norm, cx);
    let share = node.entry("share").map(|e| (e, decoded::<Size>(("share", true), &e.value, cx)));
    let obeys_rules = obeys(node, layers, share.as_ref().and_then(|(_, share)| *share), cx);
    let plan = layers::plan(node, &base, layers, cx);
    let site = block::Site {
        stack: around.key,
        wirings: around.wirings,
        has_memory: around.has_memory,
        sequence: embed.as_ref().and_then(|e| e.patches.as_ref()).map_or(Sequence::Whole, |patches| {
            // All images have the same number of patches, so their length is part of the types.
            Sequence::Fixed(patches.length())
        }),
        is_causal: around.name == "decoder",
        embedding: embed.as_ref().map(|e| &e.position),
    };
    let mut used = Used::default();
    let decoded = match &plan.runs {
        Some(runs) => Some(decode_blocks(runs, site, cx, &mut used)),
        None => {
            // Which block each layer has is not known, but every block can still be checked.
            let mut parts = block::DecodedParts::default();
            for (name, tree) in &plan.trees {
                block::decode(tree, name.as_deref(), site, cx, (&mut used, &mut parts));
            }
            None
        }
    };
    let final_norm = final_norm(node, &base, &mut used, cx);
    // An equation with an error may call parts that nothing else calls.
    if decoded.as_ref().is_none_or(|d| !d.is_wired) {
        used.note_partial();
    }
    let blocks = decoded.as_ref().map_or(&[][..], |d| &d.blocks);
    if let Some(embed) = &embed {
        idle::report_nowhere(node, around.name, (embed, embed_tree.entry("position")), cx);
    }
    let embed = embed.map(|embed| with_used_position(embed, &embed_tree, blocks, &mut used));
    report_idle(node, around.name, &used, plan.with_layers(), cx);
    around.used.absorb(used);
    // Everything that can be reported has been by now, so what is missing ends this.
    let Blocks { blocks, mut segments, is_complete, .. } = decoded?;
    // A block with an error might be the one that attends.
    if is_complete && around.has_memory {
        attends(node, &blocks, &around, cx)?;
    }
    obeys_rules?;
    let each = sharing(share, node, layers?, &mut segments, cx)?;
    if !is_complete {
        return None;
    }
    let segments = simplify(segments);
    let (layers, final_norm, embed) = (layers?, final_norm?, embed?);
    Some(Stack { layers, blocks, segments, each, final_norm, embed, places: Places::new(node.span) })
}

fn decode_layers(node: &Node, around: &Surroundings<'_>, cx: &mut Context<'_>) -> Option<u64> {
    let Some(given) = node.get("layers") else {
        let message = format!("`{}` needs `layers`", around.name);
        cx.report(Diagnostic::error(Code::MissingKey, around.key, message).help("add `layers: 12`"));
        // Expressions that use the missing number are not reported in addition.
        cx.bind_broken("layers");
        return None;
    };
    let layers: Option<Size> = decoded(("layers", false), given, cx);
    match layers.and_then(|layers| layers.number()) {
        Some(number) => cx.bind("layers", number, Some(given.span)),
        None => cx.bind_broken("layers"),
    }
    layers.map(|layers| *layers)
}

/// The different blocks of a stack, and the layers that have them.
struct Blocks {
    blocks: Vec<Block>,
    segments: Vec<Segment>,
    /// Whether every equation could be resolved.
    is_wired: bool,
    /// Whether every block could be decoded.
    is_complete: bool,
}

/// The tree of some layers after decoding. Trees of equal content are decoded only once, unless they have an
/// error: what is wrong in both is shown in both places.
struct DecodedTree<'n> {
    tree: &'n Node,
    /// Whether it has an error, even if the block is known.
    is_wrong: bool,
    /// The index of its block; `None` if it has an error.
    index: Option<usize>,
    /// The places in it that have an effect.
    used: Used,
}

fn decode_blocks(
    runs: &[layers::Run],
    site: block::Site<'_>,
    cx: &mut Context<'_>,
    used: &mut Used,
) -> Blocks {
    let mut all = Blocks { blocks: Vec::new(), segments: Vec::new(), is_wired: true, is_complete: true };
    let mut decoded: Vec<DecodedTree<'_>> = Vec::new();
    // Indices into `decoded` and into `all.blocks`, by digest.
    let mut trees: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut twins: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut parts = block::DecodedParts::default();
    let mut calls = 0usize;
    for run in runs {
        let mut cycle = Vec::new();
        for (name, tree) in &run.cycle {
            let alike = trees.entry(tree.digest()).or_default();
            let mut known = alike.iter().filter_map(|i| decoded.get(*i));
            let is_known = |known: &&DecodedTree<'_>| match known.is_wrong {
                false => known.tree.is_written_as(tree),
                true => known.tree.is_same(tree),
            };
            let index = match known.find(is_known) {
                Some(known) => {
                    used.note_like(&known.used, known.tree, tree);
                    known.index
                }
                None => {
                    let mut here = Used::default();
                    let errors = cx.errors();
                    let index = match block::decode(tree, name.as_deref(), site, cx, (&mut here, &mut parts))
                    {
                        Decoded::Block(new) => {
                            let alike = twins.entry(parts.digest(&new)).or_default();
                            let mut twin = alike.iter().copied();
                            let twin = twin.find(|i| all.blocks.get(*i).is_some_and(|b| *b == *new));
                            Some(twin.unwrap_or_else(|| {
                                calls = calls.saturating_add(new.instances.len());
                                alike.push(all.blocks.len());
                                all.blocks.push(*new);
                                all.blocks.len().saturating_sub(1)
                            }))
                        }
                        Decoded::Parts => None,
                        Decoded::Equation => {
                            all.is_wired = false;
                            None
                        }
                    };
                    alike.push(decoded.len());
                    let is_wrong = index.is_none() || cx.errors() > errors;
                    decoded.push(DecodedTree { tree, is_wrong, index, used: here });
                    index
                }
            };
            cycle.extend(index);
            all.is_complete &= index.is_some();
            if calls > block::MAX_CALLS {
                cx.report(too_many_calls(tree));
                // What else the text says may have an effect, which is not known.
                all.is_complete = false;
                all.is_wired = false;
                return all;
            }
        }
        all.segments.push(Segment { count: run.count, cycle });
    }
    decoded.into_iter().for_each(|known| used.absorb(known.used));
    all
}

fn too_many_calls(tree: &Node) -> Diagnostic {
    let most = block::MAX_CALLS;
    let message =
        format!("up to here, the different blocks of this stack call parts in more than {most} places");
    let at = tree.get("block").map_or(tree.span, |equation| equation.span);
    Diagnostic::error(Code::TooLarge, at, message)
        .help("give layers the same block where they need not differ: equal blocks count once")
}

/// The embedding without a position scheme that no block has. A scheme that is added to the embeddings always has an
/// effect; any other has one only in a block, which may have changed it.
fn with_used_position(embed: Embed, tree: &Node, blocks: &[Block], used: &mut Used) -> Embed {
    let Some(node) = tree.get("position") else { return embed };
    match embed.position {
        Position::Rotary(_) | Position::Alibi(_) | Position::T5(_) => {
            let has_it = |block: &Block| block.is_positioned() && block.position == embed.position;
            if blocks.iter().any(has_it) { embed } else { Embed { position: Position::nowhere(), ..embed } }
        }
        Position::None(_) | Position::Learned(_) | Position::Sinusoidal(_) => {
            used.note(node);
            embed
        }
    }
}

/// Reports the keys of the stack that have no effect, including the position in its `embed`.
fn report_idle(
    node: &Node,
    title: &str,
    used: &Used,
    have_layers: Option<BTreeSet<&str>>,
    cx: &mut Context<'_>,
) {
    used.report_rest(node, title, have_layers, cx);
    if let Some(e) = node.get("embed").and_then(|embed| embed.entry("position")) {
        let others: Vec<&Entry> = node.entry("position").into_iter().collect();
        used.report_replaced((&format!("{title}.embed.position"), e), &others, title, cx);
    }
}

/// Reports a decoder that never attends to the model's encoder; `None` if it does not.
fn attends(node: &Node, blocks: &[Block], around: &Surroundings<'_>, cx: &mut Context<'_>) -> Option<()> {
    if blocks.iter().any(|b| b.instances.iter().any(|i| i.part.reads_memory())) {
        return Some(());
    }
    let message = "no block of the decoder attends to the encoder, whose output would be ignored";
    let place = node.get("block").map_or(around.key, |n| n.span);
    cx.report(
        Diagnostic::error(Code::NoMemory, place, message)
            .help("add `x = x + cross(norm(x), memory)` to the equation, or remove the encoder"),
    );
    None
}

/// Shortens cycles that repeat a shorter one, and joins neighbouring segments with the same cycle if the
/// first ends where its cycle does.
fn simplify(segments: Vec<Segment>) -> Vec<Segment> {
    let mut simple: Vec<Segment> = Vec::new();
    for mut segment in segments {
        let length = segment.cycle.len();
        // Blocks that differ only in name are one, so `[a, b]` may be the same block twice.
        let period = (1..=length)
            .find(|p| {
                length.is_multiple_of(*p)
                    && segment.cycle.iter().eq(segment.cycle.iter().take(*p).cycle().take(length))
            })
            .unwrap_or(length);
        segment.cycle.truncate(period);
        match simple.last_mut() {
            Some(last)
                if last.cycle == segment.cycle && last.count.is_multiple_of(last.cycle.len() as u64) =>
            {
                last.count = last.count.saturating_add(segment.count);
            }
            Some(_) | None => simple.push(segment),
        }
    }
    simple
}

/// The tree that every block of a stack starts from: the norm and the position of the model, overridden by
/// the stack's own keys for its blocks.
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
    merge(&Node::map(under, node.span), &Node::map(own, node.span), &super::Parts::known(cx), cx.sink())
}

fn entry_at(key: &str, value: &Node) -> crate::syntax::tree::Entry {
    crate::syntax::tree::Entry { key: key.to_owned(), key_span: value.span, value: value.clone() }
}

/// The norm after the last block: `final_norm` is `false`, `true` for the norm of the blocks, or a norm of
/// its own. `Some(None)` means that there is no norm, `None` that there is an error.
fn final_norm(node: &Node, base: &Node, used: &mut Used, cx: &mut Context<'_>) -> Option<Option<StackNorm>> {
    let own = match node.get("final_norm") {
        // Before anything is noted as used: without a final norm, the model's `norm` may have no effect.
        Some(n) if n.text() == Some("false") => return Some(None),
        Some(n) if n.text() != Some("true") => {
            // A word that is probably `true` or `false` misspelled is not reported as an unknown norm.
            let words = [&["true", "false"], Norm::PARTS].concat();
            let unknown = n.text().filter(|t| !words.contains(t) && !cx.definitions().has(t));
            let near = unknown.and_then(|t| boolean(t).map(str::to_owned).or_else(|| suggest(t, &words)));
            if near.is_some_and(|near| !Norm::PARTS.contains(&near.as_str())) {
                bool::decode(n, cx);
                return None;
            }
            Some(n)
        }
        Some(_) | None => None,
    };
    let default = Node::plain("layer_norm", node.span);
    base.get("norm").filter(|_| own.is_none()).into_iter().for_each(|norm| used.note(norm));
    let norm = StackNorm::decode(own.or(base.get("norm")).unwrap_or(&default), cx)?;
    Some((!norm.is_none()).then_some(norm))
}

/// The number of times in a row that every block is applied. If layers share parameters, the segments become
/// one with as many blocks as `share` says.
fn sharing(
    share: Option<(&Entry, Option<Size>)>,
    node: &Node,
    layers: u64,
    segments: &mut Vec<Segment>,
    cx: &mut Context<'_>,
) -> Option<u64> {
    let Some((e, share)) = share else { return Some(1) };
    let share = *share?;
    let cycle = match segments.as_slice() {
        // Blocks with several names are of one kind if they are equal.
        [Segment { cycle, .. }] if cycle.iter().all(|i| Some(i) == cycle.first()) => cycle,
        _ => {
            let diagnostic = Diagnostic::error(Code::KeysExclude, e.key_span, SEVERAL_KINDS);
            let pattern = node.entry("pattern").into_iter();
            let diagnostic = pattern.fold(diagnostic, |d, p| d.label(p.key_span, "these make several"));
            cx.report(diagnostic.help("keep one of them"));
            return None;
        }
    };
    let cycle = cycle.first().copied().into_iter().collect();
    *segments = vec![Segment { count: share, cycle }];
    layers.checked_div(share)
}

impl Stack {
    /// The tree of the stack with all defaults written out.
    pub fn encode(&self) -> Node {
        let names: Vec<String> = (0..self.blocks.len()).map(|i| self.block_name(i)).collect();
        let position = &self.embed.position;
        let list = |items: Vec<Node>| Node { kind: Kind::List(items), span: Span::default() };
        let mut entries = vec![entry("layers", plain(self.layers.to_string()))];
        if self.each > 1 {
            entries.push(entry(
                "share",
                plain(self.layers.checked_div(self.each).unwrap_or(self.layers).to_string()),
            ));
        }
        let norm = self.final_norm.as_ref().map_or_else(|| plain("false"), StackNorm::encode);
        entries.push(entry("final_norm", norm));
        entries.push(entry("embed", self.embed.encode()));
        match self.blocks.as_slice() {
            // A single block needs no name: its keys are among those of the stack.
            [only] => entries.extend(only.encode(position).entries().unwrap_or(&[]).iter().cloned()),
            blocks => {
                let named =
                    blocks.iter().zip(&names).map(|(b, name)| entry(name, b.encode(position))).collect();
                entries.push(entry("blocks", Node::map(named, Span::default())));
                // Runs can express every order of blocks, which a pattern cannot.
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

    /// The name of a block: the author's if no other block has the same name, otherwise `block` followed by
    /// its index.
    pub fn block_name(&self, index: usize) -> String {
        let name = self.blocks.get(index).and_then(|b| b.name.clone());
        let is_unique = |n: &String| self.blocks.iter().filter(|b| b.name.as_ref() == Some(n)).count() == 1;
        name.filter(is_unique).unwrap_or_else(|| format!("block{index}"))
    }
}

/// A stack with nothing but what must be given.
pub fn smallest() -> Node {
    let heads = Node::map(vec![entry("heads", plain("1"))], Span::default());
    Node::map(vec![entry("layers", plain("1")), entry("attention", heads)], Span::default())
}

/// Whether an entry of a spec, which has these fields, is a block of a kind that trafoc does not have, in the place of a
/// stack: `lstm: {layers: 2}`.
pub fn is_foreign(entry: &Entry, fields: &[Field]) -> bool {
    let is_map = entry.value.entries().is_some() && fields.iter().all(|field| field.name != entry.key);
    is_map && ideas::within(&entry.key, "spec", ideas::Met::Value).is_some()
}
