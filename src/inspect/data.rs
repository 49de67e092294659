//! The contents of a data set: the number of examples, their lengths, the vocabulary, an example as text,
//! tokens and ids, and a batch as the model gets it.

use super::{Matrix, Part, Report};
use crate::draw::Figure;
use crate::draw::bars::Bars;
use crate::draw::chart::{Axis, Chart, Series, Style};
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;
use crate::report::number::exact;

/// The number of most frequent tokens in a table.
const FREQUENT: usize = 15;
/// The most classes that are drawn as bars.
const CLASSES: usize = 40;
/// The most bars of a histogram.
const BINS: usize = 60;

/// The contents of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The name of the recipe or the run.
    pub name: String,
    /// The task, the format of the files and the tokenizer, by name.
    pub facts: Vec<(String, String)>,
    /// The lengths of all texts, for every part of the data.
    pub lengths: Vec<Lengths>,
    /// One vocabulary for each kind of text that has its own.
    pub vocabularies: Vec<Vocabulary>,
    /// The number of training examples in every class.
    pub classes: Vec<(String, u64)>,
    /// The number of training examples, if several classes may apply to one.
    pub of_several: Option<u64>,
    /// One example in detail.
    pub example: Example,
    /// The first images of the training data, with their classes.
    pub images: Vec<(String, Matrix)>,
    /// The first batch of training.
    pub batch: Batch,
}

/// The lengths in tokens of one kind of text in one part of the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    /// `train`, `validation` or `test`.
    pub part: String,
    /// `text`, `source`, `target`, `question`, ...
    pub side: String,
    /// The length of each example, without special tokens.
    pub lengths: Vec<usize>,
    /// How many tokens of each example but the first are the last ones of the example before it.
    pub shared: usize,
}

/// The vocabulary of one kind of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vocabulary {
    /// The kind of text: `text`, `source`, `target`.
    pub side: String,
    /// The number of ids.
    pub size: usize,
    /// The special tokens, with their ids and purposes.
    pub special: Vec<(String, u32, Vec<&'static str>)>,
    /// How often every token occurs in the training data, the most frequent first: token, id, count.
    pub counts: Vec<(String, u32, u64)>,
    /// For every part, the number of unknown tokens, and of all tokens.
    pub unknown: Vec<(String, u64, u64)>,
}

/// One example as text, as tokens and as ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// The index in the training data, counted from 0.
    pub index: usize,
    /// The texts, classes or answers, by name.
    pub facts: Vec<(String, String)>,
    /// The tokens: their text, the token, its id, and its class if every token has one.
    pub tokens: Vec<(String, String, u32, String)>,
}

/// One batch as the model gets it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The name, the shape and the meaning of each array.
    pub arrays: Vec<(String, Vec<usize>, String)>,
    /// The number of tokens that are read, and how many of them are padding.
    pub tokens: (usize, usize),
    /// The number of predictions in the loss.
    pub counted: usize,
}

/// The report on the contents of a data set.
pub fn data(contents: &Contents) -> Report {
    let mut parts = vec![lengths(contents)];
    parts.extend(contents.vocabularies.iter().map(vocabulary));
    if !contents.classes.is_empty() {
        parts.push(classes(&contents.classes, contents.of_several));
    }
    if !contents.images.is_empty() {
        let figures = contents.images.iter().map(|(class, pixels)| image(class, pixels)).collect();
        let text = "The first images of the training data, with their classes.";
        parts.push(Part { title: "Images".into(), text: text.into(), figures, ..Part::default() });
    }
    if !contents.example.facts.is_empty() {
        parts.push(example(&contents.example));
    }
    parts.push(batch(&contents.batch));
    let lead = "the training data, as the recipe reads it".to_owned();
    Report { title: format!("{}: data", contents.name), lead, parts }
}

/// The lengths of all texts as a table, and those of the training data as histograms.
fn lengths(contents: &Contents) -> Part {
    let header = ["part", "of", "examples", "tokens", "shortest", "median", "mean", "longest"];
    let rows = contents.lengths.iter().map(|one| {
        let mut sorted = one.lengths.clone();
        sorted.sort_unstable();
        let (count, total) = (sorted.len(), sorted.iter().sum::<usize>());
        let distinct = total.saturating_sub(one.shared * count.saturating_sub(1));
        let at = |i: usize| sorted.get(i).map_or("–".to_owned(), |n| exact(*n as u128));
        let row = vec![one.part.clone(), one.side.clone(), exact(count as u128)];
        if total == 0 {
            // Images have no tokens.
            return row.into_iter().chain(std::iter::repeat_n("–".to_owned(), 5)).collect();
        }
        let mean = format!("{:.1}", total as f64 / count.max(1) as f64);
        // The median is the upper one of two middle lengths.
        let rest = [exact(distinct as u128), at(0), at(count / 2), mean, at(count.saturating_sub(1))];
        row.into_iter().chain(rest).collect::<Vec<String>>()
    });
    // Of the training data alone; the table has the lengths of all parts.
    let histograms =
        contents.lengths.iter().filter(|l| l.part == "train" && l.lengths.iter().any(|n| *n > 0));
    let has_tokens = contents.lengths.iter().any(|one| one.lengths.iter().any(|n| *n > 0));
    let text = match contents.lengths.iter().any(|one| one.shared > 0) {
        _ if !has_tokens => "",
        true => {
            "Lengths are in tokens, without special tokens. An example begins with the last token of the one before, \
            which is counted once."
        }
        false => "Lengths are in tokens, without special tokens.",
    };
    Part {
        title: "Contents".into(),
        text: text.into(),
        facts: contents.facts.clone(),
        figures: histograms.map(histogram).collect(),
        table: Some((header.map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}

/// How many examples have each length, in at most [`BINS`] bars.
fn histogram(one: &Lengths) -> Figure {
    let most = one.lengths.iter().copied().max().unwrap_or(0);
    // A bar covers a whole number of tokens, since no length is between two of them.
    let wide = (most + 1).div_ceil(BINS).max(1);
    let mut counts = vec![0u64; most / wide + 1];
    for length in &one.lengths {
        if let Some(count) = counts.get_mut(length / wide) {
            *count += 1;
        }
    }
    // A step keeps its value until the next one begins.
    let mut points: Vec<(f64, f64)> =
        counts.iter().enumerate().map(|(i, n)| ((i * wide) as f64, *n as f64)).collect();
    // So that the last step has an end.
    points.push(((counts.len() * wide) as f64, 0.0));
    let y = if wide == 1 { "examples".to_owned() } else { format!("examples per {wide} tokens") };
    let title = format!("Lengths of the {} in training", one.side);
    let steps = Series { style: Style::Steps, ..Series::line("", points) };
    Chart::new(&title, Axis::whole("tokens"), Axis::linear(&y).including(0.0)).with(steps).figure()
}

/// The most frequent tokens of a vocabulary, and their counts by rank.
fn vocabulary(one: &Vocabulary) -> Part {
    let total: u64 = one.counts.iter().map(|(_, _, count)| count).sum();
    let special: Vec<String> =
        one.special.iter().map(|(token, id, uses)| format!("{token} ({id}): {}", uses.join(", "))).collect();
    let mut facts = vec![
        ("ids".to_owned(), exact(one.size as u128)),
        (
            "special tokens".to_owned(),
            if special.is_empty() { "none".to_owned() } else { special.join("; ") },
        ),
        ("that occur in training".to_owned(), exact(one.counts.len() as u128)),
    ];
    for (part, unknown, of) in &one.unknown {
        let share = 100.0 * *unknown as f64 / (*of).max(1) as f64;
        facts.push((format!("unknown in {part}"), format!("{} ({share:.2} %)", exact(u128::from(*unknown)))));
    }
    let header = ["token", "id", "times", "share"];
    let rows = one.counts.iter().take(FREQUENT).map(|(token, id, count)| {
        let share = 100.0 * *count as f64 / total.max(1) as f64;
        vec![shown(token), id.to_string(), exact(u128::from(*count)), format!("{share:.2} %")]
    });
    let ranks = one.counts.iter().enumerate().map(|(i, (_, _, count))| ((i + 1) as f64, *count as f64));
    let title = format!("How often the tokens of the {} occur", one.side);
    let chart = Chart::new(&title, Axis::log("rank of the token"), Axis::log("times in training"))
        .with(Series::line("", ranks.collect()));
    // A single point is no curve.
    let figures = if one.counts.len() > 1 { vec![chart.figure()] } else { Vec::new() };
    Part {
        title: format!("Vocabulary of the {}", one.side),
        text:
            "The most frequent tokens first. In most texts of words a token's count falls with its rank as a \
            power law."
                .into(),
        legend: if figures.is_empty() {
            String::new()
        } else {
            "A power law would be a straight line.".into()
        },
        facts,
        figures,
        table: Some((header.map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}

/// A token in a visible form: spaces are replaced by a symbol.
fn shown(token: &str) -> String {
    match token {
        " " => "␣".to_owned(),
        "\n" => "↵".to_owned(),
        "\t" => "⇥".to_owned(),
        other => other.to_owned(),
    }
}

/// How many training examples every class has.
fn classes(all: &[(String, u64)], of_several: Option<u64>) -> Part {
    let total = of_several.unwrap_or_else(|| all.iter().map(|(_, count)| count).sum());
    let text = match of_several {
        Some(_) => "An example may have several classes or none, so the shares need not add up to 100 %.",
        None => {
            "A model that always predicts the largest class is right as often as the share of that class."
        }
    };
    // The table below lists all of them.
    let few = all.get(..CLASSES).unwrap_or(all);
    let bars = Bars::new(
        "Examples of every class",
        "examples in training",
        few.iter().map(|c| c.0.clone()).collect(),
        |n| exact(n as u128),
    )
    .with("", few.iter().map(|c| c.1 as f64).collect());
    let rows = all.iter().map(|(name, count)| {
        let share = 100.0 * *count as f64 / total.max(1) as f64;
        vec![name.clone(), exact(u128::from(*count)), format!("{share:.1} %")]
    });
    Part {
        title: "Classes".into(),
        text: text.into(),
        facts: vec![("classes".into(), all.len().to_string())],
        figures: vec![bars.figure()],
        table: Some((["class", "examples", "share"].map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}

/// One channel of an image, with its class as the title.
fn image(class: &str, pixels: &Matrix) -> Figure {
    let values = (0..pixels.rows).map(|r| pixels.row(r).iter().map(|v| Some(*v)).collect()).collect();
    // Pixels may be normalised, so that their range is not 0 to 1; an even image would have an empty range.
    let (low, high) = pixels.values.iter().fold((0.0f64, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let range = (low, if high > low { high } else { low + 1.0 });
    Heatmap::new(class, values, range, Colors::Rising).sized((130.0, 130.0), false).figure()
}

/// An example as a table of its tokens, one row for each.
fn example(one: &Example) -> Part {
    let has_classes = one.tokens.iter().any(|(_, _, _, class)| !class.is_empty());
    // Columns that would be the same in every row are left out.
    let has_sides = one.tokens.iter().any(|(side, ..)| Some(side) != one.tokens.first().map(|t| &t.0));
    let mut header = vec!["position".to_owned(), "token".to_owned(), "id".to_owned()];
    if has_sides {
        header.insert(0, "of".to_owned());
    }
    if has_classes {
        header.push("class".to_owned());
    }
    let mut rows = Vec::new();
    let (mut side_before, mut position) = (None, 0);
    for (side, token, id, class) in &one.tokens {
        // Each text begins at position 0.
        position = if side_before == Some(side) { position + 1 } else { 0 };
        side_before = Some(side);
        let mut row = vec![position.to_string(), shown(token), id.to_string()];
        if has_sides {
            row.insert(0, side.clone());
        }
        if has_classes {
            row.push(class.clone());
        }
        rows.push(row);
    }
    Part {
        title: format!("Example {}", one.index),
        text: if rows.is_empty() {
            "As it is read."
        } else {
            "As it is read, and the tokens and ids of its texts. The special tokens that the model gets as well \
                are not among them, so positions are those in a text."
        }
        .into(),
        facts: one.facts.clone(),
        table: Some((header, rows)).filter(|(_, rows)| !rows.is_empty()),
        ..Part::default()
    }
}

/// The arrays of a batch with their shapes, and how much of it is padding.
fn batch(one: &Batch) -> Part {
    let rows = one.arrays.iter().map(|(name, shape, what)| {
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        vec![name.clone(), format!("[{}]", sizes.join(", ")), what.clone()]
    });
    let (tokens, padding) = one.tokens;
    let mut facts = vec![("predictions in the loss".to_owned(), exact(one.counted as u128))];
    if tokens > 0 {
        let share = 100.0 * padding as f64 / tokens as f64;
        facts.insert(0, ("positions read".to_owned(), exact(tokens as u128)));
        facts
            .insert(1, ("of which padding".to_owned(), format!("{} ({share:.1} %)", exact(padding as u128))));
    }
    let mut text =
        "What the model gets in one step, and the labels with which its outputs are compared.".to_owned();
    if padding > 0 {
        text += " Shorter examples are padded to the longest of the batch.";
    }
    Part {
        title: "The first batch of training".into(),
        text,
        facts,
        table: Some((["name", "shape", "meaning"].map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}
