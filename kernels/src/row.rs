//! Kernels for one row of features on slices, for a program that decodes token by token without tensors: the same bits
//! as those of the ops on tensors of burn's CPU backend.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use burn::backend::{
    BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind, TensorMetadata,
};
use burn::prelude::*;
use burn_flex::FlexTensor;

use crate::backend::flex_tensor::{contiguous, is_ours, numbers, owned};
use crate::backend::packed::Numbers;
pub use crate::backend::{Activation, Norm, Pairing};
use crate::cpu::attention::{Scores, Sizes, Table};
use crate::cpu::panel::Rows;
use crate::cpu::rotary::Angles;
use crate::cpu::{activation, decode_attention, gemm_row, norm as norms, packed, rotary};
use crate::kernel::{Appended, Packed};

/// The norm of `x [D]` with `weight [D]` and `bias [D]`, which is empty if there is none.
pub fn norm(norm: Norm, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32]) {
    norms::norm(norm, x, weight, bias, y);
}

/// Applies an activation to all numbers in place.
pub fn activate(activation: Activation, y: &mut [f32]) {
    activation::activate_in_place(activation, y);
}

/// Turns the first features of each head, `[H, D]`, by angles whose cosines and sines are given, `[pairs]`.
pub fn rotate(x: &[f32], width: usize, [cos, sin]: [&[f32]; 2], pairing: Pairing, y: &mut [f32]) {
    let heads = x.len() / width.max(1);
    let sizes = Sizes { heads, queries: 1, keys: 1, width, values: width };
    let x = Table { numbers: x, strides: [0, width, width] };
    rotary::rotate(x, sizes, Angles { cos, sin, pairs: cos.len() }, pairing, y);
}

/// The query of one head and what attention adds to its scores.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The query, `[D]`.
    pub q: &'a [f32],
    /// The factor on its products with keys.
    pub scale: f32,
    /// Bounds the scaled products.
    pub softcap: Option<f32>,
    /// Not 0 where a key is hidden, `[K]`.
    pub mask: Option<&'a [u8]>,
    /// Added to the scores, `[K]`.
    pub bias: Option<&'a [f32]>,
    /// The score of one more key, whose value is zero.
    pub sink: Option<f32>,
}

/// Keys or values that one head attends to, from [`Buffer::of_head`] or [`Held::of_head`].
#[derive(Clone, Copy, Debug)]
pub struct OfHead<'a>(decode_attention::Kept<'a>);

impl OfHead<'_> {
    /// The number of positions.
    pub fn count(&self) -> usize {
        self.0.count()
    }
}

/// Attention of one query to the keys and values of a head. `row` is memory that the next call reuses.
pub fn attend(query: Query<'_>, [keys, values]: [OfHead<'_>; 2], row: &mut Vec<f32>, y: &mut [f32]) {
    let (width, values_width) = (keys.0.all.width, values.0.all.width);
    let sizes = Sizes { heads: 1, queries: 1, keys: keys.count(), width, values: values_width };
    let scores = Scores {
        scale: query.scale,
        softcap: query.softcap,
        // The last query sees all keys.
        is_causal: false,
        mask: query.mask.map(|numbers| Table { numbers, strides: [0; 3] }),
        bias: query.bias.map(|numbers| Table { numbers, strides: [0; 3] }),
        sinks: query.sink.as_ref().map(std::slice::from_ref),
        dropout: None,
    };
    decode_attention::attention_of_one(0, query.q, [keys.0, values.0], sizes, &scores, row, y);
}

impl Packed {
    /// The number of inputs and of outputs.
    pub fn sizes(&self) -> [usize; 2] {
        [self.0.inputs(), self.0.outputs()]
    }

    /// How many outputs are computed together.
    pub fn panel(&self) -> usize {
        self.0.panel()
    }

    /// The outputs from `first` on, which begins a panel, as many as `y` has, for one row `x [in]`. The bias is that of
    /// all outputs.
    pub fn columns(&self, x: &[f32], first: usize, bias: Option<&[f32]>, y: &mut [f32]) {
        let panel = first / self.panel();
        match self.0.numbers() {
            Numbers::F32(numbers) => gemm_row::columns(x, numbers, panel, bias, y),
            _ => packed::columns_of_row(x, &self.0, panel, bias, y),
        }
    }

    /// A row of a packed table.
    pub fn row(&self, index: usize, y: &mut [f32]) {
        y.iter_mut().enumerate().for_each(|(k, y)| *y = self.0.number(k, index));
    }
}

/// The numbers of a tensor of burn's CPU backend in single precision, if they are in order.
fn flex<const D: usize>(x: Tensor<D>) -> Result<FlexTensor, Box<Tensor<D>>> {
    let x = x.into_dispatch();
    match x.kind {
        DispatchTensorKind::Flex(BackendTensor::Float(ours)) if is_ours(&ours) && ours.is_contiguous() => {
            Ok(ours)
        }
        kind => Err(Box::new(Tensor::from_dispatch(DispatchTensor { kind, ..x }))),
    }
}

/// A table of rows `[V, D]`.
#[derive(Clone, Debug)]
pub struct Lookup(FlexTensor);

impl Lookup {
    /// The table in a tensor; `None` if it is not one of burn's CPU backend in single precision.
    pub fn new(table: Tensor<2>) -> Option<Self> {
        flex(table).ok().map(Self)
    }

    /// The numbers of rows and of columns.
    pub fn sizes(&self) -> [usize; 2] {
        let shape = self.0.shape();
        [shape[0], shape[1]]
    }

    /// A row, empty if there is none with this index.
    pub fn row(&self, index: usize) -> &[f32] {
        let [_, width] = self.sizes();
        numbers(&self.0).get(index * width..(index + 1) * width).unwrap_or_default()
    }
}

/// Keys or values of one sequence, `[1, H, capacity, D]`, taken out of the cache for a step.
#[derive(Debug)]
pub struct Buffer {
    tensor: FlexTensor,
    heads: usize,
    capacity: usize,
    width: usize,
}

impl Buffer {
    /// Takes the buffer of `len` positions out of the cache, with room for one more. `None` if it has not one sequence of
    /// burn's CPU backend in single precision, or something else uses its memory; it then stays in the cache.
    pub fn take(from: &mut Appended<4>, len: usize) -> Option<Self> {
        let buffer = from.take_with_room(len)?;
        let [batch, heads, capacity, width] = buffer.dims();
        let mut tensor = match flex(buffer) {
            Ok(tensor) => tensor,
            Err(other) => {
                from.put_back(*other);
                return None;
            }
        };
        if batch != 1 || owned(&mut tensor).is_none() {
            Self { tensor, heads, capacity, width }.put_back(from);
            return None;
        }
        Some(Self { tensor, heads, capacity, width })
    }

    /// Puts the buffer back into the cache.
    pub fn put_back(self, to: &mut Appended<4>) {
        let kind = DispatchTensorKind::Flex(BackendTensor::Float(self.tensor));
        let autodiff = DispatchAutodiffContext::Disabled;
        to.put_back(Tensor::from_dispatch(DispatchTensor { kind, autodiff }));
    }

    /// The heads of a position and the features of a head.
    pub fn sizes(&self) -> [usize; 2] {
        [self.heads, self.width]
    }

    /// Writes the features of all heads `[H, D]` at a position.
    pub fn write(&mut self, position: usize, x: &[f32]) {
        let (capacity, width) = (self.capacity, self.width);
        let Some(all) = owned(&mut self.tensor) else { return };
        for (head, x) in x.chunks_exact(width.max(1)).enumerate() {
            let at = (head * capacity + position) * width;
            if let Some(to) = all.get_mut(at..at + width) {
                to.copy_from_slice(x);
            }
        }
    }

    /// The first `past` positions of a head, and one more that has not been written yet.
    pub fn of_head<'a>(&'a self, head: usize, past: usize, latest: &'a [f32]) -> OfHead<'a> {
        let numbers = numbers(&self.tensor).get(head * self.capacity * self.width..).unwrap_or_default();
        let all = Rows { numbers, stride: self.width, count: past, width: self.width };
        OfHead(decode_attention::Kept { all, latest: Some(latest) })
    }
}

/// Keys or values of one sequence that stay the same in every step, such as those of an encoder's output: `[1, H, S, D]`.
#[derive(Clone, Debug)]
pub struct Held {
    tensor: FlexTensor,
    heads: usize,
    count: usize,
    width: usize,
}

impl Held {
    /// A copy of a tensor, by heads; `None` if it has not one sequence of burn's CPU backend in single precision.
    pub fn new(x: Tensor<4>) -> Option<Self> {
        let [1, heads, count, width] = x.dims() else { return None };
        let tensor = match x.into_dispatch().kind {
            DispatchTensorKind::Flex(BackendTensor::Float(ours)) if is_ours(&ours) => contiguous(ours),
            _ => return None,
        };
        Some(Self { tensor, heads, count, width })
    }

    /// The heads and the features of a head.
    pub fn sizes(&self) -> [usize; 2] {
        [self.heads, self.width]
    }

    /// The number of positions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All positions of a head.
    pub fn of_head(&self, head: usize) -> OfHead<'_> {
        let numbers = numbers(&self.tensor).get(head * self.count * self.width..).unwrap_or_default();
        let all = Rows { numbers, stride: self.width, count: self.count, width: self.width };
        OfHead(decode_attention::Kept { all, latest: None })
    }
}

/// Where threads that work on the same step wait for each other.
#[derive(Debug)]
pub struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    /// Whether a thread has panicked. The others then stop waiting, since it will not arrive.
    is_off: AtomicBool,
}

/// How often a thread looks for the others before it lets other programs run in between: for about as long as a product
/// takes.
const LOOKS: usize = 4_000;

impl Meeting {
    fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), is_off: AtomicBool::new(false) }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Waits until all threads have called this for the `round`th time, counted from 1. What they have written before is
    /// visible afterwards.
    pub fn wait(&self, round: usize) {
        if self.threads < 2 {
            return;
        }
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0;
        while self.arrived.load(Ordering::Acquire) < round * self.threads
            && !self.is_off.load(Ordering::Relaxed)
        {
            if looks < LOOKS {
                looks += 1;
                std::hint::spin_loop();
            } else {
                // The processor is busy with something else, so that another thread may not be running.
                std::thread::yield_now();
            }
        }
    }
}

/// Ends a meeting when a thread panics.
struct Attendance<'a>(&'a Meeting);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_off.store(true, Ordering::Relaxed);
        }
    }
}

/// Calls `f` on every thread of burn's CPU backend at the same time, with its index, so that they can wait for each other;
/// with one thread, only on the calling one. Returns false without calling `f` if the number of threads is not `threads`, or
/// if another call is still running: two such calls on the same threads would wait for each other forever.
pub fn together(threads: usize, f: impl Fn(usize, &Meeting) + Sync) -> bool {
    static ONE: Mutex<()> = Mutex::new(());

    if threads < 2 {
        f(0, &Meeting::new(1));
        return true;
    }
    // A caller may be in a pool of its own.
    if rayon::current_num_threads() != threads {
        return false;
    }
    // A thread that panicked in a meeting has left nothing half done.
    let _held = match ONE.try_lock() {
        Ok(held) => held,
        Err(TryLockError::Poisoned(held)) => held.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    let meeting = Meeting::new(threads);
    rayon::broadcast(|context| {
        let _attendance = Attendance(&meeting);
        f(context.index(), &meeting);
    });
    true
}
