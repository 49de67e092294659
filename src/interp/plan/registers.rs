//! Assigns registers to values: a register is free again after the last read of its value.

use super::instruction::{Action, Body, Instruction, Operand};

/// A node before registers are assigned; values are numbered.
#[derive(Clone, Debug)]
pub(super) struct FlatNode {
    pub action: Action,
    pub inputs: Vec<Source>,
    pub outputs: Vec<usize>,
    pub memory: bool,
    /// The number of the block that it belongs to, counted over all blocks as they are applied.
    pub block: Option<usize>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// An argument or the result of a node, by number.
    Value(usize),
    /// A constant of the plan, by index.
    Constant(usize),
}

/// Removes nodes that no result needs and assigns registers. `kept` values get their registers first and are
/// never overwritten, because in later calls of cached decoding they are stored there before the body runs.
/// Returns the body, and the registers of those kept values that are read.
pub(super) fn assign(
    values: usize,
    arguments: &[usize],
    nodes: Vec<FlatNode>,
    results: &[Source],
    kept: &[usize],
) -> (Body, Vec<usize>) {
    let (nodes, used) = needed(values, nodes, results);
    let end = nodes.len();
    let mut last_read = vec![None; values];
    for (at, node) in nodes.iter().enumerate() {
        for value in reads(&node.inputs) {
            last_read[value] = Some(at);
        }
    }
    for value in reads(results) {
        // Results are read after the last node.
        last_read[value] = Some(end);
    }

    let mut registers = Registers { of: vec![None; values], free: Vec::new(), count: 0 };
    let mut kept_registers = Vec::new();
    for value in kept.iter().filter(|v| used[**v]) {
        registers.of[*value] = Some(registers.count);
        kept_registers.push(registers.count);
        registers.count += 1;
    }
    let arguments = arguments.iter().map(|v| used[*v].then(|| registers.take(*v))).collect();
    let mut instructions = Vec::with_capacity(end);
    for (at, node) in nodes.into_iter().enumerate() {
        let inputs = operands(&node.inputs, &registers.of, |value| last_read[value] == Some(at));
        for value in reads(&node.inputs).filter(|v| last_read[*v] == Some(at) && !kept.contains(v)) {
            registers.give(value);
        }
        // The inputs were moved out of their registers when the op begins, so its results may use them.
        let outputs = node.outputs.iter().map(|v| used[*v].then(|| registers.take(*v))).collect();
        instructions.push(Instruction {
            action: node.action,
            inputs,
            outputs,
            memory: node.memory,
            block: node.block,
        });
    }
    let results = operands(results, &registers.of, |_| true);
    (Body { registers: registers.count, arguments, instructions, results }, kept_registers)
}

struct Registers {
    of: Vec<Option<usize>>,
    free: Vec<usize>,
    count: usize,
}

impl Registers {
    fn take(&mut self, value: usize) -> usize {
        // An argument or a result that is kept has its register already.
        if let Some(register) = self.of[value] {
            return register;
        }
        let register = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.of[value] = Some(register);
        register
    }

    /// Frees the register of a value, once even if the node reads the value twice.
    fn give(&mut self, value: usize) {
        if let Some(register) = self.of[value]
            && !self.free.contains(&register)
        {
            self.free.push(register);
        }
    }
}

/// The nodes that some result needs, and the values that they and the results read.
fn needed(values: usize, nodes: Vec<FlatNode>, results: &[Source]) -> (Vec<FlatNode>, Vec<bool>) {
    let mut used = vec![false; values];
    reads(results).for_each(|v| used[v] = true);
    let mut left = Vec::with_capacity(nodes.len());
    // From the end, so that what a removed node reads does not count as needed.
    for node in nodes.into_iter().rev() {
        if node.outputs.iter().any(|v| used[*v]) {
            reads(&node.inputs).for_each(|v| used[v] = true);
            left.push(node);
        }
    }
    left.reverse();
    (left, used)
}

fn reads(sources: &[Source]) -> impl Iterator<Item = usize> + '_ {
    sources.iter().filter_map(|source| match source {
        Source::Value(value) => Some(*value),
        Source::Constant(_) => None,
    })
}

/// The operands of an instruction. If it reads a value twice, only its last read may move the value.
fn operands(sources: &[Source], of: &[Option<usize>], is_last: impl Fn(usize) -> bool) -> Vec<Operand> {
    let again = |i: usize, source: &Source| sources[i + 1..].contains(source);
    sources
        .iter()
        .enumerate()
        .map(|(i, source)| match source {
            Source::Constant(constant) => Operand::Constant(*constant),
            // A value without a register would be a fault of `assign`, which `eval` reports when it is read.
            Source::Value(value) => Operand::Register {
                index: of[*value].unwrap_or(usize::MAX),
                last: is_last(*value) && !again(i, source),
            },
        })
        .collect()
}
