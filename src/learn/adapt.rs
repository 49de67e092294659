//! Low-rank adaptation (Hu et al. 2021): which projections get an adapter, and the adapters as files in the
//! layout of the library peft.

use std::io;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::json;

use super::recipe::Recipe;
use super::recipe::adapt::ADDED;
use crate::interp::Weights;
use crate::interp::weights::{Adapter, Layout, WeightsError};
use crate::tensor_file::{self, Saved, TensorFile};
pub use crate::tensor_file::{ADAPTER as MODEL, ADAPTER_CONFIG as CONFIG, ADAPTER_PREFIX as PREFIX};

/// The path of the layer to which a weight belongs: `decoder.blocks.0.attention.query`.
fn layer(path: &str) -> &str {
    // Recipes and peft name layers, and weights are stored under the paths of parameters.
    path.strip_suffix(".weight").unwrap_or(path)
}

/// The adapters that a recipe adds to the projections of a model.
pub fn adapters(recipe: &Recipe, layout: &Layout) -> Vec<Adapter> {
    let Some(lora) = recipe.lora() else { return Vec::new() };
    // Weights that are transposed in memory are those of projections: a pattern may match a norm or an
    // embedding table, too, and these are not adapted.
    let on = layout.iter().filter(|(path, slot)| slot.transposed && lora.is_on(path));
    let adapter = |path: &String| Adapter {
        path: path.clone(),
        added: ADDED.map(|name| format!("{}.{name}", layer(path))),
        rank: usize::try_from(*lora.rank).unwrap_or(usize::MAX),
        scale: lora.scale(),
        dropout: *lora.dropout,
    };
    on.map(|(path, _)| adapter(path)).collect()
}

/// The name of a parameter in peft's files.
fn name(path: &str) -> String {
    // In peft each factor is a layer of its own, with a weight.
    let layer = |end: &str| path.strip_suffix(end);
    match (layer(".lora_a"), layer(".lora_b")) {
        (Some(layer), _) => format!("{PREFIX}{layer}.lora_A.weight"),
        (_, Some(layer)) => format!("{PREFIX}{layer}.lora_B.weight"),
        (None, None) => format!("{PREFIX}{path}"),
    }
}

/// Writes the adapters, and the parameters that started fresh and were trained with them.
///
/// # Errors
/// A file cannot be written.
pub fn save(folder: &Path, recipe: &Recipe, weights: &Weights) -> io::Result<()> {
    let Some(lora) = recipe.lora() else { return Ok(()) };
    let layout = weights.layout();
    let adapters = adapters(recipe, layout);
    let trained: Vec<(&String, Vec<usize>)> = layout
        .iter()
        // Not the adapters alone: a new head was trained with them, and peft restores it from the same file.
        .filter(|(path, slot)| slot.trained && !recipe.is_frozen(path))
        .map(|(path, slot)| (path, slot.shape.clone()))
        .collect();
    let shapes: Vec<_> = trained.iter().map(|(path, shape)| (name(path), "F32", shape.clone())).collect();
    // Hugging Face's library asks the metadata for which framework a file was written.
    let metadata = IndexMap::from([("format".to_owned(), "pt".to_owned())]);
    tensor_file::write(&folder.join(MODEL), &shapes, &metadata, |i| {
        let lost = || io::Error::other("a tensor could not be read back from the device");
        let (path, shape) = trained.get(i).ok_or_else(lost)?;
        Ok(Saved::floats(shape.clone(), weights.values(path).ok_or_else(lost)?))
    })
    .map_err(io::Error::other)?;
    let fresh = trained.iter().filter(|(path, _)| !super::recipe::adapt::is_added(path));
    let mut modules: Vec<&str> =
        fresh.map(|(path, _)| path.rsplit_once('.').map_or(path.as_str(), |(module, _)| module)).collect();
    // The weight and the bias of a module follow each other and both name it.
    modules.dedup();
    let from = recipe.start.as_ref().and_then(|start| start.from.as_ref()).map(|from| from.text.clone());
    // peft would also take the last words of paths as `target_modules`, but a recipe may select some of the
    // layers only.
    let config = json!({
        "peft_type": "LORA", "r": *lora.rank, "lora_alpha": *lora.alpha, "lora_dropout": *lora.dropout,
        "bias": "none", "fan_in_fan_out": false, "inference_mode": true, "base_model_name_or_path": from,
        "target_modules": adapters.iter().map(|adapter| layer(&adapter.path)).collect::<Vec<_>>(),
        "modules_to_save": modules,
    });
    let text = serde_json::to_string_pretty(&config)?;
    crate::write::create(&folder.join(CONFIG), (text + "\n").as_bytes())
}

/// The weights of a checkpoint with separate adapters, so that training can continue. `base` has the weights
/// of the trained model, and `merged` those of the checkpoint, in which the adapters are added up.
///
/// # Errors
/// The file is not one of this model, or the trained model is no longer the one that training started from.
pub fn load(
    file: &Path,
    recipe: &Recipe,
    base: &Weights,
    merged: Weights,
    seed: u64,
) -> Result<Weights, WeightsError> {
    // Weights with the adapters added up cannot be taken apart again: the sums are rounded, and many pairs of
    // factors have the same product.
    let adapters = adapters(recipe, merged.layout());
    let mut file = TensorFile::open(file)?;
    // The projection itself comes from the trained model: that of the checkpoint contains the change already.
    let mut values = IndexMap::new();
    for Adapter { path, added, .. } in &adapters {
        let lost = || WeightsError::Size(format!("the trained model has no {path}"));
        values.insert(path.clone(), base.values(path).ok_or_else(lost)?);
        for path in added {
            values.insert(path.clone(), file.floats(&name(path))?);
        }
    }
    // What the checkpoint has, before the weights and factors of training take its place.
    let before: Vec<Option<Vec<f32>>> = adapters.iter().map(|adapter| merged.values(&adapter.path)).collect();
    let weights = merged.adapted(&adapters, seed)?.replaced(&values)?;
    let whole = weights.merged();
    for (adapter, before) in adapters.iter().zip(before) {
        // Another body with the same shapes would continue without an error, and the changes would not fit
        // it.
        let (now, before) = (whole.values(&adapter.path).unwrap_or_default(), before.unwrap_or_default());
        // The checkpoint's sums may have been rounded on another device.
        let is_near = |(now, before): (&f32, &f32)| (now - before).abs() <= 1e-4 * before.abs().max(1.0);
        if now.len() != before.len() || !now.iter().zip(&before).all(is_near) {
            return Err(WeightsError::Size(format!(
                "{} of the trained model is no longer the one that training started from",
                adapter.path
            )));
        }
    }
    Ok(weights)
}
