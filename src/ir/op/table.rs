//! Tables that follow from a few numbers: sinusoids, the angles of rotary positions, and the slopes of ALiBi.
//!
//! A graph contains the numbers and the rule instead of the table, so its size does not grow with the width
//! or the number of heads. Code that runs a model computes the whole table; code that displays a model
//! computes only the entries that it shows.

use std::hash::{Hash, Hasher};

use super::quantity::{Named, Quantity};
use crate::ir::Extent;

/// Order of sines and cosines in a sinusoidal table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinusoidLayout {
    /// sin, cos, sin, cos, ... (the paper, d2l)
    Interleaved,
    /// all sines, then all cosines (Marian, M2M-100)
    Concat,
}

/// Angles of rotary positions: position `p` rotates pair `i` by `p * inverse_frequency(i)`.
#[derive(Clone, Debug, PartialEq)]
pub struct RotaryTable {
    /// The number of rotated features of a head, twice the number of pairs.
    pub dim: Extent,
    /// The base of the wavelengths.
    pub theta: f64,
    /// How the frequencies `theta^(-2i/dim)` are changed.
    pub rule: FrequencyRule,
    /// What replaces this table for sequences longer than some length.
    pub long: Option<LongRotary>,
    /// A factor on sines and cosines (YaRN's attention factor).
    pub magnitude: f64,
}

/// How the inverse frequencies `theta^(-2i/dim)` are changed.
#[derive(Clone, Debug, PartialEq)]
pub enum FrequencyRule {
    /// They are not changed.
    Plain,
    /// All are divided by the same number (Chen et al. 2023).
    Divided {
        /// The number by which every frequency is divided.
        by: f64,
    },
    /// Each is divided by its own number (LongRoPE, Ding et al. 2024).
    DividedEach(Vec<f64>),
    /// Those up to pair `low` are kept, those from pair `high` on are divided, with a linear ramp in between
    /// (YaRN, Peng et al. 2023).
    Ramp {
        /// The number by which frequencies from pair `high` on are divided.
        factor: f64,
        /// The pair at which the ramp begins.
        low: f64,
        /// The pair at which the ramp ends.
        high: f64,
    },
    /// Those with short wavelengths are kept, those with long ones are divided, and those in between are
    /// interpolated (Llama 3.1).
    ByWavelength {
        /// The number by which the frequencies of long wavelengths are divided.
        factor: f64,
        /// The number of positions in training.
        original: u64,
        /// Wavelengths above `original / low` are divided.
        low: f64,
        /// Wavelengths below `original / high` are kept.
        high: f64,
    },
}

/// What replaces a rotary table when a sequence is longer than the length a model was trained with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LongRotary {
    /// Sequences with more positions than this use the rule.
    pub from: u64,
    /// The change of the angles.
    pub rule: LongRule,
}

/// How a long sequence changes the angles.
#[derive(Clone, Debug, PartialEq)]
pub enum LongRule {
    /// The frequencies follow another rule (LongRoPE).
    Frequencies(FrequencyRule),
    /// Dynamic NTK: with `n` positions the base grows to
    /// `theta * (factor * n / from - (factor - 1)) ^ (dim / (dim - 2))`.
    Dynamic {
        /// How much longer sequences may be than in training; see the formula above.
        factor: f64,
    },
}

impl RotaryTable {
    /// The number of pairs that are rotated.
    pub fn pairs(&self) -> u64 {
        self.dim.get() / 2
    }

    /// The number of pairs in the author's words.
    pub fn half(&self) -> Extent {
        self.dim.divide(Extent::from(2)).unwrap_or(Extent::from(self.pairs()))
    }

    /// The inverse frequency of a pair for sequences of the length used in training.
    pub fn inverse_frequency(&self, pair: u64) -> f64 {
        self.frequency_under(&self.rule, pair)
    }

    /// The inverse frequency of a pair under a rule.
    pub fn frequency_under(&self, rule: &FrequencyRule, pair: u64) -> f64 {
        // The same operations in the same order as `frequencies` of the kernels, which emitted code calls:
        // both must compute the same bits.
        let plain = self.theta.powf(-(pair.saturating_mul(2) as f64) / self.dim.get() as f64);
        rule.changed(plain, pair)
    }

    /// The inverse frequency of a pair in a sequence of `n` positions.
    pub fn inverse_frequency_at(&self, n: u64, pair: u64) -> f64 {
        match self.long.as_ref().filter(|long| n > long.from) {
            None => self.inverse_frequency(pair),
            Some(LongRotary { rule: LongRule::Frequencies(rule), .. }) => self.frequency_under(rule, pair),
            Some(LongRotary { rule: LongRule::Dynamic { factor }, from }) => {
                let dim = self.dim.get() as f64;
                // `Scaling::check` refuses 2 features, for which this would divide by 0.
                // As above, the operations are those of `dynamic_frequencies` of the kernels.
                let grown =
                    self.theta * (factor * n as f64 / *from as f64 - (factor - 1.0)).powf(dim / (dim - 2.0));
                1.0 / grown.powf(2.0 * pair as f64 / dim)
            }
        }
    }
}

impl FrequencyRule {
    /// The numbers of the rule that readers know by a name.
    pub fn quantities(&self) -> Vec<Quantity> {
        let real = Quantity::Real;
        match self {
            FrequencyRule::Plain | FrequencyRule::DividedEach(_) => Vec::new(),
            FrequencyRule::Divided { by } => vec![real(Named::ScalingFactor, *by)],
            FrequencyRule::Ramp { factor, low, high } => vec![
                real(Named::ScalingFactor, *factor),
                real(Named::RampLow, *low),
                real(Named::RampHigh, *high),
            ],
            FrequencyRule::ByWavelength { factor, original, low, high } => vec![
                real(Named::ScalingFactor, *factor),
                Quantity::Count(Named::OriginalContext, *original),
                real(Named::LowFreqFactor, *low),
                real(Named::HighFreqFactor, *high),
            ],
        }
    }

    /// A plain frequency, changed according to the rule.
    fn changed(&self, plain: f64, pair: u64) -> f64 {
        match self {
            FrequencyRule::Plain => plain,
            FrequencyRule::Divided { by } => plain / by,
            FrequencyRule::DividedEach(by) => {
                // `Scaling::check` has ensured that there is a number for each pair.
                plain / usize::try_from(pair).ok().and_then(|i| by.get(i)).copied().unwrap_or(1.0)
            }
            FrequencyRule::Ramp { factor, low, high } => {
                // `Yarn::ramp` keeps `low` and `high` apart.
                let ramp = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
                plain / factor * ramp + plain * (1.0 - ramp)
            }
            FrequencyRule::ByWavelength { factor, original, low, high } => {
                let original = *original as f64;
                let wavelength = 2.0 * std::f64::consts::PI / plain;
                if wavelength < original / high {
                    plain
                } else if wavelength > original / low {
                    plain / factor
                } else {
                    let smooth = (original / wavelength - low) / (high - low);
                    (1.0 - smooth) * plain / factor + smooth * plain
                }
            }
        }
    }
}

/// Slopes of ALiBi (Press, Smith, Lewis 2021): the geometric sequence `scale * 2^(-max * i / heads)`. If
/// the number of heads is not a power of two, the slopes of the next lower power are followed by every
/// second one of the next higher power, as in BLOOM and MPT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slopes {
    /// The number of heads.
    pub heads: Extent,
    /// If the number of heads is a power of two, the smallest slope is `2^-max`.
    pub max: f64,
    /// A factor on every slope.
    pub scale: f64,
}

impl Slopes {
    /// The largest power of two that is at most the number of heads.
    fn below(&self) -> u64 {
        // Without heads nobody asks for a slope, and a quotient by 1 is defined.
        self.heads.get().checked_ilog2().map_or(1, |power| 1u64 << power)
    }

    /// The slope of a head.
    pub fn slope(&self, head: u64) -> f64 {
        let of = |i: u64, n: u64| self.scale * 2f64.powf(-self.max * i as f64 / n as f64);
        let below = self.below();
        match head.checked_sub(below) {
            None => of(head.saturating_add(1), below),
            Some(rest) => of(rest.saturating_mul(2).saturating_add(1), below.saturating_mul(2)),
        }
    }

    /// The smallest and the largest slope. They are not those of the first and the last head: the heads
    /// beyond a power of two have slopes between those of the others, and one above the first.
    pub fn range(&self) -> (f64, f64) {
        let last = self.heads.get().saturating_sub(1);
        let below = self.below();
        // Slopes fall, or rise, along the heads up to the power of two and along those after it.
        let ends = [0, below.saturating_sub(1), below.min(last), last].map(|head| self.slope(head));
        ends.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| (low.min(*s), high.max(*s)))
    }
}

// Tables are compared when several layers request the same one. Their numbers come from a spec, which
// contains no NaN, so equality is reflexive.

impl Eq for RotaryTable {}

impl Hash for RotaryTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { dim, theta, rule, long, magnitude } = self;
        (dim, rule, long).hash(state);
        hash_numbers(&[*theta, *magnitude], state);
    }
}

impl Eq for FrequencyRule {}

impl Hash for FrequencyRule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            FrequencyRule::Plain => {}
            FrequencyRule::Divided { by } => hash_numbers(&[*by], state),
            FrequencyRule::DividedEach(by) => hash_numbers(by, state),
            FrequencyRule::Ramp { factor, low, high } => hash_numbers(&[*factor, *low, *high], state),
            FrequencyRule::ByWavelength { factor, original, low, high } => {
                original.hash(state);
                hash_numbers(&[*factor, *low, *high], state);
            }
        }
    }
}

impl Eq for LongRule {}

impl Hash for LongRule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            LongRule::Frequencies(rule) => rule.hash(state),
            LongRule::Dynamic { factor } => hash_numbers(&[*factor], state),
        }
    }
}

impl Eq for Slopes {}

impl Hash for Slopes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.heads.hash(state);
        hash_numbers(&[self.max, self.scale], state);
    }
}

/// Hashes numbers so that equal ones have equal hashes: 0 and -0 too, which adding 0 makes the same.
fn hash_numbers<H: Hasher>(numbers: &[f64], state: &mut H) {
    numbers.iter().for_each(|x| (x + 0.0).to_bits().hash(state));
}
