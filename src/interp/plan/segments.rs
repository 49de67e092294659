//! The parts of a plan whose forward pass is computed again in the backward pass.
//!
//! Every application of a block is a segment of its own. What no block comes before, such as embeddings and
//! tables of positions, is one segment, even if other instructions are between its own: thus all uses of a
//! parameter in it add to its gradient in one backward pass, and in the order of a pass over everything. What
//! follows a block outside of blocks, such as the last norm of an encoder, is a segment for each place. The
//! last segment ends with the results.

use std::collections::{BTreeMap, BTreeSet};

use super::instruction::{Body, Operand};
use crate::interp::weights::{TensorIndex, Weights};

/// A value of a body: an argument, or a result of an instruction. Unlike a register it has one meaning.
pub(in crate::interp) type ValueNumber = usize;

/// A part of a body.
#[derive(Clone, Debug, Default)]
pub(in crate::interp) struct Segment {
    /// The indices of its instructions, in order.
    pub instructions: Vec<usize>,
    /// The values that it reads from other segments: by the index of the instruction that is the first to read
    /// them, the register and the value. The results of the body are read after its last instruction.
    pub arriving: BTreeMap<usize, Vec<(usize, ValueNumber)>>,
    /// The values that other segments read: by the index of the instruction, which of its results, and the
    /// value.
    pub leaving: BTreeMap<usize, Vec<(usize, ValueNumber)>>,
    /// The parameters that it uses.
    pub parameters: BTreeSet<TensorIndex>,
}

/// All segments of a body, each after those whose values it reads.
#[derive(Clone, Debug)]
pub(in crate::interp) struct Segments {
    pub all: Vec<Segment>,
    /// The segment of each instruction.
    pub of: Vec<usize>,
    /// Whether several segments read a value, apart from that which makes it.
    pub is_shared: Vec<bool>,
    /// For each value the time at which autodiff comes to it, when it goes back from the loss.
    pub visited: Vec<usize>,
    /// The values that each instruction reads and defines.
    reads: Vec<Vec<ValueNumber>>,
    defines: Vec<Vec<ValueNumber>>,
}

impl Segments {
    /// The segments of a body, or the whole body as one. `ends` are the indices of the results from which the loss is
    /// computed, in the order in which it adds what follows from them.
    pub fn new(body: &Body, by_block: bool, ends: &[usize]) -> Self {
        let mut numbers = Numbers::new(body);
        let mut of = Vec::with_capacity(body.instructions.len());
        let mut segments = Split { is_late: vec![false; numbers.count], count: 1, open: None };
        let (mut reads, mut defines) = (Vec::new(), Vec::new());
        // A first walk, which only finds the segments: values have numbers that do not depend on them.
        for instruction in &body.instructions {
            let read: Vec<(usize, ValueNumber)> = numbers.read(&instruction.inputs);
            let defined = numbers.define(&instruction.outputs);
            let block = instruction.block.filter(|_| by_block);
            of.push(segments.next(block, &read, &defined));
            reads.push(read);
            defines.push(defined);
        }
        let results = numbers.read(&body.results);
        let end = body.instructions.len();
        let last = if segments.count == 1 { 0 } else { segments.after_blocks() };
        let mut all = vec![Segment::default(); segments.count];
        let mut home: Vec<Option<usize>> = vec![None; numbers.count];
        // Which result of which instruction a value is.
        let mut made: Vec<Option<(usize, usize)>> = vec![None; numbers.count];
        for (at, (segment, defined)) in of.iter().zip(&defines).enumerate() {
            for (result, value) in defined {
                home[*value] = Some(*segment);
                made[*value] = Some((at, *result));
            }
        }
        let mut arrived: BTreeSet<(usize, ValueNumber)> = BTreeSet::new();
        let mut readers = vec![0u32; numbers.count];
        let by_instruction = of.iter().copied().zip(&reads).enumerate();
        for (at, (segment, read)) in by_instruction.chain([(end, (last, &results))]) {
            for (register, value) in read {
                if home[*value] == Some(segment) || !arrived.insert((segment, *value)) {
                    continue;
                }
                readers[*value] += 1;
                all[segment].arriving.entry(at).or_default().push((*register, *value));
                if let (Some(from), Some((at, result))) = (home[*value], made[*value]) {
                    let leaving = all[from].leaving.entry(at).or_default();
                    if !leaving.contains(&(result, *value)) {
                        leaving.push((result, *value));
                    }
                }
            }
        }
        for (at, segment) in of.iter().enumerate() {
            all[*segment].instructions.push(at);
            let parameters = &mut all[*segment].parameters;
            body.instructions[at].action.each(&mut |action| parameters.extend(action.parameters()));
        }
        let second = |list: Vec<Vec<(usize, ValueNumber)>>| -> Vec<Vec<ValueNumber>> {
            list.into_iter().map(|of| of.into_iter().map(|(_, value)| value).collect()).collect()
        };
        let (reads, defines) = (second(reads), second(defines));
        let is_shared = readers.into_iter().map(|count| count > 1).collect();
        // Constants are no values, so results are found by their place among the operands.
        let numbers_of_results: Vec<Option<ValueNumber>> =
            body.results.iter().map(|operand| numbers.read(&[*operand]).first().map(|(_, v)| *v)).collect();
        let ends = ends.iter().filter_map(|end| numbers_of_results.get(*end).copied().flatten());
        let mut visited = vec![usize::MAX; numbers.count];
        let mut stack: Vec<ValueNumber> = ends.collect();
        let mut time = 0;
        // As autodiff does: depth first, from the last input of an op.
        while let Some(value) = stack.pop() {
            if visited[value] != usize::MAX {
                continue;
            }
            visited[value] = time;
            time += 1;
            if let Some((at, _)) = made[value] {
                stack.extend_from_slice(&reads[at]);
            }
        }
        Self { all, of, is_shared, visited, reads, defines }
    }

    /// Whether each value may have a gradient: it is computed from a parameter that is trained.
    pub fn tracked(&self, body: &Body, weights: &Weights) -> Vec<bool> {
        let mut tracked = vec![false; self.visited.len()];
        for (instruction, (reads, defines)) in
            body.instructions.iter().zip(self.reads.iter().zip(&self.defines))
        {
            let mut is_tracked = reads.iter().any(|value| tracked[*value]);
            instruction.action.each(&mut |action| {
                is_tracked |= action.parameters().into_iter().any(|p| weights.is_trained(p));
            });
            defines.iter().for_each(|value| tracked[*value] = is_tracked);
        }
        tracked
    }
}

/// Gives values their numbers.
struct Numbers {
    /// The value that each register has at present.
    current: Vec<Option<ValueNumber>>,
    next: usize,
    count: usize,
}

impl Numbers {
    fn new(body: &Body) -> Self {
        let results: usize = body.instructions.iter().map(|i| i.outputs.iter().flatten().count()).sum();
        let mut numbers =
            Self { current: vec![None; body.registers], next: 0, count: body.arguments.len() + results };
        for register in &body.arguments {
            if let Some(register) = register {
                numbers.current[*register] = Some(numbers.next);
            }
            numbers.next += 1;
        }
        numbers
    }

    /// The registers that are read, with their values.
    fn read(&self, operands: &[Operand]) -> Vec<(usize, ValueNumber)> {
        let register = |operand: &Operand| match operand {
            Operand::Register { index, .. } => Some(*index),
            Operand::Constant(_) => None,
        };
        let value = |register| Some((register, self.current.get(register).copied().flatten()?));
        operands.iter().filter_map(register).filter_map(value).collect()
    }

    /// The results that are used, by their index, with the numbers that they get.
    fn define(&mut self, outputs: &[Option<usize>]) -> Vec<(usize, ValueNumber)> {
        let mut defined = Vec::new();
        for (result, register) in outputs.iter().enumerate() {
            if let Some(register) = register {
                self.current[*register] = Some(self.next);
                defined.push((result, self.next));
                self.next += 1;
            }
        }
        defined
    }
}

/// Divides instructions among segments, in their order.
struct Split {
    /// Whether a value follows from a block.
    is_late: Vec<bool>,
    count: usize,
    /// The block, or `None` for what is outside of blocks, to which the last segment that follows from a block
    /// belongs.
    open: Option<Option<usize>>,
}

impl Split {
    /// The segment of an instruction of a block, or outside of blocks.
    fn next(
        &mut self,
        block: Option<usize>,
        read: &[(usize, ValueNumber)],
        defined: &[(usize, ValueNumber)],
    ) -> usize {
        if block.is_none() && !read.iter().any(|(_, value)| self.is_late[*value]) {
            return 0;
        }
        defined.iter().for_each(|(_, value)| self.is_late[*value] = true);
        self.segment(block)
    }

    fn segment(&mut self, block: Option<usize>) -> usize {
        if self.open != Some(block) {
            self.open = Some(block);
            self.count += 1;
        }
        self.count - 1
    }

    /// The segment of what follows the last block.
    fn after_blocks(&mut self) -> usize {
        self.segment(None)
    }
}
