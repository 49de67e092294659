//! The graph: named modules of primitive ops over symbolic shapes.
//!
//! A [`Module`] is a function from tensors to tensors that owns [`Member`]s: layers with parameters,
//! child modules, and stacks of blocks. Its body is a list of [`Node`]s in single-assignment form: a
//! value is defined once, before it is used. Modules that are equal are one module used in several
//! places, so a stack of 100 equal blocks is one module and a count, here, in the picture and in the
//! emitted code.
//!
//! Meaning. Values are dense tensors; [`DType::Bool`] masks are true where a key is *hidden*. A value
//! whose type is `optional` may be absent (an input that was not given); the ops that take one say
//! what absence means. Bodies are pure but for [`Op::Dropout`] (random in training) and [`Op::Cache`],
//! whose state belongs to the caller. Lengths are [`Sym`]s; `P` is 0 outside cached decoding.
//!
//! Paths. A parameter's path is the members from the root, joined by dots, a block's index among
//! them: `decoder.blocks.3.attention.query.weight`. It names the weight in files and the field in
//! emitted code. A named value's path is its module's path and its name.
//!
//! Only [`verify::verify`] makes a [`Verified`]; consumers take that and cannot fail on the author's
//! account.

pub mod build;
pub mod dim;
pub mod infer;
pub mod init;
pub mod op;
pub mod paths;
pub mod print;
pub mod verify;
pub mod work;

pub use dim::{Dim, Lengths, Sym};
pub use init::Init;
pub use op::Op;
pub use verify::Verified;

use serde::Serialize;

use crate::source::Span;

/// Index of a module in [`Graph::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub usize);

/// Index of a member in [`Module::members`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub usize);

/// Index of a value in [`Module::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A whole model.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The spec's name.
    pub name: String,
    /// Children before parents; no two are equal.
    pub modules: Vec<Module>,
    /// The model itself. Its arguments are the graph's inputs, its results the outputs.
    pub root: ModuleId,
    /// The longest sequence the model is meant for.
    pub context: u64,
    /// Token ids the embeddings know, for the checks of `run`; absent for images.
    pub vocab: Option<u64>,
    /// Whether decoding token by token with a cache is possible (a causal decoder).
    pub decodes: bool,
    /// What the author built.
    pub kind: ModelKind,
}

/// What a model is: the stacks its author wrote, whatever their masks let them see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// A decoder alone.
    Decoder,
    /// An encoder alone.
    Encoder,
    /// An encoder of a text or an image, and a decoder that attends to it.
    EncoderDecoder,
}

impl ModelKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ModelKind::Decoder => "decoder",
            ModelKind::Encoder => "encoder",
            ModelKind::EncoderDecoder => "encoder-decoder",
        }
    }
}

/// A function from tensors to tensors with members of its own.
#[derive(Clone, Debug)]
pub struct Module {
    /// The type's name in emitted code: `DecoderBlock`.
    pub name: String,
    /// What it computes, one formula or sentence a line.
    pub doc: Vec<String>,
    /// The lines of the spec it comes from.
    pub span: Option<Span>,
    /// What its parameters count as, norms aside.
    pub role: Role,
    /// Layers, children and stacks, in order of first use.
    pub members: Vec<Member>,
    /// The first values are the arguments.
    pub args: usize,
    /// Every value of the body.
    pub values: Vec<Value>,
    /// The body.
    pub nodes: Vec<Node>,
    /// What is returned.
    pub results: Vec<ValueId>,
}

/// Spans do not tell modules apart.
impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.doc == other.doc
            && self.role == other.role
            && self.members == other.members
            && self.args == other.args
            && self.values == other.values
            && self.nodes == other.nodes
            && self.results == other.results
    }
}

/// What parameters count as in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Token, position, segment and patch embeddings.
    Embedding,
    /// Projections of attention.
    Attention,
    /// Feed-forward, routers and experts.
    Ffn,
    /// Norms and learned scales, wherever they are.
    Norm,
    /// The output head.
    Head,
}

/// A named part of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The field's name in emitted code and the path's segment.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberKind {
    /// Parameters.
    Layer(Layer),
    /// One child.
    Module(ModuleId),
    /// Numbered blocks: `blocks.0`, `blocks.1`, ...
    Stack(Vec<Run>),
}

/// Consecutive blocks of a stack that cycle through a few modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many blocks; not necessarily a multiple of the cycle.
    pub count: u64,
    /// Block `i` of the run is `cycle[i % cycle.len()]`.
    pub cycle: Vec<ModuleId>,
}

impl Run {
    /// How many of the run's blocks are the `i`th of its cycle: blocks `i`, `i + cycle`, ...
    pub fn blocks(&self, i: usize) -> u64 {
        let cycle = self.cycle.len() as u64;
        if cycle == 0 {
            return 0;
        }
        self.count / cycle + u64::from((i as u64) < self.count % cycle)
    }
}

/// A leaf that owns parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `y = x W^T + b`: `weight [out, in]`, `bias [out]`.
    Linear {
        /// Input features.
        input: u64,
        /// Output features.
        output: u64,
        /// Whether there is a bias.
        bias: bool,
        /// How the weight starts.
        init: Init,
        /// How the bias starts.
        bias_init: Init,
    },
    /// Row lookup: `weight [rows, dim]`.
    Embedding {
        /// How many rows.
        rows: u64,
        /// Width.
        dim: u64,
        /// A row that starts at zero.
        padding: Option<u64>,
        /// How the rows start.
        init: Init,
    },
    /// `(x - mean) / sqrt(var + eps) * weight + bias`, each `[dim]`.
    LayerNorm {
        /// Normalised features.
        dim: u64,
        /// Added to the variance.
        eps: f64,
        /// Whether there is a weight.
        affine: bool,
        /// Whether there is a bias (needs a weight).
        bias: bool,
        /// Whether the stored weight is `w` in a factor `1 + w` (LayerNorm1p).
        unit_offset: bool,
    },
    /// `x / sqrt(mean(x^2) + eps) * weight`, `weight [dim]` or none.
    RmsNorm {
        /// Normalised features.
        dim: u64,
        /// Added to the mean square.
        eps: f64,
        /// Whether there is a weight.
        affine: bool,
        /// Whether the stored weight is `w` in a factor `1 + w` (Gemma).
        unit_offset: bool,
    },
    /// Square patches, each projected: `[B,C,H,W] → [B,N,dim]`; `weight [dim, C, size, size]`, `bias [dim]`.
    Patches {
        /// Colour channels `C`.
        channels: u64,
        /// Output features.
        dim: u64,
        /// Side of a patch.
        size: u64,
        /// Whether there is a bias.
        bias: bool,
        /// How the weight starts.
        init: Init,
        /// How the bias starts.
        bias_init: Init,
    },
    /// A tensor used as it is (class token, learned scale, sinks).
    Param {
        /// Its shape.
        shape: Vec<u64>,
        /// How it starts.
        init: Init,
        /// Whether training changes it; a buffer is not counted as a parameter.
        trained: bool,
    },
}

/// One parameter of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `weight` or `bias`; empty for [`Layer::Param`], whose member name is the whole name.
    pub name: &'static str,
    /// Shape as in files, PyTorch's convention.
    pub shape: Vec<u64>,
    /// How it starts.
    pub init: Init,
    /// Whether training changes it.
    pub trained: bool,
}

impl Layer {
    /// The layer's parameters, in the order of files.
    pub fn parameters(&self) -> Vec<Parameter> {
        let of = |name, shape, init: &Init| Parameter { name, shape, init: init.clone(), trained: true };
        match self {
            Layer::Linear { input, output, bias, init, bias_init } => {
                let mut all = vec![of("weight", vec![*output, *input], init)];
                if *bias {
                    all.push(of("bias", vec![*output], bias_init));
                }
                all
            }
            Layer::Embedding { rows, dim, init, .. } => vec![of("weight", vec![*rows, *dim], init)],
            Layer::LayerNorm { dim, affine, bias, unit_offset, .. } => {
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
                vec![Parameter { name: "", shape: shape.clone(), init: init.clone(), trained: *trained }]
            }
        }
    }

    /// Whether this is a norm, which reports count apart.
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
    /// The device's float.
    Float,
    /// Token ids, positions, buckets, padding masks as inputs.
    Int,
    /// Attention masks, true = hidden.
    Bool,
}

/// Element type and symbolic shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<Dim>,
    /// Whether the value may be absent.
    pub optional: bool,
}

impl Type {
    /// A float tensor.
    pub fn float(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Float, shape: shape.into_iter().collect(), optional: false }
    }

    /// An integer tensor.
    pub fn int(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Int, shape: shape.into_iter().collect(), optional: false }
    }

    /// A mask, true = hidden.
    pub fn bool(shape: impl IntoIterator<Item = Dim>) -> Self {
        Self { dtype: DType::Bool, shape: shape.into_iter().collect(), optional: false }
    }

    /// The same, but it may be absent.
    pub fn or_absent(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The last size.
    pub fn last(&self) -> Option<&Dim> {
        self.shape.last()
    }

    /// Rows: the product of all sizes but the last.
    pub fn rows(&self) -> Dim {
        self.shape.iter().rev().skip(1).cloned().product()
    }
}

/// A value of a module's body.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// Its name: unique in the module, the last segment of its path.
    pub name: String,
    /// The name it is given by the author or the part, which later values may take again: the
    /// variable in emitted code.
    pub variable: String,
}

/// One operation of a body.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is done.
    pub op: Op,
    /// To what.
    pub inputs: Vec<ValueId>,
    /// The values it defines.
    pub outputs: Vec<ValueId>,
    /// The place in the spec it comes from.
    pub span: Option<Span>,
}

/// Spans do not tell nodes apart.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op && self.inputs == other.inputs && self.outputs == other.outputs
    }
}

impl Graph {
    /// The module of that id; ids come from this graph.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// The model itself.
    pub fn root(&self) -> &Module {
        self.module(self.root)
    }
}

impl Module {
    /// The member of that id; ids come from this module.
    pub fn member(&self, id: MemberId) -> &Member {
        &self.members[id.0]
    }

    /// The value of that id; ids come from this module.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// The arguments.
    pub fn arguments(&self) -> &[Value] {
        &self.values[..self.args]
    }
}

/// Number of blocks in a stack.
pub fn stack_len(runs: &[Run]) -> u64 {
    runs.iter().fold(0u64, |n, run| n.saturating_add(run.count))
}
