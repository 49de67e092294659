//! Rows put before a sequence.

use burn::prelude::*;

/// The same rows before every sequence: `[n, D]` and `[B, T, D]` → `[B, n + T, D]`
pub fn prepend(rows: Tensor<2>, x: Tensor<3>) -> Tensor<3> {
    let ([n, width], batch) = (rows.dims(), x.dims()[0]);
    Tensor::cat(vec![rows.unsqueeze::<3>().expand([batch, n, width]), x], 1)
}
