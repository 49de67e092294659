//! Rows of a table by their indices, such as the embeddings of tokens.

use burn::prelude::*;

use crate::backend;

/// The rows of a table with these indices: table `[V, D]`, indices `[B, T]` → `[B, T, D]`. The gradient of a row is the sum
/// of those of the positions at which it was looked up, in their order.
pub fn look_up(table: Tensor<2>, indices: Tensor<2, Int>) -> Tensor<3> {
    backend::look_up(table, indices)
}

/// The embeddings of tokens or positions: indices `[B, T]` → `[B, T, D]`
// Emitted models call this: their fields are burn's layers, whose own `forward` is not used.
pub fn embed(layer: &nn::Embedding, indices: Tensor<2, Int>) -> Tensor<3> {
    look_up(layer.weight.val(), indices)
}
