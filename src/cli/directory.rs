//! A Hugging Face model on the command line: a directory or its `config.json` in place of a spec.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::file;
use super::outcome::{Exit, Failure};
use super::setting::FAMILIES;
use super::settings;
use super::ui::{Ui, counted};
use crate::diag::Sink;
use crate::hub::adapted::own_head;
use crate::hub::checkpoint::CheckpointError;
use crate::hub::new_head::NewHead;
use crate::hub::peft;
use crate::hub::sentence::Sentence;
use crate::hub::shelf::Families;
use crate::hub::{Imported, import_with};
use crate::read;
use crate::spec::load;
use crate::syntax::text::{self, Limits};

/// The file with the tokenizer of a model, or of its source.
pub const TOKENIZER: &str = "tokenizer.json";
/// The file with the tokenizer of the target, if that has a vocabulary of its own.
pub const TARGET_TOKENIZER: &str = "target_tokenizer.json";

/// The file of a Hugging Face model that describes how images become numbers.
pub const PREPROCESSOR: &str = "preprocessor_config.json";
/// The newer file that does so, for all kinds of input.
pub const PROCESSOR: &str = "processor_config.json";

/// A Hugging Face model whose config has been imported. Its weights have not been opened.
#[derive(Debug)]
pub struct HubModel {
    /// The directory its weights are in; or, for a directory of peft, what is added to them.
    pub folder: PathBuf,
    /// The spec and the names of tensors that its family gives for the config.
    pub imported: Imported,
    /// The config as it was read, with the keys that only concern its use.
    pub config: Json,
    /// What a directory of sentence-transformers says in addition, unless the model has another head.
    pub sentence: Option<Sentence>,
}

/// Which head a Hugging Face model gets.
#[derive(Clone, Copy, Debug, Default)]
pub enum With<'a> {
    /// Its own: that of its class, or what a directory of sentence-transformers makes of its body.
    #[default]
    Own,
    /// That of its class alone, as the library transformers reads the directory.
    Class,
    /// Another one, if the model's family has it.
    New(&'a NewHead),
}

/// The config that an argument means: `DIR/config.json` for a directory that has one, that of its body for a
/// directory of peft, or a JSON file itself.
pub fn config_of(path: &Path) -> Option<PathBuf> {
    let inside = path.join("config.json");
    if path.is_dir() && read::is_there(&inside) {
        return Some(inside);
    }
    if peft::is_adapter(path) {
        // The reason why there is no body is reported when the body is opened.
        return peft::body_of(path).ok().map(|body| body.join("config.json"));
    }
    let is_json = path.is_file() && path.extension().is_some_and(|e| e == "json");
    (is_json && !is_spec(path)).then(|| path.to_owned())
}

/// Whether a JSON file is a spec, since YAML can be written so: one says its version.
fn is_spec(path: &Path) -> bool {
    let text = read::spec(path).ok();
    let value: Option<serde_json::Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
    value.is_some_and(|value| value.get("trafo").is_some())
}

/// Checks that the user's own family files are in a folder, also for a spec that needs none of them: a folder that
/// is misspelled would otherwise be noticed only with the first model.
///
/// # Errors
/// There is no such folder.
pub fn permit_families(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder.filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let why = if folder.exists() { "it is not a folder" } else { "there is no such folder" };
    let message = format!("cannot read the families in `{}`: {why}", folder.display());
    let reminder = settings::get().reminder(&FAMILIES, folder.as_os_str());
    Err(Failure::new(Exit::File, message)
        .help(reminder.unwrap_or_else(|| "`--families` names it".to_owned())))
}

/// Whether the folder of the families is the one that a variable or a file names.
pub fn is_standing(folder: &Path) -> bool {
    settings::get().reminder(&FAMILIES, folder.as_os_str()).is_some()
}

/// Reads all families, including the user's own.
///
/// # Errors
/// The folder cannot be read.
pub fn families(folder: Option<&Path>) -> Result<Families, Failure> {
    permit_families(folder)?;
    Families::new(folder).map_err(|why| Failure::new(Exit::File, why))
}

impl HubModel {
    /// As [`open`](Self::open), of a directory whose config this is. A directory of peft has that of its body,
    /// with the head that it brings along, unless another one is given.
    ///
    /// # Errors
    /// The config or the change of the body cannot be read.
    pub fn open_at(
        folder: &Path,
        config: &Path,
        families: Option<&Path>,
        head: With<'_>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        if !peft::is_adapter(folder) {
            return Self::open(config, families, head, ui);
        }
        let own = own_head(folder).map_err(|error| checkpoint_failure(&error))?;
        let head = match (head, &own) {
            // Its class is that of the adapter.
            (With::Own | With::Class, Some(own)) => With::New(&own.head),
            (head, _) => head,
        };
        let mut model = Self::open(config, families, head, ui)?;
        // Weights are read from the adapter, which names its body, and not from the body alone.
        model.folder = folder.to_owned();
        if let (Some(own), Json::Object(keys)) = (own, &mut model.config) {
            // The names of classes in the body's config are those of another head.
            if own.head.classes.is_some() {
                keys.retain(|key, _| !matches!(key.as_str(), "num_labels" | "id2label" | "label2id"));
            }
            if let Some(names) = own.classes {
                let names = names.into_iter().enumerate();
                let names = names.map(|(id, name)| (id.to_string(), Json::String(name)));
                keys.insert("id2label".to_owned(), Json::Object(names.collect()));
            }
        }
        Ok(model)
    }

    /// Imports a config, with another head if one is given and the model's family has it.
    ///
    /// # Errors
    /// The config cannot be read, or has keys that its family does not know.
    pub fn open(
        config: &Path,
        folder_of_families: Option<&Path>,
        head: With<'_>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let named = config.display().to_string();
        let families = families(folder_of_families)?;
        let bytes = read::config(config)
            .map_err(|e| Failure::new(Exit::File, format!("cannot read `{named}`: {}", file::reason(&e))))?;
        let mut sources = load::sources();
        let mut sink = Sink::new();
        // The folder of a bare name is the empty path, which means the working folder.
        let folder = config.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let id = text::decode_within(Limits::CONFIG, &mut sources, &named, &bytes, &mut sink);
        let name = name_of(folder);
        let sentence = match head {
            With::Own => Sentence::of(folder).map_err(|why| {
                let help = "without modules.json the directory is a model of its class";
                Failure::new(Exit::File, why).help(help)
            })?,
            With::Class | With::New(_) => None,
        };
        let of_sentence = sentence.as_ref().map(|own| NewHead::body(Some(own.pooled)));
        let head = match head {
            With::New(head) => Some(head),
            With::Own | With::Class => of_sentence.as_ref(),
        };
        let imported = id.and_then(|id| import_with(&families, &name, id, head, &mut sources, &mut sink));
        let found = sink.into_sorted();
        ui.diagnose(&found, &sources);
        match imported {
            Some(imported) => {
                // The import reads any YAML, such as a text with comments, and the library only JSON.
                let config = read::python_json(&bytes)
                    .map_err(|why| Failure::new(Exit::File, format!("cannot read `{named}`: {why}")))?;
                Ok(Self { folder: folder.to_owned(), imported, config, sentence })
            }
            None => Err(Failure::new(Exit::Failed, format!("`{named}` has {}", counted(&found)))),
        }
    }
}

/// The failure (exit code 4) of a checkpoint that cannot be read, with the advice of its error.
pub fn checkpoint_failure(error: &CheckpointError) -> Failure {
    let failure = Failure::new(Exit::File, error.to_string());
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The name of a model: that of its directory.
fn name_of(folder: &Path) -> String {
    // `.` and `..` have no name of their own.
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().and_then(|n| n.to_str()).unwrap_or("model");
    // The name of a spec becomes part of the names of files and types, in which other characters are trouble.
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    // A file with a dot first is hidden, and a dash first looks like an option.
    match name.trim_matches(['-', '.']) {
        "" => "model".to_owned(),
        // In YAML `7` and `1e5` are numbers, and no name begins with a digit in most languages.
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("model-{name}"),
        name => name.to_owned(),
    }
}
