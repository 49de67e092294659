//! Measures a model for `trafoc eval`.

use std::fmt::Write as _;

use serde_json::json;

use super::eval::Eval;
use super::generation::step_failure;
use super::trained::Trained;
use super::training::prepare_all;
use super::ui::{Exit, Failure, Output, Ui};
use crate::learn::evaluate::evaluate;
use crate::learn::recipe::Split;
use crate::learn::session::{self, files};

/// Measures.
///
/// # Errors
/// The data does not fit the model.
pub fn measure(arguments: &Eval, ui: &mut Ui) -> Result<Output, Failure> {
    let trained = Trained::open(&arguments.model, ui)?;
    let own = trained.found.as_ref();
    let Some(recipe) = arguments.recipe.clone().or_else(|| own.map(|f| f.file(files::RECIPE))) else {
        return Err(Failure::usage("a spec with weights needs a recipe, which names the data")
            .help("`--recipe FILE`"));
    };
    let spec = own.map_or(arguments.model.model.clone(), |f| f.file(files::SPEC).display().to_string());
    let subject = trained.again(&spec, ui)?;
    // When training ends early is no matter of figures.
    let with: Vec<String> = arguments.with.iter().cloned().chain(["stop=none".to_owned()]).collect();
    let mut prepared = prepare_all(subject, &recipe, &with, ui)?;
    let before = &trained.codebook;
    if before.image.is_some() && trained.subject.model.is_some() {
        let message = "the images of a recipe are prepared as in training here, and not as this model's";
        return Err(Failure::usage(message).help("`trafoc predict` prepares them as the model says"));
    }
    // How another library's model begins and ends a text is no matter of the data.
    prepared.dataset.codebook.writing.clone_from(&before.writing);
    if prepared.dataset.codebook != *before {
        let message = "the data gives another vocabulary or other classes than the model was trained with";
        let failure = Failure::new(Exit::Failed, message);
        return Err(failure.help("the recipe's `data.train` and `tokens` are those of the training"));
    }
    let split = match arguments.split.as_deref() {
        Some("validation") => Split::Validation,
        Some("test") => Split::Test,
        Some(_) => Split::Train,
        None => session::measured(&prepared.recipe, &prepared.dataset),
    };
    if prepared.dataset.part(split).is_none() {
        let message = format!("the recipe's data has no part `{}`", split.word());
        return Err(
            Failure::usage(message).help("add `--with data.split={validation: 0.1}`, or a file of it")
        );
    }
    let limit = prepared.recipe.evaluate.limit.map(|l| *l);
    let all = prepared.dataset.part(split).map_or(0, |part| part.len() as u64);
    if let Some(limit) = limit.filter(|limit| *limit < all) {
        ui.note(&format!(
            "note: the first {limit} of {all} examples of `{}`; `--with evaluate.limit=none` takes all",
            split.word()
        ));
    }
    let metrics = std::mem::take(&mut prepared.recipe.evaluate.metrics);
    let figures = evaluate(&trained.plan, &trained.weights, &prepared.dataset, split, limit, &metrics)
        .map_err(step_failure)?;
    let mut text = String::new();
    let widest = figures.iter().map(|(m, _)| m.word().len()).max().unwrap_or(0);
    for (metric, value) in &figures {
        let _ = writeln!(text, "{:widest$}  {value:.4}", metric.word());
    }
    let data = json!({
        "checkpoint": own.map(|f| f.name()),
        "step": own.map(|f| f.state.step),
        "split": split.word(),
        "figures": session::named(&figures),
    });
    Output::new(text, data)
}
