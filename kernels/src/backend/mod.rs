//! Ops that are computed differently on different backends. Burn's dispatch chooses the implementation by the
//! backend of the tensors.

mod activation;
mod adamw;
#[cfg(feature = "autodiff")]
mod autodiff;
mod bias;
#[cfg(feature = "flex")]
pub mod buffers;
#[cfg(any(
    feature = "wgpu",
    feature = "vulkan",
    feature = "metal",
    feature = "cuda",
    feature = "rocm",
    feature = "cpu"
))]
mod cube;
mod default;
mod dropout;
mod extra;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "flex")]
mod flex_fused;
#[cfg(feature = "flex")]
mod flex_product;
#[cfg(feature = "flex")]
pub(crate) mod flex_tensor;
mod fused;
#[cfg(feature = "tch")]
mod libtorch;
mod norm;
pub mod packed;
mod pages;
mod pairing;
#[cfg(feature = "autodiff")]
mod track;

use std::sync::Arc;

use burn::backend::ops::AttentionModuleOptions;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, TensorMetadata, backend_extension};
use burn::prelude::*;

pub use activation::Activation;
pub use adamw::AdamW;
pub use bias::Bias;
pub use dropout::Dropout;
pub use extra::{Extra, Parts};
use fused::{Fused, MayFuse};
pub use norm::{Affine, Norm};
use packed::Packed;
pub use pairing::Pairing;

/// The ops that depend on the backend. The default of each is burn's own implementation.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    // CubeCL's backends are one type, whatever they run on.
    Cube: cfg(any(
        feature = "wgpu",
        feature = "vulkan",
        feature = "metal",
        feature = "cuda",
        feature = "rocm",
        feature = "cpu"
    )),
    LibTorch: cfg(feature = "tch"),
    Autodiff: cfg(feature = "autodiff"),
)]
pub trait Kernels: Backend + MayFuse {
    /// Scaled dot-product attention, as [`crate::attention`] and [`crate::attention_with_sinks`] describe it.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        #[extension_type] extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let ([q, k, v], extra) = default::with_sinks_as_keys::<Self>([q, k, v], extra);
        let Parts { mask, bias, .. } = extra.parts();
        Self::attention(q, k, v, mask, bias, options)
    }

    /// `x weight + bias`, of which an activation may be taken: `[.., in]`, weight `[in, out]` → `[.., out]`. All rows are
    /// multiplied as one matrix.
    fn kernel_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: Bias<Self>,
        then: Option<Activation>,
    ) -> FloatTensor<Self> {
        activated::<Self>(default::linear::<Self>(x, weight, bias), then)
    }

    /// The same for a packed weight: `[.., in]` → `[.., out]`.
    fn kernel_packed_product(
        x: FloatTensor<Self>,
        weight: Arc<Packed>,
        #[extension_type] bias: Bias<Self>,
        then: Option<Activation>,
    ) -> FloatTensor<Self> {
        activated::<Self>(default::packed_product::<Self>(x, &weight, bias), then)
    }

    /// `x table^T`: `[.., D]`, table `[V, D]` → `[.., V]`. All rows are multiplied as one matrix.
    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        default::unembed::<Self>(x, table)
    }

    /// The rows of a table with these indices: table `[V, D]`, indices `[B, T]` → `[B, T, D]`.
    fn kernel_look_up(table: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        Self::embedding(table, indices)
    }

    /// A norm over the last axis of `x [.., D]`.
    fn kernel_norm(
        x: FloatTensor<Self>,
        #[extension_type] affine: Affine<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        match Self::fused(&x) {
            Some(fused) => fused.norm(x, affine, norm),
            None => default::norm::<Self>(x, affine, norm),
        }
    }

    /// The norm over the last axis of the sum of `x [.., D]` and `residual [.., D]`, and this sum.
    fn kernel_add_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        #[extension_type] affine: Affine<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        match fuses::<Self>(&x, &residual) {
            Some(fused) => fused.add_norm([x, residual], affine, norm),
            None => sum_then_norm::<Self>([x, residual], affine, norm),
        }
    }

    /// Turns the first `2 * pairs` features of `x [B, H, T, D]` by angles whose cosines and sines are given, `[T, pairs]`.
    fn kernel_rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        pairing: Pairing,
    ) -> FloatTensor<Self> {
        match Self::fused(&x).filter(|_| Self::fused(&cos).is_some()) {
            Some(fused) => fused.rotate(x, [cos, sin], pairing),
            None => default::rotate::<Self>(x, cos, sin, pairing),
        }
    }

    /// The weighted sum of the cross entropies of `logits [N, C]`, as [`crate::cross_entropy`] describes it:
    /// classes and weights `[N, 1]` → `[1]`.
    fn kernel_cross_entropy(
        logits: FloatTensor<Self>,
        classes: IntTensor<Self>,
        weights: FloatTensor<Self>,
        smoothing: f64,
    ) -> FloatTensor<Self> {
        match Self::fused(&logits) {
            Some(fused) => fused.cross_entropy(logits, classes, weights, smoothing).0,
            None => default::cross_entropy::<Self>(logits, classes, weights, smoothing),
        }
    }

    /// A step of AdamW, as [`crate::adamw`] describes it.
    fn kernel_adamw(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamW,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let tensors = [x, gradient, first, second];
        // All four are asked, since a gradient or a moment may have another type than the parameter.
        let fused = Self::fused(&tensors[0]).filter(|_| tensors.iter().all(|x| Self::fused(x).is_some()));
        let [x, first, second] = match fused {
            Some(fused) => fused.adamw(tensors, step),
            None => default::adamw::<Self>(tensors, step),
        };
        (x, first, second)
    }

    /// The same numbers as another value of the tape, as [`crate::alias`] describes it.
    fn kernel_alias(x: FloatTensor<Self>) -> FloatTensor<Self> {
        // Without autodiff there is no tape.
        x
    }

    /// `root`, whose backward pass reaches `x`, as [`crate::reach`] describes it.
    fn kernel_reach(root: FloatTensor<Self>, _x: FloatTensor<Self>) -> FloatTensor<Self> {
        // Without autodiff there is no backward pass.
        root
    }

    /// `root`, whose backward pass begins with a gradient of `x`, as [`crate::carry`] describes it.
    fn kernel_carry(
        root: FloatTensor<Self>,
        _x: FloatTensor<Self>,
        _gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        root
    }

    /// An activation, element by element.
    fn kernel_activate(x: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        default::activate::<Self>(x, activation)
    }

    /// A gated product of tensors of the same shape: the activation of `gate`, times `x`.
    fn kernel_gate(
        gate: FloatTensor<Self>,
        x: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        Self::float_mul(Self::kernel_activate(gate, activation), x)
    }

    /// The backward pass of an activation: its derivative at `x`, multiplied by the gradient of its result.
    fn kernel_activate_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        default::activate_backward::<Self>(x, gradient, activation)
    }
}

/// The kernels for two tensors of the same shape, if the backend has them for both.
fn fuses<B: MayFuse>(a: &FloatTensor<B>, b: &FloatTensor<B>) -> Option<&'static dyn Fused<B>> {
    B::fused(a).filter(|_| B::fused(b).is_some() && a.shape() == b.shape())
}

/// An activation of `x`, if one is given.
fn activated<B: Kernels>(x: FloatTensor<B>, activation: Option<Activation>) -> FloatTensor<B> {
    match activation {
        Some(activation) => B::kernel_activate(x, activation),
        None => x,
    }
}

/// [`Kernels::kernel_add_norm`] in two operations.
fn sum_then_norm<B: Kernels>(
    [x, residual]: [FloatTensor<B>; 2],
    affine: Affine<B>,
    norm: Norm,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let sum = B::float_add(x, residual);
    (B::kernel_norm(sum.clone(), affine, norm), sum)
}

// `Dispatch` passes every op on to the backend of its tensors, which then says what it has.
impl MayFuse for Dispatch {}

/// [`Kernels::kernel_attention`] of the tensors' backend.
pub fn attention(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Option<Tensor<1>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let extra = Extra::new(
        mask.map(Tensor::into_dispatch),
        bias.map(Tensor::into_dispatch),
        sinks.map(Tensor::into_dispatch),
    );
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_attention(
        q.into_dispatch(),
        k.into_dispatch(),
        v.into_dispatch(),
        extra,
        options,
    ))
}

/// [`attention`] with dropout of its weights.
pub fn attention_with_dropout(
    [q, k, v]: [Tensor<4>; 3],
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
    dropout: Dropout,
) -> Tensor<4> {
    let extra = Extra::new(mask.map(Tensor::into_dispatch), bias.map(Tensor::into_dispatch), None);
    let [q, k, v] = [q, k, v].map(Tensor::into_dispatch);
    let extra = extra.dropping(Some(dropout));
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_attention(q, k, v, extra, options))
}

/// Dropout with probability `p` for attention of such tensors, whose key comes from the generator of their device. `None` if
/// [`attention_with_dropout`] does not know how to drop weights there.
pub fn dropout(p: f64, qkv: [&Tensor<4>; 3]) -> Option<Dropout> {
    #[cfg(feature = "flex")]
    if flex_fused::attends_in_tiles(qkv) {
        return Some(Dropout { p, key: flex_fused::random_key() });
    }
    #[cfg(not(feature = "flex"))]
    let _ = (p, qkv);
    None
}

/// [`Kernels::kernel_activate`] of the tensor's backend.
pub fn activate<const D: usize>(x: Tensor<D>, activation: Activation) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_activate(x.into_dispatch(), activation))
}

/// [`Kernels::kernel_gate`] of the tensors' backend.
pub fn gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>, activation: Activation) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::kernel_gate(gate.into_dispatch(), x.into_dispatch(), activation))
}

/// [`Kernels::kernel_linear`] of the tensors' backend.
pub fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    then: Option<Activation>,
) -> Tensor<D> {
    let bias = Bias::new(bias.map(Tensor::into_dispatch));
    Tensor::from_dispatch(Dispatch::kernel_linear(x.into_dispatch(), weight.into_dispatch(), bias, then))
}

/// Whether some backend has a kernel for packed weights on this processor.
pub fn packs_weights() -> bool {
    #[cfg(feature = "flex")]
    return crate::cpu::simd::is_available();
    #[cfg(not(feature = "flex"))]
    return false;
}

/// [`Kernels::kernel_packed_product`] of the tensors' backend.
pub fn packed_product<const D: usize>(
    x: Tensor<D>,
    weight: Arc<Packed>,
    bias: Option<Tensor<1>>,
    then: Option<Activation>,
) -> Tensor<D> {
    let bias = Bias::new(bias.map(Tensor::into_dispatch));
    Tensor::from_dispatch(Dispatch::kernel_packed_product(x.into_dispatch(), weight, bias, then))
}

/// [`Kernels::kernel_unembed`] of the tensors' backend.
pub fn unembed<const D: usize>(x: Tensor<D>, table: Tensor<2>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::kernel_unembed(x.into_dispatch(), table.into_dispatch()))
}

/// [`Kernels::kernel_look_up`] of the tensors' backend.
pub fn look_up(table: Tensor<2>, indices: Tensor<2, Int>) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::kernel_look_up(table.into_dispatch(), indices.into_dispatch()))
}

/// [`Kernels::kernel_norm`] of the tensors' backend.
pub fn norm<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<1>,
    bias: Option<Tensor<1>>,
    norm: Norm,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::kernel_norm(x.into_dispatch(), affine(weight, bias), norm))
}

/// [`Kernels::kernel_add_norm`] of the tensors' backend.
pub fn add_norm<const D: usize>(
    [x, residual]: [Tensor<D>; 2],
    weight: Tensor<1>,
    bias: Option<Tensor<1>>,
    norm: Norm,
) -> (Tensor<D>, Tensor<D>) {
    let (x, residual) = (x.into_dispatch(), residual.into_dispatch());
    let (y, sum) = Dispatch::kernel_add_norm(x, residual, affine(weight, bias), norm);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(sum))
}

fn affine(weight: Tensor<1>, bias: Option<Tensor<1>>) -> Affine<Dispatch> {
    let weight = weight.into_dispatch();
    match bias {
        Some(bias) => Affine::Both(weight, bias.into_dispatch()),
        None => Affine::Weight(weight),
    }
}

/// [`Kernels::kernel_rotate`] of the tensors' backend.
pub fn rotate(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>, pairing: Pairing) -> Tensor<4> {
    let (cos, sin) = (cos.into_dispatch(), sin.into_dispatch());
    Tensor::from_dispatch(Dispatch::kernel_rotate(x.into_dispatch(), cos, sin, pairing))
}

/// [`Kernels::kernel_cross_entropy`] of the tensors' backend.
pub fn cross_entropy(
    logits: Tensor<2>,
    classes: Tensor<2, Int>,
    weights: Tensor<2>,
    smoothing: f64,
) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::kernel_cross_entropy(
        logits.into_dispatch(),
        classes.into_dispatch(),
        weights.into_dispatch(),
        smoothing,
    ))
}

/// [`Kernels::kernel_alias`] of the tensor's backend.
pub fn alias<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::kernel_alias(x.into_dispatch()))
}

/// [`Kernels::kernel_reach`] of the tensors' backend.
pub fn reach<const D: usize>(root: Tensor<1>, x: Tensor<D>) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::kernel_reach(root.into_dispatch(), x.into_dispatch()))
}

/// [`Kernels::kernel_carry`] of the tensors' backend.
pub fn carry<const D: usize>(root: Tensor<1>, x: Tensor<D>, gradient: Tensor<D>) -> Tensor<1> {
    let (root, x) = (root.into_dispatch(), x.into_dispatch());
    Tensor::from_dispatch(Dispatch::kernel_carry(root, x, gradient.into_dispatch()))
}

/// [`Kernels::kernel_adamw`] of the tensors' backend.
pub fn adamw<const D: usize>(tensors: [Tensor<D>; 4], step: AdamW) -> [Tensor<D>; 3] {
    let [x, gradient, first, second] = tensors.map(Tensor::into_dispatch);
    let (x, first, second) = Dispatch::kernel_adamw(x, gradient, first, second, step);
    [x, first, second].map(Tensor::from_dispatch)
}
