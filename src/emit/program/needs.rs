//! What each module needs in addition to its arguments: lengths and the device, caches to fill, probabilities
//! of dropout.

use std::collections::BTreeSet;

use crate::ir::op::Sequence;
use crate::ir::{Graph, MemberKind, Module, ModuleId, Op, Run, Sym, ValueId, stack_len};

/// Something an op needs that is not a tensor of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The number of tokens in the cache, `P`.
    Past,
    /// The length `T` of the sequence that is computed.
    Time,
    /// The length `S` of the source of an encoder-decoder.
    Source,
    /// The device that new tensors are created on.
    Device,
}

impl Need {
    /// The name of its variable in emitted code.
    pub fn variable(self) -> &'static str {
        match self {
            Need::Past => "past",
            Need::Time => "time",
            Need::Source => "source_len",
            Need::Device => "device",
        }
    }
}

/// Where a function finds something it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The length of one axis of a parameter.
    Axis(ValueId, usize),
    /// The device of a parameter.
    DeviceOf(ValueId),
    /// The number of tokens in the cache that the function is given; 0 without a cache.
    Cache,
}

/// What one module needs, and the caches and dropouts that follow from its ops.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// What it cannot find out from its arguments, so that its callers pass it on.
    pub extra: BTreeSet<Need>,
    /// The number of caches that one call fills.
    pub caches: u64,
    /// Whether the caches are passed as a list: there are several, or they are those of a stack.
    pub list: bool,
    /// The nodes that append to the same cache, by index; one cache for each group.
    pub groups: Vec<Vec<usize>>,
    /// The dropouts it owns: name and probability.
    pub dropouts: Vec<(String, f64)>,
}

/// The needs of all modules of a graph, by module id.
pub fn of_graph(graph: &Graph) -> Vec<Needs> {
    let mut modules: Vec<Needs> = Vec::new();
    // Children come before their parents, so what they need is known when their callers are reached.
    for (index, module) in graph.modules.iter().enumerate() {
        let mut needs = Needs { dropouts: dropouts(module), ..Needs::default() };
        let mut all = BTreeSet::new();
        for node in &module.nodes {
            all.extend(of_node(&node.op, module, &modules, graph.decodes));
            let filled = caches_of_node(&node.op, module, &modules);
            needs.caches += filled;
            needs.list |= filled > 0 && scanned(&node.op, module).is_some();
            // A module that calls one with a list must be given a list itself, to pass a part of it on.
            needs.list |=
                callees(&node.op, module).iter().any(|id| modules.get(id.0).is_some_and(|n| n.list));
        }
        if graph.decodes {
            needs.groups = cache_groups(module);
        }
        needs.caches += needs.groups.len() as u64;
        needs.caches += module.nodes.iter().filter(|node| has_state(&node.op, graph.decodes)).count() as u64;
        needs.list |= needs.caches > 1;
        let arguments: Vec<ValueId> = (0..module.args).map(ValueId).collect();
        let is_root = ModuleId(index) == graph.root;
        // The root has no caller that could pass anything on to it.
        all.retain(|need| !is_root && origin(*need, module, &arguments).is_none());
        needs.extra = all;
        modules.push(needs);
    }
    modules
}

/// What a node needs: its op and the modules it calls. `modules` are the needs of the modules before.
pub fn of_node(op: &Op, module: &Module, modules: &[Needs], decodes: bool) -> BTreeSet<Need> {
    let mut needs = of_op(op, decodes);
    for id in callees(op, module) {
        needs.extend(modules.get(id.0).into_iter().flat_map(|callee| callee.extra.iter().copied()));
    }
    needs
}

/// What an op itself needs.
pub fn of_op(op: &Op, decodes: bool) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    let meaning = op.meaning();
    // A table or a mask along a sequence is a new tensor, which needs a device, and so are counted numbers. Masks of
    // padding are made of what they are given.
    if meaning.is_table() && !meaning.along().is_empty() || matches!(op, Op::Range { .. }) {
        needs.insert(Need::Device);
    }
    for sequence in meaning.along() {
        match sequence {
            Sequence::Whole => {
                needs.insert(Need::Time);
            }
            Sequence::Cached => {
                // Positions continue after the cached ones; a model that does not decode always begins at 0.
                needs.insert(Need::Time);
                needs.extend(decodes.then_some(Need::Past));
            }
            Sequence::Source => {
                needs.insert(Need::Source);
            }
            Sequence::Fixed(_) => {}
        }
    }
    needs
}

/// Whether an op keeps a state in a cache of its own.
pub fn has_state(op: &Op, decodes: bool) -> bool {
    decodes && op.meaning().has_state()
}

/// Where a need is found among some values of a module. A value that may be absent tells nothing.
pub fn origin(need: Need, module: &Module, values: &[ValueId]) -> Option<Origin> {
    let mut certain = values.iter().copied().filter(|id| !module.value(*id).ty.optional);
    let sym = match need {
        // No shape tells how many positions a cache has.
        Need::Past => return None,
        // All tensors of a call are on one device.
        Need::Device => return certain.next().map(Origin::DeviceOf),
        Need::Time => Sym::Time,
        Need::Source => Sym::Source,
    };
    certain.find_map(|id| {
        let axis = module.value(id).ty.shape.iter().position(|dim| dim.symbol() == Some(sym))?;
        Some(Origin::Axis(id, axis))
    })
}

/// Groups of appends, none of which uses what another of its group returns: one cache serves a group.
fn cache_groups(module: &Module) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (i, node) in module.nodes.iter().enumerate() {
        let appended = open.iter().filter_map(|n| module.nodes.get(*n)).flat_map(|n| &n.outputs);
        let uses_open = appended.clone().any(|id| node.inputs.contains(id));
        let is_append = matches!(node.op, Op::Cache);
        let same_name = is_append
            && appended.clone().any(|id| {
                node.outputs
                    .first()
                    .is_some_and(|out| module.value(*out).variable == module.value(*id).variable)
            });
        // Two appends of one name in a group would give two variables of that name in one pattern,
        // `let (k, k) = ..`.
        if uses_open || same_name {
            groups.push(std::mem::take(&mut open));
        }
        if is_append {
            open.push(i);
        }
    }
    groups.push(open);
    // A group is closed at the end and before each use of its outputs, even if nothing was appended since.
    groups.retain(|group| !group.is_empty());
    groups
}

/// The number of caches that the modules a node calls fill, in all calls.
pub fn caches_of_node(op: &Op, module: &Module, modules: &[Needs]) -> u64 {
    // As many for each block as the one with the most fills: so the caches of a block are found by its index.
    let a_call = callees(op, module).iter().filter_map(|id| modules.get(id.0)).map(|n| n.caches).max();
    let calls = match scanned(op, module) {
        Some((runs, each)) => stack_len(runs).saturating_mul(each),
        None => 1,
    };
    a_call.unwrap_or(0).saturating_mul(calls)
}

/// The runs of a scanned stack, and how often each block is applied.
pub fn scanned<'a>(op: &Op, module: &'a Module) -> Option<(&'a [Run], u64)> {
    let Op::Scan { member, each, .. } = op else { return None };
    match module.members.get(member.0).map(|m| &m.kind) {
        Some(MemberKind::Stack(runs)) => Some((runs, *each)),
        Some(MemberKind::Layer(_) | MemberKind::Module(_)) | None => None,
    }
}

/// The modules that an op calls, each once.
pub fn callees(op: &Op, module: &Module) -> Vec<ModuleId> {
    let (Op::Call { member } | Op::Scan { member, .. } | Op::Experts { member, .. }) = op else {
        return Vec::new();
    };
    match module.members.get(member.0).map(|m| &m.kind) {
        Some(MemberKind::Module(id)) => vec![*id],
        Some(MemberKind::Stack(runs)) => kinds(runs),
        Some(MemberKind::Layer(_)) | None => Vec::new(),
    }
}

/// The modules of a stack, each once, in order of first use.
pub fn kinds(runs: &[Run]) -> Vec<ModuleId> {
    let mut ids: Vec<ModuleId> = Vec::new();
    for id in runs.iter().flat_map(|run| &run.cycle) {
        if !ids.contains(id) {
            ids.push(*id);
        }
    }
    ids
}

/// The probability with which an op drops, and whether what it drops are attention weights.
fn drops(op: &Op) -> Option<(bool, f64)> {
    if let Op::Dropout { p } = op {
        Some((false, *p))
    } else if let Op::Attention(attention) = op
        && attention.dropout > 0.0
    {
        Some((true, attention.dropout))
    } else {
        None
    }
}

/// One name for every probability; that of attention weights is told apart if there are others.
fn dropouts(module: &Module) -> Vec<(String, f64)> {
    let mut found: Vec<(bool, f64)> = Vec::new();
    for drop in module.nodes.iter().filter_map(|node| drops(&node.op)) {
        // A dropout has no state, so all ops of one probability can share a field.
        if !found.iter().any(|(_, p)| *p == drop.1) {
            found.push(drop);
        }
    }
    let mut fields: Vec<(String, f64)> = Vec::new();
    for (of_weights, p) in &found {
        let base = if *of_weights && found.len() > 1 { "attention_dropout" } else { "dropout" };
        // The members' names are those of weights in files and stay; a dropout has no weights, so it gives
        // way.
        let taken = |name: &str| {
            fields.iter().any(|(n, _)| n == name) || module.members.iter().any(|m| m.name == name)
        };
        let mut name = base.to_owned();
        let mut n = 2;
        while taken(&name) {
            name = format!("{base}_{n}");
            n += 1;
        }
        fields.push((name, *p));
    }
    fields
}

/// The name of the dropout that an op applies.
pub fn dropout_of(op: &Op, needs: &Needs) -> Option<String> {
    let (_, p) = drops(op)?;
    needs.dropouts.iter().find(|(_, q)| *q == p).map(|(name, _)| name.clone())
}
