//! Training and use: from a spec, a recipe and files to batches, tokens and figures.
//!
//! [`recipe`] decodes the second document, which says how a spec is trained, and holds it against the
//! spec. `data` reads files into examples and hands out batches named like the graph's inputs, `token`
//! turns text into numbers and back, `metric` says how good outputs are. Nothing here knows a tensor
//! library: a batch is lists of numbers with shapes. Everything random comes from a seed, by [`random`].

#[cfg(feature = "learn")]
pub mod data;
pub mod random;
pub mod recipe;
#[cfg(feature = "learn")]
pub mod token;
