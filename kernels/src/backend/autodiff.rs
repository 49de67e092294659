//! The backward passes of the kernels.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;

use super::{Activation, Kernels};

// Attention keeps the default, which autodiff computes as separate operations.
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
                let state = (preparation.checkpoint(&x), activation);
                preparation.finish(state, B::kernel_activate(x.primitive().clone(), activation))
            }
            OpsKind::UnTracked(preparation) => {
                preparation.finish(B::kernel_activate(x.into_primitive(), activation))
            }
        }
    }
}
