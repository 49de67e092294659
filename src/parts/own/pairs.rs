//! Lowers the words of numbers for every query and key, `[B, H, T, K]`: scores, what depends on a distance, and the sum
//! of values by weights.
//!
//! Some of these numbers belong to keys that the query may not see. Whatever adds them up or compares them leaves those
//! out, so no equation can look ahead.

use super::fields::{self, Fields, Relative, Scores};
use super::heads::{geometry, misfit};
use super::lower::{Fault, Lowered, Lowering, origin, size};
use super::plan::Amount;
use super::value::{Pairs, Wide};
use crate::diag::{Code, Diagnostic};
use crate::field;
use crate::ir::factor::Root;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Distances, Fill, MaskRule, Op, Reduction};
use crate::ir::{Dim, Factor, Type, ValueId};
use crate::parts::mask::{Mask, MaskPart, WindowMask};
use crate::parts::scope::Padding;
use crate::parts::scores;
use crate::source::Span;

impl<'s> Lowering<'s> {
    /// Refuses numbers for every query and key where a word is computed from features.
    pub(super) fn of_features(&self, fields: &Fields, inputs: &[(Wide, Span)]) -> Lowered<()> {
        let takes_pairs = match fields {
            Fields::Dropout(_)
            | Fields::Clamp(_)
            | Fields::Softcap(_)
            | Fields::Softmax(_)
            | Fields::Sum(_)
            | Fields::Amax(_)
            | Fields::TopK(_)
            | Fields::Weigh(_)
            | Fields::Einsum(_) => true,
            Fields::Linear(_)
            | Fields::Param(_)
            | Fields::Arange(_)
            | Fields::Gain(_)
            | Fields::Normalize(_)
            | Fields::Slice(_)
            | Fields::Concat(_)
            | Fields::Split(_)
            | Fields::Merge(_)
            | Fields::Repeat(_)
            | Fields::Rotate(_)
            | Fields::Attend(_)
            | Fields::Scores(_)
            | Fields::Relative(_)
            | Fields::Shift(_)
            | Fields::Conv1d(_)
            | Fields::Cumsum(_)
            | Fields::Recurrence(_)
            | Fields::OfKeys(_)
            | Fields::AtKeys(_)
            | Fields::Positions(_)
            | Fields::Embedding(_)
            | Fields::Mean(_)
            | Fields::Experts(_)
            | Fields::BatchMean(_)
            | Fields::WithLoss(_) => false,
        };
        if takes_pairs {
            return Ok(());
        }
        inputs.iter().try_for_each(|(x, place)| self.has_features(fields.part(), x, *place))
    }

    /// Refuses numbers for every query and key.
    pub(super) fn has_features(&self, word: &str, x: &Wide, place: Span) -> Lowered<()> {
        if x.pairs.is_none() {
            return Ok(());
        }
        let message = format!(
            "`{word}` is computed from features, but the last axis of {} has the keys",
            self.shape(x)
        );
        let diagnostic = Diagnostic::error(Code::ShapeMismatch, place, message);
        let help = "numbers for every query and key go into `softmax`, `sum`, `amax`, `top_k`, `weigh` or \
            `einsum`, and are combined with other numbers by `+ - * /` and by elementwise functions";
        Err(Fault::Wrong(Box::new(diagnostic.help(help))))
    }

    /// What is known of two tensors that are combined number by number.
    ///
    /// # Errors
    /// They hide different keys.
    pub(super) fn joined(&self, a: &Wide, b: &Wide, op: &Op) -> Result<Option<Pairs>, String> {
        let are_zero = |pairs: Option<Pairs>| pairs.is_some_and(|pairs| pairs.are_zero);
        let (left, right) = (are_zero(a.pairs), are_zero(b.pairs));
        let are_zero = if *op == Op::Mul {
            left || right
        } else if *op == Op::Divide {
            left
        } else {
            left && right
        };
        let of_memory = [a, b].iter().any(|x| x.pairs.is_some_and(|pairs| pairs.of_memory));
        Ok(rule_of([a, b])?.map(|rule| Pairs { rule, are_zero, of_memory }))
    }

    /// The product of every query with every key.
    pub(super) fn scores(
        &mut self,
        fields: &Scores,
        inputs: &[(Wide, Span)],
        at: Span,
        name: &str,
    ) -> Lowered<Wide> {
        let [(q, q_place), (k, k_place)] = inputs else {
            return Err(Mismatch("scores take queries and keys".into()).into());
        };
        let stack = self.stack()?;
        let scope = stack.scope;
        let queries = self.heads("scores", q, *q_place)?;
        let keys = self.heads("scores", k, *k_place)?;
        let memory = self.memory_of(&keys.length);
        self.at_positions("scores", q, *q_place, &queries.length)?;
        if memory.is_none() {
            self.at_positions("scores", k, *k_place, &keys.length)?;
        } else {
            self.has_no_window(fields.window, at)?;
        }
        let shapes = || format!("queries {} and keys {}", self.shape(q), self.shape(k));
        let message = match queries.heads.divide(keys.heads) {
            _ if queries.features != keys.features => {
                format!("the queries and keys of a head must have the same number of features: {}", shapes())
            }
            None => format!("the heads of queries must be a multiple of those of keys: {}", shapes()),
            Some(_) => String::new(),
        };
        if !message.is_empty() {
            return Err(misfit(at, message, q.from.iter().chain(&k.from).cloned()));
        }
        let rule = match fields.window {
            None => None,
            Some(size) => {
                let places =
                    field::Places::of_names(at, vec![("size".to_owned(), fields.places.of("window"))]);
                let mask = Mask(vec![MaskPart::Window(WindowMask { size, places })]);
                if let Some(diagnostic) = mask.check(scope.is_causal) {
                    return Err(Fault::Wrong(Box::new(diagnostic)));
                }
                Some(mask.rule(scope.is_causal))
            }
        };
        let scheme = stack.position.scheme();
        // Rotary positions act where the author writes `rotate`.
        let geometry = geometry(stack, &queries, scope.is_causal);
        let has_bias = !scheme.rotates() && memory.is_none();
        let needs = if has_bias { scheme.needs(scope, geometry) } else { Vec::new() };
        let given: Vec<_> = needs.into_iter().flat_map(|id| self.of_stack(stack, id)).collect();
        // What depends on the memory alone stays the same while a text is generated.
        let k = if memory.is_some() { k.id } else { self.kept("k", k.id)? };
        let k = self.repeated_to(queries.heads.divide(keys.heads), "k", k)?;
        let product = self.b.op("scores", Op::MatMul { transposed: true }, &[q.id, k])?;
        let root = Root { of: queries.features, is_inverse: true };
        let usual = 1.0 / (queries.features.get() as f64).sqrt();
        let by = fields.scale.map_or(Factor::new(usual, Some(root)), |scale| Factor::from(*scale));
        let mut id = product;
        if by != 1.0 {
            id = self.b.op(name, Op::Scale { by }, &[id])?;
        }
        let bias = match has_bias {
            true => scheme.on_scores(&mut self.b, scope, &self.site.path, geometry, &given)?,
            false => None,
        };
        if let Some(bias) = bias {
            id = self.b.op(name, Op::Add, &[id, bias])?;
        }
        Ok(Wide {
            id,
            from: Vec::new(),
            pairs: Some(Pairs { rule, are_zero: false, of_memory: memory.is_some() }),
        })
    }

    /// For every query and key, the feature of their distance.
    pub(super) fn relative(
        &mut self,
        fields: &Relative,
        x: &Wide,
        place: Span,
        center: Option<&Amount>,
        name: &str,
    ) -> Lowered<Wide> {
        let amount = center.ok_or(Mismatch("the number of a feature is missing".into()))?;
        let heads = self.heads("relative", x, place)?;
        let center = size(amount, 0)?;
        if center.get() >= heads.features.get() {
            let message = format!(
                "the feature number {center}, counted from 0, is not one of the {} features of {}",
                heads.features,
                self.shape(x)
            );
            return Err(misfit(place, message, x.from.iter().cloned().chain(origin(amount))));
        }
        let sequence = self.stack()?.scope.sequence;
        let is_one = heads.length == Dim::of(1u64);
        if !is_one {
            self.at_positions("relative", x, place, &heads.length)?;
        }
        let id = if fields.of_keys && !is_one { self.kept("k", x.id)? } else { x.id };
        let distances = match &fields.distances {
            None => Distances::Each,
            Some(fields::Distances::Logarithmic(scale)) => {
                Distances::Logarithmic { exact: (*scale.exact).into(), farthest: (*scale.farthest).into() }
            }
            Some(fields::Distances::Grid(grid)) => {
                Distances::Grid { columns: (*grid.columns).into(), has_class: grid.class_token }
            }
        };
        let of_keys = fields.of_keys;
        let op = Op::ByDistance { queries: sequence, keys: sequence, center, distances, of_keys };
        let id = self.b.op(name, op, &[id])?;
        Ok(Wide {
            id,
            from: Vec::new(),
            pairs: Some(Pairs { rule: None, are_zero: false, of_memory: false }),
        })
    }

    /// For every query and key, the one number of the key.
    pub(super) fn of_keys(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let heads = self.heads("of_keys", x, place)?;
        self.at_positions("of_keys", x, place, &heads.length)?;
        if heads.features != 1 {
            let message = format!("`of_keys` takes one number per head, but this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        let sequence = self.stack()?.scope.sequence;
        let id = self.kept("k", x.id)?;
        let (center, distances) = (crate::ir::Extent::from(0), Distances::Each);
        let op = Op::ByDistance { queries: sequence, keys: sequence, center, distances, of_keys: true };
        let id = self.b.op(name, op, &[id])?;
        Ok(Wide {
            id,
            from: Vec::new(),
            pairs: Some(Pairs { rule: None, are_zero: false, of_memory: false }),
        })
    }

    /// For every query and key, the feature of the query whose number is the key's position in its text. Padding is not
    /// counted, so the numbers are those of a sum over the positions so far.
    pub(super) fn at_keys(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let heads = self.heads("at_keys", x, place)?;
        let stack = self.stack()?;
        if heads.length != Dim::of(1u64) {
            self.at_positions("at_keys", x, place, &heads.length)?;
        }
        let longest = stack.longest();
        if heads.features.get() < longest {
            let message = format!(
                "`at_keys` takes a feature for each of {longest} positions, but this is {}",
                self.shape(x)
            );
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        let sequence = stack.scope.sequence;
        let (center, distances) = (crate::ir::Extent::from(0), Distances::OfKey);
        let op = Op::ByDistance { queries: sequence, keys: sequence, center, distances, of_keys: false };
        let id = match self.padding_mask()? {
            // What comes before a text is another count in every example.
            Some(mask) => {
                let of_all = self.for_batch(x.id, self.of_batch)?;
                self.b.op(name, op, &[of_all, mask])?
            }
            None => self.b.op(name, op, &[x.id])?,
        };
        Ok(Wide {
            id,
            from: Vec::new(),
            pairs: Some(Pairs { rule: None, are_zero: false, of_memory: false }),
        })
    }

    /// Numbers for every query and key, of which those that the query may not see are the lowest there are. A query that may
    /// see none keeps its own: the largest of nothing but the lowest number would leave differences that overflow.
    pub(super) fn lowered(&mut self, x: &Wide) -> Lowered<ValueId> {
        match x.pairs {
            Some(pairs) => {
                let mask = self.mask(pairs)?;
                let fill = if self.may_see_none(pairs)? { Fill::LowestIfAny } else { Fill::Lowest };
                self.hidden(x.id, mask, fill)
            }
            None => Ok(x.id),
        }
    }

    /// The softmax over the keys that a query may see.
    pub(super) fn softmax(&mut self, x: &Wide, name: &str) -> Lowered<Wide> {
        let Some(pairs) = x.pairs else { return self.like(x, name, Op::Softmax) };
        let mask = self.mask(pairs)?;
        let hidden = self.hidden(x.id, mask, Fill::Lowest)?;
        let id = self.b.op(name, Op::Softmax, &[hidden])?;
        // A query for which everything is hidden has no weights.
        let id = if self.may_see_none(pairs)? { self.hidden(id, mask, Fill::Zero)? } else { id };
        Ok(Wide { id, from: x.from.clone(), pairs: Some(Pairs { are_zero: true, ..pairs }) })
    }

    /// Whether everything may be hidden for a query, as in padding.
    fn may_see_none(&self, pairs: Pairs) -> Lowered<bool> {
        let scope = self.stack()?.scope;
        Ok(match &scope.memory {
            Some(memory) if pairs.of_memory => memory.is_padded,
            Some(_) | None => scope.is_padded,
        })
    }

    /// The sum over the keys that a query may see.
    pub(super) fn sum_of_pairs(&mut self, x: &Wide, at: Span, name: &str) -> Lowered<Wide> {
        let seen = self.seen(x)?;
        let id = self.b.op(name, Op::Reduce(Reduction::Sum), &[seen])?;
        Ok(Wide::new(id, vec![(at, "`sum` leaves 1 feature".to_owned())]))
    }

    /// The sum of values by weights.
    pub(super) fn weigh(&mut self, inputs: &[(Wide, Span)], at: Span, name: &str) -> Lowered<Wide> {
        let [(w, w_place), (v, v_place)] = inputs else {
            return Err(Mismatch("weights and values are missing".into()).into());
        };
        if w.pairs.is_none() {
            let message =
                format!("`weigh` takes a weight for every query and key, but this is {}", self.shape(w));
            let diagnostic = Diagnostic::error(Code::ShapeMismatch, *w_place, message);
            let help = "`softmax(scores(q, k))` are the weights of attention";
            return Err(Fault::Wrong(Box::new(diagnostic.help(help))));
        }
        let values = self.heads("weigh", v, *v_place)?;
        let of_memory = w.pairs.is_some_and(|pairs| pairs.of_memory);
        if !of_memory {
            self.at_positions("weigh", v, *v_place, &values.length)?;
        }
        let heads = self.b.ty(w.id).shape.get(1).and_then(Dim::extent);
        let times = heads.and_then(|heads| heads.divide(values.heads));
        if times.is_none() {
            let message = format!(
                "the heads of weights must be a multiple of those of values: {} and {}",
                self.shape(w),
                self.shape(v)
            );
            return Err(misfit(at, message, v.from.iter().cloned()));
        }
        let seen = self.seen(w)?;
        let seen = self.for_batch(seen, Some(v.id))?;
        // A weight of 0 does not leave out what is no number, such as 0 / 0 where all that came before is padding.
        let values = if of_memory { v.clone() } else { self.without_padding(v)? };
        let kept = if of_memory { values.id } else { self.kept("v", values.id)? };
        let kept = self.repeated_to(times, "v", kept)?;
        match self.b.op(name, Op::MatMul { transposed: false }, &[seen, kept]) {
            Ok(id) => Ok(Wide::new(id, v.from.clone())),
            Err(mismatch) => Err(self.unfit(at, &mismatch, &[(w, *w_place), (v, *v_place)])),
        }
    }

    /// Refuses a value that does not have all positions of the stack.
    fn at_positions(&self, word: &str, x: &Wide, place: Span, length: &Dim) -> Lowered<()> {
        let positions = self.stack()?.scope.sequence.queries();
        if *length == positions {
            return Ok(());
        }
        let message =
            format!("`{word}` takes a head for each of {positions} positions, but this is {}", self.shape(x));
        Err(misfit(place, message, Vec::new()))
    }

    fn repeated_to(&mut self, times: Option<crate::ir::Extent>, name: &str, x: ValueId) -> Lowered<ValueId> {
        match times {
            Some(times) if times != 1 => Ok(self.b.op(name, Op::RepeatHeads { times }, &[x])?),
            Some(_) | None => Ok(x),
        }
    }

    /// Numbers that are the same for all examples, for each example of another tensor.
    fn for_batch(&mut self, x: ValueId, like: Option<ValueId>) -> Lowered<ValueId> {
        let is_one = |ty: &Type| ty.shape.first() == Some(&Dim::of(1u64));
        match like {
            Some(like) if is_one(self.b.ty(x)) && !is_one(self.b.ty(like)) => {
                Ok(self.b.op("h", Op::ForBatch, &[x, like])?)
            }
            Some(_) | None => Ok(x),
        }
    }

    /// The mask that hides what a query may not see; `None` if it sees everything.
    fn mask(&mut self, pairs: Pairs) -> Lowered<Option<ValueId>> {
        let stack = self.stack()?;
        let scope = stack.scope;
        if let Some(memory) = scope.memory.as_ref().filter(|_| pairs.of_memory) {
            return self.memory_mask(memory);
        }
        let rule = pairs.rule.unwrap_or_else(|| Mask::of_stack().rule(scope.is_causal));
        let padding = if scope.is_padded { Padding::Own } else { Padding::None };
        let mask = scores::mask(scope, scope.sequence, scope.sequence, rule, padding);
        Ok(mask.and_then(|id| self.of_stack(stack, id).first().copied()))
    }

    /// With a number in the place of what a mask hides.
    fn hidden(&mut self, x: ValueId, mask: Option<ValueId>, fill: Fill) -> Lowered<ValueId> {
        match mask {
            Some(mask) => {
                // Padding is another one in every example.
                let is_of_all = self.b.ty(mask).shape.first().is_some_and(|dim| dim.constant().is_none());
                let x = if is_of_all { self.for_batch(x, self.of_batch)? } else { x };
                Ok(self.b.op("seen", Op::Hide { fill }, &[x, mask])?)
            }
            None => Ok(x),
        }
    }

    /// Numbers for every query and key, of which those that the query may not see are 0.
    fn seen(&mut self, x: &Wide) -> Lowered<ValueId> {
        match x.pairs {
            Some(pairs) if !pairs.are_zero => {
                let mask = self.mask(pairs)?;
                self.hidden(x.id, mask, Fill::Zero)
            }
            Some(_) | None => Ok(x.id),
        }
    }
}

/// What the author hides in some tensors, if one of them has a number for every query and key.
///
/// # Errors
/// They hide different keys.
pub(super) fn rule_of(all: [&Wide; 2]) -> Result<Option<Option<MaskRule>>, String> {
    let mut pairs = all.iter().filter_map(|x| x.pairs);
    let Some(first) = pairs.next() else { return Ok(None) };
    match pairs.next().map(|second| (first.rule, second.rule)) {
        Some((Some(a), Some(b))) if a != b => {
            Err("scores with different windows are combined, so it is not known which keys a query sees"
                .to_owned())
        }
        Some((a, b)) => Ok(Some(a.or(b))),
        None => Ok(Some(first.rule)),
    }
}
