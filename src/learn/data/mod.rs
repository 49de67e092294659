//! From files to examples to batches.
//!
//! [`prepare`] reads the files that a recipe names, trains or reads the tokenizer, and keeps every example
//! as numbers. A [`Loader`] then produces the batches of any training step: their order follows from the
//! seed alone, so a resumed run needs only the number of its step. A [`Batch`] is named like the graph's
//! inputs. Files are read twice, line by line: once for the vocabulary, once for the examples.
//!
//! A folder of prepared data ([`store`]) takes the place of the files, for this and other programs.
//!
//! A line that cannot be used is a diagnostic with its file and number, and then nothing is trained.

pub mod batch;
mod codebook;
mod collate;
mod dataset;
mod encode;
mod examples;
pub mod file;
mod fingerprint;
mod form;
mod inherited;
mod order;
pub mod picture;
mod prepare;
pub mod read;
pub mod shipped;
pub mod store;

pub use batch::{Array, Batch, Labels};
pub use codebook::Codebook;
pub use dataset::{Dataset, TextToTry};
pub use examples::{Context, Part, Question, Sequences};
pub use fingerprint::Fingerprint;
pub use form::Form;
pub use inherited::Inherited;
pub use order::{Loader, ORDER, Order};
pub use prepare::{positions, prepare, proportions};

use std::path::PathBuf;

/// The reason why data cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A file cannot be opened or read.
    File {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the file, in lower case without a full stop.
        why: String,
    },
    /// The content cannot be used; the diagnostics are in the sink.
    Data,
}
