//! A project for PyTorch, which trains a spec as a recipe says.

use std::path::Path;

use super::beginning::Choice;
use super::outcome::{Exit, Failure};
use super::prepared::{Fitting, texts};
use super::subject::{SpecArgs, Subject};
use super::ui::Ui;
use crate::emit::pytorch::{self, project};
use crate::learn::project::project;

/// The files of a project by name: the model, the programs that train it, and the spec and the recipe for its
/// run.
///
/// # Errors
/// The recipe does not fit the spec, or says what PyTorch cannot do.
pub fn files(
    arguments: &SpecArgs,
    subject: &mut Subject,
    recipe: &Path,
    with: &[String],
    ui: &mut Ui,
) -> Result<Vec<(String, String)>, Failure> {
    let choice = Choice { families: arguments.families(), ..Choice::default() };
    let read = Fitting::read(subject, recipe, with, &choice, ui)?;
    if let Some(started) = &read.beginning.started {
        let message = format!(
            "the recipe cannot be written for PyTorch: `start`, because a project begins with fresh weights, and \
             training would start from those of {}",
            started.body.name
        );
        return Err(Failure::new(Exit::Refused, message).help("`trafoc train` starts from trained weights"));
    }
    let read = read.warned(subject, ui);
    let named = arguments.as_written(&subject.name);
    let project = project(&subject.graph, &subject.spec, &read, &named).map_err(|why| {
        Failure::new(Exit::Refused, format!("the recipe cannot be written for PyTorch: {why}"))
    })?;
    let model = pytorch::source(&subject.graph, &subject.sources, &named)?;
    let mut files = vec![("model.py".to_owned(), model)];
    files.extend(project::files(&project)?.into_iter().map(|(name, text)| (name.to_owned(), text)));
    files.extend(texts(subject, &read).into_iter().map(|(name, text)| (name.to_owned(), text)));
    Ok(files)
}
