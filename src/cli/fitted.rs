//! A template's spec fitted to the user's data, before anything is written.

use std::path::Path;

use super::agreement::no_data;
use super::outcome::{Exit, Failure};
use super::ui::{Ui, counted};
use crate::compile::compile;
use crate::diag::{Diagnostic, Severity, Sink};
use crate::learn::data::{Dataset, Inherited, Refused, prepare};
use crate::learn::recipe;
use crate::source::SourceMap;
use crate::spec::load::{self, NoFiles};
use crate::syntax::Notation;

/// A vocabulary, and a number of classes, that no small data set exceeds.
const MANY: u64 = 1_000_000;

/// The longest contexts that are tried for data whose examples are longer than the template's, in tokens.
const CONTEXTS: &[u64] = &[64, 128, 256, 512];

/// The texts of a template that are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// The spec in YAML, with the numbers of its template.
    pub spec: &'a str,
    /// The recipe, which names the data.
    pub recipe: &'a str,
    /// The file of the recipe, to whose folder the data's path is relative.
    pub path: &'a Path,
    /// Whether a spec is written too, which must fit the data; otherwise only the data is read.
    pub with_spec: bool,
}

/// The result of reading the data for a spec.
struct Attempt {
    sources: SourceMap,
    found: Vec<Diagnostic>,
    outcome: Result<Dataset, Refused>,
}

/// The texts of a template with what the data needs.
#[derive(Debug)]
pub struct Fitted {
    /// The spec in YAML.
    pub spec: String,
    /// The recipe.
    pub recipe: String,
}

/// What a recipe may have instead if the data cannot be read as the template would: a key with its value in
/// the template, and as it is then.
const INSTEAD: &[(&str, &str)] = &[
    // The file has so few examples that none would be held out.
    ("split: {test: 0.1}", "split: {test: 0.25}"),
    ("split: {test: 0.2}", "split: {test: 0.25}"),
    ("split: {validation: 0.05}", "split: {validation: 0.25}"),
    // The text has the character that would mark start and end.
    (r#"tokens: {characters: {boundary: "."}}"#, "tokens: characters"),
    // The lines are longer than the longest context that is tried, as in prose with a paragraph a line.
    ("format: lines", "format: text"),
];

/// The texts of the template, with the vocabulary, the number of classes and the context that the data needs
/// where these follow from the data, and a recipe that reads it.
///
/// # Errors
/// The data cannot be read, or is of another kind.
pub fn fitted(draft: &Draft<'_>, ui: &mut Ui) -> Result<Fitted, Failure> {
    let mut recipe = draft.recipe.to_owned();
    let (mut attempt, mut context) = with_context(draft)?;
    let mut instead = Vec::new();
    for (own, other) in INSTEAD.iter().filter(|(own, _)| draft.recipe.contains(own)) {
        if !attempt.has_failed() {
            break;
        }
        let changed = recipe.replace(own, other);
        let (next, longer) = with_context(&Draft { recipe: &changed, ..*draft })?;
        // If the diagnostics stay the same, this is not their cause.
        if next.outcome.is_ok() || next.messages() != attempt.messages() {
            (recipe, attempt, context) = (changed, next, longer);
            instead.push(format!("`{other}`"));
        }
    }
    let draft = &Draft { recipe: &recipe, ..*draft };
    let by_data = is_by_data(&recipe);
    let dataset = match attempt.outcome {
        Ok(found) => found,
        Err(refused) => return Err(unusable(refused, &attempt.found, &attempt.sources, ui)),
    };
    let tokens = dataset.codebook.tokenizer.as_ref().filter(|_| by_data).map(|t| t.vocab() as u64);
    // A single class leaves nothing to learn, so the template's number stays; data without classes has
    // none.
    let classes = Some(dataset.codebook.classes.len() as u64).filter(|n| *n > 1);
    let mut text = draft.spec.to_owned();
    let mut changed = Vec::new();
    for (key, wanted) in [("vocab", tokens), ("context", context), ("classes", classes)] {
        // A template for another task has no such key, and where the data decides nothing, there is no
        // number.
        let (Some(own), Some(wanted)) = (number(&text, key), wanted) else { continue };
        if own != wanted {
            text = with_number(&text, key, wanted);
            changed.push(format!("`{key}` {wanted}"));
        }
    }
    // Once more with the final numbers, since each was found with the others widened.
    let last = read(&text, draft)?;
    if let Err(refused) = last.outcome {
        return Err(unusable(refused, &last.found, &last.sources, ui));
    }
    if draft.with_spec && !changed.is_empty() {
        ui.note(&format!("note: the spec has {}, as the data needs", changed.join(" and ")));
    }
    if !instead.is_empty() {
        ui.note(&format!("note: the recipe has {}, as the data needs", instead.join(" and ")));
    }
    Ok(Fitted { spec: text, recipe })
}

/// Whether the data decides the size of the vocabulary, as it does where every character, or every word, is a
/// token; other tokenizers are trained to the size that the spec has.
fn is_by_data(recipe: &str) -> bool {
    // The recipe is a template's own text, so how its tokens are written there is known.
    ["{characters", "characters\n", "words\n"]
        .iter()
        .any(|kind| recipe.contains(&format!("\ntokens: {kind}")))
}

/// Reads the data with the template's context, or a longer one in which its examples fit. Which one fits is
/// known only by trying, since it decides which examples are too long.
fn with_context(draft: &Draft<'_>) -> Result<(Attempt, Option<u64>), Failure> {
    let by_data = is_by_data(draft.recipe);
    let own = number(draft.spec, "context");
    let mut attempt = read(&widened(draft.spec, own, by_data), draft)?;
    let mut context = own;
    for longer in CONTEXTS.iter().filter(|n| own.is_some_and(|own| **n > own)) {
        if !attempt.has_failed() {
            break;
        }
        let next = read(&widened(draft.spec, Some(*longer), by_data), draft)?;
        // If the diagnostics stay the same, the context is not their cause.
        if next.outcome.is_err() && next.messages() == attempt.messages() {
            break;
        }
        (attempt, context) = (next, Some(*longer));
    }
    Ok((attempt, context))
}

impl Attempt {
    /// Whether the data was read and is not what the draft needs.
    fn has_failed(&self) -> bool {
        self.outcome.is_err() && self.found.iter().any(|d| d.severity == Severity::Error)
    }

    fn messages(&self) -> Vec<&str> {
        self.found.iter().map(|d| d.message.as_str()).collect()
    }
}

/// A spec for any number of classes and, if it follows from the data, any vocabulary.
fn widened(spec: &str, context: Option<u64>, by_data: bool) -> String {
    let text = with_number(spec, "classes", MANY);
    let text = if by_data { with_number(&text, "vocab", MANY) } else { text };
    context.map_or(text.clone(), |n| with_number(&text, "context", n))
}

/// Reads the draft's data as training would, for this text of a spec.
fn read(spec: &str, draft: &Draft<'_>) -> Result<Attempt, Failure> {
    let mut sources = load::sources();
    let id = sources.add("the spec", spec);
    // Templates extend nothing, so no other files are needed.
    let compiled = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles)?;
    let spec = compiled.spec.ok_or_else(|| Failure::bug("a template is not a valid spec"))?;
    // Its file is not written yet.
    let id = sources.add(format!("{} (to be written)", draft.path.display()), draft.recipe);
    let mut sink = Sink::new();
    let outcome = match recipe::read(&sources, id, &[], &mut sink) {
        Some(recipe) => prepare(&recipe, &spec, &Inherited::default(), &sources, &mut sink),
        None => Err(Refused::Data),
    };
    Ok(Attempt { sources, found: sink.into_sorted(), outcome })
}

fn unusable(refused: Refused, found: &[Diagnostic], sources: &SourceMap, ui: &mut Ui) -> Failure {
    // The vocabulary and the number of classes are placeholders here, so a warning about them says nothing of the
    // user's data.
    let found: Vec<Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
    ui.diagnose(&found, sources);
    match refused {
        Refused::File { path, why } => {
            // Its advice is for someone who has a recipe, which is not written yet.
            let Failure { exit, message, .. } = no_data(&path, &why, "", None);
            Failure::new(exit, message).help("nothing was written")
        }
        Refused::Data => Failure::new(Exit::Failed, format!("the data has {}", counted(&found)))
            .help("nothing was written; `trafoc explain data` says which formats there are"),
    }
}

/// The place of the number of a template's key, which is written there once: `vocab: 30`, `classes: 10`.
fn place(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    // A key of the spec itself comes before one in braces, such as `{classify: {classes: 10}}`.
    let start = text.find(&format!("\n{key}: ")).or_else(|| text.find(&format!(" {key}: ")))?;
    let start = start.checked_add(key.len())?.checked_add(3)?;
    let rest = text.get(start..)?;
    let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (len > 0).then_some(start..start.checked_add(len)?)
}

fn number(text: &str, key: &str) -> Option<u64> {
    text.get(place(text, key)?)?.parse().ok()
}

fn with_number(text: &str, key: &str, value: u64) -> String {
    let mut text = text.to_owned();
    if let Some(place) = place(&text, key) {
        text.replace_range(place, &value.to_string());
    }
    text
}
