//! Ops that are computed differently on different backends. Burn's dispatch chooses the implementation by the
//! backend of the tensors.

use burn::backend::ops::AttentionModuleOptions;
use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, backend_extension};
use burn::prelude::*;

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

    /// Gelu: `x/2 (1 + erf(x / sqrt(2)))`, element by element.
    fn kernel_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::gelu(x)
    }

    /// The backward pass of gelu: its derivative at `x`, multiplied by the gradient of its result.
    fn kernel_gelu_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::gelu_backward(x, gradient)
    }
}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
    use burn::backend::tensor::FloatTensor;

    use super::{Extra, Kernels};

    impl Kernels for Flex {
        // Flex mistakes a query whose scores are all NaN for one that sees no key (ops/attention.rs of
        // burn-flex 0.22.1). Therefore a number is added to the result of each query: NaN if the query or a
        // key is not finite, and zero otherwise.
        fn kernel_attention(
            q: FloatTensor<Self>,
            k: FloatTensor<Self>,
            v: FloatTensor<Self>,
            extra: Extra<Self>,
            options: AttentionModuleOptions,
        ) -> FloatTensor<Self> {
            let (mask, bias) = extra.parts();
            let of_keys = Flex::float_sum_dim(Flex::float_sum_dim(k.clone(), 3), 2);
            let of_queries = Flex::float_sum_dim(q.clone(), 3);
            let zero = Flex::float_mul_scalar(Flex::float_add(of_queries, of_keys), 0.0.into());
            Flex::float_add(Flex::attention(q, k, v, mask, bias, options), zero)
        }
    }
}

#[cfg(feature = "tch")]
mod libtorch {
    use burn::backend::LibTorch;
    use burn::backend::ops::AttentionModuleOptions;
    use burn::backend::ops::attention::attention_fallback;
    use burn::backend::tensor::FloatTensor;

    use super::{Extra, Kernels};

    impl Kernels for LibTorch {
        // LibTorch's own attention cannot be used (`attention` in ops/module.rs of burn-tch 0.22.1): burn
        // passes it our mask unchanged, although LibTorch attends where a mask is true, and does not pass it
        // the softcap; its causal mask is aligned with the first key instead of the last; and it does not
        // accept another mask together with the causal one.
        fn kernel_attention(
            q: FloatTensor<Self>,
            k: FloatTensor<Self>,
            v: FloatTensor<Self>,
            extra: Extra<Self>,
            options: AttentionModuleOptions,
        ) -> FloatTensor<Self> {
            let (mask, bias) = extra.parts();
            attention_fallback::<Self>(q, k, v, mask, bias, options)
        }
    }
}

#[cfg(any(
    feature = "wgpu",
    feature = "vulkan",
    feature = "metal",
    feature = "cuda",
    feature = "rocm",
    feature = "cpu"
))]
mod cube {
    use std::f64::consts::{FRAC_1_SQRT_2, PI};

    use burn::backend::Cube;
    use burn::backend::ops::FloatTensorOps;
    use burn::backend::tensor::FloatTensor;

    use super::Kernels;

    impl Kernels for Cube {
        // CubeCL's backends do not define the gradient of gelu, and burn's default is that of the
        // approximation with tanh, which is off by up to 1e-3 (`gelu_backward` in ops/activation.rs of
        // burn-backend 0.22.1). This is the exact one:
        // `(1 + erf(x / sqrt(2))) / 2 + x exp(-x²/2) / sqrt(2 pi)`.
        fn kernel_gelu_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
            let erf = Self::float_erf(Self::float_mul_scalar(x.clone(), FRAC_1_SQRT_2.into()));
            let below = Self::float_mul_scalar(Self::float_add_scalar(erf, 1.0.into()), 0.5.into());
            let square = Self::float_mul(x.clone(), x.clone());
            let density = Self::float_exp(Self::float_mul_scalar(square, (-0.5).into()));
            let density = Self::float_mul_scalar(density, (1.0 / (2.0 * PI).sqrt()).into());
            Self::float_mul(gradient, Self::float_add(below, Self::float_mul(x, density)))
        }
    }
}

#[cfg(feature = "autodiff")]
mod autodiff {
    use burn::backend::Autodiff;
    use burn::backend::autodiff::NodeId;
    use burn::backend::autodiff::checkpoint::base::Checkpointer;
    use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
    use burn::backend::autodiff::grads::Gradients;
    use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
    use burn::backend::tensor::FloatTensor;

    use super::Kernels;

    // Attention keeps the default, which autodiff computes as separate operations.
    impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
        fn kernel_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
            #[derive(Debug)]
            struct Gelu;

            impl<B: Kernels> Backward<B, 1> for Gelu {
                type State = NodeId;

                fn backward(
                    self,
                    ops: Ops<Self::State, 1>,
                    gradients: &mut Gradients,
                    checkpointer: &mut Checkpointer,
                ) {
                    let x = checkpointer.retrieve_node_output(ops.state);
                    unary::<B, _>(ops.parents, ops.node, gradients, |gradient| {
                        B::kernel_gelu_backward(x, gradient)
                    });
                }
            }

            match Gelu.prepare::<C>([x.node()]).compute_bound().stateful() {
                OpsKind::Tracked(mut preparation) => {
                    let state = preparation.checkpoint(&x);
                    preparation.finish(state, B::kernel_gelu(x.primitive().clone()))
                }
                OpsKind::UnTracked(preparation) => preparation.finish(B::kernel_gelu(x.into_primitive())),
            }
        }
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

/// [`Kernels::kernel_gelu`] of the tensor's backend.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as Kernels>::kernel_gelu(x.into_dispatch()))
}
