//! What a word is that is not one where it was met.

/// What a word of the language is in another place of the same document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The slot of which it is a part.
    pub slot: Option<&'static str>,
    /// What it is, and what to write, after "it is".
    pub says: String,
}

/// A document with other keys than the one that is decoded.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// Its keys, none of which the decoded document has.
    pub keys: &'static [&'static str],
    /// Whether a word is one of the other document alone, below these keys.
    pub has_below: fn(&str) -> bool,
    /// The help for such a key.
    pub help: &'static str,
}
