//! The arrays of each task.

use super::array::{Failed, NO_CLASS, Reader, Writer};
use super::manifest::PartEntry;
use crate::learn::data::codebook::Codebook;
use crate::learn::data::examples::{Context, Part, Question};
use crate::learn::data::form::Form;
use crate::learn::recipe::agree::Task;
use crate::learn::token::Tokenizer;

/// Writes the arrays of a part.
pub fn write(part: &Part, codebook: &Codebook, to: &mut Writer<'_>) -> Result<PartEntry, Failed> {
    let (mut own, mut length) = (None, None);
    match part {
        Part::Texts { ids, whole, characters } => {
            (own, length) = (Some(*whole), Some(*characters));
            to.lists("ids", ids)?;
        }
        Part::Pairs { source, target, language, texts } => {
            to.lists("source", source)?;
            to.lists("target", target)?;
            if !language.is_empty() {
                to.array("language", &[], language.iter().map(|l| signed(*l)))?;
            }
            to.texts("source_text", texts.iter().map(|(source, _)| source.as_str()))?;
            to.texts("target_text", texts.iter().map(|(_, target)| target.as_str()))?;
        }
        Part::Classes { text, second, labels } => {
            to.lists("text", text)?;
            to.lists("second", second)?;
            to.lists("labels", labels)?;
        }
        Part::Images { pixels, labels } => {
            let Form { channels, side } = form(codebook);
            to.array("pixels", &[channels as u64, side as u64, side as u64], pixels.iter().copied())?;
            to.array("labels", &[], labels.iter().map(|l| signed(*l)))?;
        }
        Part::Tags { ids, tags } => {
            to.lists("ids", ids)?;
            to.lists("tags", tags)?;
        }
        Part::Spans { question, answer, questions, contexts } => {
            to.lists("question", question)?;
            let ends = answer.iter().flat_map(|answer| match answer {
                Some((first, last)) => [signed(*first), signed(*last)],
                None => [NO_CLASS; 2],
            });
            to.array("answer", &[2], ends)?;
            let context = questions.iter().map(|q| i32::try_from(q.context).unwrap_or(i32::MAX));
            to.array("context", &[], context)?;
            to.texts("question_id", questions.iter().map(|q| q.id.as_str()))?;
            to.texts("question_text", questions.iter().map(|q| q.text.as_str()))?;
            let answers = || questions.iter().map(|q| &q.answers);
            to.texts("answer_text", answers().flatten().map(String::as_str))?;
            to.offsets("answer_text.of", answers().map(Vec::len))?;
            to.array("context_ids", &[], contexts.iter().flat_map(|c| &c.ids).map(|id| signed(*id)))?;
            to.offsets("context_ids", contexts.iter().map(|c| c.ids.len()))?;
            let bytes = contexts.iter().flat_map(|c| &c.bytes);
            to.array("context_bytes", &[2], bytes.flat_map(|(a, b)| [signed(*a), signed(*b)]))?;
            to.texts("context_text", contexts.iter().map(|c| c.text.as_str()))?;
        }
    }
    let arrays = to.arrays.clone();
    Ok(PartEntry { examples: part.len() as u64, whole: own, characters: length, arrays })
}

/// Reads the arrays of a part.
pub fn read(from: &mut Reader<'_>, codebook: &Codebook) -> Result<Part, String> {
    let count = from.examples()?;
    // Checksums show damage, and not what a program has written wrongly: an id beyond its table would read
    // other memory on some devices.
    let of = |tokenizer: Option<&Tokenizer>| tokenizer.map_or(0, Tokenizer::vocab);
    let (vocab, sources) = (of(codebook.tokenizer.as_ref()), of(codebook.source_tokenizer()));
    let classes = codebook.classes.len();
    let part = match codebook.task {
        Task::NextToken | Task::HiddenToken => {
            let ids = from.lists("ids", Some(count), vocab, "tokens", false)?;
            let (Some(whole), Some(characters)) = (from.entry.whole, from.entry.characters) else {
                return Err("data.json does not say whether texts are whole".to_owned());
            };
            Part::Texts { ids, whole, characters }
        }
        Task::Translate => {
            let source = from.lists("source", Some(count), sources, "tokens", false)?;
            let target = from.lists("target", Some(count), vocab, "tokens", false)?;
            let language = match codebook.languages.len() {
                0 => Vec::new(),
                languages => from.ids("language", Some(count), languages, "languages", false)?,
            };
            let texts = from.texts("source_text", Some(count))?;
            let texts = texts.into_iter().zip(from.texts("target_text", Some(count))?).collect();
            Part::Pairs { source, target, language, texts }
        }
        Task::Embed => {
            let text = from.lists("text", Some(count), vocab, "tokens", false)?;
            let second = from.lists("second", Some(count), vocab, "tokens", false)?;
            // With no class to choose from, every list must be empty.
            let labels = from.lists("labels", Some(count), 0, "classes", false)?;
            Part::Classes { text, second, labels }
        }
        Task::ClassifyText => {
            let text = from.lists("text", Some(count), vocab, "tokens", false)?;
            let second = from.lists("second", Some(count), vocab, "tokens", false)?;
            let labels = from.lists("labels", Some(count), classes, "classes", false)?;
            if !codebook.several && (0..count).any(|i| labels.get(i).len() != 1) {
                return Err("an example does not have exactly one class".to_owned());
            }
            Part::Classes { text, second, labels }
        }
        Task::ClassifyImage => {
            let Form { channels, side } = form(codebook);
            let pixels = from.array("pixels", Some(count), &[channels, side, side])?;
            let labels = from.ids("labels", Some(count), classes, "classes", false)?;
            Part::Images { pixels, labels }
        }
        Task::Tag => {
            let ids = from.lists("ids", Some(count), vocab, "tokens", false)?;
            let tags = from.lists("tags", Some(count), classes, "classes", true)?;
            // With lists of different lengths, classes would belong to other tokens.
            if (0..count).any(|i| ids.get(i).len() != tags.get(i).len()) {
                return Err("an example does not have as many classes as tokens".to_owned());
            }
            Part::Tags { ids, tags }
        }
        Task::Span => spans(from, count, vocab)?,
    };
    from.finish()?;
    Ok(part)
}

/// Reads the questions of a part, with their contexts and answers.
fn spans(from: &mut Reader<'_>, count: usize, vocab: usize) -> Result<Part, String> {
    let question = from.lists("question", Some(count), vocab, "tokens", false)?;
    let ends: Vec<i32> = from.array("answer", Some(count), &[2])?;
    let index: Vec<i32> = from.array("context", Some(count), &[])?;
    let ids = from.texts("question_id", Some(count))?;
    let texts = from.texts("question_text", Some(count))?;
    let mut answers = from.texts("answer_text", None)?.into_iter();
    let of = from.ends("answer_text.of", Some(count), answers.len())?;
    let tokens = from.lists("context_ids", None, vocab, "tokens", false)?;
    let bytes: Vec<i32> = from.array("context_bytes", Some(tokens.total()), &[2])?;
    let mut bytes = pairs(&bytes);
    let written = from.texts("context_text", Some(tokens.len()))?;
    let contexts: Vec<Context> = written
        .into_iter()
        .enumerate()
        .map(|(i, text)| {
            // These ranges are not checked: a text is cut with `get`, which has nothing for a wrong range.
            let ids = tokens.get(i).to_vec();
            let bytes =
                bytes.by_ref().take(ids.len()).map(|(a, b)| (a.unwrap_or(0), b.unwrap_or(0))).collect();
            Context { text, ids, bytes }
        })
        .collect();
    let (mut answer, mut questions, mut before) = (Vec::new(), Vec::new(), 0usize);
    let all = ids.into_iter().zip(texts).zip(index).zip(of).zip(pairs(&ends));
    for ((((id, text), context), end), (first, last)) in all {
        let context = usize::try_from(context).ok().filter(|c| *c < contexts.len());
        let context = context.ok_or_else(|| "a question has no context".to_owned())?;
        let length = contexts.get(context).map_or(0, |c| c.ids.len());
        answer.push(match (first, last) {
            (Some(first), Some(last)) if first <= last && (last as usize) < length => Some((first, last)),
            (None, None) => None,
            _ => return Err("an answer is not in its context".to_owned()),
        });
        // The answers of all questions follow each other in one array, so each question takes its own from
        // the front.
        let own = answers.by_ref().take(end.saturating_sub(before)).collect();
        before = end;
        questions.push(Question { id, text, context, answers: own });
    }
    Ok(Part::Spans { question, answer, questions, contexts })
}

/// Pairs of numbers, each `None` if it is negative.
fn pairs(values: &[i32]) -> impl Iterator<Item = (Option<u32>, Option<u32>)> {
    let at = |pair: &[i32], i: usize| pair.get(i).and_then(|n| u32::try_from(*n).ok());
    values.chunks(2).map(move |pair| (at(pair, 0), at(pair, 1)))
}

/// An id as arrays store it. One that does not fit is beyond every vocabulary, so reading refuses it.
fn signed(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

/// The form of the images; a codebook of images always has one.
fn form(codebook: &Codebook) -> Form {
    codebook.image.unwrap_or(Form { channels: 1, side: 1 })
}
