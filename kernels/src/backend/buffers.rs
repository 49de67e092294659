//! Memory of tensors that is used again. With new memory for every result, one thread zeroes it and has the system map its pages
//! while the others wait.
//!
//! A kernel that has read a tensor for the last time gives its memory back, and the next result of that size takes it. What is
//! kept never adds to the peak: if no kept buffer fits a result, as much as it needs is freed first, and tensors that burn's own
//! ops have made are not kept.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The fewest numbers that are worth keeping. The allocator has smaller buffers at hand.
const FEWEST: usize = 1 << 12;

static KEPT: Mutex<Kept> = Mutex::new(Kept::new());

/// The capacity of a buffer that is made here leaves the remainder 61 when it is divided by 64, which tells it from the buffers of
/// burn's own ops. If those were kept, too, the kept memory would grow without a bound.
const MARK: [usize; 2] = [61, 64];

/// The smallest capacity with that remainder that has room for `len` numbers.
fn marked(len: usize) -> usize {
    let [rest, of] = MARK;
    len + (rest + of - len % of) % of
}

/// Whether a buffer was made here.
fn is_ours(buffer: &Vec<f32>) -> bool {
    buffer.capacity() >= FEWEST && buffer.capacity() % MARK[1] == MARK[0]
}

/// `len` zeros in a new buffer.
fn fresh(len: usize) -> Vec<f32> {
    if len < FEWEST {
        return vec![0.0; len];
    }
    // Memory that the system hands out as zeros is not zeroed again.
    let mut buffer = vec![0.0; marked(len)];
    buffer.truncate(len);
    buffer
}

/// The buffers that are kept, in the order in which they were given back.
struct Kept {
    buffers: VecDeque<Vec<f32>>,
    /// How many numbers were freed beyond those that results needed.
    credit: usize,
    /// How many numbers were taken and not given back.
    taken: usize,
}

impl Kept {
    const fn new() -> Self {
        Self { buffers: VecDeque::new(), credit: 0, taken: 0 }
    }

    /// A buffer with room for `len` numbers and at most an eighth more. If there is none, the oldest buffers are returned, to
    /// be freed, until it fits where they were.
    fn take(&mut self, len: usize) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let room = marked(len);
        let fits = |buffer: &Vec<f32>| (room..=room + room / 8).contains(&buffer.capacity());
        // The newest one that fits is most likely still in a cache.
        if let Some(buffer) = self.buffers.iter().rposition(fits).and_then(|i| self.buffers.remove(i)) {
            self.taken += buffer.capacity();
            return (Some(buffer), Vec::new());
        }
        self.taken += room;
        let mut old = Vec::new();
        while self.credit < room
            && let Some(buffer) = self.buffers.pop_front()
        {
            self.credit += buffer.capacity();
            old.push(buffer);
        }
        self.credit = self.credit.saturating_sub(room);
        (None, old)
    }

    /// Keeps a buffer, or returns it if more would be kept than was taken: a buffer of burn's own ops may have the mark by chance.
    fn give(&mut self, buffer: Vec<f32>) -> Option<Vec<f32>> {
        let Some(left) = self.taken.checked_sub(buffer.capacity()) else { return Some(buffer) };
        self.taken = left;
        self.buffers.push_back(buffer);
        None
    }
}

/// `len` numbers, which are arbitrary: the caller writes all of them.
pub fn take(len: usize) -> Vec<f32> {
    let Some(mut buffer) = kept_for(len) else { return fresh(len) };
    buffer.resize(len, 0.0);
    buffer
}

/// `len` zeros.
pub fn take_zeros(len: usize) -> Vec<f32> {
    let Some(mut buffer) = kept_for(len) else { return fresh(len) };
    buffer.clear();
    buffer.resize(len, 0.0);
    buffer
}

fn kept_for(len: usize) -> Option<Vec<f32>> {
    if len < FEWEST {
        return None;
    }
    // Others need not wait until old buffers are back with the system.
    let (found, _old) = with_kept(|kept| kept.take(len));
    found
}

/// Gives back a buffer whose numbers are no longer needed.
pub fn give(mut buffer: Vec<f32>) {
    if !is_ours(&buffer) {
        return;
    }
    // A kernel that does not write all numbers of its result is found by the tests.
    if cfg!(debug_assertions) {
        buffer.fill(f32::NAN);
    }
    let _too_much = with_kept(|kept| kept.give(buffer));
}

/// Gives all memory that is kept back to the system.
pub fn release() {
    let _kept = with_kept(|kept| std::mem::replace(kept, Kept::new()));
}

fn with_kept<T>(f: impl FnOnce(&mut Kept) -> T) -> T {
    f(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}
