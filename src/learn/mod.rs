//! Training and use of models: from a spec, a recipe and files to batches, tokens and metrics.
//!
//! [`recipe`] decodes the recipe, which describes how a spec is trained, and checks it against the spec.
//! `data` reads files into examples and combines them into batches named like the graph's inputs, `token`
//! converts text to ids and back, `metric` computes how good outputs are. None of these depends on a tensor
//! library: a batch consists of arrays with shapes. Everything random follows from a seed ([`random`]).
//!
//! With tensors, `loss` compares outputs with labels, `update` changes parameters, `step` combines both,
//! and `session` makes all steps of a run and saves them in a `run_dir`. `evaluate` computes metrics;
//! `decode` generates, with tokens chosen by `choose` and with the special tokens that `writing` reads for
//! other libraries' models. `sample` is a batch without data. `likeness` compares two runs.

#[cfg(feature = "interp")]
pub mod adapt;
pub mod calls;
#[cfg(feature = "interp")]
pub mod choose;
#[cfg(feature = "learn")]
pub mod data;
#[cfg(feature = "interp")]
pub mod decode;
#[cfg(feature = "interp")]
pub mod evaluate;
pub mod format;
#[cfg(feature = "interp")]
pub mod likeness;
#[cfg(feature = "interp")]
pub mod loss;
pub mod marker;
#[cfg(feature = "learn")]
pub mod metric;
#[cfg(feature = "learn")]
pub mod project;
#[cfg(feature = "interp")]
pub mod prompt;
pub mod random;
pub mod recipe;
pub mod record;
#[cfg(feature = "interp")]
pub mod run_dir;
#[cfg(feature = "interp")]
pub mod sample;
#[cfg(feature = "interp")]
pub mod session;
#[cfg(feature = "interp")]
pub mod span;
pub mod start;
#[cfg(feature = "interp")]
pub mod step;
#[cfg(feature = "learn")]
pub mod token;
#[cfg(feature = "interp")]
pub mod update;
#[cfg(feature = "learn")]
pub mod whole;
#[cfg(feature = "learn")]
pub mod writing;
