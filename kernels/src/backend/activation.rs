//! The activations that are kernels.

/// An activation that is more than one operation of burn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x/2 (1 + erf(x / sqrt(2)))`
    Gelu,
    /// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x³)))`
    GeluTanh,
    /// `x sigmoid(1.702 x)`, the approximation of gelu that CLIP uses.
    QuickGelu,
    /// `x sigmoid(x)`
    Silu,
}
