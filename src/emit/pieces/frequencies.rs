//! Inverse frequencies of rotary positions.

/// `theta^(-2i / dim)` for every pair of features
pub fn frequencies(theta: f64, dim: usize) -> Vec<f64> {
    (0..dim / 2).map(|i| theta.powf(-((2 * i) as f64) / dim as f64)).collect()
}
