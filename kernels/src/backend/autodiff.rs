//! The backward passes of the kernels.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;

use super::{Activation, Extra, Kernels};

impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    // Autodiff computes burn's attention as separate operations. Where a query sees no key, the derivative of its
    // division by the sum of no weights is not a number. Gradients of queries and keys end at the mask, but burn adds
    // the bias after the mask, so that its gradient has to end at a mask of its own.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let (mask, bias) = extra.parts();
        let bias = match (&mask, bias) {
            (Some(mask), Some(bias)) => Some(Self::float_mask_fill(bias, mask.clone(), 0.0.into())),
            (_, bias) => bias,
        };
        Self::attention(q, k, v, mask, bias, options)
    }

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
                let state = (preparation.checkpoint(&x), activation);
                preparation.finish(state, B::kernel_activate(x.primitive().clone(), activation))
            }
            OpsKind::UnTracked(preparation) => {
                preparation.finish(B::kernel_activate(x.into_primitive(), activation))
            }
        }
    }
}
