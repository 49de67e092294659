//! The choice of instructions at run time, and how work is divided among threads.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::parallel::Parallel;

/// How many numbers the loops of kernels work on at a time. That is a register of AVX-512, two of AVX2 and
/// four of NEON; the order of sums follows from it, so it is the same everywhere.
pub const LANES: usize = 16;

/// How many numbers a thread takes at a time where each is computed by itself: 64 KiB, which fit the cache of
/// a core together with what is read.
pub const SHARE: usize = 16 * 1024;

/// Work that is compiled once for each instruction set.
pub trait Task {
    /// The result of the task, `()` if it writes to a slice.
    type Output;

    /// Does the work. The implementation must be `#[inline(always)]`, as must everything that it calls in a
    /// loop: a function that is not inlined is compiled for the oldest processor of the target, where for
    /// example `mul_add` is a call.
    fn run(self) -> Self::Output;
}

/// Runs a task with the widest instructions that the processor has.
pub fn run<T: Task>(task: T) -> T::Output {
    struct Run<T>(T);

    impl<T: Task> WithSimd for Run<T> {
        type Output = T::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> T::Output {
            self.0.run()
        }
    }

    dispatch(Run(task))
}

/// Compiles a task for each instruction set and runs it with the widest.
pub fn dispatch<W: WithSimd>(task: W) -> W::Output {
    // Without a feature that burn does not enable, pulp's own choice knows nothing between SSE2 and AVX-512.
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            // Everything that is inlined into the task is compiled for this instruction set.
            return Simd::vectorize(simd, task);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Simd::vectorize(simd, task);
        }
    }
    Arch::new().dispatch(task)
}

/// Whether the processor has the instructions that these kernels need to be fast. Without a fused
/// multiply-add they would be slower than what burn does.
pub fn is_available() -> bool {
    struct IsAvailable;

    impl WithSimd for IsAvailable {
        type Output = bool;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> bool {
            !S::IS_SCALAR
        }
    }

    dispatch(IsAvailable)
}

/// How many rows of this width a thread takes at a time, at least one.
pub fn rows_of_share(width: usize) -> usize {
    // A row that is wider than a share is one by itself.
    (SHARE / width.max(1)).max(1)
}

/// Calls `f` with equal shares of `x` and `y`, which have the same length, on all threads.
pub fn share(x: &[f32], y: &mut [f32], f: impl Fn(&[f32], &mut [f32]) + Sync) {
    // Waking another thread takes longer than a share.
    if y.len() <= 2 * SHARE {
        f(x, y);
    } else {
        x.par_chunks(SHARE).zip(y.par_chunks_mut(SHARE)).in_parallel(|(x, y)| f(x, y));
    }
}

/// Calls `f` with equal shares of `y` on all threads.
pub fn share_in_place(y: &mut [f32], f: impl Fn(&mut [f32]) + Send + Sync) {
    if y.len() <= 2 * SHARE {
        f(y);
    } else {
        y.par_chunks_mut(SHARE).in_parallel(f);
    }
}
