//! Ops that compute masks: by a rule, from padding, and from other masks.

use super::Sequence;
use super::mask_rule::{Hidden, MaskRule};
use super::meaning::{Given, Meaning, Note, Picture, Site, Types, tabulates};
use super::quantity::{Named, Quantity};
use super::training::Training;
use crate::ir::infer::{broadcast, fail};
use crate::ir::text::{flag, optional};
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Module, Type};

/// The meaning of [`Op::Mask`](super::Op::Mask).
pub(super) struct Mask {
    pub queries: Sequence,
    pub keys: Sequence,
    pub rule: MaskRule,
}

impl Meaning for Mask {
    fn text(&self, _: &Module) -> String {
        let Self { queries, keys, rule } = self;
        format!(
            "mask {queries} {}{}{}{}{}",
            keys.keys(),
            flag(rule.causal, " causal"),
            optional("window", rule.window.map(|w| format!("{}{}", w.size, flag(w.centred, " centred")))),
            optional("chunk", rule.chunk.map(|n| n.to_string())),
            optional("prefix", rule.prefix.map(|n| n.to_string())),
        )
    }
    fn sentence(&self) -> &'static str {
        "which keys a query may not see"
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        let one = Dim::of(1u64);
        Ok(vec![Type::bool([one.clone(), one, self.queries.queries(), self.keys.keys()])])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes(self.rule.words().into_iter().map(Note::Words))
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.queries, self.keys]
    }
    fn hides(&self, _: &[Vec<MaskRule>]) -> Vec<MaskRule> {
        vec![self.rule]
    }
    fn quantities(&self) -> Vec<Quantity> {
        // A rule without a prefix has the number 0 there, which names nothing.
        let numbers = self.rule.conditions().map(|condition| match condition {
            Hidden::Later { prefix } => Quantity::Count(Named::Prefix, prefix),
            Hidden::Behind { window } | Hidden::Ahead { window } => {
                Quantity::Count(Named::Window, window.size)
            }
            Hidden::OtherChunk { chunk } => Quantity::Count(Named::Chunk, chunk),
        });
        numbers.filter(|number| *number != Quantity::Count(Named::Prefix, 0)).collect()
    }
}

/// The meaning of [`Op::PaddingMask`](super::Op::PaddingMask).
pub(super) struct Padding;

impl Meaning for Padding {
    fn text(&self, _: &Module) -> String {
        "padding_mask".into()
    }
    fn sentence(&self) -> &'static str {
        "hides what the input's mask calls padding"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [Type { dtype: DType::Int, shape, optional }] if let [b, keys] = shape.as_slice() => {
                let one = Dim::of(1u64);
                let mut ty = Type::bool([b.clone(), one.clone(), one, keys.clone()]);
                ty.optional = *optional;
                Ok(vec![ty])
            }
            _ => fail("a padding mask is `[B, K]` of 0 and 1"),
        }
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        // What is padding depends on the input, and not on the model.
        Picture::notes([])
    }
    fn keeps_by(&self) -> Option<usize> {
        Some(0)
    }
}

/// The meaning of [`Op::EitherMask`](super::Op::EitherMask).
pub(super) struct Either;

impl Meaning for Either {
    fn text(&self, _: &Module) -> String {
        "either_mask".into()
    }
    fn sentence(&self) -> &'static str {
        "hidden where either mask hides"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [a, b] = given.inputs else { return fail("two masks expected") };
        // With one of them absent the other is the result, so only both together make it absent.
        let optional = a.optional && b.optional;
        Ok(vec![Type { dtype: DType::Bool, shape: broadcast(&a.shape, &b.shape)?, optional }])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::NotesOfInputs
    }
    fn hides(&self, given: &[Vec<MaskRule>]) -> Vec<MaskRule> {
        let mut rules: Vec<MaskRule> = Vec::new();
        // A rule that both masks have hides nothing more.
        for rule in given.iter().flatten() {
            if !rules.contains(rule) {
                rules.push(*rule);
            }
        }
        rules
    }
}
