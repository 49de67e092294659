//! Work that uses many threads, one after the other.

/// Calls `f` on one of the threads of burn's CPU backend, if that is compiled in. Each op that is divided
/// among these threads would otherwise wake one of them and wait until it is done, which takes longer than
/// multiplying a row with a small matrix. No result depends on it.
pub fn on_threads<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    #[cfg(feature = "flex")]
    return rayon::scope(|_| f());
    #[cfg(not(feature = "flex"))]
    return f();
}

/// The number of threads among which the ops of burn's CPU backend are divided; 1 if it is not compiled in. They are
/// running afterwards, so that the memory that each of them takes for itself is no longer among what is free.
pub fn threads() -> usize {
    #[cfg(feature = "flex")]
    {
        static RUNNING: std::sync::Once = std::sync::Once::new();
        // The first allocation of a thread reserves address space for all that follow.
        RUNNING.call_once(|| drop(rayon::broadcast(|_| vec![0u8; 1 << 10])));
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "flex"))]
    1
}

/// Makes the calling thread one of the threads of burn's CPU backend, in place of one of its own. This is for a program
/// whose ops are all called by this thread: it then wakes one thread fewer for each op, and does a share of the work
/// instead of waiting. It can be called once, before the first op; later calls change nothing.
pub fn join_threads() {
    #[cfg(feature = "flex")]
    {
        // The number that rayon would choose.
        let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
        let count = named.filter(|count| *count > 0);
        let count = count.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
        // With one thread there is none to join. An error means that the threads have been started before, which is
        // as good, though slower.
        if let Some(count) = count.filter(|count| *count > 1) {
            let _ = set_threads(count);
        }
    }
}

/// Divides the ops of burn's CPU backend among this many threads, of which the calling one is one, as with
/// [`join_threads`]. It can be called once, before the first op.
///
/// # Errors
/// An op has been divided before, the system allows no more threads, or this backend is not compiled in.
pub fn set_threads(count: usize) -> Result<(), String> {
    #[cfg(feature = "flex")]
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
        // With a single thread, work of another thread would wait until this one has nothing else to do.
        let pool = if count > 1 { pool.use_current_thread() } else { pool };
        pool.build_global().map_err(|error| error.to_string())
    }
    #[cfg(not(feature = "flex"))]
    return Err(format!("no op would be divided among {count} threads"));
}
