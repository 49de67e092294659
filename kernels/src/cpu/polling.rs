//! Threads that look for work instead of falling asleep.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many calls are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// How many threads are looking for work.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// For how long a thread that finds no work goes on looking: while a call is running, which may do something that is not
/// divided among threads, and after it, since the next one often follows at once.
const DURING: Duration = Duration::from_millis(2);
const AFTER: Duration = Duration::from_micros(200);

thread_local! {
    /// Whether this thread is looking for work.
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// A call that is running.
pub struct Call;

impl Call {
    /// Tells the other threads to look for work.
    pub fn begin() -> Self {
        // A thread that waits for a part of another call's work could begin to look here, and would notice late that the part
        // is done. So only the first of several calls tells threads to look.
        let is_only = RUNNING.fetch_add(1, Ordering::Relaxed) == 0;
        let caller = rayon::current_thread_index();
        if is_only && caller.is_some() && LOOKING.load(Ordering::Relaxed) == 0 {
            rayon::spawn_broadcast(move |context| {
                if Some(context.index()) != caller {
                    look();
                }
            });
        }
        Self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does what other threads leave to this one, until there is nothing for a while.
fn look() {
    if IS_LOOKING.replace(true) {
        return;
    }
    LOOKING.fetch_add(1, Ordering::Relaxed);
    let mut idle = Instant::now();
    loop {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            idle = Instant::now();
            continue;
        }
        let limit = if RUNNING.load(Ordering::Relaxed) > 0 { DURING } else { AFTER };
        if idle.elapsed() > limit {
            break;
        }
        // Other programs may need the processor.
        std::thread::yield_now();
    }
    LOOKING.fetch_sub(1, Ordering::Relaxed);
    IS_LOOKING.set(false);
}
