//! How many instructions a graph has once its calls and stacks are unrolled, counted without unrolling them.

use std::collections::BTreeMap;

use super::error::PlanError;
use crate::ir::paths::join;
use crate::ir::{Member, MemberKind, Module, ModuleId, Op, Verified};

/// The largest number of instructions that a plan may have. A stack of 10^9 layers is a short spec, and
/// unrolled it would fill the memory.
const INSTRUCTIONS: u64 = 1_000_000;

/// Refuses a graph that has too many instructions to be unrolled.
///
/// # Errors
/// [`PlanError::TooDeep`].
pub(super) fn refuse_too_many(graph: &Verified) -> Result<(), PlanError> {
    let mut counts = Counts { graph, known: BTreeMap::new() };
    let instructions = counts.of_module(graph.root());
    if instructions <= INSTRUCTIONS {
        return Ok(());
    }
    let (stack, layers) = counts.largest(graph.root(), "");
    Err(PlanError::TooDeep { instructions, most: INSTRUCTIONS, stack, layers })
}

/// The number of instructions of each module that has been counted.
struct Counts<'a> {
    graph: &'a Verified,
    known: BTreeMap<ModuleId, u64>,
}

impl Counts<'_> {
    /// One for each node, and one for the module itself, since even a module without nodes takes time.
    fn of_module(&mut self, module: &Module) -> u64 {
        module.nodes.iter().fold(1u64, |sum, node| sum.saturating_add(self.of_op(module, &node.op)))
    }

    fn of_id(&mut self, id: ModuleId) -> u64 {
        if let Some(count) = self.known.get(&id) {
            return *count;
        }
        let count = self.of_module(self.graph.module(id));
        self.known.insert(id, count);
        count
    }

    fn of_op(&mut self, module: &Module, op: &Op) -> u64 {
        match op {
            Op::Call { member } => self.of_member(module.member(*member)),
            Op::Scan { member, each, .. } => self.of_member(module.member(*member)).saturating_mul(*each),
            Op::Experts { member, .. } => self.of_member(module.member(*member)),
            _ => 1,
        }
    }

    /// The instructions of a module, or of all blocks of a stack.
    fn of_member(&mut self, member: &Member) -> u64 {
        match &member.kind {
            MemberKind::Layer(_) => 1,
            MemberKind::Module(id) => self.of_id(*id),
            MemberKind::Stack(runs) => {
                let blocks = runs
                    .iter()
                    .flat_map(|run| run.cycle.iter().enumerate().map(|(at, id)| (run.blocks(at), *id)));
                blocks
                    .fold(0, |sum: u64, (count, id)| sum.saturating_add(self.of_id(id).saturating_mul(count)))
            }
        }
    }

    /// The path of the stack that has the most instructions, and how often it applies a block.
    fn largest(&mut self, module: &Module, prefix: &str) -> (String, u64) {
        let graph = self.graph;
        let most = module.nodes.iter().max_by_key(|node| self.of_op(module, &node.op));
        match most.map(|node| &node.op) {
            Some(Op::Call { member }) => {
                let member = module.member(*member);
                let path = join(prefix, &member.name);
                match &member.kind {
                    MemberKind::Module(id) => self.largest(graph.module(*id), &path),
                    MemberKind::Layer(_) | MemberKind::Stack(_) => (path, 1),
                }
            }
            Some(Op::Scan { member, each, .. }) => (
                join(prefix, &module.member(*member).name),
                blocks(module.member(*member)).saturating_mul(*each),
            ),
            Some(Op::Experts { member, .. }) => {
                (join(prefix, &module.member(*member).name), blocks(module.member(*member)))
            }
            _ => (prefix.to_owned(), 1),
        }
    }
}

/// The number of blocks of a stack.
fn blocks(member: &Member) -> u64 {
    match &member.kind {
        MemberKind::Stack(runs) => runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.count)),
        MemberKind::Layer(_) | MemberKind::Module(_) => 1,
    }
}
