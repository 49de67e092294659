//! The memory of a training step: a forward pass in which every op keeps what its gradient needs, and the
//! backward pass.
//!
//! The graph is walked in the order of execution, with a buffer for every value. How long a buffer is held
//! depends on which ops read it, which keep it, and which values are views of it. What an op keeps, and
//! what it needs while it computes its gradient, is stated by the op itself ([`crate::ir::op::training`]).
//!
//! Optional inputs are assumed to be given, so padding is masked.

mod forward;
mod recurrent;
mod routed;
mod walk;

pub use forward::{Pass, forward};

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::op::training::Passing;
use crate::ir::{DType, Graph, Lengths, ModuleId, Type, ValueId, Verified, paths};

/// Activation memory: the largest number of bytes that a training step takes in addition to parameters,
/// gradients and the optimizer's state.
pub fn activation_memory(graph: &Verified, lengths: &Lengths, element: u128) -> u128 {
    counted(graph, lengths, element, Keeping { has_kernels: true, ..Keeping::default() })
}

/// How a model is trained, as far as activation memory depends on it.
#[derive(Clone, Copy, Default)]
pub struct Keeping<'a> {
    /// Whether the parameter with a path is frozen: it gets no gradient, and what is computed from such
    /// parameters and from inputs alone keeps nothing. `None` if all are trained.
    pub is_frozen: Option<&'a dyn Fn(&str) -> bool>,
    /// Whether blocks are computed again in the backward pass, so that only their inputs are kept.
    pub recomputes: bool,
    /// Whether the processor has the instructions of the kernels, one of which computes the gradient of logits.
    pub has_kernels: bool,
    /// Whether the gradients of several batches are summed, so that those of the first exist while the second
    /// is computed.
    pub accumulates: bool,
}

/// The forecast is raised by one part in this many, because a forecast that is too low would let a training
/// start that the system then ends for lack of memory.
const MARGIN: u128 = 32;
/// Bytes of tensors that are too small to be followed one by one.
const SMALL_TENSORS: u128 = 128 << 10;
/// The same in training, with what autodiff notes of ops that have no gradient.
const SMALL_IN_TRAINING: u128 = 512 << 10;

/// Bytes for what is noted of every parameter in training, besides its numbers, such as the shapes of its gradient and
/// moments. Measured as [`ENTRY`] was.
const OF_PARAMETER: u128 = 1536;

/// A forecast of [`activation_memory`] for a model that is trained in this way, which is not too low.
pub fn activation_memory_of(
    graph: &Verified,
    lengths: &Lengths,
    element: u128,
    keeping: Keeping<'_>,
) -> u128 {
    let most = counted(graph, lengths, element, keeping);
    let parameters = paths::folded(graph).iter().fold(0u128, |n, p| n.saturating_add(p.count));
    let noted = parameters.saturating_mul(OF_PARAMETER);
    most.saturating_add(most / MARGIN).saturating_add(SMALL_IN_TRAINING).saturating_add(noted)
}

fn counted(graph: &Verified, lengths: &Lengths, element: u128, keeping: Keeping<'_>) -> u128 {
    let graph = graph.fused();
    let graph = graph.for_training();
    let first = trained(&graph, lengths, element, keeping, None);
    let tape = match keeping.accumulates {
        true => trained(&graph, lengths, element, keeping, Some(first.parameter_bytes)),
        false => first,
    };
    // Adam creates one more tensor of a parameter's size while it updates the parameter.
    tape.most.saturating_sub(tape.parameter_bytes).max(tape.largest)
}

/// The tape after a step. `held` are the bytes of the gradients of all parameters, if these exist from the
/// beginning.
fn trained<'a>(
    graph: &'a Graph,
    lengths: &Lengths,
    element: u128,
    Keeping { is_frozen, recomputes, has_kernels, .. }: Keeping<'a>,
    held: Option<u128>,
) -> Tape<'a> {
    let mut tape = Tape { is_frozen, recomputes, has_kernels, held, ..Tape::new(graph, element, true) };
    tape.live = held.unwrap_or(0);
    let root = graph.module(graph.root);
    let arguments: Vec<Tracked> = (0..root.args)
        .map(|i| {
            let bytes = tape.bytes(&root.value(ValueId(i)).ty, lengths);
            Tracked { buffer: Some(tape.take(bytes)), bytes, gradient: None, is_strided: false }
        })
        .collect();
    let results = tape.module(graph.root, lengths, &arguments, &[]);
    // Every result of a model is an output of its head, from which the loss is computed.
    for result in &results {
        tape.loss(result);
    }
    for result in results {
        tape.release(result.buffer);
    }
    tape.back(0);
    tape
}

/// The bytes of an op's entry on burn's autodiff tape, in addition to the buffers that the op keeps. Measured
/// with a heap that counts, for burn 0.22.1.
const ENTRY: u128 = 1536;

/// A value while the graph is walked.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    /// The index of its buffer; `None` for parameters, which are counted separately.
    buffer: Option<usize>,
    /// Its own size, which may be smaller than that of the buffer it is a view of.
    bytes: u128,
    /// The slot in which its gradient is accumulated, if it has one.
    gradient: Option<usize>,
    /// Whether its numbers are not in the order of its axes, so that some operations copy them first.
    is_strided: bool,
}

/// One op in the backward pass.
#[derive(Debug)]
struct Step {
    /// The slot of the gradient that it reads.
    output: usize,
    /// The slots of the gradients to which it adds, and their sizes.
    inputs: Vec<(usize, u128)>,
    passing: Passing,
    /// The buffers that are kept until then.
    kept: Vec<usize>,
    /// The bytes that it needs at one time, including what it creates, if that is more than what it leaves.
    extra: u128,
    /// The bytes of parameters' gradients that it creates and that are kept until the end.
    staying: u128,
    /// The block that is computed again before its backward pass.
    again: Option<Box<Again>>,
}

/// A block that is computed again.
#[derive(Debug)]
struct Again {
    module: ModuleId,
    lengths: Lengths,
    arguments: Vec<Tracked>,
    /// The members from the root down to it.
    path: Vec<u64>,
}

/// A parameter that has been used: the slot of its gradient, and its size.
#[derive(Debug)]
struct Parameter {
    gradient: usize,
    bytes: u128,
}

struct Tape<'a> {
    graph: &'a Graph,
    /// Whether the parameter with a path is frozen; `None` if all are trained.
    is_frozen: Option<&'a dyn Fn(&str) -> bool>,
    /// Whether blocks are computed again in the backward pass. False within a block.
    recomputes: bool,
    /// The bytes of the gradients of all parameters, if they exist from the beginning.
    held: Option<u128>,
    /// The bytes of the parameters of blocks that are computed again.
    of_blocks: u128,
    /// Whether gradients are computed afterwards. Without them nothing is kept, attention is one fused
    /// operation, and elementwise operations overwrite their input where they can.
    is_training: bool,
    /// Whether keys and values are read from a cache.
    is_cached: bool,
    /// Whether the head is applied to the last position alone.
    only_last: bool,
    /// Whether attention weights are captured, so that attention is not one fused operation.
    shows_attention: bool,
    /// The number of threads that compute tiles of attention at the same time.
    threads: u128,
    /// Whether the processor has the instructions of the kernels.
    has_kernels: bool,
    /// The size of one number in bytes.
    element: u128,
    /// The size of every buffer in bytes, and its number of holders: values, tape entries and gradients.
    buffers: Vec<(u128, u32)>,
    /// The bytes of all buffers that are held, and the largest value this has had.
    live: u128,
    most: u128,
    /// The bytes of tensors that a kernel has read for the last time. They wait for the result of the next kernel.
    waiting: u128,
    /// The buffers that kernels have made, which no other op gives back.
    of_kernels: BTreeSet<usize>,
    /// The buffer of every gradient that exists.
    gradients: Vec<Option<usize>>,
    steps: Vec<Step>,
    /// Parameters by their members from the root down, so that one that is used twice is counted once.
    parameters: BTreeMap<Vec<u64>, Parameter>,
    /// The bytes of all parameters that have been used, and of those that were counted without a walk.
    parameter_bytes: u128,
    /// The bytes of the largest parameter.
    largest: u128,
}

impl<'a> Tape<'a> {
    fn new(graph: &'a Graph, element: u128, is_training: bool) -> Self {
        Self {
            graph,
            is_frozen: None,
            recomputes: false,
            held: None,
            of_blocks: 0,
            is_training,
            is_cached: false,
            only_last: false,
            shows_attention: false,
            threads: 1,
            has_kernels: false,
            element,
            buffers: Vec::new(),
            live: 0,
            most: 0,
            waiting: 0,
            of_kernels: BTreeSet::new(),
            gradients: Vec::new(),
            steps: Vec::new(),
            parameters: BTreeMap::new(),
            parameter_bytes: 0,
            largest: 0,
        }
    }

    fn bytes(&self, ty: &Type, lengths: &Lengths) -> u128 {
        let elements = ty.shape.iter().fold(1u128, |n, dim| n.saturating_mul(dim.eval(lengths)));
        elements.saturating_mul(match ty.dtype {
            DType::Float => self.element,
            // Flex has integers of 64 bits and booleans of one byte, whatever the type of floats.
            DType::Int => 8,
            DType::Bool => 1,
        })
    }

    /// Allocates a buffer with one holder.
    fn take(&mut self, bytes: u128) -> usize {
        let id = self.buffers.len();
        self.buffers.push((bytes, 1));
        self.live = self.live.saturating_add(bytes);
        self.most = self.most.max(self.live);
        id
    }

    /// Allocates a buffer for a result. A matrix product has its result twice for a moment.
    fn take_result(&mut self, bytes: u128, passing: Passing) -> usize {
        if passing == Passing::Product {
            self.briefly(bytes.saturating_mul(2));
        }
        self.take(bytes)
    }

    /// Accounts for bytes that are used only for a moment.
    fn briefly(&mut self, bytes: u128) {
        self.most = self.most.max(self.live.saturating_add(bytes));
    }

    fn hold(&mut self, buffer: Option<usize>) {
        if let Some((_, holders)) = buffer.and_then(|id| self.buffers.get_mut(id)) {
            *holders = holders.saturating_add(1);
        }
    }

    fn release(&mut self, buffer: Option<usize>) {
        if let Some((bytes, holders)) = buffer.and_then(|id| self.buffers.get_mut(id)) {
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                self.live = self.live.saturating_sub(*bytes);
            }
        }
    }

    /// Whether a buffer has a single holder, so that an op may overwrite it.
    fn is_own(&self, buffer: usize) -> bool {
        self.buffers.get(buffer).is_some_and(|(_, holders)| *holders == 1)
    }

    /// A new slot for a gradient, which is empty until the backward pass adds to it.
    fn gradient(&mut self) -> usize {
        let id = self.gradients.len();
        self.gradients.push(None);
        id
    }

    /// Whether the layer with these members from the root down has a parameter of this name that is frozen.
    fn is_frozen(&self, path: &[u64], name: &str) -> bool {
        let Some(is_frozen) = self.is_frozen else { return false };
        paths::of_members(self.graph, path).is_some_and(|path| is_frozen(&paths::join(&path, name)))
    }

    /// The gradient of a parameter that consists of one or more tensors.
    fn parameter(&mut self, path: &[u64], tensors: &[u128]) -> (usize, u128) {
        // All uses of a parameter add to one gradient, which exists once.
        if let Some(known) = self.parameters.get(path) {
            return (known.gradient, known.bytes);
        }
        let bytes = tensors.iter().fold(0u128, |sum, bytes| sum.saturating_add(*bytes));
        self.parameter_bytes = self.parameter_bytes.saturating_add(bytes);
        let gradient = self.gradient();
        if self.held.is_some() {
            // Counted from the beginning, so that it is not taken here.
            self.buffers.push((bytes, 1));
            if let Some(slot) = self.gradients.get_mut(gradient) {
                *slot = Some(self.buffers.len().saturating_sub(1));
            }
            // The backward pass begins with a step for each of them.
            self.take(ENTRY.saturating_mul(tensors.len() as u128));
        }
        // Adam updates tensor by tensor, so the largest tensor matters and not the largest layer.
        self.largest = tensors.iter().copied().fold(self.largest, u128::max);
        self.parameters.insert(path.to_vec(), Parameter { gradient, bytes });
        (gradient, bytes)
    }

    /// A value computed into its own buffer. Records how its gradient reaches `inputs`, and that the op
    /// keeps `kept` and `own` further bytes.
    fn computed(
        &mut self,
        bytes: u128,
        inputs: &[Tracked],
        kept: &[Tracked],
        own: u128,
        passing: Passing,
    ) -> Tracked {
        let to = inputs.iter().filter_map(|v| Some((v.gradient?, v.bytes))).collect();
        let buffer = self.take_result(bytes, passing);
        self.recorded(
            Tracked { buffer: Some(buffer), bytes, gradient: None, is_strided: false },
            to,
            kept,
            own,
            passing,
        )
    }

    /// `value` with a gradient, if one of its inputs has one.
    fn recorded(
        &mut self,
        value: Tracked,
        inputs: Vec<(usize, u128)>,
        kept: &[Tracked],
        own: u128,
        passing: Passing,
    ) -> Tracked {
        // Autodiff records nothing of an op none of whose inputs has a gradient.
        if inputs.is_empty() {
            return Tracked { gradient: None, ..value };
        }
        let output = self.gradient();
        // A tensor that is kept twice is one buffer.
        let mut buffers: Vec<usize> = kept.iter().filter_map(|v| v.buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        for buffer in &buffers {
            self.hold(Some(*buffer));
        }
        if own > 0 {
            buffers.push(self.take(own));
        }
        buffers.push(self.take(ENTRY));
        self.steps.push(Step { output, inputs, passing, kept: buffers, extra: 0, staying: 0, again: None });
        Tracked { gradient: Some(output), ..value }
    }

    /// A view of `x`.
    fn view(&mut self, x: Tracked, bytes: u128, passing: Passing) -> Tracked {
        self.hold(x.buffer);
        let is_strided = passing == Passing::Fresh || x.is_strided;
        let to = x.gradient.map(|slot| (slot, x.bytes)).into_iter().collect();
        let y = Tracked { buffer: x.buffer, bytes, gradient: None, is_strided };
        let y = self.recorded(y, to, &[], 0, passing);
        // The gradient may be a view, which is copied before it is written into zeros.
        if let (true, Some(_), Some(step)) = (passing == Passing::Fresh, y.gradient, self.steps.last_mut()) {
            step.extra = x.bytes.saturating_add(bytes);
        }
        y
    }

    /// The cross entropy of logits, which keeps them.
    fn loss(&mut self, logits: &Tracked) {
        let Some(gradient) = logits.gradient else { return };
        self.hold(logits.buffer);
        // The kernel makes them their own gradient, unless another op keeps them.
        if self.has_kernels
            && let Some(buffer) = logits.buffer
            && self.buffers.get(buffer).is_some_and(|(_, holders)| *holders == 2)
        {
            self.add_to(gradient, buffer, logits.bytes);
            return;
        }
        let output = self.gradient();
        self.steps.push(Step {
            output,
            inputs: vec![(gradient, logits.bytes)],
            passing: Passing::Fresh,
            kept: logits.buffer.into_iter().collect(),
            // Measured: two more tensors of this size exist at the same time, of which one is the gradient. The
            // kernel needs the gradient alone.
            extra: logits.bytes.saturating_mul(if self.has_kernels { 1 } else { 2 }),
            staying: 0,
            again: None,
        });
        // The backward pass starts with the gradient of the loss, a single number.
        let one = self.take(0);
        if let Some(slot) = self.gradients.get_mut(output) {
            *slot = Some(one);
        }
    }

    /// Walks equal repetitions of something, in time and memory that do not grow with their number.
    ///
    /// From the second repetition on, each one adds the same bytes to the tape and to the gradients of
    /// parameters. So the bytes held after or within repetition `i` are linear in `i`, forward and
    /// backward, and largest at an end. Therefore the first two and the last two repetitions are walked,
    /// and one step on the tape replaces those in between.
    fn repeated(
        &mut self,
        times: u64,
        x: Tracked,
        mut one: impl FnMut(&mut Self, Tracked, u64) -> Tracked,
    ) -> Tracked {
        const ENDS: u64 = 2;
        let between = times.saturating_sub(ENDS).saturating_sub(ENDS);
        // Patterns of frozen parameters may name single blocks, so that repetitions differ.
        if between == 0 || self.is_frozen.is_some() {
            return (0..times).fold(x, |x, i| one(self, x, i));
        }
        let first = one(self, x, 0);
        let (live, parameters) = (self.live, self.parameter_bytes.saturating_add(self.of_blocks));
        let second = one(self, first, 1);
        let kept = self.live.saturating_sub(live).saturating_mul(u128::from(between));
        let all = self.parameter_bytes.saturating_add(self.of_blocks);
        let staying = all.saturating_sub(parameters).saturating_mul(u128::from(between));
        let after = self.skipped(second, kept, staying);
        (times.saturating_sub(ENDS)..times).fold(after, |x, i| one(self, x, i))
    }

    /// A value after repetitions that are not walked. They keep `kept` bytes for the backward pass and
    /// leave gradients of parameters.
    fn skipped(&mut self, x: Tracked, kept: u128, staying: u128) -> Tracked {
        self.parameter_bytes = self.parameter_bytes.saturating_add(staying);
        let kept = self.take(kept);
        // Without a gradient, what is left of a repetition are constants, which nothing frees.
        let Some(input) = x.gradient else { return x };
        let output = self.gradient();
        let inputs = vec![(input, x.bytes)];
        self.steps.push(Step {
            output,
            inputs,
            passing: Passing::Shared,
            kept: vec![kept],
            extra: 0,
            staying,
            again: None,
        });
        Tracked { gradient: Some(output), ..x }
    }

    /// The result of a block that is computed again in the backward pass, until when its arguments are kept.
    fn deferred(&mut self, again: Again) -> Tracked {
        let result = self.graph.module(again.module).results.first();
        let result = result.map(|id| &self.graph.module(again.module).value(*id).ty);
        let bytes = result.map_or(0, |ty| self.bytes(ty, &again.lengths));
        // Whether a gradient reaches the block, and the bytes of its parameters, follow from what it computes.
        let mut once = Tape { is_frozen: self.is_frozen, ..Tape::new(self.graph, self.element, true) };
        let arguments: Vec<Tracked> = again
            .arguments
            .iter()
            .map(|x| Tracked { buffer: None, gradient: x.gradient.map(|_| once.gradient()), ..*x })
            .collect();
        let results = once.module(again.module, &again.lengths, &arguments, &again.path);
        let y = Tracked { buffer: Some(self.take(bytes)), bytes, gradient: None, is_strided: false };
        if results.iter().all(|y| y.gradient.is_none()) {
            return y;
        }
        self.of_blocks = self.of_blocks.saturating_add(once.parameter_bytes);
        let kept: Vec<usize> = again.arguments.iter().filter_map(|x| x.buffer).collect();
        kept.iter().for_each(|buffer| self.hold(Some(*buffer)));
        let output = self.gradient();
        self.steps.push(Step {
            output,
            inputs: Vec::new(),
            passing: Passing::Fresh,
            kept,
            extra: 0,
            staying: 0,
            again: Some(Box::new(again)),
        });
        Tracked { gradient: Some(output), ..y }
    }

    /// Computes a block again, with a tape, and goes back through it.
    fn again(&mut self, again: &Again, gradient: usize) {
        let recomputes = std::mem::take(&mut self.recomputes);
        let base = self.steps.len();
        let leaves: Vec<Tracked> = again
            .arguments
            .iter()
            .map(|x| Tracked { gradient: x.gradient.map(|_| self.gradient()), ..*x })
            .collect();
        let results = self.module(again.module, &again.lengths, &leaves, &again.path);
        let mut gradient = Some(gradient);
        for result in &results {
            self.release(result.buffer);
            if let Some(slot) = result.gradient.and_then(|slot| self.gradients.get_mut(slot)) {
                *slot = gradient.take();
            }
        }
        self.release(gradient);
        self.back(base);
        for (x, leaf) in again.arguments.iter().zip(&leaves) {
            let found = leaf.gradient.and_then(|slot| self.gradients.get_mut(slot)).and_then(Option::take);
            if let (Some(slot), Some(found)) = (x.gradient, found) {
                self.add_to(slot, found, x.bytes);
            }
        }
        self.recomputes = recomputes;
    }

    /// Walks the tape from its end to the step `base`: passes each gradient on, and frees what the op kept for
    /// it.
    fn back(&mut self, base: usize) {
        while self.steps.len() > base
            && let Some(step) = self.steps.pop()
        {
            let gradient = self.gradients.get_mut(step.output).and_then(Option::take);
            match (gradient, &step.again) {
                (Some(gradient), None) => self.pass_on(&step, gradient),
                (Some(gradient), Some(again)) => self.again(again, gradient),
                (None, _) => {}
            }
            for buffer in step.kept {
                self.release(Some(buffer));
            }
            // Gradients of parameters stay until the optimizer has used them, so nothing releases these.
            if self.held.is_none() {
                self.take(step.staying);
            }
        }
    }

    /// Adds an op's gradient to those of its inputs. A gradient that is equal to the op's own shares its
    /// buffer, and one that may overwrite it does so if nothing else holds it.
    fn pass_on(&mut self, step: &Step, gradient: usize) {
        self.briefly(step.extra);
        let own = self.buffers.get(gradient).map_or(0, |(bytes, _)| *bytes);
        let mut is_free = step.passing == Passing::InPlace && self.is_own(gradient);
        for (input, bytes) in &step.inputs {
            let fits = *bytes == own;
            let passed = match step.passing {
                Passing::Parts => true,
                Passing::Shared if fits => true,
                // Only one of the inputs can have the buffer.
                Passing::InPlace if fits => std::mem::take(&mut is_free),
                Passing::Shared | Passing::InPlace | Passing::Fresh | Passing::Product => false,
            };
            let new = if passed {
                self.hold(Some(gradient));
                gradient
            } else {
                self.take_result(*bytes, step.passing)
            };
            self.add_to(*input, new, *bytes);
        }
        self.release(Some(gradient));
    }

    /// Adds to a gradient, in the buffer of a summand that nothing else holds.
    fn add_to(&mut self, slot: usize, new: usize, bytes: u128) {
        let sum = match self.gradients.get(slot).copied().flatten() {
            None => new,
            Some(old) if self.is_own(new) => {
                self.release(Some(old));
                new
            }
            Some(old) if self.is_own(old) => {
                self.release(Some(new));
                old
            }
            Some(old) => {
                let sum = self.take(bytes);
                self.release(Some(old));
                self.release(Some(new));
                sum
            }
        };
        if let Some(slot) = self.gradients.get_mut(slot) {
            *slot = Some(sum);
        }
    }
}
