//! The kinds of parts that an equation calls.

use crate::diag::foreign::{is_same, meanings};
use crate::field::definition::Definitions;
use crate::field::value::SlotDoc;
use crate::parts::{Attention, Ffn, Norm};
use crate::syntax::tree::{Entry, Kind, Node};

/// What an equation may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// `norm(x)`, `[B, T, D] → [B, T, D]`
    Norm,
    /// `attention(x)`, `[B, T, D] → [B, T, D]`
    Attention,
    /// `cross(x, memory)`, `[B, T, D], [B, S, M] → [B, T, D]`
    Cross,
    /// `ffn(x)`, `[B, T, D] → [B, T, D]`
    Ffn,
    /// `gain(x)`, `[B, T, D] → [B, T, D]`
    Gain,
    /// A part that the spec defines, by its own name
    Own,
}

impl PartKind {
    /// Every kind that has a word, in the order in which messages and documentation list them.
    pub const ALL: &'static [PartKind] =
        &[PartKind::Norm, PartKind::Attention, PartKind::Cross, PartKind::Ffn, PartKind::Gain];

    /// The word that calls it in equations, which is also its key in specs. Parts that the spec defines have no
    /// common word; see [`Site::word`](super::wiring::Site::word).
    pub fn word(self) -> &'static str {
        match self {
            PartKind::Norm => "norm",
            PartKind::Attention => "attention",
            PartKind::Cross => "cross",
            PartKind::Ffn => "ffn",
            PartKind::Gain => "gain",
            PartKind::Own => "part",
        }
    }

    /// The kind of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.word() == word)
    }

    /// The slot with the parts that a call of this kind may be.
    pub fn slot(self) -> Option<SlotDoc> {
        match self {
            PartKind::Norm => Some(Norm::documentation()),
            PartKind::Attention => Some(Attention::documentation()),
            PartKind::Ffn => Some(Ffn::documentation()),
            PartKind::Cross | PartKind::Gain | PartKind::Own => None,
        }
    }

    /// The kind of which a word names a value, and the value as it is written in a spec: `norm` and `rms_norm` for `RMSNorm`,
    /// `ffn` and `{glu: {...}}` for `glu`.
    pub fn with_value(word: &str) -> Option<(Self, String)> {
        let slots = || Self::ALL.iter().filter_map(|kind| Some((*kind, kind.slot()?)));
        let value = |name: &str| {
            slots().find_map(|(kind, slot)| {
                let part = slot.parts.iter().find(|part| is_same(part.name, name))?;
                // Where one part is implied by its fields alone, each of them needs some.
                let has_fields = slot.implied.is_some();
                Some((
                    kind,
                    if has_fields { format!("{{{}: {{...}}}}", part.name) } else { part.name.to_owned() },
                ))
            })
        };
        value(word).or_else(|| meanings(word).find_map(value))
    }

    /// The node with the part's name, if fields were given without it. When one tree is laid over another, a
    /// different part then replaces the first one, and fields of the same part change it.
    pub fn with_part(self, node: &Node, own: &Definitions) -> Node {
        let (Some(slot), Kind::Map(entries)) = (self.slot(), &node.kind) else {
            return node.clone();
        };
        let Some(implied) = slot.implied else { return node.clone() };
        if entries.iter().any(|e| own.has(&e.key) || slot.parts.iter().any(|p| p.name == e.key)) {
            return node.clone();
        }
        let inner = Entry { key: implied.to_owned(), key_span: node.span, value: node.clone() };
        Node::map(vec![inner], node.span)
    }

    /// What a call is given, unless the spec defines the part.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            PartKind::Cross => &["x", "memory"],
            PartKind::Norm | PartKind::Attention | PartKind::Ffn | PartKind::Gain | PartKind::Own => &["x"],
        }
    }
}
