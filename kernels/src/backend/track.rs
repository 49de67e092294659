//! Operations with a backward pass of their own, on the tape of burn's autodiff.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// An operation on `N` tensors with a gradient for each. Its fields are what it keeps for the backward pass
/// in addition to its inputs.
pub trait Step<B: Backend, const N: usize>: Clone + Debug + Send + 'static {
    /// Which of the inputs are kept for the backward pass, if these have gradients.
    fn keeps(have_gradients: [bool; N]) -> [bool; N];

    /// The gradients of the inputs from that of the result. An input that is not kept is `None`, and so is
    /// the gradient of an input that has none. `wanted` says which gradients are used: one that costs
    /// something need not be computed for a frozen input.
    fn gradients(
        self,
        inputs: [Option<FloatTensor<B>>; N],
        wanted: [bool; N],
        gradient: FloatTensor<B>,
    ) -> [Option<FloatTensor<B>>; N];
}

/// The backward pass of a [`Step`].
#[derive(Debug)]
struct Back<S>(PhantomData<fn() -> S>);

impl<B: Backend, S: Step<B, N>, const N: usize> Backward<B, N> for Back<S> {
    type State = ([Option<NodeId>; N], S);

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (kept, step) = ops.state;
        let gradient = gradients.consume::<B>(&ops.node);
        let inputs = kept.map(|kept| kept.map(|id| checkpointer.retrieve_node_output(id)));
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = step.gradients(inputs, wanted, gradient);
        for (node, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                gradients.register::<B>(node.id, gradient);
            }
        }
    }
}

/// Computes a result with `forward`, which returns it together with the step of the backward pass. The step
/// is recorded if one of the inputs has a gradient.
pub fn track<B: Backend, C: CheckpointStrategy, S: Step<B, N>, const N: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    forward: impl FnOnce([FloatTensor<B>; N]) -> (FloatTensor<B>, S),
) -> FloatTensor<Autodiff<B, C>> {
    let nodes = inputs.each_ref().map(|x| x.node());
    // Bound by computation: under gradient checkpointing, burn keeps the result and does not compute it
    // twice.
    let prepared = Backward::<B, N>::prepare::<C>(Back::<S>(PhantomData), nodes);
    match prepared.compute_bound().stateful() {
        OpsKind::Tracked(mut preparation) => {
            let mut kept = [None; N];
            let keeps = S::keeps(inputs.each_ref().map(|x| x.is_tracked()));
            for ((kept, keeps), x) in kept.iter_mut().zip(keeps).zip(&inputs) {
                *kept = keeps.then(|| preparation.checkpoint(x));
            }
            let (y, step) = forward(inputs.map(|x| x.into_primitive()));
            preparation.finish((kept, step), y)
        }
        // No input has a gradient, so what the step would keep is dropped.
        OpsKind::UnTracked(preparation) => preparation.finish(forward(inputs.map(|x| x.into_primitive())).0),
    }
}
