//! The weights of experts, from the scores of a router.

use burn::prelude::*;
use trafoc_kernels::{limit_groups, route_sigmoid, route_softmax, route_softmax_of_chosen};

use crate::ir::op::{Router, RouterScore};

/// `route_softmax(scores, top_k, normalize, choice)`, `route_sigmoid(..)` or
/// `route_softmax_of_chosen(scores, top_k, choice)`, then `* scale` if it is not 1. `choice` adds the
/// correction, if there is one, and applies `limit_groups(.., groups, keep, score_of)`, if the experts are in
/// groups.
pub(super) fn route(router: &Router, scores: Tensor<3>, correction: Option<Tensor<1>>) -> Tensor<3> {
    let choice = |affinities: Tensor<3>| {
        let affinities = match correction.clone() {
            Some(correction) => affinities + correction.unsqueeze(),
            None => affinities,
        };
        match router.groups {
            Some(g) => limit_groups(
                affinities,
                g.groups.get() as usize,
                g.keep.get() as usize,
                g.score_of.get() as usize,
            ),
            None => affinities,
        }
    };
    let (top_k, normalize) = (router.top_k.get() as usize, router.normalize);
    let weights = match router.score {
        RouterScore::Softmax => route_softmax(scores, top_k, normalize, choice),
        RouterScore::Sigmoid => route_sigmoid(scores, top_k, normalize, choice),
        RouterScore::SoftmaxOfChosen => route_softmax_of_chosen(scores, top_k, choice),
    };
    if router.scale == 1.0 { weights } else { weights * router.scale }
}
