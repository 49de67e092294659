//! Pools a sequence to one vector, for the heads that need one.

use super::Site;
use crate::field::record::choice;
use crate::ir::build::{Builder, Built};
use crate::ir::op::{self, Op};
use crate::ir::{Extent, ValueId};

choice! {
    /// How a sequence is pooled to one vector.
    pub enum Pool {
        /// The class token, which comes first (BERT, ViT)
        "cls" => Cls,
        /// The mean over positions that are not padding
        "mean" => Mean,
        /// The first position, whichever token it has
        "first" => First,
        /// The last position that is not padding
        "last" => Last,
        /// The class token concatenated with the mean over the patches, for images (DINOv2)
        "cls_mean" => ClsMean,
        /// The mean over the patches, without the class token, for images (BEiT)
        "patches" => Patches,
        /// The largest value of every feature over positions that are not padding
        "max" => Max,
    }
}

impl Pool {
    /// Whether the result depends on padding.
    pub fn looks_at_mask(self) -> bool {
        match self {
            Self::Mean | Self::Last | Self::Max => true,
            Self::Cls | Self::First | Self::ClsMean | Self::Patches => false,
        }
    }

    /// Whether it takes the padding mask.
    pub fn takes_mask(self, site: &Site<'_>) -> bool {
        site.is_padded && self.looks_at_mask()
    }

    /// The width of the result.
    pub fn width(self, d_model: Extent) -> Extent {
        if self == Self::ClsMean { Extent::from(2) * d_model } else { d_model }
    }

    /// `[B, T, D] → [B, D]`; `[B, 2 D]` for the class token concatenated with the mean.
    pub fn lower(self, b: &mut Builder, site: &Site<'_>, x: ValueId, mask: Option<ValueId>) -> Built {
        let pool = match self {
            Self::Cls | Self::First => op::Pool::First,
            Self::ClsMean => {
                let first = b.op("first", Op::Pool(op::Pool::First), &[x])?;
                let mean = of_patches(b, site, "mean", x)?;
                return b.op("pooled", Op::Concat { axis_from_last: 0 }, &[first, mean]);
            }
            Self::Patches => return of_patches(b, site, "pooled", x),
            Self::Mean => op::Pool::Mean,
            Self::Last => op::Pool::Last,
            Self::Max => op::Pool::Max,
        };
        // Without a mask no position is padding.
        let inputs: Vec<ValueId> = std::iter::once(x).chain(mask).collect();
        b.op("pooled", Op::Pool(pool), &inputs)
    }
}

/// The mean over the patches of an image.
fn of_patches(b: &mut Builder, site: &Site<'_>, name: &str, x: ValueId) -> Built {
    // Only images have patches, and the number of their positions is known.
    let positions = site.sequence.queries().constant().and_then(|n| u64::try_from(n).ok());
    let len = positions.unwrap_or(1).saturating_sub(site.before_patches);
    let start = Extent::from(site.before_patches);
    let rest = b.op("rest", Op::Slice { axis_from_last: 1, start, len: Extent::from(len) }, &[x])?;
    b.op(name, Op::Pool(op::Pool::Mean), &[rest])
}
