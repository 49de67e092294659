//! The parameters of a graph by path, folded or one by one.

use super::{Graph, Layer, Member, MemberKind, Module, ModuleId, Parameter, Role, Run};
use crate::tensor_file::TENSORS;

/// A parameter, or the corresponding parameters of all equal blocks in a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedParameter {
    /// The path, `decoder.blocks.*.attention.query.weight`, where `*` is the index of a block.
    pub path: String,
    /// The name, the shape and the initial values.
    pub parameter: Parameter,
    /// The number of tensors: 1, or the number of equal blocks in all stacks around it.
    pub count: u128,
    /// The role in which it is counted.
    pub role: Role,
}

impl FoldedParameter {
    /// The number of elements of all tensors together.
    pub fn elements(&self) -> u128 {
        elements(&self.parameter.shape).saturating_mul(self.count)
    }
}

/// The number of elements of a tensor, saturating; 1 for no axis.
pub fn elements(shape: &[u64]) -> u128 {
    shape.iter().fold(1u128, |n, d| n.saturating_mul(u128::from(*d)))
}

/// The number of elements of all tensors, from each module once.
pub fn total_elements(graph: &Graph) -> u128 {
    // One sum for each module, because a walk along all paths would visit a shared module once for each use.
    let mut sums: Vec<u128> = Vec::with_capacity(graph.modules.len());
    // Children come before their parents, so their sums are known.
    for module in &graph.modules {
        let of = |sums: &[u128], id: ModuleId| sums.get(id.0).copied().unwrap_or(0);
        let of_member = |member: &Member| match &member.kind {
            MemberKind::Layer(layer) => {
                layer.parameters().iter().fold(0u128, |sum, p| sum.saturating_add(elements(&p.shape)))
            }
            MemberKind::Module(id) => of(&sums, *id),
            MemberKind::Stack(runs) => {
                let blocks = runs
                    .iter()
                    .flat_map(|run| run.cycle.iter().enumerate().map(|(i, id)| (run.blocks(i), *id)));
                blocks.fold(0u128, |sum, (n, id)| {
                    sum.saturating_add(of(&sums, id).saturating_mul(u128::from(n)))
                })
            }
        };
        let sum = module.members.iter().map(of_member).fold(0u128, u128::saturating_add);
        sums.push(sum);
    }
    sums.get(graph.root.0).copied().unwrap_or(0)
}

/// Every parameter, with the blocks of a stack folded, so that the result does not grow with the number of
/// layers.
pub fn folded(graph: &Graph) -> Vec<FoldedParameter> {
    let mut out = Vec::new();
    walk_folded(graph, graph.root(), "", 1, &mut out);
    out
}

fn walk_folded(graph: &Graph, module: &Module, prefix: &str, times: u128, out: &mut Vec<FoldedParameter>) {
    for member in &module.members {
        let path = join(prefix, &member.name);
        match &member.kind {
            MemberKind::Layer(layer) => {
                let role = module.role_of(layer);
                for parameter in layer.parameters() {
                    let path = join(&path, parameter.name);
                    out.push(FoldedParameter { path, parameter, count: times, role });
                }
            }
            MemberKind::Module(id) => walk_folded(graph, graph.module(*id), &path, times, out),
            MemberKind::Stack(runs) => {
                for run in runs {
                    for (i, id) in run.cycle.iter().enumerate() {
                        let blocks = run.blocks(i);
                        let times = times.saturating_mul(u128::from(blocks));
                        // A cycle may be longer than its run.
                        if blocks > 0 {
                            walk_folded(graph, graph.module(*id), &format!("{path}.*"), times, out);
                        }
                    }
                }
            }
        }
    }
}

/// The error that a model has more tensors than a file may contain, which is too many to list one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyTensors(
    /// The number of tensors of the model.
    pub u128,
);

impl std::fmt::Display for TooManyTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the model has {} tensors, but at most {TENSORS} are supported", self.0)
    }
}

/// The number of tensors.
///
/// # Errors
/// There are more than a file may contain.
pub fn counted(folded: &[FoldedParameter]) -> Result<usize, TooManyTensors> {
    let count = folded.iter().fold(0u128, |n, p| n.saturating_add(p.count));
    usize::try_from(count).ok().filter(|n| *n <= TENSORS).ok_or(TooManyTensors(count))
}

/// Every parameter by its own path, in the order of files. The result has an entry for each tensor.
///
/// # Errors
/// There are more tensors than a file may contain.
pub fn expanded(graph: &Graph) -> Result<Vec<(String, Parameter)>, TooManyTensors> {
    // Counted first, because the list of a hostile spec could fill the memory.
    counted(&folded(graph))?;
    let of = |(path, layer): (String, &Layer)| {
        layer.parameters().into_iter().map(|p| (join(&path, p.name), p)).collect::<Vec<_>>()
    };
    Ok(layers(graph).into_iter().flat_map(of).collect())
}

/// Every layer by its own path, in the order of files. The result has an entry for each layer.
pub fn layers(graph: &Graph) -> Vec<(String, &Layer)> {
    let mut out = Vec::new();
    walk_layers(graph, graph.root(), "", &mut out);
    out
}

fn walk_layers<'a>(graph: &'a Graph, module: &'a Module, prefix: &str, out: &mut Vec<(String, &'a Layer)>) {
    for member in &module.members {
        let path = join(prefix, &member.name);
        match &member.kind {
            MemberKind::Layer(layer) => out.push((path, layer)),
            MemberKind::Module(id) => walk_layers(graph, graph.module(*id), &path, out),
            MemberKind::Stack(runs) => {
                let blocks = runs.iter().flat_map(|run| {
                    // Callers count the tensors first, so no stack here is longer than a list may be.
                    let count = usize::try_from(run.count).unwrap_or(usize::MAX);
                    run.cycle.iter().cycle().take(count)
                });
                for (index, id) in blocks.enumerate() {
                    walk_layers(graph, graph.module(*id), &format!("{path}.{index}"), out);
                }
            }
        }
    }
}

/// The path of a layer that is given by its members from the root down; after a stack comes the index of a
/// block. `None` if there is no such layer.
pub fn of_members(graph: &Graph, members: &[u64]) -> Option<String> {
    let mut module = graph.root();
    let mut path = String::new();
    let mut rest = members.iter();
    while let Some(id) = rest.next() {
        let member = module.members.get(usize::try_from(*id).ok()?)?;
        path = join(&path, &member.name);
        match &member.kind {
            // Nothing comes after a layer.
            MemberKind::Layer(_) => return rest.next().is_none().then_some(path),
            MemberKind::Module(child) => module = graph.module(*child),
            MemberKind::Stack(runs) => {
                let block = *rest.next()?;
                let mut index = block;
                let run = runs.iter().find(|run| match index.checked_sub(run.count) {
                    Some(after) => {
                        index = after;
                        false
                    }
                    None => true,
                })?;
                // `index` now counts from the start of this run.
                let at = index.checked_rem(run.cycle.len() as u64)?;
                module = graph.module(*run.cycle.get(usize::try_from(at).ok()?)?);
                path = join(&path, &block.to_string());
            }
        }
    }
    None
}

/// Why a path that is one of a parameter apart from its numbers leads to none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Astray {
    /// The stack of this path has fewer blocks.
    Beyond {
        /// The path of the stack, `decoder.blocks`.
        stack: String,
        /// The number of its blocks.
        blocks: u64,
    },
    /// There is such a block, but it has no such parameter.
    Other,
}

/// Whether a path leads to a parameter, or to several that differ in their last word. Each index of a block
/// may be a number, or anything else for all blocks.
///
/// # Errors
/// No parameter has such a path.
pub fn leads(graph: &Graph, path: &str) -> Result<(), Astray> {
    walk_to(graph, graph.root(), "", path)
}

fn walk_to(graph: &Graph, module: &Module, before: &str, path: &str) -> Result<(), Astray> {
    let mut astray = Astray::Other;
    for member in &module.members {
        let Some(rest) = path.strip_prefix(member.name.as_str()) else { continue };
        let Some(rest) = rest.strip_prefix('.').or(rest.is_empty().then_some("")) else { continue };
        let here = join(before, &member.name);
        let found = match &member.kind {
            MemberKind::Layer(layer) => {
                let is_one = rest.is_empty() || layer.parameters().iter().any(|p| p.name == rest);
                if is_one { Ok(()) } else { Err(Astray::Other) }
            }
            MemberKind::Module(id) => walk_to(graph, graph.module(*id), &here, rest),
            MemberKind::Stack(runs) => into_block(graph, runs, &here, rest),
        };
        match found {
            Ok(()) => return Ok(()),
            Err(why) => astray = why,
        }
    }
    Err(astray)
}

/// [`walk_to`] for what follows the path of a stack: the index of a block, and a path in it.
fn into_block(graph: &Graph, runs: &[Run], stack: &str, path: &str) -> Result<(), Astray> {
    let (index, rest) = path.split_once('.').unwrap_or((path, ""));
    let block = |id: ModuleId| walk_to(graph, graph.module(id), &join(stack, index), rest);
    let Ok(mut number) = index.parse::<u64>() else {
        let every = runs.iter().flat_map(|run| {
            let blocks = run.cycle.iter().enumerate().filter(|(i, _)| run.blocks(*i) > 0);
            blocks.map(|(_, id)| block(*id))
        });
        return every.fold(Err(Astray::Other), Result::or);
    };
    for run in runs {
        match number.checked_sub(run.count) {
            Some(after) => number = after,
            None => {
                let at = number.checked_rem(run.cycle.len() as u64).and_then(|at| usize::try_from(at).ok());
                return match at.and_then(|at| run.cycle.get(at)) {
                    Some(id) => block(*id),
                    None => Err(Astray::Other),
                };
            }
        }
    }
    let blocks = runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.count));
    Err(Astray::Beyond { stack: stack.to_owned(), blocks })
}

/// The prefix of the paths of a head's parameters.
pub const HEAD: &str = "head.";

/// Joins two parts of a path with a dot; an empty part is left out.
pub fn join(prefix: &str, name: &str) -> String {
    match (prefix.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}.{name}"),
    }
}
