//! Where an export reads the numbers of parameters from, and the file that it writes.

use std::path::Path;

use indexmap::IndexMap;

use super::outcome::{Exit, Failure};
use super::tensors::tensors_failure;
use super::ui::Ui;
use crate::hub::mapping::Parameters;
use crate::hub::tensors::Tensors;
use crate::hub::written::Written;
use crate::tensor_file::{self, Saved, TensorFile};

/// Where the numbers of the parameters are read from.
pub enum Weights {
    /// A file that trafoc has written, whose tensors have the parameters' paths as names.
    File(TensorFile),
    /// A checkpoint whose tensors have the names of a family or of the spec's own `weights`.
    Named(Box<Tensors>),
}

impl Weights {
    /// The numbers of a parameter, of which there are `count`.
    ///
    /// # Errors
    /// The file cannot be read; one sentence without a full stop.
    pub fn floats(&mut self, path: &str, count: usize) -> Result<Vec<f32>, String> {
        match self {
            Weights::File(file) => file.floats(path).map_err(|e| e.to_string()),
            Weights::Named(tensors) => tensors.sized(path, count).map_err(|e| tensors_failure(e).message),
        }
    }
}

/// Opens a file that trafoc has written, which must have exactly these parameters.
///
/// # Errors
/// The file cannot be read, or has others.
pub fn open(path: &Path, parameters: &Parameters) -> Result<TensorFile, Failure> {
    let file = TensorFile::open(path).map_err(|e| {
        let failure = Failure::new(Exit::File, e.to_string());
        e.advice().into_iter().fold(failure, Failure::help)
    })?;
    let mut lines = Vec::new();
    for (path, shape) in parameters {
        match file.entries().get(path) {
            None => lines.push(format!("missing: {path} {shape:?}")),
            Some(e) if e.shape != *shape => {
                lines.push(format!("{path} has the shape {:?}, the model's has {shape:?}", e.shape))
            }
            Some(_) => {}
        }
    }
    // A tensor too many means another model, whose other tensors may fit by chance.
    let extra = file.entries().keys().filter(|name| !parameters.contains_key(*name));
    lines.extend(extra.map(|name| format!("not in the model: {name}")));
    if lines.is_empty() {
        return Ok(file);
    }
    let failure =
        Failure::new(Exit::File, format!("{} does not contain this model's parameters", path.display()));
    // If it is another model, every tensor differs, and the first lines show that.
    Err(lines.into_iter().take(20).fold(failure, Failure::help))
}

/// Writes the tensors of a directory.
///
/// # Errors
/// A parameter cannot be read, or the file cannot be written.
pub fn write(path: &Path, tensors: &IndexMap<String, Written>, weights: &mut Weights) -> Result<(), Failure> {
    let shapes: Vec<_> = tensors.iter().map(|(name, t)| (name.clone(), "F32", t.shape.clone())).collect();
    // Many versions of transformers refuse a file of weights without this entry.
    let metadata = IndexMap::from([("format".to_owned(), "pt".to_owned())]);
    let fail = std::io::Error::other;
    tensor_file::write(path, &shapes, &metadata, |i| {
        let (_, tensor) = tensors.get_index(i).ok_or_else(|| fail("a tensor is gone".to_owned()))?;
        // One tensor at a time, so that a model larger than the memory can be exported.
        let mut values = vec![tensor.rest; tensor.shape.iter().product()];
        for part in &tensor.parts {
            let numbers = weights.floats(&part.path, part.count()).map_err(fail)?;
            if !part.put(&numbers, &mut values) {
                return Err(fail(format!("{} does not fit its tensor", part.path)));
            }
        }
        Ok(Saved::floats(tensor.shape.clone(), values))
    })
    .map_err(|e| Failure::new(Exit::File, format!("cannot write weights: {e}")))
}

/// Ends of names of tensors that Hugging Face's library computes itself and no longer keeps in files.
const COMPUTED: &[&str] = &[
    ".attn.bias",
    ".attention.bias",
    "masked_bias",
    "causal_mask",
    "position_ids",
    "inv_freq",
    "embed_positions",
    "embed_positions.weight",
    "relative_position_index",
    "slope_rate",
    "_decay",
];

impl Weights {
    /// The tensors of a model's own directory that no parameter of the spec is read from, such as a head of another
    /// task, unless they are written all the same or are computed by the library.
    pub fn not_written(&self, written: &IndexMap<String, Written>) -> Vec<String> {
        let Weights::Named(tensors) = self else { return Vec::new() };
        let is_end = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        // A directory may have its names with or without the prefix of the body.
        let is_there = |name: &str| written.keys().any(|own| is_end(own, name) || is_end(name, own));
        let is_computed = |name: &str| COMPUTED.iter().any(|end| name.ends_with(end));
        let lost = tensors.unread().into_iter().filter(|name| !is_computed(name) && !is_there(name));
        lost.map(str::to_owned).collect()
    }
}

/// Says which tensors of a directory are not written.
pub fn note_not_written(names: &[String], ui: &Ui) {
    const SHOWN: usize = 3;
    if names.is_empty() {
        return;
    }
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!(" and {more} more"),
        None => String::new(),
    };
    ui.note(&format!(
        "note: these tensors are not written, because no parameter of the spec is read from them: {}{more}",
        shown.join(", ")
    ));
}
