//! Raw examples to numbers.

use std::ops::ControlFlow;

use super::codebook::Codebook;
use super::examples::{Part, Sequences};
use super::read::{Faults, Place, Raw};
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::data::TooLong;
use crate::learn::token::{Tokenizer, Unknown};

/// Turns examples into numbers, one part of the data.
pub struct Encoder<'a> {
    codebook: &'a Codebook,
    too_long: TooLong,
    part: Part,
}

/// What became of an example.
type Encoded = Result<(), (String, Option<&'static str>)>;

impl<'a> Encoder<'a> {
    /// An empty part.
    pub fn new(codebook: &'a Codebook, too_long: TooLong) -> Self {
        let part = match codebook.task {
            Task::Translate => Part::Pairs {
                source: Sequences::default(),
                target: Sequences::default(),
                language: Vec::new(),
                texts: Vec::new(),
            },
            _ => Part::Texts { ids: Sequences::default(), characters: 0 },
        };
        Self { codebook, too_long, part }
    }

    /// Adds an example, or says what is wrong with it.
    pub fn add(&mut self, raw: Raw, place: Place<'_>, faults: &mut Faults<'_>) -> ControlFlow<()> {
        match self.encode(raw) {
            Ok(()) => ControlFlow::Continue(()),
            Err((message, help)) => faults.line(place, &message, help),
        }
    }

    /// The part.
    pub fn finish(self) -> Part {
        self.part
    }

    fn encode(&mut self, raw: Raw) -> Encoded {
        let (codebook, too_long) = (self.codebook, self.too_long);
        let room = codebook.room();
        match (&mut self.part, raw) {
            (Part::Texts { ids, characters }, Raw::Text(text)) => {
                let all = encoded(codebook.tokenizer.as_ref(), &text)?;
                let Some(fitted) = fit(all, room, too_long)? else { return Ok(()) };
                *characters += text.chars().count() as u64;
                ids.push(&fitted);
            }
            (Part::Pairs { source, target, texts, .. }, Raw::Pair { source: from, target: to, .. }) => {
                let a = fit(encoded(codebook.source_tokenizer(), &from)?, room, too_long)?;
                let b = fit(encoded(codebook.tokenizer.as_ref(), &to)?, room, too_long)?;
                let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
                source.push(&a);
                target.push(&b);
                texts.push((from, to));
            }
            (_, _) => {}
        }
        Ok(())
    }
}

fn encoded(tokenizer: Option<&Tokenizer>, text: &str) -> Result<Vec<u32>, (String, Option<&'static str>)> {
    let encode = |t: &Tokenizer| t.encode(text);
    tokenizer.map_or(Ok(Vec::new()), encode).map_err(|Unknown { what }| {
        let help = "a tokenizer with a mark for the unknown reads it";
        (format!("`{what}` is not in the vocabulary of the training data"), Some(help))
    })
}

/// The tokens as far as there is room.
fn fit(
    mut ids: Vec<u32>,
    room: usize,
    too_long: TooLong,
) -> Result<Option<Vec<u32>>, (String, Option<&'static str>)> {
    if ids.len() <= room {
        return Ok(Some(ids));
    }
    match too_long {
        TooLong::Cut => {
            ids.truncate(room);
            Ok(Some(ids))
        }
        TooLong::Skip => Ok(None),
        TooLong::Refuse => {
            let message = format!("{} tokens, and there is room for {room}", ids.len());
            Err((message, Some("a larger `context`, or `too_long: cut` or `too_long: skip`")))
        }
    }
}
