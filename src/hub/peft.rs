//! A directory of the library peft: a low-rank change of a trained body, which is in another directory.
//!
//! The weight `W` of a projection becomes `W + alpha / rank * B A` (Hu et al. 2021). Its two matrices are
//! `base_model.model.NAME.lora_A.weight` `[rank, in]` and `...lora_B.weight` `[out, rank]`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::read::{self, limit};
use crate::tensor_file::{ADAPTER as MODEL, ADAPTER_CONFIG as CONFIG, ADAPTER_PREFIX as PREFIX, TensorFile};

/// The keys of a config that change what is computed, with the values that leave plain low-rank adaptation.
const PLAIN: &[(&str, &[&str])] = &[
    ("peft_type", &["\"LORA\""]),
    ("use_dora", &["false"]),
    ("use_qalora", &["false"]),
    ("use_bdlora", &["false"]),
    ("bias", &["\"none\""]),
    ("lora_bias", &["false"]),
    ("rank_pattern", &["{}"]),
    ("alpha_pattern", &["{}"]),
    ("modules_to_save", &["[]"]),
    ("trainable_token_indices", &["[]", "{}"]),
    ("layer_replication", &["[]"]),
    ("megatron_config", &[]),
    ("alora_invocation_tokens", &["[]"]),
    ("arrow_config", &[]),
    ("target_parameters", &["[]"]),
    ("kasa_config", &[]),
    ("monteclora_config", &[]),
    ("velora_config", &[]),
];

/// A change of a body.
#[derive(Debug)]
pub struct Adapter {
    file: TensorFile,
    /// The path in the file of each tensor of the body that is changed, without the name of the matrix.
    layers: IndexMap<String, String>,
    /// The factor on `B A`.
    scale: f64,
    rank: usize,
    /// Whether the projections have their inputs first.
    is_transposed: bool,
}

/// Whether a directory has a change of a body and no model of its own.
pub fn is_adapter(folder: &Path) -> bool {
    folder.is_dir() && folder.join(CONFIG).is_file() && !folder.join("config.json").is_file()
}

/// What the config says.
fn config(folder: &Path) -> Result<Json, String> {
    let path = folder.join(CONFIG);
    let bytes =
        read::bounded(&path, limit::SPEC).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
    read::json(&bytes).map_err(|why| format!("cannot use `{}`: {why}", path.display()))
}

/// The directory of the body that a change is of; the folder itself if it is a model.
///
/// # Errors
/// The body is not named, or is not a directory here: a sentence without a full stop.
pub fn body_of(folder: &Path) -> Result<PathBuf, String> {
    if !is_adapter(folder) {
        return Ok(folder.to_owned());
    }
    let config = config(folder)?;
    let named = config.get("base_model_name_or_path").and_then(Json::as_str);
    let Some(named) = named.filter(|name| !name.is_empty()) else {
        return Err(format!(
            "`{}` does not name the model that it changes: write its directory as `base_model_name_or_path`",
            folder.join(CONFIG).display()
        ));
    };
    // A path in the file is one from where the command runs, as for peft, or from the file.
    let found = [PathBuf::from(named), folder.join(named)]
        .into_iter()
        .find(|path| path.join("config.json").is_file());
    found.ok_or_else(|| {
        format!(
            "`{}` changes the model `{named}`, which is no directory with a config.json here: write the path \
             of its directory as `base_model_name_or_path`",
            folder.join(CONFIG).display()
        )
    })
}

impl Adapter {
    /// Opens the change in a directory for a body with tensors of these names, which have these shapes.
    ///
    /// # Errors
    /// It is more than plain low-rank adaptation, or does not fit the body: a sentence without a full stop.
    pub fn open<'n>(
        folder: &Path,
        names: impl Iterator<Item = &'n str> + Clone,
        shape: impl Fn(&str) -> Option<Vec<usize>>,
    ) -> Result<Self, String> {
        let config = config(folder)?;
        let named = folder.join(CONFIG);
        for (key, plain) in PLAIN {
            let Some(own) = config.get(*key) else { continue };
            if !own.is_null() && !plain.contains(&own.to_string().as_str()) {
                return Err(format!(
                    "`{}` sets `{key}` to {own}, and only plain low-rank changes can be added to a model: \
                     `merge_and_unload()` of peft adds it",
                    named.display()
                ));
            }
        }
        let number = |key: &str| config.get(key).and_then(Json::as_f64).filter(|n| n.is_finite() && *n > 0.0);
        let is_true = |key: &str| config.get(key).and_then(Json::as_bool) == Some(true);
        let rank = config.get("r").and_then(Json::as_u64).filter(|r| *r > 0);
        let (Some(rank), Some(alpha)) = (rank, number("lora_alpha")) else {
            return Err(format!("`{}` does not have the numbers `r` and `lora_alpha`", named.display()));
        };
        let divisor = if is_true("use_rslora") { (rank as f64).sqrt() } else { rank as f64 };
        let is_transposed = is_true("fan_in_fan_out");
        let rank = usize::try_from(rank).unwrap_or(usize::MAX);
        let file = TensorFile::open(&folder.join(MODEL)).map_err(|error| error.to_string())?;
        let mut adapter = Self { file, layers: IndexMap::new(), scale: alpha / divisor, rank, is_transposed };
        let mut layers: IndexMap<String, usize> = IndexMap::new();
        for name in adapter.file.entries().keys() {
            let own = name.strip_prefix(PREFIX).unwrap_or(name);
            let ends = [".lora_A.weight", ".lora_B.weight"];
            let Some(layer) = ends.iter().find_map(|end| own.strip_suffix(end)) else {
                return Err(format!(
                    "`{}` contains `{name}`, which is no matrix of a low-rank change",
                    folder.join(MODEL).display()
                ));
            };
            let count = layers.entry(layer.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        if layers.is_empty() {
            return Err(format!("`{}` contains no tensors", folder.join(MODEL).display()));
        }
        for (layer, count) in &layers {
            let weight = format!("{layer}.weight");
            // A body that is a part of a model has a prefix there, and none in files of its own.
            let is_same = |name: &&str| {
                let ends =
                    |long: &str, short: &str| long.strip_suffix(short).is_some_and(|p| p.ends_with('.'));
                *name == weight || ends(name, &weight) || ends(&weight, name)
            };
            let mut found = names.clone().filter(is_same);
            let (Some(tensor), None) = (found.next(), found.next()) else {
                return Err(format!("the change is of `{weight}`, which its model does not have"));
            };
            let whole = shape(tensor).unwrap_or_default();
            let (rows, columns) = match (whole.as_slice(), is_transposed) {
                ([rows, columns], false) | ([columns, rows], true) => (*rows, *columns),
                (_, _) => return Err(format!("the change is of `{weight}`, which is no matrix")),
            };
            let own = |end: &str| {
                let entry = adapter.file.entries().get(&format!("{PREFIX}{layer}{end}"));
                entry.map(|entry| entry.shape.clone()).unwrap_or_default()
            };
            let (down, up) = (own(".lora_A.weight"), own(".lora_B.weight"));
            if *count != 2 || down != [rank, columns] || up != [rows, rank] {
                return Err(format!(
                    "the change of `{weight}` {whole:?} has the matrices {down:?} and {up:?}, and it needs \
                     [{rank}, {columns}] and [{rows}, {rank}]"
                ));
            }
            adapter.layers.insert(tensor.to_owned(), layer.clone());
        }
        Ok(adapter)
    }

    /// Adds the change of a tensor to its numbers, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn add(&mut self, name: &str, values: &mut [f32]) -> Result<(), String> {
        let Some(layer) = self.layers.get(name) else { return Ok(()) };
        let named = [".lora_A.weight", ".lora_B.weight"].map(|end| format!("{PREFIX}{layer}{end}"));
        let [down, up] = &named;
        let down = self.file.floats(down).map_err(|error| error.to_string())?;
        let up = self.file.floats(up).map_err(|error| error.to_string())?;
        let rank = self.rank.max(1);
        let parts = |matrix: &[f32]| matrix.len().checked_div(rank).unwrap_or(0);
        let (columns, rows) = (parts(&down), parts(&up));
        for (row, factors) in up.chunks_exact(rank).enumerate() {
            let mut sums = vec![0.0f64; columns];
            for (factor, of_rank) in factors.iter().zip(down.chunks_exact(columns.max(1))) {
                for (sum, value) in sums.iter_mut().zip(of_rank) {
                    *sum += f64::from(*factor) * f64::from(*value);
                }
            }
            for (column, sum) in sums.iter().enumerate() {
                let at = match self.is_transposed {
                    true => column.saturating_mul(rows).saturating_add(row),
                    false => row.saturating_mul(columns).saturating_add(column),
                };
                if let Some(value) = values.get_mut(at) {
                    *value += (sum * self.scale) as f32;
                }
            }
        }
        Ok(())
    }
}
