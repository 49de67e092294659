//! Scaled dot-product attention and the cache of keys and values.

use super::MaskRule;
use super::meaning::{Given, Meaning, Picture, Site, Types, size};
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::{Mismatch, broadcast, fail};
use crate::ir::print::{flag, optional};
use crate::ir::work::Work;
use crate::ir::{Dim, Module, Sym, Type};

/// Fields of [`Op::Attention`](super::Op::Attention).
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Multiplies the scores.
    pub scale: f64,
    /// Bounds the scaled scores: `cap * tanh(score / cap)`.
    pub softcap: Option<f64>,
    /// Hides keys after the query; query `i` is at position `P + i`.
    pub causal: bool,
    /// Dropout on the weights.
    pub dropout: f64,
    /// Whether a mask input follows `v`: Bool `[B|1,1,T|1,K]`, true = hidden, may be absent.
    pub has_mask: bool,
    /// Whether a bias input follows: `[1,H,T,K]`, added to the scores.
    pub has_bias: bool,
    /// Whether a sinks input follows: `[H]`, one more score a head whose weight is dropped.
    pub has_sinks: bool,
}

impl Attention {
    /// The rules that hide keys from its queries, given those of its inputs: those of its mask and its own
    /// `causal`.
    pub fn hidden_by(&self, given: &[Vec<MaskRule>]) -> Vec<MaskRule> {
        let mut rules = given.get(3).filter(|_| self.has_mask).cloned().unwrap_or_default();
        if self.causal && !rules.contains(&MaskRule::CAUSAL) {
            rules.push(MaskRule::CAUSAL);
        }
        rules
    }

    /// Whether its keys are those of another sequence than its queries: cross attention. Keys of the same sequence
    /// are as many as the queries, and the cached ones before them.
    pub fn reads_memory(site: &Site<'_>) -> bool {
        let length = |i: usize| site.input(i).and_then(|ty| ty.shape.iter().rev().nth(1));
        let (Some(queries), Some(keys)) = (length(0), length(1)) else { return false };
        keys != queries && *keys != queries + &Dim::sym(Sym::Past)
    }

    /// Operations for one query and one key of one head: `2 D` for the score, `2 V` for the sum.
    pub fn per_pair(site: &Site<'_>) -> Dim {
        let width = |i: usize| site.input(i).and_then(Type::last).cloned().unwrap_or_default();
        (width(1) + width(2)) * Dim::of(2u64)
    }
}

impl Meaning for Attention {
    fn text(&self, _: &Module) -> String {
        format!(
            "attention scale={:?}{}{}{}{}{}{}",
            self.scale,
            optional("softcap", self.softcap.map(|c| format!("{c:?}"))),
            flag(self.causal, " causal"),
            if self.dropout > 0.0 { format!(" dropout={:?}", self.dropout) } else { String::new() },
            flag(self.has_mask, " mask"),
            flag(self.has_bias, " bias"),
            flag(self.has_sinks, " sinks"),
        )
    }
    fn sentence(&self) -> &'static str {
        "softmax(scale · q kᵀ) v; where a mask hides a key its weight is 0"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let expected = 3 + [self.has_mask, self.has_bias, self.has_sinks].iter().filter(|b| **b).count();
        if given.inputs.len() != expected {
            return fail(format!("attention takes {expected} inputs, not {}", given.inputs.len()));
        }
        let [q, k, v, rest @ ..] = given.inputs else { return fail("attention takes q, k and v") };
        let ([b, h, t, d], [kb, kh, kt, kd], [vb, vh, vt, vd]) =
            (q.shape.as_slice(), k.shape.as_slice(), v.shape.as_slice())
        else {
            return fail(format!("attention over {q}, {k}, {v}"));
        };
        if (b, h, d) != (kb, kh, kd) || (kb, kh, kt) != (vb, vh, vt) {
            return fail(format!("queries {q}, keys {k} and values {v} do not fit"));
        }
        let scores = [b.clone(), h.clone(), t.clone(), kt.clone()];
        let mut rest = rest.iter();
        for wanted in [self.has_mask, self.has_bias] {
            if wanted
                && let Some(extra) = rest.next()
                && broadcast(&scores, &extra.shape)? != scores
            {
                return fail(format!("{extra} does not fit scores of {q} and {k}"));
            }
        }
        if self.has_sinks
            && let Some(sinks) = rest.next()
            && sinks.shape.as_slice() != [h.clone()]
        {
            return fail(format!("sinks of {sinks} for {h} heads"));
        }
        Ok(vec![Type::float([b.clone(), h.clone(), t.clone(), vd.clone()]), Type::float(scores)])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let scores = size(site.output(1));
        let mut steps = 5 + u64::from(self.scale != 1.0) + u64::from(self.has_bias);
        if self.softcap.is_some() {
            steps += 3;
        }
        Work {
            attention: &scores * &Self::per_pair(site),
            elementwise: &scores * &Dim::of(steps),
            attention_weights: scores,
            ..Work::computed(&site.out())
        }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("attention")
    }
    fn training(&self, site: &Site<'_>) -> Training {
        // Scores and their softmax keep two sizes of the scores, a softcap one more; what is multiplied by the
        // values is kept too, and what dropout multiplied it by.
        let is_composed = self.dropout > 0.0 || self.has_sinks;
        let extras = 3 + usize::from(self.has_mask)..site.node.inputs.len();
        let from = [0, 1].into_iter().chain(extras).map(Operand::Input);
        let scores = Entry {
            size_of: 1,
            own: 2 + u64::from(self.softcap.is_some()),
            flags: u64::from(is_composed && self.has_mask && self.causal),
            needs_halves: 4,
            ..Entry::new(Passing::Product, from).keeping([Operand::Input(0), Operand::Input(1)])
        };
        let mut entries = vec![scores];
        if self.dropout > 0.0 {
            entries.push(Entry { size_of: 1, own: 1, ..Entry::new(Passing::InPlace, [Operand::Entry(0)]) });
        }
        let factors = [Operand::Entry(entries.len() - 1), Operand::Input(2)];
        entries.push(Entry::new(Passing::Product, factors).keeping(factors));
        let results = vec![entries.len() - 1, 0];
        Training::Computed { entries, results }
    }
}

/// [`Op::Cache`](super::Op::Cache)
pub(super) struct Cache;

impl Meaning for Cache {
    fn text(&self, _: &Module) -> String {
        "cache".into()
    }
    fn sentence(&self) -> &'static str {
        "while decoding, what was computed for earlier tokens comes first; else nothing changes"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x] = given.inputs else { return fail("one value is cached") };
        let mut ty = (*x).clone();
        let axis =
            ty.shape.len().checked_sub(2).ok_or(Mismatch("a cached value has rank 2 or more".into()))?;
        if ty.shape[axis] != Dim::sym(Sym::Time) {
            return fail("only the decoded sequence is cached");
        }
        ty.shape[axis] = Dim::sym(Sym::Past) + Dim::sym(Sym::Time);
        Ok(vec![ty])
    }
    fn work(&self, _: &Site<'_>) -> Work {
        Work::default()
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Pass
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Training::View(Passing::Shared)
    }
    fn is_view(&self) -> bool {
        true
    }
}
