//! Output heads: what a model is for. Adding one: a file here and a row below.

pub mod classify;
pub mod embed;
pub mod hidden;
pub mod lm;
pub mod mlm;
pub mod pool;
pub mod span;
pub mod tag;

pub use classify::Classify;
pub use embed::EmbedHead;
pub use lm::Lm;
pub use mlm::Mlm;
pub use span::SpanHead;
pub use tag::Tag;

use super::init::InitPlan;
use crate::field::record::slot;
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::Sequence;
use crate::ir::{Dim, ModuleId, Sym, Type, ValueId};

slot! {
    /// What the model is for: its output, its loss and what its data must hold.
    pub enum Head as "head" {
        /// Next tokens of a decoder.
        "lm" => Lm(Lm),
        /// Hidden tokens of an encoder (BERT).
        "mlm" => Mlm(Mlm),
        /// Target tokens of an encoder-decoder.
        "translate" => Translate(Lm),
        /// A class for the whole sequence or image.
        "classify" => Classify(Classify),
        /// A class for every token.
        "tag" => Tag(Tag),
        /// Start and end of an answer.
        "span" => Span(SpanHead),
        /// One vector for the whole sequence or image.
        "embed" => Embed(EmbedHead),
    }
}

/// Where a head is lowered.
pub struct Site<'a> {
    /// The modules so far.
    pub arena: &'a Arena,
    /// How parameters start.
    pub init: &'a InitPlan,
    /// Width of what it is given.
    pub d_model: u64,
    /// Its sequence.
    pub sequence: Sequence,
    /// Rows of the table, where there are tokens.
    pub vocab: u64,
    /// Width of the table.
    pub table_width: u64,
    /// Whether the sequence may be padded.
    pub is_padded: bool,
}

impl Site<'_> {
    /// `[B, T, D]`
    pub fn hidden(&self) -> Type {
        Type::float([Dim::sym(Sym::Batch), self.sequence.queries(), Dim::of(self.d_model)])
    }

    /// The table of the token embedding.
    pub fn table(&self) -> Type {
        Type::float([Dim::of(self.vocab), Dim::of(self.table_width)])
    }

    /// The padding mask, where there is one.
    pub fn mask(&self, b: &mut Builder) -> Option<ValueId> {
        let ty = Type::int([Dim::sym(Sym::Batch), self.sequence.keys()]).or_absent();
        self.is_padded.then(|| b.argument("mask", ty))
    }

    /// A projection of the head.
    pub fn linear(&self, member: &str, input: u64, output: u64, bias: bool) -> crate::ir::Layer {
        self.init.linear(&format!("head.{member}"), input, output, bias)
    }
}

/// A lowered head and what it takes after the hidden states.
#[derive(Clone, Copy, Debug)]
pub struct Lowered {
    /// The module.
    pub module: ModuleId,
    /// Whether the table follows.
    pub takes_table: bool,
    /// Whether the padding mask follows.
    pub takes_mask: bool,
}

impl Head {
    /// Its module: hidden states to outputs.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        match self {
            Head::Lm(h) | Head::Translate(h) => h.lower(site),
            Head::Mlm(h) => h.lower(site),
            Head::Classify(h) => h.lower(site),
            Head::Tag(h) => h.lower(site),
            Head::Span(h) => h.lower(site),
            Head::Embed(h) => h.lower(site),
        }
    }

    /// The names of its outputs.
    pub fn outputs(&self) -> &'static [&'static str] {
        match self {
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Classify(_) | Head::Tag(_) => &["logits"],
            Head::Span(_) => &["start_logits", "end_logits"],
            Head::Embed(_) => &["embedding"],
        }
    }

    /// Whether it uses the table of the token embedding.
    pub fn is_tied(&self) -> bool {
        match self {
            Head::Lm(h) | Head::Translate(h) => h.tied,
            Head::Mlm(h) => h.tied,
            Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => false,
        }
    }

    /// Whether it makes one vector of all positions that are not padding.
    pub fn pools_by_mask(&self) -> bool {
        match self {
            Head::Classify(Classify { pool, .. }) | Head::Embed(EmbedHead { pool, .. }) => {
                pool.looks_at_mask()
            }
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Tag(_) | Head::Span(_) => false,
        }
    }

    /// Whether it gives an output for every word of the vocabulary.
    pub fn needs_vocab(&self) -> bool {
        match self {
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) => true,
            Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => false,
        }
    }
}
