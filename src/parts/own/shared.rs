//! Lowers parameters that all layers of a stack share, and those of positions.

use super::fields::Param;
use super::lower::{Lowered, Lowering, variable};
use crate::ir::infer::Mismatch;
use crate::ir::{Dim, Extent, Op, Rows, Type, ValueId};
use crate::parts::scope::Ambient;

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
