//! The memory that the CPU backend keeps for later results.

/// Gives the memory that burn's CPU backend keeps for later results back to the system. The next passes are slower until it is
/// there again; no number depends on it. A program that trains and then does something else may want to call it in between.
pub fn release_buffers() {
    #[cfg(feature = "flex")]
    crate::backend::buffers::release();
}
