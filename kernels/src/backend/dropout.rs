//! Dropout of the weights of attention.

/// Which weights of attention are set to zero. The rest is divided by `1 - p`.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// The probability that a weight is dropped.
    pub p: f64,
    /// What was drawn at random: together with a weight's place, it decides whether that weight is dropped. So a
    /// backward pass drops the same weights, and nothing has to be kept for each of them.
    pub key: [u32; 2],
}
