//! T5's relative positions: a learned bias for each head and bucket of `key - query` (Raffel et al. 2020).
//! Half of the buckets are exact distances, the others grow logarithmically up to `max_distance`.

use super::{Geometry, Scheme};
use crate::diag::{Code, Diagnostic};
use crate::field::Size;
use crate::field::record::record;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, Extent, Type, ValueId};
use crate::parts::scope::{AmbientId, Scope};
use crate::source::Span;

record! {
    /// A learned bias for every bucket of distances, added to the scores (Raffel et al. 2020).
    pub struct T5 as "t5" {
        /// The number of buckets.
        buckets: Size = value(Size(32));
        /// All distances from this one on share a bucket.
        max_distance: Size = value(Size(128));
        /// Whether all layers of a stack share one table (T5) or each has its own (UMT5).
        shared: bool = value(true);
        /// Whether keys after the query have separate buckets; by default, if the query can see them.
        bidirectional: Option<bool> = absent;
    }
}

impl T5 {
    fn op(&self, at: Geometry) -> Op {
        Op::RelativeBuckets {
            queries: at.sequence,
            keys: at.sequence,
            buckets: *self.buckets,
            max_distance: *self.max_distance,
            bidirectional: self.bidirectional.unwrap_or(!at.causal),
        }
    }
}

const TABLE: &str = "relative_bias";

impl Scheme for T5 {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let (queries, keys) = (at.sequence.queries(), at.sequence.keys());
        let op = self.op(at);
        let buckets = vec![("buckets", Type::int([queries.clone(), keys.clone()]))];
        let key = format!("{op:?}");
        if !self.shared {
            return vec![scope.ambient(key, buckets, move |b, _| b.ops(&["buckets"], op.clone(), &[]))];
        }
        let table = scope.init.embedding(
            &format!("{}.{TABLE}", scope.path),
            Extent::new("buckets", *self.buckets),
            Extent::new("heads", at.heads),
            None,
        );
        let bias = vec![(
            "bias",
            Type::float([Dim::of(1u64), Dim::from(Extent::new("heads", at.heads)), queries, keys]),
        )];
        vec![scope.ambient(format!("shared {key} {}", at.heads), bias, move |b, _| {
            let buckets = b.op("buckets", op.clone(), &[])?;
            let rows = b.apply(TABLE, table.clone(), buckets)?;
            b.ops(&["bias"], Op::BiasFromTable, &[rows])
        })]
    }

    fn on_scores(
        &self,
        b: &mut Builder,
        scope: &Scope,
        path: &str,
        at: Geometry,
        given: &[ValueId],
    ) -> Result<Option<ValueId>, Mismatch> {
        let [given] = given else { return Err(Mismatch("relative positions are missing".into())) };
        if self.shared {
            return Ok(Some(*given));
        }
        let table = scope.init.embedding(
            &format!("{path}.{TABLE}"),
            Extent::new("buckets", *self.buckets),
            Extent::new("heads", at.heads),
            None,
        );
        let rows = b.apply(TABLE, table, *given)?;
        b.op("bias", Op::BiasFromTable, &[rows]).map(Some)
    }

    fn check(&self, _features: (u64, Span), is_causal: bool) -> Vec<Diagnostic> {
        let two_sided = self.bidirectional.unwrap_or(!is_causal);
        let exact = *self.buckets / if two_sided { 4 } else { 2 };
        if exact == 0 || *self.max_distance <= exact {
            let message = format!(
                "{} buckets up to distance {} leave none for exact distances",
                *self.buckets, *self.max_distance
            );
            return vec![
                Diagnostic::error(Code::OutOfRange, self.places.whole(), message)
                    .help("T5 has 32 buckets and max_distance 128"),
            ];
        }
        Vec::new()
    }
}
