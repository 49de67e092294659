//! Work that is divided among threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::plumbing::{Producer, ProducerCallback};
use rayon::prelude::*;

/// How many parts there are for each thread, so that one that is late takes fewer.
const PARTS: usize = 4;
/// How often a thread looks for the others before it lets other programs run in between.
const LOOKS: usize = 200;

/// Does something with all items of a parallel iterator, as [`ParallelIterator::for_each`] does, except that the caller does
/// not fall asleep while others compute the last parts: in a training step of a small model it would do so hundreds
/// of times, and waking it takes longer than a part.
pub trait Parallel: IndexedParallelIterator {
    /// Calls `f` with every item.
    fn in_parallel(self, f: impl Fn(Self::Item) + Sync + Send) {
        self.in_parallel_init(|| (), |(), item| f(item));
    }

    /// Calls `f` with every item and with what `init` has made for one of the items before it, or for this one.
    fn in_parallel_init<T>(
        self,
        init: impl Fn() -> T + Sync + Send,
        f: impl Fn(&mut T, Self::Item) + Sync + Send,
    ) {
        let (len, threads) = (self.len(), rayon::current_num_threads());
        // Only a thread of the pool can do what it has left to the others.
        if threads < 2 || len < 2 || rayon::current_thread_index().is_none() {
            self.for_each_init(init, f);
            return;
        }
        let each = |items: &mut dyn Iterator<Item = Self::Item>| {
            let mut state = init();
            items.for_each(|item| f(&mut state, item));
        };
        self.with_producer(Divided { len, parts: (threads * PARTS).min(len), each });
    }
}

impl<I: IndexedParallelIterator> Parallel for I {}

/// Divides the items of a producer.
struct Divided<F> {
    len: usize,
    parts: usize,
    each: F,
}

/// Counts a part when it is done, even if it has panicked.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl<T, F: Fn(&mut dyn Iterator<Item = T>) + Sync> ProducerCallback<T> for Divided<F> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, producer: P) {
        let Self { len, parts, each } = &self;
        let done = AtomicUsize::new(0);
        rayon::in_place_scope(|scope| {
            let mut rest = producer;
            // From the last one on, since the caller goes on with what it has left last, and others begin with the first.
            for part in (1..*parts).rev() {
                let (before, items) = rest.split_at(len * part / parts);
                rest = before;
                let done = &done;
                scope.spawn(move |_| {
                    let _done = Done(done);
                    each(&mut items.into_iter());
                });
            }
            each(&mut rest.into_iter());
            let mut looks = 0;
            while done.load(Ordering::Acquire) + 1 < *parts {
                if rayon::yield_now() == Some(rayon::Yield::Executed) {
                    continue;
                }
                looks += 1;
                if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        });
    }
}
