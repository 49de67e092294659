//! Rotary positions: features `(a, b)` of a pair become `(a cos pθ - b sin pθ, b cos pθ + a sin pθ)` at
//! position `p`, with `θ_i = theta^(-2i/n)` over the `n` rotated features (Su et al. 2021).

use super::scaling::Scaling;
use super::{Geometry, Scheme};
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record};
use crate::field::{Fraction, Positive};
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op};
use crate::ir::{Dim, Extent, Type, ValueId};
use crate::parts::scope::{Ambient, AmbientId, Scope};
use crate::source::Span;

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
    /// Queries and keys are rotated by their position (Su et al. 2021).
    pub struct Rotary as "rotary" {
        /// The base of the wavelengths.
        theta: Positive = value(Positive(10_000.0));
        /// The share of a head's features that is rotated, starting with the first; of latent attention, the share of its
        /// `rotary_dim` features.
        fraction: Fraction = value(Fraction(1.0));
        /// Which features form a pair.
        pairing: Pairing = value(Pairing::Half);
        /// How angles change for sequences longer than in training.
        scaling: Scaling = value(Scaling::unscaled());
    }
}

impl Rotary {
    /// The number of rotated features of a head.
    fn rotated(&self, head_dim: u64) -> u64 {
        // A product that should be whole may be slightly less: `0.29 * 100` is 28.999999999999996.
        (*self.fraction * head_dim as f64 + 1e-9).floor() as u64
    }
}

impl Scheme for Rotary {
    fn needs(&self, scope: &Scope, at: Geometry) -> Vec<AmbientId> {
        let rotated = self.rotated(at.head_dim.get());
        // In the author's words it is the width of a head if all features are rotated.
        let dim = if at.head_dim == rotated { at.head_dim } else { Extent::new("rotary_dim", rotated) };
        let table = self.scaling.table(*self.theta, dim, at.context);
        // The two features of a pair have one angle.
        let ty = Type::float([at.sequence.queries(), Dim::from(table.half())]);
        let ambient = Ambient::Angles { along: at.sequence, rotary: table.clone() };
        let op = Op::RotaryTable { along: at.sequence, rotary: table };
        let values = vec![("cos", ty.clone()), ("sin", ty)];
        vec![scope.ambient(ambient, values, move |b, _| b.ops(&["cos", "sin"], op.clone(), &[]))]
    }

    fn on_heads(&self, b: &mut Builder, given: &[ValueId], name: &str, x: ValueId) -> Built {
        let [cos, sin] = given else { return Err(Mismatch("rotary angles are missing".into())) };
        let pairing = match self.pairing {
            Pairing::Half => op::Pairing::Half,
            Pairing::Interleaved => op::Pairing::Interleaved,
        };
        b.op(name, Op::Rotate { pairing }, &[x, *cos, *sin])
    }

    fn rotates(&self) -> bool {
        true
    }

    fn check(&self, (features, place): (u64, Span), _is_causal: bool) -> Vec<Diagnostic> {
        let rotated = self.rotated(features);
        let fraction = self.places.of("fraction");
        // A fraction may be so small that nothing is left to rotate.
        if rotated > 0 && rotated.is_multiple_of(2) {
            let mut found = self.scaling.check(rotated);
            if *self.theta == 1.0 && matches!(self.scaling, Scaling::Yarn(_)) {
                let message = "yarn distinguishes frequencies, but with `theta: 1` all of them are equal";
                found.push(Diagnostic::error(Code::OutOfRange, self.places.of("theta"), message));
            }
            return found;
        }
        let label = format!("a head has {features} features here");
        let diagnostic = if *self.fraction == 1.0 {
            let message = format!("rotary positions rotate pairs of features, but {features} is odd");
            let near = match features {
                1 => "2".to_owned(),
                n => format!("{} or {}", n.saturating_sub(1), n.saturating_add(1)),
            };
            Diagnostic::error(Code::OddRotary, self.places.whole(), message)
                .label(place, label)
                .help(format!("{near} features would work, or a `fraction` of them that is even"))
        } else {
            let message = format!(
                "rotary positions rotate pairs of features, but {} of {features} is {rotated}",
                *self.fraction
            );
            // The next even number, so that no fewer are rotated than were asked for, but at most the whole
            // head.
            let even = rotated
                .saturating_add(2_u64.saturating_sub(rotated % 2))
                .min(features.saturating_sub(features % 2));
            Diagnostic::error(Code::OddRotary, fraction, message).label(place, label).help(
                if even == features {
                    format!("without `fraction`, all {features} are rotated")
                } else {
                    format!("`fraction: {even}/{features}` would rotate {even} of them")
                },
            )
        };
        vec![diagnostic]
    }
}
