//! What one forward pass does, as polynomials in `B, T, S, P`: operations and activations.
//!
//! Conventions.
//! - A multiply-add is 2 operations. `matmul` holds those of linear layers, patches, experts and the
//!   output table; `attention` those of scores and their weighted sum, over all `T * K` pairs. What a
//!   mask hides is still counted here; `report::scores` counts what is left of it.
//! - `elementwise` is apart and in no total, as in PyTorch's own counter: one operation for each
//!   arithmetic step on an element, `exp`, `tanh`, `erf`, division and square root included. Per
//!   element: bias, add, multiply, scale, shift 1; clamp 1 a bound; softcap 3; layer norm 5, rms norm
//!   3, their weight and bias 1 each; softmax 5 (maximum, difference, exponential, sum, quotient);
//!   rotation 3; activations as [`Activation::operations`](super::op::Activation::operations) says;
//!   dropout nothing.
//! - Position tables, masks and biases from slopes are constants of a plan: no operations.
//! - An expert works on the rows sent to it: `B * T * active` rows for all experts together.
//! - `activations` are the elements of every float value an op computes; reshapes, slices and
//!   parameters are views and not counted. Attention weights `[B,H,T,K]` are apart, because fused
//!   kernels never store them.

use super::Dim;

/// Work of running something once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations of products with weights.
    pub matmul: Dim,
    /// Operations of attention over every pair of query and key.
    pub attention: Dim,
    /// Operations element by element.
    pub elementwise: Dim,
    /// Elements of computed values, attention weights aside.
    pub activations: Dim,
    /// Elements of attention weights.
    pub attention_weights: Dim,
}

impl Work {
    /// The work of keeping a result of that many elements and nothing else.
    pub fn computed(out: &Dim) -> Self {
        Self { activations: out.clone(), ..Self::default() }
    }

    /// Operations of the forward pass: products with weights and attention.
    pub fn operations(&self) -> Dim {
        &self.matmul + &self.attention
    }

    /// Operations of a training step: the forward pass and twice that for the backward pass.
    pub fn training(&self) -> Dim {
        self.operations() * Dim::of(3u64)
    }

    /// The same with every polynomial changed by `f`.
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

    /// Adds the work of something else.
    pub fn add(&mut self, other: &Work) {
        self.matmul = &self.matmul + &other.matmul;
        self.attention = &self.attention + &other.attention;
        self.elementwise = &self.elementwise + &other.elementwise;
        self.activations = &self.activations + &other.activations;
        self.attention_weights = &self.attention_weights + &other.attention_weights;
    }
}
