//! Ops that work feature by feature, and those over the features of a position, as burn has them.

use burn::prelude::*;
use burn::tensor::{DType, activation};
use trafoc_kernels::{
    EinsumPlan, gelu, gelu_gate, gelu_tanh, gelu_tanh_gate, hide_padding, quick_gelu, quick_gelu_gate, silu,
    silu_gate,
};

use super::Fault;
use super::value::Ranked;
use crate::ir::op::{Activation, Axes, Elementary, Reduction};

/// Burn's activations, except for those that are functions of [`trafoc_kernels`].
pub(super) fn activate<const D: usize>(activation: Activation, x: Tensor<D>) -> Tensor<D> {
    match activation {
        Activation::Relu => activation::relu(x),
        Activation::Relu2 => activation::relu(x).square(),
        Activation::Gelu => gelu(x),
        Activation::GeluTanh => gelu_tanh(x),
        Activation::QuickGelu => quick_gelu(x),
        Activation::Silu => silu(x),
        Activation::Tanh => activation::tanh(x),
        Activation::Sigmoid => activation::sigmoid(x),
    }
}

/// Burn's elementary functions.
pub(super) fn elementary<const D: usize>(function: Elementary, x: Tensor<D>) -> Tensor<D> {
    match function {
        Elementary::Exp => x.exp(),
        Elementary::Log => x.log(),
        Elementary::Sqrt => x.sqrt(),
        Elementary::Square => x.square(),
        Elementary::Abs => x.abs(),
        Elementary::Sign => x.sign(),
        Elementary::Sin => x.sin(),
        Elementary::Cos => x.cos(),
        Elementary::Softplus => activation::softplus(x, 1.0),
        Elementary::Reciprocal => x.recip(),
        Elementary::Floor => x.floor(),
    }
}

/// One number for the features, whose axis stays with size 1.
pub(super) fn reduce<const D: usize>(reduction: Reduction, x: Tensor<D>) -> Tensor<D> {
    let last = D.saturating_sub(1);
    match reduction {
        Reduction::Sum => x.sum_dim(last),
        Reduction::Mean => x.mean_dim(last),
        Reduction::Max => x.max_dim(last),
    }
}

/// The mean of every feature over all other axes, which stay with size 1, without positions that are `padding`.
pub(super) fn batch_mean<const D: usize>(x: Tensor<D>, padding: Option<Tensor<4, Bool>>) -> Tensor<D> {
    let mean = |x: Tensor<D>| (0..D.saturating_sub(1)).fold(x, |x, axis| x.mean_dim(axis));
    match padding {
        Some(padding) => {
            let share = share_of_tokens(&padding, x.dtype());
            mean(hide_padding(x, Some(padding))) / share.reshape([1; D])
        }
        None => mean(x),
    }
}

/// The mean of all numbers, without those of positions that are `padding`.
pub(super) fn mean<const D: usize>(x: Tensor<D>, padding: Option<Tensor<4, Bool>>) -> Tensor<1> {
    match padding {
        Some(padding) => {
            let share = share_of_tokens(&padding, x.dtype());
            hide_padding(x, Some(padding)).mean() / share
        }
        None => x.mean(),
    }
}

/// The share of positions that are no padding. A mean over all positions, of which padding has zeros, is divided by
/// it, so that without padding it stays the same number.
fn share_of_tokens(padding: &Tensor<4, Bool>, dtype: DType) -> Tensor<1> {
    let hidden: Tensor<1> = padding.clone().float().mean();
    let share = hidden.neg().add_scalar(1.0);
    // A batch has a token, so that this is above 0.
    if share.dtype() == dtype { share } else { share.cast(dtype) }
}

pub(super) fn softmax<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::softmax(x, D.saturating_sub(1))
}

/// Gives both tensors the higher one of their ranks, by leading axes of size 1, as Burn's operators require.
pub(super) fn level(a: Ranked<Float>, b: Ranked<Float>) -> (Ranked<Float>, Ranked<Float>) {
    let rank = a.rank().max(b.rank());
    (a.lift(rank), b.lift(rank))
}

/// A sum, a product or a quotient of two tensors of the same rank. It is a trait because a closure cannot be generic in
/// the rank.
pub(super) trait Zip {
    fn of<const D: usize>(&self, a: Tensor<D>, b: Tensor<D>) -> Tensor<D>;
}
pub(super) struct Add;
pub(super) struct Mul;
pub(super) struct Divide;
/// A gated product, of which the first tensor is the gate.
pub(super) struct Gate(pub Activation);
impl Zip for Add {
    fn of<const D: usize>(&self, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        a + b
    }
}
impl Zip for Gate {
    fn of<const D: usize>(&self, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        match self.0 {
            Activation::Gelu => gelu_gate(a, b),
            Activation::GeluTanh => gelu_tanh_gate(a, b),
            Activation::QuickGelu => quick_gelu_gate(a, b),
            Activation::Silu => silu_gate(a, b),
            other => activate(other, a) * b,
        }
    }
}
impl Zip for Mul {
    fn of<const D: usize>(&self, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        a * b
    }
}
impl Zip for Divide {
    fn of<const D: usize>(&self, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        a / b
    }
}

pub(super) fn zip(a: Ranked<Float>, b: Ranked<Float>, f: impl Zip) -> Result<Ranked<Float>, Fault> {
    Ok(match (a, b) {
        (Ranked::R1(a), Ranked::R1(b)) => Ranked::R1(f.of(a, b)),
        (Ranked::R2(a), Ranked::R2(b)) => Ranked::R2(f.of(a, b)),
        (Ranked::R3(a), Ranked::R3(b)) => Ranked::R3(f.of(a, b)),
        (Ranked::R4(a), Ranked::R4(b)) => Ranked::R4(f.of(a, b)),
        (a, _) => return Err(Fault::rank(a.rank())),
    })
}

/// The kernel of the same name, for tensors whose ranks are known only here.
pub(super) fn einsum(axes: &Axes, a: Ranked<Float>, b: Ranked<Float>) -> Result<Ranked<Float>, Fault> {
    let plan = EinsumPlan::of(&axes.to_string());
    let (a, left) = of_rank(a, &plan, true);
    let (b, right) = of_rank(b, &plan, false);
    let product = a.matmul(b);
    Ok(match axes.result.len() {
        1 => Ranked::R1(plan.result(product, &left, &right)),
        2 => Ranked::R2(plan.result(product, &left, &right)),
        3 => Ranked::R3(plan.result(product, &left, &right)),
        4 => Ranked::R4(plan.result(product, &left, &right)),
        rank => return Err(Fault::rank(rank)),
    })
}

fn of_rank(x: Ranked<Float>, plan: &EinsumPlan, is_left: bool) -> (Tensor<3>, Vec<usize>) {
    fn matrices<const D: usize>(x: Tensor<D>, plan: &EinsumPlan, is_left: bool) -> (Tensor<3>, Vec<usize>) {
        if is_left { plan.left(x) } else { plan.right(x) }
    }
    match x {
        Ranked::R1(x) => matrices(x, plan, is_left),
        Ranked::R2(x) => matrices(x, plan, is_left),
        Ranked::R3(x) => matrices(x, plan, is_left),
        Ranked::R4(x) => matrices(x, plan, is_left),
    }
}
