//! A directory of the library peft: a low-rank change of a trained body, which is in another directory.
//!
//! The weight `W` of a projection becomes `W + alpha / rank * B A` (Hu et al. 2021). Its two matrices are
//! `base_model.model.NAME.lora_A.weight` `[rank, in]` and `...lora_B.weight` `[out, rank]`. A module that was
//! trained as a whole (`modules_to_save`), such as a new head, is in the file under its own name, and takes the
//! place of the body's.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::read::{self, limit};
use crate::tensor_file::{
    ADAPTER as MODEL, ADAPTER_CONFIG as CONFIG, ADAPTER_PREFIX as PREFIX, Entry, TensorFile,
};

/// The keys of a config that change what is computed, with the values that leave plain low-rank adaptation.
const PLAIN: &[(&str, &[&str])] = &[
    ("peft_type", &["\"LORA\""]),
    ("use_dora", &["false"]),
    ("use_qalora", &["false"]),
    ("use_bdlora", &["false"]),
    ("bias", &["\"none\""]),
    ("lora_bias", &["false"]),
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

/// The tasks of peft, with the end of the names of the library's classes for it, and with the head of a spec.
const TASKS: &[(&str, &str, &str)] = &[
    ("SEQ_CLS", "ForSequenceClassification", "classify"),
    ("TOKEN_CLS", "ForTokenClassification", "tag"),
    ("QUESTION_ANS", "ForQuestionAnswering", "span"),
    ("CAUSAL_LM", "ForCausalLM", "lm"),
    ("CAUSAL_LM", "LMHeadModel", "lm"),
    // peft has no tasks for the last two, and names the class.
    ("", "ForMaskedLM", "mlm"),
    ("", "ForImageClassification", "classify"),
];

/// The key in the metadata of the file of tensors that has the names of a new head's classes, as a list in JSON.
/// peft's config has no place for them.
pub const CLASSES: &str = "classes";

/// peft's word for the task of a head, if it has one.
pub fn task_of(head: &str) -> Option<&'static str> {
    TASKS.iter().find(|(task, _, own)| *own == head && !task.is_empty()).map(|(task, ..)| *task)
}

/// A low-rank change of a tensor.
#[derive(Debug)]
struct Change {
    /// The names of `A` and `B` in the file.
    matrices: [String; 2],
    rank: usize,
    /// The factor on `B A`.
    scale: f64,
}

/// A change of a body.
#[derive(Debug)]
pub struct Adapter {
    file: TensorFile,
    /// The low-rank changes, by the names of the body's tensors.
    changes: IndexMap<String, Change>,
    /// The tensors that were trained as a whole, by their names in the body, with those in the file.
    whole: IndexMap<String, String>,
    /// Whether a tensor that was trained as a whole is not in the body, or has another shape there.
    has_new: bool,
    /// Whether the projections have their inputs first.
    is_transposed: bool,
    /// The head of the model that was trained, if the config says so.
    head: Option<&'static str>,
}

/// The numbers of a config that peft's patterns may change for some layers.
struct Numbers<'c> {
    config: &'c Json,
    /// Whether the factor is `alpha / sqrt(rank)`.
    is_stabilised: bool,
}

impl Numbers<'_> {
    /// What a table of patterns says of a layer, or else the usual number.
    fn of(&self, table: &str, usual: &str, layer: &str) -> Option<f64> {
        let patterns = self.config.get(table).and_then(Json::as_object);
        let own = patterns.and_then(|all| all.iter().find(|(pattern, _)| is_of(pattern, layer)));
        let value = own.map(|(_, value)| value).or_else(|| self.config.get(usual))?;
        value.as_f64().filter(|n| n.is_finite() && *n > 0.0)
    }

    /// The rank of a layer's change, and its factor.
    fn of_layer(&self, layer: &str) -> Option<(usize, f64)> {
        let rank = self.of("rank_pattern", "r", layer).filter(|rank| rank.fract() == 0.0)?;
        let alpha = self.of("alpha_pattern", "lora_alpha", layer)?;
        let divisor = if self.is_stabilised { rank.sqrt() } else { rank };
        // Beyond the range of integers it is no length of any axis, and the shapes differ.
        Some((rank as usize, alpha / divisor))
    }
}

/// Whether a pattern of peft is that of a layer: it matches the whole name, or its end after a dot. A dot in it
/// matches any character, as in the regular expressions that peft makes of it.
fn is_of(pattern: &str, layer: &str) -> bool {
    let (is_whole, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (pattern, layer): (Vec<char>, Vec<char>) = (pattern.chars().collect(), layer.chars().collect());
    let mut wanted: Vec<(char, bool)> = Vec::new();
    let mut left = pattern.into_iter();
    while let Some(c) = left.next() {
        match c {
            '\\' => wanted.extend(left.next().map(|c| (c, false))),
            c => wanted.push((c, c == '.')),
        }
    }
    let Some(start) = layer.len().checked_sub(wanted.len()) else { return false };
    let (before, end) = layer.split_at(start);
    let is_end = end.iter().zip(&wanted).all(|(c, (own, is_any))| c == own || *is_any);
    is_end && (before.is_empty() || !is_whole && before.last() == Some(&'.'))
}

/// Whether a pattern is a name, and no other regular expression.
fn is_name(pattern: &str) -> bool {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern).replace("\\.", ".");
    pattern.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Whether a directory has a change of a body and no model of its own.
pub fn is_adapter(folder: &Path) -> bool {
    folder.is_dir() && read::is_there(&folder.join(CONFIG)) && !read::is_there(&folder.join("config.json"))
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
        .find(|path| read::is_there(&path.join("config.json")));
    found.ok_or_else(|| {
        format!(
            "`{}` changes the model `{named}`, which is no directory with a config.json here: write the path \
             of its directory as `base_model_name_or_path`",
            folder.join(CONFIG).display()
        )
    })
}

/// The ends of the names of the two matrices.
const ENDS: [&str; 2] = [".lora_A.weight", ".lora_B.weight"];

/// The modules that were trained as a whole, which are named by their paths or the ends of these.
fn modules(config: &Json) -> Vec<String> {
    let all = config.get("modules_to_save").and_then(Json::as_array).into_iter().flatten();
    all.filter_map(|module| module.as_str().map(str::to_owned)).collect()
}

/// Whether a tensor is in a module that peft would find by this name, which may be the end of its path.
fn is_in(tensor: &str, module: &str) -> bool {
    let mut ends = tensor.match_indices('.').map(|(at, _)| at);
    ends.any(|at| tensor.get(..at).is_some_and(|path| path.ends_with(module)))
}

/// The head of the model that was trained: by its task, or by its class.
fn head_of(config: &Json) -> Option<&'static str> {
    let task = config.get("task_type").and_then(Json::as_str).filter(|task| !task.is_empty());
    let class = config.get("auto_mapping").and_then(|own| own.get("base_model_class")).and_then(Json::as_str);
    let by_task = TASKS.iter().find(|(own, ..)| Some(*own) == task);
    let by_class = || TASKS.iter().find(|(_, end, _)| class.is_some_and(|class| class.ends_with(end)));
    by_task.or_else(by_class).map(|(_, _, head)| *head)
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
        for table in ["rank_pattern", "alpha_pattern"] {
            let patterns = config.get(table).and_then(Json::as_object).into_iter().flatten();
            if let Some((pattern, _)) = patterns.into_iter().find(|(pattern, _)| !is_name(pattern)) {
                return Err(format!(
                    "`{}` has the pattern `{pattern}` in `{table}`, and only names of layers, or their ends, are \
                     supported there: `merge_and_unload()` of peft adds the change to its model",
                    named.display()
                ));
            }
        }
        let is_true = |key: &str| config.get(key).and_then(Json::as_bool) == Some(true);
        let numbers = Numbers { config: &config, is_stabilised: is_true("use_rslora") };
        if numbers.of("", "r", "").is_none() || numbers.of("", "lora_alpha", "").is_none() {
            return Err(format!("`{}` does not have the numbers `r` and `lora_alpha`", named.display()));
        }
        let file = TensorFile::open(&folder.join(MODEL)).map_err(|error| error.to_string())?;
        let saved = modules(&config);
        let mut adapter = Self {
            file,
            changes: IndexMap::new(),
            whole: IndexMap::new(),
            has_new: false,
            is_transposed: is_true("fan_in_fan_out"),
            head: head_of(&config),
        };
        let mut layers: IndexMap<String, usize> = IndexMap::new();
        let mut whole: Vec<(String, String)> = Vec::new();
        for name in adapter.file.entries().keys() {
            let Some(own) = name.strip_prefix(PREFIX) else {
                return Err(format!(
                    "`{}` contains `{name}`, and the names that peft writes begin with `{PREFIX}`",
                    folder.join(MODEL).display()
                ));
            };
            if let Some(layer) = ENDS.iter().find_map(|end| own.strip_suffix(end)) {
                let count = layers.entry(layer.to_owned()).or_default();
                *count = count.saturating_add(1);
            } else if saved.iter().any(|module| is_in(own, module)) {
                whole.push((own.to_owned(), name.clone()));
            } else {
                return Err(format!(
                    "`{}` contains `{name}`, which is neither a matrix of a low-rank change nor in a module of \
                     `modules_to_save`",
                    folder.join(MODEL).display()
                ));
            }
        }
        if layers.is_empty() {
            return Err(format!("`{}` contains no low-rank change", folder.join(MODEL).display()));
        }
        // peft names the heads of several kinds of models, of which a model has one.
        if let (Some(module), true) = (saved.first(), whole.is_empty()) {
            return Err(format!(
                "`{}` names `{module}` in `modules_to_save`, and `{}` does not have it",
                named.display(),
                folder.join(MODEL).display()
            ));
        }
        // A body that is a part of a model has a prefix there, and none in files of its own.
        let in_body = |own: &str| {
            let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|p| p.ends_with('.'));
            let mut found = names.clone().filter(|name| *name == own || ends(name, own) || ends(own, name));
            match (found.next(), found.next()) {
                (Some(tensor), None) => Some(tensor.to_owned()),
                (_, _) => None,
            }
        };
        for (own, name) in whole {
            let there = in_body(&own);
            let is_same = there.as_ref().is_some_and(|tensor| {
                shape(tensor).as_ref() == adapter.file.entries().get(&name).map(|entry| &entry.shape)
            });
            adapter.has_new |= !is_same;
            adapter.whole.insert(there.unwrap_or(own), name);
        }
        for (layer, count) in &layers {
            let weight = format!("{layer}.weight");
            let Some(tensor) = in_body(&weight) else {
                return Err(format!("the change is of `{weight}`, which its model does not have"));
            };
            let whole = shape(&tensor).unwrap_or_default();
            let (rows, columns) = match (whole.as_slice(), adapter.is_transposed) {
                ([rows, columns], false) | ([columns, rows], true) => (*rows, *columns),
                (_, _) => return Err(format!("the change is of `{weight}`, which is no matrix")),
            };
            let Some((rank, scale)) = numbers.of_layer(layer) else {
                return Err(format!(
                    "`{}` gives `{layer}` a rank or a factor that is no positive number",
                    named.display()
                ));
            };
            let matrices = ENDS.map(|end| format!("{PREFIX}{layer}{end}"));
            let [down, up] = matrices.each_ref().map(|name| {
                adapter.file.entries().get(name).map(|entry| entry.shape.clone()).unwrap_or_default()
            });
            if *count != 2 || down != [rank, columns] || up != [rows, rank] {
                return Err(format!(
                    "the change of `{weight}` {whole:?} has the matrices {down:?} and {up:?}, and it needs \
                     [{rank}, {columns}] and [{rows}, {rank}]"
                ));
            }
            adapter.changes.insert(tensor, Change { matrices, rank, scale });
        }
        Ok(adapter)
    }

    /// The tensors that were trained as a whole, by their names in the body.
    pub fn whole(&self) -> impl Iterator<Item = &str> + Clone {
        self.whole.keys().map(String::as_str)
    }

    /// All tensors that it changes or adds.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.changes.keys().map(String::as_str).chain(self.whole())
    }

    /// The tensor in the file that takes the place of the body's, if there is one.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.file.entries().get(self.whole.get(name)?)
    }

    /// Whether it has a tensor that the body does not have with this shape, so that its model is another one.
    pub fn has_new(&self) -> bool {
        self.has_new
    }

    /// The head of the model that was trained, if the config says so.
    pub fn head(&self) -> Option<&'static str> {
        self.head
    }

    /// The names of the classes of a new head, where trafoc wrote the file.
    pub fn classes(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.file.metadata().get(CLASSES)?).ok()
    }

    /// The numbers that take the place of a tensor of the body, if there are any.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn floats(&mut self, name: &str) -> Option<Result<Vec<f32>, String>> {
        let own = self.whole.get(name)?;
        Some(self.file.floats(own).map_err(|error| error.to_string()))
    }

    /// Adds the change of a tensor to its numbers, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn add(&mut self, name: &str, values: &mut [f32]) -> Result<(), String> {
        let Some(Change { matrices, rank, scale }) = self.changes.get(name) else { return Ok(()) };
        let [down, up] = matrices;
        let down = self.file.floats(down).map_err(|error| error.to_string())?;
        let up = self.file.floats(up).map_err(|error| error.to_string())?;
        let rank = (*rank).max(1);
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
                    *value += (sum * scale) as f32;
                }
            }
        }
        Ok(())
    }
}
