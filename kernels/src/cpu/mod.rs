//! Kernels for one processor: functions on slices of single precision, which know nothing of burn.
//!
//! They are written once, as loops over arrays of [`LANES`] numbers that the compiler turns into the widest
//! instructions that the processor has ([`simd::run`]). Threads divide the result and never a sum, so the
//! bits of a result do not depend on the number of threads. They may differ between instruction sets.

pub mod activation;
pub mod adamw;
mod ahead;
pub mod attention;
pub mod copy;
pub mod cross_entropy;
pub mod decode_attention;
pub mod dropout;
pub mod gemm;
pub mod gemm_block;
pub mod gemm_row;
pub mod math;
mod nibbles;
pub mod norm;
pub mod packed;
pub mod panel;
mod parallel;
pub mod polling;
pub mod rotary;
pub mod simd;
pub mod sum_exp;
pub mod sums;
pub mod tile;

pub use simd::LANES;
