//! Matrices of weights in the order in which products read them, also in fewer bits.

use super::pages::Pages;

/// How many outputs a panel has: their sums, of several rows, stay in registers.
pub const WIDTH: usize = 64;
/// How many outputs a panel of numbers in single precision has: with this width, a part of it fits the nearest cache
/// of a core.
pub const NARROW: usize = 32;
/// How many inputs share a scale, as in the formats Q8_0 and Q4_0 of llama.cpp.
pub const BLOCK: usize = 32;

/// The element types in which weights can be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightType {
    /// Single precision. Nothing is rounded, and products have the same bits as with the weights as they were.
    F32,
    /// The upper 16 bits of single precision, rounded to the nearest.
    Bf16,
    /// Integers from -127 to 127, times a scale for each block of 32 inputs of an output.
    Int8,
    /// Integers from -8 to 7, times a scale for each block of 32 inputs of an output.
    Int4,
}

impl WeightType {
    /// How many numbers, or bytes with two of them, a packed matrix `[in, out]` has, and how many scales. All panels and
    /// blocks have the same size in memory, so the last ones are filled up.
    fn sizes(self, inputs: usize, outputs: usize) -> [usize; 2] {
        let count = outputs.div_ceil(WIDTH) * WIDTH * inputs.div_ceil(BLOCK) * BLOCK;
        match self {
            Self::F32 => [outputs.div_ceil(NARROW) * NARROW * inputs, 0],
            Self::Bf16 => [count, 0],
            Self::Int8 => [count, count / BLOCK],
            Self::Int4 => [count / 2, count / BLOCK],
        }
    }

    /// The bytes of a packed matrix `[in, out]`, scales included.
    pub fn bytes(self, inputs: usize, outputs: usize) -> usize {
        let [numbers, scales] = self.sizes(inputs, outputs);
        let size = match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
            Self::Int8 | Self::Int4 => 1,
        };
        size * numbers + 2 * scales
    }
}

/// The numbers of packed weights, panel by panel. In a panel, the numbers of all its outputs for the first
/// input come first, then those for the second one, and so on. Scales are the upper halves of numbers in
/// single precision, for each block those of all outputs of the panel.
#[derive(Debug)]
pub enum Numbers {
    /// The numbers themselves, in panels of [`NARROW`] outputs without inputs that fill up a block.
    F32(Pages<f32>),
    /// The upper half of each number.
    Bf16(Pages<u16>),
    /// An integer for each number, and the scales.
    Int8(Pages<i8>, Pages<u16>),
    /// Two integers in a byte, each plus 8, and scales. The lower four bits are those of an output of the
    /// first half of the panel, the upper ones those of the same output of the second half. So unpacking the
    /// lower bits of neighbouring bytes gives neighbouring outputs.
    Int4(Pages<u8>, Pages<u16>),
}

/// A matrix `[in, out]` whose outputs are grouped into panels of [`WIDTH`], and whose inputs are grouped into
/// blocks of [`BLOCK`]; the last ones are filled up with zeros.
#[derive(Debug)]
pub struct Packed {
    inputs: usize,
    outputs: usize,
    numbers: Numbers,
}

impl Packed {
    /// Packs a matrix whose number for input `k` and output `n` is `number(k, n)`. A block with a number that
    /// is not finite gets the scale NaN.
    pub fn new(
        inputs: usize,
        outputs: usize,
        of: WeightType,
        number: impl Fn(usize, usize) -> f32 + Sync,
    ) -> Self {
        let [count, scales] = of.sizes(inputs, outputs);
        let blocks = inputs.div_ceil(BLOCK);
        // The numbers of a block of a panel.
        let rows = |i: usize, rows: &mut [[f32; WIDTH]; BLOCK]| {
            let (panel, block) = (i / blocks, i % blocks);
            for (k, row) in (block * BLOCK..).zip(rows) {
                for (n, to) in (panel * WIDTH..).zip(row) {
                    *to = if k < inputs && n < outputs { number(k, n) } else { 0.0 };
                }
            }
        };
        let numbers = match of {
            WeightType::F32 => {
                let mut numbers = Pages::zeros(count);
                for_blocks(numbers.chunks_mut((inputs * NARROW).max(1)), |panel, to| {
                    for (k, row) in to.chunks_mut(NARROW).enumerate() {
                        let outputs = panel * NARROW..outputs;
                        outputs.zip(row).for_each(|(n, to)| *to = number(k, n));
                    }
                });
                Numbers::F32(numbers)
            }
            WeightType::Bf16 => {
                let mut numbers = Pages::zeros(count);
                for_blocks(numbers.chunks_mut(BLOCK * WIDTH), |i, to| {
                    let mut block = [[0.0; WIDTH]; BLOCK];
                    rows(i, &mut block);
                    to.iter_mut().zip(block.iter().flatten()).for_each(|(to, x)| *to = nearest_half(*x));
                });
                Numbers::Bf16(numbers)
            }
            WeightType::Int8 => {
                let (mut integers, mut scales) = (Pages::zeros(count), Pages::zeros(scales));
                let parts = integers.chunks_mut(BLOCK * WIDTH).zip(scales.chunks_mut(WIDTH));
                for_blocks(parts, |i, (to, scales)| {
                    let mut block = [[0.0; WIDTH]; BLOCK];
                    rows(i, &mut block);
                    // Without -128, so that numbers of both signs have the same range.
                    let of_block = scales_of(&block, |largest| upper_half_above(largest.abs() / 127.0));
                    scales.copy_from_slice(&of_block);
                    for (to, row) in to.chunks_mut(WIDTH).zip(&block) {
                        for ((to, x), scale) in to.iter_mut().zip(row).zip(&of_block) {
                            *to = integer(*x, *scale, 127.0);
                        }
                    }
                });
                Numbers::Int8(integers, scales)
            }
            WeightType::Int4 => {
                let (mut pairs, mut scales) = (Pages::zeros(count), Pages::zeros(scales));
                let parts = pairs.chunks_mut(BLOCK * HALF).zip(scales.chunks_mut(WIDTH));
                for_blocks(parts, |i, (to, scales)| {
                    let mut block = [[0.0; WIDTH]; BLOCK];
                    rows(i, &mut block);
                    // There is one more negative integer than positive ones, so the scale has the sign that
                    // makes the largest number -8.
                    let of_block = scales_of(&block, |largest| upper_half_above(largest / -8.0));
                    scales.copy_from_slice(&of_block);
                    for (to, row) in to.chunks_mut(HALF).zip(&block) {
                        // Rounding may give 8, which four bits with a sign do not have.
                        let whole = |i: usize| (integer(row[i], of_block[i], 8.0).min(7) + 8) as u8;
                        to.iter_mut().enumerate().for_each(|(i, to)| *to = whole(i) | whole(i + HALF) << 4);
                    }
                });
                Numbers::Int4(pairs, scales)
            }
        };
        Self { inputs, outputs, numbers }
    }

    /// Packs a matrix `[out, in]` in single precision. What is packed is freed in parts, so that the matrix is not in
    /// memory twice.
    pub fn of_rows(mut rows: Vec<f32>, outputs: usize, inputs: usize) -> Self {
        /// How many panels are packed before their rows are freed: 8 MiB of them for 1,024 inputs.
        const AT_ONCE: usize = 64;
        let size = (inputs * NARROW).max(1);
        let [count, _] = WeightType::F32.sizes(inputs, outputs);
        let mut numbers = Pages::zeros(count);
        // From the end, where a vector can be cut.
        for (i, panels) in numbers.chunks_mut(size * AT_ONCE).enumerate().rev() {
            let from = (i * size * AT_ONCE).min(rows.len());
            let parts = panels.chunks_mut(size).zip(rows[from..].chunks(size));
            for_blocks(parts, |_, (to, rows)| {
                for (k, to) in to.chunks_mut(NARROW).enumerate() {
                    to.iter_mut().zip(rows.iter().skip(k).step_by(inputs)).for_each(|(to, x)| *to = *x);
                }
            });
            rows.truncate(from);
            rows.shrink_to_fit();
        }
        Self { inputs, outputs, numbers: Numbers::F32(numbers) }
    }

    /// The number of inputs, without those that fill up the last block.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of outputs, without those that fill up the last panel.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The type of the weights.
    pub fn weight_type(&self) -> WeightType {
        match self.numbers {
            Numbers::F32(_) => WeightType::F32,
            Numbers::Bf16(_) => WeightType::Bf16,
            Numbers::Int8(..) => WeightType::Int8,
            Numbers::Int4(..) => WeightType::Int4,
        }
    }

    /// How many outputs a panel has.
    pub fn panel(&self) -> usize {
        match self.numbers {
            Numbers::F32(_) => NARROW,
            Numbers::Bf16(_) | Numbers::Int8(..) | Numbers::Int4(..) => WIDTH,
        }
    }

    /// The bytes of its numbers and scales.
    pub fn bytes(&self) -> usize {
        self.weight_type().bytes(self.inputs, self.outputs)
    }

    /// Its numbers in the order in which the products of `flex` read them.
    #[cfg(feature = "flex")]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The number that products use for input `k` and output `n`.
    pub fn number(&self, k: usize, n: usize) -> f32 {
        let (panel, i) = (n / WIDTH, n % WIDTH);
        let block = panel * self.inputs.div_ceil(BLOCK) + k / BLOCK;
        let row = block * BLOCK + k % BLOCK;
        // An index outside of the matrix gives zero and no panic: ids come from users.
        let scaled = |integer: i8, scales: &[u16]| {
            f32::from(integer) * upper(scales.get(block * WIDTH + i).copied().unwrap_or_default())
        };
        match &self.numbers {
            Numbers::F32(numbers) => {
                let row = n / NARROW * self.inputs + k;
                numbers.get(row * NARROW + n % NARROW).copied().unwrap_or_default()
            }
            Numbers::Bf16(numbers) => upper(numbers.get(row * WIDTH + i).copied().unwrap_or_default()),
            Numbers::Int8(integers, scales) => {
                scaled(integers.get(row * WIDTH + i).copied().unwrap_or_default(), scales)
            }
            Numbers::Int4(pairs, scales) => {
                let pair = pairs.get(row * HALF + i % HALF).copied().unwrap_or_default();
                // The upper four bits are those of the second half of the panel.
                scaled((pair >> (i / HALF * 4) & 15) as i8 - 8, scales)
            }
        }
    }

    /// The numbers that products use for these outputs, those of one after those of the other: `[N, in]`
    pub fn columns(&self, outputs: &[usize]) -> Vec<f32> {
        let mut columns = vec![0.0; outputs.len() * self.inputs];
        let parts = columns.chunks_mut(self.inputs.max(1)).zip(outputs);
        for_blocks(parts, |_, (column, n)| match &self.numbers {
            // These follow each other at a constant distance.
            Numbers::F32(numbers) => {
                let rows =
                    numbers.as_chunks::<NARROW>().0.iter().skip((n / NARROW).saturating_mul(self.inputs));
                column.iter_mut().zip(rows).for_each(|(to, row)| *to = row[n % NARROW]);
            }
            _ => column.iter_mut().enumerate().for_each(|(k, to)| *to = self.number(k, *n)),
        });
        columns
    }

    /// All numbers that products use, as a matrix `[in, out]`.
    pub fn unpacked(&self) -> Vec<f32> {
        (0..self.inputs).flat_map(|k| (0..self.outputs).map(move |n| self.number(k, n))).collect()
    }
}

/// The outputs of half a panel, which is as many as a row of it has bytes in four bits.
pub const HALF: usize = WIDTH / 2;

/// Calls `f` with every part and its index, on all threads if there are any.
fn for_blocks<T: Send>(parts: impl Iterator<Item = T>, f: impl Fn(usize, T) + Sync) {
    #[cfg(feature = "flex")]
    {
        use rayon::prelude::*;

        let parts: Vec<(usize, T)> = parts.enumerate().collect();
        // One block is too little work to wake a thread for.
        parts.into_par_iter().with_min_len(8).for_each(|(i, part)| f(i, part));
    }
    #[cfg(not(feature = "flex"))]
    parts.enumerate().for_each(|(i, part)| f(i, part));
}

/// The scale of each output, from the number with the largest absolute value.
fn scales_of(rows: &[[f32; WIDTH]; BLOCK], scale: impl Fn(f32) -> u16) -> [u16; WIDTH] {
    let mut largest = [0.0_f32; WIDTH];
    for row in rows {
        for (largest, x) in largest.iter_mut().zip(row) {
            if !x.is_finite() {
                // No comparison with NaN is true, so it stays, and every product with the block becomes NaN.
                *largest = f32::NAN;
            } else if x.abs() > largest.abs() {
                *largest = *x;
            }
        }
    }
    largest.map(scale)
}

/// The nearest integer to `x / scale`, within the bounds. Ties go to the even number.
fn integer(x: f32, scale: u16, most: f32) -> i8 {
    // A number of this size has no digits after the point, so adding it rounds.
    const ROUNDS: f32 = 12_582_912.0;
    let scale = upper(scale);
    // A block of zeros has the scale zero.
    if scale == 0.0 { 0 } else { ((x / scale).clamp(-most, most) + ROUNDS - ROUNDS) as i8 }
}

/// The upper 16 bits of the nearest number that has only these. NaN stays NaN.
fn nearest_half(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        // If only lower bits tell a NaN from infinity, the upper ones alone would be infinity.
        return (bits >> 16) as u16 | 0x40;
    }
    // Ties go to the even number.
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The upper 16 bits of the number of this sign that has only these and is not smaller in size, so that no
/// quotient exceeds the largest integer. NaN stays NaN.
fn upper_half_above(x: f32) -> u16 {
    if x.is_nan() { nearest_half(x) } else { (x.to_bits().wrapping_add(0xffff) >> 16) as u16 }
}

/// The number with these upper 16 bits.
#[inline(always)]
pub fn upper(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}
