//! Rotary positions (Su et al. 2021): pairs of features are turned by the angle of their position.

use rayon::prelude::*;

use super::attention::{Sizes, Table};
use super::parallel::Parallel;
use super::simd::{SHARE, Task, rows_of_share, run};
use crate::backend::Pairing;

/// Cosines and sines of the angles, each `[T, pairs]`.
#[derive(Clone, Copy, Debug)]
pub struct Angles<'a> {
    /// The cosines.
    pub cos: &'a [f32],
    /// The sines.
    pub sin: &'a [f32],
    /// How many pairs of features are turned.
    pub pairs: usize,
}

/// Turns the first `2 * pairs` features of `x [B, H, T, D]`, which is a table of `D = sizes.width` numbers for each of
/// `T = sizes.queries` positions, and copies the others: `y [B, H, T, D]`.
pub fn rotate(x: Table<'_, f32>, sizes: Sizes, angles: Angles<'_>, pairing: Pairing, y: &mut [f32]) {
    let width = sizes.width;
    if y.is_empty() {
        return;
    }
    let count = rows_of_share(width);
    let part = |(i, y): (usize, &mut [f32])| run(Rows { x, sizes, angles, pairing, first: i * count, y });
    if y.len() <= 2 * SHARE {
        part((0, y));
    } else {
        y.par_chunks_mut(count * width).enumerate().in_parallel(part);
    }
}

/// Some rows of the result.
struct Rows<'a> {
    x: Table<'a, f32>,
    sizes: Sizes,
    angles: Angles<'a>,
    pairing: Pairing,
    /// The index of the first row among those of all heads.
    first: usize,
    y: &'a mut [f32],
}

impl Task for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, sizes, angles, pairing, first, y } = self;
        let Sizes { queries, width, .. } = sizes;
        let Angles { cos, sin, pairs } = angles;
        for (row, y) in (first..).zip(y.chunks_exact_mut(width)) {
            let (head, time) = (row / queries, row % queries);
            let x = x.head(head, sizes, queries, width).of(time);
            let angle = time * pairs..(time + 1) * pairs;
            let (cos, sin) = (cos.get(angle.clone()).unwrap_or_default(), sin.get(angle).unwrap_or_default());
            let (Some((x, x_rest)), Some((y, y_rest))) =
                (x.split_at_checked(2 * pairs), y.split_at_mut_checked(2 * pairs))
            else {
                continue;
            };
            y_rest.copy_from_slice(x_rest);
            let angles = cos.iter().zip(sin);
            // Products and sums are rounded one by one, so that the bits are those of separate operations.
            match pairing {
                Pairing::Half => {
                    let ((a, b), (y_a, y_b)) = (x.split_at(pairs), y.split_at_mut(pairs));
                    for (((a, b), (cos, sin)), (y_a, y_b)) in
                        a.iter().zip(b).zip(angles).zip(y_a.iter_mut().zip(y_b))
                    {
                        *y_a = a * cos - b * sin;
                        *y_b = b * cos + a * sin;
                    }
                }
                Pairing::Interleaved => {
                    let (x, y) = (x.as_chunks::<2>().0, y.as_chunks_mut::<2>().0);
                    for (([a, b], (cos, sin)), y) in x.iter().zip(angles).zip(y) {
                        *y = [a * cos - b * sin, b * cos + a * sin];
                    }
                }
            }
        }
    }
}
