//! The norm of a block and of a whole stack: one of the catalogue, or a part that the spec defines.

use super::norm::{self, Norm};
use super::own::OwnPart;
use super::own::lower::{Site, module_name};
use super::scope::Scope;
use crate::field::mend_part::mended_part;
use crate::field::value::{Shape, SlotDoc, Value};
use crate::field::{Context, Places};
use crate::ir::build::{Builder, Built};
use crate::ir::{Op, Slot, ValueId};
use crate::syntax::tree::Node;

/// What `norm(x)` calls in a block, and what comes after the last block.
#[derive(Clone, Debug, PartialEq)]
pub enum StackNorm {
    /// A norm of the catalogue.
    BuiltIn(Norm),
    /// A part that the spec defines.
    Own(OwnPart),
}

impl StackNorm {
    /// Whether there is no norm.
    pub fn is_none(&self) -> bool {
        matches!(self, StackNorm::BuiltIn(norm) if norm.is_none())
    }

    /// The name of the part.
    pub fn part(&self) -> &str {
        match self {
            StackNorm::BuiltIn(norm) => norm.part(),
            StackNorm::Own(part) => part.name(),
        }
    }

    /// The places of the part and its fields.
    pub fn places(&self) -> &Places {
        match self {
            StackNorm::BuiltIn(norm) => norm.places(),
            StackNorm::Own(part) => &part.places,
        }
    }

    /// The documentation of the slot and its parts.
    pub fn documentation() -> SlotDoc {
        SlotDoc { takes_own: true, ..Norm::documentation() }
    }

    /// Applies it to features as wide as the model, as the member that ends this path below the stack. The result
    /// is called `value`.
    pub fn lower(
        &self,
        b: &mut Builder,
        scope: &Scope,
        below: &str,
        member: &str,
        value: &str,
        x: ValueId,
    ) -> Built {
        let path = format!("{}.{below}", scope.path);
        let part = match self {
            StackNorm::BuiltIn(norm) => {
                let site = norm::Site { init: &scope.init, path, member };
                return norm.lower(b, &site, value, scope.d_model, x);
            }
            StackNorm::Own(part) => part,
        };
        let site = Site {
            arena: &scope.arena,
            init: &scope.init,
            path,
            module: format!("{}{}", scope.prefix, module_name(part.name())),
            prefix: &scope.prefix,
            inputs: vec![b.ty(x).clone()],
            origins: Vec::new(),
            pairs: Vec::new(),
            emptied: Vec::new(),
            stack: None,
            slot: Some(Slot::Norm),
        };
        let module = part.lower(&site)?.module;
        let member = b.child(member, module);
        b.op(value, Op::Call { member }, &[x])
    }
}

impl Value for StackNorm {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let slot = Self::documentation();
        let mended = mended_part(node, &slot, cx);
        match OwnPart::in_slot(&mended, slot.name, cx) {
            Some(part) => part.map(Self::Own),
            None => Norm::decode(&mended, cx).map(Self::BuiltIn),
        }
    }

    fn encode(&self) -> Node {
        match self {
            StackNorm::BuiltIn(norm) => norm.encode(),
            StackNorm::Own(part) => part.encode(),
        }
    }

    fn describe() -> Shape {
        Shape::Slot(Self::documentation)
    }
}
