//! The inputs for `trafoc inspect`: a text of the user, or the first example of a run's own data, as inputs
//! by name.

use serde_json::{Value as Json, json};

use super::beginning::Choice;
use super::failures::{beyond_context, no_token, step_failure};
use super::language::language;
use super::prepared::{Source, prepare_all};
use super::trained::Trained;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::ui::Ui;
use crate::learn::data::{Array, Loader};
use crate::learn::decode::{Beam, Decoder};
use crate::learn::prompt;
use crate::learn::recipe::agree::Task;
use crate::learn::session::{self, files};
use crate::learn::token::{Tokenizer, Unknown};

/// The most tokens of a model's own translation.
const LONGEST: usize = 64;

/// The inputs for a text. The target of a translation model is its own greedy translation.
///
/// # Errors
/// The model does not read text, or a piece of the text has no token.
pub fn of_text(trained: &Trained, text: &str, named: Option<&str>) -> Result<Json, Failure> {
    let context = trained.subject.graph.context;
    let fits = |length: usize| match u64::try_from(length) {
        Ok(n) if n <= context => Ok(()),
        Ok(_) | Err(_) => Err(beyond_context("text", text, length, &trained.subject)),
    };
    let codebook = &trained.codebook;
    let unknown = |unknown: Unknown| no_token(&unknown, "text", text);
    let ids = |tokenizer: Option<&Tokenizer>| match tokenizer {
        Some(tokenizer) => tokenizer.encode(text).map_err(unknown),
        None => Err(Failure::usage("the model does not read text").help("`--inputs FILE` gives its inputs")),
    };
    if named.is_some() && codebook.task != Task::Translate {
        return Err(Failure::usage("only a translation has a `--language`"));
    }
    let inputs = match codebook.task {
        Task::NextToken => {
            let found = prompt::of_text(codebook, text).map_err(unknown)?;
            let found = found.ok_or_else(|| Failure::usage("the text has no token"))?;
            fits(found.tokens.len())?;
            return Ok(json!({ "tokens": [found.tokens] }));
        }
        Task::Translate => {
            let language = language(codebook, named)?;
            let begun = prompt::of_source_text(codebook, text, language).map_err(unknown)?;
            fits(longest(&begun.memory))?;
            let limits = prompt::limits(codebook, trained.subject.graph.context, Some(LONGEST));
            // Without sampling, so that the same text always gives the same picture.
            let greedy = Beam { width: 1, length_penalty: 0.0 };
            let decoder = Decoder::new(&trained.plan, &trained.weights);
            let found = decoder.beam(&begun, &greedy, &limits).map_err(step_failure)?;
            let written = found.first().map(|d| d.tokens.as_slice()).unwrap_or_default();
            // With the start tokens, because the decoder reads them before what it wrote.
            let target: Vec<u32> = begun.tokens.iter().chain(written).copied().collect();
            let mut all = object(&begun.memory);
            all["target"] = json!([target]);
            return Ok(all);
        }
        Task::HiddenToken
        | Task::ClassifyText
        | Task::ClassifyImage
        | Task::Tag
        | Task::Span
        | Task::Embed => {
            let ids = ids(codebook.tokenizer.as_ref())?;
            let inputs = trained.inputs(vec![ids.as_slice()]);
            // With the special tokens around the text, which take positions too.
            fits(longest(&inputs))?;
            inputs
        }
    };
    Ok(object(&inputs))
}

/// The number of tokens in the longest row of any input, `[B, T]` each.
fn longest(inputs: &[(&'static str, Array)]) -> usize {
    inputs.iter().filter_map(|(_, array)| array.shape().get(1).copied()).max().unwrap_or(0)
}

/// The first `count` examples of the part of its data on which a run is evaluated, or as many as are in a
/// batch.
///
/// # Errors
/// The model is not from a run, or the data of the run is no longer available.
pub fn of_data(trained: &Trained, count: u64, ui: &mut Ui) -> Result<Json, Failure> {
    let Some(found) = &trained.found else {
        return Err(Failure::usage("a run needs inputs").help("`--inputs FILE` or `--text TEXT`"));
    };
    let subject = trained.again(&found.file(files::SPEC).display().to_string(), ui)?;
    let prepared = prepare_all(
        subject,
        &found.file(files::RECIPE),
        &[],
        Source::Run(found.root()),
        &Choice::default(),
        ui,
    )
    .map_err(|f| f.help("with `--text TEXT` or `--inputs FILE` no data is needed"))?;
    let split = session::measured(&prepared.recipe, &prepared.dataset);
    let batch = Loader::new(&prepared.dataset).part(split, Some(count)).next();
    let batch = batch.ok_or_else(|| Failure::new(Exit::Failed, "the run's data has no example"))?;
    let are_first = batch.indices.iter().enumerate().all(|(i, index)| i == *index);
    let shown = match batch.indices.len() {
        1 => "the first example".to_owned(),
        n if are_first => format!("the first {n} examples"),
        n => format!("{n} examples from all over"),
    };
    let of = if are_first { "of the" } else { "the" };
    ui.note(&format!("note: shows {shown} {of} {} data", split.word()));
    Ok(object(&batch.inputs))
}

fn object(inputs: &[(&'static str, Array)]) -> Json {
    Json::Object(inputs.iter().map(|(name, array)| ((*name).to_owned(), nested(array))).collect())
}

/// Numbers as nested lists, one level for each axis.
fn nested(array: &Array) -> Json {
    let mut values: Vec<Json> = match array {
        Array::Ints { values, .. } => values.iter().map(|n| json!(n)).collect(),
        Array::Floats { values, .. } => values.iter().map(|n| json!(n)).collect(),
    };
    // From the innermost axis outwards; the outermost is the list itself.
    for size in array.shape().iter().skip(1).rev() {
        // An axis may have the length 0, for which `chunks` would panic.
        values = values.chunks((*size).max(1)).map(|row| Json::Array(row.to_vec())).collect();
    }
    Json::Array(values)
}
