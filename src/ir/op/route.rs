//! Routing tokens to experts.

use super::Activation;
use super::meaning::{Given, Meaning, Picture, Site, Types};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::text::{flag, optional};
use crate::ir::work::Work;
use crate::ir::{Dim, Extent, Module};

/// The fields of [`Op::Route`](super::Op::Route), which turns router scores into the weights of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// The number of experts to which a token is sent.
    pub top_k: Extent,
    /// How scores become affinities.
    pub score: RouterScore,
    /// Whether the chosen weights are divided by their sum.
    pub normalize: bool,
    /// The factor by which the weights are multiplied.
    pub scale: f64,
    /// The groups of experts, if only those of a few groups can be chosen.
    pub groups: Option<RouterGroups>,
    /// Whether a correction bias `[E]`, added for the choice only, is the second input.
    pub has_correction: bool,
}

/// How router scores become affinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterScore {
    /// Softmax over all experts, then the choice.
    Softmax,
    /// The choice, then softmax over the chosen experts (GPT-OSS).
    SoftmaxOfChosen,
    /// A sigmoid for each expert, then the choice (DeepSeek-V3).
    Sigmoid,
}

/// Limits a token's experts to those of its best groups (DeepSeek-V3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterGroups {
    /// The number of groups, which have equal sizes.
    pub groups: Extent,
    /// The number of groups from which a token's experts are chosen.
    pub keep: Extent,
    /// The score of a group is the sum of its best `score_of` affinities; with 1, its maximum.
    pub score_of: Extent,
}

impl Meaning for Router {
    fn text(&self, _: &Module) -> String {
        format!(
            "route top_k={} {:?}{}{}{}{}",
            self.top_k,
            self.score,
            flag(self.normalize, " normalize"),
            if self.scale == 1.0 { String::new() } else { format!(" scale={:?}", self.scale) },
            optional("groups", self.groups.map(|g| format!("{}/{} by {}", g.keep, g.groups, g.score_of))),
            flag(self.has_correction, " correction"),
        )
    }
    fn sentence(&self) -> &'static str {
        "the weights of the experts a token is sent to; 0 for all others"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let scores = match given.inputs {
            [scores] if !self.has_correction => scores,
            [scores, correction] if self.has_correction => {
                if correction.shape.len() != 1 || correction.last() != scores.last() {
                    return fail(format!("a correction of {correction} for scores {scores}"));
                }
                scores
            }
            _ => return fail("a router takes scores"),
        };
        // A number of experts that is not known fails the check below.
        let experts = scores.last().and_then(Dim::constant).unwrap_or(0);
        if scores.shape.len() != 3 || u128::from(self.top_k) > experts || self.top_k == 0 {
            return fail(format!("{} of {experts} experts", self.top_k));
        }
        Ok(vec![(*scores).clone()])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let score = match self.score {
            // The steps of a softmax, by the conventions of `ir::work`.
            RouterScore::Softmax | RouterScore::SoftmaxOfChosen => 5,
            RouterScore::Sigmoid => Activation::Sigmoid.operations(),
        };
        // A sum and a quotient.
        let normalize = if self.normalize { 2 } else { 0 };
        let scale = u64::from(self.scale != 1.0);
        site.per_element([score, u64::from(self.has_correction), normalize, scale].iter().sum())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("route")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // Several operations of burn, so this number was measured; see [`super::training`].
        Entry { own: 3, ..Entry::of_input(Passing::Fresh) }.alone()
    }
    fn quantities(&self) -> Vec<Quantity> {
        let groups = self.groups.into_iter().flat_map(|g| [g.groups, g.keep, g.score_of]);
        let scale = (self.scale != 1.0).then_some(Quantity::Real(Named::RouterScale, self.scale));
        std::iter::once(self.top_k).chain(groups).map(Quantity::Size).chain(scale).collect()
    }
}
