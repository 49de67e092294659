//! The tensors of a checkpoint as the parameters of a spec.

use std::path::Path;

use super::directory::checkpoint_failure;
use super::outcome::{Exit, Failure};
use super::subject::Subject;
use super::ui::Ui;
use crate::hub::adapted::without_old_head;
use crate::hub::checkpoint::Checkpoint;
use crate::hub::mapping::{self, Mapping, parameters};
use crate::hub::tensors::{Tensors, TensorsError};
use crate::names::Names;
use crate::names::check::Keys;

impl Subject {
    /// The tensors of a checkpoint against the graph's parameters: by the names of its family, by the
    /// spec's own `weights`, or by the parameters' paths.
    ///
    /// # Errors
    /// The checkpoint cannot be read.
    pub fn mapping(&self, weights: &Path) -> Result<(Checkpoint, Mapping), Failure> {
        let checkpoint = Checkpoint::open(weights).map_err(|e| checkpoint_failure(&e))?;
        let parameters = parameters(&self.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
        let mut mapping = match (&self.model, &self.spec.weights) {
            (Some(model), _) => {
                // Which names a family uses can depend on the file: with or without the prefix of the base
                // model.
                let names = model.imported.names(checkpoint.names());
                mapping::map(&parameters, &names, &model.imported, &checkpoint)
            }
            (None, Some(own)) => mapping::map(&parameters, own.names(), &self.spec.keys(), &checkpoint),
            (None, None) => {
                // Without an entry of its own, every tensor has its parameter's path, with no prefix before
                // it.
                let names = Names { paths: Some(String::new()), ..Names::default() };
                mapping::map(&parameters, &names, &Keys::default(), &checkpoint)
            }
        };
        without_old_head(&checkpoint, &mut mapping);
        Ok((checkpoint, mapping))
    }

    /// The numbers of the graph's parameters.
    ///
    /// # Errors
    /// The files do not contain all of them, or contain others.
    pub fn tensors(&self, weights: &Path) -> Result<Tensors, Failure> {
        let (checkpoint, mapping) = self.mapping(weights)?;
        Tensors::new(checkpoint, mapping).map_err(tensors_failure)
    }
}

/// Why the tensors of a checkpoint are not the parameters of a spec.
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

/// Says that weights in files of fewer bits are written in single precision, as all weights are.
pub fn note_types(path: &Path, ui: &Ui) {
    // What is wrong with the files has been reported.
    let Ok(checkpoint) = Checkpoint::open(path) else { return };
    let types = checkpoint.names().filter_map(|name| checkpoint.entry(name)).map(|own| own.dtype.as_str());
    let types: std::collections::BTreeSet<&str> =
        types.filter(|own| matches!(*own, "BF16" | "F16")).collect();
    if !types.is_empty() {
        let types = types.into_iter().collect::<Vec<_>>().join(" and ");
        ui.note(&format!(
            "note: weights that are {types} there are written as F32, which loses nothing; \
             `from_pretrained(DIR, dtype=...)` reads them in another type"
        ));
    }
}
