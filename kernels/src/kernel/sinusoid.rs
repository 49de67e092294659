//! Sinusoidal tables (Vaswani et al. 2017), computed on the host in double precision: the same numbers on
//! every device, exact for large positions.

use burn::prelude::*;

/// `sin, cos, sin, cos, ..` of `position / base^(2i / dim)`: `[1, T]` → `[1, T, dim]`.
pub fn sinusoid_interleaved(positions: Tensor<2, Int>, dim: usize, base: f64) -> Tensor<3> {
    sinusoid(positions, dim, base, |column| (column / 2, column % 2 == 1))
}

/// All sines, then all cosines, of `position / base^(2i / dim)`: `[1, T]` → `[1, T, dim]`.
pub fn sinusoid_concat(positions: Tensor<2, Int>, dim: usize, base: f64) -> Tensor<3> {
    // Of an odd number of features, one more is a sine.
    let sines = dim.div_ceil(2);
    sinusoid(
        positions,
        dim,
        base,
        |column| if column < sines { (column, false) } else { (column - sines, true) },
    )
}

/// The table whose column `i` is the sine or the cosine of `position / base^(2 * pair / dim)`: `pair_of(i)`
/// returns the pair, and true for the cosine.
fn sinusoid(
    positions: Tensor<2, Int>,
    dim: usize,
    base: f64,
    pair_of: impl Fn(usize) -> (usize, bool),
) -> Tensor<3> {
    let device = positions.device();
    let [rows, length] = positions.dims();
    let mut table = Vec::with_capacity(rows * length * dim);
    // Integers have 32 bits on Flex and CubeCL's backends, and 64 on LibTorch (`int_dtype` of burn's device
    // settings). `iter` converts them to the type asked for, while a slice must have the type of the data.
    for position in positions.into_data().iter::<f64>() {
        for column in 0..dim {
            let (pair, cosine) = pair_of(column);
            let angle = position / base.powf(2.0 * pair as f64 / dim as f64);
            table.push(if cosine { angle.cos() } else { angle.sin() } as f32);
        }
    }
    Tensor::from_data(TensorData::new(table, [rows, length, dim]), &device)
}
