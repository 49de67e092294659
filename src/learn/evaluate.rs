//! Computes metrics of a model on a part of the data.
//!
//! Loss and accuracy come from the outputs for the right previous tokens (teacher forcing); metrics of
//! texts come from what the model generates greedily. Dropout is off.

use burn::prelude::*;

use super::choose::Sampling;
use super::data::{Batch, Dataset, Labels, Loader, Part};
use super::decode::{Decoder, Prompt};
use super::loss::{alike, loss, output};
use super::metric::{self, answer, bleu};
use super::prompt;
use super::recipe::{Metric, Split};
use super::span;
use super::step::{StepError, forward, number_of};
use super::token::Tokenizer;
use crate::interp::{Outputs, Plan, Weights};

/// The values of metrics, in the order in which they were asked for.
pub type Figures = Vec<(Metric, f64)>;

/// The results collected during an evaluation.
#[derive(Debug, Default)]
struct Collected {
    /// The sum of the losses, and the number of predictions.
    nats: f64,
    counted: u64,
    /// The right and the predicted class of every prediction; padding is not among them.
    classes: Vec<(i64, i64)>,
    /// The number of classes, if several may apply to one example.
    several: Option<usize>,
    /// Predicted answers, with the reference answers.
    answers: Vec<(String, Vec<String>)>,
    /// Texts that the model generated, with the right ones.
    texts: Vec<Written>,
}

/// A text that a model generated, next to the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The input, as its tokenizer decodes it.
    pub source: String,
    /// The text that the model generated greedily, without special tokens.
    pub own: String,
    /// The reference text, in the form in which the tokenizer decodes texts.
    pub right: String,
}

/// What an evaluation computes, and from which examples.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The part of the data whose examples are evaluated.
    pub split: Split,
    /// The most examples, taken from the start of the part.
    pub limit: Option<u64>,
    /// The metrics to compute, in the order in which they are returned.
    pub metrics: &'a [Metric],
    /// Whether translations are returned even if no metric needs them.
    pub writes: bool,
}

/// The values of the metrics, and the texts from which some of them were computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The metrics, in the order in which they were requested.
    pub figures: Figures,
    /// The translations in the order of examples; empty if none were needed or asked for.
    pub written: Vec<Written>,
}

/// Evaluates a model on a part of the data.
///
/// # Errors
/// The data does not fit the model.
pub fn evaluate(
    plan: &Plan,
    weights: &Weights,
    dataset: &Dataset,
    asked: Asked<'_>,
) -> Result<Measured, StepError> {
    let Asked { split, limit, metrics, writes } = asked;
    let wants = |of: &[Metric]| metrics.iter().any(|m| of.contains(m));
    let loader = Loader::new(dataset);
    let mut seen = Collected::default();
    for batch in loader.part(split, limit) {
        let outputs = forward(plan, weights, &batch)?;
        // Without smoothing, so that losses of different recipes can be compared. Sums instead of means of
        // batches, because these may have different numbers of predictions.
        seen.nats += number_of(&loss(&outputs, &batch.labels, 0.0).map_err(StepError::Labels)?)?;
        seen.counted += batch.counted as u64;
        // Only if a metric needs them: the classes of all positions are read back from the device.
        if wants(&[Metric::Accuracy, Metric::MacroF1]) {
            seen.classes.extend(predicted(&outputs, &batch)?);
            if let Labels::Several { shape: [_, width], .. } = &batch.labels {
                seen.several = Some(*width);
            }
        }
        if let (Some(part), Labels::Spans { .. }) = (dataset.part(split), &batch.labels) {
            seen.answers.extend(answers(&outputs, &batch, dataset, part)?);
        }
    }
    let count = limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
    let part = dataset.part(split);
    // The limit counts examples, and a part may have fewer.
    let count = part.map_or(0, |p| p.len().min(count));
    if (writes || wants(&[Metric::Bleu, Metric::WordBleu, Metric::SentenceBleu, Metric::ExactMatch]))
        && let Some(Part::Pairs { texts, .. }) = part
    {
        let written = translations(plan, weights, dataset, split, count)?;
        let book = &dataset.codebook;
        let words = |tokenizer: Option<&Tokenizer>, text: &String| {
            tokenizer.map_or_else(|| text.clone(), |t| in_words(t, text))
        };
        let all = texts.iter().zip(written).map(|((source, target), own)| Written {
            source: words(book.source_tokenizer(), source),
            own,
            right: words(book.tokenizer.as_ref(), target),
        });
        seen.texts = all.collect();
    }
    let pairs: Vec<(&str, &str)> = seen.texts.iter().map(|t| (t.own.as_str(), t.right.as_str())).collect();
    // Over all predictions and not over batches, of which the last may be smaller.
    let mean = seen.nats / seen.counted.max(1) as f64;
    let figure = |metric: Metric| match metric {
        Metric::Loss => mean,
        Metric::Perplexity => metric::perplexity(mean),
        Metric::BitsPerCharacter => metric::bits_per_character(seen.nats, dataset.characters(split, count)),
        Metric::Accuracy => metric::accuracy(&seen.classes),
        Metric::MacroF1 => match seen.several {
            Some(width) => metric::macro_f1_of_several(&seen.classes, width),
            None => metric::macro_f1(&seen.classes),
        },
        Metric::Bleu => bleu::corpus(&pairs),
        Metric::WordBleu => bleu::corpus_of_words(&pairs),
        // The book's lessons compare n-grams of up to two words.
        Metric::SentenceBleu => metric::mean(pairs.iter().map(|(own, right)| bleu::sentence(own, right, 2))),
        Metric::ExactMatch => {
            let texts = pairs.iter().map(|(own, right)| own == right);
            let answers = seen.answers.iter().map(|(own, right)| answer::exact_match(own, right));
            // A task has either texts or answers; the other list is empty.
            metric::mean(texts.chain(answers).map(|is_right| f64::from(u8::from(is_right))))
        }
        Metric::F1 => metric::mean(seen.answers.iter().map(|(own, right)| answer::f1(own, right))),
    };
    let figures = metrics.iter().map(|metric| (*metric, figure(*metric))).collect();
    Ok(Measured { figures, written: seen.texts })
}

/// A reference text in the form in which the tokenizer decodes texts, so that only words are compared: in
/// lower case if it lowers its texts. Texts of words have a space between all words, including unknown ones.
fn in_words(tokenizer: &Tokenizer, text: &str) -> String {
    let words = match tokenizer {
        Tokenizer::Words(words) => words,
        Tokenizer::Characters(characters) if characters.lower() => {
            // Character by character, as the tokenizer does: at the end of a word `Σ` must not become `ς`.
            return text.chars().flat_map(char::to_lowercase).collect();
        }
        Tokenizer::Subword(subword) => return subword.normalized(text),
        Tokenizer::Characters(_) | Tokenizer::Bytes(_) => return text.to_owned(),
    };
    let written = words.pieces(text).into_iter().filter_map(|p| text.get(p.bytes)).map(|word| {
        if words.lower { word.chars().flat_map(char::to_lowercase).collect() } else { word.to_owned() }
    });
    written.collect::<Vec<String>>().join(" ")
}

/// The greedy translations of the first sources of a part.
///
/// # Errors
/// The model does not decode.
pub fn translations(
    plan: &Plan,
    weights: &Weights,
    dataset: &Dataset,
    split: Split,
    count: usize,
) -> Result<Vec<String>, StepError> {
    let book = &dataset.codebook;
    let Some(Part::Pairs { source, language, .. }) = dataset.part(split) else { return Ok(Vec::new()) };
    let prompts: Vec<Prompt> =
        (0..count).map(|i| prompt::of_source(book, source.get(i), language.get(i).copied())).collect();
    // As long as the data at most: beyond it, a model that has not yet learnt to end would repeat itself.
    let limits = prompt::limits(book, book.longest as u64, None);
    let decoder = Decoder::new(plan, weights);
    // The seed has no effect: nothing is drawn.
    let decoded = decoder.sample(&prompts, &Sampling::GREEDY, &limits, 0, &mut |_, _| true)?;
    let text = |tokens: &[u32]| book.tokenizer.as_ref().map_or_else(String::new, |t| t.decode(tokens));
    Ok(decoded.iter().map(|d| text(&d.tokens)).collect())
}

/// The right and the most probable class of every prediction.
///
/// # Errors
/// The outputs do not fit the labels.
pub fn predicted(outputs: &Outputs, batch: &Batch) -> Result<Vec<(i64, i64)>, StepError> {
    match &batch.labels {
        Labels::Positions { classes, weights, .. } => {
            let logits = output::<3>(outputs, "logits").map_err(StepError::Labels)?;
            // On the device, so that one number for each position is read back instead of a vocabulary's.
            let own = ints(logits.argmax(2).flatten::<1>(0, 2))?;
            let all = classes.iter().zip(own).zip(weights);
            Ok(all.filter(|(_, weight)| **weight > 0.0).map(|((right, own), _)| (*right, own)).collect())
        }
        Labels::Classes(classes) => {
            let logits = output::<2>(outputs, "logits").map_err(StepError::Labels)?;
            let own = ints(logits.argmax(1).flatten::<1>(0, 1))?;
            Ok(classes.iter().copied().zip(own).collect())
        }
        Labels::Several { values, .. } => {
            let logits = output::<2>(outputs, "logits").map_err(StepError::Labels)?;
            // A logit above 0 is a probability above one half.
            let own = ints(logits.greater_elem(0.0).int().flatten::<1>(0, 1))?;
            Ok(values.iter().map(|v| *v as i64).zip(own).collect())
        }
        Labels::Alike(pairs) => {
            let scores = alike(outputs, *pairs).map_err(StepError::Labels)?;
            // The right text for the first one of pair `i` is number `i`.
            Ok((0i64..).zip(ints(scores.argmax(1).flatten::<1>(0, 1))?).collect())
        }
        // Answers are compared as texts: two different spans may have the same words.
        Labels::Spans { .. } => Ok(Vec::new()),
    }
}

/// A model's answers as texts, with the reference answers.
fn answers(
    outputs: &Outputs,
    batch: &Batch,
    dataset: &Dataset,
    part: &Part,
) -> Result<Vec<(String, Vec<String>)>, StepError> {
    let Part::Spans { question, questions, .. } = part else { return Ok(Vec::new()) };
    let start = output::<2>(outputs, "start_logits").map_err(StepError::Labels)?;
    let [_, width] = start.dims();
    let start = floats(start)?;
    let end = floats(output::<2>(outputs, "end_logits").map_err(StepError::Labels)?)?;
    let rows = start.chunks(width.max(1)).zip(end.chunks(width.max(1))).zip(&batch.indices);
    Ok(rows
        .filter_map(|((start, end), index)| {
            let (asked, context) = (questions.get(*index)?, part.context(*index)?);
            let before = dataset.before_context(question.get(*index).len());
            let room = dataset.room_for_context(question.get(*index).len());
            let range = before..before + context.ids.len().min(room);
            let own = span::best(start, end, range).and_then(|([first, last], _)| {
                // Cut out of the context by its bytes: decoding the tokens could change spaces and case.
                let (from, _) = context.bytes.get(first - before)?;
                let (_, to) = context.bytes.get(last - before)?;
                context.text.get(*from as usize..*to as usize)
            });
            // A question without an answer counts as wrong; leaving it out would raise the mean.
            Some((own.unwrap_or("").to_owned(), asked.answers.clone()))
        })
        .collect())
}

/// The numbers of a tensor, read back from the device.
fn ints(indices: Tensor<1, Int>) -> Result<Vec<i64>, StepError> {
    let data = indices.try_into_data().map_err(|e| StepError::Device(e.to_string()))?;
    Ok(data.iter::<i64>().collect())
}

/// The scores of a tensor in row-major order, read back from the device.
fn floats(scores: Tensor<2>) -> Result<Vec<f32>, StepError> {
    let data = scores.try_into_data().map_err(|e| StepError::Device(e.to_string()))?;
    Ok(data.iter::<f32>().collect())
}
