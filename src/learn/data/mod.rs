//! Files to examples to batches.
//!
//! [`prepare`] reads what a recipe names, makes or reads the tokenizer, and keeps every example as
//! numbers. A [`Loader`] then gives the batches of any training step: their order comes from the seed
//! alone, so a run that is resumed needs nothing but its step. A [`Batch`] is named like the graph's
//! inputs. Files are read twice, line by line: once for the vocabulary, once for the examples.
//!
//! A line that cannot be used is a diagnostic with its file and number, and nothing is trained.

pub mod batch;
mod codebook;
mod collate;
mod encode;
mod examples;
pub mod file;
mod order;
pub mod picture;
mod prepare;
mod read;

pub use batch::{Array, Batch, Labels};
pub use codebook::Codebook;
pub use examples::{Context, Part, Question, Sequences};
pub use order::Loader;
pub use prepare::{Dataset, prepare, proportions};
pub use read::Form;

use std::path::PathBuf;

/// Why data cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A file cannot be opened or read.
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// What is in it cannot be used; the sink says why.
    Data,
}
