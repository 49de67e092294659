//! Decodes for `trafoc generate`: prompts, choices, texts as they are written.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use serde::Serialize;
use serde_json::json;

use super::execute::run_failure;
use super::file;
use super::generate::Generate;
use super::trained::Trained;
use super::training::prepare_all;
use super::ui::{Exit, Failure, Format, Output, Ui, print};
use crate::interp::run::RunError;
use crate::learn::choose::Sampling;
use crate::learn::data::{Codebook, Part};
use crate::learn::decode::{Beam, Decoded, Decoder, Prompt};
use crate::learn::prompt;
use crate::learn::recipe::Split;
use crate::learn::recipe::agree::Task;
use crate::learn::session::files;
use crate::learn::step::StepError;
use crate::learn::token::Tokenizer;
use crate::read::{self, limit};

/// Prompts that are decoded together.
const TOGETHER: usize = 64;

/// One text that was written.
#[derive(Debug, Serialize)]
struct Written {
    prompt: String,
    text: String,
    tokens: usize,
    log_probability: f64,
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'static str>,
}

/// Writes texts.
///
/// # Errors
/// The model is not one that writes, or a prompt does not fit it.
pub fn generate(arguments: &Generate, ui: &mut Ui) -> Result<Output, Failure> {
    let trained = Trained::open(&arguments.model, ui)?;
    let codebook = &trained.codebook;
    let task = codebook.task;
    if !matches!(task, Task::NextToken | Task::Translate) {
        return Err(Failure::usage(format!("`{}` writes no text", trained.subject.spec.head.part()))
            .help("`trafoc predict` uses it"));
    }
    let texts = prompts(arguments, task)?;
    let Some(tokenizer) = &codebook.tokenizer else {
        return Err(Failure::bug("a codebook without a tokenizer"));
    };
    let made: Vec<Prompt> =
        texts.iter().map(|text| made(codebook, text, arguments)).collect::<Result<_, _>>()?;
    let context = trained.subject.graph.context;
    let limits = prompt::limits(codebook, context, arguments.max_tokens);
    for (text, prompt) in texts.iter().zip(&made) {
        let length = prompt.tokens.len();
        if length > limits.context {
            let message =
                format!("the prompt `{}` has {length} tokens, the model's context {context}", cut(text));
            return Err(Failure::usage(message));
        }
    }
    let known = if arguments.known { Some(known(&trained, ui)?) } else { None };
    let decoder = Decoder::new(&trained.plan, &trained.weights);
    let count = usize::try_from(arguments.count).unwrap_or(usize::MAX);
    let joined = |i: usize, own: &str| match task {
        Task::NextToken => format!("{}{own}", texts[i]),
        _ => own.to_owned(),
    };
    let mut streamed = false;
    let written: Vec<(usize, Decoded)> = match arguments.beam {
        Some(width) => {
            let width = usize::try_from(width).unwrap_or(usize::MAX).max(count);
            let beam = Beam { width, length_penalty: arguments.length_penalty };
            let mut out = Vec::new();
            for (i, prompt) in made.iter().enumerate() {
                let found = decoder.beam(prompt, &beam, &limits).map_err(step_failure)?;
                out.extend(found.into_iter().take(count).map(|decoded| (i, decoded)));
            }
            out
        }
        None => {
            let usual = if task == Task::NextToken { 1.0 } else { 0.0 };
            let temperature = arguments.temperature.unwrap_or(usual);
            refuse_what_draws(arguments, temperature)?;
            let how = Sampling {
                temperature,
                top_k: arguments.top_k.map(|k| usize::try_from(k).unwrap_or(usize::MAX)),
                top_p: arguments.top_p,
                min_p: arguments.min_p,
                repetition_penalty: arguments.repetition_penalty,
            };
            let all: Vec<usize> = (0..made.len()).flat_map(|i| std::iter::repeat_n(i, count)).collect();
            streamed = all.len() == 1
                && arguments.format.format == Format::Text
                && !arguments.known
                && io::stdout().is_terminal();
            let mut stream =
                Stream { tokenizer, stop: &arguments.stop, tokens: vec![], shown: String::new() };
            if streamed {
                stream.show(&joined(0, ""))?;
            }
            let mut out = Vec::new();
            for (at, chunk) in all.chunks(TOGETHER).enumerate() {
                let prompts: Vec<Prompt> = chunk.iter().map(|i| made[*i].clone()).collect();
                let mut own: Vec<Vec<u32>> = vec![Vec::new(); prompts.len()];
                let seed = arguments.seed.wrapping_add((at as u64) << 32);
                let mut failed = None;
                let decoded = decoder.sample(&prompts, &how, &limits, seed, &mut |i, token| {
                    own[i].push(token);
                    if streamed && let Err(failure) = stream.told(token) {
                        failed = Some(failure);
                        return false;
                    }
                    !has_stop(tokenizer, &own[i], &arguments.stop)
                });
                let decoded = decoded.map_err(step_failure)?;
                if let Some(failure) = failed {
                    return Err(failure);
                }
                out.extend(chunk.iter().copied().zip(decoded));
            }
            out
        }
    };
    let is_cut = |(_, decoded): &&(usize, Decoded)| !decoded.ended && decoded.tokens.len() >= limits.most;
    let cut = written.iter().filter(is_cut).count();
    if cut > 0 && task == Task::Translate && arguments.max_tokens.is_none() {
        let whose = if codebook.writing.is_some() { "its model" } else { "an example of its data" };
        ui.note(&format!(
            "note: {cut} of {} translations did not end within {} tokens, the most that {whose} has; \
             `--max-tokens N` sets another limit",
            written.len(),
            limits.most
        ));
    }
    let mut shown = Vec::new();
    for (i, decoded) in &written {
        let (own, is_cut) = until_stop(tokenizer.decode(&decoded.tokens), &arguments.stop);
        let text = joined(*i, &own);
        shown.push(Written {
            prompt: texts[*i].clone(),
            known: known.as_ref().map(|k| k.part_of(&text)),
            text,
            tokens: decoded.tokens.len(),
            log_probability: decoded.log_probability,
            ended: decoded.ended || is_cut,
        });
    }
    let text: String = match streamed {
        true => "\n".to_owned(),
        false => shown
            .iter()
            .map(|w| match w.known {
                Some(known) => format!("{}\t{known}\n", w.text),
                None => format!("{}\n", w.text),
            })
            .collect(),
    };
    Output::new(text, json!({ "texts": shown, "max_tokens": limits.most }))
}

/// At temperature 0 nothing is drawn, and what says how would do nothing.
fn refuse_what_draws(arguments: &Generate, temperature: f64) -> Result<(), Failure> {
    if arguments.count > 1 && temperature == 0.0 {
        let count = arguments.count;
        let message = format!(
            "`-n {count}` would write {count} times the same: at temperature 0 the best token is taken"
        );
        return Err(Failure::usage(message)
            .help(format!("`--beam {count}` searches for as many, `--temperature 1` draws them")));
    }
    let given = [
        ("--top-k", arguments.top_k.is_some()),
        ("--top-p", arguments.top_p.is_some()),
        ("--min-p", arguments.min_p.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given && temperature == 0.0) {
        Some((option, _)) => {
            let message =
                format!("`{option}` would change nothing: at temperature 0 the best token is taken");
            Err(Failure::usage(message).help("`--temperature 1` draws"))
        }
        None => Ok(()),
    }
}

fn prompts(arguments: &Generate, task: Task) -> Result<Vec<String>, Failure> {
    if let Some(path) = &arguments.prompts {
        let failed = |why: String| {
            Failure::new(Exit::File, format!("cannot read prompts from `{}`: {why}", path.display()))
        };
        let bytes = read::once(path, limit::TEXTS).map_err(|e| failed(file::reason(&e)))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
        return Ok(text.lines().map(str::to_owned).collect());
    }
    match (arguments.prompt.is_empty(), task) {
        (false, _) => Ok(arguments.prompt.clone()),
        (true, Task::NextToken) => Ok(vec![String::new()]),
        (true, _) => {
            Err(Failure::usage("a translation needs a text").help("`--prompt TEXT`, or `--prompts FILE`"))
        }
    }
}

fn made(codebook: &Codebook, text: &str, arguments: &Generate) -> Result<Prompt, Failure> {
    let unknown = |what: &str| {
        Failure::usage(format!("the model has no token for {what} of the prompt `{}`", cut(text)))
    };
    if codebook.task == Task::NextToken {
        if arguments.language.is_some() {
            return Err(Failure::usage("a language model has no `--language`"));
        }
        let prompt = prompt::of_text(codebook, text).map_err(|u| unknown(&u.what))?;
        return prompt.ok_or_else(|| {
            Failure::usage("the model has no mark of the start, and needs a prompt").help("`--prompt TEXT`")
        });
    }
    let language = language(codebook, arguments.language.as_deref())?;
    prompt::of_source_text(codebook, text, language).map_err(|u| unknown(&u.what))
}

/// What says which language a translation is in: the language's index, or its token in another library's model.
///
/// # Errors
/// The model has no such language, or several and none is named.
pub fn language(codebook: &Codebook, named: Option<&str>) -> Result<Option<u32>, Failure> {
    let languages = &codebook.languages;
    let there_are = |failure: Failure| Err(failure.help(format!("there are {}", languages.join(", "))));
    match named {
        Some(name) if codebook.writing.is_some() => language_token(codebook, name).map(Some),
        Some(name) => match languages.iter().position(|l| l == name) {
            Some(index) => Ok(u32::try_from(index).ok()),
            None if languages.is_empty() => Err(Failure::usage("the model has one language only")),
            None => there_are(Failure::usage(format!("the model has no language `{name}`"))),
        },
        None if languages.is_empty() => Ok(None),
        None => there_are(Failure::usage("the model has several languages, and needs `--language NAME`")),
    }
}

/// The token that stands for a language in another library's model: `fr_XX`, or `__fr__`.
fn language_token(codebook: &Codebook, name: &str) -> Result<u32, Failure> {
    let Some(Tokenizer::Subword(tokenizer)) = &codebook.tokenizer else {
        return Err(Failure::bug("a codebook without a tokenizer"));
    };
    let found = tokenizer.id(name).or_else(|| tokenizer.id(&format!("__{name}__")));
    found.ok_or_else(|| {
        Failure::usage(format!("the model's vocabulary has no token for the language `{name}`"))
            .help("such models write it like `fr_XX` or `__fr__`")
    })
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

/// Whether a text has come to one of its stops. Only the end is looked at.
fn has_stop(tokenizer: &Tokenizer, tokens: &[u32], stops: &[String]) -> bool {
    let Some(longest) = stops.iter().map(String::len).max() else { return false };
    // A stop of n bytes lies within the last n tokens and one more.
    let from = tokens.len().saturating_sub(longest + 1);
    let tail = tokenizer.decode(tokens.get(from..).unwrap_or(tokens));
    stops.iter().any(|stop| !stop.is_empty() && tail.contains(stop.as_str()))
}

/// A text up to the first of its stops, and whether there was one.
fn until_stop(text: String, stops: &[String]) -> (String, bool) {
    let first = stops.iter().filter(|s| !s.is_empty()).filter_map(|stop| text.find(stop.as_str())).min();
    match first {
        Some(at) => (text.get(..at).unwrap_or("").to_owned(), true),
        None => (text, false),
    }
}

/// Shows a text on a terminal as it is written.
struct Stream<'a> {
    tokenizer: &'a Tokenizer,
    stop: &'a [String],
    tokens: Vec<u32>,
    shown: String,
}

impl Stream<'_> {
    fn show(&self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|e| Failure::new(Exit::File, format!("cannot write to stdout: {e}")))
    }

    fn told(&mut self, token: u32) -> Result<(), Failure> {
        self.tokens.push(token);
        let (text, _) = until_stop(self.tokenizer.decode(&self.tokens), self.stop);
        // A character of several tokens is not whole before its last one, a stop not before it is there.
        let held = self.stop.iter().flat_map(|s| (1..s.len()).filter_map(|n| s.get(..n)));
        let held = held.filter(|part| text.ends_with(part)).map(str::len).max().unwrap_or(0);
        let end = text.len() - held;
        if let Some(new) = text.get(self.shown.len()..end)
            && text.starts_with(&self.shown)
            && !new.ends_with('\u{fffd}')
        {
            self.show(new)?;
            self.shown.push_str(new);
        }
        Ok(())
    }
}

/// The texts of a run's data.
struct Known(Vec<(&'static str, BTreeSet<String>)>);

impl Known {
    fn part_of(&self, text: &str) -> &'static str {
        self.0.iter().find(|(_, texts)| texts.contains(text)).map_or("new", |(part, _)| part)
    }
}

fn known(trained: &Trained, ui: &mut Ui) -> Result<Known, Failure> {
    let Some(found) = &trained.found else {
        return Err(Failure::usage("`--known` needs the folder of a run, which names its data"));
    };
    let spec = found.file(files::SPEC).display().to_string();
    let subject = trained.again(&spec, ui)?;
    let prepared = prepare_all(subject, &found.file(files::RECIPE), &[], ui)?;
    let mut all = Vec::new();
    for split in [Split::Train, Split::Validation, Split::Test] {
        let texts = match (prepared.dataset.part(split), &trained.codebook.tokenizer) {
            (Some(Part::Texts { ids, .. }), Some(tokenizer)) => {
                (0..ids.len()).map(|i| tokenizer.decode(ids.get(i))).collect()
            }
            (Some(Part::Pairs { texts, .. }), _) => texts.iter().map(|(_, target)| target.clone()).collect(),
            (_, _) => BTreeSet::new(),
        };
        all.push((split.word(), texts));
    }
    Ok(Known(all))
}

/// Why a model cannot be run on what it is given.
pub fn step_failure(error: StepError) -> Failure {
    match error {
        StepError::Run(error @ (RunError::TooLarge(_) | RunError::DoesNotFit(_))) => run_failure(error, ""),
        StepError::Run(error) => Failure::usage(error.to_string().lines().collect::<Vec<_>>().join("; ")),
        StepError::Labels(why) => Failure::new(Exit::Failed, why),
        StepError::Device(why) => Failure::new(Exit::Device, why),
    }
}
