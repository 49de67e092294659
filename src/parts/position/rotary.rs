//! Rotary positions: features `(a, b)` of a pair become `(a cos pθ - b sin pθ, b cos pθ + a sin pθ)` at
//! position `p`, with `θ_i = theta^(-2i/n)` over the `n` rotated features (Su et al. 2021).

use super::scaling::Scaling;
use super::{Geometry, Scheme};
use crate::diag::{Code, Diagnostic};
use crate::field::Positive;
use crate::field::record::{choice, record};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op};
use crate::ir::{Dim, Type, ValueId};
use crate::parts::scope::{AmbientId, Scope};

choice! {
    /// Which features form a pair.
    pub enum Pairing {
        /// `i` and `i + n/2`: Llama, NeoX and most others in the Hugging Face layout
        "half" => Half,
        /// `2i` and `2i + 1`: RoFormer, GPT-J
        "interleaved" => Interleaved,
    }
}

record! {
    /// Queries and keys rotated by their position (Su et al. 2021).
    pub struct Rotary as "rotary" {
        /// Base of the wavelengths.
        theta: Positive = value(Positive(10_000.0));
        /// Share of a head's features that is rotated, the first ones.
        fraction: Positive = value(Positive(1.0));
        /// Which features form a pair.
        pairing: Pairing = value(Pairing::Half);
        /// How angles change for sequences longer than in training.
        scaling: Scaling = value(Scaling::unscaled());
    }
}

impl Rotary {
    /// Rotated features of a head.
    fn rotated(&self, head_dim: u64) -> u64 {
        (*self.fraction * head_dim as f64 + 1e-9).floor() as u64
    }
}

impl Scheme for Rotary {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let dim = self.rotated(at.head_dim);
        let table = self.scaling.table(*self.theta, dim, at.context);
        let ty = Type::float([at.sequence.queries(), Dim::of(dim / 2)]);
        let op = Op::RotaryTable { along: at.sequence, rotary: table };
        let values = vec![("cos", ty.clone()), ("sin", ty)];
        vec![scope.ambient(format!("{op:?}"), values, move |b, _| b.ops(&["cos", "sin"], op.clone(), &[]))]
    }

    fn on_query_key(
        &self,
        b: &mut Builder,
        given: &[ValueId],
        q: ValueId,
        k: ValueId,
    ) -> Result<(ValueId, ValueId), Mismatch> {
        let [cos, sin] = given else { return Err(Mismatch("rotary angles are missing".into())) };
        let pairing = match self.pairing {
            Pairing::Half => op::Pairing::Half,
            Pairing::Interleaved => op::Pairing::Interleaved,
        };
        let q = b.op("q", Op::Rotate { pairing }, &[q, *cos, *sin])?;
        let k = b.op("k", Op::Rotate { pairing }, &[k, *cos, *sin])?;
        Ok((q, k))
    }

    fn check(&self, at: Geometry) -> Vec<Diagnostic> {
        let rotated = self.rotated(at.head_dim);
        let mut found = self.scaling.check(rotated);
        if *self.fraction > 1.0 {
            let message = format!("fraction {} rotates more features than a head has", *self.fraction);
            found.push(
                Diagnostic::error(Code::OutOfRange, self.places.of("fraction"), message).help("at most 1"),
            );
        } else if rotated % 2 == 1 || rotated == 0 {
            let message = format!(
                "rotary positions pair features, and {rotated} of head_dim {} cannot be paired",
                at.head_dim
            );
            found.push(
                Diagnostic::error(Code::OddRotary, self.places.whole(), message)
                    .help("an even head_dim, or a fraction of it that is even, would do"),
            );
        }
        found
    }
}
