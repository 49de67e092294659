//! The places in a graph that can be inspected: attention weights, outputs of layers and norms, with the
//! paths under which a run captures them.

use std::collections::BTreeMap;

use super::pieces::{Pieces, pieces};
use super::prepared::prepared;
use crate::ir::op::{Attention, MaskRule};
use crate::ir::paths::join;
use crate::ir::{
    self, Dim, Graph, MemberId, MemberKind, ModelKind, Module, ModuleId, Node, Op, Slot, Sym, ValueId,
    Verified,
};

/// The most places that are listed, since more could not be shown.
const MOST: usize = 4096;

/// The sequence of the keys that a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Queries and keys are of an encoder's sequence.
    Encoder,
    /// Queries and keys are of a decoder's sequence.
    Decoder,
    /// Queries are of the decoder's sequence, keys of the encoder's.
    Cross,
}

/// A sequence of a model's positions, which has its own labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sequence {
    /// The input of the encoder in an encoder-decoder.
    Source,
    /// The input of the decoder, or of the only stack.
    Target,
}

impl Sequence {
    /// The sequence of a stack.
    fn of(model: ModelKind, stack: Stack) -> Self {
        match (model, stack) {
            (ModelKind::EncoderDecoder, Stack::Encoder) => Sequence::Source,
            // A model of one stack has a single sequence.
            (ModelKind::EncoderDecoder, Stack::Decoder) | (ModelKind::Decoder | ModelKind::Encoder, _) => {
                Sequence::Target
            }
        }
    }
}

/// A stack of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// The only stack of an encoder, or the one that reads the source in an encoder-decoder.
    Encoder,
    /// The only stack of a decoder, or the one that writes the target in an encoder-decoder.
    Decoder,
}

impl Stack {
    /// The name of the stack in one word.
    pub fn word(self) -> &'static str {
        match self {
            Stack::Encoder => "encoder",
            Stack::Decoder => "decoder",
        }
    }
}

/// Where in a model something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The stack in whose module it is.
    pub stack: Stack,
    /// The index of the layer in its stack, counted from 0; `None` before and after the layers.
    pub layer: Option<u64>,
}

impl Kind {
    /// The name of the kind in one word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Encoder => "encoder",
            Kind::Decoder => "decoder",
            Kind::Cross => "cross",
        }
    }
}

/// The attention of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The path of its module: `decoder.blocks.3.attention`.
    pub path: String,
    /// The path of its weights `[B, H, T, K]`.
    pub weights: String,
    /// The sequence of the keys.
    pub kind: Kind,
    /// The sequence of the queries.
    pub queries: Sequence,
    /// The sequence of the keys.
    pub keys: Sequence,
    /// The fixed numbers of queries and keys; `None` if they depend on the inputs.
    pub sizes: [Option<u64>; 2],
    /// The index of the layer in its stack, counted from 0.
    pub layer: u64,
    /// How many self-attentions of its layer its inputs went through: those of one layer with the same number
    /// are parallel.
    pub round: u64,
    /// Its path in the layer, such as `attention.near`, if the layer has several of its kind.
    pub among: Option<String>,
    /// The number of heads, each with weights `[T, K]`.
    pub heads: u64,
    /// The rules that hide keys, in addition to padding.
    pub rules: Vec<MaskRule>,
    /// The parameters of the op; `None` if a part computes the weights of pieces, as the softmax of its own scores.
    pub op: Option<Attention>,
    /// The paths of the op's inputs: queries, keys, values `[B, H, T, D]`, followed by mask, bias and sinks if
    /// it has them; none for weights of pieces.
    pub inputs: Vec<String>,
    /// What is done to queries and keys after their projection, in words and in order, such as their rotation.
    pub prepared: Vec<&'static str>,
    /// The path of its output, `[B, H, T, V]`.
    pub output: String,
}

impl Site {
    /// What it is called in a heading: `decoder attention, layer 3`, followed by its place in the layer if
    /// the layer has several.
    pub fn title(&self) -> String {
        let among = self.among.as_ref().map(|among| format!(", {among}")).unwrap_or_default();
        format!("{} attention, layer {}{among}", self.kind.word(), self.layer)
    }

    /// Whether a rule hides a key from a query.
    pub fn hides(&self, query: u64, key: u64) -> bool {
        self.rules.iter().any(|rule| rule.hides(query, key))
    }
}

/// The output of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The stack of the layer.
    pub stack: Stack,
    /// The sequence of its positions.
    pub sequence: Sequence,
    /// The index of the layer, counted from 0.
    pub index: u64,
    /// The path of its output `[B, T, D]`.
    pub path: String,
}

/// A kind of norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Subtracts the mean and divides by the root of the variance.
    LayerNorm,
    /// Divides by the root of the mean square.
    RmsNorm,
}

/// A norm over the features of every position.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    /// The path of the norm: `decoder.blocks.3.norm1`.
    pub path: String,
    /// The path of its input, `[B, T, D]`.
    pub input: String,
    /// The kind of norm.
    pub kind: NormKind,
    /// What the norm adds to the variance or the mean square, so that it never divides by zero.
    pub eps: f64,
    /// The place of the norm; `None` outside of the stacks, in embeddings and heads.
    pub at: Option<At>,
    /// The sequence of its positions.
    pub sequence: Sequence,
}

/// Everything that can be inspected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sites {
    /// The attentions, in the order of computation.
    pub attention: Vec<Site>,
    /// Whether a part adds up values by numbers that are no softmax over keys, which cannot be shown as attention.
    pub weighs_otherwise: bool,
    /// The outputs of layers, preceded by the input of each stack.
    pub layers: Vec<Layer>,
    /// The norms of positions, in the order of computation.
    pub norms: Vec<Norm>,
}

/// The places of a graph that can be inspected.
pub fn sites(graph: &Verified) -> Sites {
    // Inputs of the graph bring no rules: what they hide depends on their numbers.
    let arguments = vec![Vec::new(); graph.root().args];
    let walk = |of: Applied| {
        let mut walk = Walk { graph, sites: Sites::default(), round: 0, applied: Applied::new(), of };
        walk.module(graph.root, "", None, &arguments);
        walk
    };
    // The first walk only counts: whether the name of a value has a number depends on what is applied later, too.
    walk(walk(Applied::new()).applied).sites
}

/// Gives attentions of the same kind their paths in the block, so that their titles differ.
fn tell_apart(sites: &mut [Site], block: &str) {
    for kind in [Kind::Encoder, Kind::Decoder, Kind::Cross] {
        // The only attention of its kind in a layer needs no path to be told from others.
        if sites.iter().filter(|site| site.kind == kind).count() > 1 {
            for site in sites.iter_mut().filter(|site| site.kind == kind) {
                let path = site.path.strip_prefix(block).unwrap_or(&site.path);
                site.among = Some(path.trim_start_matches('.').to_owned());
            }
        }
    }
}

type Rules = Vec<MaskRule>;

/// How many times each module has been applied, by its path. Shared layers have one path.
type Applied = BTreeMap<String, u64>;

struct Walk<'a> {
    graph: &'a Graph,
    sites: Sites,
    /// Counts so far.
    applied: Applied,
    /// Counts at the end, from an earlier walk.
    of: Applied,
    /// How many self-attentions of the layer the inputs of the visited node went through.
    round: u64,
}

impl Walk<'_> {
    /// Visits the nodes of a module. `arguments` are the rules of the masks that it is given, one list for
    /// each argument.
    fn module(&mut self, id: ModuleId, path: &str, at: Option<At>, arguments: &[Rules]) {
        let module = self.graph.module(id);
        *self.applied.entry(path.to_owned()).or_default() += 1;
        let at = match module.part.as_ref().map(|part| part.slot) {
            Some(Slot::Encoder) => Some(At { stack: Stack::Encoder, layer: None }),
            Some(Slot::Decoder) => Some(At { stack: Stack::Decoder, layer: None }),
            // These are within a stack or outside of both, as the module that contains them is.
            Some(Slot::Embed | Slot::Attention | Slot::Cross | Slot::Ffn | Slot::Norm | Slot::Head)
            | None => at,
        };
        // A mask is a value: its rules go with it from the op that creates it to the attention that reads it.
        let mut rules: Vec<Rules> = vec![Rules::new(); module.values.len()];
        rules.iter_mut().zip(arguments).for_each(|(to, from)| to.clone_from(from));
        let first = self.round;
        // What the module is given has gone through as many self-attentions as the inputs of its call.
        let mut rounds = vec![first; module.values.len()];
        for node in &module.nodes {
            let given: Vec<Rules> =
                node.inputs.iter().map(|id| rules.get(id.0).cloned().unwrap_or_default()).collect();
            self.round = node.inputs.iter().filter_map(|id| rounds.get(id.0)).copied().fold(first, u64::max);
            let before = self.sites.attention.len();
            match pieces(module, node) {
                Some(Pieces { mask, is_softmax: true }) => {
                    let rules = mask.and_then(|id| rules.get(id.0)).cloned().unwrap_or_default();
                    let value = node.inputs.first().copied();
                    self.attention(module, node, (None, value), path, (at, rules));
                }
                Some(Pieces { is_softmax: false, .. }) => self.sites.weighs_otherwise = true,
                None => {}
            }
            let own = self.node(module, node, path, at, &given);
            let inside = self.sites.attention.get(before..).unwrap_or_default();
            let inside = inside.iter().filter(|site| site.kind != Kind::Cross).map(|site| site.round + 1);
            // Cross-attention mixes in another sequence, so it is no step between positions of this one.
            let after = inside.fold(self.round, u64::max);
            for id in &node.outputs {
                if let Some(slot) = rounds.get_mut(id.0) {
                    *slot = after;
                }
                if let Some(slot) = rules.get_mut(id.0) {
                    slot.clone_from(&own);
                }
            }
        }
        // The module that called this one counts on from its own inputs.
        self.round = first;
    }

    /// Visits a node, and returns the rules of the mask it creates.
    fn node(&mut self, module: &Module, node: &Node, path: &str, at: Option<At>, given: &[Rules]) -> Rules {
        // A spec may have 10^9 layers, far more than can be walked or shown.
        if self.sites.attention.len() >= MOST || self.sites.layers.len() >= MOST {
            return Rules::new();
        }
        if let Op::Attention(op) = &node.op {
            let rules = op.hidden_by(given);
            // The second output of the op is its weights.
            let weights = node.outputs.get(1).copied();
            self.attention(module, node, (Some(op), weights), path, (at, rules));
        }
        if let Op::Layer { member } = &node.op {
            self.norm(module, node, *member, path, at);
        }
        if let Op::Call { member } = &node.op
            && let MemberKind::Module(id) = &module.member(*member).kind
        {
            self.module(*id, &join(path, &module.member(*member).name), at, given);
        }
        if let (Op::Scan { member, each, args }, Some(At { stack: of, .. })) = (&node.op, at)
            && let MemberKind::Stack(runs) = &module.member(*member).kind
        {
            let name = &module.member(*member).name;
            let stack = join(path, name);
            let mut layer = 0u64;
            let mut blocks = 0u64;
            for (run, args) in runs.iter().zip(args) {
                // A block that layers share is applied for each of them, one after the other.
                for i in 0..run.count.saturating_mul(*each) {
                    if self.sites.layers.len() >= MOST {
                        return Rules::new();
                    }
                    let index = i / (*each).max(1);
                    let at = (index % run.cycle.len().max(1) as u64) as usize;
                    let Some(block) = run.cycle.get(at) else { continue };
                    // The first argument of a block is its input, which carries no rules; masks follow it.
                    let steering = args.get(at).into_iter().flatten();
                    let steering = steering.map(|i| given.get(*i).cloned().unwrap_or_default());
                    let arguments: Vec<Rules> = std::iter::once(Rules::new()).chain(steering).collect();
                    let block_path = format!("{stack}.{}", blocks + index);
                    let inside = At { stack: of, layer: Some(layer) };
                    // Rollout mixes layer by layer, so rounds are counted within a layer.
                    self.round = 0;
                    let before = self.sites.attention.len();
                    self.module(*block, &block_path, Some(inside), &arguments);
                    tell_apart(self.sites.attention.get_mut(before..).unwrap_or_default(), &block_path);
                    self.layer(*block, of, &block_path, layer);
                    layer += 1;
                }
                blocks = blocks.saturating_add(run.count);
            }
        }
        node.op.meaning().hides(given)
    }

    /// The name under which a run captures a value of the module that was applied last at a path: with `@` and a
    /// number if it is applied several times.
    fn captured(&self, path: &str, name: &str) -> String {
        let whole = join(path, name);
        match (self.of.get(path), self.applied.get(path)) {
            (Some(2..), Some(time)) => format!("{whole}@{}", time.saturating_sub(1)),
            (_, _) => whole,
        }
    }

    /// Notes an attention of a layer, whose weights a run can capture.
    fn attention(
        &mut self,
        module: &Module,
        node: &Node,
        (op, weights): (Option<&Attention>, Option<ValueId>),
        path: &str,
        (at, rules): (Option<At>, Rules),
    ) {
        let Some(value) = weights.map(|id| module.value(id)) else { return };
        // Attention outside of the layers belongs to the grid of none.
        let ([_, heads, queries, keys], Some(At { stack, layer: Some(layer) })) =
            (value.ty.shape.as_slice(), at)
        else {
            return;
        };
        let sequence = Sequence::of(self.graph.kind, stack);
        let (kind, of_keys) = match stack {
            // First, because cross-attention is in the decoder's stack, too.
            _ if Attention::reads_memory(queries, keys) => (Kind::Cross, Sequence::Source),
            Stack::Encoder => (Kind::Encoder, sequence),
            Stack::Decoder => (Kind::Decoder, sequence),
        };
        let constant = |dim: &Dim| dim.constant().and_then(|n| u64::try_from(n).ok());
        let sizes = [constant(queries), constant(keys)];
        let heads = heads.constant().and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
        let named = |id: &ValueId| self.captured(path, &module.value(*id).name);
        let (inputs, output) = (node.inputs.iter().map(named), node.outputs.first().map(named));
        let inputs = if op.is_some() { inputs.collect() } else { Vec::new() };
        let (weights, output) = (self.captured(path, &value.name), output.unwrap_or_default());
        self.sites.attention.push(Site {
            path: path.to_owned(),
            weights,
            kind,
            queries: sequence,
            keys: of_keys,
            sizes,
            layer,
            round: self.round,
            among: None,
            heads,
            rules,
            op: op.cloned(),
            inputs,
            prepared: node.inputs.first().map(|id| prepared(module, *id)).unwrap_or_default(),
            output,
        });
    }

    /// Notes a layer if it is a norm over `[B, T, D]`.
    fn norm(&mut self, module: &Module, node: &Node, member: MemberId, path: &str, at: Option<At>) {
        let member = module.member(member);
        let (kind, eps) = match &member.kind {
            MemberKind::Layer(ir::Layer::LayerNorm { eps, .. }) => (NormKind::LayerNorm, *eps),
            MemberKind::Layer(ir::Layer::RmsNorm { eps, .. }) => (NormKind::RmsNorm, *eps),
            MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => return,
        };
        let Some(input) = node.inputs.first().map(|id| module.value(*id)) else { return };
        // Norms of queries and keys are computed head by head.
        if input.ty.shape.len() == 3 {
            // Outside of the stacks, in an embedding, the length tells whose positions they are.
            let is_source = input.ty.shape.get(1) == Some(&Dim::sym(Sym::Source));
            let outside = if is_source { Sequence::Source } else { Sequence::Target };
            let (path, input) = (join(path, &member.name), self.captured(path, &input.name));
            let sequence = at.map_or(outside, |at| Sequence::of(self.graph.kind, at.stack));
            self.sites.norms.push(Norm { path, input, kind, eps, at, sequence });
        }
    }

    /// Notes the first result of a block, which is the output of the layer.
    fn layer(&mut self, block: ModuleId, stack: Stack, path: &str, index: u64) {
        let module = self.graph.module(block);
        let Some(result) = module.results.first() else { return };
        let path = self.captured(path, &module.value(*result).name);
        let sequence = Sequence::of(self.graph.kind, stack);
        self.sites.layers.push(Layer { stack, sequence, index, path });
    }
}
