//! A project for PyTorch, which trains a spec as a recipe says.

use std::path::Path;

use super::beginning::Choice;
use super::body::Started;
use super::prepared::{Fitting, texts};
use crate::cli::new_head::StartArgs;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::{SpecArgs, Subject};
use crate::cli::ui::Ui;
use crate::emit::pytorch::{self, project};
use crate::learn::project::{Begins, project};

/// A project: its texts by the names of their files, and the weights with which its runs begin, if they are
/// not fresh.
pub struct Files {
    /// The model, the programs that train it, and the spec and the recipe for its run.
    pub texts: Vec<(String, String)>,
    /// The weights of the trained model from which it starts.
    pub started: Option<Started>,
}

/// The files of a project.
///
/// # Errors
/// The recipe does not fit the spec, or says what PyTorch cannot do.
pub fn files(
    arguments: &SpecArgs,
    subject: &mut Subject,
    (recipe, with): (&Path, &[String]),
    start: &StartArgs,
    ui: &mut Ui,
) -> Result<Files, Failure> {
    let choice = Choice {
        from_scratch: start.from_scratch,
        has_new_head: start.head.is_some(),
        trains: true,
        families: arguments.families(),
        ..Choice::default()
    };
    let mut read = Fitting::read(subject, recipe, with, &choice, ui)?;
    let beginning = std::mem::take(&mut read.beginning);
    let read = read.warned(subject, ui);
    let named = arguments.as_written(&subject.name);
    let begins = Begins {
        tokenizer: beginning.inherited.tokenizer.as_ref(),
        with_weights: beginning.started.is_some(),
    };
    let project = project(&subject.graph, &subject.spec, &read, &begins, &named).map_err(|why| {
        Failure::new(Exit::Refused, format!("the recipe cannot be written for PyTorch: {why}"))
    })?;
    let model = pytorch::source(&subject.graph, &subject.sources, &named)?;
    let mut all = vec![("model.py".to_owned(), model)];
    all.extend(project::files(&project)?.into_iter().map(|(name, text)| (name.to_owned(), text)));
    // With these `trafoc data` prepares what the project reads, and its run is one that trafoc can use.
    all.extend(texts(subject, &read).into_iter().map(|(name, text)| (name.to_owned(), text)));
    Ok(Files { texts: all, started: beginning.started })
}
