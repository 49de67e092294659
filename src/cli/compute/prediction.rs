//! Predicts for `trafoc predict`: classes, tags, answers and vectors for texts, questions and images.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::failures::{cut, no_token, step_failure, too_long};
use super::trained::Trained;
use crate::cli::command::Command;
use crate::cli::directory::PREPROCESSOR;
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::predict::{Class, Data, Guess, Predict, Prediction, Score, Tag};
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::interp::{Inputs, Outputs};
use crate::learn::data::picture::{Preparation, picture};
use crate::learn::data::{Array, Codebook};
use crate::learn::recipe::agree::Task;
use crate::learn::span;
use crate::learn::step::{StepError, array};
use crate::learn::token::{Piece, Tokenizer};
use crate::parts::Head;
use crate::read::{self, limit};

/// The prediction for one input, as a line of text and as data.
struct Shown {
    line: String,
    data: Prediction,
}

impl Command for Predict {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        predict(self, ui)
    }
}

/// Predicts what the model's head predicts, for every text, question or image of the command line.
///
/// # Errors
/// The model predicts something else, or an input does not fit it.
fn predict(arguments: &Predict, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    let trained = Trained::open_packed(&arguments.model, ui)?;
    let head = &trained.subject.spec.head;
    let takes = |what: &str| needs(head, what);
    let is_embed = matches!(head, Head::Embed(_));
    // Before inputs are asked for, so that `--text` for images is named as what is wrong.
    refuse_unused_options(arguments, &trained)?;
    let top = usize::try_from(arguments.top).unwrap_or(usize::MAX);
    let shown = match trained.codebook.task {
        Task::NextToken | Task::Translate => {
            return Err(Failure::usage(format!(
                "a model with the head `{}` predicts no classes",
                head.part()
            ))
            .help("`trafoc generate` generates text with it"));
        }
        // A codebook has the task of training; the spec that it is used with may have the head `embed`.
        Task::HiddenToken if !is_embed => hidden(&trained, &some_texts(arguments, head)?, top, ui)?,
        _ if trained.codebook.image.is_some() => {
            if arguments.image.is_empty() {
                return Err(takes("images").help("`--image FILE`"));
            }
            images(&trained, &arguments.image, top)?
        }
        Task::Span => {
            if arguments.question.is_empty() {
                return Err(takes("questions").help("`--question TEXT`, and `--text TEXT` they are about"));
            }
            answers(&trained, arguments)?
        }
        Task::ClassifyText | Task::ClassifyImage | Task::HiddenToken | Task::Tag | Task::Embed => {
            let texts = some_texts(arguments, head)?;
            let second = arguments.second.as_deref();
            texts.iter().map(|text| of_text(&trained, text, second, top, ui)).collect::<Result<_, _>>()?
        }
    };
    let text: String = shown.iter().map(|s| format!("{}\n", s.line)).collect();
    let predictions = shown.into_iter().map(|s| s.data).collect();
    Ok(Output::new(text, Data { predictions }))
}

/// Refuses options that have no effect for this model.
fn refuse_unused_options(arguments: &Predict, trained: &Trained) -> Result<(), Failure> {
    let head = &trained.subject.spec.head;
    let is_image = trained.codebook.image.is_some();
    let is_answer = !is_image && trained.codebook.task == Task::Span;
    let is_hidden = trained.codebook.task == Task::HiddenToken && !matches!(head, Head::Embed(_));
    let is_ranked = is_hidden || matches!(head, Head::Classify(_));
    let given = [
        ("--text", !arguments.text.is_empty(), !is_image),
        ("--texts", arguments.texts.is_some(), !is_image),
        ("--second", arguments.second.is_some(), !is_image && !is_answer && !is_hidden),
        ("--question", !arguments.question.is_empty(), is_answer),
        ("--image", !arguments.image.is_empty(), is_image),
        ("--top", arguments.top > 1, is_ranked),
    ];
    match given.iter().find(|(_, is_given, is_used)| *is_given && !is_used) {
        Some((option, ..)) => {
            let input = match (is_image, is_answer) {
                (true, _) => "`--image FILE`",
                (false, true) => "`--question TEXT`, and `--text TEXT` it is about",
                (false, false) => "`--text TEXT`, or `--texts FILE`",
            };
            let message = format!("`{option}` would have no effect for the head `{}`", head.part());
            Err(Failure::usage(message).help(format!("it takes {input}")))
        }
        None => Ok(()),
    }
}

fn needs(head: &Head, what: &str) -> Failure {
    Failure::usage(format!("a model with the head `{}` needs {what}", head.part()))
}

/// The texts of the command line, of which there must be one.
fn some_texts(arguments: &Predict, head: &Head) -> Result<Vec<String>, Failure> {
    let texts = texts(arguments)?;
    match (texts.is_empty(), &arguments.texts) {
        (false, _) => Ok(texts),
        (true, None) => Err(needs(head, "texts").help("`--text TEXT`, or `--texts FILE`")),
        (true, Some(path)) => {
            let message = format!("`{}` has no texts", path.display());
            Err(Failure::usage(message).help("every line of the file is a text"))
        }
    }
}

fn texts(arguments: &Predict) -> Result<Vec<String>, Failure> {
    match &arguments.texts {
        Some(path) => Ok(read(path)?.lines().map(str::to_owned).collect()),
        None => Ok(arguments.text.clone()),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed =
        |why: String| Failure::new(Exit::File, format!("cannot read texts from `{}`: {why}", path.display()));
    read::text_once(path, limit::TEXTS).map_err(|e| failed(file::reason(&e)))
}

fn tokenizer(codebook: &Codebook) -> Result<&Tokenizer, Failure> {
    codebook.tokenizer.as_ref().ok_or_else(|| Failure::bug("a codebook without a tokenizer"))
}

fn pieces(codebook: &Codebook, text: &str) -> Result<Vec<Piece>, Failure> {
    tokenizer(codebook)?.pieces(text).map_err(|unknown| no_token(&unknown, "text", text))
}

fn ids(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|p| p.id).collect()
}

fn run(trained: &Trained, given: Vec<(&'static str, Array)>) -> Result<Outputs, Failure> {
    let mut inputs = Inputs::new();
    for (name, array_of) in given {
        inputs = inputs.with(name, array(&array_of, &trained.device.device).map_err(step_failure)?);
    }
    trained.plan.run(&trained.weights, &inputs, false).map_err(|e| step_failure(e.into()))
}

fn numbers(outputs: &Outputs, name: &str) -> Result<Vec<f32>, Failure> {
    let value = outputs.get(name).ok_or_else(|| Failure::bug(format!("the model has no output `{name}`")))?;
    let lost = || Failure::new(Exit::Device, format!("`{name}` could not be read back from the device"));
    let numbers = value.to_floats().ok_or_else(lost)?;
    // Sorted among others, NaN would be the best.
    match numbers.iter().any(|number| number.is_nan()) {
        true => Err(step_failure(StepError::of_scores(&numbers))),
        false => Ok(numbers),
    }
}

/// The inputs for texts of one sequence, if the model reads as many tokens.
fn sequence(trained: &Trained, texts: Vec<&[u32]>) -> Result<Vec<(&'static str, Array)>, Failure> {
    let codebook = &trained.codebook;
    // The tokens around the whole input are left out of `room`, those between its texts are not.
    let between = if texts.len() < 2 { 0 } else { codebook.layout().more_marks() };
    let given = texts.iter().map(|text| text.len()).sum::<usize>() + between;
    if given > codebook.room() {
        let message = format!(
            "the input has {}, but the model reads at most {}",
            counted(given, "token"),
            codebook.room()
        );
        return Err(Failure::usage(message).help("give it a shorter text"));
    }
    Ok(trained.inputs(texts))
}

/// The failure of a second text or a question, called `what`, that is so long that the text itself has no room.
fn no_room(what: &str, text: &str, tokens: usize, most: usize) -> Failure {
    let message = format!(
        "the {what} `{}` has {} and leaves no room for the text: the model reads {most}",
        cut(text),
        counted(tokens, "token")
    );
    Failure::usage(message).help("give a shorter one")
}

fn softmax(scores: &[f32]) -> Vec<f64> {
    // In double precision and with the largest score subtracted, so that no exponential overflows.
    crate::learn::choose::logs(scores).into_iter().map(f64::exp).collect()
}

fn sigmoid(score: f32) -> f64 {
    // For a very negative score the exponential is infinite and the result 0, as it should be.
    1.0 / (1.0 + (-f64::from(score)).exp())
}

fn class_name(codebook: &Codebook, class: usize) -> String {
    // A config with the library's two usual classes does not name them; the library calls them like this.
    codebook.classes.get(class).cloned().unwrap_or_else(|| format!("LABEL_{class}"))
}

/// What a model with the head `classify` says of a text or an image, as a line and as data.
fn of_classes(
    trained: &Trained,
    outputs: &Outputs,
    top: usize,
    (text, image): (Option<String>, Option<String>),
) -> Result<(String, Prediction), Failure> {
    let codebook = &trained.codebook;
    let numbers = numbers(outputs, "logits")?;
    let model = trained.subject.model.as_ref();
    let problem = model.and_then(|model| model.imported.values.get("problem_type")).and_then(Json::as_str);
    // As in Hugging Face's library, a single class has a number of any size, which is trained by its squared
    // error: the softmax over one class is 1, whatever the text.
    if !codebook.several && (numbers.len() == 1 || problem == Some("regression")) {
        let score =
            |(class, score): (usize, &f32)| Score { class: class_name(codebook, class), score: *score };
        let scores: Vec<Score> = numbers.iter().enumerate().map(score).collect();
        let lines: Vec<String> =
            scores.iter().map(|s| format!("{}\tscore {:.4}", s.class, s.score)).collect();
        return Ok((lines.join("\t"), Prediction::Score { text, image, scores }));
    }
    let (line, classes) = classes(codebook, &numbers, top);
    Ok((line, Prediction::Classes { text, image, classes }))
}

/// All classes with their probabilities, the most probable first, and those that are shown as a line: the
/// first `top`, or those that apply, if several can apply.
fn classes(codebook: &Codebook, scores: &[f32], top: usize) -> (String, Vec<Class>) {
    let mut all: Vec<(usize, f64)> = match (codebook.several, scores) {
        // One sigmoid separates the second class from the first.
        (true, [score]) => vec![(0, 1.0 - sigmoid(*score)), (1, sigmoid(*score))],
        (true, scores) => scores.iter().map(|s| sigmoid(*s)).enumerate().collect(),
        (false, scores) => softmax(scores).into_iter().enumerate().collect(),
    };
    // Equal probabilities in the order of the classes, so that the output does not depend on the sort.
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let all: Vec<Class> = all
        .into_iter()
        .map(|(class, probability)| Class { class: class_name(codebook, class), probability })
        .collect();
    let line = |class: &Class| format!("{}\t{:.4}", class.class, class.probability);
    // For classes that apply independently, one half is where applying becomes more probable than not.
    let lines: Vec<String> = if codebook.several && scores.len() > 1 && top == 1 {
        all.iter().filter(|class| class.probability > 0.5).map(line).collect()
    } else {
        all.iter().take(top.max(1)).map(line).collect()
    };
    (lines.join("\t"), all)
}

fn of_text(
    trained: &Trained,
    text: &str,
    second: Option<&str>,
    top: usize,
    ui: &Ui,
) -> Result<Shown, Failure> {
    let codebook = &trained.codebook;
    let first = pieces(codebook, text)?;
    let text_of_second = second;
    let second = second.map(|s| pieces(codebook, s)).transpose()?.unwrap_or_default();
    // The second text is kept whole; the first one is cut to the room that it leaves.
    let special = if second.is_empty() { 0 } else { codebook.layout().more_marks() };
    let room = codebook.room().saturating_sub(second.len() + special);
    // An empty text needs no room.
    if let Some(text) = text_of_second
        && (room == 0 && !first.is_empty() || second.len() + special > codebook.room())
    {
        return Err(no_room("second text", text, second.len(), codebook.room()));
    }
    if first.len() > room {
        ui.note(&format!("note: a text of {} is cut to {room}", counted(first.len(), "token")));
    }
    let first = first.get(..room).unwrap_or(&first);
    let (own, following) = (ids(first), ids(&second));
    let both: Vec<&[u32]> = if following.is_empty() { vec![&own] } else { vec![&own, &following] };
    let outputs = run(trained, sequence(trained, both)?)?;
    match &trained.subject.spec.head {
        Head::Embed(_) => {
            let vector = numbers(&outputs, "embedding")?;
            let line = spaced(&vector);
            let text = Some(text.to_owned());
            Ok(Shown { line, data: Prediction::Embedding { text, image: None, embedding: vector } })
        }
        Head::Tag(tag) => {
            let scores = numbers(&outputs, "logits")?;
            // Not the number of names: a config whose classes have the library's usual names has none.
            let width = usize::try_from(*tag.classes).unwrap_or(1).max(1);
            // The first rows are those of the special tokens before the text.
            let before = codebook.layout().first();
            let rows: Vec<&[f32]> = scores.chunks(width).skip(before).collect();
            Ok(tags(codebook, text, first, &rows))
        }
        // With a codebook of the same task, only `classify` gets here.
        Head::Classify(_) | Head::Lm(_) | Head::Mlm(_) | Head::Translate(_) | Head::Span(_) => {
            let (line, data) = of_classes(trained, &outputs, top, (Some(text.to_owned()), None))?;
            Ok(Shown { line, data })
        }
    }
}

/// A class for every word: that of its first token.
fn tags(codebook: &Codebook, text: &str, pieces: &[Piece], rows: &[&[f32]]) -> Shown {
    let mut line = String::new();
    let mut tags = Vec::new();
    let mut at = 0;
    // Words as the data of training has them, between spaces.
    for word in text.split_whitespace() {
        // Searched from the end of the word before, since the same word can occur twice.
        let start = at + text.get(at..).and_then(|rest| rest.find(word)).unwrap_or(0);
        at = start + word.len();
        // A token may begin with the space before its word, so it is found by what it overlaps.
        let first = pieces.iter().position(|p| p.bytes.end > start && p.bytes.start < at);
        // A word after the cut has no row.
        let Some(row) = first.and_then(|i| rows.get(i)) else { continue };
        let all = softmax(row);
        // The first of equally probable classes, as in training's metrics.
        let best = (0..all.len()).max_by(|a, b| all[*a].total_cmp(&all[*b]).then(b.cmp(a))).unwrap_or(0);
        let class = class_name(codebook, best);
        let _ = writeln!(line, "{word}\t{class}");
        tags.push(Tag { word: word.to_owned(), class, probability: all.get(best).copied() });
    }
    Shown { line, data: Prediction::Tags { text: text.to_owned(), tags } }
}

/// The most probable words in the place of the mask token.
fn hidden(trained: &Trained, texts: &[String], top: usize, ui: &Ui) -> Result<Vec<Shown>, Failure> {
    let codebook = &trained.codebook;
    let tokenizer = tokenizer(codebook)?;
    let Some(mask) = codebook.special_tokens().mask else {
        return Err(Failure::usage("the model's tokenizer has no mask token"));
    };
    let written = tokenizer.token(mask).unwrap_or_default();
    let mut out = Vec::new();
    for text in texts {
        // Split before tokenizing: a tokenizer that does not know its mask as a special token would cut it
        // into pieces.
        let parts: Vec<&str> = text.split(written.as_str()).collect();
        if parts.len() < 2 {
            ui.note(&format!(
                "note: `{}` has no mask token; `{written}` is written in place of a masked word",
                cut(text)
            ));
        }
        let mut own = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                own.push(mask);
            }
            own.extend(ids(&pieces(codebook, part)?));
        }
        if own.len() > codebook.room() {
            let most = u64::try_from(codebook.room()).unwrap_or(u64::MAX);
            return Err(too_long("text", text, own.len(), most));
        }
        let outputs = run(trained, sequence(trained, vec![&own])?)?;
        let scores = numbers(&outputs, "logits")?;
        // The logits are `[1, T, V]` with the special tokens around the text.
        let layout = codebook.layout();
        let before = layout.first();
        let width = scores.len() / (own.len() + layout.marks(1)).max(1);
        let (mut line, mut guesses) = (Vec::new(), Vec::new());
        for (at, _) in own.iter().enumerate().filter(|(_, id)| **id == mask) {
            let row = scores.chunks(width.max(1)).nth(before + at).unwrap_or(&[]);
            let mut all: Vec<(usize, f64)> = softmax(row).into_iter().enumerate().collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            for (id, probability) in all.into_iter().take(top) {
                let token = u32::try_from(id).ok().and_then(|id| tokenizer.token(id)).unwrap_or_default();
                line.push(format!("{token}\t{probability:.4}"));
                guesses.push(Guess { token, probability });
            }
        }
        let data = Prediction::Hidden { text: text.clone(), hidden: guesses };
        out.push(Shown { line: line.join("\t"), data });
    }
    Ok(out)
}

fn images(trained: &Trained, paths: &[PathBuf], top: usize) -> Result<Vec<Shown>, Failure> {
    let codebook = &trained.codebook;
    let Some(form) = codebook.image else { return Err(Failure::bug("a codebook without images")) };
    let preparation = match (&codebook.preparation, &trained.subject.model) {
        // The files of a model directory, or a run's codebook.
        (Some(own), _) => own.clone(),
        (None, None) => Preparation::plain(form, true),
        // No preprocessing can be assumed for another library's model: with the wrong one it would give other
        // classes, and no error.
        (None, Some(model)) => {
            let folder = model.folder.display();
            let message =
                format!("`{folder}` has no {PREPROCESSOR}, which describes how images become numbers");
            let example = json!({
                "image_processor_type": "ViTImageProcessor",
                "size": {"height": form.side, "width": form.side},
                "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
            });
            return Err(Failure::new(Exit::File, message)
                .help(format!("ViT's first models were trained with this one: {example}"))
                .help("`trafoc run` takes images as numbers"));
        }
    };
    let mut out = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let values = picture(path, form, &preparation).map_err(|why| {
            Failure::new(Exit::File, format!("cannot use `{name}`: {}", why.into_message()))
        })?;
        // One image at a time, so that the memory does not depend on their number.
        let shape = vec![1, form.channels, form.side, form.side];
        let outputs = run(trained, vec![("image", Array::Floats { shape, values })])?;
        let (line, data) = match &trained.subject.spec.head {
            Head::Embed(_) => {
                let vector = numbers(&outputs, "embedding")?;
                let image = Some(name.clone());
                (spaced(&vector), Prediction::Embedding { text: None, image, embedding: vector })
            }
            Head::Classify(_)
            | Head::Tag(_)
            | Head::Lm(_)
            | Head::Mlm(_)
            | Head::Translate(_)
            | Head::Span(_) => of_classes(trained, &outputs, top, (None, Some(name.clone())))?,
        };
        out.push(Shown { line: format!("{name}\t{line}"), data });
    }
    Ok(out)
}

/// Numbers in their shortest exact notation, with a space between them.
fn spaced(vector: &[f32]) -> String {
    vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ")
}

/// The answer to each question about the text, with the text around it.
fn answers(trained: &Trained, arguments: &Predict) -> Result<Vec<Shown>, Failure> {
    let codebook = &trained.codebook;
    // The whole file is one text here, because a paragraph may have several lines.
    let context = match (&arguments.texts, arguments.text.as_slice()) {
        (Some(path), _) => read(path)?,
        (None, [one]) => one.clone(),
        (None, _) => return Err(Failure::usage("questions are about one text").help("`--text TEXT`")),
    };
    let all = pieces(codebook, &context)?;
    let mut out = Vec::new();
    for question in &arguments.question {
        let asked = ids(&pieces(codebook, question)?);
        let layout = codebook.layout();
        let before = layout.second(asked.len());
        let room = codebook.longest.saturating_sub(asked.len() + layout.marks(2));
        // An empty text has no answer, whatever the room.
        if room == 0 && !all.is_empty() || asked.len() + layout.marks(2) > codebook.longest {
            return Err(no_room("question", question, asked.len(), codebook.longest));
        }
        // A text that is longer than the model reads is read in pieces that overlap by half.
        let mut found: Option<([usize; 2], f64)> = None;
        let mut from = 0;
        loop {
            let piece = all.get(from..all.len().min(from + room)).unwrap_or(&[]);
            let own = ids(piece);
            let outputs = run(trained, sequence(trained, vec![&asked, &own])?)?;
            let (start, end) = (numbers(&outputs, "start_logits")?, numbers(&outputs, "end_logits")?);
            // Only tokens of the text can be an answer; those of the question are excluded by the range.
            if let Some(([first, last], score)) = span::best(&start, &end, before..before + own.len())
                && found.is_none_or(|(_, best)| score > best)
            {
                found = Some(([from + first - before, from + last - before], score));
            }
            // With room for one token, half of it would be no progress.
            if from + room >= all.len() || room < 2 {
                break;
            }
            // By half, so that an answer that one piece cuts is whole in the next.
            from += room / 2;
        }
        let bytes = found
            .and_then(|([first, last], _)| Some((all.get(first)?.bytes.start, all.get(last)?.bytes.end)));
        let Some((from, to)) = bytes else {
            let question = question.clone();
            let data =
                Prediction::Answer { question, answer: None, start: None, end: None, probability: None };
            out.push(Shown { line: String::new(), data });
            continue;
        };
        // The first token of a word may begin with the space before it, which is no part of the answer.
        let whole = context.get(from..to).unwrap_or("");
        let answer = whole.trim();
        let from = from + (whole.len() - whole.trim_start().len());
        let to = from + answer.len();
        let probability = found.map_or(0.0, |(_, score)| score.exp());
        let line = format!("{answer}\t{probability:.4}\t{}", shown(&context, from, to));
        let data = Prediction::Answer {
            question: question.clone(),
            answer: Some(answer.to_owned()),
            start: Some(from),
            end: Some(to),
            probability: Some(probability),
        };
        out.push(Shown { line, data });
    }
    Ok(out)
}

/// The answer between brackets, with some of the text around it.
fn shown(text: &str, from: usize, to: usize) -> String {
    const AROUND: usize = 40;
    let before: Vec<char> = text.get(..from).unwrap_or("").chars().rev().take(AROUND).collect();
    let before: String = before.into_iter().rev().collect();
    let after: String = text.get(to..).unwrap_or("").chars().take(AROUND).collect();
    let line = format!("{before}[{}]{after}", text.get(from..to).unwrap_or(""));
    // The line is one of a table whose columns are separated by tabs.
    line.replace(['\n', '\t', '\r'], " ")
}
