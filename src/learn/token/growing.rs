//! The text of tokens that come one by one.

use super::Tokenizer;

/// The most tokens that wait for others because their text ends within a character: one has at most 4 bytes.
const MOST_WAITING: usize = 4;

/// The text of a growing sequence of tokens. Only the last ones are decoded again, so a token takes the same
/// time however many there are.
#[derive(Debug)]
pub struct Growing<'a> {
    tokenizer: &'a Tokenizer,
    /// The last tokens whose text was returned, and those after them. How a token is written may depend on
    /// the one before it, so they are decoded together.
    tokens: Vec<u32>,
    /// The number of the tokens whose text was returned.
    returned: usize,
}

impl<'a> Growing<'a> {
    /// The text of no tokens yet.
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        Self::after(tokenizer, &[])
    }

    /// The text that follows these tokens, whose own text is not returned.
    pub fn after(tokenizer: &'a Tokenizer, tokens: &[u32]) -> Self {
        Self { tokenizer, tokens: tokens.to_vec(), returned: tokens.len() }
    }

    /// Adds a token, and returns the text that it completes, if any: several tokens can form one character.
    pub fn add(&mut self, token: u32) -> String {
        self.tokens.push(token);
        let text = self.tokenizer.decode(&self.tokens);
        // Bytes that are no whole character yet are decoded as U+FFFD.
        if !text.ends_with(char::REPLACEMENT_CHARACTER) {
            return self.take(self.tokens.len());
        }
        let waiting = self.tokens.len() - self.returned;
        if waiting <= MOST_WAITING {
            return String::new();
        }
        // The first of them is part of no character, or of one that is complete by now.
        let is_settled = |count: &usize| {
            self.tokens.get(..*count).is_some_and(|part| text.starts_with(&self.tokenizer.decode(part)))
        };
        let settled = (self.returned + 1..self.tokens.len()).rev().find(is_settled);
        settled.map_or_else(String::new, |count| self.take(count))
    }

    /// The text of these tokens and of what is left, when no token follows them.
    pub fn all(mut self, tokens: &[u32]) -> String {
        self.tokens.extend_from_slice(tokens);
        self.finish()
    }

    /// What is left, when no token follows.
    pub fn finish(&mut self) -> String {
        self.take(self.tokens.len())
    }

    /// The text of the tokens up to `count` that was not returned yet.
    fn take(&mut self, count: usize) -> String {
        let known = self.tokens.get(..self.returned).map(|part| self.tokenizer.decode(part));
        let text = self.tokens.get(..count).map(|part| self.tokenizer.decode(part));
        let (known, text) = (known.unwrap_or_default(), text.unwrap_or_default());
        // Nothing is lost where the new tokens change how those before them are written.
        let new = text
            .strip_prefix(&known)
            .map_or_else(|| text.chars().skip(known.chars().count()).collect(), str::to_owned);
        // A token without a text, such as a special one, tells nothing about how the next one is written.
        if new.is_empty() {
            self.returned = count;
        } else {
            self.tokens.drain(..self.returned);
            self.returned = count - self.returned;
        }
        new
    }
}
