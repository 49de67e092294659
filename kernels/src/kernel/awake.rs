//! Threads that do not fall asleep between the ops of a model.

/// Calls `f`, between whose ops the threads of burn's CPU backend look for work instead of falling asleep, if the calling
/// thread is one of them. Waking a thread takes as long as a small op. No result depends on it.
pub fn awake<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "flex")]
    let _call = crate::cpu::polling::Call::begin();
    f()
}
