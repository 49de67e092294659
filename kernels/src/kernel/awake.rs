//! Threads that do not fall asleep between the ops of a model.

/// Until the result is dropped, the threads of burn's CPU backend look for work between ops instead of falling asleep, if the
/// calling thread is one of them. Waking a thread takes as long as a small op. No number depends on it.
#[must_use = "threads fall asleep again when it is dropped"]
pub fn awake() -> impl Sized {
    #[cfg(feature = "flex")]
    return crate::cpu::polling::Call::begin();
}
