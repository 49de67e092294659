//! Tokenizers from the training data.

use super::{Tokenizer, characters};
use crate::learn::recipe::Tokens;

/// Takes in texts and makes the tokenizer a recipe asks for.
#[derive(Debug)]
pub struct Maker<'r> {
    tokens: &'r Tokens,
    characters: characters::Collector,
}

impl<'r> Maker<'r> {
    /// A maker of what the recipe asks for.
    pub fn new(tokens: &'r Tokens) -> Self {
        Self { tokens, characters: characters::Collector::default() }
    }

    /// Takes in a text. One that is held back adds to an alphabet, so that it can be said, and to
    /// nothing else.
    pub fn add(&mut self, text: &str, _is_learnt: bool) {
        if let Tokens::Characters(t) = self.tokens {
            self.characters.add(text, t.lower);
        }
    }

    /// The tokenizer.
    pub fn finish(self) -> Tokenizer {
        let (boundary, lower) = match self.tokens {
            Tokens::Characters(t) => (t.boundary.as_ref().and_then(|b| b.chars().next()), t.lower),
            _ => (None, false),
        };
        Tokenizer::Characters(self.characters.finish(boundary, lower))
    }
}
