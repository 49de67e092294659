//! What commands need that compute with a model: opening it, preparing its data, running and training it, and
//! reporting the results.
//!
//! All of it needs the interpreter; the commands themselves are in the folder above.

pub(super) mod batch;
pub(super) mod beginning;
pub(super) mod body;
pub(super) mod captured;
pub(super) mod changes;
pub(super) mod companions;
pub(super) mod contents;
mod continuation;
pub(super) mod example;
pub(super) mod execute;
pub(super) mod exported_adapter;
pub(super) mod exported_run;
pub(super) mod failures;
pub(super) mod forecast;
pub(super) mod generation;
pub(super) mod head;
pub(super) mod language;
pub(super) mod live;
pub(super) mod measure;
pub(super) mod observe;
mod pace;
pub(super) mod packing;
pub(super) mod prediction;
pub(super) mod preparation;
pub(super) mod prepared;
pub(super) mod project;
pub(super) mod reproduction;
pub(super) mod rivals;
pub(super) mod run_folder;
pub(super) mod signals;
pub(super) mod timing;
pub(super) mod trained;
pub(super) mod training;
