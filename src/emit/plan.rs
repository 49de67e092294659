//! What must be known about every module before the first line is written: what it needs beside its
//! arguments, how many caches it fills, which dropouts it owns.

use std::collections::BTreeSet;

use crate::ir::op::Sequence;
use crate::ir::{Graph, MemberKind, Module, ModuleId, Op, Run, Sym, ValueId, stack_len};

/// Something an op needs that is no tensor of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Tokens already in the cache.
    Past,
    /// Length `T`.
    Time,
    /// Length `S`.
    Source,
    /// Where new tensors are made.
    Device,
}

impl Need {
    /// The variable it is held in.
    pub fn name(self) -> &'static str {
        match self {
            Need::Past => "past",
            Need::Time => "time",
            Need::Source => "source_len",
            Need::Device => "device",
        }
    }

    /// Its type as a parameter.
    pub fn ty(self) -> &'static str {
        match self {
            Need::Past | Need::Time | Need::Source => "usize",
            Need::Device => "&Device",
        }
    }
}

/// Facts about one module.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What its body and its children need.
    pub needs: BTreeSet<Need>,
    /// Those it cannot find out from its arguments: parameters of `forward`.
    pub extra: BTreeSet<Need>,
    /// How many caches one call fills.
    pub caches: u64,
    /// Whether they are handed over as a slice: there are several, or those of a stack.
    pub list: bool,
    /// Nodes that append to the same cache, by index; one cache each.
    pub groups: Vec<Vec<usize>>,
    /// Dropout fields: name and probability.
    pub dropouts: Vec<(String, f64)>,
}

/// Facts about every module of a graph.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By module id.
    pub modules: Vec<Facts>,
}

/// Collects the facts, children before parents.
pub fn plan(graph: &Graph) -> Plan {
    let mut modules: Vec<Facts> = Vec::new();
    for (index, module) in graph.modules.iter().enumerate() {
        let mut facts = Facts { dropouts: dropouts(module), ..Facts::default() };
        for node in &module.nodes {
            facts.needs.extend(own_needs(&node.op, graph.decodes));
            for id in callees(&node.op, module) {
                if let Some(child) = modules.get(id.0) {
                    facts.needs.extend(child.extra.iter().copied());
                }
            }
            let filled = node_caches(&node.op, module, &modules);
            facts.caches += filled;
            facts.list |= filled > 0 && scanned(&node.op, module).is_some();
            facts.list |=
                callees(&node.op, module).iter().any(|id| modules.get(id.0).is_some_and(|f| f.list));
        }
        if graph.decodes {
            facts.groups = cache_groups(module);
        }
        facts.caches += facts.groups.len() as u64;
        facts.list |= facts.caches > 1;
        let is_root = ModuleId(index) == graph.root;
        facts.extra = facts
            .needs
            .iter()
            .copied()
            .filter(|need| !is_root && source_of(*need, module).is_none())
            .collect();
        modules.push(facts);
    }
    Plan { modules }
}

/// Appends with no use of what the first gives back between them.
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
        if uses_open || same_name {
            groups.push(std::mem::take(&mut open));
        }
        if is_append {
            open.push(i);
        }
    }
    groups.push(open);
    groups.retain(|group| !group.is_empty());
    groups
}

/// How many caches a node's callees fill, in all.
pub fn node_caches(op: &Op, module: &Module, modules: &[Facts]) -> u64 {
    let a_call = callees(op, module).iter().filter_map(|id| modules.get(id.0)).map(|f| f.caches).max();
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

/// The modules an op calls, each once.
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

/// Where a need is found in a module's arguments: the argument and, for lengths, the axis.
pub fn source_of(need: Need, module: &Module) -> Option<(ValueId, usize)> {
    let arguments: Vec<ValueId> = (0..module.args).map(ValueId).collect();
    source_among(need, module, &arguments)
}

/// Where a need is found among some values.
pub fn source_among(need: Need, module: &Module, values: &[ValueId]) -> Option<(ValueId, usize)> {
    let mut certain = values.iter().copied().filter(|id| !module.value(*id).ty.optional);
    let sym = match need {
        Need::Past => return None,
        Need::Device => return certain.next().map(|id| (id, 0)),
        Need::Time => Sym::Time,
        Need::Source => Sym::Source,
    };
    certain.find_map(|id| {
        let axis = module.value(id).ty.shape.iter().position(|dim| dim.symbol() == Some(sym))?;
        Some((id, axis))
    })
}

fn own_needs(op: &Op, decodes: bool) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    for sequence in op.meaning().along() {
        needs.insert(Need::Device);
        match sequence {
            Sequence::Whole => {
                needs.insert(Need::Time);
            }
            Sequence::Cached => {
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

/// One field for every probability, attention's named apart when it differs.
fn dropouts(module: &Module) -> Vec<(String, f64)> {
    let mut found: Vec<(bool, f64)> = Vec::new();
    for node in &module.nodes {
        let drop = if let Op::Dropout { p } = node.op {
            (false, p)
        } else if let Op::Attention(attention) = &node.op
            && attention.dropout > 0.0
        {
            (true, attention.dropout)
        } else {
            continue;
        };
        if !found.iter().any(|(_, p)| *p == drop.1) {
            found.push(drop);
        }
    }
    let mut fields: Vec<(String, f64)> = Vec::new();
    for (of_weights, p) in &found {
        let base = if *of_weights && found.len() > 1 { "attention_dropout" } else { "dropout" };
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

/// The field that drops with probability `p`.
pub fn dropout_field(facts: &Facts, p: f64) -> &str {
    facts.dropouts.iter().find(|(_, q)| *q == p).map_or("dropout", |(name, _)| name.as_str())
}
