//! One kind of block: its wiring, and the part at every call site.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::used::Used;
use super::wiring::{self, PartKind, Wiring, resolve};
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::mend::mended;
use crate::field::record::entry;
use crate::field::value::{Field, Shape, Value};
use crate::field::{Context, value::DefaultDoc};
use crate::ir::op::Sequence;
use crate::parts::attention::MultiHead;
use crate::parts::attention::effect::Effect;
use crate::parts::own::check::check_in_block;
use crate::parts::{Attention, Cross, Ffn, Gain, OwnPart, Position, StackNorm};
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node, Scalar, Style};

/// The key of a wiring: of a stack, or of one of its blocks.
pub const WIRING: &str = "block";

/// One kind of block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The name under `blocks`, if it has one.
    pub name: Option<String>,
    /// The equation, with its call sites and the meaning of every name.
    pub wiring: Wiring,
    /// The positional scheme of the attentions.
    pub position: Position,
    /// The part at every call site, in the order of the wiring.
    pub instances: Vec<Instance>,
}

/// Names do not take part in equality, so that blocks which differ only in name are one.
impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.wiring == other.wiring && self.position == other.position && self.instances == other.instances
    }
}

/// A part at a call site.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The name, which is a segment of the parameters' paths.
    pub name: String,
    /// The part with its fields. Call sites that are described by the same text share it.
    pub part: Arc<Part>,
}

impl PartialEq for Instance {
    fn eq(&self, other: &Self) -> bool {
        // A part that both share need not be compared field by field.
        self.name == other.name && (Arc::ptr_eq(&self.part, &other.part) || self.part == other.part)
    }
}

/// The part at a call site.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// What `norm(x)` calls.
    Norm(StackNorm),
    /// Attention of the stack's sequence to itself.
    Attention(Attention),
    /// Attention to the encoder's output.
    Cross(Cross),
    /// What `ffn(x)` calls.
    Ffn(Ffn),
    /// What `gain(x)` calls: a learned factor for every feature.
    Gain(Gain),
    /// A part that the spec defines, called by its name.
    Own(OwnPart),
    /// A part that the spec defines, which `cross(x, memory)` calls.
    Reading(OwnPart),
}

/// The fields that describe a block, in a stack, under `blocks` and under `ranges`.
pub fn fields() -> Vec<Field> {
    vec![
        Field::new(
            "block",
            "The block's equation, or the name of a wiring. Every call of a part is an instance with its own parameters; its name is also a key here that changes that instance.",
            || Shape::Equation,
            DefaultDoc::Value(|| Node::plain("pre_norm", Span::default())),
        ),
        Field::new(
            "position",
            "The positional scheme of attention in this block, if it differs from `embed.position`: \
                `rotary`, `alibi`, `t5` or `none`.",
            Position::describe,
            DefaultDoc::Absent,
        ),
        Field::new("norm", "The part that `norm(x)` calls.", StackNorm::describe, DefaultDoc::Absent),
        Field::new(
            "attention",
            "The part that `attention(x)` calls.",
            Attention::describe,
            DefaultDoc::Absent,
        ),
        Field::new(
            "cross",
            "The part that `cross(x, memory)` calls: attention, whose missing fields are those of \
                `attention`, or a part that the spec defines.",
            Cross::describe,
            DefaultDoc::Absent,
        ),
        Field::new("ffn", "The part that `ffn(x)` calls.", Ffn::describe, DefaultDoc::Absent),
        Field::new("gain", "The part that `gain(x)` calls.", Gain::describe, DefaultDoc::Absent),
    ]
}

/// What a block's tree is decoded with: its stack and its embedding.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The place of the stack's key, where missing keys are reported.
    pub stack: Span,
    /// The named wirings of the prelude.
    pub wirings: &'a [Equation],
    /// Whether there is an encoder to attend to.
    pub has_memory: bool,
    /// The positions of the stack: those of a text, or the patches of an image.
    pub sequence: Sequence,
    /// Whether a position sees only the positions before it.
    pub is_causal: bool,
    /// The positional scheme of the embedding, if it is known.
    pub embedding: Option<&'a Position>,
}

/// The most call sites that the different blocks of a stack may have together: several times those of the
/// largest models, whose layers are nearly all alike, and few enough that a spec is checked in a tenth of a
/// second.
pub const MAX_CALLS: usize = 4_096;

/// A tree and the part that it describes; `None` after an error, which has been reported.
type DecodedPart = (Node, Option<Arc<Part>>);

/// The parts of a stack that have been decoded, so that a text that describes many call sites is decoded
/// once.
#[derive(Default)]
pub struct DecodedParts {
    /// By word, place and digest of the tree.
    parts: BTreeMap<(String, Span, u64), Vec<DecodedPart>>,
    /// The digest of each part, written in full, by its address, which does not change while `parts` owns it.
    digests: BTreeMap<*const Part, u64>,
}

impl DecodedParts {
    fn part(
        &mut self,
        call: &wiring::Site,
        node: &Node,
        site: Site<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Arc<Part>> {
        // By digest first, since comparing with every tree would take time that grows with their square.
        let alike = self.parts.entry((call.word.clone(), node.span, node.digest())).or_default();
        // The same text elsewhere is decoded again, so that its diagnostics have its own place.
        if let Some((_, part)) = alike.iter().find(|(known, _)| known.is_same(node)) {
            return part.clone();
        }
        let part = part((call.kind, &call.word), node, site, cx).map(Arc::new);
        alike.push((node.clone(), part.clone()));
        part
    }

    /// A number that is equal for equal blocks.
    pub fn digest(&mut self, block: &Block) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&block.wiring.spelled, block.position.encode().digest()).hash(&mut hasher);
        for instance in &block.instances {
            let of_part = self.digests.entry(Arc::as_ptr(&instance.part));
            (&instance.name, of_part.or_insert_with(|| instance.part.encode().digest())).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The result of decoding a block's tree.
pub enum Decoded {
    /// The block, all of whose parts could be decoded.
    Block(Box<Block>),
    /// The equation is known, but one of the parts has an error.
    Parts,
    /// The equation has an error.
    Equation,
}

/// Decodes one kind of block from its merged tree. `used` collects what has an effect, `known` what was
/// decoded.
pub fn decode(
    tree: &Node,
    name: Option<&str>,
    site: Site<'_>,
    cx: &mut Context<'_>,
    (used, known): (&mut Used, &mut DecodedParts),
) -> Decoded {
    // With the place of the whole tree, where an error about the default is shown.
    let default = Node::plain("pre_norm", tree.span);
    let equation = tree.get("block").unwrap_or(&default);
    let wiring = resolve(equation, site.wirings, site.has_memory, cx);
    used.note(equation);
    let position = match tree.get("position") {
        Some(node) => Position::decode(node, cx).and_then(|position| acts_here(position, site, cx)),
        None => Some(Position::nowhere()),
    };
    let Some(wiring) = wiring else {
        // Even if not all call sites are known, the parts are checked.
        let definitions = Arc::clone(cx.definitions());
        let calls = wiring::calls(equation, site.wirings, site.has_memory, cx.sources(), &definitions);
        for e in tree.entries().unwrap_or(&[]) {
            let called = calls.sites.iter().find(|s| s.name == e.key || s.word == e.key);
            let called = called.map(|site| (site.kind, site.word.as_str()));
            if let Some(callee) = PartKind::from_word(&e.key).map(|kind| (kind, kind.word())).or(called) {
                let own = Some(&e.value).filter(|_| e.key != callee.1);
                part(callee, &config(tree, callee, own, cx), site, cx);
            }
        }
        return Decoded::Equation;
    };
    let own: BTreeMap<&str, &Node> =
        tree.entries().unwrap_or(&[]).iter().map(|e| (e.key.as_str(), &e.value)).collect();
    // The parts of call sites without keys of their own, by word.
    let mut common: BTreeMap<&str, Option<Arc<Part>>> = BTreeMap::new();
    let mut instances = Vec::with_capacity(wiring.sites.len());
    for call in &wiring.sites {
        used.note_call(&call.word, &call.name);
        // A key that is the word of a part is for all its calls, and `config` includes it anyway.
        let own = own.get(call.name.as_str()).filter(|_| call.name != call.word);
        let part = match common.get(call.word.as_str()).filter(|_| own.is_none()) {
            Some(part) => part.clone(),
            None => {
                let node = config(tree, (call.kind, &call.word), own.copied(), cx);
                used.note(&node);
                let part = known.part(call, &node, site, cx);
                let is_positioned = match (part.as_deref(), &position) {
                    (Some(part), Some(position)) => part.has_positions(position),
                    // After an error in the part or in the scheme, the one may be for the other.
                    (Some(part), None) => part.own().is_some() || call.kind == PartKind::Attention,
                    (None, _) => call.kind == PartKind::Attention,
                };
                if is_positioned {
                    tree.get("position").into_iter().for_each(|node| used.note(node));
                }
                if let Some(part) = &part {
                    part.check(position.as_ref(), site, cx);
                    part.effects(position.as_ref())
                        .into_iter()
                        .for_each(|e| used.note_effect(e.place, e.lack));
                }
                // After the checks, which are about what the author wrote.
                let part = part.map(|part| with_position(part, position.as_ref()));
                if own.is_none() {
                    common.insert(&call.word, part.clone());
                }
                part
            }
        };
        instances.extend(part.map(|part| Instance { name: call.name.clone(), part }));
    }
    match position {
        // A call site whose part has an error has no instance.
        Some(position) if instances.len() == wiring.sites.len() => {
            let block = Block { name: name.map(str::to_owned), wiring, position, instances };
            // A scheme without an effect is none, so that blocks which differ in it alone are equal.
            let position = if block.is_positioned() { block.position } else { Position::nowhere() };
            Decoded::Block(Box::new(Block { position, ..block }))
        }
        Some(_) | None => Decoded::Parts,
    }
}

/// A scheme that is added to embeddings has no effect in a block, unless it is the embedding's own.
fn acts_here(position: Position, site: Site<'_>, cx: &mut Context<'_>) -> Option<Position> {
    // Every block starts from the embedding's scheme, so that one is no mistake.
    let on_embedding = matches!(position, Position::Learned(_) | Position::Sinusoidal(_));
    if !on_embedding || site.embedding.is_none_or(|of| *of == position) {
        return Some(position);
    }
    let message = format!("`{}` positions are added to embeddings, not in a block", position.part());
    cx.report(
        Diagnostic::error(Code::WrongPlace, position.places().whole(), message)
            .help("a block can have `rotary`, `alibi`, `t5` or `none`; put this one under `embed`"),
    );
    None
}

/// The tree of one instance: the part's key, merged with the instance's own key.
fn config(tree: &Node, (kind, word): (PartKind, &str), own: Option<&Node>, cx: &mut Context<'_>) -> Node {
    let mut base = tree.get(word).cloned();
    // Both attentions of a decoder usually have the same sizes, so `cross` need not repeat them. A part of the spec
    // has other fields.
    let names_own = |node: &Node| OwnPart::named(node, cx.definitions()).is_some();
    let is_own = base.iter().chain(own).any(names_own);
    if kind == PartKind::Cross && !is_own {
        base = match (inherited(tree, cx), base) {
            (Some(under), Some(over)) => Some(merge(&under, &over, &super::Parts::known(cx), cx.sink())),
            (one, other) => other.or(one),
        };
    }
    // With the part's name, so that another part of an instance replaces the common one instead of being
    // merged.
    let own = own.map(|node| kind.with_part(node, cx.definitions()));
    match (base, own) {
        (Some(base), Some(own)) => merge(&base, &own, &super::Parts::known(cx), cx.sink()),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Node { kind: Kind::Null, span: tree.span },
    }
}

/// Whether `cross` takes a field that it is not given from `attention`: those that both have.
pub fn is_inherited(field: &str) -> bool {
    let has = |fields: Vec<Field>| fields.iter().any(|f| f.name == field);
    has(Cross::fields()) && has(MultiHead::fields())
}

/// The fields that `cross` inherits from a multi-head `attention`.
fn inherited(tree: &Node, cx: &Context<'_>) -> Option<Node> {
    let node = tree.get("attention")?;
    // The fields may be given with or without the name of the part.
    let fields = node.get("multi_head").unwrap_or(node);
    // What is misspelled in `attention` is reported there, and inherited as what it means.
    let mut unheard = Sink::new();
    let mut quiet = Context::new(cx.sources(), &mut unheard);
    let fields = mended(fields, "attention", &MultiHead::fields(), &[], &mut quiet);
    let entries: Vec<Entry> =
        fields.entries()?.iter().filter(|e| is_inherited(e.key.as_str())).cloned().collect();
    Some(Node::map(entries, node.span))
}

fn part((kind, word): (PartKind, &str), node: &Node, site: Site<'_>, cx: &mut Context<'_>) -> Option<Part> {
    let missing = matches!(node.kind, Kind::Null);
    match kind {
        // The default of the model's `norm`.
        PartKind::Norm if missing => {
            let norm = Node::plain("layer_norm", node.span);
            StackNorm::decode(&norm, cx).map(Part::Norm)
        }
        PartKind::Norm => StackNorm::decode(node, cx).map(Part::Norm),
        // There is no default for the number of heads.
        PartKind::Attention if missing => {
            absent(kind, "attention: {heads: 8}", site, cx);
            None
        }
        PartKind::Attention => Attention::decode(node, cx).map(Part::Attention),
        PartKind::Cross if missing => {
            absent(kind, "cross: {heads: 8}", site, cx);
            None
        }
        PartKind::Cross => match OwnPart::of_memory(node, word, cx) {
            Some(own) => own.map(Part::Reading),
            None => Cross::decode(node, cx).map(Part::Cross),
        },
        PartKind::Ffn => Ffn::decode(node, cx).map(Part::Ffn),
        PartKind::Gain => Gain::decode(node, cx).map(Part::Gain),
        PartKind::Own => OwnPart::decode(word, node, cx).map(Part::Own),
    }
}

fn absent(kind: PartKind, example: &str, site: Site<'_>, cx: &mut Context<'_>) {
    let message = format!("the block calls `{0}`, but no `{0}` is described", kind.word());
    cx.report(Diagnostic::error(Code::MissingKey, site.stack, message).help(format!("add `{example}`")));
}

impl Part {
    /// The part with every field written.
    pub fn encode(&self) -> Node {
        match self {
            Part::Norm(p) => p.encode(),
            Part::Attention(p) => p.encode(),
            Part::Cross(p) => p.encode(),
            Part::Ffn(p) => p.encode(),
            Part::Gain(p) => p.encode(),
            // The call names the part, so the key has the fields alone.
            Part::Own(p) => p.fields(),
            Part::Reading(p) => p.encode(),
        }
    }

    /// Reports what is wrong with the part in its block; with the positional scheme, if it is known.
    fn check(&self, position: Option<&Position>, site: Site<'_>, cx: &mut Context<'_>) {
        if let Some(own) = self.own() {
            check_in_block(own, position, (site.sequence, site.is_causal), cx);
        }
        if let Part::Attention(attention) = self {
            attention.check(position, site.is_causal).into_iter().for_each(|d| cx.report(d));
        }
    }

    /// Whether it is given the encoder's output.
    pub fn reads_memory(&self) -> bool {
        match self {
            Part::Cross(_) | Part::Reading(_) => true,
            Part::Own(own) => own.reads_memory(),
            Part::Attention(_) | Part::Norm(_) | Part::Ffn(_) | Part::Gain(_) => false,
        }
    }

    /// Whether it makes a difference which positions its block has: a scheme acts only through an attention, or a part
    /// that does the same.
    fn has_positions(&self, position: &Position) -> bool {
        match self.own() {
            Some(own) => own.has_positions(position),
            None => matches!(self, Part::Attention(_)),
        }
    }

    /// The part that the spec defines, if it is called by its name or is in the slot of attention.
    pub fn own(&self) -> Option<&OwnPart> {
        match self {
            Part::Own(own) | Part::Reading(own) | Part::Attention(Attention::Own(own)) => Some(own),
            Part::Attention(_) | Part::Cross(_) | Part::Norm(_) | Part::Ffn(_) | Part::Gain(_) => None,
        }
    }

    /// The values of the part that have an effect only with some positional schemes, if the scheme is known.
    fn effects(&self, position: Option<&Position>) -> Vec<Effect> {
        match (self, position) {
            (Part::Attention(p), Some(position)) => p.effects(position),
            (Part::Attention(_), None) => Vec::new(),
            (Part::Norm(_) | Part::Ffn(_) | Part::Gain(_), _)
            | (Part::Cross(_) | Part::Own(_) | Part::Reading(_), _) => Vec::new(),
        }
    }

    /// The name of the part in its slot.
    pub fn word(&self) -> &str {
        match self {
            Part::Norm(p) => p.part(),
            Part::Attention(p) => p.part(),
            Part::Cross(_) => "cross",
            Part::Ffn(p) => p.part(),
            Part::Gain(_) => "gain",
            Part::Own(p) | Part::Reading(p) => p.name(),
        }
    }
}

/// The part in a block with these positions, if they are known.
fn with_position(part: Arc<Part>, position: Option<&Position>) -> Arc<Part> {
    // The part is shared with other call sites, so it is copied only if it changes.
    let changed = match (&*part, position) {
        (Part::Attention(p), Some(position)) => Some(p.with_position(position)).filter(|own| own != p),
        (Part::Attention(_), None) => None,
        (Part::Norm(_) | Part::Ffn(_) | Part::Gain(_), _)
        | (Part::Cross(_) | Part::Own(_) | Part::Reading(_), _) => None,
    };
    changed.map_or(part, |own| Arc::new(Part::Attention(own)))
}

impl Block {
    /// Whether it makes a difference which positions it has.
    pub fn is_positioned(&self) -> bool {
        self.instances.iter().any(|i| i.part.has_positions(&self.position))
    }

    /// The block written in full: its equation, its positions if it has any that differ from the embedding's, and
    /// every instance under its name.
    pub fn encode(&self, of_embedding: &Position) -> Node {
        // A text in block style ends with a line break.
        let text = Scalar { text: format!("{}\n", self.wiring.spelled), style: Style::Block };
        let mut entries = vec![entry("block", Node { kind: Kind::Scalar(text), span: Span::default() })];
        if self.is_positioned() && self.position != *of_embedding {
            entries.push(entry("position", self.position.encode()));
        }
        entries.extend(self.instances.iter().map(|i| entry(&i.name, i.part.encode())));
        Node::map(entries, Span::default())
    }
}
