//! A function that is being written: its operands and variables.

use std::collections::{BTreeMap, BTreeSet};

use super::file::File;
use super::layer::member;
use super::name;
use super::syntax::{Expr, Stmt, Target};
use crate::emit::program::function as program;
use crate::emit::program::needs::{Need, Origin, origin};
use crate::emit::program::{Draft, FieldKind};
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
    pub(super) pending: BTreeMap<ValueId, Expr>,
    /// The statements so far, in which values have no names yet.
    pub(super) statements: Vec<Stmt>,
    /// Variables that are not values of the graph, and what they were set to.
    pub(super) variables: Vec<(Vec<String>, Expr)>,
    /// The names of its parameters, which a body keeps.
    pub(super) parameters: BTreeMap<ValueId, String>,
    /// Keys and values with fewer heads than queries, which attention takes as they are.
    pub(super) grouped: BTreeSet<ValueId>,
    /// The value that is being computed, if it is one.
    pub(super) result: Option<ValueId>,
}

/// The name of a parameter, which hides no function of the file.
pub fn parameter(file: &File<'_>, module: &Module, id: ValueId) -> String {
    let reserved = reserved(file);
    let mut chosen = name::variable(&module.value(id).name);
    while reserved.contains(&chosen) || file.runtime.has(&chosen) {
        chosen.push('_');
    }
    chosen
}

/// Names that a body uses in addition to those of its values.
pub fn reserved(file: &File<'_>) -> BTreeSet<String> {
    let needs = [Need::Past, Need::Time, Need::Source, Need::Device].map(Need::variable);
    // The variables of loops through stacks, and the parameter that is a cache.
    let own = ["cache", "block", "i", "j"];
    needs.into_iter().chain(own).chain(file.functions()).map(str::to_owned).collect()
}

impl Function<'_> {
    /// A variable that is not a value of the graph: its name, or another if that has another value already.
    pub fn local(&mut self, name: &str, value: Expr) -> Expr {
        let [one] = self.locals([name], value);
        one
    }

    /// Several variables that are set together.
    pub fn locals<const N: usize>(&mut self, names: [&str; N], value: Expr) -> [Expr; N] {
        let mut n = 1;
        loop {
            let chosen = names.map(|name| if n == 1 { name.to_owned() } else { format!("{name}_{n}") });
            // A parameter keeps its name, by which callers may pass it.
            if chosen.iter().any(|name| self.is_parameter(name)) {
                n += 1;
                continue;
            }
            // Two masks of one body may need the same positions: the variable is then used again.
            let known = self.variables.iter().find(|(known, _)| *known == chosen);
            match known {
                Some((_, before)) if *before == value => return chosen.map(Expr::Name),
                Some(_) => n += 1,
                None => {
                    self.variables.push((chosen.to_vec(), value.clone()));
                    let targets = chosen.iter().map(|name| Target::Expr(name.as_str().into())).collect();
                    self.statements.push(Stmt::Assign { targets, value, comment: None });
                    return chosen.map(Expr::Name);
                }
            }
        }
    }

    pub(super) fn is_parameter(&self, name: &str) -> bool {
        self.parameters.values().any(|parameter| parameter == name)
    }

    /// Whether attention repeats the heads of these keys or values itself.
    pub fn is_grouped(&self, id: ValueId) -> bool {
        self.grouped.contains(&id)
    }

    /// Whether the value that is being computed are such keys or values.
    pub fn repeats_later(&self) -> bool {
        self.result.is_some_and(|id| self.is_grouped(id))
    }

    /// Whether a value is a mask that hides the future too.
    pub fn is_causal(&self, id: ValueId) -> bool {
        self.file.is_causal(self.id, id)
    }

    /// Whether the value that is being computed is such a mask.
    pub fn makes_causal(&self) -> bool {
        self.result.is_some_and(|id| self.is_causal(id))
    }

    /// The number of queries, if the function knows it.
    pub fn queries(&self) -> Option<Expr> {
        if self.function.locals.iter().any(|(need, _)| *need == Need::Time) {
            return Some(Need::Time.variable().into());
        }
        let Some(Origin::Axis(id, axis)) = origin(Need::Time, self.module, &self.function.parameters) else {
            return None;
        };
        Some(Expr::Value(id).attr("shape").index([Expr::Int(axis as u64)]))
    }

    /// The device that new tensors are created on.
    pub fn device(&self) -> Expr {
        let origin = self.function.locals.iter().find(|(need, _)| *need == Need::Device);
        match origin {
            Some((_, Origin::DeviceOf(id))) => Expr::Value(*id).attr("device"),
            // Without a tensor that is always given, the caller passes the device.
            _ => Need::Device.variable().into(),
        }
    }

    /// A weight of the module, or a tensor it is given, whose type of numbers is the model's.
    pub fn weight(&self) -> Option<Expr> {
        let fields = self.file.code(self.id).ok()?.fields.iter();
        let layer = fields.clone().find_map(|field| match &field.kind {
            FieldKind::Layer(layer) if layer.parameters().iter().any(|p| p.name == "weight") => {
                Some(member(Expr::from("self"), &field.name).attr("weight"))
            }
            // A `Param` is a tensor itself.
            FieldKind::Layer(_) => Some(member(Expr::from("self"), &field.name)),
            FieldKind::Module(_) | FieldKind::Stack(_) | FieldKind::Dropout(_) => None,
        });
        let is_float = |id: &&ValueId| {
            let ty = &self.module.value(**id).ty;
            ty.dtype == DType::Float && !ty.optional
        };
        layer.or_else(|| self.function.parameters.iter().find(is_float).map(|id| Expr::Value(*id)))
    }

    /// A value as an operand: its expression if that is still pending, otherwise its variable.
    pub fn operand(&mut self, id: ValueId) -> Expr {
        self.pending.remove(&id).unwrap_or(Expr::Value(id))
    }

    /// A value as a variable, which is set here if its expression is still pending.
    pub fn named(&mut self, id: ValueId) -> Expr {
        if let Some(value) = self.pending.remove(&id) {
            self.set(id, value);
        }
        Expr::Value(id)
    }

    pub(super) fn set(&mut self, id: ValueId, value: Expr) {
        let ty = &self.module.value(id).ty;
        // The shapes of masks and tables would be noise; those of activations are what readers look for.
        let shows = ty.dtype == DType::Float && ty.shape.len() > 2;
        let comment = shows.then(|| self.file.shape(ty));
        self.statements.push(Stmt::Assign { targets: vec![Target::Value(id)], value, comment });
    }

    /// Whether a value may be `None`: what is optional, masks that are parameters, and joined masks.
    pub fn may_be_absent(&self, id: ValueId) -> bool {
        let value = self.module.value(id);
        let is_argument = id.0 < self.module.args;
        let joined = self.module.nodes.iter().any(|n| n.op == Op::EitherMask && n.outputs.contains(&id));
        value.ty.optional || (value.ty.dtype == DType::Bool && (is_argument || joined))
    }
}

/// The type of a value as a parameter or a result.
pub fn tensor_type(module: &Module, id: ValueId) -> Expr {
    let tensor = Expr::Import("Tensor");
    if Draft::may_be_absent(module.value(id)) { tensor.or_none() } else { tensor }
}
