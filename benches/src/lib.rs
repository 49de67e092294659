//! A GPT written by hand in burn, with which the interpreter is compared: pre-norm blocks, learned
//! positions, fused causal attention, in the shapes of `gpt2-small` and `gbt-mulm`.

use burn::nn::{
    Embedding, EmbeddingConfig, Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig,
    loss::CrossEntropyLossConfig,
};
use burn::prelude::*;
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;

/// The sizes of a GPT.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The number of tokens in the vocabulary.
    pub vocab: usize,
    /// The number of tokens in the longest sequence.
    pub context: usize,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of blocks.
    pub layers: usize,
    /// The number of attention heads.
    pub heads: usize,
    /// Whether the embedding is also the output projection.
    pub tied: bool,
    /// Whether gelu is the tanh approximation.
    pub gelu_tanh: bool,
}

impl Sizes {
    /// The sizes of `specs/gpt2-small.yaml`.
    pub const GPT2_SMALL: Sizes = Sizes {
        vocab: 50257,
        context: 1024,
        d_model: 768,
        layers: 12,
        heads: 12,
        tied: true,
        gelu_tanh: true,
    };
    /// The sizes of `specs/gbt-mulm.yaml`.
    pub const GBT_MULM: Sizes =
        Sizes { vocab: 30, context: 31, d_model: 64, layers: 4, heads: 4, tied: false, gelu_tanh: false };
}

/// A block whose norms are before attention and before the feed-forward part.
#[derive(Module, Debug)]
pub struct Block {
    norm1: LayerNorm,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    norm2: LayerNorm,
    up: Linear,
    gelu: Gelu,
    down: Linear,
    heads: usize,
}

impl Block {
    fn new(sizes: Sizes, device: &Device) -> Self {
        let d = sizes.d_model;
        let linear = |input, output| LinearConfig::new(input, output).init(device);
        let norm = || LayerNormConfig::new(d).with_epsilon(1e-5).init(device);
        Self {
            norm1: norm(),
            query: linear(d, d),
            key: linear(d, d),
            value: linear(d, d),
            output: linear(d, d),
            norm2: norm(),
            up: linear(d, 4 * d),
            gelu: if sizes.gelu_tanh { Gelu::new_approximate() } else { Gelu::new() },
            down: linear(4 * d, d),
            heads: sizes.heads,
        }
    }

    /// One block, `[B, T, D] → [B, T, D]`.
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [b, t, d] = x.dims();
        let split = |x: Tensor<3>| x.reshape([b, t, self.heads, d / self.heads]).swap_dims(1, 2);
        let h = self.norm1.forward(x.clone());
        let q = split(self.query.forward(h.clone()));
        let k = split(self.key.forward(h.clone()));
        let v = split(self.value.forward(h));
        let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: true };
        let y = attention(q, k, v, None, None, options).swap_dims(1, 2).reshape([b, t, d]);
        let x = x + self.output.forward(y);
        let h = self.gelu.forward(self.up.forward(self.norm2.forward(x.clone())));
        x + self.down.forward(h)
    }
}

/// Embeddings of tokens and positions, blocks, a norm and a head.
#[derive(Module, Debug)]
pub struct Gpt {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Option<Linear>,
}

impl Gpt {
    /// A model with random parameters.
    pub fn new(sizes: Sizes, device: &Device) -> Self {
        let d = sizes.d_model;
        Self {
            tokens: EmbeddingConfig::new(sizes.vocab, d).init(device),
            positions: EmbeddingConfig::new(sizes.context, d).init(device),
            blocks: (0..sizes.layers).map(|_| Block::new(sizes, device)).collect(),
            norm: LayerNormConfig::new(d).with_epsilon(1e-5).init(device),
            head: (!sizes.tied).then(|| LinearConfig::new(d, sizes.vocab).with_bias(false).init(device)),
        }
    }

    /// The logits of tokens, `[B, T] → [B, T, V]`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [_, t] = tokens.dims();
        let positions = Tensor::<1, Int>::arange(0..t as i64, &tokens.device()).unsqueeze::<2>();
        let mut x = self.tokens.forward(tokens) + self.positions.forward(positions);
        for block in &self.blocks {
            x = block.forward(x);
        }
        let x = self.norm.forward(x);
        match &self.head {
            Some(head) => head.forward(x),
            None => x.matmul(self.tokens.weight.val().transpose().unsqueeze()),
        }
    }
}

/// Mean cross entropy of `logits [B, T, V]` against `targets [B, T]`.
pub fn loss(logits: Tensor<3>, targets: Tensor<2, Int>) -> Tensor<1> {
    let [b, t, v] = logits.dims();
    CrossEntropyLossConfig::new()
        .init(&logits.device())
        .forward(logits.reshape([b * t, v]), targets.reshape([b * t]))
}
