//! Encodes raw examples as numbers.

use std::ops::ControlFlow;

use super::codebook::Codebook;
use super::examples::{Context, NOTHING, Part, Question, Sequences};
use super::read::{Faults, Place, Raw};
use crate::diag::count::counted;
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::data::TooLong;
use crate::learn::token::{Piece, Tokenizer, Unknown};

/// Encodes the examples of one part of the data.
pub struct Encoder<'a> {
    codebook: &'a Codebook,
    too_long: TooLong,
    part: Part,
    /// The tokens of the long text that have not been cut into pieces yet.
    stream: Option<Vec<u32>>,
    /// The paragraph of the last context, which the next question may share.
    paragraph: Option<usize>,
}

/// What is wrong with an example, and how to fix it.
type Fault = (String, Option<&'static str>);

impl<'a> Encoder<'a> {
    /// An encoder without examples. With `is_stream`, texts are sections of one long text.
    pub fn new(codebook: &'a Codebook, too_long: TooLong, is_stream: bool) -> Self {
        let part = match codebook.task {
            Task::Translate => Part::Pairs {
                source: Sequences::default(),
                target: Sequences::default(),
                language: Vec::new(),
                texts: Vec::new(),
            },
            Task::NextToken | Task::HiddenToken => {
                // Masked tokens are predicted from both sides, so each piece is framed as a text of its own.
                let whole = !is_stream || codebook.task == Task::HiddenToken;
                Part::Texts { ids: Sequences::default(), whole, characters: 0 }
            }
            Task::ClassifyText | Task::Embed => Part::Classes {
                text: Sequences::default(),
                second: Sequences::default(),
                labels: Sequences::default(),
            },
            Task::ClassifyImage => Part::Images { pixels: Vec::new(), labels: Vec::new() },
            Task::Tag => Part::Tags { ids: Sequences::default(), tags: Sequences::default() },
            Task::Span => Part::Spans {
                question: Sequences::default(),
                answer: Vec::new(),
                questions: Vec::new(),
                contexts: Vec::new(),
            },
        };
        Self { codebook, too_long, part, stream: is_stream.then(Vec::new), paragraph: None }
    }

    /// Adds an example, or reports what is wrong with it. The result says whether to go on.
    pub fn add(&mut self, raw: Raw, place: Place<'_>, faults: &mut Faults<'_>) -> ControlFlow<()> {
        match self.encode(raw) {
            Ok(()) => ControlFlow::Continue(()),
            Err((message, help)) => faults.line(place, &message, help),
        }
    }

    /// The encoded examples. What remains of a long text becomes its last piece.
    pub fn finish(mut self) -> Part {
        self.cut(true);
        self.part
    }

    /// Adds an example to the part, unless it is too long and is left out.
    fn encode(&mut self, raw: Raw) -> Result<(), Fault> {
        let (codebook, too_long) = (self.codebook, self.too_long);
        let tokenizer = codebook.tokenizer.as_ref();
        let room = codebook.room();
        match (&mut self.part, raw) {
            (Part::Texts { ids, whole, characters }, Raw::Text(text)) => {
                let pieces = pieces(tokenizer, &text)?;
                let all: Vec<u32> = pieces.iter().map(|piece| piece.id).collect();
                // Only what is predicted counts, and nothing predicts the first token unless a start token does.
                let first = pieces.first().map_or(0, |piece| piece.bytes.end);
                let unpredicted =
                    |begins: bool| if begins && !codebook.predicts_first(*whole) { first } else { 0 };
                if let Some(stream) = &mut self.stream {
                    let from = unpredicted(stream.is_empty());
                    *characters += text.char_indices().filter(|(at, _)| *at >= from).count() as u64;
                    stream.extend(all);
                    self.cut(false);
                } else if let Some(fitted) = fit(all, room, too_long)? {
                    // Of a text that is cut, only what is left is predicted, so only that counts.
                    let cut = pieces.get(fitted.len()).and_then(|_| pieces.get(fitted.len().checked_sub(1)?));
                    let end = cut.map_or(text.len(), |last| last.bytes.end);
                    let read = unpredicted(true)..end;
                    *characters += text.char_indices().filter(|(at, _)| read.contains(at)).count() as u64;
                    ids.push(&fitted);
                }
            }
            (
                Part::Pairs { source, target, texts, language },
                Raw::Pair { source: from, target: to, language: of },
            ) => {
                let a = fit(encoded(codebook.source_tokenizer(), &from)?, room, too_long)?;
                let b = fit(encoded(tokenizer, &to)?, room, too_long)?;
                let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
                if let Some(of) = of {
                    // After both sides fit: the lists must stay as long as each other if an example is left
                    // out.
                    language.push(index_of(&codebook.languages, &of, "language")?);
                }
                source.push(&a);
                target.push(&b);
                texts.push((from, to));
            }
            (
                Part::Classes { text, second, labels },
                Raw::Labelled { text: first, second: other, labels: of },
            ) => {
                let of = codebook.labels(&of)?;
                let first = encoded(tokenizer, &first)?;
                let fitted = match other {
                    None => fit(first, room, too_long)?.map(|first| (first, Vec::new())),
                    Some(other) => {
                        // A second text is followed by special tokens of its own.
                        let room = room.saturating_sub(codebook.layout().more_marks());
                        fit_both(first, encoded(tokenizer, &other)?, room, too_long)?
                    }
                };
                let Some((first, other)) = fitted else { return Ok(()) };
                text.push(&first);
                second.push(&other);
                labels.push(&of);
            }
            (Part::Classes { text, second, labels }, Raw::Pair { source: from, target: to, .. }) => {
                let a = fit(encoded(tokenizer, &from)?, room, too_long)?;
                let b = fit(encoded(tokenizer, &to)?, room, too_long)?;
                let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
                text.push(&a);
                second.push(&b);
                // Pairs have no class, but every list of a part has an entry for each example.
                labels.push(&[]);
            }
            (Part::Images { pixels, labels }, Raw::Image { pixels: values, label }) => {
                labels.push(index_of(&codebook.classes, &label, "class")?);
                pixels.extend(values);
            }
            (Part::Tags { ids, tags }, Raw::Tagged { words, tags: of }) => {
                let (mut all, mut classes) = (Vec::new(), Vec::new());
                for (word, tag) in words.iter().zip(&of) {
                    let class = index_of(&codebook.classes, tag, "class")?;
                    let pieces = encoded(tokenizer, word)?;
                    // The first token represents its word, as in BERT (Devlin et al. 2019): a word counts
                    // once, however many tokens it has.
                    classes.extend((0..pieces.len()).map(|i| if i == 0 { class } else { NOTHING }));
                    all.extend(pieces);
                }
                let Some(fitted) = fit(all, room, too_long)? else { return Ok(()) };
                // Cut at the same place, so that each class stays with its token.
                classes.truncate(fitted.len());
                ids.push(&fitted);
                tags.push(&classes);
            }
            (Part::Spans { .. }, Raw::Question { id, question, paragraph, context, answers }) => {
                self.question(id, question, paragraph, context, answers)?;
            }
            // A recipe is refused if its format gives other examples than the task needs.
            (_, _) => {}
        }
        Ok(())
    }

    /// Cuts the long text into pieces; the last one may be shorter.
    fn cut(&mut self, is_last: bool) {
        let (Some(stream), Part::Texts { ids, whole, .. }) = (&mut self.stream, &mut self.part) else {
            return;
        };
        // Sections of the text are encoded one after the other, and a piece may cross their border.
        // In one text, every piece begins with the token that the piece before it predicts last.
        let (size, step) = match *whole {
            true => (self.codebook.room(), self.codebook.room()),
            false => (self.codebook.longest.saturating_add(1), self.codebook.longest),
        };
        // A single token would leave nothing to predict.
        let (size, step) = (size.max(2), step.max(1));
        let mut at = 0usize;
        while let Some(piece) = stream.get(at..at.saturating_add(size)) {
            ids.push(piece);
            at += step;
        }
        stream.drain(..at);
        if is_last && stream.len() >= 2 {
            ids.push(stream);
            stream.clear();
        }
    }

    /// Adds a question. The tokens of its context are those of the question before it if both share a
    /// paragraph.
    fn question(
        &mut self,
        id: String,
        text: String,
        paragraph: usize,
        context: String,
        answers: Vec<(usize, String)>,
    ) -> Result<(), Fault> {
        let tokenizer = self.codebook.tokenizer.as_ref();
        let Part::Spans { question, answer, questions, contexts } = &mut self.part else { return Ok(()) };
        // Dozens of questions share a paragraph, which is then encoded and kept once.
        if self.paragraph != Some(paragraph) {
            let pieces = pieces(tokenizer, &context)?;
            // Half the memory of `usize`, of which each token has two. A paragraph of 4 GiB is beyond the
            // limit of its file.
            let byte = |b: usize| u32::try_from(b).unwrap_or(u32::MAX);
            let bytes = pieces.iter().map(|p| (byte(p.bytes.start), byte(p.bytes.end))).collect();
            let ids = pieces.iter().map(|p| p.id).collect();
            contexts.push(Context { text: context, ids, bytes });
            self.paragraph = Some(paragraph);
        }
        let Some(known) = contexts.last() else { return Ok(()) };
        let mut asked = encoded(tokenizer, &text)?;
        // There are special tokens before the question, between it and the context, and after the context.
        let after = self.codebook.layout().more_marks();
        let room = self.codebook.room().saturating_sub(after + asked.len());
        if known.ids.len() > room && self.too_long != TooLong::Cut {
            // A question without room for its context is reported or left out.
            return fit(known.ids.clone(), room, self.too_long).map(drop);
        }
        asked.truncate(self.codebook.room().saturating_sub(after));
        // Several annotators may have answered. The first one is learnt; a metric accepts every one of them.
        answer.push(answers.first().and_then(|(start, said)| known.tokens(*start, start + said.len(), room)));
        question.push(&asked);
        let answers = answers.into_iter().map(|(_, said)| said).collect();
        questions.push(Question { id, text, context: contexts.len() - 1, answers });
        Ok(())
    }
}

impl Context {
    /// The first and the last of the first `room` tokens that overlap a range of bytes.
    fn tokens(&self, start: usize, end: usize, room: usize) -> Option<(u32, u32)> {
        let of = |b: u32| b as usize;
        // Only what is read can be predicted.
        let seen = self.bytes.get(..room.min(self.bytes.len()))?;
        let first = seen.iter().position(|(_, e)| of(*e) > start)?;
        let last = seen.iter().rposition(|(s, _)| of(*s) < end)?;
        // An answer that is cut off in the middle would teach a wrong end.
        let whole = seen.get(last).is_some_and(|(_, e)| of(*e) >= end);
        let index = |i: usize| u32::try_from(i).ok();
        (whole && first <= last).then_some((index(first)?, index(last)?))
    }
}

impl Codebook {
    /// The indices of an example's labels. A single sigmoid has two labels, for no and yes.
    fn labels(&self, labels: &[String]) -> Result<Vec<u32>, Fault> {
        let all: Result<Vec<u32>, Fault> =
            labels.iter().map(|l| index_of(&self.classes, l, "class")).collect();
        let all = all?;
        match (self.several, all.as_slice()) {
            (false, [_]) | (true, _) => Ok(all),
            (false, more) => Err((
                format!("the example has {}, but exactly one is expected", counted(more.len(), "class")),
                None,
            )),
        }
    }
}

/// The index of a class or a language among its names; `what` it is, for the message.
fn index_of(names: &[String], name: &str, what: &str) -> Result<u32, Fault> {
    // The first pass over the training files has collected every class, so only the files for validation and
    // test can have an unknown one.
    let at = names.iter().position(|n| n == name).and_then(|i| u32::try_from(i).ok());
    at.ok_or_else(|| (format!("the {what} `{name}` does not occur in the training data"), None))
}

/// The tokens of a text with their bytes; none without a tokenizer.
fn pieces(tokenizer: Option<&Tokenizer>, text: &str) -> Result<Vec<Piece>, Fault> {
    tokenizer.map_or(Ok(Vec::new()), |t| t.pieces(text)).map_err(|Unknown { what }| {
        // Only held-out files get here with it: the training data has been seen when the tokenizer was made.
        if matches!(tokenizer, Some(Tokenizer::Characters(t)) if t.is_boundary(&what)) {
            let help = "choose another character, or leave `boundary` out";
            return (format!("the boundary `{what}` occurs in the text"), Some(help));
        }
        let help = "use a tokenizer with a token for unknown text";
        (format!("`{what}` is not in the vocabulary, which is that of the training data"), Some(help))
    })
}

/// The ids of a text; none without a tokenizer.
fn encoded(tokenizer: Option<&Tokenizer>, text: &str) -> Result<Vec<u32>, Fault> {
    pieces(tokenizer, text).map(|pieces| pieces.into_iter().map(|p| p.id).collect())
}

/// The tokens of two texts that are read as one sequence.
type Pair = (Vec<u32>, Vec<u32>);

/// The tokens, shortened or refused if there are more than `room`.
fn fit(mut ids: Vec<u32>, room: usize, too_long: TooLong) -> Result<Option<Vec<u32>>, Fault> {
    if ids.len() <= room {
        return Ok(Some(ids));
    }
    match too_long {
        TooLong::Cut => {
            ids.truncate(room);
            Ok(Some(ids))
        }
        TooLong::Skip => Ok(None),
        TooLong::Refuse => Err(too_many(ids.len(), room)),
    }
}

/// The tokens of two texts, shortened or refused if there are more than `room` together. The longer text is
/// shortened first, until both have the same length, as the Hugging Face library does by default
/// (`longest_first`).
fn fit_both(mut a: Vec<u32>, mut b: Vec<u32>, room: usize, too_long: TooLong) -> Result<Option<Pair>, Fault> {
    if a.len().saturating_add(b.len()) > room {
        let (of_shorter, is_first) = (a.len().min(b.len()).min(room / 2), a.len() <= b.len());
        let of_longer = room.saturating_sub(of_shorter);
        let all = a.len().saturating_add(b.len());
        match too_long {
            TooLong::Cut if is_first => (a.truncate(of_shorter), b.truncate(of_longer)),
            TooLong::Cut => (a.truncate(of_longer), b.truncate(of_shorter)),
            TooLong::Skip => return Ok(None),
            TooLong::Refuse => return Err(too_many(all, room)),
        };
    }
    Ok(Some((a, b)))
}

/// An example has more tokens than there is room for.
fn too_many(count: usize, room: usize) -> Fault {
    let message = format!("the example has {}, but there is room for only {room}", counted(count, "token"));
    (message, Some("raise `longest` or the spec's `context`, or write `too_long: cut` or `too_long: skip`"))
}
