//! Kernels that have a backward pass of their own. A backend without them computes the same in burn's
//! operations, of which autodiff knows the backward passes.

use std::fmt::Debug;

use burn::backend::Backend;
use burn::backend::ops::AttentionModuleOptions;
use burn::backend::tensor::{FloatTensor, IntTensor};

use super::activation::Activation;
use super::adamw::AdamW;
use super::extra::Extra;
use super::norm::{Affine, Norm};
use super::pairing::Pairing;

/// Backends that may have kernels with a backward pass of their own.
// Whether there are kernels depends on the processor and on the tensors' type, which are known at run time
// only. So a backend returns an object, and is not required to implement `Fused` itself.
pub trait MayFuse: Backend {
    /// The kernels, if the backend has them for tensors like this one.
    fn fused(_like: &FloatTensor<Self>) -> Option<&'static dyn Fused<Self>> {
        None
    }
}

/// The kernels of a backend. All tensors are in single precision.
pub trait Fused<B: Backend>: Debug + Sync {
    /// The gradients of the input, of the weight and of the bias of a linear layer from that of its result,
    /// `[.., out]`. The input `[.., in]` is given if that of the weight is wanted, and the weight `[in, out]` if that
    /// of the input is.
    fn linear_backward(
        &self,
        x: Option<FloatTensor<B>>,
        weight: Option<FloatTensor<B>>,
        with_bias: bool,
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 3];

    /// The gradients of the input and of the table of logits from that of these, `[.., V]`. The input `[.., D]` is
    /// given if that of the table is wanted, and the table `[V, D]` if that of the input is.
    fn unembed_backward(
        &self,
        x: Option<FloatTensor<B>>,
        table: Option<FloatTensor<B>>,
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; 2];

    /// The gradient of a table `[rows, D]` from that of the rows that were looked up in it, `[B, T, D]`.
    fn look_up_backward(
        &self,
        indices: IntTensor<B>,
        rows: usize,
        gradient: FloatTensor<B>,
    ) -> FloatTensor<B>;

    /// The gradients of the gate and of `x` from that of a gated product.
    fn gate_backward(
        &self,
        gate: FloatTensor<B>,
        x: FloatTensor<B>,
        activation: Activation,
        gradient: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2];

    /// A norm over the last axis of `x [.., D]`.
    fn norm(&self, x: FloatTensor<B>, affine: Affine<B>, norm: Norm) -> FloatTensor<B>;

    /// The norm of the sum of two tensors `[.., D]`, and the sum.
    fn add_norm(
        &self,
        terms: [FloatTensor<B>; 2],
        affine: Affine<B>,
        norm: Norm,
    ) -> (FloatTensor<B>, FloatTensor<B>);

    /// The gradients of `x`, of the weight and, if there is one, of the bias from that of the result.
    fn norm_backward(
        &self,
        x: FloatTensor<B>,
        weight: FloatTensor<B>,
        has_bias: bool,
        norm: Norm,
        gradient: FloatTensor<B>,
    ) -> (FloatTensor<B>, FloatTensor<B>, Option<FloatTensor<B>>);

    /// Turns features of `x [B, H, T, D]` by the angles of these cosines and sines, `[T, pairs]`. The gradient of `x` is
    /// that of the result, turned by the angles with the other sign.
    fn rotate(&self, x: FloatTensor<B>, angles: [FloatTensor<B>; 2], pairing: Pairing) -> FloatTensor<B>;

    /// Whether [`Fused::attention`] is the best way to compute attention for such queries, keys and values.
    fn attends(&self, q: &FloatTensor<B>, k: &FloatTensor<B>, v: &FloatTensor<B>) -> bool;

    /// Scaled dot-product attention, as [`crate::attention`] describes it, and what its backward pass needs
    /// of each query, `[B, H, T, 2]`.
    fn attention(
        &self,
        qkv: [FloatTensor<B>; 3],
        extra: Extra<B>,
        options: AttentionModuleOptions,
    ) -> (FloatTensor<B>, FloatTensor<B>);

    /// The gradients of queries, keys, values and, where these are wanted, of the bias, `[B, H, T, K]`, and of the sinks,
    /// `[H]`.
    fn attention_backward(
        &self,
        qkv: [FloatTensor<B>; 3],
        extra: Extra<B>,
        options: AttentionModuleOptions,
        norms: FloatTensor<B>,
        gradient: FloatTensor<B>,
        wanted: [bool; 2],
    ) -> ([FloatTensor<B>; 3], [Option<FloatTensor<B>>; 2]);

    /// The weighted sum of the cross entropies of `logits [N, C]`, as [`crate::cross_entropy`] describes it,
    /// and the logarithm of the sum of the exponentials of each row, `[N]`.
    fn cross_entropy(
        &self,
        logits: FloatTensor<B>,
        classes: IntTensor<B>,
        weights: FloatTensor<B>,
        smoothing: f64,
    ) -> (FloatTensor<B>, FloatTensor<B>);

    /// The gradient of the logits from that of the sum, `[1]`.
    fn cross_entropy_backward(
        &self,
        logits: FloatTensor<B>,
        labels: (IntTensor<B>, FloatTensor<B>, f64),
        sums: FloatTensor<B>,
        gradient: FloatTensor<B>,
    ) -> FloatTensor<B>;

    /// A step of AdamW, as [`crate::adamw`] describes it: the parameter and both moments.
    fn adamw(&self, tensors: [FloatTensor<B>; 4], step: AdamW) -> [FloatTensor<B>; 3];
}
