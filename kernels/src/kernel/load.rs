//! Weights from files.

use std::path::Path;

use burn::prelude::*;
use burn::store::{FloatCastAdapter, ModuleAdapter, ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore};
use burn::tensor::DType;

/// Loads the weights of a safetensors file into a model. The names of the tensors are the paths of the
/// model's fields, and the weights of linear layers are `[out, in]`. Each pair in `renamed` is a segment of
/// paths in the file and the name of the field that it refers to, where these differ.
///
/// # Errors
/// The file cannot be read, or its tensors are not exactly those of the model.
pub fn load_safetensors<M: Module>(
    mut model: M,
    path: impl AsRef<Path>,
    renamed: &[(&str, &str)],
    device: &Device,
) -> Result<M, String> {
    let dtype: DType = device.settings().float_dtype.into();
    // Burn puts the variant of an enum into a path, the files do not.
    let mut store = SafetensorsStore::from_file(path.as_ref()).skip_enum_variants(true);
    // Twice, because of two such segments in a row a pattern finds only the first.
    for (segment, field) in renamed.iter().chain(renamed) {
        store = store.with_key_remapping(format!(r"(^|\.){segment}(\.|$)"), format!("${{1}}{field}${{2}}"));
    }
    // Without the cast, parameters would keep the element type of the file.
    let mut store = store.with_from_adapter(PyTorchToBurnAdapter.chain(FloatCastAdapter::to(dtype)));
    let report = model.load_from(&mut store).map_err(|error| error.to_string())?;
    // Burn refuses a file that lacks a tensor, but accepts one with a tensor that the model does not have,
    // which is a sign of another model.
    if report.unused.is_empty() {
        Ok(model)
    } else {
        Err(format!("no place for {}", report.unused.join(", ")))
    }
}
