//! The body of one function: statements of the program in, statements of Python out.
//!
//! A statement that may be folded becomes part of the expression that uses its value, as long as the line
//! stays readable; any other gets a variable.

use std::collections::{BTreeMap, BTreeSet};

use super::body;
use super::file::File;
use super::function::{Function, parameter, reserved};
use super::layer::member;
use super::printer::Printer;
use super::syntax::{Argument, Expr, Sign, Stmt, Target};
use super::{choice, grouped, layer, name, op};
use crate::emit::program::fold::too_long;
use crate::emit::program::function::{self as program, Action, BlockCall, Caches, Call, Lent, Scan};
use crate::emit::program::needs::{Need, Origin};
use crate::emit::program::operands::Operands;
use crate::emit::program::{Body, Stack};
use crate::ir::{ModuleId, ValueId};
use crate::lower::Bug;

/// Writes the body of a function. `finish` makes its last statements from its results.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(
    file: &File<'_>,
    id: ModuleId,
    function: &program::Function,
    finish: &dyn Fn(Vec<Expr>) -> Vec<Stmt>,
) -> Result<Vec<Stmt>, Bug> {
    let module = file.values(id);
    let mut writer = Function {
        file,
        module,
        id,
        function,
        pending: BTreeMap::new(),
        statements: Vec::new(),
        variables: Vec::new(),
        parameters: function.parameters.iter().map(|id| (*id, parameter(file, module, *id))).collect(),
        grouped: grouped::repeated(module),
        result: None,
    };
    for statement in &function.statements {
        writer.statement(statement)?;
    }
    let results: Vec<Expr> = function.results.iter().map(|id| writer.operand(*id)).collect();
    let last = finish(results);
    // After the body, of which it is known now which lengths it uses.
    let mut statements = writer.lengths(&last);
    let mut reserved = reserved(file);
    // These names are in the text already, so values give way to them.
    reserved.extend(writer.variables.iter().flat_map(|(names, _)| names.iter().cloned()));
    statements.append(&mut writer.statements);
    statements.extend(last);
    // A variable hides a function of its name.
    for statement in &statements {
        statement.visit(&mut |expr| {
            if let Expr::Runtime(name) = expr {
                reserved.insert((*name).to_owned());
            }
        });
    }
    body::name(module, writer.parameters, &mut statements, &reserved)?;
    Ok(statements)
}

/// Whether a module that is a function reads numbers of `Config`.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn needs_config(file: &File<'_>, id: ModuleId) -> Result<bool, Bug> {
    let Body::Whole(function) = &file.code(id)?.body else { return Ok(false) };
    // What a function reads is known only when its body is written.
    file.reads_config(id, || Ok(uses_of_config(&write(file, id, function, &returned)?) > 0))
}

/// How often statements read numbers of `Config`.
pub fn uses_of_config(body: &[Stmt]) -> usize {
    let mut uses = 0;
    let mut count = |expr: &Expr| {
        uses += usize::from(matches!(expr, Expr::Constant(_)) || *expr == Expr::from("config"));
    };
    body.iter().for_each(|stmt| stmt.visit(&mut count));
    uses
}

/// `return a, b`, or `return a` for a single result
pub fn returned(results: Vec<Expr>) -> Vec<Stmt> {
    let value = match <[Expr; 1]>::try_from(results) {
        Ok([one]) => one,
        Err(several) => Expr::Tuple(several),
    };
    vec![Stmt::Return(value)]
}

impl Function<'_> {
    /// The statements that set the lengths a body uses, which come before all others.
    fn lengths(&self, last: &[Stmt]) -> Vec<Stmt> {
        let mut used: BTreeSet<String> = BTreeSet::new();
        for statement in self.statements.iter().chain(last) {
            statement.visit(&mut |expr| {
                if let Expr::Name(name) = expr {
                    used.insert(name.clone());
                }
            });
        }
        let local = |(need, origin): &(Need, Origin)| {
            let name = need.variable();
            let value = match origin {
                Origin::Cache => {
                    layer::is_none("cache".into()).choose(Expr::Int(0), Expr::from("cache").attr("past"))
                }
                // The device is written where it is used, as `x.device`.
                Origin::DeviceOf(_) => return None,
                Origin::Axis(id, axis) => Expr::Value(*id).attr("shape").index([Expr::Int(*axis as u64)]),
            };
            used.contains(name).then(|| Stmt::set(name, value))
        };
        self.function.locals.iter().filter_map(local).collect()
    }

    fn statement(&mut self, statement: &program::Statement) -> Result<(), Bug> {
        self.settle_long_operands(&statement.action);
        self.result = if let [Some(one)] = statement.outputs.as_slice() { Some(*one) } else { None };
        let value = match &statement.action {
            Action::Append { cache, inputs } => {
                // Without a cache the values stay as they were before the statement, so they need variables.
                let cache = self.cache(*cache);
                let inputs = inputs.iter().map(|id| self.named(*id)).collect();
                let targets = targets(&statement.outputs);
                self.statements.push(Stmt::Append { targets, caches: "cache".into(), cache, inputs });
                return Ok(());
            }
            Action::Scan(scan) => return self.scan(scan, statement),
            Action::Layer { member, layer, inputs, .. } => {
                // PyTorch's compiler fuses ops by itself, so the graph is not fused here, and `then` is never there.
                let operand = inputs.first().map(|id| self.operand(*id));
                layer::apply(layer, member, operand, self.file)?
            }
            Action::Weight(path) => {
                // Read where it is: a second field would be a second key in files of weights.
                let owner = path.iter().fold(Expr::from("self"), |owner, name| member(owner, name));
                owner.attr("weight")
            }
            Action::Call(call) => self.call(call)?,
            Action::Experts { member: at, inputs, kinds } => {
                let inputs: Vec<Expr> = inputs.iter().map(|id| self.operand(*id)).collect();
                let experts = member(Expr::from("self"), &self.module.member(*at).name);
                // `mix_experts` calls all experts with the same arguments.
                let needs: BTreeSet<&Vec<Need>> = kinds.iter().map(|(_, needs)| needs).collect();
                if needs.len() > 1 {
                    return Err(Bug("experts of one mixture need different lengths".to_owned()));
                }
                let needs = needs.into_iter().flatten().map(|need| self.need(*need)).collect::<Vec<_>>();
                Expr::Runtime("mix_experts").call(inputs.into_iter().chain([experts]).chain(needs))
            }
            Action::Op { op, inputs, dropout, cache } => {
                let wanted = Operands {
                    inputs,
                    dropout: dropout.as_deref(),
                    cache: *cache,
                    results: statement.outputs.len(),
                };
                op::expr(self, op, &wanted)?
            }
        };
        match statement.outputs.as_slice() {
            // Keys and values that PyTorch repeats itself are passed on as they are, so they need no
            // variable.
            [Some(one)] if statement.folds || self.is_grouped(*one) => {
                self.pending.insert(*one, value);
            }
            [Some(one)] => self.set(*one, value),
            outputs => {
                self.statements.push(Stmt::Assign { targets: targets(outputs), value, comment: None });
            }
        }
        Ok(())
    }

    fn need(&self, need: Need) -> Expr {
        if need == Need::Device { self.device() } else { need.variable().into() }
    }

    /// Gives a variable to waiting operands where the expression around them would be too long.
    fn settle_long_operands(&mut self, action: &Action) {
        let inputs = action.inputs();
        let operands = inputs.iter().collect::<BTreeSet<_>>().len();
        let width = |id: &ValueId| self.pending.get(id).map(|value| (*id, self.width(value)));
        let waiting: Vec<(ValueId, usize)> = inputs.iter().filter_map(width).collect();
        let named = too_long(&waiting, operands);
        for (id, _) in waiting.into_iter().filter(|(id, _)| named.contains(id)) {
            self.named(id);
        }
    }

    /// About how many characters an expression takes.
    fn width(&self, value: &Expr) -> usize {
        let name = |expr: &Expr| {
            if let Expr::Value(id) = expr {
                Some(self.module.value(*id).variable.clone())
            } else if let Expr::Constant(id) = expr {
                Some(format!("config.{}", self.file.constant(*id)))
            } else {
                None
            }
        };
        Printer::new(&name).flat(value).chars().count()
    }

    /// One of the caches that the function is given.
    fn cache(&self, at: u64) -> Expr {
        match self.function.caches {
            Caches::None | Caches::One => "cache".into(),
            Caches::List(_) => Expr::from("cache").index([Expr::Int(at)]),
            Caches::Model(_) => Expr::from("cache").attr("layers").index([Expr::Int(at)]),
        }
    }

    /// One of the caches as an operand of a function, whose arguments have types: `None` without a cache.
    pub(super) fn cache_or_none(&self, at: u64) -> Expr {
        match self.function.caches {
            Caches::One => "cache".into(),
            Caches::None => Expr::None,
            // `cache and cache[0]` would be the list itself if that were empty.
            Caches::List(_) | Caches::Model(_) => Expr::from("cache").choose(self.cache(at), Expr::None),
        }
    }

    /// Caches as an operand: one, or a list; `None` where the function has none.
    fn lent(&self, lent: Lent) -> Expr {
        let Lent::Part { first, count, list } = lent else { return Expr::None };
        let all = self.function.caches.count() == count;
        let held = match self.function.caches {
            Caches::None => return Expr::None,
            Caches::One => return "cache".into(),
            Caches::List(_) if all && list => return "cache".into(),
            Caches::List(_) => Expr::from("cache"),
            Caches::Model(_) => Expr::from("cache").attr("layers"),
        };
        let part = match (all, list) {
            (_, false) => held.index([Expr::Int(first)]),
            (true, true) => held,
            (false, true) => {
                let ends = [first, first.saturating_add(count)].map(|end| Some(Box::new(Expr::Int(end))));
                let [from, to] = ends;
                held.index([Expr::Slice(from, to)])
            }
        };
        // This is None without a cache; a list of caches is never empty, so it counts as true.
        Expr::from("cache").binary(Sign::And, part)
    }

    /// A call of a child: of its function if it owns nothing, otherwise of the field.
    fn call(&mut self, call: &Call) -> Result<Expr, Bug> {
        let mut operands: Vec<Expr> = call.arguments.iter().map(|id| self.operand(*id)).collect();
        operands.extend(call.needs.iter().map(|need| self.need(*need)));
        operands.extend(call.caches.map(|lent| self.lent(lent)));
        Ok(match self.file.function_of(call.module) {
            Some(function) => {
                let needs_config = needs_config(self.file, call.module)?;
                let config = needs_config.then(|| Expr::from("config"));
                Expr::from(function).call(config.into_iter().chain(operands))
            }
            None => member(Expr::from("self"), &call.member).call(operands),
        })
    }

    /// A fold through a stack, as a loop.
    fn scan(&mut self, scan: &Scan, statement: &program::Statement) -> Result<(), Bug> {
        let [Some(result)] = statement.outputs.as_slice() else {
            return Err(Bug("a fold through a stack has another number of results than one".to_owned()));
        };
        let start = self.operand(scan.start);
        // The value that is folded has one variable, which is set before the loop and anew in each round.
        self.statements.push(Stmt::Assign {
            targets: vec![Target::Value(*result)],
            value: start,
            comment: None,
        });
        let field = member(Expr::from("self"), &self.module.member(scan.member).name);
        let mut body = Vec::new();
        let mut calls: Vec<(ModuleId, Expr)> = Vec::new();
        for call in &scan.calls {
            calls.push((call.module, self.block_call(scan, call, *result, &mut body)));
        }
        let assign = |value: &Expr| Stmt::Assign {
            targets: vec![Target::Value(*result)],
            value: value.clone(),
            comment: None,
        };
        // Blocks of different classes are often called in the same way; Python does not ask for their class.
        let mut different: Vec<&Expr> = Vec::new();
        for (_, call) in &calls {
            if !different.contains(&call) {
                different.push(call);
            }
        }
        match different.as_slice() {
            [one] => body.push(assign(one)),
            _ => {
                let last = different.len().saturating_sub(1);
                let branches = different.iter().enumerate().map(|(at, call)| {
                    let kinds = calls.iter().filter(|(_, other)| other == *call);
                    let classes = kinds.map(|(kind, _)| self.file.class_of(*kind).map(Expr::from));
                    let classes = classes.collect::<Result<Vec<Expr>, Bug>>()?;
                    let classes = match <[Expr; 1]>::try_from(classes) {
                        Ok([one]) => one,
                        Err(several) => Expr::Tuple(several),
                    };
                    let test = Expr::from("isinstance").call([Expr::from("block"), classes]);
                    Ok(((at < last).then_some(test), vec![assign(call)]))
                });
                body.push(Stmt::If(branches.collect::<Result<_, Bug>>()?));
            }
        }
        // Asked of the finished body, since only caches and choices use the index.
        let mut is_indexed = false;
        for stmt in &body {
            stmt.visit(&mut |expr| is_indexed |= *expr == Expr::from("i"));
        }
        let inner = match scan.each {
            1 => body,
            n => {
                // Only caches tell the repetitions of a block apart.
                let mut repeats_alike = true;
                body.iter()
                    .for_each(|stmt| stmt.visit(&mut |expr| repeats_alike &= *expr != Expr::from("j")));
                let variable = if repeats_alike { "_" } else { "j" };
                let source = Expr::from("range").call([Expr::Int(n)]);
                vec![Stmt::For { targets: vec![variable.to_owned()], source, body }]
            }
        };
        let (targets, source) = if is_indexed {
            (vec!["i".to_owned(), "block".to_owned()], Expr::from("enumerate").call([field]))
        } else {
            (vec!["block".to_owned()], field)
        };
        self.statements.push(Stmt::For { targets, source, body: inner });
        Ok(())
    }

    /// What one application of a block fills: one cache, or a list of them.
    fn caches_of_block(&self, scan: &Scan, call: &BlockCall) -> Option<Expr> {
        let caches = scan.caches.filter(|_| call.caches > 0)?;
        let held = match self.function.caches {
            Caches::Model(_) => Expr::from("cache").attr("layers"),
            Caches::None | Caches::One | Caches::List(_) => Expr::from("cache"),
        };
        // Caches are counted by application: block `i` applied for the `j`-th time has keys of its own.
        let index = match scan.each {
            1 => Expr::from("i"),
            n => Expr::from("i").times(Expr::Int(n)).plus("j".into()),
        };
        let index = if caches.each == 1 { index } else { index.times(Expr::Int(caches.each)) };
        let first = if caches.first == 0 { index } else { index.plus(Expr::Int(caches.first)) };
        let part = if call.list {
            let end = first.clone().plus(Expr::Int(call.caches));
            held.index([Expr::Slice(Some(Box::new(first)), Some(Box::new(end)))])
        } else {
            held.index([first])
        };
        Some(Expr::from("cache").binary(Sign::And, part))
    }

    /// `block(x, ..)` for one kind of block. Arguments that depend on the index become variables before it.
    fn block_call(&mut self, scan: &Scan, call: &BlockCall, carry: ValueId, before: &mut Vec<Stmt>) -> Expr {
        let callee = self.file.values(call.module);
        let mut operands = vec![Expr::Value(carry)];
        for (wanted, values) in &call.arguments {
            let value = choice::written(values, &|id: &ValueId| Expr::Value(*id));
            if !values.is_indexed() {
                operands.push(value);
                continue;
            }
            let local = name::variable(&format!("block_{}", callee.value(*wanted).name));
            let is_known = |stmt: &Stmt| *stmt == Stmt::set(&local, value.clone());
            if before.iter().any(is_known) {
                operands.push(Expr::Name(local));
                continue;
            }
            let is_taken = |(names, _): &(Vec<String>, Expr)| names.contains(&local);
            if self.is_parameter(&local) || self.variables.iter().any(is_taken) {
                // Two kinds of blocks that choose differently under one name: in place.
                operands.push(value);
            } else {
                self.variables.push((vec![local.clone()], value.clone()));
                before.push(Stmt::set(&local, value));
                operands.push(Expr::Name(local));
            }
        }
        operands.extend(call.needs.iter().map(|need| self.need(*need)));
        // A block that could fill caches is given None if its stack has no caches.
        operands.extend(self.caches_of_block(scan, call).or_else(|| (call.caches > 0).then_some(Expr::None)));
        Expr::from("block").call(operands)
    }
}

fn targets(outputs: &[Option<ValueId>]) -> Vec<Target> {
    outputs.iter().map(|output| output.map_or(Target::Nothing, Target::Value)).collect()
}

/// The blocks of a stack: `nn.ModuleList(Block(config) for _ in range(config.layers))`.
///
/// # Errors
/// A fault of trafoc: there is no such module.
pub fn stack(file: &File<'_>, stack: &Stack) -> Result<Expr, Bug> {
    let mut created: Vec<(ModuleId, Expr)> = Vec::new();
    for kind in &stack.kinds {
        created.push((*kind, Expr::from(file.class_of(*kind)?).call([Expr::from("config")])));
    }
    let of = |kind: &ModuleId| {
        let found = created.iter().find(|(id, _)| id == kind);
        // Verification has refused a block of an unknown kind.
        found.map_or(Expr::None, |(_, call)| call.clone())
    };
    let target = if stack.blocks.is_indexed() { "i" } else { "_" };
    let each = Expr::Each {
        element: Box::new(choice::written(&stack.blocks, &of)),
        target: target.to_owned(),
        source: Box::new(Expr::from("range").call([file.size(&stack.count)])),
    };
    Ok(Expr::nn("ModuleList").call([Argument::from(each)]))
}
