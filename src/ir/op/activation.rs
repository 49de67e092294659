//! The nonlinearities that are ops.

/// The nonlinearities. Variants of gelu that differ in value have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`, the rectified linear unit
    Relu,
    /// `max(x, 0)^2` (Primer, So et al. 2021)
    Relu2,
    /// `x Φ(x)` with the error function
    Gelu,
    /// The tanh approximation of gelu
    GeluTanh,
    /// `x sigmoid(1.702 x)`, an approximation of gelu (CLIP)
    QuickGelu,
    /// `x sigmoid(x)`, also called swish
    Silu,
    /// `tanh(x)`, between -1 and 1
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
}

impl Activation {
    /// Its name, as specs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Activation::Relu => "relu",
            Activation::Relu2 => "relu2",
            Activation::Gelu => "gelu",
            Activation::GeluTanh => "gelu_tanh",
            Activation::QuickGelu => "quick_gelu",
            Activation::Silu => "silu",
            Activation::Tanh => "tanh",
            Activation::Sigmoid => "sigmoid",
        }
    }

    /// Whether it is a kernel, by itself and together with what comes before or after it: [`Op::Gate`](super::Op::Gate) and
    /// [`Op::ActivatedLayer`](super::Op::ActivatedLayer).
    pub fn has_kernel(self) -> bool {
        match self {
            Activation::Gelu | Activation::GeluTanh | Activation::QuickGelu | Activation::Silu => true,
            Activation::Relu | Activation::Relu2 | Activation::Tanh | Activation::Sigmoid => false,
        }
    }

    /// The number of operations for each element.
    pub fn operations(self) -> u64 {
        match self {
            // max
            Activation::Relu => 1,
            // max, square
            Activation::Relu2 => 2,
            // x / sqrt(2), erf, + 1, * x, / 2
            Activation::Gelu => 5,
            // x^3 (2), * 0.0447, + x, * sqrt(2 / pi), tanh, + 1, * x, / 2
            Activation::GeluTanh => 9,
            // * 1.702, sigmoid (4), * x
            Activation::QuickGelu => 6,
            // sigmoid (4), * x
            Activation::Silu => 5,
            Activation::Tanh => 1,
            // negation, exp, + 1, quotient
            Activation::Sigmoid => 4,
        }
    }
}
