//! A function that is being written: its operands and variables.

use std::collections::{BTreeMap, BTreeSet};

use super::body::Statement;
use super::code::Code;
use super::file::File;
use crate::emit::program::function as program;
use crate::emit::program::needs::Need;
use crate::ir::{DType, Module, ModuleId, Op, ValueId};

/// A function being written.
pub struct Function<'a> {
    /// The file that it becomes part of.
    pub file: &'a File<'a>,
    /// The module whose values these are.
    pub module: &'a Module,
    /// The module whose function it is.
    pub(super) id: ModuleId,
    /// The function of the program that is written.
    pub(super) function: &'a program::Function,
    /// Expressions that become part of another one.
    pub(super) pending: BTreeMap<ValueId, Code>,
    /// The statements so far, in which values are not named and neither moved nor cloned yet.
    pub(super) statements: Vec<Statement>,
    /// How many statements use caches; with one, a cache can be passed on as it is.
    pub(super) cache_users: usize,
}

/// Names that a body uses in addition to those of its values.
pub fn reserved() -> BTreeSet<String> {
    let needs = [Need::Past, Need::Time, Need::Source, Need::Device].map(Need::variable);
    // The variables of loops and of attention, and the parameters for caches and for many arguments at once.
    needs.into_iter().chain(["cache", "block", "options", "inputs", "i", "j"]).map(str::to_owned).collect()
}

impl Function<'_> {
    /// A variable that is not a value of the graph.
    pub fn local(&mut self, name: &str, code: Code) {
        self.statements.push(Statement::Local(name.to_owned(), code));
    }

    /// A value as an operand, to be moved or cloned.
    pub fn operand(&mut self, id: ValueId) -> Code {
        self.pending.remove(&id).unwrap_or_else(|| Code::take(id))
    }

    /// The operand, wrapped if an optional one is expected.
    pub fn optional(&mut self, id: ValueId) -> Code {
        let code = self.operand(id);
        if self.is_option(id) { code } else { Code::call("Some", [code]) }
    }

    /// Whether a value is an `Option` in Rust: what may be absent, masks that are parameters, and joined
    /// masks.
    pub fn is_option(&self, id: ValueId) -> bool {
        let value = self.module.value(id);
        let is_argument = id.0 < self.module.args;
        let joined = self.module.nodes.iter().any(|n| n.op == Op::EitherMask && n.outputs.contains(&id));
        value.ty.optional || (value.ty.dtype == DType::Bool && (is_argument || joined))
    }
}
