//! Decodes for `trafoc generate`: prompts, sampling or beam search, and the texts.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use super::beginning::Choice;
use super::companions::left_aside;
use super::continuation::{Begun, Ending, Stream, until_stop};
use super::failures::{beyond_context, cut, no_token, step_failure, too_long};
use super::language::language;
use super::prepared::{Source, prepare_all};
use super::trained::Trained;
use crate::cli::command::Command;
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::generate::{Data, Generate, Written};
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::learn::choose::Sampling;
use crate::learn::data::{Codebook, Part};
use crate::learn::decode::{Beam, Decoded, Decoder, Prompt};
use crate::learn::prompt;
use crate::learn::recipe::Split;
use crate::learn::recipe::agree::Task;
use crate::learn::session::files;
use crate::read::{self, limit};

/// The number of prompts that are decoded together; each of them takes memory for a cache of its own.
const TOGETHER: usize = 64;

impl Command for Generate {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        generate(self, ui)
    }
}

/// Generates the texts for all prompts, by sampling or by beam search.
///
/// # Errors
/// The model does not generate text, or a prompt does not fit it.
fn generate(arguments: &Generate, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    let trained = Trained::open_packed(&arguments.model, ui)?;
    let codebook = &trained.codebook;
    let task = codebook.task;
    if !matches!(task, Task::NextToken | Task::Translate) {
        return Err(Failure::usage(format!(
            "a model with the head `{}` does not generate text",
            trained.subject.spec.head.part()
        ))
        .help("`trafoc predict` uses it"));
    }
    let texts = prompts(arguments, task)?;
    let Some(tokenizer) = &codebook.tokenizer else {
        return Err(Failure::bug("a codebook without a tokenizer"));
    };
    // All prompts are examined before the first is decoded, which may take long.
    let begun: Vec<Prompt> =
        texts.iter().map(|text| begin(codebook, text, arguments)).collect::<Result<_, _>>()?;
    if let Some(note) = note_of_unknown(codebook, &texts) {
        ui.note(&note);
    }
    let context = trained.subject.graph.context;
    let limits = prompt::limits(codebook, context, arguments.max_tokens);
    for (text, prompt) in texts.iter().zip(&begun) {
        let length = prompt.tokens.len();
        if length > limits.context {
            return Err(beyond_context("prompt", text, length, &trained.subject));
        }
        // Of a translation, the encoder reads the text.
        let source = prompt.memory.iter().map(|(_, array)| array.shape().get(1).copied().unwrap_or(0)).max();
        if let (Some(source), Some(most)) = (source, trained.plan.most_of_source())
            && source as u64 > most
        {
            return Err(too_long("prompt", text, source, most));
        }
    }
    // The data is read before decoding, so that a run without it is refused at once.
    let known = if arguments.known { Some(data_texts(&trained, ui)?) } else { None };
    let decoder = Decoder::new(&trained.plan, &trained.weights);
    let count = usize::try_from(arguments.count).unwrap_or(usize::MAX);
    // What a language model writes continues its prompt; a translation replaces it.
    let before: Vec<Begun> = match task {
        Task::NextToken => texts
            .iter()
            .zip(&begun)
            .map(|(text, prompt)| Begun::new(tokenizer, text, &prompt.tokens))
            .collect(),
        _ => texts.iter().map(|_| Begun::new(tokenizer, "", &[])).collect(),
    };
    let mut streamed = false;
    let written: Vec<(usize, Decoded)> = match arguments.beam {
        Some(width) => {
            // A search cannot return more hypotheses than it keeps.
            let width = usize::try_from(width).unwrap_or(usize::MAX).max(count);
            let beam = Beam { width, length_penalty: arguments.length_penalty };
            let mut out = Vec::new();
            for (i, prompt) in begun.iter().enumerate() {
                // One prompt at a time, because the hypotheses of a beam are a batch already.
                let found = decoder.beam(prompt, &beam, &limits).map_err(step_failure)?;
                out.extend(found.into_iter().take(count).map(|decoded| (i, decoded)));
            }
            out
        }
        None => {
            // A text is wanted varied and a translation right, so each has the default that fits it.
            let usual = if task == Task::NextToken { 1.0 } else { 0.0 };
            let temperature = arguments.temperature.unwrap_or(usual);
            refuse_sampling_options(arguments, temperature)?;
            let how = Sampling {
                temperature,
                top_k: arguments.top_k.map(|k| usize::try_from(k).unwrap_or(usize::MAX)),
                top_p: arguments.top_p,
                min_p: arguments.min_p,
                repetition_penalty: arguments.repetition_penalty,
            };
            let all: Vec<usize> = (0..begun.len()).flat_map(|i| std::iter::repeat_n(i, count)).collect();
            // One text alone is shown on a terminal while it grows; several would be mixed up.
            streamed = all.len() == 1
                && arguments.format.format == Format::Text
                && !arguments.known
                && io::stdout().is_terminal();
            let mut stream = match before.first() {
                Some(first) if streamed => Some(Stream::new(first, &arguments.stop)?),
                _ => None,
            };
            let mut out = Vec::new();
            for (at, chunk) in all.chunks(TOGETHER).enumerate() {
                let prompts: Vec<Prompt> = chunk.iter().map(|i| begun[*i].clone()).collect();
                let mut ends: Vec<Ending> =
                    chunk.iter().map(|i| Ending::new(&before[*i], &arguments.stop)).collect();
                // The prompts of every chunk are counted from 0: with the same seed, equal ones in two chunks
                // would give equal texts.
                let seed = arguments.seed.wrapping_add((at as u64) << 32);
                let mut failed = None;
                let decoded = decoder.sample(&prompts, &how, &limits, seed, &mut |i, token| {
                    // The callback can only end the text, so the failure is kept until decoding has
                    // returned.
                    if let Some(stream) = &mut stream
                        && let Err(failure) = stream.add(token)
                    {
                        failed = Some(failure);
                        return false;
                    }
                    !ends[i].comes_with(token)
                });
                let decoded = decoded.map_err(step_failure)?;
                if let Some(failure) = failed {
                    return Err(failure);
                }
                out.extend(chunk.iter().copied().zip(decoded));
            }
            if let Some(mut stream) = stream {
                stream.finish()?;
            }
            out
        }
    };
    let room = |i: usize| limits.room(begun[i].tokens.len());
    let is_cut = |(i, decoded): &&(usize, Decoded)| !decoded.ended && decoded.tokens.len() >= room(*i);
    let cut: Vec<usize> = written.iter().filter(is_cut).map(|(i, _)| *i).collect();
    if let Some(note) = note_of_cut(arguments, &trained, &cut, written.len(), &room) {
        ui.note(&note);
    }
    // Rows of the vocabulary beyond the tokenizer's are numbers without a text, which would be missing silently.
    let is_beyond = |id: &&u32| usize::try_from(**id).is_ok_and(|id| id >= tokenizer.vocab());
    let beyond = written.iter().flat_map(|(_, decoded)| &decoded.tokens).filter(is_beyond).count();
    if beyond > 0 {
        ui.note(&format!(
            "note: {} without a text: the model's `vocab` has more ids than its tokenizer, whose last is {}",
            counted(beyond, "generated token"),
            tokenizer.vocab().saturating_sub(1)
        ));
    }
    let mut shown = Vec::new();
    for (i, decoded) in &written {
        let (own, is_cut) = until_stop(before[*i].followed_by(&decoded.tokens), &arguments.stop);
        shown.push(Written {
            prompt: texts[*i].clone(),
            known: known.as_ref().map(|k| k.part_of(&before[*i].as_data(&own))),
            text: before[*i].joined(&own),
            tokens: decoded.tokens.len(),
            log_probability: decoded.log_probability,
            // A stop ends a text as the model's end token does.
            ended: decoded.ended || is_cut,
        });
    }
    // What was streamed is on the terminal already; only its line is ended.
    let text: String = if streamed {
        "\n".to_owned()
    } else {
        shown
            .iter()
            .map(|w| match w.known {
                Some(known) => format!("{}\t{known}\n", w.text),
                None => format!("{}\n", w.text),
            })
            .collect()
    };
    let passed_over = match &trained.subject.model {
        Some(model) => left_aside(&model.folder)?,
        None => Vec::new(),
    };
    let max_tokens = (0..begun.len()).map(room).max().unwrap_or(limits.most);
    Ok(Output::new(text, Data { texts: shown, max_tokens, passed_over }))
}

/// What is said of words of the prompts that the vocabulary lacks: whatever they are, the model reads the same token.
fn note_of_unknown(codebook: &Codebook, prompts: &[String]) -> Option<String> {
    /// The most words that are named.
    const SHOWN: usize = 5;
    let tokenizer = match codebook.task {
        Task::Translate => codebook.source_tokenizer(),
        _ => codebook.tokenizer.as_ref(),
    }?;
    let unknown = tokenizer.special_tokens().unknown?;
    let token = tokenizer.token(unknown)?;
    let mut words: Vec<&str> = Vec::new();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for prompt in prompts {
        for piece in tokenizer.pieces(prompt).into_iter().flatten().filter(|piece| piece.id == unknown) {
            let word = prompt.get(piece.bytes).unwrap_or("").trim();
            // The token may be written in the prompt itself.
            if !word.is_empty() && word != token && met.insert(word) {
                words.push(word);
            }
        }
    }
    let named: Vec<String> = words.iter().take(SHOWN).map(|word| format!("`{}`", cut(word))).collect();
    let more = words.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = (!named.is_empty()).then(|| named.join(", "))?;
    Some(format!("note: the vocabulary has no {named}{more}; the model reads `{token}` there"))
}

/// What is said of texts that a limit has cut, each given by its prompt, among `all` that were written. `room` is the
/// most tokens that can follow a prompt.
fn note_of_cut(
    arguments: &Generate,
    trained: &Trained,
    cut: &[usize],
    all: usize,
    room: &dyn Fn(usize) -> usize,
) -> Option<String> {
    let (codebook, context) = (&trained.codebook, trained.subject.graph.context);
    // A limit of the user's is known to the user, unless the context has ended the text before it.
    if let Some(most) = arguments.max_tokens {
        let earlier = cut.iter().filter(|i| room(**i) < most).count();
        return (earlier > 0).then(|| {
            format!(
                "note: {earlier} of {} ended before {}: the model's context has {}",
                counted(all, "text"),
                counted(most, "token"),
                counted(context, "position")
            )
        });
    }
    // A language model seldom ends by itself, but a translation that is cut without a word would be taken for a
    // whole one.
    let most = cut.iter().map(|i| room(*i)).max().filter(|_| codebook.task == Task::Translate)?;
    let said = format!(
        "note: {} of {} did not end within {}",
        cut.len(),
        counted(all, "translation"),
        counted(most, "token")
    );
    // With another limit, too, the context would end it.
    Some(if usize::try_from(context).is_ok_and(|context| most >= context) {
        format!("{said}, all that the model's context has room for")
    } else {
        let whose = if codebook.writing.is_some() {
            "the settings of its model allow"
        } else {
            "an example of its data has"
        };
        format!("{said}, the most that {whose}; `--max-tokens N` sets another limit")
    })
}

/// Refuses options of sampling at temperature 0, where they would have no effect.
fn refuse_sampling_options(arguments: &Generate, temperature: f64) -> Result<(), Failure> {
    if arguments.count > 1 && temperature == 0.0 {
        let count = arguments.count;
        let message = format!(
            "`--count {count}` would give the same text again and again: at temperature 0 the best token is taken"
        );
        return Err(Failure::usage(message)
            .help(format!("`--beam {count}` finds {count} different ones, `--temperature 1` samples them")));
    }
    let given = [
        ("--top-k", arguments.top_k.is_some()),
        ("--top-p", arguments.top_p.is_some()),
        ("--min-p", arguments.min_p.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given && temperature == 0.0) {
        Some((option, _)) => {
            let message =
                format!("`{option}` would have no effect: at temperature 0 the best token is taken");
            Err(Failure::usage(message).help("`--temperature 1` samples"))
        }
        None => Ok(()),
    }
}

fn prompts(arguments: &Generate, task: Task) -> Result<Vec<String>, Failure> {
    if let Some(path) = &arguments.prompts {
        let failed = |why: String| {
            Failure::new(Exit::File, format!("cannot read prompts from `{}`: {why}", path.display()))
        };
        let text = read::text_once(path, limit::TEXTS).map_err(|e| failed(file::reason(&e)))?;
        // Empty lines are kept: from one a language model begins anew, and the texts stay in the order of
        // the lines.
        let prompts: Vec<String> = text.lines().map(str::to_owned).collect();
        if prompts.is_empty() {
            let message = format!("`{}` has no prompts", path.display());
            return Err(Failure::usage(message)
                .help("every line is a prompt; from an empty line a language model begins a new text"));
        }
        return Ok(prompts);
    }
    match (arguments.prompt.is_empty(), task) {
        (false, _) => Ok(arguments.prompt.clone()),
        // A language model can begin a text from nothing but its start token.
        (true, Task::NextToken) => Ok(vec![String::new()]),
        (true, _) => {
            Err(Failure::usage("a translation needs a text").help("`--prompt TEXT`, or `--prompts FILE`"))
        }
    }
}

fn begin(codebook: &Codebook, text: &str, arguments: &Generate) -> Result<Prompt, Failure> {
    let unknown = |unknown| no_token(&unknown, "prompt", text);
    if codebook.task == Task::NextToken {
        if arguments.language.is_some() {
            return Err(Failure::usage("a language model has no `--language`"));
        }
        let prompt = prompt::of_text(codebook, text).map_err(unknown)?;
        return prompt.ok_or_else(|| {
            Failure::usage("the model has no token for the start of a text, so it needs a prompt")
                .help("`--prompt TEXT`")
        });
    }
    let language = language(codebook, arguments.language.as_deref())?;
    prompt::of_source_text(codebook, text, language).map_err(unknown)
}

/// The texts of a run's data, by part.
struct DataTexts(Vec<(&'static str, BTreeSet<String>)>);

impl DataTexts {
    fn part_of(&self, text: &str) -> &'static str {
        self.0.iter().find(|(_, texts)| texts.contains(text)).map_or("new", |(part, _)| part)
    }
}

fn data_texts(trained: &Trained, ui: &mut Ui) -> Result<DataTexts, Failure> {
    let Some(found) = &trained.found else {
        return Err(Failure::usage("`--known` needs the folder of a run, which names its data"));
    };
    let spec = found.file(files::SPEC).display().to_string();
    let subject = trained.again(&spec, ui)?;
    let prepared = prepare_all(
        subject,
        &found.file(files::RECIPE),
        &[],
        Source::Run(found.root()),
        &Choice::default(),
        ui,
    )?;
    let mut all = Vec::new();
    for split in [Split::Train, Split::Validation, Split::Test] {
        let texts = match (prepared.dataset.part(split), &trained.codebook.tokenizer) {
            // Only the ids of such texts are kept; decoded, they are what the model would have to generate.
            (Some(Part::Texts { ids, .. }), Some(tokenizer)) => {
                (0..ids.len()).map(|i| tokenizer.decode(ids.get(i))).collect()
            }
            // A translation is known if the data has it as a target, whatever its source.
            (Some(Part::Pairs { texts, .. }), _) => texts.iter().map(|(_, target)| target.clone()).collect(),
            // A part that the data does not have contains no text.
            (_, _) => BTreeSet::new(),
        };
        all.push((split.word(), texts));
    }
    Ok(DataTexts(all))
}
