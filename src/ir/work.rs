//! The work of one forward pass, as polynomials in `B, T, S, P`: operations and activations.
//!
//! Conventions:
//! - A multiply-add counts as 2 operations. `matmul` counts those of linear layers, patches, experts, the
//!   output table, and recurrences, which add to their state and read it at every position; `attention` those of scores and of the weighted sum of values, over all `T * K` pairs.
//!   Pairs that a mask hides are included; `report::scores` counts only the visible ones.
//! - `elementwise` is not part of any total, as in PyTorch's own counter. Each arithmetic step on an
//!   element is one operation, including `exp`, `tanh`, `erf`, division and square root. Per element: bias,
//!   add, multiply, scale, shift 1; clamp 1 for each bound; softcap 3; layer norm 5, rms norm 3, and 1 each
//!   for their weight and bias; unit length 3; softmax 5 (maximum, difference, exponential, sum, quotient);
//!   rotation 3, of the features that are rotated; a quotient and an elementary function 1, softplus 3; a sum,
//!   mean or maximum of features 1 for each of them;
//!   activations as in [`Activation::operations`](super::op::Activation::operations); dropout 0.
//! - Position tables, masks and biases from slopes are constants of a plan and are not counted.
//! - An expert works on the rows sent to it: `B * T * active` rows for all experts together.
//! - `activations` are the elements of every float value that an op computes; reshapes, slices and
//!   parameters are views and do not count. Attention weights `[B,H,T,K]` are separate, because fused
//!   kernels never store them.

use super::Dim;

/// The work of a single run of an op or a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations of matrix products with weights.
    pub matmul: Dim,
    /// Operations of attention over every pair of query and key.
    pub attention: Dim,
    /// Operations on single elements.
    pub elementwise: Dim,
    /// Elements of computed values, without attention weights.
    pub activations: Dim,
    /// Elements of attention weights.
    pub attention_weights: Dim,
}

impl Work {
    /// The work of computing and storing a result with `out` elements.
    pub fn computed(out: &Dim) -> Self {
        Self { activations: out.clone(), ..Self::default() }
    }

    /// Operations of the forward pass: products with weights and attention.
    pub fn operations(&self) -> Dim {
        &self.matmul + &self.attention
    }

    /// Operations of a training step: the forward pass and twice that for the backward pass.
    pub fn training(&self) -> Dim {
        // The gradients of the inputs and of the weights each take as many operations as the products
        // themselves.
        self.operations() * Dim::of(3u64)
    }

    /// Applies `f` to every polynomial.
    pub fn each(&self, f: impl Fn(&Dim) -> Dim) -> Work {
        Work {
            matmul: f(&self.matmul),
            attention: f(&self.attention),
            elementwise: f(&self.elementwise),
            activations: f(&self.activations),
            attention_weights: f(&self.attention_weights),
        }
    }

    /// The work of `n` runs.
    pub fn times(&self, n: u128) -> Work {
        let n = Dim::of(n);
        self.each(|dim| dim * &n)
    }

    /// Adds other work to this.
    pub fn add(&mut self, other: &Work) {
        self.matmul += &other.matmul;
        self.attention += &other.attention;
        self.elementwise += &other.elementwise;
        self.activations += &other.activations;
        self.attention_weights += &other.attention_weights;
    }
}
