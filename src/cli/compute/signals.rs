//! Ctrl-C and the system's request to terminate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const SIGINT: usize = 2;
/// The number of the request to terminate.
pub const SIGTERM: usize = 15;

/// What a system sends that limits the size of files (`ulimit -f`) when a file would become larger.
const SIGXFSZ: i32 = 25;

/// Lets a write beyond the limit on the size of files fail, as it fails on a full disk, instead of ending the process
/// without a word.
pub fn survive_file_limit() {
    // A system without this signal has no such limit either.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Catches Ctrl-C and the request to terminate. A second one ends the process at once if it comes a second or
/// more later; before that it counts as the first one, because programs such as `timeout` send the same
/// signal to the process and to its group.
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Begins to catch signals, until the process ends.
    pub fn listen() -> Self {
        // A handler of signals may not allocate or lock; storing a number is among the few things that it
        // may do.
        let caught = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
            let number = signal as i32;
            // A system without signals has none to catch.
            let _ = signal_hook::flag::register_conditional_shutdown(number, code, Arc::clone(&again));
            let _ = signal_hook::flag::register_usize(number, Arc::clone(&caught), signal);
        }
        let first = Arc::clone(&caught);
        // Without this thread, a second signal would have no effect.
        let _ = std::thread::Builder::new().spawn(move || {
            // The handlers only set a number, which wakes no thread.
            while first.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
            // A person who wants to end it at once presses the keys again; a copy of the signal comes
            // earlier.
            std::thread::sleep(Duration::from_secs(1));
            again.store(true, Ordering::SeqCst);
        });
        Self(caught)
    }

    /// The number of the signal that was caught; 0 for none.
    pub fn caught(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
