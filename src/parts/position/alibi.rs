//! ALiBi: `-slope_h * distance` added to the scores (Press, Smith, Lewis 2021).
//!
//! Slopes are the geometric sequence of the paper; for a head count that is no power of two, those of
//! the next lower one and every second of the next higher one, as BLOOM and MPT have them.

use super::{Geometry, Scheme};
use crate::field::Positive;
use crate::field::record::record;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, Type, ValueId};
use crate::parts::scope::{AmbientId, Scope};

record! {
    /// Scores lowered in proportion to the distance (Press et al. 2021).
    pub struct Alibi as "alibi" {
        /// The smallest slope is `2^-max` (the paper and MPT: 8).
        max: Positive = value(Positive(8.0));
        /// A factor of every slope, `1/sqrt(head_dim)` where scores are scaled after the bias (Falcon).
        scale: Positive = value(Positive(1.0));
    }
}

impl Alibi {
    /// One slope a head.
    pub fn slopes(&self, heads: u64) -> Vec<f64> {
        let of = |n: u64| (1..=n).map(move |i| *self.scale * 2f64.powf(-*self.max * i as f64 / n as f64));
        if heads.is_power_of_two() {
            return of(heads).collect();
        }
        let below = heads.next_power_of_two() / 2;
        let between = of(below * 2).step_by(2);
        of(below).chain(between).take(heads as usize).collect()
    }
}

impl Scheme for Alibi {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let op = Op::AlibiBias { queries: at.sequence, keys: at.sequence, slopes: self.slopes(at.heads) };
        let shape = [Dim::of(1u64), Dim::of(at.heads), at.sequence.queries(), at.sequence.keys()];
        let values = vec![("bias", Type::float(shape))];
        vec![scope.ambient(format!("{op:?}"), values, move |b, _| b.ops(&["bias"], op.clone(), &[]))]
    }

    fn on_scores(
        &self,
        _b: &mut Builder,
        _scope: &Scope,
        _path: &str,
        _at: Geometry,
        given: &[ValueId],
    ) -> Result<Option<ValueId>, Mismatch> {
        Ok(given.first().copied())
    }
}
