//! Splits features into heads, merges heads, and repeats them.

use super::forward::{Copied, Forward};
use super::meaning::{Given, Meaning, Picture, Site, Types, rearranges};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::work::Work;
use crate::ir::{Dim, Extent, Module, Type};

/// The meaning of [`Op::SplitHeads`](super::Op::SplitHeads).
pub(super) struct Split {
    pub heads: Extent,
}

impl Meaning for Split {
    fn text(&self, _: &Module) -> String {
        format!("split_heads {}", self.heads)
    }
    fn sentence(&self) -> &'static str {
        "features split into heads: [B,T,H·D] becomes [B,H,T,D]"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [Type { shape, .. }] = given.inputs else { return fail("heads are split off `[B, T, H*D]`") };
        let one = Dim::of(1u64);
        let (batch, length, width) = match shape.as_slice() {
            [batch, length, width] => (batch, length, width),
            // Rows of parameters are the same in every sequence, and a vector is so at every position, too.
            [rows, width] => (&one, rows, width),
            [width] => (&one, &one, width),
            _ => return fail("heads are split off `[B, T, H*D]`"),
        };
        let Some(dim) = width.divide_by(self.heads) else {
            return fail(format!("{} heads do not divide {width}", self.heads));
        };
        Ok(vec![Type::float([batch.clone(), Dim::from(self.heads), length.clone(), dim])])
    }
    // The gradient is copied back into the order of features.
    rearranges!(Passing::Fresh);
    fn is_view(&self) -> bool {
        // The axes are in another order, and the elements stay where they are.
        true
    }
}

/// The meaning of [`Op::MergeHeads`](super::Op::MergeHeads).
pub(super) struct Merge;

impl Meaning for Merge {
    fn text(&self, _: &Module) -> String {
        "merge_heads".into()
    }
    fn sentence(&self) -> &'static str {
        "the heads joined again: [B,H,T,D] becomes [B,T,H·D]"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [Type { shape, .. }] if let [b, heads, t, width] = shape.as_slice() => {
                Ok(vec![Type::float([b.clone(), t.clone(), heads * width])])
            }
            _ => fail("heads are merged from `[B, H, T, D]`"),
        }
    }
    fn work(&self, _: &Site<'_>) -> Work {
        Work::default()
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Pass
    }
    // Joined, the heads of a position lie side by side, for which burn copies them.
    fn training(&self, site: &Site<'_>) -> Training {
        Entry::of_inputs(Passing::Shared, site.node.inputs.len()).alone()
    }
}

/// The meaning of [`Op::RepeatHeads`](super::Op::RepeatHeads).
pub(super) struct Repeat {
    pub times: Extent,
}

impl Meaning for Repeat {
    fn text(&self, _: &Module) -> String {
        format!("repeat_heads {}", self.times)
    }
    fn sentence(&self) -> &'static str {
        "each key and value head given to several query heads"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [Type { shape, .. }] if let [b, heads, t, width] = shape.as_slice() => {
                let heads = heads * &Dim::from(self.times);
                Ok(vec![Type::float([b.clone(), heads, t.clone(), width.clone()])])
            }
            _ => fail("heads are repeated in `[B, H, T, D]`"),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Pass
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The gradient of a head is the sum of those of its copies.
        Entry::of_input(Passing::Fresh).alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // Heads are put one after the other before they are repeated.
        Some(Forward { copied: Copied::These([true, false]), ..Forward::NEW })
    }
}
