//! Why a graph cannot be run.

use std::fmt;

use super::captures::CaptureError;
use crate::interp::weights::WeightsError;

/// Why a graph cannot be run.
#[derive(Debug)]
pub enum PlanError {
    /// The parameters are too large or have an unsupported shape.
    Weights(WeightsError),
    /// No value has the path of a capture.
    Capture(CaptureError),
    /// The graph is too large, or uses something that no device supports.
    Refused(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Weights(error) => write!(f, "{error}"),
            PlanError::Capture(error) => write!(f, "{error}"),
            PlanError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PlanError {}
