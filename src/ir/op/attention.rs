//! Attention, by scaled dot products or additive scores, and the cache of keys and values.

use std::sync::Arc;

use super::meaning::{Given, Meaning, Picture, Site, Types, rearranges, size};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Operand, Passing, Training};
use super::{Activation, MaskRule};
use crate::ir::infer::{Mismatch, broadcast, fail};
use crate::ir::text::{flag, optional};
use crate::ir::work::Work;
use crate::ir::{Dim, Factor, Module, Sym, Type};

/// The fields of [`Op::Attention`](super::Op::Attention); the shapes are documented there.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// How a query and a key give a score.
    pub score: Score,
    /// Multiplies the scores before anything is added to them; `1/sqrt(head_dim)` unless the spec says
    /// otherwise.
    pub scale: Factor,
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
    /// Whether a sinks input follows: `[H]`, the score of one more key in each head, whose weight is left
    /// out.
    pub has_sinks: bool,
}

/// How a query and a key of a head give a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// `q · k` (Vaswani et al. 2017)
    Dot,
    /// `w · tanh(q + k)` with a learned `w` for each head (Bahdanau et al. 2015). The last input is
    /// `w [H,D]`.
    Additive,
}

impl Attention {
    /// Whether there are the optional inputs: mask, bias, sinks and the weights of additive scores. They
    /// follow queries, keys and values.
    fn optional(&self) -> [bool; 4] {
        [self.has_mask, self.has_bias, self.has_sinks, self.score == Score::Additive]
    }

    /// The number of inputs.
    fn inputs(&self) -> usize {
        // Queries, keys and values come first.
        self.optional().iter().filter(|is_there| **is_there).count().saturating_add(3)
    }

    /// The place of one of the optional inputs, if it is there.
    fn place(&self, which: usize) -> Option<usize> {
        let optional = self.optional();
        let before = optional.iter().take(which).filter(|is_there| **is_there).count();
        optional.get(which).filter(|is_there| **is_there).map(|_| before.saturating_add(3))
    }

    /// The place of the mask among the inputs.
    pub fn mask(&self) -> Option<usize> {
        self.place(0)
    }

    /// The place of the bias among the inputs.
    pub fn bias(&self) -> Option<usize> {
        self.place(1)
    }

    /// The place of the sinks among the inputs.
    pub fn sinks(&self) -> Option<usize> {
        self.place(2)
    }

    /// The place of the weights of additive scores among the inputs.
    pub fn score_weights(&self) -> Option<usize> {
        self.place(3)
    }

    /// Whether it is always computed in separate operations, because the fused one has no additive scores.
    pub fn is_composed(&self) -> bool {
        self.score == Score::Additive
    }

    /// The rules that hide keys from its queries: those of its mask and its own `causal`. `given` are the
    /// rules of each input.
    pub fn hidden_by(&self, given: &[Vec<MaskRule>]) -> Vec<MaskRule> {
        let mut rules = self.mask().and_then(|i| given.get(i)).cloned().unwrap_or_default();
        // A mask may hide the future already.
        if self.causal && !rules.contains(&MaskRule::CAUSAL) {
            rules.push(MaskRule::CAUSAL);
        }
        rules
    }

    /// Whether that many keys are from another sequence than that many queries (cross attention). Otherwise there is a
    /// key for each query, and in a decoder also one for each cached position.
    pub fn reads_memory(queries: &Dim, keys: &Dim) -> bool {
        // With a cache, keys of the same sequence are those of `P` earlier tokens and of the `T` new ones.
        keys != queries && *keys != queries + &Dim::sym(Sym::Past)
    }

    /// The number of operations for one query and one key of one head: `2 D` for the score (the product of
    /// query and key, or of `w` and the activated sum), and `2 V` for the weighted sum of values.
    pub fn per_pair(site: &Site<'_>) -> Dim {
        (width(site, 1) + width(site, 2)) * Dim::of(2u64)
    }
}

/// The number of features of each head of an input: the size of its last axis.
fn width(site: &Site<'_>, input: usize) -> Dim {
    site.input(input).and_then(Type::last).cloned().unwrap_or_default()
}

impl Meaning for Attention {
    fn is_random(&self) -> bool {
        self.dropout > 0.0
    }
    fn text(&self, _: &Module) -> String {
        format!(
            "attention{} scale={:?}{}{}{}{}{}{}",
            match self.score {
                Score::Dot => "",
                Score::Additive => " additive",
            },
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
        match self.score {
            Score::Dot => "softmax(scale · q kᵀ) v; where a mask hides a key its weight is 0",
            Score::Additive => {
                "softmax(scale · w tanh(q + k)) v, for every query and key; where a mask hides a key its weight is 0"
            }
        }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let expected = self.inputs();
        if given.inputs.len() != expected {
            return fail(format!("attention takes {expected} inputs, not {}", given.inputs.len()));
        }
        let [q, k, v, ..] = given.inputs else { return fail("attention takes q, k and v") };
        let ([b, h, t, d], [kb, kh, kt, kd], [vb, vh, vt, vd]) =
            (q.shape.as_slice(), k.shape.as_slice(), v.shape.as_slice())
        else {
            return fail(format!("attention over {q}, {k}, {v}"));
        };
        // Key and value heads have been repeated by then, so there are as many as query heads.
        if (b, h, d) != (kb, kh, kd) || (kb, kh, kt) != (vb, vh, vt) {
            return fail(format!("queries {q}, keys {k} and values {v} do not fit"));
        }
        let scores = Arc::new(vec![b.clone(), h.clone(), t.clone(), kt.clone()]);
        let at = |place: Option<usize>| place.and_then(|i| given.inputs.get(i));
        for extra in [at(self.mask()), at(self.bias())].into_iter().flatten() {
            // A mask or a bias may be broadcast, but must not make the scores larger.
            if broadcast(&scores, &extra.shape)? != scores {
                return fail(format!("{extra} does not fit scores of {q} and {k}"));
            }
        }
        if let Some(sinks) = at(self.sinks())
            && sinks.shape.as_slice() != [h.clone()]
        {
            return fail(format!("sinks of {sinks} for {h} heads"));
        }
        if let Some(weights) = at(self.score_weights())
            && weights.shape.as_slice() != [h.clone(), d.clone()]
        {
            return fail(format!("weights of {weights} for the scores of {q}"));
        }
        Ok(vec![
            Type::float([b.clone(), h.clone(), t.clone(), vd.clone()]),
            Type::float(scores.iter().cloned()),
        ])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let scores = size(site.output(1));
        let softcap = if self.softcap.is_some() { 3 } else { 0 };
        // The softmax has 5 steps, as documented in `ir::work`.
        let steps = [5, u64::from(self.scale != 1.0), u64::from(self.has_bias), softcap].iter().sum::<u64>();
        // Additive scores add a query and a key and take tanh, feature by feature. No fused kernel exists for
        // them, so the sums `[B,H,T,K,D]` are stored.
        let sums = match self.score {
            Score::Dot => Dim::default(),
            Score::Additive => &scores * &width(site, 0),
        };
        Work {
            attention: &scores * &Self::per_pair(site),
            elementwise: &scores * &Dim::of(steps)
                + &sums * &Dim::of(Activation::Tanh.operations().saturating_add(1)),
            attention_weights: scores,
            ..Work::computed(&(site.out() + sums))
        }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("attention")
    }
    fn training(&self, site: &Site<'_>) -> Training {
        if !(self.is_composed() || self.dropout > 0.0 && self.has_sinks) {
            // The fused operation computes the scores and what dropout hides of them once more for the gradient, in tiles.
            let inputs = [Some(0), Some(1), Some(2), self.bias(), self.sinks()];
            let from: Vec<Operand> = inputs.into_iter().flatten().map(Operand::Input).collect();
            let kept: Vec<Operand> = from.iter().copied().chain(self.mask().map(Operand::Input)).collect();
            // The result is put in the order of positions, and so is each gradient.
            let fused = Entry::new(Passing::Fresh, from).keeping(kept);
            // What the gradient needs was measured; see [`super::training`].
            let fused = Entry { briefly: 1, needs_halves: 7, ..fused };
            return Training::Computed { entries: vec![fused], results: vec![0] };
        }
        // The scores and their softmax are kept, two tensors of that size, and with a softcap one more. The
        // weights that are multiplied by the values are kept, too, and the factors by which dropout
        // multiplied them.
        let mut entries = Vec::new();
        let mut factors = vec![Operand::Input(0), Operand::Input(1)];
        if let Some(weights) = self.score_weights() {
            // The sum of each query and key is kept, and its tanh, too; the gradient needs two more tensors
            // of this size. The width of a head is a number in every graph.
            let features = width(site, 0).constant().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
            let sums = Entry::new(Passing::Fresh, factors);
            entries.push(Entry { size_of: 1, times: features, own: 1, needs_halves: 4, ..sums });
            factors = vec![Operand::Entry(0), Operand::Input(weights)];
        }
        let extras = [self.bias(), self.sinks()].into_iter().flatten().map(Operand::Input);
        let from: Vec<Operand> = factors.iter().copied().chain(extras).collect();
        let scores = Entry {
            size_of: 1,
            own: if self.softcap.is_some() { 3 } else { 2 },
            flags: u64::from(self.has_mask && self.causal),
            needs_halves: 4,
            ..Entry::new(Passing::Product, from).keeping(factors)
        };
        let weights = entries.len();
        entries.push(scores);
        let mut last = weights;
        if self.dropout > 0.0 {
            let dropped = Entry::new(Passing::InPlace, [Operand::Entry(weights)]);
            last = entries.len();
            entries.push(Entry { size_of: 1, own: 1, ..dropped });
        }
        let factors = [Operand::Entry(last), Operand::Input(2)];
        let results = vec![entries.len(), weights];
        entries.push(Entry::new(Passing::Product, factors).keeping(factors));
        Training::Computed { entries, results }
    }
    fn quantities(&self) -> Vec<Quantity> {
        let scale = match self.scale.root() {
            Some(root) => Some(Quantity::Size(root.of)),
            // Scores are not multiplied by 1, so there is nothing to name.
            None => (self.scale != 1.0).then_some(Quantity::Real(Named::ScoreScale, *self.scale)),
        };
        let softcap = self.softcap.map(|cap| Quantity::Real(Named::Softcap, cap));
        let dropout = (self.dropout > 0.0).then_some(Quantity::Real(Named::Dropout, self.dropout));
        scale.into_iter().chain(softcap).chain(dropout).collect()
    }
    fn is_kernel(&self) -> bool {
        true
    }
}

/// The meaning of [`Op::Cache`](super::Op::Cache).
pub(super) struct Cache;

impl Meaning for Cache {
    fn text(&self, _: &Module) -> String {
        "cache".into()
    }
    fn sentence(&self) -> &'static str {
        "while decoding, preceded by what was computed for earlier tokens; otherwise unchanged"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x] = given.inputs else { return fail("one value is cached") };
        let mut ty = (*x).clone();
        let axis =
            ty.shape.len().checked_sub(2).ok_or(Mismatch("a cached value has rank 2 or more".into()))?;
        match ty.shape_mut().get_mut(axis) {
            Some(at) if *at == Dim::sym(Sym::Time) => *at = Dim::sym(Sym::Past) + Dim::sym(Sym::Time),
            // Keys of a source are computed once, and no later token adds to them.
            Some(_) | None => return fail("only the decoded sequence is cached"),
        }
        Ok(vec![ty])
    }
    rearranges!(Passing::Shared);
    fn is_view(&self) -> bool {
        // Outside of cached decoding, it changes nothing.
        true
    }
}
