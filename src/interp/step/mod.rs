//! Decoding of one sequence token by token without tensors.
//!
//! For the next token of a single text, each op is small, and what burn does around it (new tensors, the choice of the
//! backend, waking threads) takes longer than small ops and a tenth of the time of large ones. So the instructions of a
//! plan are made into a [`Program`](program::Program) on slices once, if there is a kernel for each of them. A program
//! computes the same bits as the ops on tensors do: it calls the same kernels, and what is divided among threads is never
//! a sum. Plans with other instructions, batches and other devices are run by ops on tensors.

mod attend;
mod compile;
mod execute;
pub(super) mod kept;
mod known;
mod others;
mod program;

use std::sync::Arc;

use burn::prelude::*;
use trafoc_kernels::row;

use super::cache::{Buffer, Cache};
use super::eval;
use super::inputs::Inputs;
use super::plan::Plan;
use super::value::{Ranked, Value, with};
use super::weights::Weights;
use crate::ir::{Lengths, Op};
use execute::{Given, Memory};
use kept::{Ready, Step};
use program::{Index, Program, Size};

impl Plan {
    /// Runs a step by a program: the results, and the cache has the position afterwards. `None` if it must be run by ops on
    /// tensors, with the cache as it was.
    pub(super) fn run_program(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        cache: &mut Cache,
        constants: &[Value],
        lengths: Lengths,
    ) -> Option<Vec<Value>> {
        if lengths.batch != 1 || lengths.time != 1 || lengths.past == 0 {
            return None;
        }
        let device = weights.device()?;
        if let Step::Untried = cache.step {
            cache.step = match compile::compile(self, weights, &cache.memory) {
                Some(program) => {
                    let memory = Memory::new(&program);
                    Step::Ready(Box::new(Ready { program, memory, weights: Arc::clone(&weights.packed) }))
                }
                None => Step::Never,
            };
        }
        let Step::Ready(ready) = &cache.step else { return None };
        let Ready { program, memory, weights: of } = &**ready;
        let reads = |name: &String| {
            program.indices.iter().any(|(index, _)| matches!(index, Index::Input(read) if read == name))
        };
        // Other weights, for which the program was not made, and inputs that it does not read, such as a padding mask.
        let is_other = inputs.values.iter().any(|(name, value)| !value.is_absent() && !reads(name));
        if is_other || !Arc::ptr_eq(of, &weights.packed) {
            return None;
        }
        let past = usize::try_from(lengths.past).ok()?;
        let indices = indices(program, inputs, constants)?;
        let numbers = numbers(program, constants, past)?;
        let masks = masks(program, constants, past)?;
        let buckets = buckets(program, constants, past)?;
        let mut buffers = Vec::with_capacity(cache.buffers.len());
        for (buffer, span) in cache.buffers.iter_mut().zip(&program.appended) {
            let Buffer::R4(appended) = buffer else { break };
            let Some(taken) = row::Buffer::take(appended, past) else { break };
            if span.is_some_and(|span| span.len == taken.sizes().iter().product::<usize>()) {
                buffers.push(taken);
            } else {
                taken.put_back(appended);
                break;
            }
        }
        let fits = buffers.len() == cache.buffers.len();
        let given = Given {
            indices: &indices,
            constants: &numbers,
            masks: &masks,
            buckets: &buckets,
            buffers: &buffers,
            past,
            by_tensors: &|op, inputs| by_tensors(op, inputs, lengths, &device, weights),
        };
        let has_run = fits && memory.run(program, &given);
        for ((mut buffer, span), to) in buffers.into_iter().zip(&program.appended).zip(&mut cache.buffers) {
            if let (true, Some(span)) = (has_run, span) {
                memory.append(*span, &mut buffer, past);
            }
            if let Buffer::R4(to) = to {
                buffer.put_back(to);
            }
        }
        if !has_run {
            return None;
        }
        let result = |output: &program::Output| {
            let data = TensorData::new(memory.numbers(output.from), output.dims.clone());
            Ranked::from_data(data, &device).ok().map(Value::Float)
        };
        program.outputs.iter().map(result).collect()
    }
}

/// The numbers that burn computes for an op; `None` if it fails.
fn by_tensors(
    op: &Op,
    inputs: Vec<TensorData>,
    lengths: Lengths,
    device: &Device,
    weights: &Weights,
) -> Option<Vec<f32>> {
    let value = |data| Ranked::from_data(data, device).map(Value::Float);
    let inputs = inputs.into_iter().map(value).collect::<Result<_, _>>().ok()?;
    match eval::constant(op, inputs, lengths, device, weights).ok()?.into_iter().next()? {
        Value::Float(y) => with!(y, y => y.try_into_data()).ok()?.try_into_vec().ok(),
        _ => None,
    }
}

/// The indices of the rows that are looked up, all of which exist.
fn indices(program: &Program, inputs: &Inputs, constants: &[Value]) -> Option<Vec<usize>> {
    let index = |(from, count): &(Index, usize)| {
        let value = match from {
            Index::Input(name) => inputs.get(name)?,
            Index::Constant(index) => constants.get(*index)?,
        };
        let Value::Int(ids) = value else { return None };
        let data = with!(ids, ids => ids.clone().try_into_data()).ok()?;
        let mut ids = data.iter::<i64>();
        let id = usize::try_from(ids.next()?).ok()?;
        (ids.next().is_none() && id < *count).then_some(id)
    };
    program.indices.iter().map(index).collect()
}

/// The constants that are numbers, by their index in the plan.
fn numbers(program: &Program, constants: &[Value], past: usize) -> Option<Vec<Vec<f32>>> {
    let mut found = vec![Vec::new(); constants.len()];
    for (index, size) in &program.constants {
        let Value::Float(value) = constants.get(*index)? else { return None };
        let data = with!(value, x => x.clone().try_into_data()).ok()?;
        let numbers: Vec<f32> = data.try_into_vec().ok()?;
        let len = match size {
            Size::Always(len) => *len,
            Size::OfKeys(each) => each * (past + 1),
        };
        if numbers.len() != len {
            return None;
        }
        *found.get_mut(*index)? = numbers;
    }
    Some(found)
}

/// The constants that are masks, by their index in the plan.
fn masks(program: &Program, constants: &[Value], past: usize) -> Option<Vec<Vec<u8>>> {
    let mut found = vec![Vec::new(); constants.len()];
    for index in &program.masks {
        let Value::Bool(value) = constants.get(*index)? else { return None };
        let data = with!(value, x => x.clone().try_into_data()).ok()?;
        let mask: Vec<u8> = data.iter::<bool>().map(u8::from).collect();
        if mask.len() != past + 1 {
            return None;
        }
        *found.get_mut(*index)? = mask;
    }
    Some(found)
}

/// The constants that are buckets of distances, by their index in the plan.
fn buckets(program: &Program, constants: &[Value], past: usize) -> Option<Vec<Vec<usize>>> {
    let mut found = vec![Vec::new(); constants.len()];
    for index in &program.buckets {
        let Value::Int(value) = constants.get(*index)? else { return None };
        let data = with!(value, x => x.clone().try_into_data()).ok()?;
        let buckets: Vec<usize> = data.iter::<i64>().map(usize::try_from).collect::<Result<_, _>>().ok()?;
        if buckets.len() != past + 1 {
            return None;
        }
        *found.get_mut(*index)? = buckets;
    }
    Some(found)
}
