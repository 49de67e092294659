//! The backward passes of the kernels.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata};

use super::fused::{Fused, MayFuse};
use super::track::{Step, track};
use super::{
    Activation, Affine, Bias, Dropout, Extra, Kernels, Norm, Pairing, Parts, activated, default, fuses,
    sum_then_norm,
};

impl<B: Kernels, C: CheckpointStrategy> MayFuse for Autodiff<B, C> {}

impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn kernel_activate(x: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Activate;

        impl<B: Kernels> Backward<B, 1> for Activate {
            type State = (NodeId, Activation);

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                gradients: &mut Gradients,
                checkpointer: &mut Checkpointer,
            ) {
                let (x, activation) = ops.state;
                let x = checkpointer.retrieve_node_output(x);
                unary::<B, _>(ops.parents, ops.node, gradients, |gradient| {
                    B::kernel_activate_backward(x, gradient, activation)
                });
            }
        }

        match Activate.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut preparation) => {
                // Only the input is kept, from which both the result and the derivative follow.
                let state = (preparation.checkpoint(&x), activation);
                preparation.finish(state, B::kernel_activate(x.primitive().clone(), activation))
            }
            OpsKind::UnTracked(preparation) => {
                preparation.finish(B::kernel_activate(x.into_primitive(), activation))
            }
        }
    }

    fn kernel_look_up(table: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        let Some(fused) = B::fused(table.primitive()) else { return Self::embedding(table, indices) };
        let rows = table.primitive().shape()[0];
        track::<B, C, _, 1>([table], |[table]| {
            (B::kernel_look_up(table, indices.clone()), LookUpStep { fused, indices, rows })
        })
    }

    fn kernel_gate(
        gate: FloatTensor<Self>,
        x: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        let fused = B::fused(gate.primitive()).filter(|_| B::fused(x.primitive()).is_some());
        let Some(fused) = fused else { return Self::float_mul(Self::kernel_activate(gate, activation), x) };
        track::<B, C, _, 2>([gate, x], |[gate, x]| {
            (B::kernel_gate(gate, x, activation), GateStep { fused, activation })
        })
    }

    // Without a kernel, autodiff computes burn's attention as separate operations. Where a query sees no key,
    // the derivative of its division by the sum of no weights is NaN. The mask keeps that out of the
    // gradients of queries and keys, but burn adds the bias after the mask, so the bias needs its own.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let fused = B::fused(q.primitive());
        let Some(fused) = fused.filter(|f| f.attends(q.primitive(), k.primitive(), v.primitive())) else {
            let ([q, k, v], extra) = default::with_sinks_as_keys::<Self>([q, k, v], extra);
            let Parts { mask, bias, .. } = extra.parts();
            let bias = match (&mask, bias) {
                (Some(mask), Some(bias)) => Some(Self::float_mask_fill(bias, mask.clone(), 0.0.into())),
                (_, bias) => bias,
            };
            return Self::attention(q, k, v, mask, bias, options);
        };
        let Parts { mask, bias, sinks, dropout } = extra.parts();
        let attend = |qkv: [FloatTensor<B>; 3], mask: Option<BoolTensor<B>>, bias, sinks| {
            let has = [Option::is_some(&bias), Option::is_some(&sinks)];
            let extra = Extra::new(mask.clone(), bias, sinks).dropping(dropout);
            let (y, norms) = fused.attention(qkv, extra, options);
            (y, AttentionStep { fused, mask, has, options, dropout, norms })
        };
        match (bias, sinks) {
            (None, None) => track::<B, C, _, 3>([q, k, v], |qkv| attend(qkv, mask, None, None)),
            (Some(bias), None) => track::<B, C, _, 4>([q, k, v, bias], |[q, k, v, bias]| {
                attend([q, k, v], mask, Some(bias), None)
            }),
            (None, Some(sinks)) => track::<B, C, _, 4>([q, k, v, sinks], |[q, k, v, sinks]| {
                attend([q, k, v], mask, None, Some(sinks))
            }),
            (Some(bias), Some(sinks)) => {
                track::<B, C, _, 5>([q, k, v, bias, sinks], |[q, k, v, bias, sinks]| {
                    attend([q, k, v], mask, Some(bias), Some(sinks))
                })
            }
        }
    }

    fn kernel_cross_entropy(
        logits: FloatTensor<Self>,
        classes: IntTensor<Self>,
        weights: FloatTensor<Self>,
        smoothing: f64,
    ) -> FloatTensor<Self> {
        let Some(fused) = B::fused(logits.primitive()) else {
            return default::cross_entropy::<Self>(logits, classes, weights, smoothing);
        };
        track::<B, C, _, 1>([logits], |[logits]| {
            let weights = weights.into_primitive();
            let (sum, logs) = fused.cross_entropy(logits, classes.clone(), weights.clone(), smoothing);
            (sum, LossStep { fused, labels: (classes, weights, smoothing), logs })
        })
    }

    fn kernel_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: Bias<Self>,
        then: Option<Activation>,
    ) -> FloatTensor<Self> {
        let fused = B::fused(x.primitive()).filter(|_| B::fused(weight.primitive()).is_some());
        let step = fused.map(|fused| LinearStep { fused });
        let y = match (step, bias) {
            (None, bias) => default::linear::<Self>(x, weight, bias),
            (Some(step), Bias::Nothing) => track::<B, C, _, 2>([x, weight], |[x, weight]| {
                (B::kernel_linear(x, weight, Bias::Nothing, None), step)
            }),
            (Some(step), Bias::Added(bias)) => track::<B, C, _, 3>([x, weight, bias], |[x, weight, bias]| {
                (B::kernel_linear(x, weight, Bias::Added(bias), None), step)
            }),
        };
        // The backward pass of the activation needs its input, so that it is an operation of its own.
        activated::<Self>(y, then)
    }

    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        let fused = B::fused(x.primitive()).filter(|_| B::fused(table.primitive()).is_some());
        let Some(fused) = fused else { return default::unembed::<Self>(x, table) };
        let step = UnembedStep { fused };
        track::<B, C, _, 2>([x, table], |[x, table]| (B::kernel_unembed(x, table), step))
    }

    fn kernel_rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        pairing: Pairing,
    ) -> FloatTensor<Self> {
        let fused = B::fused(x.primitive()).filter(|_| B::fused(cos.primitive()).is_some());
        // Angles that are learned have gradients, too.
        let fused = fused.filter(|_| !cos.is_tracked() && !sin.is_tracked());
        let Some(fused) = fused else { return default::rotate::<Self>(x, cos, sin, pairing) };
        let angles = [cos, sin].map(|x| x.into_primitive());
        track::<B, C, _, 1>([x], |[x]| {
            (fused.rotate(x, angles.clone(), pairing), RotateStep { fused, angles, pairing })
        })
    }

    fn kernel_alias(x: FloatTensor<Self>) -> FloatTensor<Self> {
        track::<B, C, _, 1>([x], |[x]| (x, AliasStep))
    }

    fn kernel_reach(root: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
        track::<B, C, _, 2>([root, x], |[root, _]| (root, CarryStep { gradient: None }))
    }

    fn kernel_carry(
        root: FloatTensor<Self>,
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let gradient = Some(gradient.into_primitive());
        track::<B, C, _, 2>([root, x], |[root, _]| (root, CarryStep { gradient }))
    }

    fn kernel_norm(x: FloatTensor<Self>, affine: Affine<Self>, norm: Norm) -> FloatTensor<Self> {
        let Some(fused) = B::fused(x.primitive()) else {
            return default::norm::<Self>(x, affine, norm);
        };
        track_norm(NormStep { fused, norm }, x, affine, |x, affine| fused.norm(x, affine, norm))
    }

    fn kernel_add_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        affine: Affine<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let Some(fused) = fuses::<B>(x.primitive(), residual.primitive()) else {
            return sum_then_norm::<Self>([x, residual], affine, norm);
        };
        // An operation of the tape has one result. Both are computed with the sum, and recorded one after the other.
        let of = |x: &FloatTensor<Self>| x.primitive().clone();
        let parameters = match &affine {
            Affine::Weight(weight) => Affine::Weight(of(weight)),
            Affine::Both(weight, bias) => Affine::Both(of(weight), of(bias)),
        };
        let mut normalized = None;
        let sum = track::<B, C, _, 2>([x, residual], |terms| {
            let (y, sum) = fused.add_norm(terms, parameters, norm);
            normalized = Some(y);
            (sum, AddStep)
        });
        let y = track_norm(NormStep { fused, norm }, sum.clone(), affine, |sum, affine| {
            normalized.unwrap_or_else(|| fused.norm(sum, affine, norm))
        });
        (y, sum)
    }
}

/// Records a norm that `forward` computes.
fn track_norm<B: Kernels, C: CheckpointStrategy>(
    step: NormStep<B>,
    x: FloatTensor<Autodiff<B, C>>,
    affine: Affine<Autodiff<B, C>>,
    forward: impl FnOnce(FloatTensor<B>, Affine<B>) -> FloatTensor<B>,
) -> FloatTensor<Autodiff<B, C>> {
    match affine {
        Affine::Weight(weight) => {
            track::<B, C, _, 2>([x, weight], |[x, weight]| (forward(x, Affine::Weight(weight)), step))
        }
        Affine::Both(weight, bias) => track::<B, C, _, 3>([x, weight, bias], |[x, weight, bias]| {
            (forward(x, Affine::Both(weight, bias)), step)
        }),
    }
}

/// The backward pass of a sum of tensors of the same shape.
#[derive(Clone, Debug)]
struct AddStep;

impl<B: Backend> Step<B, 2> for AddStep {
    fn keeps(_: [bool; 2]) -> [bool; 2] {
        [false; 2]
    }

    fn gradients(
        self,
        _: [Option<FloatTensor<B>>; 2],
        [of_x, of_residual]: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        match (of_x, of_residual) {
            (true, true) => [Some(gradient.clone()), Some(gradient)],
            (true, false) => [Some(gradient), None],
            (false, _) => [None, Some(gradient)],
        }
    }
}

/// The backward pass of a linear layer.
#[derive(Clone, Debug)]
struct LinearStep<B: Backend> {
    fused: &'static dyn Fused<B>,
}

impl<B: Backend> Step<B, 2> for LinearStep<B> {
    // The gradient of each factor is a product with the other one.
    fn keeps([x, weight]: [bool; 2]) -> [bool; 2] {
        [weight, x]
    }

    fn gradients(
        self,
        [x, weight]: [Option<FloatTensor<B>>; 2],
        [of_x, of_weight]: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        let x = x.filter(|_| of_weight);
        let weight = weight.filter(|_| of_x);
        let [x, weight, _] = self.fused.linear_backward(x, weight, false, gradient);
        [x, weight]
    }
}

impl<B: Backend> Step<B, 3> for LinearStep<B> {
    fn keeps([x, weight, _]: [bool; 3]) -> [bool; 3] {
        [weight, x, false]
    }

    fn gradients(
        self,
        [x, weight, _]: [Option<FloatTensor<B>>; 3],
        [of_x, of_weight, of_bias]: [bool; 3],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 3] {
        let x = x.filter(|_| of_weight);
        let weight = weight.filter(|_| of_x);
        self.fused.linear_backward(x, weight, of_bias, gradient)
    }
}

/// The backward pass of logits.
#[derive(Clone, Debug)]
struct UnembedStep<B: Backend> {
    fused: &'static dyn Fused<B>,
}

impl<B: Backend> Step<B, 2> for UnembedStep<B> {
    fn keeps([x, table]: [bool; 2]) -> [bool; 2] {
        [table, x]
    }

    fn gradients(
        self,
        [x, table]: [Option<FloatTensor<B>>; 2],
        [of_x, of_table]: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        let x = x.filter(|_| of_table);
        let table = table.filter(|_| of_x);
        self.fused.unembed_backward(x, table, gradient)
    }
}

/// The backward pass of rotary positions.
#[derive(Clone, Debug)]
struct RotateStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    angles: [FloatTensor<B>; 2],
    pairing: Pairing,
}

impl<B: Backend> Step<B, 1> for RotateStep<B> {
    fn keeps(_: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn gradients(
        self,
        _: [Option<FloatTensor<B>>; 1],
        _: [bool; 1],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 1] {
        let [cos, sin] = self.angles;
        // Turned back.
        [Some(self.fused.rotate(gradient, [cos, B::float_neg(sin)], self.pairing))]
    }
}

/// The backward pass of a value that is another one.
#[derive(Clone, Debug)]
struct AliasStep;

impl<B: Backend> Step<B, 1> for AliasStep {
    fn keeps(_: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn gradients(
        self,
        _: [Option<FloatTensor<B>>; 1],
        _: [bool; 1],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 1] {
        [Some(gradient)]
    }
}

/// The backward pass of a root that carries a gradient.
#[derive(Clone, Debug)]
struct CarryStep<B: Backend> {
    gradient: Option<FloatTensor<B>>,
}

impl<B: Backend> Step<B, 2> for CarryStep<B> {
    fn keeps(_: [bool; 2]) -> [bool; 2] {
        [false; 2]
    }

    fn gradients(
        self,
        _: [Option<FloatTensor<B>>; 2],
        _: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        [Some(gradient), self.gradient]
    }
}

/// The backward pass of a norm. It computes means and variances once more, which takes less time than
/// reading them from memory.
#[derive(Clone, Debug)]
struct NormStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    norm: Norm,
}

impl<B: Backend> Step<B, 2> for NormStep<B> {
    fn keeps(_: [bool; 2]) -> [bool; 2] {
        [true, true]
    }

    fn gradients(
        self,
        [x, weight]: [Option<FloatTensor<B>>; 2],
        _: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        // `keeps` says that both are kept, so neither is absent; the same holds below.
        let (Some(x), Some(weight)) = (x, weight) else { return [None, None] };
        let (x, weight, _) = self.fused.norm_backward(x, weight, false, self.norm, gradient);
        [Some(x), Some(weight)]
    }
}

impl<B: Backend> Step<B, 3> for NormStep<B> {
    // No gradient depends on the bias.
    fn keeps(_: [bool; 3]) -> [bool; 3] {
        [true, true, false]
    }

    fn gradients(
        self,
        [x, weight, _]: [Option<FloatTensor<B>>; 3],
        _: [bool; 3],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 3] {
        let (Some(x), Some(weight)) = (x, weight) else { return [None, None, None] };
        let (x, weight, bias) = self.fused.norm_backward(x, weight, true, self.norm, gradient);
        [Some(x), Some(weight), bias]
    }
}

/// The backward pass of looking rows up, for which the table is not needed.
#[derive(Clone, Debug)]
struct LookUpStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    indices: IntTensor<B>,
    rows: usize,
}

impl<B: Backend> Step<B, 1> for LookUpStep<B> {
    fn keeps(_: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn gradients(
        self,
        _: [Option<FloatTensor<B>>; 1],
        _: [bool; 1],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 1] {
        [Some(self.fused.look_up_backward(self.indices, self.rows, gradient))]
    }
}

/// The backward pass of a gated product. It computes the activation once more, instead of keeping it.
#[derive(Clone, Debug)]
struct GateStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    activation: Activation,
}

impl<B: Backend> Step<B, 2> for GateStep<B> {
    fn keeps(_: [bool; 2]) -> [bool; 2] {
        [true; 2]
    }

    fn gradients(
        self,
        inputs: [Option<FloatTensor<B>>; 2],
        _: [bool; 2],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2] {
        let [Some(gate), Some(x)] = inputs else { return [None, None] };
        self.fused.gate_backward(gate, x, self.activation, gradient).map(Some)
    }
}

/// The backward pass of attention. It computes the scores once more, because keeping them, `[B, H, T, K]`,
/// would take most of the memory of a step with long sequences. Its inputs are queries, keys, values, and the bias and the
/// sinks if there are such; these have gradients, and so they are not kept apart from the tape.
#[derive(Clone, Debug)]
struct AttentionStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    mask: Option<BoolTensor<B>>,
    /// Whether there is a bias, and whether there are sinks.
    has: [bool; 2],
    options: AttentionModuleOptions,
    dropout: Option<Dropout>,
    norms: FloatTensor<B>,
}

impl<B: Backend, const N: usize> Step<B, N> for AttentionStep<B> {
    fn keeps(_: [bool; N]) -> [bool; N] {
        [true; N]
    }

    fn gradients(
        self,
        inputs: [Option<FloatTensor<B>>; N],
        wanted: [bool; N],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; N] {
        let Self { fused, mask, has, options, dropout, norms } = self;
        let (mut inputs, mut wanted) = (inputs.into_iter().flatten(), wanted.into_iter().skip(3));
        let (Some(q), Some(k), Some(v)) = (inputs.next(), inputs.next(), inputs.next()) else {
            return [const { None }; N];
        };
        let [bias, sinks] = has.map(|has| if has { inputs.next() } else { None });
        let wanted = has.map(|has| has && wanted.next() == Some(true));
        let extra = Extra::new(mask, bias, sinks).dropping(dropout);
        let (of_qkv, of_others) =
            fused.attention_backward([q, k, v], extra, options, norms, gradient, wanted);
        let of_others = of_others.into_iter().zip(has).filter(|(_, has)| *has).map(|(found, _)| found);
        let mut found = of_qkv.into_iter().map(Some).chain(of_others);
        std::array::from_fn(|_| found.next().flatten())
    }
}

/// The backward pass of cross entropy. It computes the probabilities `[N, C]` once more instead of keeping
/// them in memory next to the logits.
#[derive(Clone, Debug)]
struct LossStep<B: Backend> {
    fused: &'static dyn Fused<B>,
    labels: (IntTensor<B>, FloatTensor<B>, f64),
    logs: FloatTensor<B>,
}

impl<B: Backend> Step<B, 1> for LossStep<B> {
    fn keeps(_: [bool; 1]) -> [bool; 1] {
        [true]
    }

    fn gradients(
        self,
        [logits]: [Option<FloatTensor<B>>; 1],
        _: [bool; 1],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 1] {
        let Self { fused, labels, logs } = self;
        [logits.map(|logits| fused.cross_entropy_backward(logits, labels, logs, gradient))]
    }
}
