//! Training and use: from a spec, a recipe and files to batches, tokens and figures.
//!
//! [`recipe`] decodes the second document, which says how a spec is trained, and holds it against the
//! spec. `data` reads files into examples and hands out batches named like the graph's inputs, `token`
//! turns text into numbers and back, `metric` says how good outputs are. None of these knows a tensor
//! library: a batch is lists of numbers with shapes. Everything random comes from a seed, by [`random`].
//!
//! With tensors, `loss` judges outputs, `update` moves parameters, `step` joins both, `session` makes
//! steps until there are none left and keeps them in a `run_dir`; `evaluate` measures, `decode` writes on,
//! choosing tokens by `choose`, between the ids that `writing` says of other libraries' models. `sample` is a batch without data.

#[cfg(feature = "interp")]
pub mod choose;
#[cfg(feature = "learn")]
pub mod data;
#[cfg(feature = "interp")]
pub mod decode;
#[cfg(feature = "interp")]
pub mod evaluate;
#[cfg(feature = "interp")]
pub mod loss;
#[cfg(feature = "learn")]
pub mod metric;
#[cfg(feature = "interp")]
pub mod prompt;
pub mod random;
pub mod recipe;
#[cfg(feature = "interp")]
pub mod run_dir;
#[cfg(feature = "interp")]
pub mod sample;
#[cfg(feature = "interp")]
pub mod session;
#[cfg(feature = "interp")]
pub mod span;
#[cfg(feature = "interp")]
pub mod step;
#[cfg(feature = "learn")]
pub mod token;
#[cfg(feature = "interp")]
pub mod update;
#[cfg(feature = "learn")]
pub mod writing;
