//! The graph: named modules of primitive ops with symbolic shapes.
//!
//! A [`Module`] is a function from tensors to tensors that owns [`Member`]s: layers with parameters, child
//! modules, and stacks of blocks. Its body is a list of [`Node`]s in single-assignment form: a value is
//! defined once, before it is used. Equal modules are one module that is used in several places, so a stack
//! of 100 equal blocks is one module and a count, in the graph, in pictures and in emitted code.
//!
//! Values are dense tensors; [`DType::Bool`] masks are true where a key is *hidden*. A value whose type is
//! `optional` may be absent (an input that was not given); the ops that take one define what absence means.
//! Bodies have no side effects, except for [`Op::Dropout`] (random in training) and [`Op::Cache`], whose
//! state belongs to the caller. Lengths are [`Sym`]s; `P` is 0 outside of cached decoding.
//!
//! A parameter's path consists of the members from the root, joined by dots, including a block's index:
//! `decoder.blocks.3.attention.query.weight`. It is the name of the weight in files and the field in
//! emitted code. The path of a named value is its module's path and its name.
//!
//! Only [`verify::verify`] creates a [`Verified`]. Consumers take that type, so an author's mistake cannot
//! make them fail.

pub mod build;
pub mod dim;
pub mod extent;
pub mod factor;
pub mod fuse;
pub mod infer;
pub mod init;
pub mod last;
pub mod losses;
pub mod op;
pub mod paths;
pub mod print;
pub mod text;
pub mod verify;
pub mod work;

pub use dim::{Dim, Lengths, Sym};
pub use extent::Extent;
pub use factor::Factor;
pub use init::Init;
pub use op::Op;
pub use verify::Verified;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::Span;

/// The index of a module in [`Graph::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub usize);

/// The index of a member in [`Module::members`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub usize);

/// The index of a value in [`Module::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A whole model: its modules, and where its inputs and outputs are.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The name of the spec, from which files and the emitted model get theirs.
    pub name: String,
    /// All modules, children before parents; no two are equal.
    pub modules: Vec<Module>,
    /// The model itself. Its arguments are the graph's inputs, its results the outputs.
    pub root: ModuleId,
    /// The longest sequence the model is meant for, in positions.
    pub context: u64,
    /// The number of token ids in the embedding tables, which `run` checks; absent for images.
    pub vocab: Option<u64>,
    /// Whether the model can decode token by token with a cache (a causal decoder).
    pub decodes: bool,
    /// The kind of model that the author described.
    pub kind: ModelKind,
}

/// The stacks of a model, whatever their masks let them see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// A decoder without an encoder, as in GPT and Llama.
    Decoder,
    /// An encoder without a decoder, as in BERT and ViT.
    Encoder,
    /// An encoder of a text or an image, and a decoder that attends to it.
    EncoderDecoder,
}

impl ModelKind {
    /// The kind in reports: `encoder-decoder`.
    pub fn words(self) -> &'static str {
        match self {
            ModelKind::Decoder => "decoder",
            ModelKind::Encoder => "encoder",
            ModelKind::EncoderDecoder => "encoder-decoder",
        }
    }
}

/// A function from tensors to tensors, with its members.
#[derive(Clone, Debug)]
pub struct Module {
    /// The type's name in emitted code: `DecoderBlock`.
    pub name: String,
    /// What it computes, one formula or sentence per line.
    pub doc: Vec<String>,
    /// The place in the spec that it comes from.
    pub span: Option<Span>,
    /// The role in which its parameters are counted, except those of norms.
    pub role: Role,
    /// The part of the spec that it implements, if it is shown as one.
    pub part: Option<Part>,
    /// Layers, children and stacks, in order of first use.
    pub members: Vec<Member>,
    /// The number of arguments, which are the first of `values`.
    pub args: usize,
    /// All values of the body, arguments included; a [`ValueId`] is an index into them.
    pub values: Vec<Value>,
    /// The operations of the body, in the order in which they run.
    pub nodes: Vec<Node>,
    /// The values that the module returns, in the order in which its callers get them.
    pub results: Vec<ValueId>,
}

impl Module {
    /// A module with nothing in it.
    pub fn empty(name: String, role: Role) -> Self {
        Self {
            name,
            doc: Vec::new(),
            span: None,
            role,
            part: None,
            members: Vec::new(),
            args: 0,
            values: Vec::new(),
            nodes: Vec::new(),
            results: Vec::new(),
        }
    }
}

/// Spans do not take part in equality, so that equal blocks which the author wrote in two places are one
/// module.
impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.doc == other.doc
            && self.role == other.role
            && self.part == other.part
            && self.members == other.members
            && self.args == other.args
            && self.values == other.values
            && self.nodes == other.nodes
            && self.results == other.results
    }
}

/// The part of a spec that a module implements, described for readers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The place of the part in the model.
    pub slot: Slot,
    /// What it is: `Grouped-query attention`.
    pub title: String,
    /// The sizes and choices by which a reader recognises it: `32 heads × 128, 8 kv`.
    pub notes: Vec<String>,
}

impl Part {
    /// A part without notes, in its slot and with its title.
    pub fn new(slot: Slot, title: impl Into<String>) -> Self {
        Self { slot, title: title.into(), notes: Vec::new() }
    }

    /// Adds a note, which is shown after those that it already has.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The place of a part in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The embedding of tokens or of an image as vectors.
    Embed,
    /// The stack of an encoder.
    Encoder,
    /// The stack of a decoder.
    Decoder,
    /// Attention of a sequence to itself.
    Attention,
    /// Attention of a decoder to the encoder's output.
    Cross,
    /// A feed-forward part, dense or a mixture of experts.
    Ffn,
    /// A norm that is computed by several ops.
    Norm,
    /// What turns the last hidden state into the outputs: logits, classes or an embedding.
    Head,
}

/// The role in which parameters are counted in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Token, position, segment and patch embeddings.
    Embedding,
    /// Projections to queries, keys, values and the output, and what else attention learns, such as sinks.
    Attention,
    /// Feed-forward, routers and experts.
    Ffn,
    /// Norms and learned scales, wherever they are.
    Norm,
    /// The output head, without a table that it shares with the embedding.
    Head,
}

/// A named part of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The name of the field in emitted code, and the segment of paths.
    pub name: String,
    /// The layer, module or stack.
    pub kind: MemberKind,
}

/// What a member can be.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberKind {
    /// A layer with parameters.
    Layer(Layer),
    /// A child module, which comes before this one in [`Graph::modules`].
    Module(ModuleId),
    /// Numbered blocks: `blocks.0`, `blocks.1`, ...
    Stack(Vec<Run>),
}

/// Consecutive blocks of a stack that cycle through a few modules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The number of blocks; not necessarily a multiple of the cycle.
    pub count: u64,
    /// Block `i` of the run is `cycle[i % cycle.len()]`.
    pub cycle: Vec<ModuleId>,
}

impl Run {
    /// The number of blocks that use `cycle[i]`: blocks `i`, `i + cycle.len()`, ...
    pub fn blocks(&self, i: usize) -> u64 {
        let cycle = self.cycle.len() as u64;
        // An empty cycle has no blocks.
        let (Some(whole), Some(rest)) = (self.count.checked_div(cycle), self.count.checked_rem(cycle)) else {
            return 0;
        };
        whole.saturating_add(u64::from((i as u64) < rest))
    }
}

/// A layer without children, which owns parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `y = x W^T + b`: `weight [out, in]`, `bias [out]`.
    Linear {
        /// The number of input features.
        input: Extent,
        /// The number of output features.
        output: Extent,
        /// Whether there is a bias.
        bias: bool,
        /// The initial values of the weight.
        init: Init,
        /// The initial values of the bias.
        bias_init: Init,
    },
    /// Row lookup: `weight [rows, dim]`.
    Embedding {
        /// What each row represents.
        of: Rows,
        /// The number of rows.
        rows: Extent,
        /// The width of a row.
        dim: Extent,
        /// A row that is initialised to zero.
        padding: Option<u64>,
        /// The initial values of the rows.
        init: Init,
    },
    /// `(x - mean) / sqrt(var + eps) * weight + bias` over the last axis: `weight [dim]`, `bias [dim]`.
    LayerNorm {
        /// The number of normalised features.
        dim: Extent,
        /// Added to the variance, so that the root is never zero.
        eps: f64,
        /// Whether there is a learned weight.
        affine: bool,
        /// Whether there is a learned bias (only with a weight).
        bias: bool,
        /// Whether the factor is `1 + w` for the stored weight `w` (LayerNorm1p).
        unit_offset: bool,
    },
    /// `x / sqrt(mean(x^2) + eps) * weight` over the last axis: `weight [dim]`, if there is one.
    RmsNorm {
        /// The number of normalised features.
        dim: Extent,
        /// Added to the mean square, so that the root is never zero.
        eps: f64,
        /// Whether there is a learned weight.
        affine: bool,
        /// Whether the factor is `1 + w` for the stored weight `w` (Gemma).
        unit_offset: bool,
    },
    /// Square patches, each projected: `[B,C,H,W] → [B,N,dim]`; `weight [dim, C, size, size]`, `bias [dim]`.
    Patches {
        /// The number of colour channels `C`.
        channels: Extent,
        /// The number of output features.
        dim: Extent,
        /// The side of a patch in pixels.
        size: Extent,
        /// Whether there is a bias.
        bias: bool,
        /// The initial values of the weight.
        init: Init,
        /// The initial values of the bias.
        bias_init: Init,
    },
    /// A tensor that is used as it is (class token, learned scale, sinks).
    Param {
        /// The shape of the tensor.
        shape: Vec<Extent>,
        /// The initial values of all its elements.
        init: Init,
        /// Whether training changes it; otherwise it is a buffer, which is not counted as a parameter.
        trained: bool,
    },
}

/// What the rows of an embedding represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// The tokens of a vocabulary.
    Tokens,
    /// The positions of a sequence.
    Positions,
    /// Token types: which of two texts a token belongs to (BERT).
    Segments,
    /// The languages of a multilingual model.
    Languages,
    /// Ranges of distances between a query and a key.
    Distances,
}

impl Rows {
    /// The name of the table for readers.
    pub fn title(self) -> &'static str {
        match self {
            Rows::Tokens => "Token embedding",
            Rows::Positions => "Learned positions",
            Rows::Segments => "Segment embedding",
            Rows::Languages => "Language embedding",
            Rows::Distances => "Bias by distance",
        }
    }
}

/// One parameter of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `weight` or `bias`; empty for [`Layer::Param`], whose member name is the whole name.
    pub name: &'static str,
    /// The shape in files, in PyTorch's convention.
    pub shape: Vec<u64>,
    /// The distribution of its initial values, for weights that no file provides.
    pub init: Init,
    /// Whether training changes it.
    pub trained: bool,
}

impl Layer {
    /// The layer's parameters, in the order of files.
    pub fn parameters(&self) -> Vec<Parameter> {
        let numbers = |shape: &[Extent]| shape.iter().copied().map(u64::from).collect();
        let of = |name, shape: Vec<Extent>, init: &Init| Parameter {
            name,
            shape: numbers(&shape),
            init: init.clone(),
            // Only a [`Layer::Param`] can be a buffer.
            trained: true,
        };
        match self {
            Layer::Linear { input, output, bias, init, bias_init } => {
                // The order of files is PyTorch's; burn's own layers have `[in, out]`, and loading
                // transposes.
                let mut all = vec![of("weight", vec![*output, *input], init)];
                if *bias {
                    all.push(of("bias", vec![*output], bias_init));
                }
                all
            }
            Layer::Embedding { rows, dim, init, .. } => vec![of("weight", vec![*rows, *dim], init)],
            Layer::LayerNorm { dim, affine, bias, unit_offset, .. } => {
                // `1 + weight` is 1 at the start if the weight is 0.
                let start = if *unit_offset { Init::Zeros } else { Init::Ones };
                let mut all = Vec::new();
                if *affine {
                    all.push(of("weight", vec![*dim], &start));
                }
                if *bias {
                    all.push(of("bias", vec![*dim], &Init::Zeros));
                }
                all
            }
            Layer::RmsNorm { dim, affine, unit_offset, .. } => {
                let start = if *unit_offset { Init::Zeros } else { Init::Ones };
                if *affine { vec![of("weight", vec![*dim], &start)] } else { Vec::new() }
            }
            Layer::Patches { channels, dim, size, bias, init, bias_init } => {
                let mut all = vec![of("weight", vec![*dim, *channels, *size, *size], init)];
                if *bias {
                    all.push(of("bias", vec![*dim], bias_init));
                }
                all
            }
            Layer::Param { shape, init, trained } => {
                vec![Parameter { name: "", shape: numbers(shape), init: init.clone(), trained: *trained }]
            }
        }
    }

    /// Whether this is a norm; reports count the parameters of norms separately.
    pub fn is_norm(&self) -> bool {
        match self {
            Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => true,
            Layer::Linear { .. } | Layer::Embedding { .. } | Layer::Patches { .. } | Layer::Param { .. } => {
                false
            }
        }
    }
}

/// The element type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// The device's floating-point type.
    Float,
    /// Token ids, positions, buckets, and the padding masks of inputs.
    Int,
    /// Attention masks, true = hidden.
    Bool,
}

/// Element type and symbolic shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Whether its elements are floats, integers or booleans.
    pub dtype: DType,
    /// The sizes, outermost first. Values of equal shapes share them.
    pub shape: Arc<Vec<Dim>>,
    /// Whether the value may be absent.
    pub optional: bool,
}

impl Type {
    /// The type of a float tensor that is always given.
    pub fn float(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Float, shape: Arc::new(shape.into_iter().collect()), optional: false }
    }

    /// The type of an integer tensor that is always given.
    pub fn int(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Int, shape: Arc::new(shape.into_iter().collect()), optional: false }
    }

    /// The type of a mask that is always given, true = hidden.
    pub fn bool(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Bool, shape: Arc::new(shape.into_iter().collect()), optional: false }
    }

    /// The same type for a value that may be absent.
    pub fn or_absent(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The sizes, to change them for this type alone: sizes that other types share are copied first.
    pub fn shape_mut(&mut self) -> &mut Vec<Dim> {
        Arc::make_mut(&mut self.shape)
    }

    /// The size of the last axis, that of features; `None` for a scalar.
    pub fn last(&self) -> Option<&Dim> {
        self.shape.last()
    }

    /// The number of rows: the product of all sizes except the last, 1 for a vector.
    pub fn rows(&self) -> Dim {
        self.shape.iter().rev().skip(1).cloned().product()
    }
}

/// A value of a module's body.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The type of the value.
    pub ty: Type,
    /// The name: unique in the module, and the last segment of its path.
    pub name: String,
    /// The name that the author or the part gave it, which is the variable in emitted code. Later values of
    /// the module may have the same one.
    pub variable: String,
}

/// One operation of a body.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation with its attributes; the values it works on are the inputs.
    pub op: Op,
    /// The inputs of the operation.
    pub inputs: Vec<ValueId>,
    /// The values it defines, one for each result of the operation.
    pub outputs: Vec<ValueId>,
    /// The place in the spec that it comes from.
    pub span: Option<Span>,
}

/// Spans do not take part in equality, as in [`Module`].
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op && self.inputs == other.inputs && self.outputs == other.outputs
    }
}

impl Graph {
    /// The module with this id, which must come from this graph.
    #[expect(clippy::indexing_slicing, reason = "an id is a place in the graph that gave it")]
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// The module of the whole model, whose arguments are the graph's inputs.
    pub fn root(&self) -> &Module {
        self.module(self.root)
    }
}

impl Module {
    /// Whether it is a stack of blocks.
    fn is_stack(&self) -> bool {
        self.part.as_ref().is_some_and(|part| matches!(part.slot, Slot::Encoder | Slot::Decoder))
    }

    /// What the parameters of one of this module's layers are counted as.
    pub fn role_of(&self, layer: &Layer) -> Role {
        match layer {
            // All norms are counted as norms, those of queries and keys inside of attention included.
            layer if layer.is_norm() => Role::Norm,
            // Next to its final norm, a stack has the table of relative positions and the parameters that its
            // attentions share.
            Layer::Embedding { .. } if self.role == Role::Norm => Role::Attention,
            Layer::Param { .. } if self.is_stack() => Role::Attention,
            Layer::Linear { .. }
            | Layer::Embedding { .. }
            | Layer::LayerNorm { .. }
            | Layer::RmsNorm { .. }
            | Layer::Patches { .. }
            | Layer::Param { .. } => self.role,
        }
    }

    /// The member with this id, which must come from this module.
    #[expect(clippy::indexing_slicing, reason = "an id is a place in the module that gave it")]
    pub fn member(&self, id: MemberId) -> &Member {
        &self.members[id.0]
    }

    /// The value with this id, which must come from this module.
    #[expect(clippy::indexing_slicing, reason = "an id is a place in the module that gave it")]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// The values that are the arguments of the module.
    pub fn arguments(&self) -> &[Value] {
        // A graph that is not verified yet may claim more arguments than it has values.
        self.values.get(..self.args).unwrap_or(&self.values)
    }
}

/// The number of blocks in a stack.
pub fn stack_len(runs: &[Run]) -> u64 {
    runs.iter().fold(0u64, |n, run| n.saturating_add(run.count))
}
