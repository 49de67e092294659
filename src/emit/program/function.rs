//! The functions of a module: their parameters, and their statements in order.

use std::collections::{BTreeMap, BTreeSet};

use super::choice::{Choice, PerBlock};
use super::needs::{self, Need, Needs, Origin};
use crate::ir::op::Activation;
use crate::ir::{
    DType, Graph, Layer, MemberId, MemberKind, Module, ModuleId, Node, Op, Run, ValueId, stack_len,
};

/// A function over the values of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The values that it takes.
    pub parameters: Vec<ValueId>,
    /// What it takes after the values: lengths and the device, where its values do not tell them.
    pub needs: Vec<Need>,
    /// What it finds out from its parameters before the first statement.
    pub locals: Vec<(Need, Origin)>,
    /// The caches that it takes last.
    pub caches: Caches,
    /// What it computes, in order.
    pub statements: Vec<Statement>,
    /// The values that it returns.
    pub results: Vec<ValueId>,
}

/// The key/value caches that a function may be given. Without them it computes the whole sequence at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caches {
    /// It fills no cache.
    None,
    /// One cache, which is passed by itself.
    One,
    /// A list of this many caches, parts of which it passes on.
    List(u64),
    /// All caches of the model, this many, with the number of tokens in them.
    Model(u64),
}

impl Caches {
    /// The number of caches.
    pub fn count(self) -> u64 {
        match self {
            Caches::None => 0,
            Caches::One => 1,
            Caches::List(n) | Caches::Model(n) => n,
        }
    }
}

/// One step of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The values it defines; `None` for a result that nothing uses.
    pub outputs: Vec<Option<ValueId>>,
    /// The computation and the values that it uses.
    pub action: Action,
    /// Whether its only output is used once, by a statement that reads well with the expression in its place.
    pub folds: bool,
}

/// What a statement computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Applies a layer of the module.
    Layer {
        /// The name of the member that is the layer.
        member: String,
        /// Its kind, its sizes and its initial values.
        layer: Layer,
        /// Its input; a parameter that is used as it is has none, and a norm of a residual sum has two.
        inputs: Vec<ValueId>,
        /// What is applied to its result.
        then: Option<Activation>,
    },
    /// The weight of an embedding: the members' names from the module down to it.
    Weight(Vec<String>),
    /// Calls a module that is a member.
    Call(Call),
    /// Folds a value through the blocks of a stack.
    Scan(Scan),
    /// The sum over the experts that a token is sent to.
    Experts {
        /// The member that contains the experts.
        member: MemberId,
        /// The tokens and the weights of the experts.
        inputs: Vec<ValueId>,
        /// The modules of the experts, and what a call of each needs.
        kinds: Vec<(ModuleId, Vec<Need>)>,
    },
    /// Appends these to one cache and returns its whole content. Without a cache it returns them.
    Append {
        /// The index of the cache among the function's own.
        cache: u64,
        /// What is appended, usually keys and values.
        inputs: Vec<ValueId>,
    },
    /// Any other op, which a target writes as an expression.
    Op {
        /// The op with its attributes.
        op: Op,
        /// The values that it takes, in the op's order.
        inputs: Vec<ValueId>,
        /// The name of the module's dropout that it applies.
        dropout: Option<String>,
        /// The index of the cache with its state among the function's own; `None` if it keeps none.
        cache: Option<u64>,
    },
}

/// A call of a module that is a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name of the member that is called.
    pub member: String,
    /// The module that this member is.
    pub module: ModuleId,
    /// The arguments, in the order of the module's parameters.
    pub arguments: Vec<ValueId>,
    /// The lengths and the device that it takes after the values.
    pub needs: Vec<Need>,
    /// The caches that it is given; `None` if it fills none.
    pub caches: Option<Lent>,
}

/// Caches that a function gives to one that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// The function has none to give: it encodes, for example.
    Nothing,
    /// Some of the function's own.
    Part {
        /// The index of the first one among the function's own.
        first: u64,
        /// The number of caches.
        count: u64,
        /// Whether they are taken as a list.
        list: bool,
    },
}

/// A fold of a value through the blocks of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// The member that contains the blocks.
    pub member: MemberId,
    /// The value before the first block.
    pub start: ValueId,
    /// How many times in a row each block is applied.
    pub each: u64,
    /// The calls of the blocks, one for each module that is a block.
    pub calls: Vec<BlockCall>,
    /// The caches of the blocks; `None` if the blocks fill none or the function has none.
    pub caches: Option<BlockCaches>,
}

/// The call of one kind of block. The value that is folded is its first argument.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCall {
    /// The module that these blocks are.
    pub module: ModuleId,
    /// The other arguments: which parameter of the module, and which value by the block's index.
    pub arguments: Vec<(ValueId, Choice<ValueId>)>,
    /// The lengths and the device that it takes after the values.
    pub needs: Vec<Need>,
    /// How many caches one application of it fills.
    pub caches: u64,
    /// Whether it takes them as a list.
    pub list: bool,
}

/// The caches of a stack: as many for each application of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCaches {
    /// The first cache of the first block.
    pub first: u64,
    /// How many belong to one application of a block.
    pub each: u64,
    /// How many there are in all: for every application of every block.
    pub count: u64,
    /// Whether a block takes its caches as a list.
    pub list: bool,
}

impl Action {
    /// The values it uses, each as often as it does.
    pub fn inputs(&self) -> Vec<ValueId> {
        match self {
            Action::Weight(_) => Vec::new(),
            Action::Call(call) => call.arguments.clone(),
            Action::Scan(scan) => {
                let arguments = scan.calls.iter().flat_map(|call| &call.arguments);
                let chosen = arguments.flat_map(|(_, choice)| choice.values()).copied();
                std::iter::once(scan.start).chain(chosen).collect()
            }
            Action::Layer { inputs, .. }
            | Action::Experts { inputs, .. }
            | Action::Append { inputs, .. }
            | Action::Op { inputs, .. } => inputs.clone(),
        }
    }

    /// The fold through a stack, if it is one.
    pub fn scan(&self) -> Option<&Scan> {
        if let Action::Scan(scan) = self { Some(scan) } else { None }
    }

    /// What it needs that is not a value, if the model decodes or not.
    pub fn needs(&self, decodes: bool) -> BTreeSet<Need> {
        match self {
            Action::Layer { .. } | Action::Weight(_) | Action::Append { .. } => BTreeSet::new(),
            Action::Call(call) => call.needs.iter().copied().collect(),
            Action::Scan(scan) => scan.calls.iter().flat_map(|call| call.needs.iter().copied()).collect(),
            Action::Experts { kinds, .. } => {
                kinds.iter().flat_map(|(_, needs)| needs.iter().copied()).collect()
            }
            Action::Op { op, .. } => needs::of_op(op, decodes),
        }
    }

    /// The caches it uses: the first and how many.
    pub fn caches(&self) -> Option<(u64, u64)> {
        match self {
            Action::Append { cache, .. } => Some((*cache, 1)),
            Action::Call(Call { caches: Some(Lent::Part { first, count, .. }), .. }) => {
                Some((*first, *count))
            }
            Action::Scan(Scan { caches: Some(caches), .. }) => Some((caches.first, caches.count)),
            Action::Op { cache: Some(cache), .. } => Some((*cache, 1)),
            Action::Layer { .. }
            | Action::Weight(_)
            | Action::Call(_)
            | Action::Scan(_)
            | Action::Experts { .. }
            | Action::Op { .. } => None,
        }
    }
}

/// Which of a module's nodes a function computes, from which values.
pub struct Extract<'a> {
    /// The nodes by index, in the order in which they run.
    pub nodes: &'a [usize],
    /// The values that the function takes.
    pub parameters: &'a [ValueId],
    /// The values that it returns.
    pub results: &'a [ValueId],
    /// The caches it is given.
    pub caches: Caches,
}

/// Writes a function over some nodes of a module. What the graph does not say clearly is left out here, and
/// the program's verification reports it.
pub fn function(graph: &Graph, all: &[Needs], id: ModuleId, extract: &Extract<'_>) -> Function {
    let module = graph.module(id);
    let own = all.get(id.0).cloned().unwrap_or_default();
    let chosen = || extract.nodes.iter().filter_map(|i| module.nodes.get(*i));
    let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
    // A result counts as a use, so that a value that is returned and read elsewhere keeps a variable.
    for used in chosen().flat_map(|node| &node.inputs).chain(extract.results) {
        *uses.entry(*used).or_default() += 1;
    }
    let mut writer = Writer { graph, all, module, own: &own, caches: extract.caches, uses, next: 0 };
    let mut statements = Vec::new();
    for index in extract.nodes {
        if let Some(node) = module.nodes.get(*index)
            // A node of which nothing is used is left out: the target would warn of its variable, and every
            // call would pay for it.
            && node.outputs.iter().any(|out| writer.uses_of(*out) > 0)
        {
            statements.extend(writer.statement(*index, node));
        }
    }
    let used: BTreeSet<Need> =
        statements.iter().flat_map(|statement| statement.action.needs(graph.decodes)).collect();
    // What is in `extra` comes from the caller; everything else is read off the parameters once.
    let locals = used.difference(&own.extra).filter_map(|need| {
        let origin = match need {
            // Only the model's own caches count their tokens; a module is given the number by its caller.
            Need::Past => Some(Origin::Cache),
            Need::Time | Need::Source | Need::Device => needs::origin(*need, module, extract.parameters),
        };
        Some((*need, origin?))
    });
    Function {
        parameters: extract.parameters.to_vec(),
        needs: own.extra.iter().copied().collect(),
        locals: locals.collect(),
        caches: extract.caches,
        statements,
        results: extract.results.to_vec(),
    }
}

struct Writer<'a> {
    graph: &'a Graph,
    all: &'a [Needs],
    module: &'a Module,
    own: &'a Needs,
    caches: Caches,
    uses: BTreeMap<ValueId, usize>,
    /// The next cache that is not used yet.
    next: u64,
}

impl Writer<'_> {
    fn uses_of(&self, id: ValueId) -> usize {
        self.uses.get(&id).copied().unwrap_or(0)
    }

    fn needs_of(&self, id: ModuleId) -> Needs {
        self.all.get(id.0).cloned().unwrap_or_default()
    }

    fn extra(&self, id: ModuleId) -> Vec<Need> {
        self.needs_of(id).extra.into_iter().collect()
    }

    fn has_caches(&self) -> bool {
        self.caches != Caches::None
    }

    fn statement(&mut self, index: usize, node: &Node) -> Option<Statement> {
        // A model that does not decode has no groups; there the op returns its inputs.
        if node.op == Op::Cache && !self.own.groups.is_empty() {
            return self.append(index);
        }
        let action = self.action(node)?;
        let used: Vec<Option<ValueId>> =
            node.outputs.iter().map(|id| (self.uses_of(*id) > 0).then_some(*id)).collect();
        let is_one = used.iter().flatten().count() == 1;
        // The weights of attention are computed apart only where something uses them, and of the norm of a sum the sum
        // is left out.
        let outputs = match (&node.op, used.as_slice()) {
            (Op::Attention(_) | Op::Layer { .. }, [Some(first), ..]) if is_one => vec![Some(*first)],
            _ => used,
        };
        // A fold through a stack is a loop, and a loop is no expression.
        let folds = match outputs.as_slice() {
            [Some(one)] => {
                // Caches are lent in the order of the statements.
                let is_apart = matches!(action, Action::Scan(_) | Action::Op { cache: Some(_), .. });
                self.uses_of(*one) == 1 && !self.is_named(*one) && !is_apart
            }
            _ => false,
        };
        Some(Statement { outputs, action, folds })
    }

    /// Whether the user of a value reads better with a variable: attention over `q`, `k` and `v`, what a
    /// cache keeps, and what the body of a loop uses again.
    fn is_named(&self, id: ValueId) -> bool {
        let user = self.module.nodes.iter().find(|node| node.inputs.contains(&id));
        user.is_some_and(|node| {
            node.op == Op::Cache && !self.own.groups.is_empty()
                || matches!(node.op, Op::Attention(_)) && self.module.value(id).ty.dtype == DType::Float
                || matches!(node.op, Op::Scan { .. }) && node.inputs.first() != Some(&id)
        })
    }

    fn action(&mut self, node: &Node) -> Option<Action> {
        let member = |id: &MemberId| self.module.members.get(id.0);
        let inputs = node.inputs.clone();
        if let Some((id, then)) = node.op.meaning().layer()
            && let Some(member) = member(&id)
            && let MemberKind::Layer(layer) = &member.kind
        {
            return Some(Action::Layer { member: member.name.clone(), layer: layer.clone(), inputs, then });
        }
        if let Op::Weight { path } = &node.op {
            return self.weight(path).map(Action::Weight);
        }
        if let Op::Call { member: id } = &node.op
            && let Some(member) = member(id)
            && let MemberKind::Module(callee) = member.kind
        {
            let (name, needs) = (member.name.clone(), self.needs_of(callee));
            let caches = (needs.caches > 0).then(|| self.lend(needs.caches, needs.list));
            let needs = needs.extra.into_iter().collect();
            return Some(Action::Call(Call {
                member: name,
                module: callee,
                arguments: inputs,
                needs,
                caches,
            }));
        }
        if let Op::Experts { member: id, .. } = &node.op {
            let kinds = needs::callees(&node.op, self.module).into_iter();
            let kinds = kinds.map(|kind| (kind, self.extra(kind))).collect();
            return Some(Action::Experts { member: *id, inputs, kinds });
        }
        if let Op::Scan { member: id, each, args } = &node.op {
            let MemberKind::Stack(runs) = &member(id)?.kind else { return None };
            return self.scan(node, *id, *each, runs, args).map(Action::Scan);
        }
        let dropout = needs::dropout_of(&node.op, self.own);
        let is_kept = self.has_caches() && needs::has_state(&node.op, self.graph.decodes);
        let cache = is_kept.then_some(self.next);
        self.next = self.next.saturating_add(u64::from(is_kept));
        Some(Action::Op { op: node.op.clone(), inputs, dropout, cache })
    }

    fn weight(&self, path: &[MemberId]) -> Option<Vec<String>> {
        let mut at = self.module;
        let mut names = Vec::new();
        for id in path {
            let member = at.members.get(id.0)?;
            names.push(member.name.clone());
            if let MemberKind::Module(child) = member.kind {
                at = self.graph.modules.get(child.0)?;
            }
        }
        Some(names)
    }

    fn lend(&mut self, count: u64, list: bool) -> Lent {
        if !self.has_caches() {
            return Lent::Nothing;
        }
        // In the order of the statements and without gaps, which verification checks.
        let first = self.next;
        self.next = self.next.saturating_add(count);
        Lent::Part { first, count, list }
    }

    /// One statement for a whole group of appends, at its last node.
    fn append(&mut self, index: usize) -> Option<Statement> {
        let group = self.own.groups.iter().find(|group| group.contains(&index))?;
        // Only here are keys and values of the whole group defined.
        if group.last() != Some(&index) {
            return None;
        }
        let nodes: Vec<&Node> = group.iter().filter_map(|i| self.module.nodes.get(*i)).collect();
        let inputs = nodes.iter().flat_map(|node| node.inputs.iter().copied()).collect();
        let outputs = nodes.iter().flat_map(|node| node.outputs.iter().copied().map(Some)).collect();
        let cache = self.next;
        self.next = self.next.saturating_add(1);
        Some(Statement { outputs, action: Action::Append { cache, inputs }, folds: false })
    }

    fn scan(
        &mut self,
        node: &Node,
        member: MemberId,
        each: u64,
        runs: &[Run],
        args: &[Vec<Vec<usize>>],
    ) -> Option<Scan> {
        let start = node.inputs.first().copied()?;
        let kinds = needs::kinds(runs);
        let calls: Vec<BlockCall> =
            kinds.iter().map(|kind| self.block_call(node, runs, args, *kind)).collect();
        // Blocks of different modules may fill different numbers of caches. Each block gets as many as the
        // one with the most, so that where its caches begin follows from its index alone.
        let most = calls.iter().map(|call| call.caches).max().unwrap_or(0);
        let caches = (self.has_caches() && most > 0).then(|| {
            // Each application of a shared block has keys of its own, so caches are counted per application
            // and not per block.
            let count = most.saturating_mul(stack_len(runs)).saturating_mul(each);
            let first = self.next;
            self.next = self.next.saturating_add(count);
            BlockCaches { first, each: most, count, list: calls.iter().any(|call| call.list) }
        });
        Some(Scan { member, start, each, calls, caches })
    }

    fn block_call(&self, node: &Node, runs: &[Run], args: &[Vec<Vec<usize>>], kind: ModuleId) -> BlockCall {
        let callee = self.graph.module(kind);
        let mut arguments = Vec::new();
        // The first argument is the value that is folded, which a loop passes on by itself.
        for position in 1..callee.args {
            let places: PerBlock<ValueId> = runs
                .iter()
                .zip(args)
                .map(|(run, cycle)| {
                    // Blocks of other modules take arguments of their own, so the value does not matter for
                    // their indices.
                    let of = |(id, extra): (&ModuleId, &Vec<usize>)| {
                        // A scan lists the arguments after the first one.
                        let input = (*id == kind).then(|| extra.get(position - 1)).flatten();
                        input.and_then(|at| node.inputs.get(*at)).copied()
                    };
                    run.cycle.iter().zip(cycle).map(of).collect()
                })
                .collect();
            arguments.extend(Choice::of(runs, &places).map(|choice| (ValueId(position), choice)));
        }
        let needs = self.needs_of(kind);
        BlockCall {
            module: kind,
            arguments,
            needs: needs.extra.into_iter().collect(),
            caches: needs.caches,
            list: needs.list,
        }
    }
}
