//! Logits: the products of a vector with all rows of an embedding table.

use burn::prelude::*;

/// `x table^T`: `[.., D]`, table `[V, D]` → `[.., V]`. All rows are multiplied as one matrix. Burn's linear
/// layer would multiply sequence by sequence, even for the one new token of cached decoding, and would copy
/// the transposed table in every call (`linear` in burn-backend 0.22.1).
pub fn unembed<const D: usize>(x: Tensor<D>, table: Tensor<2>) -> Tensor<D> {
    let mut shape = x.dims();
    let [words, width] = table.dims();
    let rows = shape.iter().take(D - 1).product();
    shape[D - 1] = words;
    x.reshape([rows, width]).matmul(table.transpose()).reshape(shape)
}
