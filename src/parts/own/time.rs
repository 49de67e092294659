//! Lowers the words that read earlier positions: shifts, convolutions, sums so far, and recurrences.

use super::amount::valued;
use super::fields::Conv1d;
use super::heads::misfit;
use super::lower::{Lowered, Lowering, Stack, origin, size, wrong};
use super::plan::Amount;
use super::value::Wide;
use crate::diag::Code;
use crate::ir::infer::Mismatch;
use crate::ir::op::{MaskRule, Neutral, Op, Sequence};
use crate::ir::{Dim, Extent, Init, Sym, ValueId};
use crate::parts::attention::heads::cached;
use crate::parts::scope::Padding;
use crate::parts::scores;
use crate::source::Span;

/// The most positions of a convolution: it is computed position by position, and each takes memory in training.
const MOST_POSITIONS: u64 = 4096;

impl<'s> Lowering<'s> {
    pub(super) fn shift(&mut self, x: &Wide, place: Span, by: Option<&Amount>, name: &str) -> Lowered<Wide> {
        let by = size(by.ok_or(Mismatch("a number of positions is missing".into()))?, 1)?;
        let decodes = self.in_time("shift", x, place)?;
        let x = self.without_padding(x)?;
        self.like(&x, name, Op::Earlier { by, decodes })
    }

    pub(super) fn cumsum(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let decodes = self.in_time("cumsum", x, place)?;
        let x = self.without_padding(x)?;
        self.like(&x, name, Op::CumulativeSum { decodes })
    }

    pub(super) fn conv1d(
        &mut self,
        fields: &Conv1d,
        x: &Wide,
        place: Span,
        width: Option<&Amount>,
        member: &str,
        name: &str,
    ) -> Lowered<Wide> {
        let amount = width.ok_or(Mismatch("a convolution without a width".into()))?;
        let (features, width) = (self.width(x, place)?, size(amount, 1)?);
        if width.get() > MOST_POSITIONS {
            let message =
                format!("the convolution reads {} positions, more than {MOST_POSITIONS}", valued(amount));
            return Err(wrong(Code::OutOfRange, amount.span, message));
        }
        if self.b.ty(x.id).shape.len() != 3 {
            let message = format!("`conv1d` takes features, [B, T, D], but this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned().chain(origin(amount))));
        }
        let decodes = self.in_time("conv1d", x, place)?;
        let x = &self.without_padding(x)?;
        let (init, path) = (self.site.init, self.path(member));
        let weight =
            self.b.param(member, init.own_param(&path, vec![features, Extent::from(1), width], None))?;
        let id = self.b.op(name, Op::CausalConv { decodes }, &[x.id, weight])?;
        if !fields.bias {
            return Ok(Wide::new(id, x.from.clone()));
        }
        let bias = init.param(&format!("{path}_bias"), vec![features], Some(Init::Zeros));
        let bias = self.b.param(&format!("{member}_bias"), bias)?;
        let id = self.b.op(name, Op::Add, &[id, bias])?;
        Ok(Wide::new(id, x.from.clone()))
    }

    pub(super) fn stack(&self) -> Lowered<Stack<'s>> {
        Ok(self.site.stack.ok_or(Mismatch("a part that needs a stack is in none".into()))?)
    }

    /// A value at all positions so far: preceded by those in the cache if the stack decodes.
    pub(super) fn kept(&mut self, name: &str, x: ValueId) -> Lowered<ValueId> {
        if let Some(known) = self.kept.get(&x) {
            return Ok(*known);
        }
        let scope = self.stack()?.scope;
        let id = cached(&mut self.b, scope, name, x)?;
        self.kept.insert(x, id);
        Ok(id)
    }

    /// A recurrence over heads, with the delta rule if there is a `beta`.
    pub(super) fn recurrence(&mut self, inputs: &[(Wide, Span)], at: Span, name: &str) -> Lowered<Wide> {
        let [(q, q_place), (k, k_place), (v, v_place), (decay, decay_place), beta @ ..] = inputs else {
            return Err(Mismatch("a recurrence takes queries, keys, values and a decay".into()).into());
        };
        let decodes = self.in_time("recurrence", v, *v_place)?;
        let values = self.heads("recurrence", v, *v_place)?;
        // A key of zeros adds nothing to a state and takes nothing away.
        let k = &self.without_padding(k)?;
        let mut given = Vec::new();
        for (value, place, what) in [(q, q_place, "queries"), (k, k_place, "keys")] {
            let own = self.heads("recurrence", value, *place)?;
            let Some(times) = values.heads.divide(own.heads) else {
                let message = format!(
                    "the heads of values must be a multiple of those of {what}: {} and {}",
                    self.shape(v),
                    self.shape(value)
                );
                return Err(misfit(at, message, v.from.iter().chain(&value.from).cloned()));
            };
            // One head is shared as it is.
            let is_shared = own.heads == 1 || times == 1;
            given.push(match is_shared {
                true => value.id,
                false => self.b.op(name, Op::RepeatHeads { times }, &[value.id])?,
            });
        }
        given.extend([v.id, decay.id]);
        given.extend(beta.iter().map(|(beta, _)| beta.id));
        match self.b.op(name, Op::Recurrence { decodes }, &given) {
            Ok(id) => Ok(Wide::new(id, v.from.clone())),
            Err(mismatch) => {
                let mut operands = vec![(q, *q_place), (k, *k_place), (v, *v_place), (decay, *decay_place)];
                operands.extend(beta.iter().map(|(beta, place)| (beta, *place)));
                Err(self.unfit(at, &mismatch, &operands))
            }
        }
    }

    /// A value that other positions read, with zeros at those that are padding: what precedes a text does not change it.
    pub(super) fn without_padding(&mut self, x: &Wide) -> Lowered<Wide> {
        let is_of_batch = self.b.ty(x.id).shape.first() == Some(&Dim::sym(Sym::Batch));
        let mask = if is_of_batch { self.padding_mask()? } else { None };
        let Some(mask) = mask else { return Ok(x.clone()) };
        let id = match self.unpadded.get(&x.id) {
            Some(known) => *known,
            None => self.b.op("seen", Op::HidePadding { neutral: Neutral::Zero }, &[x.id, mask])?,
        };
        self.unpadded.insert(x.id, id);
        Ok(Wide { id, ..x.clone() })
    }

    /// The mask of the stack's own padding, if it may have any.
    pub(super) fn padding_mask(&mut self) -> Lowered<Option<ValueId>> {
        let stack = self.stack()?;
        let own = stack.scope.sequence;
        let padding = if stack.scope.is_padded { Padding::Own } else { Padding::None };
        let mask = scores::mask(stack.scope, own, own, MaskRule::default(), padding);
        Ok(mask.and_then(|id| self.of_stack(stack, id).first().copied()))
    }

    /// Checks that a value which a word reads at other positions has them. Whether decoding continues from them is
    /// the result.
    fn in_time(&mut self, word: &str, x: &Wide, place: Span) -> Lowered<bool> {
        let sequence = self.stack()?.scope.sequence;
        let length = sequence.queries();
        let ty = self.b.ty(x.id);
        if ty.shape.iter().rev().nth(1) != Some(&length) {
            let message =
                format!("`{word}` reads other positions of [.., {length}, D], but this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        Ok(sequence == Sequence::Cached)
    }
}
