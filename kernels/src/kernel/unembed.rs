//! Logits: the products of a vector with all rows of an embedding table.

use burn::prelude::*;

use crate::backend;

/// `x table^T`: `[.., D]`, table `[V, D]` → `[.., V]`. All rows are multiplied as one matrix. Burn's linear
/// layer would multiply sequence by sequence, even for the one new token of cached decoding, and would copy
/// the transposed table in every call (`linear` in burn-backend 0.22.1).
pub fn unembed<const D: usize>(x: Tensor<D>, table: Tensor<2>) -> Tensor<D> {
    backend::unembed(x, table)
}
