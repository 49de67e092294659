//! Output heads: what a model predicts. To add one, add a file here and a row below.

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
use crate::ir::{Dim, Extent, ModuleId, Sym, Type, ValueId};

slot! {
    /// What the model predicts. The head decides the output, the loss and what the data must contain.
    pub enum Head as "head" {
        /// The next token, from a decoder.
        "lm" => Lm(Lm),
        /// Masked tokens, from an encoder (BERT).
        "mlm" => Mlm(Mlm),
        /// The target tokens of an encoder-decoder.
        "translate" => Translate(Lm),
        /// A class for the whole sequence or image.
        "classify" => Classify(Classify),
        /// A class for every token.
        "tag" => Tag(Tag),
        /// The start and the end of an answer.
        "span" => Span(SpanHead),
        /// One vector for the whole sequence or image.
        "embed" => Embed(EmbedHead),
    }
}

/// Where a head is lowered.
pub struct Site<'a> {
    /// The modules built so far.
    pub arena: &'a Arena,
    /// The initial values of parameters.
    pub init: &'a InitPlan,
    /// The width of the hidden states.
    pub d_model: Extent,
    /// The sequence of the hidden states.
    pub sequence: Sequence,
    /// The number of rows of the token table, if there are tokens.
    pub vocab: Extent,
    /// The width of the token table.
    pub table_width: Extent,
    /// Whether the sequence may be padded.
    pub is_padded: bool,
    /// How many positions of an image come before its patches: the class token, registers and others.
    pub before_patches: u64,
}

impl Site<'_> {
    /// The type of the hidden states: `[B, T, D]`.
    pub fn hidden(&self) -> Type {
        Type::float([Dim::sym(Sym::Batch), self.sequence.queries(), Dim::from(self.d_model)])
    }

    /// The type of the token table: `[vocab, width]`.
    pub fn table(&self) -> Type {
        Type::float([Dim::from(self.vocab), Dim::from(self.table_width)])
    }

    /// The padding mask, if there is one.
    pub fn mask(&self, b: &mut Builder) -> Option<ValueId> {
        let ty = Type::int([Dim::sym(Sym::Batch), self.sequence.keys()]).or_absent();
        // `or_absent`: callers whose sequences are all of the same length leave the mask out.
        self.is_padded.then(|| b.argument("mask", ty))
    }

    /// A projection of the head, `[.., input] → [.., output]`, initialised by the rules for its path.
    pub fn linear(&self, member: &str, input: Extent, output: Extent, bias: bool) -> crate::ir::Layer {
        self.init.linear(&format!("head.{member}"), input, output, bias)
    }

    /// The place of a norm of the head by the name of its member, such as `norm`.
    pub fn norm<'s>(&'s self, member: &'s str) -> super::norm::Site<'s> {
        super::norm::Site { init: self.init, path: format!("head.{member}"), member }
    }
}

/// A lowered head, and the arguments it takes after the hidden states.
#[derive(Clone, Copy, Debug)]
pub struct Lowered {
    /// The module of the head.
    pub module: ModuleId,
    /// Whether it takes the token table.
    pub takes_table: bool,
    /// Whether it takes the padding mask.
    pub takes_mask: bool,
}

impl Head {
    /// The module of the head: hidden states to outputs.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        match self {
            // Both score the next token of a decoder; they differ in the data that they are trained on.
            Head::Lm(h) | Head::Translate(h) => h.lower(site),
            Head::Mlm(h) => h.lower(site),
            Head::Classify(h) => h.lower(site),
            Head::Tag(h) => h.lower(site),
            Head::Span(h) => h.lower(site),
            Head::Embed(h) => h.lower(site),
        }
    }

    /// The names of the outputs.
    pub fn outputs(&self) -> &'static [&'static str] {
        match self {
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Classify(_) | Head::Tag(_) => &["logits"],
            Head::Span(_) => &["start_logits", "end_logits"],
            Head::Embed(_) => &["embedding"],
        }
    }

    /// Whether the head uses the table of the token embedding.
    pub fn is_tied(&self) -> bool {
        match self {
            Head::Lm(h) | Head::Translate(h) => h.tied,
            Head::Mlm(h) => h.tied,
            Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => false,
        }
    }

    /// Whether the head pools all positions that are not padding into one vector.
    pub fn pools_by_mask(&self) -> bool {
        match self {
            Head::Classify(Classify { pool, .. }) | Head::Embed(EmbedHead { pool, .. }) => {
                pool.looks_at_mask()
            }
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Tag(_) | Head::Span(_) => false,
        }
    }

    /// Whether the head has an output for every token of the vocabulary.
    pub fn needs_vocab(&self) -> bool {
        match self {
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) => true,
            Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => false,
        }
    }
}
