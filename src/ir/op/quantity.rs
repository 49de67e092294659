//! The numbers of ops that readers know by a name.
//!
//! Reports and emitted code name a number by what it is, never by another number to which it happens to be
//! equal.

use crate::ir::Extent;

/// A number of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A size in the author's words.
    Size(Extent),
    /// A whole number, and what it is.
    Count(Named, u64),
    /// A real number, and what it is.
    Real(Named, f64),
}

// A sentence about a number is its documentation, so the two cannot differ.
macro_rules! named {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal;)*) => {
        /// What a number is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Named { $($(#[doc = $doc])* $variant),* }

        impl Named {
            /// Its name in lower case.
            pub fn name(self) -> &'static str {
                match self { $(Named::$variant => $name),* }
            }

            /// What it is, as a sentence.
            pub fn sentence(self) -> &'static str {
                match self { $(Named::$variant => concat!($($doc),*).trim_ascii()),* }
            }
        }
    };
}

named! {
    /// Positions of a window, the query's own included.
    Window = "window";
    /// Positions of a chunk; a query sees the keys of its chunk.
    Chunk = "chunk";
    /// Positions at the start that every query sees.
    Prefix = "prefix";
    /// Distances from here on share the last bucket.
    MaxDistance = "max_distance";
    /// The length of sequences in training, before rotary angles were changed.
    OriginalContext = "original_context";
    /// Base of the rotary angles.
    Theta = "theta";
    /// Base of the wavelengths of sinusoidal positions.
    Base = "base";
    /// If the number of heads is a power of two, the smallest slope of ALiBi is `2^-ALIBI_MAX`.
    AlibiMax = "alibi_max";
    /// Factor on the slopes of ALiBi.
    AlibiScale = "alibi_scale";
    /// How much longer sequences may be than in training.
    ScalingFactor = "scaling_factor";
    /// Rotary angles up to this pair of features are kept.
    RampLow = "ramp_low";
    /// Rotary angles from this pair of features on are divided by `SCALING_FACTOR`.
    RampHigh = "ramp_high";
    /// Wavelengths above `ORIGINAL_CONTEXT / LOW_FREQ_FACTOR` are divided.
    LowFreqFactor = "low_freq_factor";
    /// Wavelengths below `ORIGINAL_CONTEXT / HIGH_FREQ_FACTOR` are kept.
    HighFreqFactor = "high_freq_factor";
    /// Factor on the sines and cosines of rotary angles.
    Magnitude = "magnitude";
    /// Factor on the scores of attention.
    ScoreScale = "score_scale";
    /// Factor on the weights of experts.
    RouterScale = "router_scale";
    /// Bound on scores or logits: `bound * tanh(x / bound)`.
    Softcap = "softcap";
    /// Factor with which training adds a loss of a part.
    LossWeight = "loss_weight";
    /// Probability of dropping a feature in training.
    Dropout = "dropout";
}
