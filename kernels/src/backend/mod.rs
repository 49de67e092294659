//! Ops that are computed differently on different backends. Burn's dispatch chooses the implementation by the
//! backend of the tensors.

mod activation;
#[cfg(feature = "autodiff")]
mod autodiff;
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
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "tch")]
mod libtorch;

use burn::backend::ops::AttentionModuleOptions;
use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, backend_extension};
use burn::prelude::*;

pub use activation::Activation;

/// The optional mask and bias of attention.
#[derive(ExtensionType)]
pub enum Extra<B: Backend> {
    /// Neither a mask nor a bias.
    Nothing,
    /// A mask, true where a key is hidden: `[B, H, T, K]`.
    Mask(BoolTensor<B>),
    /// A bias, which is added to the scores: `[B, H, T, K]`.
    Bias(FloatTensor<B>),
    /// A mask and a bias.
    Both(BoolTensor<B>, FloatTensor<B>),
}

impl<B: Backend> Extra<B> {
    fn new(mask: Option<BoolTensor<B>>, bias: Option<FloatTensor<B>>) -> Self {
        match (mask, bias) {
            (None, None) => Self::Nothing,
            (Some(mask), None) => Self::Mask(mask),
            (None, Some(bias)) => Self::Bias(bias),
            (Some(mask), Some(bias)) => Self::Both(mask, bias),
        }
    }

    fn parts(self) -> (Option<BoolTensor<B>>, Option<FloatTensor<B>>) {
        match self {
            Self::Nothing => (None, None),
            Self::Mask(mask) => (Some(mask), None),
            Self::Bias(bias) => (None, Some(bias)),
            Self::Both(mask, bias) => (Some(mask), Some(bias)),
        }
    }
}

/// The ops that depend on the backend. The default of each is burn's own implementation.
#[backend_extension(
    Flex: cfg(feature = "flex"),
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
pub trait Kernels: Backend {
    /// Scaled dot-product attention, as [`crate::attention`] describes it.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        #[extension_type] extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let (mask, bias) = extra.parts();
        Self::attention(q, k, v, mask, bias, options)
    }

    /// `x weight`: `[N, in]`, weight `[in, out]`.
    fn kernel_product(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(x, weight)
    }

    /// `x table^T`: `[N, D]`, table `[V, D]`.
    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(x, Self::float_transpose(table))
    }

    /// An activation, element by element.
    fn kernel_activate(x: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        default::activate::<Self>(x, activation)
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

/// [`Kernels::kernel_attention`] of the tensors' backend.
pub fn attention(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_attention(
        q.into_dispatch(),
        k.into_dispatch(),
        v.into_dispatch(),
        Extra::new(mask.map(Tensor::into_dispatch), bias.map(Tensor::into_dispatch)),
        options,
    ))
}

/// [`Kernels::kernel_activate`] of the tensor's backend.
pub fn activate<const D: usize>(x: Tensor<D>, activation: Activation) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_activate(x.into_dispatch(), activation))
}

/// [`Kernels::kernel_product`] of the tensors' backend.
pub fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::kernel_product(x.into_dispatch(), weight.into_dispatch()))
}

/// [`Kernels::kernel_unembed`] of the tensors' backend.
pub fn unembed(x: Tensor<2>, table: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::kernel_unembed(x.into_dispatch(), table.into_dispatch()))
}
