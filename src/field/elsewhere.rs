//! What a word is that is not one where it was met.

/// What a word of the language is in another place of the same document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The slot of which it is a part.
    pub slot: Option<&'static str>,
    /// What it is, and what to write, after "it is".
    pub says: String,
}
