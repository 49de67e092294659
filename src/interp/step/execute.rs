//! Runs a program on threads that wait for each other between products, instead of waking one another for each.
//!
//! Every thread has all values of the step in memory of its own and computes what is small by itself. Large products and
//! the heads of attention are divided into parts. A thread that is free takes the next part, and in the end each thread
//! copies all parts into its own memory.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use burn::prelude::*;
use trafoc_kernels::row::{self as kernels, Buffer, Held, Meeting, OfHead, Query};

use super::program::{
    Attend, Bias, Binary, Expert, From, Keys, Mask, Product, Program, Rows, Span, Unary, Work,
};
use crate::ir::Op;

/// The fewest bytes of weights that are worth several threads.
const WORTH: usize = 1 << 21;
/// The fewest multiplications of queries with keys that are.
const WORTH_OF_HEADS: usize = 1 << 15;

/// The memory of a thread.
#[derive(Debug, Default)]
struct Frame {
    slots: Vec<Vec<f32>>,
    /// The scores of a head.
    scores: Vec<f32>,
    /// What is added to them by distance.
    bias: Vec<f32>,
    /// How often the thread has met the others.
    met: usize,
}

/// Work of which threads take parts.
#[derive(Debug)]
struct Taken {
    /// The next part.
    next: AtomicUsize,
    /// The numbers of a part; the last one may have fewer.
    len: usize,
    parts: Vec<RwLock<Vec<f32>>>,
}

/// The memory in which a program runs. It is kept from step to step.
#[derive(Debug)]
pub struct Memory {
    frames: Vec<Mutex<Frame>>,
    taken: Vec<Taken>,
    /// Whether an op on tensors has failed.
    has_failed: AtomicBool,
}

/// What a step reads besides the program.
pub struct Given<'a> {
    /// The index of each row that is looked up.
    pub indices: &'a [usize],
    /// The constants that are numbers, by their index in the plan.
    pub constants: &'a [Vec<f32>],
    /// The constants that are masks, by their index in the plan.
    pub masks: &'a [Vec<u8>],
    /// The constants that are buckets of distances, by their index in the plan.
    pub buckets: &'a [Vec<usize>],
    /// What the cache has.
    pub buffers: &'a [Buffer],
    /// The number of positions in the cache.
    pub past: usize,
    /// Computes an op on tensors; `None` if it fails.
    pub by_tensors: &'a ByTensors<'a>,
}

/// Computes an op on tensors.
pub type ByTensors<'a> = dyn Fn(&Op, Vec<TensorData>) -> Option<Vec<f32>> + Sync + 'a;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// Memory for a program.
    pub fn new(program: &Program) -> Self {
        let threads = if program.bytes < WORTH { 1 } else { trafoc_kernels::threads() };
        let frame =
            || Frame { slots: program.slots.iter().map(|len| vec![0.0; *len]).collect(), ..Frame::default() };
        let parts = |len: usize, part: usize| {
            (0..len).step_by(part.max(1)).map(|from| RwLock::new(vec![0.0; part.min(len - from)])).collect()
        };
        Self {
            frames: (0..threads).map(|_| Mutex::new(frame())).collect(),
            taken: program
                .shared
                .iter()
                .map(|shared| Taken {
                    next: AtomicUsize::new(0),
                    len: shared.part,
                    parts: parts(shared.len, shared.part),
                })
                .collect(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Runs the program; false, without a result, if the threads are doing such work already or are not those that the
    /// memory was made for, or if an op on tensors fails.
    pub fn run(&self, program: &Program, given: &Given<'_>) -> bool {
        self.taken.iter().for_each(|taken| taken.next.store(0, Ordering::Relaxed));
        self.frames.iter().for_each(|frame| locked(frame).met = 0);
        self.has_failed.store(false, Ordering::Relaxed);
        let has_run = kernels::together(self.frames.len(), |thread, meeting| {
            if let Some(frame) = self.frames.get(thread) {
                let mut thread = Thread { program, given, meeting, memory: self, frame: &mut locked(frame) };
                program.work.iter().for_each(|work| thread.work(work));
            }
        });
        has_run && !self.has_failed.load(Ordering::Relaxed)
    }

    /// The numbers of a value of the last step.
    pub fn numbers(&self, span: Span) -> Vec<f32> {
        self.frames.first().map(|frame| locked(frame).numbers(span).to_vec()).unwrap_or_default()
    }

    /// Appends the numbers of a value of the last step to a buffer.
    pub fn append(&self, span: Span, buffer: &mut Buffer, position: usize) {
        if let Some(frame) = self.frames.first() {
            buffer.write(position, locked(frame).numbers(span));
        }
    }
}

impl Frame {
    fn numbers(&self, span: Span) -> &[f32] {
        let slot = self.slots.get(span.slot).map(Vec::as_slice).unwrap_or_default();
        slot.get(span.start..span.start + span.len).unwrap_or_default()
    }

    /// Takes a slot out, to write to it while others are read.
    fn take(&mut self, slot: usize) -> Vec<f32> {
        self.slots.get_mut(slot).map(mem::take).unwrap_or_default()
    }

    fn put(&mut self, slot: usize, numbers: Vec<f32>) {
        if let Some(to) = self.slots.get_mut(slot) {
            *to = numbers;
        }
    }
}

/// One thread that runs a program.
struct Thread<'a> {
    program: &'a Program,
    given: &'a Given<'a>,
    meeting: &'a Meeting,
    memory: &'a Memory,
    frame: &'a mut Frame,
}

impl<'a> Thread<'a> {
    fn read(&self, from: From) -> &[f32] {
        match from {
            From::Slot(span) => self.frame.numbers(span),
            From::Constant(index) => self.given.constants.get(index).map(Vec::as_slice).unwrap_or_default(),
            From::Parameter(index) => {
                self.program.parameters.get(index).map(Vec::as_slice).unwrap_or_default()
            }
        }
    }

    fn work(&mut self, work: &Work) {
        match work {
            Work::Products(products) => self.products(products),
            Work::Attend(attend) => self.attend(attend),
            Work::Copy { from, to } => self.write(to.slot, |thread, y| {
                if let Some(y) = y.get_mut(to.start..to.start + to.len) {
                    y.copy_from_slice(thread.read(*from));
                }
            }),
            Work::Columns { from, width, start, to } => self.write(to.slot, |thread, y| {
                let (width, len) = (*width, to.len / (from.len / width).max(1));
                for (x, y) in
                    thread.frame.numbers(*from).chunks_exact(width).zip(y.chunks_exact_mut(len.max(1)))
                {
                    y.copy_from_slice(x.get(*start..start + len).unwrap_or_default());
                }
            }),
            Work::Join { from, of, width, start, to } => self.write(*to, |thread, y| {
                for (x, y) in thread.read(*from).chunks_exact(*of).zip(y.chunks_exact_mut(*width)) {
                    if let Some(y) = y.get_mut(*start..start + of) {
                        y.copy_from_slice(x);
                    }
                }
            }),
            Work::Row { rows, index, to } => self.write(*to, |thread, y| {
                let index = thread.given.indices.get(*index).copied().unwrap_or_default();
                match rows {
                    Rows::Plain(table) => y.copy_from_slice(table.row(index)),
                    Rows::Packed(table) => table.row(index, y),
                }
            }),
            Work::Norm { norm, weight, bias, from, to } => self.write(*to, |thread, y| {
                kernels::norm(*norm, thread.frame.numbers(*from), weight, bias, y);
            }),
            Work::Binary { binary, to, by } => self.write(*to, |thread, y| {
                let x = thread.read(*by);
                for y in y.chunks_mut(x.len().max(1)) {
                    let pairs = y.iter_mut().zip(x);
                    match binary {
                        Binary::Add => pairs.for_each(|(y, x)| *y += x),
                        Binary::Multiply => pairs.for_each(|(y, x)| *y *= x),
                        Binary::Divide => pairs.for_each(|(y, x)| *y /= x),
                    }
                }
            }),
            Work::Unary { unary, to } => self.write(*to, |_, y| match unary {
                Unary::Kernel(activation) => kernels::activate(*activation, y),
                // As burn: NaN stays.
                Unary::Relu => y.iter_mut().for_each(|y| *y = if y.is_nan() || *y > 0.0 { *y } else { 0.0 }),
                Unary::Scale(by) => y.iter_mut().for_each(|y| *y *= by),
                Unary::Shift(by) => y.iter_mut().for_each(|y| *y += by),
            }),
            Work::Rotate { from, width, angles, pairing, to } => self.write(*to, |thread, y| {
                let angles = angles.map(|index| thread.read(From::Constant(index)));
                kernels::rotate(thread.frame.numbers(*from), *width, angles, *pairing, y);
            }),
            Work::Experts { weights, experts, to } => self.experts(*weights, experts, *to),
            Work::ByTensors { op, inputs, to } => self.write(*to, |thread, y| {
                match thread.by_tensors(op, inputs).filter(|found| found.len() == y.len()) {
                    Some(found) => y.copy_from_slice(&found),
                    None => thread.memory.has_failed.store(true, Ordering::Relaxed),
                }
            }),
        }
    }

    /// The sum of the experts whose weight is not zero.
    fn experts(&mut self, weights: Span, experts: &[Expert], to: usize) {
        let weights = self.frame.numbers(weights).to_vec();
        self.write(to, |_, y| y.fill(0.0));
        for (expert, weight) in experts.iter().zip(weights).filter(|(_, weight)| *weight != 0.0) {
            expert.work.iter().for_each(|work| self.work(work));
            self.write(to, |thread, y| {
                y.iter_mut().zip(thread.frame.numbers(expert.result)).for_each(|(y, x)| *y += x * weight);
            });
        }
    }

    /// The numbers that an op of burn computes; `None` if it fails.
    fn by_tensors(&self, op: &Op, inputs: &[(From, Vec<usize>)]) -> Option<Vec<f32>> {
        let data =
            |(from, dims): &(From, Vec<usize>)| TensorData::new(self.read(*from).to_vec(), dims.clone());
        (self.given.by_tensors)(op, inputs.iter().map(data).collect())
    }

    /// Calls `f` with a slot to write to.
    fn write(&mut self, slot: usize, f: impl FnOnce(&Self, &mut [f32])) {
        let mut y = self.frame.take(slot);
        f(self, &mut y);
        self.frame.put(slot, y);
    }

    /// Work that is divided among threads, if there are several.
    fn taken(&self, shared: Option<usize>) -> Option<&'a Taken> {
        let memory: &'a Memory = self.memory;
        shared.filter(|_| self.meeting.threads() > 1).and_then(|index| memory.taken.get(index))
    }

    /// Computes parts until there is none left. `f` gets the index of the first number of a part.
    fn parts(&mut self, taken: &Taken, mut f: impl FnMut(&mut Self, usize, &mut [f32])) {
        let len = taken.len;
        loop {
            let index = taken.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = taken.parts.get(index) else { return };
            // No thread waits here: each part is taken by one, and read after all have met.
            let mut y = part.write().unwrap_or_else(PoisonError::into_inner);
            f(self, index * len, &mut y);
        }
    }

    /// Copies all parts to a slot.
    fn gather(&mut self, taken: &Taken, to: usize) {
        let mut y = self.frame.take(to);
        for (part, y) in taken.parts.iter().zip(y.chunks_mut(taken.len.max(1))) {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            if part.len() == y.len() {
                y.copy_from_slice(&part);
            }
        }
        self.frame.put(to, y);
    }

    fn products(&mut self, products: &[Product]) {
        let mut is_divided = false;
        for product in products {
            match self.taken(product.shared) {
                Some(taken) => {
                    is_divided = true;
                    self.parts(taken, |thread, first, y| product.columns(thread.frame, first, y));
                }
                None => self.write(product.to, |thread, y| product.columns(thread.frame, 0, y)),
            }
        }
        if !is_divided {
            return;
        }
        self.meet();
        for product in products {
            if let Some(taken) = self.taken(product.shared) {
                self.gather(taken, product.to);
            }
        }
    }

    fn attend(&mut self, attend: &Attend) {
        let keys = match attend.keys[0] {
            Keys::Growing { .. } => self.given.past + 1,
            Keys::Held(index) => self.program.held.get(index).map_or(0, Held::count),
        };
        let taken = self.taken(Some(attend.shared)).filter(|_| attend.q.len * keys >= WORTH_OF_HEADS);
        let mut room = (mem::take(&mut self.frame.scores), mem::take(&mut self.frame.bias));
        match taken {
            Some(taken) => {
                self.parts(taken, |thread, first, y| {
                    thread.head(attend, first / y.len().max(1), &mut room, y);
                });
                self.meet();
                self.gather(taken, attend.to);
            }
            None => self.write(attend.to, |thread, y| {
                let values = y.len() / attend.heads;
                for (head, y) in y.chunks_exact_mut(values.max(1)).enumerate() {
                    thread.head(attend, head, &mut room, y);
                }
            }),
        }
        (self.frame.scores, self.frame.bias) = room;
    }

    /// Attention of one head.
    fn head(
        &self,
        attend: &Attend,
        head: usize,
        (scores, of_distance): &mut (Vec<f32>, Vec<f32>),
        y: &mut [f32],
    ) {
        let Given { constants, masks, buckets, past, .. } = self.given;
        let Attend { keys: [keys, values], times, .. } = attend;
        let width = attend.q.len / attend.heads;
        let (Some(keys), Some(values)) =
            (self.of_head(*keys, head / times, width), self.of_head(*values, head / times, y.len()))
        else {
            return;
        };
        let bias = match attend.bias {
            Some(Bias::Constant(index)) => constants.get(index).map(|bias| row(bias, head, past + 1)),
            Some(Bias::OfDistance { table, buckets: of }) => {
                of_distance.clear();
                if let (Some(table), Some(buckets)) = (self.program.tables.get(table), buckets.get(of)) {
                    let of_head = |bucket: &usize| table.row(*bucket).get(head).copied().unwrap_or(f32::NAN);
                    of_distance.extend(buckets.iter().map(of_head));
                }
                Some(of_distance.as_slice())
            }
            None => None,
        };
        let mask = match attend.mask {
            Some(Mask::Constant(index)) => masks.get(index),
            Some(Mask::Held(index)) => self.program.held_masks.get(index),
            None => None,
        };
        let query = Query {
            q: row(self.frame.numbers(attend.q), head, width),
            scale: attend.scale,
            softcap: attend.softcap,
            mask: mask.map(Vec::as_slice),
            bias,
            sink: attend.sinks.as_ref().and_then(|sinks| sinks.get(head)).copied(),
        };
        kernels::attend(query, [keys, values], scores, y);
    }

    /// The keys or the values of a head, whose features are `width`.
    fn of_head(&self, keys: Keys, head: usize, width: usize) -> Option<OfHead<'_>> {
        match keys {
            Keys::Growing { buffer, latest } => {
                let latest = row(self.frame.numbers(latest), head, width);
                Some(self.given.buffers.get(buffer)?.of_head(head, self.given.past, latest))
            }
            Keys::Held(index) => Some(self.program.held.get(index)?.of_head(head)),
        }
    }

    /// Waits for the other threads.
    fn meet(&mut self) {
        self.frame.met += 1;
        self.meeting.wait(self.frame.met);
    }
}

impl Product {
    /// The numbers of the result from `first` on.
    fn columns(&self, frame: &Frame, first: usize, y: &mut [f32]) {
        self.weight.columns(frame.numbers(self.from), first, self.bias.as_deref(), y);
        if let Some(activation) = self.then {
            kernels::activate(activation, y);
        }
    }
}

/// A row of a matrix whose rows have this length.
fn row(numbers: &[f32], index: usize, len: usize) -> &[f32] {
    numbers.get(index * len..(index + 1) * len).unwrap_or_default()
}
