//! A spec together with its recipe and data, ready to be trained or evaluated.

use std::path::{Path, PathBuf};

use super::beginning::{Beginning, Choice};
use super::body::Started;
use super::failures::store_failure;
use super::language::no_language;
use super::run_folder::data_of_run;
use crate::cli::agreement::{no_data, read_with};
use crate::cli::other_variant::{fits, with_variant};
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::Subject;
use crate::cli::ui::{Ui, counted_where};
use crate::diag::{Diagnostic, Sink};
use crate::field::Value as _;
use crate::interp::device::Chosen;
use crate::learn::data::store::{self, StoreError};
use crate::learn::data::{Dataset, Inherited, Refused, prepare};
use crate::learn::recipe::{self, Location, Locations, Recipe, agree};
use crate::learn::session::{Job, files};
use crate::spec::ModelSpec;
use crate::spec::expand::expand;
use crate::syntax::{Notation, print};

/// A spec with its recipe and its data.
pub struct Prepared {
    /// The compiled spec, with the changes of the command line.
    pub subject: Subject,
    /// The recipe, which fits the spec.
    pub recipe: Recipe,
    /// The examples as ids or pixels, with the codebook that gives their meaning.
    pub dataset: Dataset,
    /// The folder of prepared data from which it was read, if it was.
    pub folder: Option<PathBuf>,
    /// The weights with which training starts; `None` if all are fresh, or those of a checkpoint.
    pub started: Option<Started>,
}

/// Where the data comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'p> {
    /// The files that the recipe names.
    Files,
    /// A folder of prepared data.
    Folder(&'p Path),
    /// That of the run in this folder: the prepared data with which it began, if that is still there and
    /// fits, else the files that the recipe names.
    Run(&'p Path),
}

impl Prepared {
    /// What a session of training needs, borrowed from here. `documents` are saved with every checkpoint.
    pub fn job<'a>(&'a self, device: &'a Chosen, documents: &'a [(&'static str, String)]) -> Job<'a> {
        let Self { subject, recipe, dataset, .. } = self;
        let (graph, d_model, device) = (&subject.graph, subject.spec.d_model, &device.device);
        Job { graph, d_model, recipe, dataset, device, documents }
    }
}

/// A recipe that fits its spec, with the name that messages give it, and its warnings.
pub struct Fitting {
    /// The recipe, with where training starts written into it.
    pub recipe: Recipe,
    /// What training starts with, for which the recipe was checked.
    pub beginning: Beginning,
    name: String,
    sink: Sink,
}

impl Fitting {
    /// Reads a recipe, and checks that it fits the spec.
    ///
    /// # Errors
    /// The recipe has errors, which have been reported.
    pub fn read(
        subject: &mut Subject,
        recipe: &Path,
        with: &[String],
        choice: &Choice<'_>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let mut sink = Sink::new();
        let (name, read) = read_with(&mut subject.sources, recipe, with, &mut sink)?;
        let Some(mut recipe) = read else { return Err(refused(sink.into_sorted(), subject, &name, ui)) };
        // Before the check, for which it matters whether a parameter that is frozen has trained numbers.
        let beginning = Beginning::of(choice, &mut recipe, subject, ui)?;
        agree::check(&recipe, &subject.spec, &subject.graph, beginning.body(), &mut sink);
        match sink.has_errors() {
            true => {
                let found = for_variant(sink.into_sorted(), subject, &recipe, &beginning);
                Err(refused(found, subject, &name, ui))
            }
            false => Ok(Self { recipe, beginning, name, sink }),
        }
    }

    /// Prints the warnings, and returns the recipe.
    pub fn warned(self, subject: &Subject, ui: &mut Ui) -> Recipe {
        ui.diagnose(&self.sink.into_sorted(), &subject.sources);
        self.recipe
    }
}

/// Reads a recipe, checks that it fits the spec, and reads the data.
///
/// # Errors
/// The recipe or the data has errors, which have been reported, or a file cannot be read.
pub fn prepare_all(
    mut subject: Subject,
    recipe: &Path,
    with: &[String],
    source: Source<'_>,
    choice: &Choice<'_>,
    ui: &mut Ui,
) -> Result<Prepared, Failure> {
    let used = match source {
        Source::Run(root) => Some(root),
        Source::Files | Source::Folder(_) => None,
    };
    // A run whose data is used brings its codebook along, as one that is continued does.
    let choice = Choice { run: choice.run.or(used), ..*choice };
    let read = Fitting::read(&mut subject, recipe, with, &choice, ui)?;
    let Fitting { recipe, beginning, name, mut sink } = read;
    match data(&recipe, &subject, &beginning.inherited, source, &mut sink, ui) {
        Ok((dataset, folder)) => {
            // Which classes there are is known only once the data is read.
            beginning.agree(&dataset, ui)?;
            if dataset.codebook.lacks_language() {
                return Err(no_language());
            }
            // The warnings about a run's data were printed when the run began.
            if !matches!(source, Source::Run(_)) {
                ui.diagnose(&sink.into_sorted(), &subject.sources);
            }
            Ok(Prepared { subject, recipe, dataset, folder, started: beginning.started })
        }
        // What is wrong with the data is in the sink, and counts among the recipe's errors.
        Err(StoreError::Refused(Refused::Data)) => {
            let found = for_variant(sink.into_sorted(), &subject, &recipe, &beginning);
            Err(refused(found, &subject, &name, ui))
        }
        Err(error) => {
            ui.diagnose(&sink.into_sorted(), &subject.sources);
            Err(match error {
                StoreError::Refused(Refused::File { path, why }) => {
                    no_data(&path, &why, &name, Some((&recipe, &subject.sources)))
                }
                other => store_failure(other),
            })
        }
    }
}

/// Reads the data, with the folder of prepared data in which it was, if any.
fn data(
    recipe: &Recipe,
    subject: &Subject,
    inherited: &Inherited,
    source: Source<'_>,
    sink: &mut Sink,
    ui: &Ui,
) -> Result<(Dataset, Option<PathBuf>), StoreError> {
    let (spec, sources) = (&subject.spec, &subject.sources);
    let folder = match source {
        Source::Files => None,
        Source::Folder(folder) => Some(folder.to_owned()),
        Source::Run(root) => data_of_run(root).filter(|folder| store::is_prepared(folder)),
    };
    if let Some(folder) = folder {
        match (store::open(&folder, recipe, spec, inherited, sources, sink), source) {
            (Ok(dataset), _) => {
                // The run records this folder, and may be continued from another working folder.
                let whole = folder.canonicalize().unwrap_or(folder);
                return Ok((dataset, Some(whole)));
            }
            (
                Err(error @ (StoreError::OtherRecipe { .. } | StoreError::OtherSpec { .. })),
                Source::Run(_),
            ) => {
                // A run may be continued or measured with another recipe, which is then read as if no data
                // were prepared.
                ui.note(&format!("note: the recipe's files are read: {error}"));
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok((prepare(recipe, spec, inherited, sources, sink)?, None))
}

/// What is wrong, with the variant of the spec that the recipe fits, if there is one.
fn for_variant(
    found: Vec<Diagnostic>,
    subject: &Subject,
    recipe: &Recipe,
    beginning: &Beginning,
) -> Vec<Diagnostic> {
    let has_data =
        |spec: &ModelSpec, sink: &mut Sink| fits(recipe, spec, &beginning.inherited, &subject.sources, sink);
    with_variant(found, subject, recipe, beginning.body(), &has_data)
}

fn refused(found: Vec<Diagnostic>, subject: &Subject, name: &str, ui: &mut Ui) -> Failure {
    ui.diagnose(&found, &subject.sources);
    Failure::new(Exit::Failed, counted_where(name, &found, &subject.sources))
}

/// The documents of a checkpoint, with which it can be used without any other file.
pub fn documents(prepared: &Prepared) -> Result<Vec<(&'static str, String)>, Failure> {
    let Prepared { subject, recipe, dataset, .. } = prepared;
    let codebook = dataset.codebook.to_json().map_err(|e| Failure::bug(e.to_string()))?;
    let mut documents = texts(subject, recipe);
    documents.push((files::CODEBOOK, codebook));
    Ok(documents)
}

/// The spec and the recipe with all defaults written out and with absolute paths, by their names in a
/// checkpoint.
pub fn texts(subject: &Subject, recipe: &Recipe) -> Vec<(&'static str, String)> {
    let mut recipe = recipe.clone();
    let data = &mut recipe.data;
    for locations in
        [Some(&mut data.train), data.validation.as_mut(), data.test.as_mut()].into_iter().flatten()
    {
        absolute(locations, subject);
    }
    if let Some(recipe::Tokens::File(from)) = &mut recipe.tokens {
        absolute_one(&mut from.path, subject);
        from.merges.iter_mut().for_each(|merges| absolute_one(merges, subject));
    }
    if let Some(from) = recipe.start.as_mut().and_then(|start| start.from.as_mut()) {
        absolute_one(from, subject);
    }
    vec![(files::SPEC, expand(&subject.spec, Notation::Yaml)), (files::RECIPE, print::yaml(&recipe.encode()))]
}

/// Makes paths absolute, because the recipe in a run is in another folder than the original.
fn absolute(locations: &mut Locations, subject: &Subject) {
    locations.0.iter_mut().for_each(|location| absolute_one(location, subject));
}

fn absolute_one(location: &mut Location, subject: &Subject) {
    let path = location.path(&subject.sources);
    // A file that is no longer there keeps its path as written, and is named by it when it is read.
    location.text = path.canonicalize().unwrap_or(path).display().to_string();
}
