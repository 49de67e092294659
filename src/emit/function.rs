//! The body of one function: nodes in, statements out.
//!
//! A value that is used once becomes part of the expression that uses it, as long as the line stays
//! readable; what is used twice, or is long, gets a `let`.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{self, Statement};
use super::choice::{self, Places};
use super::code::{Code, Piece};
use super::file::File;
use super::name;
use super::plan::{self, Facts, Need};
use crate::ir::op::Sequence;
use crate::ir::{DType, MemberId, MemberKind, Module, ModuleId, Node, Op, Run, ValueId};

/// A line that is easily read.
const READABLE: usize = 72;

/// Who holds the caches a function fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody: the function decodes nothing.
    None,
    /// `cache: Option<&mut KvCache>`
    One,
    /// `cache: Option<&mut [KvCache]>`
    Several,
    /// `cache: Option<&mut Cache>` of the whole model.
    Model,
}

/// A function being written.
pub struct Function<'a> {
    /// The file.
    pub file: &'a File<'a>,
    /// The module whose nodes these are.
    pub module: &'a Module,
    /// Facts about it.
    pub facts: Facts,
    id: ModuleId,
    arguments: Vec<ValueId>,
    uses: Vec<usize>,
    pending: BTreeMap<ValueId, Code>,
    statements: Vec<Statement>,
    holder: Holder,
    cache_users: usize,
    next_cache: u64,
    used: BTreeSet<Need>,
}

/// A finished body.
pub struct Written {
    /// Lines of Rust.
    pub lines: Vec<String>,
    /// Whether `cache` is lent out more than once and must be `mut`.
    pub lends_cache: bool,
}

impl<'a> Function<'a> {
    /// A function over some nodes of a module, with these arguments and results.
    pub fn new(
        file: &'a File<'a>,
        id: ModuleId,
        nodes: &[usize],
        arguments: &[ValueId],
        results: &[ValueId],
        holder: Holder,
    ) -> Self {
        let module = file.graph.module(id);
        let facts = file.facts(id);
        let chosen = || nodes.iter().filter_map(|i| module.nodes.get(*i));
        let mut uses = vec![0usize; module.values.len()];
        for used in chosen().flat_map(|node| &node.inputs).chain(results) {
            if let Some(n) = uses.get_mut(used.0) {
                *n += 1;
            }
        }
        let in_order = chosen().filter(|node| calls_cached(&node.op, module, file)).count();
        let cache_users = if holder == Holder::None { 0 } else { in_order + facts.groups.len() };
        Self {
            file,
            module,
            facts,
            id,
            arguments: arguments.to_vec(),
            uses,
            pending: BTreeMap::new(),
            statements: Vec::new(),
            holder,
            cache_users,
            next_cache: 0,
            used: BTreeSet::new(),
        }
    }

    /// Writes the nodes and returns the results.
    pub fn write(mut self, nodes: &[usize], results: &[ValueId]) -> Written {
        for i in nodes {
            if let Some(node) = self.module.nodes.get(*i)
                && node.outputs.iter().any(|out| self.uses_of(*out) > 0)
            {
                self.node(*i, node);
            }
        }
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
        let lends_cache = self.cache_users > 1 || self.scans_caches();
        let mut statements = self.locals();
        statements.append(&mut self.statements);
        // A variable hides a function of its name.
        let mut reserved = reserved();
        reserved.extend(statements.iter().flat_map(called));
        Written { lines: body::print(self.module, &self.arguments, statements, &reserved), lends_cache }
    }

    /// Lengths and the device, from the arguments.
    fn locals(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        for need in self.used.difference(&self.facts.extra) {
            let code = match (need, self.source_of(*need)) {
                (Need::Past, _) => Some(Code::text("cache.as_ref().map_or(0, |cache| cache.past)")),
                (Need::Device, Some((id, _))) => {
                    let tensor = Code::name(id).method("device", []);
                    Some(Code::text("&").join(tensor))
                }
                (_, Some((id, axis))) => Some(Code::name(id).method("dims", []).then(format!("[{axis}]"))),
                (_, None) => None,
            };
            if let Some(code) = code {
                statements.push(Statement::Local(need.name().to_owned(), code));
            }
        }
        statements
    }

    fn source_of(&self, need: Need) -> Option<(ValueId, usize)> {
        plan::source_among(need, self.module, &self.arguments)
    }

    fn scans_caches(&self) -> bool {
        self.holder != Holder::None
            && self.module.nodes.iter().any(|node| {
                plan::scanned(&node.op, self.module).is_some()
                    && calls_cached(&node.op, self.module, self.file)
            })
    }

    fn uses_of(&self, id: ValueId) -> usize {
        self.uses.get(id.0).copied().unwrap_or(0)
    }

    /// A variable that is no value of the graph.
    pub fn local(&mut self, name: &str, code: Code) {
        self.statements.push(Statement::Local(name.to_owned(), code));
    }

    /// Whether anything uses a value.
    pub fn is_used(&self, id: ValueId) -> bool {
        self.uses_of(id) > 0
    }

    /// The enum of a stack of this module.
    pub fn enum_of(&self, member: MemberId) -> &'a str {
        self.file.enum_of(self.id, member)
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

    /// Whether a value is an `Option` in Rust: what may be absent, masks handed in, and joined masks.
    pub fn is_option(&self, id: ValueId) -> bool {
        let value = self.module.value(id);
        let is_argument = id.0 < self.module.args;
        let joined = self.module.nodes.iter().any(|n| n.op == Op::EitherMask && n.outputs.contains(&id));
        value.ty.optional || (value.ty.dtype == DType::Bool && (is_argument || joined))
    }

    /// A need as an operand.
    pub fn need(&mut self, need: Need) -> Code {
        self.used.insert(need);
        Code::text(need.name())
    }

    /// First position and number of positions along a sequence.
    pub fn span(&mut self, along: Sequence) -> (Code, Code) {
        let decodes = self.file.graph.decodes;
        match along {
            Sequence::Whole => (Code::text("0"), self.need(Need::Time)),
            Sequence::Cached if decodes => (self.need(Need::Past), self.need(Need::Time)),
            Sequence::Cached => (Code::text("0"), self.need(Need::Time)),
            Sequence::Source => (Code::text("0"), self.need(Need::Source)),
            Sequence::Fixed(n) => (Code::text("0"), Code::text(n.to_string())),
        }
    }

    /// Number of keys of a sequence.
    pub fn keys(&mut self, along: Sequence) -> Code {
        let (start, length) = self.span(along);
        if start == Code::text("0") { length } else { start.plus(length) }
    }

    /// Writes one node: a `let`, or an expression that waits for its only use.
    fn node(&mut self, index: usize, node: &Node) {
        self.settle_long_operands(node);
        if node.op == Op::Cache && !self.facts.groups.is_empty() {
            self.append(index);
        } else if let Op::Scan { member, each, args } = &node.op {
            self.scan(node, *member, *each, args);
        } else {
            let code = super::op::code(self, node);
            self.define(node, code);
        }
    }

    fn define(&mut self, node: &Node, code: Code) {
        let used: Vec<Option<ValueId>> =
            node.outputs.iter().map(|id| (self.uses_of(*id) > 0).then_some(*id)).collect();
        if let (Some(first), true) = (node.outputs.first(), used.iter().flatten().count() == 1)
            && (node.outputs.len() == 1
                || matches!(node.op, Op::Attention(_)) && used.first() == Some(&Some(*first)))
        {
            if self.uses_of(*first) == 1 && !self.is_named(*first) {
                self.pending.insert(*first, code);
            } else {
                self.statements.push(Statement::Let(vec![Some(*first)], code));
            }
            return;
        }
        self.statements.push(Statement::Let(used, code));
    }

    /// Whether the only user of a value wants a variable: attention reads best over `q`, `k` and `v`.
    fn is_named(&self, id: ValueId) -> bool {
        let user = self.module.nodes.iter().find(|node| node.inputs.contains(&id));
        user.is_some_and(|node| {
            node.op == Op::Cache && !self.facts.groups.is_empty()
                || matches!(node.op, Op::Attention(_)) && self.module.value(id).ty.dtype == DType::Float
                || matches!(node.op, Op::Scan { .. }) && self.is_pool(node, id)
        })
    }

    /// Gives a `let` to waiting operands where the expression around them would be too long.
    fn settle_long_operands(&mut self, node: &Node) {
        let waiting: Vec<ValueId> =
            node.inputs.iter().copied().filter(|id| self.pending.contains_key(id)).collect();
        let width = |id: &ValueId| self.pending.get(id).map_or(0, Code::width);
        let total: usize = waiting.iter().map(width).sum();
        let own = 12 + 6 * node.inputs.len();
        // The longest go first, until the rest fits.
        let mut by_width = waiting.clone();
        by_width.sort_by_key(|id| std::cmp::Reverse(width(id)));
        let mut left = total;
        let mut settled = Vec::new();
        for id in by_width {
            if left + own > READABLE {
                left -= width(&id);
                settled.push(id);
            }
        }
        for id in waiting {
            if settled.contains(&id)
                && let Some(code) = self.pending.remove(&id)
            {
                self.statements.push(Statement::Let(vec![Some(id)], code));
            }
        }
    }

    /// Arguments of a loop's body are cloned in it, so they are variables.
    fn is_pool(&self, node: &Node, id: ValueId) -> bool {
        matches!(node.op, Op::Scan { .. }) && node.inputs.first() != Some(&id)
    }

    /// `let (k, v) = match cache { .. }` for a whole group, at its last node.
    fn append(&mut self, index: usize) {
        let groups = self.facts.groups.clone();
        let Some(group) = groups.iter().find(|group| group.contains(&index)) else { return };
        if group.last() != Some(&index) {
            return;
        }
        let module = self.module;
        let nodes: Vec<&Node> = group.iter().filter_map(|i| module.nodes.get(*i)).collect();
        for node in &nodes {
            self.settle_long_operands(node);
        }
        let inputs: Vec<ValueId> = nodes.iter().flat_map(|node| node.inputs.iter().copied()).collect();
        let outputs: Vec<Option<ValueId>> =
            nodes.iter().flat_map(|node| node.outputs.iter().copied().map(Some)).collect();
        let operands: Vec<Code> = inputs.iter().map(|id| self.operand(*id)).collect();
        let cache = self.lend_caches(1, false);
        let kept = match operands.as_slice() {
            [one] => one.clone(),
            several => Code::list("(", several.to_vec(), ")"),
        };
        let code = Code {
            pieces: vec![
                Piece::Text("match ".to_owned()),
                Piece::Arms(vec![cache.pieces]),
                Piece::Text(" { ".to_owned()),
                Piece::Arms(vec![
                    Code::text("Some(cache) => ")
                        .join(Code::text("cache").method("append", [kept.clone()]))
                        .then(", ")
                        .pieces,
                    Code::text("None => ").join(kept).then(" ").pieces,
                ]),
                Piece::Text("}".to_owned()),
            ],
            strength: super::code::Strength::Postfix,
        };
        self.statements.push(Statement::Let(outputs, code));
    }

    /// The next `n` caches as an operand: a reference to one, or to a slice.
    pub fn lend_caches(&mut self, n: u64, list: bool) -> Code {
        let start = self.next_cache;
        self.next_cache += n;
        let all = self.facts.caches == n;
        let held = match self.holder {
            Holder::None => return Code::text("None"),
            Holder::One => return Code::text("cache"),
            Holder::Several if all && list && self.cache_users == 1 => return Code::text("cache"),
            Holder::Several if all && list => return Code::text("cache.as_deref_mut()"),
            Holder::Several => "cache",
            Holder::Model => "cache.layers",
        };
        // The last user may have it.
        let is_last = self.next_cache == self.facts.caches;
        let lent = if self.cache_users == 1 || is_last { "cache" } else { "cache.as_deref_mut()" };
        let part = match (all, list) {
            (_, false) => format!("&mut {held}[{start}]"),
            (true, true) => format!("{held}.as_mut_slice()"),
            (false, true) => format!("&mut {held}[{start}..{}]", start + n),
        };
        Code::text(format!("{lent}.map(|cache| {part})"))
    }

    /// The arguments of a call after the graph's own: needs the callee cannot meet, and its caches.
    pub fn extra_arguments(&mut self, callee: ModuleId) -> Vec<Code> {
        let facts = self.file.facts(callee);
        facts.extra.iter().map(|need| self.need(*need)).collect()
    }

    /// A fold through a stack, as a loop.
    fn scan(&mut self, node: &Node, member: MemberId, each: u64, args: &[Vec<Vec<usize>>]) {
        let (Some(carry), Some(result)) = (node.inputs.first(), node.outputs.first()) else { return };
        let module = self.module;
        let MemberKind::Stack(runs) = &module.member(member).kind else { return };
        let start = self.operand(*carry);
        self.statements.push(Statement::Var(*result, start));
        let kinds = plan::kinds(runs);
        let most = kinds.iter().map(|id| self.file.facts(*id).caches).max().unwrap_or(0);
        let list = kinds.iter().any(|id| self.file.facts(*id).list);
        let has_cache = self.holder != Holder::None && most > 0;
        let field = format!("self.{}", name::field(&module.member(member).name));
        let mut indexed = has_cache;
        let mut arms = Vec::new();
        let mut chosen: Vec<(String, Code)> = Vec::new();
        for kind in &kinds {
            arms.push((*kind, self.block_call(node, runs, args, *kind, *result, &mut chosen)));
        }
        indexed |= !chosen.is_empty();
        let mut before = Code::text("");
        for (local, code) in chosen {
            before = before.then(format!("let {local} = ")).join(code).then("; ");
        }
        if has_cache {
            before = before.join(self.caches_of_block(each, list.then_some(most)));
        }
        let assign = before.join(Code::name(*result)).then(" = ");
        let inner = match arms.as_slice() {
            [(_, call)] => assign.join(call.clone()).then(";"),
            several => {
                let stack = self.file.enum_of(self.id, member);
                let mut code = assign.then("match block { ");
                for (kind, call) in several {
                    let variant = variant(self.file, &kinds, *kind);
                    code = code.then(format!("{stack}::{variant}(block) => ")).join(call.clone()).then(", ");
                }
                code.then("};")
            }
        };
        let head = if indexed {
            format!("for (i, block) in {field}.iter().enumerate() {{ ")
        } else {
            format!("for block in &{field} {{ ")
        };
        let repeated = match (each, has_cache) {
            (1, _) => inner,
            (n, true) => Code::text(format!("for j in 0..{n} {{ ")).join(inner).then(" }"),
            (n, false) => Code::text(format!("for _ in 0..{n} {{ ")).join(inner).then(" }"),
        };
        self.next_cache +=
            if has_cache { plan::node_caches(&node.op, module, &self.file.plan.modules) } else { 0 };
        self.statements.push(Statement::Loop(Code::text(head).join(repeated).then(" }")));
    }

    /// `let cache = ..;`, what one block of a stack fills: one, or a slice of so many.
    fn caches_of_block(&self, each: u64, most: Option<u64>) -> Code {
        let held = if self.holder == Holder::Model { "cache.layers" } else { "cache" };
        let index = if each == 1 { "i".to_owned() } else { format!("i * {each} + j") };
        let part = match (most, self.next_cache) {
            (None, 0) => format!("[{index}]"),
            (None, start) => format!("[{start} + {index}]"),
            (Some(n), 0) if each == 1 => format!("[i * {n}..][..{n}]"),
            (Some(n), start) => format!("[{start} + ({index}) * {n}..][..{n}]"),
        };
        Code::text(format!("let cache = cache.as_deref_mut().map(|cache| &mut {held}{part}); "))
    }

    /// `block.forward(x, ..)` for one kind of block. Arguments that depend on the index become
    /// variables before it.
    fn block_call(
        &mut self,
        node: &Node,
        runs: &[Run],
        args: &[Vec<Vec<usize>>],
        kind: ModuleId,
        carry: ValueId,
        chosen: &mut Vec<(String, Code)>,
    ) -> Code {
        let file = self.file;
        let callee = file.graph.module(kind);
        let mut operands = vec![Code::name(carry)];
        for (position, wanted) in callee.arguments().iter().enumerate().skip(1) {
            let places: Places<Option<ValueId>> = runs
                .iter()
                .zip(args)
                .map(|(run, cycle)| {
                    let of = |(id, extra): (&ModuleId, &Vec<usize>)| {
                        let input = (*id == kind).then(|| extra.get(position - 1)).flatten();
                        input.and_then(|at| node.inputs.get(*at)).copied()
                    };
                    run.cycle.iter().zip(cycle).map(of).collect()
                })
                .collect();
            let wants_option = wanted.ty.optional || wanted.ty.dtype == DType::Bool;
            let text = |id: &ValueId| {
                let code = Code::copy(*id);
                if wants_option && !self.is_option(*id) { Code::call("Some", [code]) } else { code }
            };
            let Some(code) = choice::by_index(runs, &places, &text) else { continue };
            if !choice::is_indexed(&places) {
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
        operands.extend(self.extra_arguments(kind));
        let facts = self.file.facts(kind);
        if facts.caches > 0 && self.holder != Holder::None {
            let in_list = plan::kinds(runs).iter().any(|id| self.file.facts(*id).list);
            operands.push(Code::text(match (in_list, facts.list) {
                (false, _) => "cache".to_owned(),
                (true, false) => "cache.map(|cache| &mut cache[0])".to_owned(),
                (true, true) => format!("cache.map(|cache| &mut cache[..{}])", facts.caches),
            }));
        }
        let operands = self.bundled(kind, operands);
        Code::text("block").method("forward", operands)
    }

    /// The operands of a call as the callee takes them: those of a bundle as one struct.
    fn bundled(&self, callee: ModuleId, operands: Vec<Code>) -> Vec<Code> {
        let Some(bundle) = self.file.bundle_of(callee) else { return operands };
        let module = self.file.graph.module(callee);
        let reserved = reserved();
        let mut operands = operands.into_iter();
        let mut all: Vec<Code> = operands.by_ref().take(1).collect();
        let taken: Vec<Code> = operands.by_ref().take(module.args.saturating_sub(1)).collect();
        let fields = module.arguments().iter().skip(1).zip(taken).map(|(value, operand)| {
            Code::text(format!("{}: ", body::argument(&value.name, &reserved))).join(operand)
        });
        all.push(Code::list(&format!("{bundle} {{ "), fields, " }"));
        all.extend(operands);
        all
    }

    /// A call of a child with these operands.
    pub fn call(&mut self, member: MemberId, inputs: &[ValueId]) -> Code {
        let member = self.module.member(member);
        let MemberKind::Module(callee) = member.kind else { return Code::text("()") };
        let mut operands = Vec::new();
        for (id, wanted) in inputs.iter().zip(self.file.graph.module(callee).arguments()) {
            let wants_option = wanted.ty.optional || wanted.ty.dtype == DType::Bool;
            operands.push(if wants_option { self.optional(*id) } else { self.operand(*id) });
        }
        operands.extend(self.extra_arguments(callee));
        let facts = self.file.facts(callee);
        if facts.caches > 0 {
            operands.push(self.lend_caches(facts.caches, facts.list));
        }
        let operands = self.bundled(callee, operands);
        match self.file.free_function(callee) {
            Some(function) => Code::call(&function, operands),
            None => Code::text(format!("self.{}", name::field(&member.name))).method("forward", operands),
        }
    }
}

/// Whether an op calls something that fills caches.
fn calls_cached(op: &Op, module: &Module, file: &File) -> bool {
    plan::callees(op, module).iter().any(|id| file.facts(*id).caches > 0)
}

/// Names a body uses beside those of its values.
pub fn reserved() -> BTreeSet<String> {
    let needs = [Need::Past, Need::Time, Need::Source, Need::Device].map(Need::name);
    needs.into_iter().chain(["cache", "block", "options", "inputs", "i", "j"]).map(str::to_owned).collect()
}

/// The name of one kind of block in the enum of its stack: what tells it from the others.
pub fn variant(file: &File, kinds: &[ModuleId], kind: ModuleId) -> String {
    let names: Vec<Vec<String>> = kinds.iter().map(|id| name::words(file.type_of(*id))).collect();
    let shared = |pick: &dyn Fn(&[String], usize) -> Option<String>| {
        let mut n = 0;
        while names.iter().all(|w| w.len() > n + 1)
            && names.iter().all(|w| pick(w, n) == names.first().and_then(|first| pick(first, n)))
        {
            n += 1;
        }
        n
    };
    let behind = shared(&|words, n| words.iter().rev().nth(n).cloned());
    let own = name::words(file.type_of(kind));
    let kept: Vec<String> = own.iter().take(own.len().saturating_sub(behind)).cloned().collect();
    name::variant(&kept.concat(), file.type_of(kind))
}

/// The functions a statement calls.
fn called(statement: &Statement) -> BTreeSet<String> {
    fn gather(pieces: &[Piece], names: &mut BTreeSet<String>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => names.extend(super::code::calls(text)),
                Piece::Arms(arms) => arms.iter().for_each(|arm| gather(arm, names)),
                Piece::Take(_) | Piece::Move(_) | Piece::Copy(_) | Piece::Name(_) => {}
            }
        }
    }
    let mut names = BTreeSet::new();
    gather(&statement.code().pieces, &mut names);
    names
}
