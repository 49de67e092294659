//! Ctrl-C, the system's request to terminate, and the end of a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cli::outcome::Exit;
use crate::read;

const SIGHUP: usize = 1;
const SIGINT: usize = 2;
const SIGTERM: usize = 15;

/// What a system sends that limits the size of files (`ulimit -f`) when a file would become larger.
const SIGXFSZ: i32 = 25;

/// Lets a write beyond the limit on the size of files fail, as it fails on a full disk, instead of ending the process
/// without a word.
pub fn survive_file_limit() {
    // A system without this signal has no such limit either.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Catches Ctrl-C, the request to terminate and the end of the terminal. A second one ends the process at once if it comes
/// a second or more later; before that it counts as the first one, because programs such as `timeout` send the same
/// signal to the process and to its group. The end of a terminal is no key that is pressed again: however often the shell
/// and the system send it, it counts once.
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Begins to catch signals, until the process ends.
    pub fn listen() -> Self {
        // A handler of signals may not allocate or lock; storing a number is among the few things that it
        // may do.
        let caught = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let (number, code) = (signal as i32, i32::from(exit(signal).code()));
            // A system without signals has none to catch.
            let _ = signal_hook::flag::register_conditional_shutdown(number, code, Arc::clone(&again));
            let _ = signal_hook::flag::register_usize(number, Arc::clone(&caught), signal);
        }
        if read::system("/proc/self/status").is_some_and(|status| !ignores(&status, SIGHUP)) {
            let _ = signal_hook::flag::register_usize(SIGHUP as i32, Arc::clone(&caught), SIGHUP);
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

    /// Whether a signal was caught.
    pub fn is_caught(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// How a command ends that the signal has interrupted.
    pub fn exit(&self) -> Exit {
        exit(self.0.load(Ordering::SeqCst))
    }
}

/// How a command ends that this signal has interrupted.
fn exit(signal: usize) -> Exit {
    match signal {
        SIGHUP => Exit::HungUp,
        SIGTERM => Exit::Terminated,
        _ => Exit::Interrupted,
    }
}

/// Whether a process ignores a signal, by what Linux says of its state: `nohup` lets it ignore the end of the terminal,
/// and a handler would undo that. Where nothing is known, the signal is left as it is.
pub fn ignores(status: &str, signal: usize) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    // The lowest bit is that of the signal 1.
    mask.is_none_or(|mask| signal.checked_sub(1).is_none_or(|bit| mask >> bit & 1 == 1))
}
