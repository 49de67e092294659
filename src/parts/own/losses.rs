//! Lowers the words of losses: what training adds to the loss of the outputs.
//!
//! A mean over the batch looks at every position, later ones and those of other examples too, so nothing that the
//! part returns may be computed from it.

use std::collections::BTreeMap;

use super::fields::WithLoss;
use super::heads::misfit;
use super::lower::{Fault, Lowered, Lowering};
use super::value::Wide;
use crate::diag::{Code, Diagnostic};
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, padded};
use crate::ir::{Dim, Sym, ValueId};
use crate::source::Span;

impl Lowering<'_> {
    /// The mean of every feature over all positions of the batch but padding.
    pub(super) fn batch_mean(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let is_of_batch = matches!(self.b.ty(x.id).shape.as_slice(), [batch, time, _]
            if *batch == Dim::sym(Sym::Batch) && *time != Dim::of(1u64));
        if !is_of_batch {
            let message = format!("`batch_mean` takes features, [B, T, D], but this is {}", self.shape(x));
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        let along = padded(self.b.ty(x.id));
        self.like(x, name, Op::BatchMean { along })
    }

    /// A tensor, and a loss that is not in it: the value of the loss gets the name of the call.
    pub(super) fn with_loss(
        &mut self,
        fields: &WithLoss,
        inputs: &[(Wide, Span)],
        member: &str,
    ) -> Lowered<Wide> {
        let [(y, _), (x, _)] = inputs else {
            return Err(Mismatch("a loss is added next to a tensor".into()).into());
        };
        let along = padded(self.b.ty(x.id));
        self.b.op(member, Op::ExtraLoss { weight: *fields.weight, along }, &[x.id])?;
        Ok(y.clone())
    }

    /// Refuses a result that is computed from a mean over the batch.
    pub(super) fn refuse_what_sees_the_batch(&self, result: ValueId, at: Span) -> Lowered<()> {
        // Each value that is computed from such a mean, with the place of the mean.
        let mut from: BTreeMap<ValueId, Option<Span>> = BTreeMap::new();
        for node in self.b.nodes() {
            let mean = if let Op::BatchMean { .. } = node.op {
                Some(node.span)
            } else {
                node.inputs.iter().find_map(|id| from.get(id).copied())
            };
            from.extend(mean.into_iter().flat_map(|place| node.outputs.iter().map(move |id| (*id, place))));
        }
        let Some(place) = from.get(&result) else { return Ok(()) };
        let message = "the result is computed from a mean over the batch, which includes later positions and \
            other examples";
        let diagnostic = Diagnostic::error(Code::WrongPlace, at, message);
        let diagnostic =
            place.iter().fold(diagnostic, |d, place| d.label(*place, "this looks at the whole batch"));
        Err(Fault::Wrong(Box::new(
            diagnostic.help(
                "use it in a loss, `with_loss(y, .., weight: 0.01)`; `cumsum` adds up earlier positions",
            ),
        )))
    }
}
