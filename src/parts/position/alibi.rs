//! ALiBi: `-slope_h * distance` added to the scores (Press, Smith, Lewis 2021).
//! The slopes are those of [`Slopes`].

use super::{Geometry, Scheme};
use crate::field::Positive;
use crate::field::record::record;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, Slopes};
use crate::ir::{Dim, Type, ValueId};
use crate::parts::scope::{Ambient, AmbientId, Scope};

record! {
    /// Scores are lowered in proportion to the distance (Press et al. 2021).
    pub struct Alibi as "alibi" {
        /// The smallest slope is `2^-max` (the paper and MPT: 8).
        max: Positive = value(Positive(8.0));
        /// A factor on every slope, `1/sqrt(head_dim)` if scores are scaled after the bias (Falcon).
        scale: Positive = value(Positive(1.0));
    }
}

impl Scheme for Alibi {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let slopes = Slopes { heads: at.heads, max: *self.max, scale: *self.scale };
        let op = Op::AlibiBias { queries: at.sequence, keys: at.sequence, slopes };
        // The bias is the same for all sequences of a batch.
        let shape = [Dim::of(1u64), Dim::from(at.heads), at.sequence.queries(), at.sequence.keys()];
        let values = vec![("bias", Type::float(shape))];
        let ambient = Ambient::Alibi { along: at.sequence, slopes };
        vec![scope.ambient(ambient, values, move |b, _| b.ops(&["bias"], op.clone(), &[]))]
    }

    fn on_scores(
        &self,
        _b: &mut Builder,
        _scope: &Scope,
        _path: &str,
        _at: Geometry,
        given: &[ValueId],
    ) -> Result<Option<ValueId>, Mismatch> {
        // The stack has computed it once for all layers.
        Ok(given.first().copied())
    }
}
