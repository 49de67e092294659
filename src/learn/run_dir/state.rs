//! The state of a training, as its checkpoints record it.

use serde::{Deserialize, Serialize};

use crate::learn::data::Fingerprint;

/// The state of a training in addition to the parameters and the optimizer's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The number of steps made.
    pub step: u64,
    /// The total number of steps.
    pub steps: u64,
    /// The seed of everything random. Dropout, order and masking of a step are functions of the seed and
    /// the step alone, so these two numbers are the random state and the position in the data.
    pub seed: u64,
    /// The version of the order in which examples are taken. A state that does not name it is of the first.
    #[serde(default = "first_order")]
    pub order: u64,
    /// The examples that it began with; older states do not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Fingerprint>,
    /// The SHA-256 of the parameters that it began with, if it began with those of a trained model; older states do not
    /// have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<String>,
    /// The number of target tokens or examples seen.
    pub targets: u64,
    /// The best evaluation so far.
    pub best: Option<Best>,
    /// The best value of the metric that may end the run early.
    pub stop: Option<f64>,
    /// The number of evaluations since that value was reached.
    pub stale: u64,
    /// Whether the run is complete.
    pub finished: bool,
}

/// The order of states that do not name one.
fn first_order() -> u64 {
    1
}

/// The best evaluation so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// The number of steps before it.
    pub step: u64,
    /// The value of the metric.
    pub value: f64,
}
