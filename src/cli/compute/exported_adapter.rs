//! What a run added to a trained body, alone: the directory of an adapter as the library peft has it, with
//! the names of the body's own library.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use crate::cli::file;
use crate::cli::outcome::{Exit, Failure};
use crate::hub::written::Written;
use crate::learn::adapt::{CONFIG, MODEL, PREFIX};
use crate::read::{self, limit};
use crate::tensor_file::{self, Saved, TensorFile};

/// The ends of the names of what is added to a projection.
const ENDS: [&str; 2] = [".lora_A.weight", ".lora_B.weight"];

/// The tensor that contains this parameter and no other, in the parameter's own layout.
fn tensor<'t>(path: &str, tensors: &'t IndexMap<String, Written>) -> Result<&'t str, Failure> {
    let contains = |written: &Written| written.parts.iter().any(|part| part.path == path);
    let found = tensors.iter().find(|(_, written)| contains(written));
    match found {
        Some((name, written)) if written.parts.iter().all(|part| part.layout.is_whole()) => Ok(name),
        Some((name, _)) => {
            let message = format!(
                "`{name}` contains more than {path}, or contains it in another layout, so peft cannot add \
                 to it"
            );
            Err(Failure::new(Exit::Refused, message)
                .help("without `--adapter` the whole model is exported, with the changes added"))
        }
        None => Err(Failure::bug(format!("{path} has no tensor"))),
    }
}

/// The module of a tensor.
fn module(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(module, _)| module)
}

/// Writes the adapter of a checkpoint into a directory, under these names of the model's tensors. Returns the
/// number of tensors.
///
/// # Errors
/// The checkpoint has no adapter, or the projections that it changes are parts of larger tensors.
pub fn write(checkpoint: &Path, tensors: &IndexMap<String, Written>, to: &Path) -> Result<usize, Failure> {
    let path = checkpoint.join(MODEL);
    if !path.is_file() {
        return Err(Failure::usage("the run adds nothing to a body, so it has no adapter")
            .help("`adapt: {lora: {on: [\"*.query\"]}}` in a recipe trains one"));
    }
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let mut from = TensorFile::open(&path).map_err(|error| failed(error.to_string()))?;
    let (mut adapted, mut saved): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut all: Vec<(String, String, Vec<usize>)> = Vec::new();
    for (name, entry) in from.entries() {
        let own = name.strip_prefix(PREFIX).unwrap_or(name);
        let end = ENDS.into_iter().find(|end| own.ends_with(end));
        let new = match end.and_then(|end| Some((own.strip_suffix(end)?, end))) {
            Some((layer, end)) => {
                let layer = module(tensor(&format!("{layer}.weight"), tensors)?);
                adapted.push(layer.to_owned());
                format!("{PREFIX}{layer}{end}")
            }
            None => {
                let name = tensor(own, tensors)?;
                saved.push(module(name).to_owned());
                format!("{PREFIX}{name}")
            }
        };
        all.push((name.clone(), new, entry.shape.clone()));
    }
    adapted.dedup();
    saved.dedup();
    let shapes: Vec<_> = all.iter().map(|(_, new, shape)| (new.clone(), "F32", shape.clone())).collect();
    let metadata = IndexMap::from([("format".to_owned(), "pt".to_owned())]);
    tensor_file::write(&to.join(MODEL), &shapes, &metadata, |i| {
        let lost = || std::io::Error::other("a tensor is gone");
        let (name, _, shape) = all.get(i).ok_or_else(lost)?;
        let values = from.floats(name).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Saved::floats(shape.clone(), values))
    })
    .map_err(|error| Failure::new(Exit::File, format!("cannot write the adapter: {error}")))?;
    let path = checkpoint.join(CONFIG);
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let bytes = read::bounded(&path, limit::SPEC).map_err(|error| failed(file::reason(&error)))?;
    let mut config: Json = read::json(&bytes).map_err(failed)?;
    // The config of the run names paths of trafoc's; peft looks for modules of the other library.
    config["target_modules"] = json!(adapted);
    config["modules_to_save"] = json!(saved);
    let text = serde_json::to_string_pretty(&config).map_err(|error| Failure::bug(error.to_string()))?;
    file::write(&to.join(CONFIG), &(text + "\n"))?;
    Ok(all.len())
}
