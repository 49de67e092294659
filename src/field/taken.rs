//! What is already at the place where a key belongs.

use crate::diag::{Diagnostic, Fix};
use crate::syntax::tree::{Entry, Node};

/// The value that is at the place of another key, or at a map above it.
pub(super) struct Taken<'n> {
    /// The path, if it is shorter than that of the key.
    above: Option<String>,
    value: &'n str,
}

impl<'n> Taken<'n> {
    /// What the same text has at a path below a map, or at a key on the way to it. What a variant or a setting says there
    /// replaces what the spec says.
    pub(super) fn find(entry: &Entry, path: &[String], map: &'n Node) -> Option<Self> {
        let mut node = map;
        for (i, key) in path.iter().enumerate() {
            let there = node.entry(key)?;
            if !map.span.contains(there.key_span) || !map.span.contains(entry.key_span) {
                return None;
            }
            if let Some(value) = there.value.text() {
                let at = path.get(..=i)?;
                return Some(Self { above: (at.len() < path.len()).then(|| at.join(".")), value });
            }
            node = &there.value;
        }
        None
    }

    /// The end of a sentence about the place.
    pub(super) fn says(&self, entry: &Entry) -> String {
        let Self { above, value } = self;
        match above {
            Some(at) => format!("but `{at}` is `{value}` already: keep one of the two"),
            None if self.is_same(entry) => format!("which is `{value}` already: remove this one"),
            None => format!("which is `{value}` already: keep one of the two"),
        }
    }

    /// The diagnostic with the change that loses nothing, if there is one.
    pub(super) fn fixed(&self, entry: &Entry, diagnostic: Diagnostic) -> Diagnostic {
        if self.is_same(entry) { diagnostic.fix(Fix::Remove) } else { diagnostic }
    }

    fn is_same(&self, entry: &Entry) -> bool {
        self.above.is_none() && entry.value.text() == Some(self.value)
    }
}
