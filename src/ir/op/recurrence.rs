//! The linear recurrence: a state of keys and values instead of a sequence of them.

use super::meaning::{Given, Meaning, Picture, Site, State, Types};
use super::time::{along_time, decoding};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::{Mismatch, broadcast, fail};
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Module, Type};

/// The meaning of [`Op::Recurrence`](super::Op::Recurrence).
pub(super) struct Recurrence {
    pub decodes: bool,
}

/// The pairs of positions that are computed at once where a decay is one number for a head: those of a chunk.
const CHUNK: u64 = 32;

/// A size that is a number.
fn constant(dim: Option<&Dim>) -> u64 {
    dim.and_then(Dim::constant).and_then(|n| u64::try_from(n).ok()).unwrap_or(1)
}

/// The features of a key, `N`.
fn features(site: &Site<'_>) -> u64 {
    constant(site.input(1).and_then(Type::last))
}

/// Whether it has the delta rule.
fn replaces(site: &Site<'_>) -> bool {
    site.input(4).is_some()
}

/// Checks that one value has the shape of another where it is not 1.
fn fits(value: &Type, whole: &Type, what: &str) -> Result<(), Mismatch> {
    let is_float = value.dtype == DType::Float && !value.optional;
    // What is broadcast must not make the other larger.
    let same = |shape: std::sync::Arc<Vec<Dim>>| shape.as_slice() == whole.shape.as_slice();
    if is_float && broadcast(&value.shape, &whole.shape).is_ok_and(same) {
        return Ok(());
    }
    fail(format!("{what} {value} does not fit {whole}"))
}

impl Meaning for Recurrence {
    fn text(&self, _: &Module) -> String {
        format!("recurrence{}", decoding(self.decodes))
    }
    fn sentence(&self) -> &'static str {
        "a state of keys and values that fades, is added to, and is read by the queries"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let ([q, k, v, decay], beta) = match given.inputs {
            [q, k, v, decay] => ([q, k, v, decay], None),
            [q, k, v, decay, beta] => ([q, k, v, decay], Some(beta)),
            _ => return fail("a recurrence takes queries, keys, values and a decay"),
        };
        along_time(v, self.decodes)?;
        let ([batch, heads, time, _], Some(features)) = (v.shape.as_slice(), k.last()) else {
            return fail(format!("the values {v} have no heads"));
        };
        let shape = |last: &Dim| vec![batch.clone(), heads.clone(), time.clone(), last.clone()];
        let whole = |last: &Dim| Type { shape: shape(last).into(), ..(*v).clone() };
        let keys = whole(features);
        for (value, what) in [(q, "queries"), (k, "keys")] {
            let is_whole = value.last() == Some(features) && value.shape.iter().rev().nth(1) == Some(time);
            if !is_whole {
                return fail(format!(
                    "the {what} are not {features} features for every position of the values"
                ));
            }
            fits(value, &keys, what)?;
        }
        fits(decay, &keys, "the decay")?;
        if let Some(beta) = beta {
            fits(beta, &whole(&Dim::of(1u64)), "beta")?;
        }
        Ok(vec![(*v).clone()])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let (out, features) = (site.out(), features(site));
        // What is added to the state and what is read from it are multiply-adds; the delta rule reads it once more.
        let products: u64 = if replaces(site) { 6 } else { 4 };
        Work {
            matmul: &out * &Dim::of(products.saturating_mul(features)),
            elementwise: &out * &Dim::of(features),
            ..Work::computed(&out)
        }
    }
    fn picture(&self, site: &Site<'_>) -> Picture {
        Picture::step(if replaces(site) { "delta recurrence" } else { "recurrence" })
    }
    fn training(&self, site: &Site<'_>) -> Training {
        let (features, width) = (features(site), constant(site.output(0).and_then(Type::last)).max(1));
        let is_of_heads = constant(site.input(3).and_then(Type::last)) == 1;
        // In sizes of the result: numbers for each feature of a key, for each pair of a chunk, and for each head.
        let of_keys = |n: u64| features.saturating_mul(n).div_ceil(width);
        let of_pairs = |n: u64| CHUNK.saturating_mul(n).div_ceil(width);
        let of_heads = |n: u64| n.div_ceil(width);
        // The states before chunks, and some more for a moment.
        let of_states = features.saturating_mul(5).div_ceil(CHUNK.saturating_mul(4));
        let sum = |parts: &[u64]| parts.iter().copied().fold(0, u64::saturating_add);
        // Queries and keys, and both times a decay. Those that all heads share are smaller.
        let heads = |ty: Option<&Type>| ty.and_then(|ty| ty.shape.get(1)).cloned();
        let own = if heads(site.input(1)) == heads(site.output(0)) { 4 } else { 2 };
        // What is kept, and what the gradient needs at one time; measured, as in [`super::training`].
        let (kept, needs) = match (is_of_heads, replaces(site)) {
            // The pairs of a chunk and the states between chunks.
            (true, false) => {
                let kept = sum(&[of_pairs(3), of_keys(own), of_states, of_heads(24), 3]);
                (kept, kept)
            }
            // The rows of a chunk are solved one after the other, each from all rows before it, which are kept.
            (true, true) => {
                let rows = sum(&[width, features]).saturating_mul(CHUNK / 2).div_ceil(width);
                let others = sum(&[of_pairs(5), of_keys(4), of_states, of_heads(24), 3]);
                (sum(&[rows, others]), sum(&[rows / 2, others]))
            }
            // The state of every position.
            (false, false) => {
                (sum(&[features, features / 4, of_keys(3), 3]), sum(&[features, features / 4, of_keys(3), 1]))
            }
            (false, true) => (sum(&[features.saturating_mul(2), features / 4, 4]), features.div_ceil(2)),
        };
        let inputs = site.node.inputs.len();
        let needs_halves = needs.saturating_mul(2);
        Entry { own: kept, needs_halves, ..Entry::of_inputs(Passing::Fresh, inputs) }.alone()
    }
    fn has_state(&self) -> bool {
        self.decodes
    }
    fn state(&self, site: &Site<'_>) -> Option<State> {
        let shape = site.output(0).map_or(&[][..], |ty| ty.shape.as_slice());
        let [_, heads, _, width] = shape else { return None };
        let sizes = [constant(Some(heads)), constant(Some(width)), features(site)];
        let of_position = sizes.into_iter().fold(1u128, |all, n| all.saturating_mul(u128::from(n)));
        self.decodes.then_some(State { of_position, positions: 1 })
    }
}
