//! What training starts from.

use super::value::{Location, Patterns};
use crate::field::record::record;

record! {
    defaults;
    /// The trained model from whose weights training starts. A parameter that is not listed under `except`
    /// must be there under its path and in its shape.
    pub struct Start as "start" {
        /// The run, the Hugging Face model directory or the safetensors file; by default the model that is
        /// trained, which must then be a run or a directory itself.
        from: Option<Location> = absent;
        /// Parameters that start fresh instead, with the spec's initial values, by path; `*` matches any
        /// text.
        except: Patterns = value(Patterns::default());
    }
}
