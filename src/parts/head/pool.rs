//! From a sequence to one vector, shared by the heads that need one.

use super::Site;
use crate::field::record::choice;
use crate::ir::ValueId;
use crate::ir::build::{Builder, Built};
use crate::ir::op::{self, Op};

choice! {
    /// How a sequence becomes one vector.
    pub enum Pool {
        /// The class token, which comes first (BERT, ViT)
        "cls" => Cls,
        /// The mean over positions that are not padding
        "mean" => Mean,
        /// The first position
        "first" => First,
        /// The last position that is not padding
        "last" => Last,
        /// The largest value of every feature over positions that are not padding
        "max" => Max,
    }
}

impl Pool {
    /// Whether it looks at the padding mask.
    pub fn takes_mask(self, site: &Site<'_>) -> bool {
        site.is_padded && !matches!(self, Self::Cls | Self::First)
    }

    /// `[B, T, D] → [B, D]`
    pub fn lower(self, b: &mut Builder, x: ValueId, mask: Option<ValueId>) -> Built {
        let pool = match self {
            Self::Cls | Self::First => op::Pool::First,
            Self::Mean => op::Pool::Mean,
            Self::Last => op::Pool::Last,
            Self::Max => op::Pool::Max,
        };
        let inputs: Vec<ValueId> = std::iter::once(x).chain(mask).collect();
        b.op("pooled", Op::Pool(pool), &inputs)
    }
}
