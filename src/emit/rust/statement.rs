//! The body of one function: statements of the program in, statements of Rust out.
//!
//! A statement that may be folded becomes part of the expression that uses its value, as long as the line
//! stays readable; any other gets a `let`.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{self, Statement};
use super::choice;
use super::code::{Code, Item, Piece, Strength, code};
use super::file::File;
use super::function::{Function, reserved};
use super::{layer, name, op};
use crate::emit::program::Draft;
use crate::emit::program::fold::{READABLE, too_long};
use crate::emit::program::function::{
    self as program, Action, BlockCaches, BlockCall, Caches, Call, Lent, Scan,
};
use crate::emit::program::needs::{Need, Origin};
use crate::emit::program::operands::Operands;
use crate::ir::{MemberId, ModuleId, ValueId};
use crate::lower::Bug;

/// The body of a function, with what is known only at its end.
pub struct Written {
    /// Its statements, the last of which is the result.
    pub body: Code,
    /// Whether `cache` is lent out more than once and must be `mut`.
    pub lends_cache: bool,
}

/// Writes the body of a function.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(file: &File<'_>, id: ModuleId, function: &program::Function) -> Result<Written, Bug> {
    let uses = |statement: &&program::Statement| statement.action.caches().is_some();
    let cache_users = function.statements.iter().filter(uses).count();
    let scans = function.statements.iter().filter_map(|statement| statement.action.scan());
    // A loop borrows the cache anew in each of its rounds.
    let lends_cache = cache_users > 1 || scans.into_iter().any(|scan| scan.caches.is_some());
    let module = file.values(id);
    let mut writer = Function {
        file,
        module,
        id,
        function,
        pending: BTreeMap::new(),
        statements: Vec::new(),
        cache_users,
    };
    for statement in &function.statements {
        writer.statement(statement)?;
    }
    let statements = writer.finish();
    // A variable hides a function of its name.
    let mut reserved = reserved();
    for item in statements.iter().flat_map(|statement| statement.code().items()) {
        match item {
            Item::Kernel(name) => reserved.insert((*name).to_owned()),
            Item::Function(name) => reserved.insert(name.clone()),
            // What is imported is in scope under the last word of its path.
            Item::Import(path) => reserved.insert(path.rsplit("::").next().unwrap_or(path).to_owned()),
            Item::Constant(_) | Item::Table(_) | Item::Helper(_) => false,
        };
    }
    let body = body::write(module, &function.parameters, statements, &reserved)?;
    Ok(Written { body, lends_cache })
}

impl Function<'_> {
    /// Lengths and the device first, the results last.
    fn finish(mut self) -> Vec<Statement> {
        let results = &self.function.results;
        let values: Vec<Code> = results.iter().map(|id| self.operand(*id)).collect();
        let last = match <[Code; 1]>::try_from(values) {
            Ok([one]) => one,
            Err(several) => Code::list("(", several, ")"),
        };
        // What was taken apart only to be returned is returned whole.
        match self.statements.pop() {
            Some(Statement::Let(values, code))
                if results.len() > 1 && values == results.iter().copied().map(Some).collect::<Vec<_>>() =>
            {
                self.statements.push(Statement::Return(code));
            }
            before => {
                self.statements.extend(before);
                self.statements.push(Statement::Return(last));
            }
        }
        let local = |(need, origin): &(Need, Origin)| {
            let code = match origin {
                Origin::Cache => Code::text("cache.as_ref().map_or(0, |cache| cache.past)"),
                Origin::DeviceOf(id) => code!["&", Code::name(*id).method("device", [])],
                Origin::Axis(id, axis) => Code::name(*id).method("dims", []).then(format!("[{axis}]")),
            };
            Statement::Local(need.variable().to_owned(), code)
        };
        // Before all statements, which may move the values that tell the lengths.
        let locals = self.function.locals.iter().map(local);
        locals.chain(self.statements).collect()
    }

    fn statement(&mut self, statement: &program::Statement) -> Result<(), Bug> {
        self.settle_long_operands(&statement.action);
        let code = match &statement.action {
            Action::Append { cache, inputs } => {
                let code = self.append(*cache, inputs);
                self.statements.push(Statement::Let(statement.outputs.clone(), code));
                return Ok(());
            }
            Action::Scan(scan) => return self.scan(scan, statement),
            Action::Layer { member, layer, inputs, then } => match inputs.as_slice() {
                [x, residual] => {
                    let terms = [self.operand(*x), self.operand(*residual)];
                    let both = layer::add_norm(layer, member, terms, self.file)?;
                    let norm = statement.outputs.first().copied().flatten();
                    if statement.outputs.len() == 1 && !(statement.folds && both.width() < READABLE) {
                        self.statements.push(Statement::Let(vec![norm, None], both));
                        return Ok(());
                    }
                    if statement.folds { both.then(".0") } else { both }
                }
                _ => {
                    let operand = inputs.first().map(|id| self.operand(*id));
                    layer::apply(layer, *then, member, operand, self.file)?
                }
            },
            Action::Weight(path) => {
                // Read where it is: a second field would be a parameter of its own.
                let fields: Vec<String> = path.iter().map(|member| name::field(member)).collect();
                Code::text(format!("self.{}.weight", fields.join("."))).method("val", [])
            }
            Action::Call(call) => self.call(call)?,
            Action::Experts { member, inputs, kinds } => self.experts(*member, inputs, kinds)?,
            Action::Op { op, inputs, dropout, cache } => {
                let wanted = Operands {
                    inputs,
                    dropout: dropout.as_deref(),
                    cache: *cache,
                    results: statement.outputs.len(),
                };
                op::code(self, op, &wanted)?
            }
        };
        match statement.outputs.as_slice() {
            [Some(one)] if statement.folds => {
                self.pending.insert(*one, code);
            }
            outputs => self.statements.push(Statement::Let(outputs.to_vec(), code)),
        }
        Ok(())
    }

    /// Gives a `let` to waiting operands where the expression around them would be too long.
    fn settle_long_operands(&mut self, action: &Action) {
        let inputs = action.inputs();
        let operands = inputs.iter().collect::<BTreeSet<_>>().len();
        let width = |id: &ValueId| self.pending.get(id).map(|code| (*id, code.width()));
        let waiting: Vec<(ValueId, usize)> = inputs.iter().filter_map(width).collect();
        let named = too_long(&waiting, operands);
        for (id, _) in waiting.into_iter().filter(|(id, _)| named.contains(id)) {
            if let Some(code) = self.pending.remove(&id) {
                self.statements.push(Statement::Let(vec![Some(id)], code));
            }
        }
    }

    /// `match cache { .. }`: what is kept, after what was kept before.
    fn append(&mut self, cache: u64, inputs: &[ValueId]) -> Code {
        let operands: Vec<Code> = inputs.iter().map(|id| self.operand(*id)).collect();
        let cache = self.lent(Lent::Part { first: cache, count: 1, list: false });
        let kept = match operands.as_slice() {
            [one] => one.clone(),
            several => Code::list("(", several.to_vec(), ")"),
        };
        // Only one arm runs, so both may move the operands.
        let appended = Code::text("cache").method("append", [kept.clone()]);
        Code {
            pieces: vec![
                Piece::Text("match ".to_owned()),
                Piece::Arms(vec![cache.pieces]),
                Piece::Text(" { ".to_owned()),
                Piece::Arms(vec![
                    code!["Some(cache) => ", appended, ", "].pieces,
                    code!["None => ", kept, " "].pieces,
                ]),
                Piece::Text("}".to_owned()),
            ],
            strength: Strength::Postfix,
        }
    }

    /// Caches as an operand: a reference to one, or to a slice.
    pub(super) fn lent(&self, lent: Lent) -> Code {
        let Lent::Part { first, count, list } = lent else { return Code::text("None") };
        let total = self.function.caches.count();
        let all = total == count;
        let held = match self.function.caches {
            Caches::None => return Code::text("None"),
            Caches::One => return Code::text("cache"),
            Caches::List(_) if all && list && self.cache_users == 1 => return Code::text("cache"),
            Caches::List(_) if all && list => return Code::text("cache.as_deref_mut()"),
            Caches::List(_) => "cache",
            Caches::Model(_) => "cache.layers",
        };
        // The last user may take the reference itself; those before it borrow from it.
        let is_last = first.saturating_add(count) == total;
        let lent = if self.cache_users == 1 || is_last { "cache" } else { "cache.as_deref_mut()" };
        let part = match (all, list) {
            (_, false) => format!("&mut {held}[{first}]"),
            (true, true) => format!("{held}.as_mut_slice()"),
            (false, true) => format!("&mut {held}[{first}..{}]", first.saturating_add(count)),
        };
        Code::text(format!("{lent}.map(|cache| {part})"))
    }

    /// A fold through a stack, as a loop.
    fn scan(&mut self, scan: &Scan, statement: &program::Statement) -> Result<(), Bug> {
        let [Some(result)] = statement.outputs.as_slice() else {
            return Err(Bug("a fold through a stack has another number of results than one".to_owned()));
        };
        let start = self.operand(scan.start);
        self.statements.push(Statement::Var(*result, start));
        let field = format!("self.{}", name::field(&self.module.member(scan.member).name));
        let mut chosen: Vec<(String, Code)> = Vec::new();
        let mut arms = Vec::new();
        for call in &scan.calls {
            arms.push((call.module, self.block_call(scan, call, *result, &mut chosen)?));
        }
        let is_indexed = scan.caches.is_some() || !chosen.is_empty();
        let chosen = chosen.into_iter().map(|(local, value)| code![format!("let {local} = "), value, "; "]);
        let mut before = Code::all(chosen);
        if let Some(caches) = &scan.caches {
            before = before.join(self.caches_of_block(scan.each, caches));
        }
        let assign = before.join(Code::name(*result)).then(" = ");
        let inner = match arms.as_slice() {
            [(_, call)] => assign.join(call.clone()).then(";"),
            several => {
                let stack = self.file.enum_of(self.id, scan.member)?;
                let kinds: Vec<ModuleId> = several.iter().map(|(kind, _)| *kind).collect();
                let mut all = assign.then("match block { ");
                for (kind, call) in several {
                    let variant = self.file.variant(&kinds, *kind)?;
                    all = all.then(format!("{stack}::{variant}(block) => ")).join(call.clone()).then(", ");
                }
                all.then("};")
            }
        };
        let head = if is_indexed {
            format!("for (i, block) in {field}.iter().enumerate() {{ ")
        } else {
            format!("for block in &{field} {{ ")
        };
        let repeated = match (scan.each, scan.caches.is_some()) {
            (1, _) => inner,
            // Only caches depend on the repetition.
            (n, true) => code![format!("for j in 0..{n} {{ "), inner, " }"],
            (n, false) => code![format!("for _ in 0..{n} {{ "), inner, " }"],
        };
        self.statements.push(Statement::Loop(code![head, repeated, " }"]));
        Ok(())
    }

    /// `let cache = ..;`, what one application of a block fills: one cache, or a slice of them.
    fn caches_of_block(&self, each: u64, caches: &BlockCaches) -> Code {
        let held = if matches!(self.function.caches, Caches::Model(_)) { "cache.layers" } else { "cache" };
        let index = if each == 1 { "i".to_owned() } else { format!("i * {each} + j") };
        let part = match (caches.list.then_some(caches.each), caches.first) {
            (None, 0) => format!("[{index}]"),
            (None, first) => format!("[{first} + {index}]"),
            // Two slices, so that where the part begins is written once.
            (Some(n), 0) if each == 1 => format!("[i * {n}..][..{n}]"),
            (Some(n), first) => format!("[{first} + ({index}) * {n}..][..{n}]"),
        };
        Code::text(format!("let cache = cache.as_deref_mut().map(|cache| &mut {held}{part}); "))
    }

    /// `block.forward(x, ..)` for one kind of block. Arguments that depend on the index become
    /// variables before it.
    fn block_call(
        &self,
        scan: &Scan,
        call: &BlockCall,
        carry: ValueId,
        chosen: &mut Vec<(String, Code)>,
    ) -> Result<Code, Bug> {
        let callee = self.file.values(call.module);
        let mut operands = vec![Code::name(carry)];
        for (wanted, values) in &call.arguments {
            let wanted = callee.value(*wanted);
            let wants_option = Draft::may_be_absent(wanted);
            // The loop body runs many times, so it may not move a value that is defined before it.
            let text = |id: &ValueId| {
                let code = Code::copy(*id);
                if wants_option && !self.is_option(*id) { Code::call("Some", [code]) } else { code }
            };
            let code = choice::written(values, &text);
            if !values.is_indexed() {
                operands.push(code);
                continue;
            }
            let local = format!("block_{}", wanted.name);
            match chosen.iter().find(|(name, known)| *name == local && *known != code) {
                // Two kinds of blocks that choose differently under one name: in place.
                Some(_) => operands.push(code),
                None => {
                    operands.push(Code::text(&local));
                    if !chosen.iter().any(|(name, _)| *name == local) {
                        chosen.push((local, code));
                    }
                }
            }
        }
        operands.extend(needed(&call.needs));
        if let Some(caches) = scan.caches.filter(|_| call.caches > 0) {
            operands.push(Code::text(match (caches.list, call.list) {
                (false, _) => "cache".to_owned(),
                // Every block of the stack gets as many caches as the one that fills most.
                (true, false) => "cache.map(|cache| &mut cache[0])".to_owned(),
                (true, true) => format!("cache.map(|cache| &mut cache[..{}])", call.caches),
            }));
        }
        let operands = self.bundled(call.module, operands);
        Ok(Code::text("block").method("forward", operands))
    }

    /// The operands of a call as the callee takes them: those of a bundle as one struct.
    fn bundled(&self, callee: ModuleId, operands: Vec<Code>) -> Vec<Code> {
        let Some(bundle) = self.file.bundle_of(callee) else { return operands };
        let module = self.file.values(callee);
        let reserved = reserved();
        let mut operands = operands.into_iter();
        let mut all: Vec<Code> = operands.by_ref().take(1).collect();
        let taken: Vec<Code> = operands.by_ref().take(module.args.saturating_sub(1)).collect();
        let fields =
            module.arguments().iter().skip(1).zip(taken).map(|(value, operand)| {
                code![format!("{}: ", body::parameter(&value.name, &reserved)), operand]
            });
        all.push(Code::list(&format!("{bundle} {{ "), fields, " }"));
        // Lengths and caches are no part of the bundle.
        all.extend(operands);
        all
    }

    /// A call of a child: of its function if it owns nothing, otherwise of the field's `forward`.
    fn call(&mut self, call: &Call) -> Result<Code, Bug> {
        let mut operands = Vec::new();
        for (id, wanted) in call.arguments.iter().zip(self.file.values(call.module).arguments()) {
            let wants_option = Draft::may_be_absent(wanted);
            // A value that is always there is wrapped for a callee that takes an `Option`.
            operands.push(if wants_option { self.optional(*id) } else { self.operand(*id) });
        }
        operands.extend(needed(&call.needs));
        operands.extend(call.caches.map(|lent| self.lent(lent)));
        let operands = self.bundled(call.module, operands);
        Ok(match self.file.function_of(call.module) {
            Some(function) => Code::call(Code::item(Item::Function(function.to_owned()), function), operands),
            None => Code::text(format!("self.{}", name::field(&call.member))).method("forward", operands),
        })
    }

    /// `mix_experts(x, weights, |expert, rows| self.experts[expert].forward(rows))`
    fn experts(
        &mut self,
        member: MemberId,
        inputs: &[ValueId],
        kinds: &[(ModuleId, Vec<Need>)],
    ) -> Result<Code, Bug> {
        let field = format!("self.{}[expert]", name::field(&self.module.member(member).name));
        let forward = |on: &str, needs: &[Need]| {
            Code::text(on).method("forward", std::iter::once(Code::text("rows")).chain(needed(needs)))
        };
        let apply = match kinds {
            [(_, needs)] => forward(&field, needs),
            several => {
                let stack = self.file.enum_of(self.id, member)?;
                let ids: Vec<ModuleId> = several.iter().map(|(kind, _)| *kind).collect();
                let mut all = Code::text(format!("match &{field} {{ "));
                for (kind, needs) in several {
                    let variant = self.file.variant(&ids, *kind)?;
                    let arm =
                        code![format!("{stack}::{variant}(expert) => "), forward("expert", needs), ", "];
                    all = all.join(arm);
                }
                all.then("}")
            }
        };
        let mut operands: Vec<Code> = inputs.iter().map(|id| self.operand(*id)).collect();
        operands.push(code!["|expert, rows| ", apply]);
        Ok(Code::call(Code::kernel("mix_experts"), operands))
    }
}

/// The needs of a callee, as arguments.
fn needed(needs: &[Need]) -> impl Iterator<Item = Code> {
    needs.iter().map(|need| Code::text(need.variable()))
}
