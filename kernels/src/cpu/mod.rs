//! Kernels for one processor: functions on slices of single precision, which know nothing of burn.
//!
//! They are written once, as loops over arrays of [`LANES`] numbers that the compiler turns into the widest
//! instructions that the processor has ([`simd::run`]). Threads divide the result and never a sum, so the
//! bits of a result do not depend on the number of threads. They may differ between instruction sets.

pub mod activation;
pub mod math;
pub mod product;
pub mod simd;

pub use simd::LANES;
