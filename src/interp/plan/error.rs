//! Why a graph cannot be run.

use std::fmt;

use super::captures::CaptureError;
use crate::interp::weights::WeightsError;
use crate::report::number;

/// Why a graph cannot be run.
#[derive(Debug)]
pub enum PlanError {
    /// The parameters are too large or have an unsupported shape.
    Weights(WeightsError),
    /// No value has the path of a capture.
    Capture(CaptureError),
    /// The graph has too many instructions once its stacks are unrolled.
    TooDeep {
        /// The number of its instructions; `u64::MAX` if there are more.
        instructions: u64,
        /// The number that can be run.
        most: u64,
        /// The path of the stack that has most of them.
        stack: String,
        /// The number of times that this stack applies a block.
        layers: u64,
    },
    /// The graph uses something that no device supports.
    Refused(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Weights(error) => write!(f, "{error}"),
            PlanError::Capture(error) => write!(f, "{error}"),
            PlanError::TooDeep { instructions, most, stack, layers } => write!(
                f,
                "the model takes {} instructions, but at most {} can be run: `{stack}` applies {} blocks",
                number::count((*instructions).into()),
                number::count((*most).into()),
                number::count((*layers).into())
            ),
            PlanError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PlanError {}
