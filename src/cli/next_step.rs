//! The commands that usually come next.

#[cfg(feature = "interp")]
use crate::parts::Head;

/// The command that shows what a model with this head has learned.
#[cfg(feature = "interp")]
pub fn after_training(head: &Head, run: &str) -> String {
    match head {
        Head::Lm(_) => format!("trafoc generate {run} --count 5"),
        Head::Translate(_) => format!("trafoc generate {run} --prompt 'a text to translate'"),
        Head::Mlm(_) | Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => {
            format!("trafoc eval {run}")
        }
    }
}
