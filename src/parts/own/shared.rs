//! Lowers learned tables: parameters that all layers of a stack share, vectors of positions, and rows by their numbers.

use super::fields::Param;
use super::heads::misfit;
use super::lower::{Lowered, Lowering, origin, size, variable};
use super::plan::Amount;
use super::value::Wide;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Activation, Axes, Elementary};
use crate::ir::{Dim, Extent, Op, Rows, Type, ValueId};
use crate::parts::scope::Ambient;
use crate::source::Span;

impl Lowering<'_> {
    /// A learned vector for each position of the stack.
    pub(super) fn positions(&mut self, member: &str, width: Extent, name: &str) -> Lowered<ValueId> {
        let stack = self.stack()?;
        let op = Op::Positions { along: stack.scope.sequence, offset: 0 };
        let positions = self.b.op("position", op, &[])?;
        let longest = stack.longest();
        let rows =
            if longest == stack.context { Extent::new("context", longest) } else { Extent::from(longest) };
        let table = self.site.init.embedding(&self.path(member), Rows::Positions, rows, width, None);
        let member = self.b.layer(member, table);
        Ok(self.b.op(name, Op::Layer { member }, &[positions])?)
    }

    /// Rows of a learned table by their numbers, as a product with weights that are 1 at a row and 0 from the next one on.
    pub(super) fn embedding(
        &mut self,
        (x, place): (&Wide, Span),
        (rows, size_of_row): (Option<&Amount>, Option<&Amount>),
        member: &str,
        name: &str,
    ) -> Lowered<Wide> {
        let (Some(rows), Some(width)) = (rows, size_of_row) else {
            return Err(Mismatch("a table without its sizes".into()).into());
        };
        let axes = match self.b.ty(x.id).shape.len() {
            3 => ("btr", "btd"),
            4 => ("bhtr", "bhtd"),
            _ => ("", ""),
        };
        if self.width(x, place)?.get() != 1 || axes.0.is_empty() {
            let message = format!(
                "`embedding` takes one number for each position, [.., T, 1], but this is {}",
                self.shape(x)
            );
            return Err(misfit(place, message, x.from.iter().cloned()));
        }
        let (from, count, width) = (origin(width), size(rows, 1)?, size(width, 1)?);
        let last = count.get().saturating_sub(1) as f64;
        let number = self.b.op(name, Op::Clamp { min: Some(0.0), max: Some(last) }, &[x.id])?;
        let row = self.b.op("row", Op::Range { len: count }, &[])?;
        let row = self.b.op("row", Op::Scale { by: (-1.0).into() }, &[row])?;
        let apart = self.b.op("apart", Op::Add, &[number, row])?;
        let apart = self.b.op("apart", Op::Elementary(Elementary::Abs), &[apart])?;
        let near = self.b.op("near", Op::Scale { by: (-1.0).into() }, &[apart])?;
        let near = self.b.op("near", Op::Shift { by: 1.0 }, &[near])?;
        let near = self.b.op("near", Op::Activate(Activation::Relu), &[near])?;
        let layer = self.site.init.own_param(&self.path(member), vec![count, width], None);
        let member = self.b.layer(member, layer);
        let table = self.b.op(name, Op::Layer { member }, &[])?;
        let axes = Axes { left: axes.0.into(), right: "rd".into(), result: axes.1.into() };
        let id = self.b.op(name, Op::Einsum(axes), &[near, table])?;
        Ok(Wide::new(id, from.into_iter().collect()))
    }

    /// A parameter of the stack, which all its layers are given. Its name begins with that of the part, so that
    /// other parts do not take it for theirs.
    pub(super) fn shared_param(
        &mut self,
        fields: &Param,
        member: &str,
        sizes: Vec<Extent>,
    ) -> Lowered<ValueId> {
        let stack = self.stack()?;
        let name = format!("{}_{member}", variable(&self.part));
        let layer = stack.scope.init.own_param(
            &format!("{}.{name}", stack.scope.path),
            sizes.clone(),
            fields.init.as_ref(),
        );
        let ty = Type::float(sizes.iter().copied().map(Dim::from));
        let sizes = sizes.into_iter().map(Extent::get).collect();
        let ambient = Ambient::Parameter { name: name.clone(), sizes };
        let id = stack.scope.ambient(ambient, vec![("shared", ty)], move |b, _| {
            let member = b.layer(&name, layer.clone());
            b.ops(&[&name], Op::Layer { member }, &[])
        });
        self.of_stack(stack, id)
            .first()
            .copied()
            .ok_or(Mismatch("a shared parameter is missing".into()).into())
    }
}
