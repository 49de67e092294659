//! When in a model's life a field of its spec has an effect.

use schemars::JsonSchema;
use serde::Serialize;

/// When a field has an effect. Specs that differ only in what is not [`Phase::Forward`] compute the same outputs
/// with the same weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Whenever the model computes.
    Forward,
    /// In training alone.
    Training,
    /// When parameters get their initial values.
    Init,
}

impl Phase {
    /// That of the field at a path.
    pub fn of<S: AsRef<str>>(path: &[S]) -> Self {
        let mut keys = path.iter().map(AsRef::as_ref);
        if path.first().is_some_and(|key| key.as_ref() == "init") {
            return Self::Init;
        }
        // Dropout is off when a trained model is used, so it cannot change an output.
        if keys.any(|key| key.ends_with("dropout")) {
            return Self::Training;
        }
        match path.last().map(AsRef::as_ref) {
            // The embedding of the padding token is initialised to zero; masks decide which tokens are seen.
            Some("padding") => Self::Init,
            Some(_) | None => Self::Forward,
        }
    }
}
