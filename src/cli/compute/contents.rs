//! The contents of a recipe's data, for `trafoc inspect data`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::beginning::Choice;
use super::prepared::{Prepared, Source, prepare_all};
use super::run_folder::run_failure;
use crate::cli::inspect::DataArgs;
use crate::cli::outcome::Failure;
use crate::cli::ui::Ui;
use crate::inspect::data::{Batch, Contents, Example, Lengths, Vocabulary, data};
use crate::inspect::{Matrix, Report};
use crate::learn::data::{self as read, Array, Codebook, Dataset, Labels, Loader, Part, Sequences};
use crate::learn::recipe::Split;
use crate::learn::run_dir;
use crate::learn::session::files;
use crate::learn::token::Tokenizer;

/// The most images that are shown.
const IMAGES: usize = 12;

/// Reads the data and reports its contents.
///
/// # Errors
/// The recipe does not fit the spec, or the data cannot be read.
pub fn contents(arguments: &DataArgs, ui: &mut Ui) -> Result<Report, Failure> {
    let root = PathBuf::from(&arguments.spec.spec);
    // All checkpoints of a run have the same recipe, so the newest is as good as the best.
    let own = if run_dir::is_run(&root) { Some(run_dir::newest(&root).map_err(run_failure)?) } else { None };
    let Some(recipe) = arguments.recipe.clone().or_else(|| own.as_ref().map(|f| f.file(files::RECIPE)))
    else {
        // A name that is misspelled is no spec.
        arguments.spec.compile(ui)?;
        return Err(Failure::usage("a spec needs a recipe, which names the data").help("`--recipe FILE`"));
    };
    let subject = arguments.spec.compile(ui)?;
    let source = if own.is_some() { Source::Run(&root) } else { Source::Files };
    let choice = Choice { families: arguments.spec.families(), ..Choice::default() };
    let prepared = prepare_all(subject, &recipe, &arguments.with, source, &choice, ui)?;
    let Prepared { recipe, dataset, .. } = &prepared;
    let all = [Split::Train, Split::Validation, Split::Test];
    let parts: Vec<(Split, &Part)> = all.into_iter().filter_map(|s| Some((s, dataset.part(s)?))).collect();
    let mut facts = vec![
        ("for the head".to_owned(), prepared.subject.spec.head.part().to_owned()),
        ("format".to_owned(), recipe.data.format.part().to_owned()),
    ];
    if let Some(tokens) = &recipe.tokens {
        facts.push(("tokens".to_owned(), tokens.part().to_owned()));
    }
    if dataset.codebook.image.is_none() {
        facts.push(("positions of an example at most".to_owned(), dataset.codebook.longest.to_string()));
    }
    let count = dataset.train.len();
    if arguments.example >= count {
        let message = format!("there is no example {}: the training data has {count}", arguments.example);
        return Err(Failure::usage(message));
    }
    Ok(data(&Contents {
        name: prepared.subject.spec.name.clone(),
        facts,
        lengths: parts.iter().flat_map(|(split, part)| lengths(&dataset.codebook, *split, part)).collect(),
        vocabularies: vocabularies(&dataset.codebook, &parts),
        classes: classes(&dataset.codebook, &dataset.train),
        of_several: dataset.codebook.several.then_some(count as u64),
        example: example(dataset, arguments.example),
        images: images(dataset),
        batch: batch(dataset),
    }))
}

/// A kind of text, its tokenizer, and the ids of each text.
type Side<'a> = (&'static str, Option<&'a Tokenizer>, Vec<&'a [u32]>);

/// The kinds of text in a part, with their tokenizers.
fn sides<'a>(book: &'a Codebook, part: &'a Part) -> Vec<Side<'a>> {
    let own = book.tokenizer.as_ref();
    let all = |sequences: &'a Sequences| (0..sequences.len()).map(|i| sequences.get(i)).collect();
    match part {
        Part::Texts { ids, .. } | Part::Tags { ids, .. } => vec![("text", own, all(ids))],
        Part::Pairs { source, target, .. } => {
            vec![("source", book.source_tokenizer(), all(source)), ("target", own, all(target))]
        }
        Part::Classes { text, second, .. } if second.total() > 0 => {
            vec![("text", own, all(text)), ("second text", own, all(second))]
        }
        Part::Classes { text, .. } => vec![("text", own, all(text))],
        Part::Spans { question, contexts, .. } => {
            let contexts = contexts.iter().map(|c| c.ids.as_slice()).collect();
            vec![("question", own, all(question)), ("paragraph", own, contexts)]
        }
        Part::Images { .. } => Vec::new(),
    }
}

fn lengths(book: &Codebook, split: Split, part: &Part) -> Vec<Lengths> {
    let of = |side: &str, lengths: Vec<usize>| Lengths {
        part: split.word().to_owned(),
        side: side.to_owned(),
        lengths,
        shared: part.shared(),
    };
    let found: Vec<Lengths> = sides(book, part)
        .into_iter()
        .map(|(side, _, texts)| of(side, texts.iter().map(|ids| ids.len()).collect()))
        .collect();
    // Images have no tokens, but their number is shown in the same table.
    if found.is_empty() { vec![of("image", vec![0; part.len()])] } else { found }
}

/// The vocabularies, each with all kinds of text that use it.
fn vocabularies(book: &Codebook, parts: &[(Split, &Part)]) -> Vec<Vocabulary> {
    let mut all: Vec<(Vec<&str>, &Tokenizer)> = Vec::new();
    if let Some((_, train)) = parts.first() {
        for (side, tokenizer, _) in sides(book, train) {
            let Some(tokenizer) = tokenizer else { continue };
            // Kinds of text that share a tokenizer share a vocabulary, which is shown once.
            // By address: a codebook without a tokenizer of the source gives the target's for both.
            match all.iter_mut().find(|(_, known)| std::ptr::eq(*known, tokenizer)) {
                Some((sides, _)) => sides.push(side),
                None => all.push((vec![side], tokenizer)),
            }
        }
    }
    all.into_iter().map(|(own, tokenizer)| vocabulary(book, parts, &own, tokenizer)).collect()
}

fn vocabulary(book: &Codebook, parts: &[(Split, &Part)], own: &[&str], tokenizer: &Tokenizer) -> Vocabulary {
    let special = tokenizer.special_tokens();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (split, part) in parts {
        let texts = sides(book, part).into_iter().filter(|(side, ..)| own.contains(side));
        let (mut missed, mut all) = (0u64, 0u64);
        for id in texts.flat_map(|(_, _, texts)| part.distinct(texts)).flatten() {
            all += 1;
            missed += u64::from(Some(*id) == special.unknown);
            // A model learns a token from the training data alone, but misses an unknown one in any part.
            if *split == Split::Train {
                *counts.entry(*id).or_default() += 1;
            }
        }
        // Tokenizers of bytes know every text.
        if special.unknown.is_some() {
            unknown.push((split.word().to_owned(), missed, all));
        }
    }
    let word = |id: u32| tokenizer.token(id).unwrap_or_else(|| id.to_string());
    let mut counts: Vec<(String, u32, u64)> = counts.into_iter().map(|(id, n)| (word(id), id, n)).collect();
    // The most frequent first, and by id where counts agree, so that reports of the same data are equal.
    counts.sort_by_key(|(_, id, count)| (std::cmp::Reverse(*count), *id));
    let named = [
        ("padding", Some(special.pad)),
        ("start", special.start),
        ("end", special.end),
        ("unknown", special.unknown),
        ("mask", special.mask),
    ];
    let mut special: Vec<(String, u32, Vec<&'static str>)> = Vec::new();
    for (what, id) in named.into_iter().filter_map(|(what, id)| Some((what, id?))) {
        // One token may have several uses, such as the end of a text and padding.
        match special.iter_mut().find(|(_, known, _)| *known == id) {
            Some((_, _, uses)) => uses.push(what),
            None => special.push((word(id), id, vec![what])),
        }
    }
    Vocabulary { side: own.join(" and "), size: tokenizer.vocab(), special, counts, unknown }
}

/// The number of examples in every class; for tagged texts, the number of tokens.
fn classes(book: &Codebook, train: &Part) -> Vec<(String, u64)> {
    let mut counts = vec![0u64; book.classes.len()];
    let mut add = |class: u32| {
        if let Some(count) = counts.get_mut(class as usize) {
            *count += 1;
        }
    };
    match train {
        // An example has a class once, also if its cell names it twice.
        Part::Classes { labels, .. } => {
            let each = (0..labels.len()).map(|i| labels.get(i).iter().copied().collect::<BTreeSet<u32>>());
            each.flatten().for_each(&mut add);
        }
        Part::Tags { tags, .. } => (0..tags.len()).flat_map(|i| tags.get(i)).copied().for_each(&mut add),
        Part::Images { labels, .. } => labels.iter().copied().for_each(&mut add),
        Part::Texts { .. } | Part::Pairs { .. } | Part::Spans { .. } => {}
    }
    book.classes.iter().cloned().zip(counts).collect()
}

fn example(dataset: &Dataset, index: usize) -> Example {
    let book = &dataset.codebook;
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut tokens: Vec<(String, String, u32, String)> = Vec::new();
    let class = |id: u32| book.classes.get(id as usize).cloned().unwrap_or_default();
    let mut tags: &[u32] = &[];
    match &dataset.train {
        Part::Pairs { texts, language, .. } => {
            if let Some((source, target)) = texts.get(index) {
                facts.extend([("source".to_owned(), source.clone()), ("target".to_owned(), target.clone())]);
            }
            let language = language.get(index).and_then(|l| book.languages.get(*l as usize));
            facts.extend(language.map(|l| ("language".to_owned(), l.clone())));
        }
        Part::Classes { labels, .. } => {
            let names: Vec<String> = labels.get(index).iter().map(|id| class(*id)).collect();
            facts.push(("class".to_owned(), names.join(", ")));
        }
        Part::Images { labels, .. } => {
            facts.extend(labels.get(index).map(|id| ("class".to_owned(), class(*id))));
        }
        Part::Tags { tags: of, .. } => tags = of.get(index),
        Part::Spans { questions, contexts, .. } => {
            if let Some(asked) = questions.get(index) {
                facts.push(("question".to_owned(), asked.text.clone()));
                let about = contexts.get(asked.context).map(|context| context.text.clone());
                facts.extend(about.map(|text| ("paragraph".to_owned(), text)));
                facts.push(("answers".to_owned(), asked.answers.join(" | ")));
            }
        }
        Part::Texts { .. } => {}
    }
    for (side, tokenizer, texts) in sides(book, &dataset.train) {
        let index = match (&dataset.train, side) {
            // Several questions may be about one paragraph.
            (Part::Spans { questions, .. }, "paragraph") => questions.get(index).map_or(0, |q| q.context),
            (_, _) => index,
        };
        let ids = texts.get(index).copied().unwrap_or_default();
        let Some(tokenizer) = tokenizer else { continue };
        // Pairs and questions have their texts as they were written, from which the decoded tokens may differ.
        if !facts.iter().any(|(name, _)| name == side) {
            facts.push((side.to_owned(), tokenizer.decode(ids)));
        }
        tokens.extend(ids.iter().enumerate().map(|(i, id)| {
            let word = tokenizer.token(*id).unwrap_or_else(|| id.to_string());
            (side.to_owned(), word, *id, tags.get(i).copied().map(class).unwrap_or_default())
        }));
    }
    Example { index, facts, tokens }
}

/// The first channel of the first images.
fn images(dataset: &Dataset) -> Vec<(String, Matrix)> {
    let (Part::Images { pixels, labels }, Some(form)) = (&dataset.train, dataset.codebook.image) else {
        return Vec::new();
    };
    let one = |(i, class): (usize, &u32)| {
        // A picture of the report shows one number for each pixel, so only the first channel.
        // All channels of an image follow each other, before the next image.
        let first = i * form.size();
        let shown = pixels.get(first..first + form.side * form.side).unwrap_or_default();
        let values = shown.iter().map(|v| f64::from(*v)).collect();
        let name = dataset.codebook.classes.get(*class as usize).cloned().unwrap_or_default();
        (name, Matrix::new(form.side, form.side, values))
    };
    labels.iter().take(IMAGES).enumerate().map(one).collect()
}

fn batch(dataset: &Dataset) -> Batch {
    // A step of several batches shows the first of them.
    let Some(first) = Loader::new(dataset).step(0).into_iter().next() else { return Batch::default() };
    let what = |name: &str| match name {
        "tokens" => "ids that are read",
        "mask" | "source_mask" => "1 for a token, 0 for padding",
        "token_types" => "which of two texts a token belongs to",
        "source" => "ids to translate",
        "target" => "ids of the translation, shifted by one position: the tokens before the predicted one",
        "language" => "the language of the translation",
        "image" => "pixels: example, channel, row, column",
        _ => "",
    };
    let arrays = first.inputs.iter().map(|(name, array)| {
        let kind = match array {
            Array::Ints { .. } => "whole numbers",
            Array::Floats { .. } => "numbers",
        };
        let about = what(name);
        let about = if about.is_empty() { kind.to_owned() } else { format!("{kind}: {about}") };
        ((*name).to_owned(), array.shape().to_vec(), about)
    });
    let mut arrays: Vec<(String, Vec<usize>, String)> = arrays.collect();
    let label = |shape: &[usize], about: &str| ("labels".to_owned(), shape.to_vec(), about.to_owned());
    match &first.labels {
        Labels::Positions { shape, .. } => {
            arrays.push(label(shape, "the right id or class at every position"));
        }
        Labels::Classes(classes) => arrays.push(label(&[classes.len()], "the right class")),
        Labels::Several { shape, .. } => arrays.push(label(shape, "1 for every class that applies")),
        // The right second text is the one in the same place.
        Labels::Alike(_) => {}
        Labels::Spans { start, .. } => {
            arrays.push(label(&[start.len(), 2], "first and last token of the answer"));
        }
    }
    Batch {
        arrays,
        tokens: (first.tokens, first.tokens.saturating_sub(read_tokens(dataset, &first))),
        counted: first.counted,
    }
}

/// The positions of a batch that are not padding.
fn read_tokens(dataset: &Dataset, batch: &read::Batch) -> usize {
    if batch.input("image").is_some() {
        return batch.tokens;
    }
    // An example by itself is not padded.
    let alone = |i: &usize| dataset.collate(Split::Train, &[*i], 0).tokens;
    batch.indices.iter().map(alone).sum()
}
