//! Lowers products over axes that the author chooses, `einsum("btd,de->bte", x, w)`.
//!
//! What is added up is never what a position may not see: the examples of a batch are apart, hidden keys are left out by
//! `weigh`, and a sum over positions is one in an encoder, or of its output, without padding.

use super::fault::{Fault, Lowered};
use super::heads::misfit;
use super::lower::Lowering;
use super::pairs::rule_of;
use super::value::{Pairs, Wide};
use crate::diag::{Code, Diagnostic};
use crate::ir::infer::Mismatch;
use crate::ir::op::{Axes, Neutral, Op};
use crate::ir::{Dim, Sym, ValueId};
use crate::source::Span;

impl Lowering<'_> {
    /// A product over axes that the author chooses.
    pub(super) fn einsum(
        &mut self,
        axes: Option<&(Axes, Span)>,
        inputs: &[(Wide, Span)],
        at: Span,
        name: &str,
    ) -> Lowered<Wide> {
        let (Some((axes, place)), [(a, a_place), (b, b_place)]) = (axes, inputs) else {
            return Err(Mismatch("a product has axes and two tensors".into()).into());
        };
        let wrong = |message: String| misfit(*place, message, Vec::new());
        // The letters of the axes that have a meaning beyond their size.
        let mut known: Vec<(Axis, char)> = Vec::new();
        for (x, letters) in [(a, &axes.left), (b, &axes.right)] {
            let found = self.meanings(x);
            if found.len() != letters.chars().count() {
                let message =
                    format!("`{letters}` has {} axes, but this is {}", letters.len(), self.shape(x));
                return Err(wrong(message));
            }
            for (letter, axis) in letters.chars().zip(found) {
                let Some(axis) = axis else { continue };
                let clash = known.iter().find(|(other, c)| (*c == letter) != (*other == axis));
                if let Some((other, c)) = clash {
                    let message = if *c == letter {
                        format!(
                            "the axis `{letter}` is {} of one tensor and {} of the other",
                            other.words(),
                            axis.words()
                        )
                    } else {
                        format!("`{c}` and `{letter}` are both {}, which need one letter", axis.words())
                    };
                    let fault = wrong(message);
                    return Err(match (axis, fault) {
                        (Axis::Positions, Fault::Wrong(diagnostic)) if *c != letter => {
                            Fault::Wrong(Box::new(diagnostic.help(
                                "`scores(q, k)` has a number for every query and key, and `weigh(w, v)` sums \
                                    what each may see",
                            )))
                        }
                        (_, fault) => fault,
                    });
                }
                if !known.contains(&(axis, letter)) {
                    known.push((axis, letter));
                }
            }
        }
        let rank = axes.result.len();
        let mut factors = [a.id, b.id];
        for (axis, letter) in &known {
            let place = axis.place(rank);
            let found = axes.result.chars().position(|c| c == *letter);
            if found.is_none() {
                factors = self.summed(axes, (*axis, *letter), [a, b], at)?;
                continue;
            }
            if found != place {
                let message =
                    format!("the axis `{letter}`, {}, must be {} of the result", axis.words(), axis.order());
                return Err(wrong(message));
            }
        }
        let rule = rule_of([a, b]).map_err(wrong)?;
        let are_zero = [a, b].iter().any(|x| x.pairs.is_some_and(|pairs| pairs.are_zero));
        match self.b.op(name, Op::Einsum(axes.clone()), &factors) {
            Ok(id) => {
                let of_memory = [a, b].iter().any(|x| x.pairs.is_some_and(|pairs| pairs.of_memory));
                let pairs = rule.map(|rule| Pairs { rule, are_zero, of_memory });
                let last = axes.result.chars().last();
                // The last size is that of the tensor which has its letter.
                let of = |letters: &str, x: &Wide| {
                    if letters.chars().last() == last { x.from.clone() } else { Vec::new() }
                };
                let from = of(&axes.left, a).into_iter().chain(of(&axes.right, b)).collect();
                Ok(Wide { id, from, pairs })
            }
            Err(mismatch) => Err(self.unfit(at, &mismatch, &[(a, *a_place), (b, *b_place)])),
        }
    }

    /// The factors of a product that adds up over an axis with a meaning beyond its size, so that the sum is one of what
    /// may be seen: over all positions, but not over padding.
    fn summed(
        &mut self,
        axes: &Axes,
        (axis, letter): (Axis, char),
        [a, b]: [&Wide; 2],
        at: Span,
    ) -> Lowered<[ValueId; 2]> {
        let mut factors = [a.id, b.id];
        let refused = |help: &str| {
            let message = format!("`{axes}` sums over {}, the axis `{letter}`", axis.words());
            Fault::Wrong(Box::new(Diagnostic::error(Code::WrongPlace, at, message).help(help)))
        };
        let of_pairs = a.pairs.is_some() || b.pairs.is_some();
        let (Axis::Positions, Some(stack), false) = (axis, self.site.stack, of_pairs) else {
            return Err(refused(axis.instead()));
        };
        let has_letter = [&axes.left, &axes.right].map(|letters| letters.contains(letter));
        let with_letter = || factors.iter().zip(has_letter).filter(|(_, has)| *has).map(|(id, _)| *id);
        let length = with_letter().find_map(|id| self.b.ty(id).shape.iter().rev().nth(1).cloned());
        let scope = stack.scope;
        let memory = length.as_ref().and_then(|length| self.memory_of(length));
        let mask = match memory {
            Some(memory) => self.memory_mask(&memory)?,
            None if scope.is_causal => {
                return Err(refused(
                    "a position of a decoder may not depend on later ones; `cumsum(x)` adds up the positions so far, \
                     `recurrence(q, k, v, decay)` their products, and `attend(q, k, v)` or `weigh(w, v)` weighs them",
                ));
            }
            None => self.padding_mask()?,
        };
        let Some(mask) = mask else { return Ok(factors) };
        // A product with 0 is 0, so one of the factors is enough. Padding is another one in every example.
        let batch = Dim::sym(Sym::Batch);
        let is_of_batch = |id: &ValueId| self.b.ty(*id).shape.first() == Some(&batch);
        let Some(factor) = with_letter().find(is_of_batch) else {
            return Err(refused(
                "padding differs between examples, but this is the same in all of them: add it to features, \
                    or multiply them by it, before the sum",
            ));
        };
        let seen = self.b.op("seen", Op::HidePadding { neutral: Neutral::Zero }, &[factor, mask])?;
        if let Some(place) = factors.iter_mut().find(|id| **id == factor) {
            *place = seen;
        }
        Ok(factors)
    }

    /// The axes of a value, with those that have a meaning beyond their size.
    fn meanings(&self, x: &Wide) -> Vec<Option<Axis>> {
        let shape = &self.b.ty(x.id).shape;
        let from_last = |i: usize| shape.len().saturating_sub(i);
        let is_sized = |dim: &Dim| dim.constant().is_some();
        let axis = |(i, dim): (usize, &Dim)| match (from_last(i), x.pairs) {
            (_, _) if *dim == Dim::sym(Sym::Batch) => Some(Axis::Batch),
            (1, Some(_)) => Some(Axis::Keys),
            (2, Some(_)) => Some(Axis::Positions),
            // Of an image the number of positions is known, and every position sees all others.
            (_, _) if is_sized(dim) => None,
            (2, None) => Some(Axis::Positions),
            (_, _) => None,
        };
        shape.iter().enumerate().map(axis).collect()
    }
}

/// An axis that has a meaning beyond its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Batch,
    Positions,
    Keys,
}

impl Axis {
    fn words(self) -> &'static str {
        match self {
            Axis::Batch => "the batch",
            Axis::Positions => "the positions",
            Axis::Keys => "the keys",
        }
    }

    /// The place in a result with this number of axes.
    fn place(self, rank: usize) -> Option<usize> {
        match self {
            Axis::Batch => Some(0),
            Axis::Positions => rank.checked_sub(2),
            Axis::Keys => rank.checked_sub(1),
        }
    }

    fn order(self) -> &'static str {
        match self {
            Axis::Batch => "the first axis",
            Axis::Positions => "the last axis but one",
            Axis::Keys => "the last axis",
        }
    }

    /// What an author may write who wants a sum over it.
    fn instead(self) -> &'static str {
        match self {
            Axis::Batch => {
                "the examples of a batch are computed apart from each other; keep its axis in the result"
            }
            Axis::Positions => {
                "`cumsum(x)` adds up the positions so far, and `attend(q, k, v)` or `weigh(w, v)` weighs them"
            }
            Axis::Keys => "`weigh(w, v)` adds up values by weights, and leaves out what the stack hides",
        }
    }
}
