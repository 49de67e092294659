//! Whether a recipe fits a spec, and whether its data can be used: what training would say, before anything
//! is trained.

use std::path::Path;

#[cfg(feature = "interp")]
use super::compute::beginning::Beginning;
#[cfg(feature = "learn")]
use super::file;
#[cfg(feature = "learn")]
use super::other_variant::fits;
use super::other_variant::with_variant;
use super::outcome::{Exit, Failure};
use super::shelf::recipe_text;
use super::subject::Subject;
use super::ui::{Ui, counted_where};
use crate::diag::{Severity, Sink};
use crate::field::as_setting::in_quotes;
use crate::learn::recipe::{self, Recipe, agree};
use crate::source::SourceMap;
use crate::spec::ModelSpec;
use crate::syntax::set::parse_setting;
use crate::syntax::text;

/// The option that changes a recipe, with an example of its value.
pub const RECIPE_SETTING: (&str, &str) = ("--with", "steps=100");

/// Reads a recipe with settings such as `steps=100`. Returns its name in messages and the recipe, which is
/// `None` if it has errors; these are in the sink.
///
/// # Errors
/// The recipe cannot be read, or none of that name comes with trafoc.
pub fn read_with(
    sources: &mut SourceMap,
    recipe: &Path,
    with: &[String],
    sink: &mut Sink,
) -> Result<(String, Option<Recipe>), Failure> {
    let (name, bytes) = recipe_text(recipe)?;
    let mut settings = Vec::new();
    for argument in with {
        match parse_setting(sources, RECIPE_SETTING, argument) {
            Ok(setting) => settings.push(setting),
            // The recipe is read nevertheless, so that its own errors are in the same report.
            Err(diagnostic) => sink.push(in_quotes(diagnostic, RECIPE_SETTING.0, argument)),
        }
    }
    let id = text::decode(sources, &name, &bytes, sink);
    let read = id.and_then(|id| recipe::read(sources, id, &settings, sink));
    Ok((name, read))
}

/// Reports what is wrong with a recipe itself, where the spec has errors, so that nothing is known of what it is for. Returns
/// where its errors are and how many, if it has some.
///
/// # Errors
/// As those of [`read_with`].
pub fn alone(recipe: &str, with: &[String], ui: &mut Ui) -> Result<Option<String>, Failure> {
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    read_with(&mut sources, Path::new(recipe), with, &mut sink)?;
    let has_errors = sink.has_errors();
    let found = sink.into_sorted();
    ui.diagnose(&found, &sources);
    Ok(has_errors.then(|| counted_where(recipe, &found, &sources)))
}

/// Checks a recipe with settings such as `steps=100`, whether it fits a spec, and whether its data can be
/// used. Returns the number of warnings.
///
/// # Errors
/// The recipe or its data has errors, which have been reported, or a file of the data cannot be read.
pub fn agreed(subject: &mut Subject, recipe: &str, with: &[String], ui: &mut Ui) -> Result<usize, Failure> {
    let mut sink = Sink::new();
    let (_, mut read) = read_with(&mut subject.sources, Path::new(recipe), with, &mut sink)?;
    let beginning = match &mut read {
        Some(read) => begun(read, subject, ui)?,
        // Without a recipe nothing says what training would start from.
        None => Beginning::default(),
    };
    if let Some(read) = &read {
        agree::check(read, &subject.spec, &subject.graph, beginning.body(), &mut sink);
    }
    // If the recipe has errors, errors in reading the data would only be their consequences.
    let no_file = match read.as_ref().filter(|_| !sink.has_errors()) {
        Some(read) => unreadable(read, subject, &beginning, recipe, &mut sink),
        None => None,
    };
    let found = sink.into_sorted();
    let found = match read.filter(|_| no_file.is_none()) {
        Some(read) => {
            let has_data =
                |spec: &ModelSpec, sink: &mut Sink| has_data(&read, spec, &beginning, &subject.sources, sink);
            with_variant(found, subject, &read, beginning.body(), &has_data)
        }
        None => found,
    };
    let warnings = ui.diagnose(&found, &subject.sources);
    match no_file {
        // A file that cannot be read has an exit code of its own, whatever else is wrong.
        Some(failure) => Err(failure),
        None if found.iter().any(|d| d.severity == Severity::Error) => {
            Err(Failure::new(Exit::Failed, counted_where(recipe, &found, &subject.sources)))
        }
        None => Ok(warnings),
    }
}

/// The weights and the tokenizer that training would start with, for the options that `check` has: none.
#[cfg(feature = "interp")]
fn begun(read: &mut Recipe, subject: &Subject, ui: &mut Ui) -> Result<Beginning, Failure> {
    Beginning::of(&super::compute::beginning::Choice::default(), read, subject, ui)
}

/// Runs cannot be read in a build without the interpreter, so what training would start with is not known.
#[cfg(not(feature = "interp"))]
fn begun(_: &mut Recipe, _: &Subject, _: &mut Ui) -> Result<Beginning, Failure> {
    Ok(Beginning::default())
}

#[cfg(not(feature = "interp"))]
#[derive(Default)]
struct Beginning {
    #[cfg(feature = "learn")]
    inherited: crate::learn::data::Inherited,
}

#[cfg(not(feature = "interp"))]
impl Beginning {
    fn body(&self) -> agree::Body<'_> {
        agree::Body::default()
    }
}

/// Reads the data; a file that cannot be read is a failure of its own.
#[cfg(feature = "learn")]
fn unreadable(
    read: &Recipe,
    subject: &Subject,
    beginning: &Beginning,
    recipe: &str,
    sink: &mut Sink,
) -> Option<Failure> {
    use crate::learn::data::{Refused, prepare, proportions};
    match prepare(read, &subject.spec, &beginning.inherited, &subject.sources, sink) {
        Ok(dataset) => {
            proportions(read, &dataset, sink);
            None
        }
        Err(Refused::File { path, why }) => {
            Some(no_data(&path, &why, recipe, Some((read, &subject.sources))))
        }
        // What is wrong with the data is in the sink.
        Err(Refused::Data) => None,
    }
}

/// Whether the data of a recipe fits a spec.
#[cfg(feature = "learn")]
fn has_data(
    read: &Recipe,
    spec: &ModelSpec,
    beginning: &Beginning,
    sources: &SourceMap,
    sink: &mut Sink,
) -> bool {
    fits(read, spec, &beginning.inherited, sources, sink)
}

/// Data cannot be read in a build without its readers.
#[cfg(not(feature = "learn"))]
fn has_data(_: &Recipe, _: &ModelSpec, _: &Beginning, _: &SourceMap, _: &mut Sink) -> bool {
    true
}

/// Data cannot be read in a build without its readers.
#[cfg(not(feature = "learn"))]
fn unreadable(_: &Recipe, _: &Subject, _: &Beginning, _: &str, _: &mut Sink) -> Option<Failure> {
    None
}

/// Why a file that a recipe names cannot be read, and which key names it, if the recipe has been read. A recipe
/// that comes with trafoc names a copy that the user may have elsewhere.
#[cfg(feature = "learn")]
pub fn no_data(path: &Path, why: &str, name: &str, read: Option<(&Recipe, &SourceMap)>) -> Failure {
    let failure = Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
    let named = read.and_then(|(recipe, sources)| {
        let all = recipe.locations();
        let (key, location) = all.into_iter().find(|(_, location)| location.path(sources) == path)?;
        // What a setting names has no line.
        let from = sources.get(location.span.source).map_or("", |source| source.name.as_str());
        let place = match from.starts_with("--") {
            true => format!("`--with {key}` names it"),
            false => format!("`{key}` names it, in line {} of `{from}`", sources.line(location.span)),
        };
        let near = if path.exists() { None } else { file::alike(path, |_| true) };
        let near = near.and_then(|near| {
            // As the recipe would write it.
            let file = near.file_name()?.to_str()?.to_owned();
            Some(Path::new(&location.text).with_file_name(file).display().to_string())
        });
        Some((key, place, near))
    });
    let key = named.as_ref().map_or("data.train", |(key, ..)| key);
    let failure = match &named {
        Some((_, _, Some(near))) => failure.help(format!("did you mean `{near}`?")),
        Some((_, _, None)) | None => failure,
    };
    let failure = match &named {
        Some((_, place, _)) => failure.help(place.clone()),
        None => failure,
    };
    if let Some(advice) = file::address(&path.to_string_lossy()) {
        failure.help(advice)
    } else if name.starts_with('@') {
        failure.help(format!(
            "`--with {key}=FILE` names a copy of yours; `trafoc new` begins with data that comes with trafoc"
        ))
    } else if path.exists() {
        failure.help(format!("`--with {key}=FILE` names another file"))
    } else {
        failure.help(format!(
            "a path in a recipe is relative to the recipe's folder; `--with {key}=FILE` names another file"
        ))
    }
}
