//! How a parameter starts.

/// A distribution over a parameter's elements. Fans are those of the stored shape `[out, in, ..]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All the same.
    Constant(f64),
    /// Normal with that standard deviation and mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
    /// Normal, redrawn outside `± cut * std`.
    TruncatedNormal {
        /// Standard deviation before cutting.
        std: f64,
        /// Where it is cut, in standard deviations.
        cut: f64,
    },
    /// Uniform in `± bound`.
    Uniform {
        /// Half the width.
        bound: f64,
    },
    /// Glorot and Bengio 2010, uniform: bound `gain * sqrt(6 / (in + out))`.
    XavierUniform {
        /// Factor.
        gain: f64,
    },
    /// Glorot and Bengio 2010, normal: std `gain * sqrt(2 / (in + out))`.
    XavierNormal {
        /// Factor.
        gain: f64,
    },
    /// He et al. 2015, uniform: bound `gain * sqrt(3 / in)`.
    KaimingUniform {
        /// Factor.
        gain: f64,
    },
    /// He et al. 2015, normal: std `gain / sqrt(in)`.
    KaimingNormal {
        /// Factor.
        gain: f64,
    },
    /// Saxe et al. 2013: rows or columns orthonormal, times the gain.
    Orthogonal {
        /// Factor.
        gain: f64,
    },
}

impl Init {
    /// The same distribution with its spread multiplied by a factor (constants too).
    pub fn scaled(&self, by: f64) -> Init {
        match self {
            Init::Zeros => Init::Zeros,
            Init::Ones => Init::Constant(by),
            Init::Constant(c) => Init::Constant(c * by),
            Init::Normal { std } => Init::Normal { std: std * by },
            Init::TruncatedNormal { std, cut } => Init::TruncatedNormal { std: std * by, cut: *cut },
            Init::Uniform { bound } => Init::Uniform { bound: bound * by },
            Init::XavierUniform { gain } => Init::XavierUniform { gain: gain * by },
            Init::XavierNormal { gain } => Init::XavierNormal { gain: gain * by },
            Init::KaimingUniform { gain } => Init::KaimingUniform { gain: gain * by },
            Init::KaimingNormal { gain } => Init::KaimingNormal { gain: gain * by },
            Init::Orthogonal { gain } => Init::Orthogonal { gain: gain * by },
        }
    }
}
