//! `trafoc check`: is the spec right, and what is it?

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::shelf::recipe_text;
use super::subject::{OverArgs, Subject};
use super::ui::{Exit, Failure, FormatArg, Output, Ui, counted};
use crate::diag::{Severity, Sink};
use crate::learn::recipe::{self, agree};
use crate::report::number;
use crate::report::summary::{Summary, summary};
use crate::syntax::text;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Spec files, `-` for stdin, or shipped specs such as `@gpt1`
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<String>,
    #[command(flatten)]
    over: OverArgs,
    /// Hold this recipe, a file or a shipped one such as `@gbt-mulm`, against every spec, too
    #[arg(long, value_name = "FILE")]
    recipe: Option<String>,
    /// Warnings fail too
    #[arg(long)]
    strict: bool,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

/// What became of one spec.
#[derive(Serialize)]
struct Checked {
    spec: String,
    ok: bool,
    variants: usize,
    summary: Option<Summary>,
}

impl Check {
    /// Checks every spec, and every variant of its sweep.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        if let [only] = self.specs.as_slice() {
            let checked = self.check(only, ui)?;
            let text = checked.summary.as_ref().map_or(String::new(), ToString::to_string);
            let text = if ui.is_quiet() { String::new() } else { text };
            return Output::new(text, json!({ "specs": [checked] }));
        }
        let mut all = Vec::new();
        let mut worst = Exit::Ok;
        let mut text = String::new();
        for spec in &self.specs {
            match self.check(spec, ui) {
                Ok(checked) => {
                    if let Some(summary) = &checked.summary {
                        text += &line(spec, summary);
                    }
                    all.push(checked);
                }
                Err(failure) if failure.exit == Exit::Bug => return Err(failure),
                Err(failure) => {
                    text += &format!("{spec}: {}\n", failure.message);
                    worst = failure.exit;
                    all.push(Checked { spec: spec.clone(), ok: false, variants: 0, summary: None });
                }
            }
        }
        let text = if ui.is_quiet() { String::new() } else { text };
        Ok(Output { exit: worst, ..Output::new(text, json!({ "specs": all }))? })
    }

    fn check(&self, spec: &str, ui: &mut Ui) -> Result<Checked, Failure> {
        let mut subject: Subject = self.over.compile(spec, ui)?;
        if let Some(recipe) = &self.recipe {
            subject.warnings += agreed(&mut subject, recipe, ui)?;
        }
        let variants = subject.variants();
        if self.strict && subject.warnings > 0 {
            let message = format!("`{}` has warnings, and `--strict` lets none through", subject.name);
            return Err(Failure::new(Exit::Failed, message));
        }
        match variants {
            0 => {}
            1 => ui.note("the variant of its sweep is right too"),
            _ => ui.note(&format!("all {variants} variants of its sweep are right too")),
        }
        Ok(Checked { spec: spec.to_owned(), ok: true, variants, summary: Some(summary(&subject.graph)) })
    }
}

/// Whether a recipe agrees with a spec. How many warnings there are.
fn agreed(subject: &mut Subject, recipe: &str, ui: &mut Ui) -> Result<usize, Failure> {
    let (name, bytes) = recipe_text(Path::new(recipe))?;
    let mut sink = Sink::new();
    let id = text::decode(&mut subject.sources, &name, &bytes, &mut sink);
    let read = id.and_then(|id| recipe::read(&subject.sources, id, &[], &mut sink));
    if let Some(read) = &read {
        agree::check(read, &subject.spec, &subject.graph, &mut sink);
    }
    let found = sink.into_sorted();
    ui.diagnose(&found, &subject.sources);
    match found.iter().any(|d| d.severity == Severity::Error) {
        true => Err(Failure::new(Exit::Failed, format!("`{recipe}` has {}", counted(&found)))),
        false => Ok(found.len()),
    }
}

fn line(spec: &str, summary: &Summary) -> String {
    let parameters = number::count_with_short(summary.parameters.total);
    format!("{spec}: ok, {}, {parameters} parameters\n", summary.kind.words())
}
