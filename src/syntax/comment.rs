//! A comment of a text.

/// A comment, and where it begins.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The comment as written, with its `#` or `//`.
    pub text: String,
    /// The offset of its first byte.
    pub start: usize,
}
