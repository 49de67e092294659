//! The places in a graph that can be inspected: attention weights, outputs of layers and norms, with the
//! paths under which a run captures them.

use crate::ir::op::{Attention, MaskRule};
use crate::ir::paths::join;
use crate::ir::{
    self, Dim, Graph, MemberId, MemberKind, ModelKind, Module, ModuleId, Node, Op, Sym, ValueId, Verified,
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
    pub fn of(model: ModelKind, stack: &str) -> Self {
        match model {
            ModelKind::EncoderDecoder if stack == ENCODER => Sequence::Source,
            ModelKind::EncoderDecoder | ModelKind::Decoder | ModelKind::Encoder => Sequence::Target,
        }
    }
}

/// The name of the stack that is an encoder.
const ENCODER: &str = "encoder";

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
    /// The number of heads.
    pub heads: u64,
    /// The rules that hide keys, in addition to padding.
    pub rules: Vec<MaskRule>,
    /// The parameters of the op.
    pub op: Attention,
    /// The paths of its inputs: queries, keys, values `[B, H, T, D]`, followed by mask, bias and sinks if
    /// it has them.
    pub inputs: Vec<String>,
    /// The path of its output, `[B, H, T, V]`.
    pub output: String,
}

impl Site {
    /// Whether a rule hides a key from a query.
    pub fn hides(&self, query: u64, key: u64) -> bool {
        self.rules.iter().any(|rule| rule.hides(query, key))
    }
}

/// The output of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The stack: `encoder` or `decoder`.
    pub stack: String,
    /// The sequence of its positions.
    pub sequence: Sequence,
    /// The index of the layer, counted from 0.
    pub index: u64,
    /// The path of its output `[B, T, D]`.
    pub path: String,
}

/// A norm over the features of every position.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    /// The path of the norm: `decoder.blocks.3.norm1`.
    pub path: String,
    /// The path of its input, `[B, T, D]`.
    pub input: String,
    /// The kind: `layer_norm` or `rms_norm`.
    pub kind: &'static str,
    /// Added to the variance or the mean square.
    pub eps: f64,
    /// The index of the layer in its stack, counted from 0; 0 outside of the layers.
    pub layer: u64,
}

/// Everything that can be inspected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sites {
    /// The attentions, in the order of computation.
    pub attention: Vec<Site>,
    /// The outputs of layers, preceded by the input of each stack.
    pub layers: Vec<Layer>,
    /// The norms of positions, in the order of computation.
    pub norms: Vec<Norm>,
}

/// The places of a graph that can be inspected.
pub fn sites(graph: &Verified) -> Sites {
    let mut walk = Walk { graph, sites: Sites::default() };
    let arguments = vec![Vec::new(); graph.root().args];
    walk.module(graph.root, "", 0, &arguments);
    walk.sites
}

type Rules = Vec<MaskRule>;

struct Walk<'a> {
    graph: &'a Graph,
    sites: Sites,
}

impl Walk<'_> {
    fn module(&mut self, id: ModuleId, path: &str, layer: u64, arguments: &[Rules]) {
        let module = self.graph.module(id);
        let mut rules: Vec<Rules> = vec![Rules::new(); module.values.len()];
        rules.iter_mut().zip(arguments).for_each(|(to, from)| to.clone_from(from));
        for node in &module.nodes {
            let given: Vec<Rules> =
                node.inputs.iter().map(|id| rules.get(id.0).cloned().unwrap_or_default()).collect();
            let own = self.node(module, node, path, layer, &given);
            for id in &node.outputs {
                if let Some(slot) = rules.get_mut(id.0) {
                    slot.clone_from(&own);
                }
            }
        }
    }

    /// Visits a node, and returns the rules of the mask it creates.
    fn node(&mut self, module: &Module, node: &Node, path: &str, layer: u64, given: &[Rules]) -> Rules {
        if self.sites.attention.len() >= MOST || self.sites.layers.len() >= MOST {
            return Rules::new();
        }
        if let Op::Attention(op) = &node.op {
            let rules = op.hidden_by(given);
            self.attention(module, node, op, path, (layer, rules));
        }
        if let Op::Layer { member } = &node.op {
            self.norm(module, node, *member, path, layer);
        }
        if let Op::Call { member } = &node.op
            && let MemberKind::Module(id) = &module.member(*member).kind
        {
            self.module(*id, &join(path, &module.member(*member).name), layer, given);
        }
        if let Op::Scan { member, args, .. } = &node.op
            && let MemberKind::Stack(runs) = &module.member(*member).kind
        {
            let name = &module.member(*member).name;
            let stack = join(path, name);
            let mut index = 0u64;
            for (run, args) in runs.iter().zip(args) {
                for i in 0..run.count {
                    if self.sites.layers.len() >= MOST {
                        return Rules::new();
                    }
                    let at = (i % run.cycle.len().max(1) as u64) as usize;
                    let Some(block) = run.cycle.get(at) else { continue };
                    let steering = args.get(at).into_iter().flatten();
                    let steering = steering.map(|i| given.get(*i).cloned().unwrap_or_default());
                    let arguments: Vec<Rules> = std::iter::once(Rules::new()).chain(steering).collect();
                    let block_path = format!("{stack}.{index}");
                    self.module(*block, &block_path, index, &arguments);
                    self.layer(*block, path, &block_path, index);
                    index += 1;
                }
            }
        }
        node.op.meaning().hides(given)
    }

    fn attention(
        &mut self,
        module: &Module,
        node: &Node,
        op: &Attention,
        path: &str,
        (layer, rules): (u64, Rules),
    ) {
        let Some(value) = node.outputs.get(1).map(|id| module.value(*id)) else { return };
        let [_, heads, queries, keys] = value.ty.shape.as_slice() else { return };
        let stack = path.split('.').next().unwrap_or_default();
        let sequence = Sequence::of(self.graph.kind, stack);
        // A decoder's own keys are as many as its queries, plus those in the cache.
        let own = [queries.clone(), queries + &Dim::sym(Sym::Past)];
        let (kind, of_keys) = match (stack == ENCODER, own.contains(keys)) {
            (true, _) => (Kind::Encoder, sequence),
            (false, true) => (Kind::Decoder, sequence),
            (false, false) => (Kind::Cross, Sequence::Source),
        };
        let constant = |dim: &Dim| dim.constant().and_then(|n| u64::try_from(n).ok());
        let sizes = [constant(queries), constant(keys)];
        let heads = heads.constant().and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
        let named = |id: &ValueId| join(path, &module.value(*id).name);
        self.sites.attention.push(Site {
            path: path.to_owned(),
            weights: join(path, &value.name),
            kind,
            queries: sequence,
            keys: of_keys,
            sizes,
            layer,
            heads,
            rules,
            op: op.clone(),
            inputs: node.inputs.iter().map(named).collect(),
            output: node.outputs.first().map(named).unwrap_or_default(),
        });
    }

    fn norm(&mut self, module: &Module, node: &Node, member: MemberId, path: &str, layer: u64) {
        let member = module.member(member);
        let (kind, eps) = match &member.kind {
            MemberKind::Layer(ir::Layer::LayerNorm { eps, .. }) => ("layer_norm", *eps),
            MemberKind::Layer(ir::Layer::RmsNorm { eps, .. }) => ("rms_norm", *eps),
            MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => return,
        };
        let Some(input) = node.inputs.first().map(|id| module.value(*id)) else { return };
        // Norms of queries and keys are computed head by head.
        if input.ty.shape.len() == 3 {
            let (path, input) = (join(path, &member.name), join(path, &input.name));
            self.sites.norms.push(Norm { path, input, kind, eps, layer });
        }
    }

    fn layer(&mut self, block: ModuleId, stack: &str, path: &str, index: u64) {
        let module = self.graph.module(block);
        let Some(result) = module.results.first() else { return };
        let path = join(path, &module.value(*result).name);
        let sequence = Sequence::of(self.graph.kind, stack);
        self.sites.layers.push(Layer { stack: stack.to_owned(), sequence, index, path });
    }
}
