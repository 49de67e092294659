//! The initial values of a parameter.

/// A distribution over a parameter's elements. `in` and `out` are the fans of its stored shape
/// `[out, in, ..]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All elements are 0.
    Zeros,
    /// All elements are 1.
    Ones,
    /// All elements are the same number.
    Constant(f64),
    /// A normal distribution with mean 0.
    Normal {
        /// The standard deviation of every element.
        std: f64,
    },
    /// A normal distribution with mean 0, truncated to `± cut * std`.
    TruncatedNormal {
        /// The standard deviation before truncation.
        std: f64,
        /// The bound, in standard deviations.
        cut: f64,
    },
    /// A uniform distribution between `-bound` and `bound`.
    Uniform {
        /// The largest absolute value.
        bound: f64,
    },
    /// Glorot and Bengio 2010, uniform: bound `gain * sqrt(6 / (in + out))`.
    XavierUniform {
        /// Factor on the bound.
        gain: f64,
    },
    /// Glorot and Bengio 2010, normal: std `gain * sqrt(2 / (in + out))`.
    XavierNormal {
        /// Factor on the standard deviation.
        gain: f64,
    },
    /// He et al. 2015, uniform: bound `gain * sqrt(3 / in)`.
    KaimingUniform {
        /// Factor on the bound.
        gain: f64,
    },
    /// He et al. 2015, normal: std `gain / sqrt(in)`.
    KaimingNormal {
        /// Factor on the standard deviation.
        gain: f64,
    },
    /// Saxe et al. 2013: a matrix with orthonormal rows or columns, times the gain.
    Orthogonal {
        /// Factor on the elements.
        gain: f64,
    },
    /// The logarithms of 1, 2, ... along the last axis, times the gain, in every row (Gu and Dao 2023).
    Logarithms {
        /// Factor on the elements.
        gain: f64,
    },
}

impl Init {
    /// Whether it depends on the numbers of inputs and outputs of what it fills.
    pub fn has_fans(&self) -> bool {
        match self {
            Init::XavierUniform { .. }
            | Init::XavierNormal { .. }
            | Init::KaimingUniform { .. }
            | Init::KaimingNormal { .. } => true,
            Init::Zeros
            | Init::Ones
            | Init::Constant(_)
            | Init::Normal { .. }
            | Init::TruncatedNormal { .. }
            | Init::Uniform { .. }
            | Init::Orthogonal { .. }
            | Init::Logarithms { .. } => false,
        }
    }

    /// The same distribution, with its values multiplied by a factor.
    pub fn scaled(&self, by: f64) -> Init {
        match self {
            Init::Zeros => Init::Zeros,
            Init::Ones => Init::Constant(by),
            Init::Constant(c) => Init::Constant(c * by),
            Init::Normal { std } => Init::Normal { std: std * by },
            // The bound is in standard deviations, so it grows with them.
            Init::TruncatedNormal { std, cut } => Init::TruncatedNormal { std: std * by, cut: *cut },
            Init::Uniform { bound } => Init::Uniform { bound: bound * by },
            // All of these are proportional to their gain.
            Init::XavierUniform { gain } => Init::XavierUniform { gain: gain * by },
            Init::XavierNormal { gain } => Init::XavierNormal { gain: gain * by },
            Init::KaimingUniform { gain } => Init::KaimingUniform { gain: gain * by },
            Init::KaimingNormal { gain } => Init::KaimingNormal { gain: gain * by },
            Init::Orthogonal { gain } => Init::Orthogonal { gain: gain * by },
            Init::Logarithms { gain } => Init::Logarithms { gain: gain * by },
        }
    }
}
