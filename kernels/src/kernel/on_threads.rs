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

/// Divides the ops of burn's CPU backend among this many threads. It can be called once, before the first op.
///
/// # Errors
/// An op has been divided before, the system allows no more threads, or this backend is not compiled in.
pub fn set_threads(count: usize) -> Result<(), String> {
    #[cfg(feature = "flex")]
    return rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|error| error.to_string());
    #[cfg(not(feature = "flex"))]
    return Err(format!("no op would be divided among {count} threads"));
}
