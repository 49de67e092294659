//! Lowers the words of mixtures: the largest features, and parts of which each position has a few.

use super::heads::misfit;
use super::lower::{
    Fault, Lowered, Lowering, Outcome, Site, module, module_name, origin, shape, size, variable,
};
use super::plan::{Amount, Flow, FlowKind, WordCall};
use super::value::{Pairs, Wide};
use crate::diag::{Code, Diagnostic};
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, Run, Sym, Type};
use crate::source::Span;

impl Lowering<'_> {
    pub(super) fn top_k(&mut self, x: &Wide, place: Span, k: Option<&Amount>, name: &str) -> Lowered<Wide> {
        let amount = k.ok_or(Mismatch("a number of features is missing".into()))?;
        let count = size(amount, 1)?;
        if x.pairs.is_some() {
            let seen = self.lowered(x)?;
            let id = self.b.op(name, Op::TopK { count }, &[seen])?;
            let pairs = x.pairs.map(|pairs| Pairs { are_zero: false, ..pairs });
            return Ok(Wide { id, from: x.from.clone(), pairs });
        }
        let width = self.width(x, place)?;
        if count.get() > width.get() {
            let message = format!("{count} of {width} features cannot be the largest");
            return Err(misfit(place, message, x.from.iter().cloned().chain(origin(amount))));
        }
        self.like(x, name, Op::TopK { count })
    }

    /// As many parts as there are weights, each for the positions alone that have it.
    pub(super) fn experts(&mut self, call: &WordCall, at: Span, name: &str) -> Lowered<Wide> {
        let ([Flow { kind: FlowKind::Part(inner), span: place }, weights], [amount]) =
            (call.inputs.as_slice(), call.numbers.as_slice())
        else {
            return Err(Mismatch("experts take a part, weights and a number".into()).into());
        };
        let place = *place;
        let [input] = inner.inputs.as_slice() else {
            return Err(Mismatch("an expert takes one input".into()).into());
        };
        let (x, x_place) = (self.flow(input, "h")?, input.span);
        let (w, w_place) = (self.flow(weights, "weights")?, weights.span);
        self.b.at(at);
        for (value, place) in [(&x, x_place), (&w, w_place)] {
            self.has_features("experts", value, place)?;
            let shape = &self.b.ty(value.id).shape;
            if shape.len() != 3 || shape.first() != Some(&Dim::sym(Sym::Batch)) {
                let message = format!(
                    "`experts` takes features of positions, [B, T, D], but this is {}",
                    self.shape(value)
                );
                return Err(misfit(place, message, value.from.iter().cloned()));
            }
        }
        let (width, count, active) = (self.width(&x, x_place)?, self.width(&w, w_place)?, size(amount, 1)?);
        if active.get() > count.get() {
            let message = format!("a position cannot have {active} of {count} experts");
            return Err(misfit(w_place, message, w.from.iter().cloned().chain(origin(amount))));
        }
        let part = &inner.part;
        // An expert is given the rows of some positions, in no order and without their batch.
        let why = part.needs_stack("experts").or_else(|| {
            let word = part.of_losses()?;
            Some(format!(
                "`{}` calls `{word}`, but a part in `experts` cannot have its own losses",
                part.name()
            ))
        });
        if let Some(message) = why {
            let diagnostic = Diagnostic::error(Code::WrongPlace, place, message);
            return Err(Fault::Wrong(Box::new(diagnostic.label(part.definition.span, "defined here"))));
        }
        let member = variable(&inner.member);
        let rows = Type::float([Dim::sym(Sym::Rows), Dim::from(width)]);
        let site = Site {
            arena: self.site.arena,
            init: self.site.init,
            // In the rules of `init`, `*` is any expert, as it is any block.
            path: format!("{}.*", self.path(&member)),
            module: format!("{}{}", self.site.prefix, module_name(part.name())),
            prefix: self.site.prefix,
            inputs: vec![rows.clone()],
            origins: vec![x.from.clone()],
            pairs: Vec::new(),
            emptied: Vec::new(),
            stack: None,
            slot: self.site.slot,
        };
        let Outcome { module, ty, from, .. } = module(part, &site).map_err(|fault| match fault {
            Fault::Wrong(diagnostic) => Fault::Wrong(Box::new(diagnostic.label(at, "called here"))),
            Fault::Bug(mismatch) => Fault::Bug(mismatch),
        })?;
        if ty != rows {
            let message = format!(
                "the result of `{}` is {}, but an expert must return {}, the shape that it is given",
                part.name(),
                shape(&ty),
                shape(&rows)
            );
            return Err(misfit(place, message, from.into_iter().chain(x.from.iter().cloned())));
        }
        let member = self.b.stack(&member, vec![Run { count: count.get(), cycle: vec![module] }]);
        let id = self.b.op(name, Op::Experts { member, active: active.get() }, &[x.id, w.id])?;
        Ok(Wide::new(id, x.from))
    }
}
