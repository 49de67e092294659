//! Values that have an effect in some blocks only, of those that share a text.

use crate::source::Span;

/// A value in the text that has an effect in some blocks only. The same text may describe the attention of
/// several blocks, so it is without an effect only if it has none in any of them.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The place of the value.
    pub place: Span,
    /// Why the value has no effect in this block; `None` if it has one.
    pub lack: Option<Lack>,
}

/// Why a value has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// The fault, in a sentence without a full stop.
    pub message: &'static str,
    /// What would mend it.
    pub help: &'static str,
}
