//! T5's relative positions: a learned bias for each head and bucket of `key - query` (Raffel et al. 2020).
//! Half of the buckets are exact distances, the others grow logarithmically up to `max_distance`.

use super::{Geometry, Scheme};
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic};
use crate::field::Size;
use crate::field::record::record;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, Extent, Layer, Rows, Type, ValueId};
use crate::parts::scope::{Ambient, AmbientId, Buckets, Scope};
use crate::source::Span;

record! {
    /// A learned bias for every bucket of distances, added to the scores (Raffel et al. 2020).
    pub struct T5 as "t5" {
        /// The number of buckets.
        buckets: Size = value(Size(32));
        /// This distance and all larger ones share a bucket.
        max_distance: Size = value(Size(128));
        /// Whether all layers of a stack share one table (T5) or each has its own (UMT5).
        shared: bool = value(true);
        /// Whether keys after the query have separate buckets; by default, if the query can see them: in an encoder, and
        /// with a `prefix`.
        bidirectional: Option<bool> = absent;
    }
}

impl T5 {
    fn buckets(&self, at: Geometry) -> Buckets {
        Buckets {
            along: at.sequence,
            buckets: *self.buckets,
            max_distance: *self.max_distance,
            bidirectional: self.bidirectional.unwrap_or(!at.is_causal),
        }
    }

    /// The table of biases, `[buckets, H]`, a member of the stack or of the attention with that path.
    fn table(&self, scope: &Scope, path: &str, at: Geometry) -> Layer {
        let path = format!("{path}.{TABLE}");
        let buckets = Extent::new("buckets", *self.buckets);
        scope.init.embedding(&path, Rows::Distances, buckets, at.heads, None)
    }
}

impl Buckets {
    fn op(self) -> Op {
        let Self { along, buckets, max_distance, bidirectional } = self;
        let buckets = Extent::new("buckets", buckets);
        Op::RelativeBuckets { queries: along, keys: along, buckets, max_distance, bidirectional }
    }
}

const TABLE: &str = "relative_bias";

impl Scheme for T5 {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let (queries, keys) = (at.sequence.queries(), at.sequence.keys());
        let buckets = self.buckets(at);
        let op = buckets.op();
        if !self.shared {
            // Each layer has its own table, but the buckets are the same for all.
            let values = vec![("buckets", Type::int([queries, keys]))];
            let build = move |b: &mut Builder, _: &_| b.ops(&["buckets"], op.clone(), &[]);
            return vec![scope.ambient(Ambient::Buckets(buckets), values, build)];
        }
        let table = self.table(scope, &scope.path, at);
        let bias = vec![("bias", Type::float([Dim::of(1u64), Dim::from(at.heads), queries, keys]))];
        let ambient = Ambient::BucketBias { buckets, heads: at.heads.get() };
        // The stack's own module looks the biases up, so the table that its layers share is a member of the
        // stack.
        vec![scope.ambient(ambient, bias, move |b, _| {
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
        // The attention's own module looks its biases up, so the table is a member of every layer.
        let rows = b.apply(TABLE, self.table(scope, path, at), *given)?;
        b.op("bias", Op::BiasFromTable, &[rows]).map(Some)
    }

    fn check(&self, _features: (u64, Span), is_causal: bool) -> Vec<Diagnostic> {
        let two_sided = self.bidirectional.unwrap_or(!is_causal);
        // Half of the buckets are for keys after the query if those are separate, and half of the rest for
        // exact distances.
        let (exact, share) = if two_sided { (*self.buckets / 4, 4u64) } else { (*self.buckets / 2, 2u64) };
        let buckets = counted(*self.buckets, "bucket");
        let (field, message, help) = if exact == 0 {
            let message = format!("with {buckets} no distance has its own bucket");
            ("buckets", message, format!("at least {share}; T5 has 32"))
        } else if *self.max_distance <= exact {
            let sides = if two_sided { " on each side" } else { "" };
            let message = format!(
                "with {buckets} distances 0 to {}{sides} have one each, so `max_distance` is above {exact}, and not {}",
                exact.saturating_sub(1),
                *self.max_distance
            );
            let fewer = match self.max_distance.saturating_sub(1).saturating_mul(share) {
                0 => String::new(),
                most => format!(", or at most {most} `buckets`"),
            };
            let help = format!("at least {}{fewer}", exact.saturating_add(1));
            ("max_distance", message, help)
        } else {
            return Vec::new();
        };
        vec![Diagnostic::error(Code::OutOfRange, self.places.of(field), message).help(help)]
    }
}
