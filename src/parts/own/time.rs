//! Lowers the words that read earlier positions: shifts, convolutions, and sums so far.

use super::heads::misfit;
use super::lower::{Lowered, Lowering, Stack, Wide, origin, size};
use super::plan::Amount;
use super::vocabulary::Conv1d;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, Init, ValueId};
use crate::parts::attention::heads::cached;
use crate::source::Span;

impl<'s> Lowering<'s> {
    pub(super) fn shift(&mut self, x: &Wide, place: Span, by: Option<&Amount>, name: &str) -> Lowered<Wide> {
        let by = size(by.ok_or(Mismatch("a number of positions is missing".into()))?, 1)?;
        let all = self.so_far("shift", x, place)?;
        let id = self.b.op(name, Op::Earlier { by }, &[all, x.id])?;
        Ok(Wide { id, from: x.from.clone() })
    }

    pub(super) fn cumsum(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let all = self.so_far("cumsum", x, place)?;
        let id = self.b.op(name, Op::CumulativeSum, &[all, x.id])?;
        Ok(Wide { id, from: x.from.clone() })
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
        if self.b.ty(x.id).shape.len() != 3 {
            let message = format!("`conv1d` takes features, [B, T, D], and this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned().chain(origin(amount))));
        }
        let all = self.so_far("conv1d", x, place)?;
        let (init, path) = (self.site.init, self.path(member));
        let weight =
            self.b.param(member, init.own_param(&path, vec![features, Extent::from(1), width], None))?;
        let id = self.b.op(name, Op::CausalConv, &[all, x.id, weight])?;
        if !fields.bias {
            return Ok(Wide { id, from: x.from.clone() });
        }
        let bias = init.param(&format!("{path}_bias"), vec![features], Some(Init::Zeros));
        let bias = self.b.param(&format!("{member}_bias"), bias)?;
        let id = self.b.op(name, Op::Add, &[id, bias])?;
        Ok(Wide { id, from: x.from.clone() })
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

    /// The same for a value that a word reads at other positions, so it must have them.
    fn so_far(&mut self, word: &str, x: &Wide, place: Span) -> Lowered<ValueId> {
        let length = self.stack()?.scope.sequence.queries();
        let ty = self.b.ty(x.id);
        if ty.shape.iter().rev().nth(1) != Some(&length) {
            let message =
                format!("`{word}` reads other positions of [.., {length}, D], and this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        self.kept("so_far", x.id)
    }
}
