//! What one forward pass does, as polynomials in `B, T, S, P`: operations and activations.
//!
//! Conventions.
//! - A multiply-add is 2 operations. `matmul` holds those of linear layers, patches, experts and the
//!   output table; `attention` those of scores and their weighted sum, over all `T * K` pairs. What a
//!   mask hides is still counted here; [`super::scores`] counts what is left of it.
//! - `elementwise` is apart and in no total, as in PyTorch's own counter: one operation for each
//!   arithmetic step on an element, `exp`, `tanh`, `erf`, division and square root included. Per
//!   element: bias, add, multiply, scale, shift 1; clamp 1 a bound; softcap 3; layer norm 5, rms norm
//!   3, their weight and bias 1 each; softmax 5 (maximum, difference, exponential, sum, quotient);
//!   rotation 3; activations as [`activation`] says; dropout nothing.
//! - Position tables, masks and biases from slopes are constants of a plan: no operations.
//! - An expert works on the rows sent to it: `B * T * active` rows for all experts together.
//! - `activations` are the elements of every float value an op computes; reshapes, slices and
//!   parameters are views and not counted. Attention weights `[B,H,T,K]` are apart, because fused
//!   kernels never store them.

use crate::ir::op::{Activation, Attention, Pool, RouterScore};
use crate::ir::{DType, Dim, Graph, Layer, Member, MemberKind, Module, Node, Op, Sym, Type, stack_len};

/// Work of running something once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations of products with weights.
    pub matmul: Dim,
    /// Operations of attention over every pair of query and key.
    pub attention: Dim,
    /// Operations element by element.
    pub elementwise: Dim,
    /// Elements of computed values, attention weights aside.
    pub activations: Dim,
    /// Elements of attention weights.
    pub attention_weights: Dim,
}

impl Work {
    /// Operations of the forward pass: products with weights and attention.
    pub fn operations(&self) -> Dim {
        &self.matmul + &self.attention
    }

    /// Operations of a training step: the forward pass and twice that for the backward pass.
    pub fn training(&self) -> Dim {
        self.operations() * Dim::of(3u64)
    }

    fn each(&self, f: impl Fn(&Dim) -> Dim) -> Work {
        Work {
            matmul: f(&self.matmul),
            attention: f(&self.attention),
            elementwise: f(&self.elementwise),
            activations: f(&self.activations),
            attention_weights: f(&self.attention_weights),
        }
    }

    /// The same, so many times.
    pub fn times(&self, n: u128) -> Work {
        let n = Dim::of(n);
        self.each(|dim| dim * &n)
    }

    pub(super) fn add(&mut self, other: &Work) {
        self.matmul = &self.matmul + &other.matmul;
        self.attention = &self.attention + &other.attention;
        self.elementwise = &self.elementwise + &other.elementwise;
        self.activations = &self.activations + &other.activations;
        self.attention_weights = &self.attention_weights + &other.attention_weights;
    }
}

/// Work of every module, indexed like [`Graph::modules`].
pub fn of_modules(graph: &Graph) -> Vec<Work> {
    let mut measured: Vec<Work> = Vec::with_capacity(graph.modules.len());
    for module in &graph.modules {
        let mut sum = Work::default();
        for node in &module.nodes {
            sum.add(&of_node(node, module, &measured));
        }
        measured.push(sum);
    }
    measured
}

/// Work of one op; `measured` holds that of the modules it may call.
pub(super) fn of_node(node: &Node, module: &Module, measured: &[Work]) -> Work {
    let input = |i: usize| node.inputs.get(i).map(|id| &module.value(*id).ty);
    let output = |i: usize| node.outputs.get(i).map(|id| &module.value(*id).ty);
    let out = size(output(0));
    let per_element = |n: u64| Work { elementwise: &out * &Dim::of(n), ..computed(&out) };
    match &node.op {
        Op::Layer { member } => match module.members.get(member.0).map(|m| &m.kind) {
            Some(MemberKind::Layer(layer)) => of_layer(layer, input(0), &out),
            Some(MemberKind::Module(_) | MemberKind::Stack(_)) | None => Work::default(),
        },
        Op::Call { member } | Op::Scan { member, .. } | Op::Experts { member, .. } => {
            let mut sum = Work::default();
            if let Some(member) = module.members.get(member.0) {
                for child in callees(node, member, input(0)) {
                    if let Some(work) = measured.get(child.module) {
                        sum.add(&child.runs.of(work));
                    }
                }
            }
            if let Op::Experts { active, .. } = &node.op {
                // Each expert's rows are multiplied by their weight and added up.
                sum.elementwise = sum.elementwise + &out * &Dim::of(u128::from(*active).saturating_mul(2));
                sum.activations = sum.activations + out;
            }
            sum
        }
        Op::Weight { .. }
        | Op::Positions { .. }
        | Op::Sinusoid { .. }
        | Op::RotaryTable { .. }
        | Op::Mask { .. }
        | Op::PaddingMask
        | Op::EitherMask
        | Op::AlibiBias { .. }
        | Op::RelativeBuckets { .. }
        | Op::SplitHeads { .. }
        | Op::MergeHeads
        | Op::Cache
        | Op::Slice { .. }
        | Op::Unsqueeze
        | Op::Squeeze
        | Op::BiasFromTable => Work::default(),
        Op::RepeatHeads { .. }
        | Op::Concat { .. }
        | Op::Prepend
        | Op::Lookup
        | Op::OrZeros
        | Op::Dropout { .. }
        | Op::Pool(Pool::First | Pool::Last) => computed(&out),
        Op::Rotate { .. } => {
            // Only the first `2 * pairs` features turn.
            let pairs = input(1).and_then(Type::last).cloned().unwrap_or_default();
            let rows = input(0).map(rows).unwrap_or_default();
            Work { elementwise: &(&rows * &pairs) * &Dim::of(6u64), ..computed(&out) }
        }
        Op::Attention(attention) => of_attention(attention, node, module),
        Op::Activate(kind) => per_element(activation(*kind)),
        Op::Add | Op::Mul | Op::Scale { .. } | Op::Shift { .. } => per_element(1),
        Op::Clamp { min, max } => per_element(u64::from(min.is_some()) + u64::from(max.is_some())),
        Op::Softcap { .. } => per_element(3),
        Op::Normalize => per_element(3),
        Op::Unembed => {
            let width = input(0).and_then(Type::last).cloned().unwrap_or_default();
            Work { matmul: &(&out * &width) * &Dim::of(2u64), ..computed(&out) }
        }
        Op::Route(router) => {
            let score = match router.score {
                RouterScore::Softmax | RouterScore::SoftmaxOfChosen => 5,
                RouterScore::Sigmoid => activation(Activation::Sigmoid),
            };
            let normalize = if router.normalize { 2 } else { 0 };
            let scale = u64::from(router.scale != 1.0);
            per_element(score + u64::from(router.has_correction) + normalize + scale)
        }
        Op::Pool(Pool::Mean | Pool::Max) => Work { elementwise: size(input(0)), ..computed(&out) },
    }
}

fn of_layer(layer: &Layer, input: Option<&Type>, out: &Dim) -> Work {
    let bias = |on: bool| if on { out.clone() } else { Dim::default() };
    match layer {
        Layer::Linear { input: width, bias: has_bias, .. } => Work {
            matmul: &(out * &Dim::of(*width)) * &Dim::of(2u64),
            elementwise: bias(*has_bias),
            ..computed(out)
        },
        Layer::Patches { channels, size, bias: has_bias, .. } => {
            let pixels = [*channels, *size, *size].into_iter().map(Dim::from).product();
            Work { matmul: &(out * &pixels) * &Dim::of(2u64), elementwise: bias(*has_bias), ..computed(out) }
        }
        Layer::Embedding { .. } => computed(out),
        Layer::LayerNorm { affine, bias, .. } => {
            let steps = 5 + u64::from(*affine) + u64::from(*bias);
            Work { elementwise: &size(input) * &Dim::of(steps), ..computed(out) }
        }
        Layer::RmsNorm { affine, .. } => {
            let steps = 3 + u64::from(*affine);
            Work { elementwise: &size(input) * &Dim::of(steps), ..computed(out) }
        }
        Layer::Param { .. } => Work::default(),
    }
}

fn of_attention(attention: &Attention, node: &Node, module: &Module) -> Work {
    let ty = |list: &[crate::ir::ValueId], i: usize| list.get(i).map(|id| &module.value(*id).ty);
    let scores = size(ty(&node.outputs, 1));
    let mut steps = 5 + u64::from(attention.scale != 1.0) + u64::from(attention.has_bias);
    if attention.softcap.is_some() {
        steps += 3;
    }
    Work {
        attention: &scores * &per_pair(node, module),
        elementwise: &scores * &Dim::of(steps),
        attention_weights: scores,
        ..computed(&size(ty(&node.outputs, 0)))
    }
}

/// Operations for one query and one key of one head: `2 D` for the score, `2 V` for the sum.
pub(super) fn per_pair(node: &Node, module: &Module) -> Dim {
    let width =
        |i: usize| node.inputs.get(i).and_then(|id| module.value(*id).ty.last()).cloned().unwrap_or_default();
    (width(1) + width(2)) * Dim::of(2u64)
}

/// Operations an element of a nonlinearity takes.
pub fn activation(kind: Activation) -> u64 {
    match kind {
        // max
        Activation::Relu => 1,
        // max, square
        Activation::Relu2 => 2,
        // x / sqrt(2), erf, + 1, * x, / 2
        Activation::Gelu => 5,
        // x^3 (2), * 0.0447, + x, * sqrt(2 / pi), tanh, + 1, * x, / 2
        Activation::GeluTanh => 9,
        // * 1.702, sigmoid, * x
        Activation::QuickGelu => 6,
        // sigmoid, * x
        Activation::Silu => 5,
        Activation::Tanh => 1,
        // negation, exp, + 1, quotient
        Activation::Sigmoid => 4,
    }
}

/// A module that a node runs.
pub(super) struct Callee {
    /// Its index.
    pub module: usize,
    /// How often.
    pub runs: Runs,
}

/// How often a module runs while its caller runs once.
#[derive(Clone)]
pub(super) enum Runs {
    /// So many times on the whole input.
    Whole(u128),
    /// An expert, on its part of the rows.
    Routed {
        /// Rows of the input.
        rows: Dim,
        /// Experts of this kind times experts a token is sent to.
        taken: u128,
        /// All experts.
        of: u128,
    },
}

impl Runs {
    /// The work of all runs.
    pub fn of(&self, work: &Work) -> Work {
        match self {
            Runs::Whole(n) => work.times(*n),
            // The parts of equal experts add up to `rows * active` exactly.
            Runs::Routed { rows, taken, of } => {
                let taken = Dim::of(*taken);
                work.each(|dim| (dim.substitute(Sym::Rows, rows) * taken.clone()).div_ceil(*of))
            }
        }
    }
}

/// The modules a call, a scan or a mixture runs: nothing for other ops.
pub(super) fn callees(node: &Node, member: &Member, input: Option<&Type>) -> Vec<Callee> {
    match &member.kind {
        MemberKind::Layer(_) => Vec::new(),
        MemberKind::Module(id) => vec![Callee { module: id.0, runs: Runs::Whole(1) }],
        MemberKind::Stack(runs) => {
            let experts = u128::from(stack_len(runs));
            let mut all = Vec::new();
            for run in runs {
                for (i, id) in run.cycle.iter().enumerate() {
                    let blocks = u128::from(run.blocks(i));
                    let runs = if let Op::Experts { active, .. } = &node.op {
                        let taken = blocks.saturating_mul(u128::from(*active));
                        Runs::Routed { rows: input.map(rows).unwrap_or_default(), taken, of: experts }
                    } else if let Op::Scan { each, .. } = &node.op {
                        Runs::Whole(blocks.saturating_mul(u128::from(*each)))
                    } else {
                        Runs::Whole(0)
                    };
                    all.push(Callee { module: id.0, runs });
                }
            }
            all
        }
    }
}

/// The work of keeping a result and nothing else.
fn computed(out: &Dim) -> Work {
    Work { activations: out.clone(), ..Work::default() }
}

/// Elements of a float value; 0 for masks and indices.
fn size(ty: Option<&Type>) -> Dim {
    match ty {
        Some(Type { dtype: DType::Float, shape, .. }) => shape.iter().cloned().product(),
        Some(Type { dtype: DType::Int | DType::Bool, .. }) | None => Dim::default(),
    }
}

/// Rows of a value: all sizes but the last.
pub(super) fn rows(ty: &Type) -> Dim {
    ty.shape.iter().rev().skip(1).cloned().product()
}
