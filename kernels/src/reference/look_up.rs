//! Rows of a table by burn's operation.

use burn::prelude::*;
use burn::tensor::module::embedding;

/// The rows of a table with these indices: table `[V, D]`, indices `[B, T]` → `[B, T, D]`
pub fn look_up(table: Tensor<2>, indices: Tensor<2, Int>) -> Tensor<3> {
    embedding(table, indices)
}

/// The embeddings of tokens or positions: indices `[B, T]` → `[B, T, D]`
pub fn embed(layer: &nn::Embedding, indices: Tensor<2, Int>) -> Tensor<3> {
    layer.forward(indices)
}
