//! A comment of a text.

/// A comment, and where it begins.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The comment as written, with its `#` or `//`.
    pub text: String,
    /// The offset of its first byte in the text, counted from 0.
    pub start: usize,
}
