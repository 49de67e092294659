//! A Hugging Face model on the command line: a directory or its `config.json` in place of a spec.

use std::path::{Path, PathBuf};

use super::file;
use super::subject::Subject;
use super::ui::{Exit, Failure, Ui, counted};
use crate::diag::Sink;
use crate::hub::checkpoint::{Checkpoint, CheckpointError};
use crate::hub::mapping::{self, Mapping, parameters};
use crate::hub::shelf::Families;
use crate::hub::tensors::{Tensors, TensorsError};
use crate::hub::{Imported, import};
use crate::names::Names;
use crate::names::check::Keys;
use crate::read;
use crate::spec::load;
use crate::syntax::text;

/// A model that was imported.
#[derive(Debug)]
pub struct HubModel {
    /// The directory its config and weights are in.
    pub folder: PathBuf,
    /// What its family made of the config.
    pub imported: Imported,
    /// The config itself.
    pub config: serde_json::Value,
}

/// The config an argument stands for: `DIR/config.json` for a directory that has one, a JSON file itself.
pub fn config_of(path: &Path) -> Option<PathBuf> {
    let inside = path.join("config.json");
    if path.is_dir() && inside.is_file() {
        return Some(inside);
    }
    (path.is_file() && path.extension().is_some_and(|e| e == "json")).then(|| path.to_owned())
}

/// Reads the families there are, the user's own among them.
///
/// # Errors
/// The folder cannot be read.
pub fn families(folder: Option<&Path>) -> Result<Families, Failure> {
    Families::new(folder).map_err(|why| Failure::new(Exit::File, why))
}

impl HubModel {
    /// Imports a config.
    ///
    /// # Errors
    /// It cannot be read, or its family does not know all of it.
    pub fn open(config: &Path, folder_of_families: Option<&Path>, ui: &mut Ui) -> Result<Self, Failure> {
        let named = config.display().to_string();
        let families = families(folder_of_families)?;
        let bytes = read::spec(config)
            .map_err(|e| Failure::new(Exit::File, format!("cannot read `{named}`: {}", file::reason(&e))))?;
        let mut sources = load::sources();
        let mut sink = Sink::new();
        let folder = config.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let id = text::decode(&mut sources, &named, &bytes, &mut sink);
        let imported = id.and_then(|id| import(&families, &name_of(folder), id, &mut sources, &mut sink));
        let found = sink.into_sorted();
        ui.diagnose(&found, &sources);
        match imported {
            Some(imported) => {
                let config = serde_json::from_slice(&bytes).unwrap_or_default();
                Ok(Self { folder: folder.to_owned(), imported, config })
            }
            None => Err(Failure::new(Exit::Failed, format!("`{named}` has {}", counted(&found)))),
        }
    }
}

impl Subject {
    /// The tensors of a checkpoint against the graph's parameters: by the names of its family, by the
    /// spec's own `weights`, or by the parameters' paths.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn mapping(&self, weights: &Path) -> Result<(Checkpoint, Mapping), Failure> {
        let checkpoint = Checkpoint::open(weights).map_err(|e| checkpoint_failure(&e))?;
        let parameters = parameters(&self.graph)
            .ok_or_else(|| Failure::new(Exit::Refused, "the model is too large for any memory"))?;
        let mapping = match (&self.model, &self.spec.weights) {
            (Some(model), _) => {
                let names = model.imported.names(checkpoint.names());
                mapping::map(&parameters, &names, &model.imported, &checkpoint)
            }
            (None, Some(own)) => mapping::map(&parameters, own.names(), &self.spec.keys(), &checkpoint),
            (None, None) => {
                let names = Names { or_paths: true, ..Names::default() };
                mapping::map(&parameters, &names, &Keys::default(), &checkpoint)
            }
        };
        Ok((checkpoint, mapping))
    }

    /// The numbers of the graph's parameters.
    ///
    /// # Errors
    /// The files do not hold them all, or hold something else.
    pub fn tensors(&self, weights: &Path) -> Result<Tensors, Failure> {
        let (checkpoint, mapping) = self.mapping(weights)?;
        Tensors::new(checkpoint, mapping).map_err(tensors_failure)
    }
}

/// What a model is called: its directory.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().and_then(|n| n.to_str()).unwrap_or("model");
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    match name.trim_matches(['-', '.']) {
        "" => "model".to_owned(),
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("model-{name}"),
        name => name.to_owned(),
    }
}

/// Why weights cannot be read, on the command line.
pub fn checkpoint_failure(error: &CheckpointError) -> Failure {
    let failure = Failure::new(Exit::File, error.to_string());
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The same for numbers.
pub fn tensors_failure(error: TensorsError) -> Failure {
    const SHOWN: usize = 20;
    match error {
        TensorsError::Checkpoint(error) => checkpoint_failure(&error),
        TensorsError::Differ(lines) => {
            let message = "the weights are not those of this model";
            let failure = Failure::new(Exit::File, message);
            let failure = lines.iter().take(SHOWN).fold(failure, |f, line| f.help(line.clone()));
            match lines.len().checked_sub(SHOWN).filter(|n| *n > 0) {
                Some(more) => failure.help(format!(
                    "and {more} more; `trafoc import --dry-run` shows all, of a spec with `--weights`"
                )),
                None => failure,
            }
        }
    }
}
