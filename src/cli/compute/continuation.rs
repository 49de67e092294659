//! The text that continues a prompt, as it grows and in the end.
//!
//! How a token is written depends on the one before it: the first word of a text has no space before it, and
//! that of a continuation has one. So a continuation is decoded together with the tokens of its prompt.

use crate::cli::outcome::{Exit, Failure};
use crate::cli::ui::print;
use crate::learn::token::{Growing, Tokenizer};

/// What a text begins with: a prompt as it was given, and its tokens.
pub(super) struct Begun<'a> {
    tokenizer: &'a Tokenizer,
    prompt: &'a str,
    /// The tokens after which the continuation is decoded. None for an empty prompt: what follows it begins the
    /// text, even if the start token is a word of the tokenizer.
    tokens: &'a [u32],
}

impl<'a> Begun<'a> {
    /// A prompt and its tokens.
    pub(super) fn new(tokenizer: &'a Tokenizer, prompt: &'a str, tokens: &'a [u32]) -> Self {
        Self { tokenizer, prompt, tokens: if prompt.is_empty() { &[] } else { tokens } }
    }

    /// The text that these tokens add to that of the prompt.
    pub(super) fn followed_by(&self, own: &[u32]) -> String {
        self.growing().all(own)
    }

    /// The prompt with its continuation.
    pub(super) fn joined(&self, own: &str) -> String {
        format!("{}{}", self.prompt, self.spaced_once(own))
    }

    /// The prompt with its continuation, as the data of training are read: spaces and capitals of the prompt that
    /// have no tokens are none.
    pub(super) fn as_data(&self, own: &str) -> String {
        format!("{}{own}", self.tokenizer.decode(self.tokens))
    }

    fn growing(&self) -> Growing<'a> {
        Growing::after(self.tokenizer, self.tokens)
    }

    /// The continuation without its first space if the prompt ends with one that has no token: the tokenizer
    /// writes it between the two.
    fn spaced_once<'t>(&self, own: &'t str) -> &'t str {
        let ends = |text: &str| text.ends_with(char::is_whitespace);
        let has_none = ends(self.prompt) && !ends(&self.tokenizer.decode(self.tokens));
        own.strip_prefix(' ').filter(|_| has_none).unwrap_or(own)
    }
}

/// The end of a growing text, in which its stops are looked for.
pub(super) struct Ending<'a> {
    text: Growing<'a>,
    stops: &'a [String],
    /// As much of the text's end as can be part of a stop.
    tail: String,
}

impl<'a> Ending<'a> {
    /// The end of a text that has only its prompt.
    pub(super) fn new(begun: &Begun<'a>, stops: &'a [String]) -> Self {
        Self { text: begun.growing(), stops, tail: String::new() }
    }

    /// Whether the text has one of its stops with this token.
    pub(super) fn comes_with(&mut self, token: u32) -> bool {
        let Some(longest) = self.stops.iter().map(String::len).max() else { return false };
        self.tail.push_str(&self.text.add(token));
        let has_stop = self.stops.iter().any(|stop| self.tail.contains(stop.as_str()));
        // A cut within a character keeps all of it.
        let from = self.tail.floor_char_boundary(self.tail.len().saturating_sub(longest));
        self.tail.drain(..from);
        has_stop
    }
}

/// A text up to the first of its stops, and whether there was one.
pub(super) fn until_stop(text: String, stops: &[String]) -> (String, bool) {
    let first = stops.iter().filter(|s| !s.is_empty()).filter_map(|stop| text.find(stop.as_str())).min();
    match first {
        Some(at) => (text.get(..at).unwrap_or("").to_owned(), true),
        None => (text, false),
    }
}

/// Shows a text on a terminal while it is generated.
pub(super) struct Stream<'a> {
    begun: &'a Begun<'a>,
    text: Growing<'a>,
    stop: &'a [String],
    /// What is not shown yet: it may be the beginning of a stop.
    pending: String,
    /// Whether nothing of the continuation has been shown yet.
    is_first: bool,
    has_stopped: bool,
}

impl<'a> Stream<'a> {
    /// Shows the prompt, which the text continues.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn new(begun: &'a Begun<'a>, stop: &'a [String]) -> Result<Self, Failure> {
        write(begun.prompt)?;
        let text = begun.growing();
        Ok(Self { begun, text, stop, pending: String::new(), is_first: true, has_stopped: false })
    }

    /// Shows what a new token completes.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn add(&mut self, token: u32) -> Result<(), Failure> {
        let new = self.text.add(token);
        self.take(&new)?;
        // Several characters can form one stop, whose beginning is not shown.
        let parts = self.stop.iter().flat_map(|s| (1..s.len()).filter_map(|n| s.get(..n)));
        // The longest of them, which contains all others that the text could end with.
        let kept = parts.filter(|part| self.pending.ends_with(part)).map(str::len).max().unwrap_or(0);
        let shown: String = self.pending.drain(..self.pending.len() - kept).collect();
        self.show(&shown)
    }

    /// Shows what was kept back because it could be the beginning of a stop or of a character: nothing follows
    /// it any more.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let rest = self.text.finish();
        self.take(&rest)?;
        let rest = std::mem::take(&mut self.pending);
        self.show(&rest)
    }

    /// Adds to the text that is not shown yet, up to the first stop.
    fn take(&mut self, new: &str) -> Result<(), Failure> {
        if self.has_stopped {
            return Ok(());
        }
        self.pending.push_str(new);
        let (text, has_stopped) = until_stop(std::mem::take(&mut self.pending), self.stop);
        self.has_stopped = has_stopped;
        if has_stopped {
            return self.show(&text);
        }
        self.pending = text;
        Ok(())
    }

    fn show(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let is_first = std::mem::take(&mut self.is_first);
        write(if is_first { self.begun.spaced_once(text) } else { text })
    }
}

fn write(text: &str) -> Result<(), Failure> {
    print(text).map_err(|e| Failure::new(Exit::File, format!("cannot write to stdout: {e}")))
}
