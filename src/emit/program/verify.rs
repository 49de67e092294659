//! Checks a program; only a program that passes can be written by a target.
//!
//! The graph was verified before its modules were merged. Here the same is checked of what is left, up to the
//! lengths of tensors, and what emission adds: names, numbers, functions and what these hand to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::code::{Body, Draft, FieldKind, Module};
use super::constants::{ConstantId, Constants, Number, Scalar};
use super::function::{Action, BlockCall, Caches, Call, Function, Lent, Scan, Statement};
use super::merge::is_same_type;
use super::name;
use super::needs::{Need, Origin};
use crate::ir::op::{Activation, Op};
use crate::ir::verify::Violation;
use crate::ir::{self, Layer, MemberKind, ModuleId, Sym, Type, ValueId, stack_len};

/// A program that has passed all checks. Only [`verify`] creates it.
#[derive(Clone, Debug)]
pub struct Program(Draft);

impl Deref for Program {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.0
    }
}

/// Checks all rules.
///
/// # Errors
/// Every rule that is broken.
pub fn verify(draft: Draft) -> Result<Program, Vec<Violation>> {
    let mut found = Vec::new();
    let name = draft.graph.name.clone();
    let mut report = |message: String| found.push(Violation { module: name.clone(), message });
    // All other rules look up the code of modules by id, so this one ends the check.
    if draft.modules.len() != draft.graph.modules.len() || draft.model().is_none() {
        report(format!("{} modules have code, of {}", draft.modules.len(), draft.graph.modules.len()));
        return Err(found);
    }
    check_constants(&draft.constants, &mut report);
    let mut names = BTreeSet::new();
    let used: BTreeSet<ModuleId> = draft.modules.iter().flat_map(callees).collect();
    for (index, module) in draft.modules.iter().enumerate() {
        let id = ModuleId(index);
        let mut report = |message: String| found.push(Violation { module: module.name.clone(), message });
        if !name::is_module_name(&module.name) {
            report(format!("`{}` is not a module's name", module.name));
        }
        if !names.insert(module.name.as_str()) {
            report("another module has this name".to_owned());
        }
        // Merging must not leave a module that nothing calls any more.
        if id != draft.graph.root && !used.contains(&id) {
            report("no other module uses it".to_owned());
        }
        let mut check = Check { draft: &draft, id, module, report: &mut report };
        check.fields();
        for function in module.body.functions() {
            check.function(function);
        }
    }
    if found.is_empty() { Ok(Program(draft)) } else { Err(found) }
}

/// The modules that a module's statements run.
fn callees(module: &Module) -> Vec<ModuleId> {
    let statements = module.body.functions().into_iter().flat_map(|function| &function.statements);
    statements
        .flat_map(|statement| match &statement.action {
            Action::Call(call) => vec![call.module],
            Action::Scan(scan) => scan.calls.iter().map(|call| call.module).collect(),
            Action::Experts { kinds, .. } => kinds.iter().map(|(kind, _)| *kind).collect(),
            Action::Layer { .. } | Action::Weight(_) | Action::Append { .. } | Action::Op { .. } => {
                Vec::new()
            }
        })
        .collect()
}

fn check_constants(constants: &Constants, report: &mut dyn FnMut(String)) {
    let mut names = BTreeSet::new();
    let tables = constants.tables.iter().map(|table| &table.name);
    for name in constants.all.iter().map(|constant| &constant.name).chain(tables) {
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_name {
            report(format!("`{name}` is not a constant's name"));
        }
        if !names.insert(name) {
            report(format!("two constants are called {name}"));
        }
    }
    for (at, constant) in constants.all.iter().enumerate() {
        let Some(formula) = &constant.formula else { continue };
        // A target defines constants in this order, and some languages read a definition before its use.
        if formula.constants().iter().any(|ConstantId(used)| *used >= at) {
            report(format!("the formula of {} refers to a later constant", constant.name));
        } else if formula.value(&constants.all).map(Number::Int) != Some(constant.value) {
            report(format!("the formula of {} is not {:?}", constant.name, constant.value));
        }
    }
}

struct Check<'a> {
    draft: &'a Draft,
    id: ModuleId,
    module: &'a Module,
    report: &'a mut dyn FnMut(String),
}

impl<'a> Check<'a> {
    fn report(&mut self, message: impl Into<String>) {
        (self.report)(message.into());
    }

    fn graph(&self) -> &'a ir::Module {
        self.draft.graph.module(self.id)
    }

    fn ty(&self, id: ValueId) -> Option<&'a Type> {
        self.graph().values.get(id.0).map(|value| &value.ty)
    }

    fn called(&self, id: ValueId) -> String {
        self.graph().values.get(id.0).map_or_else(|| format!("value {}", id.0), |value| value.name.clone())
    }

    /// A module that comes before this one, and its only function.
    fn callee(&mut self, id: ModuleId, by: &str) -> Option<(&'a Module, &'a Function)> {
        // Earlier ones only, so that no module contains itself and targets can write them in this order.
        let module = self.draft.code(id).filter(|_| id.0 < self.id.0);
        match module.map(|module| (module, &module.body)) {
            Some((module, Body::Whole(function))) => Some((module, function)),
            Some((_, Body::Translation { .. })) | None => {
                self.report(format!("{by} calls what is not an earlier module"));
                None
            }
        }
    }

    fn fields(&mut self) {
        let mut names = BTreeSet::new();
        // A function has no object in which a field could be.
        if self.module.is_function && !self.module.fields.is_empty() {
            self.report("it is a function and owns something");
        }
        for field in &self.module.fields {
            if !names.insert(field.name.as_str()) {
                self.report(format!("two fields are called {}", field.name));
            }
            match &field.kind {
                FieldKind::Layer(layer) => {
                    if layer.parameters().is_empty() {
                        self.report(format!("{} has no parameters", field.name));
                    }
                }
                FieldKind::Module(child) => self.child(&field.name, *child),
                FieldKind::Stack(stack) => {
                    let length = match self.graph().members.get(stack.member.0).map(|m| &m.kind) {
                        Some(MemberKind::Stack(runs)) => Some(stack_len(runs)),
                        Some(MemberKind::Layer(_) | MemberKind::Module(_)) | None => None,
                    };
                    if length.is_none() || stack.count.value(&self.draft.constants.all) != length {
                        self.report(format!("{} has another number of blocks", field.name));
                    }
                    for kind in &stack.kinds {
                        self.child(&field.name, *kind);
                    }
                    // A target has a class or a variant for each known kind.
                    if stack.blocks.values().iter().any(|kind| !stack.kinds.contains(kind)) {
                        self.report(format!("a block of {} is of no known kind", field.name));
                    }
                }
                FieldKind::Dropout(Scalar::Constant(ConstantId(at))) => {
                    if *at >= self.draft.constants.all.len() {
                        self.report(format!("{} refers to no constant", field.name));
                    }
                }
                FieldKind::Dropout(Scalar::Number(_) | Scalar::Root(_) | Scalar::InverseRoot(_)) => {}
            }
        }
    }

    fn child(&mut self, field: &str, child: ModuleId) {
        match self.draft.code(child).filter(|_| child.0 < self.id.0) {
            None => self.report(format!("{field} is not an earlier module")),
            Some(code) if code.is_function => {
                self.report(format!("{field} is a function, which nothing owns"))
            }
            Some(_) => {}
        }
    }

    fn owns(&self, name: &str, is: impl Fn(&FieldKind) -> bool) -> bool {
        self.module.fields.iter().any(|field| field.name == name && is(&field.kind))
    }

    fn function(&mut self, function: &Function) {
        let mut defined: BTreeSet<ValueId> = BTreeSet::new();
        for id in &function.parameters {
            if self.ty(*id).is_none() || !defined.insert(*id) {
                self.report(format!("{} is no parameter, or two of them", self.called(*id)));
            }
        }
        self.locals(function);
        let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
        let inputs = function.statements.iter().flat_map(|statement| statement.action.inputs());
        for id in inputs.chain(function.results.iter().copied()) {
            *uses.entry(id).or_default() += 1;
        }
        let mut next = 0;
        for statement in &function.statements {
            for id in statement.action.inputs() {
                if !defined.contains(&id) {
                    self.report(format!("{} is used before it is defined", self.called(id)));
                }
            }
            for id in statement.outputs.iter().flatten() {
                if self.ty(*id).is_none() || !defined.insert(*id) {
                    self.report(format!("{} is defined twice", self.called(*id)));
                }
            }
            let once = match statement.outputs.as_slice() {
                [Some(one)] => uses.get(one) == Some(&1),
                _ => false,
            };
            // An expression that is written twice would be computed twice, and a dropout in it drawn twice.
            if statement.folds && !once {
                self.report("a statement folds although its result is not used exactly once");
            }
            for need in statement.action.needs(self.draft.graph.decodes) {
                let is_local = function.locals.iter().any(|(local, _)| *local == need);
                if !is_local && !function.needs.contains(&need) {
                    self.report(format!("a statement needs {need:?}, which the function does not have"));
                }
            }
            if let Some((first, count)) = statement.action.caches() {
                // In order and without gaps: two users of one cache would read each other's keys.
                if first != next {
                    self.report(format!("cache {first} is used where cache {next} is the next"));
                }
                next = first.saturating_add(count);
            }
            self.action(statement);
        }
        if next != function.caches.count() {
            self.report(format!("{next} caches are filled, of {}", function.caches.count()));
        }
        for id in &function.results {
            if !defined.contains(id) {
                self.report(format!("the result {} is not defined", self.called(*id)));
            }
        }
    }

    fn locals(&mut self, function: &Function) {
        for (need, origin) in &function.locals {
            let is_there = |id: &ValueId| {
                function.parameters.contains(id) && self.ty(*id).is_some_and(|ty| !ty.optional)
            };
            let length = |id: &ValueId, axis: usize| {
                self.ty(*id).and_then(|ty| ty.shape.get(axis)).and_then(|dim| dim.symbol())
            };
            let fits = match (need, origin) {
                (Need::Past, Origin::Cache) => matches!(function.caches, Caches::Model(_)),
                (Need::Device, Origin::DeviceOf(id)) => is_there(id),
                (Need::Time, Origin::Axis(id, axis)) => is_there(id) && length(id, *axis) == Some(Sym::Time),
                (Need::Source, Origin::Axis(id, axis)) => {
                    is_there(id) && length(id, *axis) == Some(Sym::Source)
                }
                (Need::Past | Need::Device | Need::Time | Need::Source, _) => false,
            };
            if !fits {
                self.report(format!("{need:?} cannot be found in {origin:?}"));
            }
        }
    }

    fn action(&mut self, statement: &Statement) {
        match &statement.action {
            Action::Layer { member, layer, inputs, then } => {
                self.layer((member, layer, *then), inputs, statement);
            }
            Action::Weight(path) => self.weight(path),
            Action::Call(call) => self.call(call, statement),
            Action::Scan(scan) => self.scan(scan, statement),
            Action::Experts { member, kinds, .. } => {
                let stack = self.graph().members.get(member.0).map(|member| member.name.clone());
                let stack = stack.unwrap_or_default();
                if !self.owns(&stack, |kind| matches!(kind, FieldKind::Stack(own) if own.member == *member)) {
                    self.report(format!("experts of {stack}, which is not a stack"));
                }
                for (kind, needs) in kinds {
                    if let Some((_, callee)) = self.callee(*kind, "a mixture")
                        && callee.needs != *needs
                    {
                        self.report(format!("an expert of {stack} is not given what it needs"));
                    }
                }
            }
            Action::Append { inputs, .. } => {
                let types = |ids: &[ValueId]| ids.iter().map(|id| self.ty(*id).cloned()).collect::<Vec<_>>();
                let outputs: Vec<ValueId> = statement.outputs.iter().flatten().copied().collect();
                let fits = |(a, b): (&Option<Type>, &Option<Type>)| match (a, b) {
                    // What is returned is longer by the cached positions, so sizes differ.
                    (Some(a), Some(b)) => a.dtype == b.dtype && a.shape.len() == b.shape.len(),
                    _ => false,
                };
                let (given, returned) = (types(inputs), types(&outputs));
                if given.len() != returned.len() || !given.iter().zip(&returned).all(fits) {
                    self.report("a cache returns other tensors than are appended");
                }
            }
            Action::Op { op, inputs, dropout, .. } => self.op(op, inputs, dropout.as_deref(), statement),
        }
    }

    fn layer(
        &mut self,
        (member, layer, then): (&str, &Layer, Option<Activation>),
        inputs: &[ValueId],
        statement: &Statement,
    ) {
        let is_owned = self.owns(member, |kind| matches!(kind, FieldKind::Layer(own) if own == layer));
        // A layer without parameters, such as a norm that only normalises, is no field: there is nothing to
        // own.
        if !is_owned && !layer.parameters().is_empty() {
            self.report(format!("{member} is not a layer that it owns"));
        }
        let at = self.graph().members.iter().position(|own| own.name == member);
        match at {
            Some(at) => {
                let member = ir::MemberId(at);
                let op = match then {
                    Some(activation) => Op::ActivatedLayer { member, activation },
                    None => Op::Layer { member },
                };
                self.inferred(&op, inputs, statement);
            }
            None => self.report(format!("{member} is not a member")),
        }
    }

    fn weight(&mut self, path: &[String]) {
        let mut at = Some(self.module);
        for (i, step) in path.iter().enumerate() {
            let fields = at.map_or(&[][..], |module| &module.fields);
            let field = fields.iter().find(|field| field.name == *step).map(|field| &field.kind);
            let is_last = i + 1 == path.len();
            at = match field {
                Some(FieldKind::Module(child)) if !is_last => self.draft.code(*child),
                Some(FieldKind::Layer(Layer::Embedding { .. })) if is_last => return,
                _ => None,
            };
        }
        self.report(format!("{} is not the table of an embedding", path.join(".")));
    }

    fn op(&mut self, op: &Op, inputs: &[ValueId], dropout: Option<&str>, statement: &Statement) {
        let drops = if let Op::Attention(attention) = op {
            attention.dropout > 0.0
        } else {
            matches!(op, Op::Dropout { .. })
        };
        let is_there =
            dropout.is_some_and(|name| self.owns(name, |kind| matches!(kind, FieldKind::Dropout(_))));
        // Both directions: a dropout that is named and not applied would be an option without an effect.
        if drops != is_there {
            self.report("a dropout is applied that it does not own");
        }
        self.inferred(op, inputs, statement);
    }

    /// Checks that the stated types of a statement's outputs are those that follow from its inputs.
    fn inferred(&mut self, op: &Op, inputs: &[ValueId], statement: &Statement) {
        // A value that does not exist is reported where it is used; its type would only add a second message.
        let types: Vec<&Type> = inputs.iter().filter_map(|id| self.ty(*id)).collect();
        if types.len() != inputs.len() {
            return;
        }
        match op.infer(&types, self.graph(), &self.draft.graph.modules) {
            Ok(found) => self.outputs(&found.iter().collect::<Vec<_>>(), statement, "an op"),
            Err(mismatch) => self.report(mismatch.0),
        }
    }

    /// Checks the types of the outputs that are used; attention has a second result that may be left out.
    fn outputs(&mut self, found: &[&Type], statement: &Statement, by: &str) {
        if statement.outputs.len() > found.len() {
            self.report(format!("{by} has {} results, not {}", found.len(), statement.outputs.len()));
        }
        for (id, ty) in statement.outputs.iter().zip(found) {
            let Some(id) = id else { continue };
            if self.ty(*id).is_none_or(|stated| !is_same_type(stated, ty)) {
                self.report(format!("{} is not of the type {ty} that {by} returns", self.called(*id)));
            }
        }
    }

    /// Checks a value that is passed to a function of another module as a parameter.
    fn argument(&mut self, given: ValueId, callee: ModuleId, wanted: ValueId) {
        let module = self.draft.graph.module(callee);
        let Some((ty, value)) = self.ty(given).zip(module.values.get(wanted.0)) else {
            return self.report("an argument is not a value");
        };
        // What is always there may be passed where a value may be absent, but not the other way round.
        let certain = |ty: &Type| Type { optional: false, ..ty.clone() };
        let is_missing = ty.optional && !Draft::may_be_absent(value);
        if is_missing || !is_same_type(&certain(ty), &certain(&value.ty)) {
            let text = format!("{} [{ty}] is passed as {} [{}]", self.called(given), value.name, value.ty);
            self.report(text);
        }
    }

    fn call(&mut self, call: &Call, statement: &Statement) {
        let Some((code, callee)) = self.callee(call.module, &call.member) else { return };
        let is_owned =
            self.owns(&call.member, |kind| matches!(kind, FieldKind::Module(id) if *id == call.module));
        // A function is called by its name and no field; anything else is called through a field.
        if is_owned == code.is_function {
            self.report(format!("{} is called, but it does not own it", call.member));
        }
        if call.arguments.len() != callee.parameters.len() {
            let (given, wanted) = (call.arguments.len(), callee.parameters.len());
            self.report(format!("{} takes {wanted} arguments, not {given}", call.member));
        }
        for (given, wanted) in call.arguments.iter().zip(&callee.parameters) {
            self.argument(*given, call.module, *wanted);
        }
        if call.needs != callee.needs {
            self.report(format!("{} is not given what it needs", call.member));
        }
        let fits = match (callee.caches, call.caches) {
            (Caches::None, caches) => caches.is_none(),
            // A caller without caches computes whole sequences, which every callee can.
            (_, Some(Lent::Nothing)) => true,
            (Caches::One, Some(Lent::Part { count, list, .. })) => count == 1 && !list,
            (Caches::List(n), Some(Lent::Part { count, list, .. })) => count == n && list,
            (Caches::One | Caches::List(_) | Caches::Model(_), _) => false,
        };
        if !fits {
            self.report(format!("{} is given caches that it does not take", call.member));
        }
        let module = self.draft.graph.module(call.module);
        let found: Vec<&Type> =
            callee.results.iter().filter_map(|id| module.values.get(id.0)).map(|v| &v.ty).collect();
        self.outputs(&found, statement, &call.member);
    }

    fn scan(&mut self, scan: &Scan, statement: &Statement) {
        let stack = self.module.fields.iter().find_map(|field| match &field.kind {
            FieldKind::Stack(stack) if stack.member == scan.member => Some(stack),
            FieldKind::Stack(_) | FieldKind::Layer(_) | FieldKind::Module(_) | FieldKind::Dropout(_) => None,
        });
        let Some(stack) = stack else { return self.report("a scan of what is not a stack") };
        if scan.calls.iter().map(|call| call.module).collect::<Vec<_>>() != stack.kinds {
            self.report("a scan calls other modules than its stack has");
        }
        for call in &scan.calls {
            self.block_call(scan, call, statement);
        }
    }

    fn block_call(&mut self, scan: &Scan, call: &BlockCall, statement: &Statement) {
        let Some((code, callee)) = self.callee(call.module, "a scan") else { return };
        let (first, rest) = match callee.parameters.as_slice() {
            [first, rest @ ..] => (*first, rest.to_vec()),
            [] => return self.report(format!("{} takes nothing to fold", code.name)),
        };
        self.argument(scan.start, call.module, first);
        if call.arguments.iter().map(|(wanted, _)| *wanted).collect::<Vec<_>>() != rest {
            self.report(format!("{} is not given all that it takes", code.name));
        }
        for (wanted, choice) in &call.arguments {
            for given in choice.values() {
                self.argument(*given, call.module, *wanted);
            }
        }
        if call.needs != callee.needs || call.caches != callee.caches.count() {
            self.report(format!("{} is not given what it needs", code.name));
        }
        if scan.caches.is_none_or(|caches| caches.each < call.caches) && call.caches > 0 {
            self.report(format!("the blocks of {} have too few caches", code.name));
        }
        let module = self.draft.graph.module(call.module);
        let found: Vec<&Type> =
            callee.results.iter().filter_map(|id| module.values.get(id.0)).map(|v| &v.ty).collect();
        if found.len() != 1 {
            self.report(format!("{} does not return one value to fold", code.name));
        }
        self.outputs(&found, statement, &code.name);
    }
}
