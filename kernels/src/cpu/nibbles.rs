//! Converts integers of four bits with an instruction that the compiler does not choose by itself: AVX-512 looks up 16 numbers at
//! once in a table of 16, by the lower four bits of each index. That takes about half the instructions of subtracting and converting.

#[cfg(target_arch = "x86_64")]
pub use with_tables::Tables;
#[cfg(not(target_arch = "x86_64"))]
pub use without_tables::Tables;

#[cfg(target_arch = "x86_64")]
mod with_tables {
    use std::arch::x86_64::{__m128i, __m512, __m512i};

    use pulp::cast;
    use pulp::x86::V4;

    use crate::backend::packed::{HALF, WIDTH};

    /// The instructions that look numbers up in a table.
    #[derive(Clone, Copy)]
    pub struct Tables(V4);

    impl Tables {
        /// `None` if the processor does not have them.
        #[inline(always)]
        pub fn new() -> Option<Self> {
            V4::try_new().map(Self)
        }

        /// The integers of a row of a panel, as [`super::super::packed::int4`] gives them.
        #[inline(always)]
        pub fn int4(self, row: &[u8; HALF]) -> [f32; WIDTH] {
            const NUMBERS: [f32; 16] =
                [-8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
            let simd = self.0.avx512f;
            let numbers: __m512 = cast(NUMBERS);
            let look_up = |pairs: __m512i| -> [f32; 16] { cast(simd._mm512_permutexvar_ps(pairs, numbers)) };
            let pairs: [__m128i; 2] = cast(*row);
            let pairs = pairs.map(|pairs| simd._mm512_cvtepu8_epi32(pairs));
            // The instruction ignores the bits above the lowest four.
            let [low, low_next] = pairs.map(look_up);
            let [high, high_next] = pairs.map(|pairs| look_up(simd._mm512_srli_epi32::<4>(pairs)));
            cast([low, low_next, high, high_next])
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod without_tables {
    use crate::backend::packed::{HALF, WIDTH};

    /// There are no such instructions.
    #[derive(Clone, Copy)]
    pub enum Tables {}

    impl Tables {
        /// Always `None`.
        pub fn new() -> Option<Self> {
            None
        }

        /// Never called.
        pub fn int4(self, _: &[u8; HALF]) -> [f32; WIDTH] {
            match self {}
        }
    }
}
