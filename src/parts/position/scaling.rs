//! How rotary angles change for sequences longer than those of training.
//!
//! Each scaling is a rule for the inverse frequencies and a factor on sines and cosines. The definitions
//! are those of `modeling_rope_utils` in Hugging Face's library, for which published checkpoints were made.

use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{record, slot};
use crate::field::rule::{Is, Rule};
use crate::field::{Positive, Size};
use crate::ir::Extent;
use crate::ir::op::{FrequencyRule, LongRotary, LongRule, RotaryTable};

record! {
    /// Angles are not changed.
    pub struct Unscaled as "none" {}
}
record! {
    /// Every position is divided by the factor (Chen et al. 2023).
    pub struct Linear as "linear" {
        /// How many times longer sequences can be.
        factor: Positive = required;
    }
}
record! {
    /// The base grows with the sequence when it is longer than in training (dynamic NTK).
    pub struct Dynamic as "dynamic" {
        /// How many times longer sequences can be.
        factor: Positive = required;
        /// The length of sequences in training.
        original_context: Size = formula("context");
    }
}
record! {
    /// Low frequencies are interpolated, high ones kept, with a ramp in between, and the temperature of the
    /// scores is adapted (YaRN, Peng et al. 2023).
    pub struct Yarn as "yarn" {
        /// How many times longer sequences can be.
        factor: Positive = required;
        /// The length of sequences in training.
        original_context: Size = required;
        /// Frequencies with at least this many rotations within the original context are kept.
        beta_fast: Positive = value(Positive(32.0));
        /// Frequencies with fewer rotations than this within the original context are interpolated.
        beta_slow: Positive = value(Positive(1.0));
        /// Factor on sines and cosines; by default `0.1 ln(factor) + 1`.
        attention_factor: Option<Positive> = absent;
        /// The weight of the logarithm in the attention factor, which is divided by that of
        /// `mscale_all_dim` (DeepSeek).
        mscale: Option<Positive> = absent;
        /// The weight whose factor divides that of `mscale`.
        mscale_all_dim: Option<Positive> = absent;
        /// Whether the ramp's ends are rounded to whole dimensions.
        truncate: bool = value(true);
    } rules [
        Rule::below("beta_slow", "beta_fast").help("the values of the paper are 1 and 32"),
        Rule::excludes(
            ("mscale", Is::Given),
            ("mscale_all_dim", Is::Absent),
            "`mscale` has an effect only together with `mscale_all_dim`",
        )
        .help("give both, or `attention_factor`"),
        Rule::excludes(
            ("mscale_all_dim", Is::Given),
            ("mscale", Is::Absent),
            "`mscale_all_dim` has an effect only together with `mscale`",
        )
        .help("give both, or `attention_factor`"),
        Rule::excludes(
            ("attention_factor", Is::Given),
            ("mscale", Is::Given),
            "`attention_factor` is used as it is, so that `mscale` would have no effect",
        ),
    ];
}
record! {
    /// A factor for every frequency, in one list for short and one for long sequences (LongRoPE, Ding et
    /// al. 2024).
    pub struct LongRope as "longrope" {
        /// Divisors for sequences up to the original context.
        short_factor: Vec<Positive> = required;
        /// Divisors for longer sequences.
        long_factor: Vec<Positive> = required;
        /// The length of sequences in training.
        original_context: Size = required;
        /// Factor on sines and cosines; by default `sqrt(1 + ln(context/original_context) /
        /// ln(original_context))`.
        attention_factor: Option<Positive> = absent;
    } rules [Rule::as_long("long_factor", "short_factor")];
}
record! {
    /// Low frequencies are divided by the factor, high ones kept, with a ramp in between (Llama 3.1).
    pub struct Llama3 as "llama3" {
        /// How many times longer sequences can be.
        factor: Positive = required;
        /// Wavelengths above `original_context / low_freq_factor` are divided.
        low_freq_factor: Positive = value(Positive(1.0));
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: Positive = value(Positive(4.0));
        /// The length of sequences in training.
        original_context: Size = required;
    } rules [
        Rule::below("low_freq_factor", "high_freq_factor").help("the values of Llama 3.1 are 1 and 4"),
    ];
}

slot! {
    /// How rotary angles change for longer sequences.
    pub enum Scaling as "scaling" {
        /// Angles are not changed.
        "none" => None(Unscaled),
        /// Positions are divided by a factor.
        "linear" => Linear(Linear),
        /// The base grows with the sequence.
        "dynamic" => Dynamic(Dynamic),
        /// Depends on the frequency, and adapts the temperature of the scores.
        "yarn" => Yarn(Yarn),
        /// Given factors, for short and for long sequences.
        "longrope" => LongRope(LongRope),
        /// Depends on the frequency.
        "llama3" => Llama3(Llama3),
    }
}

impl Scaling {
    /// Angles that are not changed.
    pub fn unscaled() -> Self {
        Self::None(Unscaled { places: Default::default() })
    }

    /// The angles of `dim` rotated features, including the changes for long sequences.
    pub fn table(&self, theta: f64, dim: Extent, context: u64) -> RotaryTable {
        let of = |rule| RotaryTable { dim, theta, rule, long: None, magnitude: 1.0 };
        match self {
            Self::None(_) => of(FrequencyRule::Plain),
            Self::Linear(s) => of(FrequencyRule::Divided { by: *s.factor }),
            Self::Dynamic(s) => RotaryTable {
                long: Some(LongRotary {
                    from: *s.original_context,
                    rule: LongRule::Dynamic { factor: *s.factor },
                }),
                ..of(FrequencyRule::Plain)
            },
            Self::Yarn(s) => RotaryTable { magnitude: s.magnitude(), ..of(s.ramp(theta, dim.get())) },
            Self::LongRope(s) => {
                let original = *s.original_context as f64;
                // Hugging Face's library takes the factor from the two lengths, too.
                let factor = context as f64 / original;
                // A context that is no longer than the original one stretches nothing.
                let magnitude = if factor <= 1.0 { 1.0 } else { (1.0 + factor.ln() / original.ln()).sqrt() };
                RotaryTable {
                    long: Some(LongRotary {
                        from: *s.original_context,
                        rule: LongRule::Frequencies(divided(&s.long_factor)),
                    }),
                    magnitude: s.attention_factor.map_or(magnitude, |f| *f),
                    ..of(divided(&s.short_factor))
                }
            }
            Self::Llama3(s) => of(FrequencyRule::ByWavelength {
                factor: *s.factor,
                original: *s.original_context,
                low: *s.low_freq_factor,
                high: *s.high_freq_factor,
            }),
        }
    }

    /// Whether angles change while a sequence grows to this length. Keys of earlier tokens then differ from
    /// those of the whole sequence, so they cannot be cached.
    pub fn changes_within(&self, context: u64) -> bool {
        match self {
            Self::Dynamic(s) => context > *s.original_context,
            Self::LongRope(s) => context > *s.original_context,
            Self::None(_) | Self::Linear(_) | Self::Yarn(_) | Self::Llama3(_) => false,
        }
    }

    /// Checks the fields for this number of rotated features.
    pub fn check(&self, dim: u64) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        match self {
            // That the lists differ in length has been reported, and then one of them may be right.
            Self::LongRope(s) if s.short_factor.len() != s.long_factor.len() => {}
            Self::LongRope(s) => {
                for (name, list) in [("short_factor", &s.short_factor), ("long_factor", &s.long_factor)] {
                    if list.len() as u64 != dim / 2 {
                        let message = format!(
                            "`{name}` has {}, but a head needs {}",
                            counted(list.len(), "number"),
                            dim / 2
                        );
                        found.push(Diagnostic::error(Code::LengthMismatch, s.places.of(name), message).help(
                            format!(
                                "one number for each pair of rotated features, of which there are {}",
                                dim / 2
                            ),
                        ));
                    }
                }
                // `ln(1)` is 0, by which the magnitude would be divided.
                if *s.original_context < 2 {
                    let message = "longrope takes the logarithm of original_context, which must be above 1";
                    found.push(Diagnostic::error(Code::OutOfRange, s.places.of("original_context"), message));
                }
            }
            // The base is raised to the power `dim / (dim - 2)`.
            Self::Dynamic(_) if dim <= 2 => {
                let message = "dynamic scaling needs more than 2 rotated features";
                found.push(Diagnostic::error(Code::OutOfRange, self.places().whole(), message));
            }
            Self::None(_) | Self::Linear(_) | Self::Dynamic(_) | Self::Yarn(_) | Self::Llama3(_) => {}
        }
        found
    }
}

impl Yarn {
    fn magnitude(&self) -> f64 {
        // The paper's factor `0.1 ln(scale) + 1`, with DeepSeek's weight of the logarithm.
        let of = |scale: f64, mscale: f64| if scale <= 1.0 { 1.0 } else { 0.1 * mscale * scale.ln() + 1.0 };
        // `mscale` counts only together with `mscale_all_dim`, as in Hugging Face's library.
        match (self.attention_factor, self.mscale, self.mscale_all_dim) {
            (Some(factor), _, _) => *factor,
            (None, Some(m), Some(all)) => of(*self.factor, *m) / of(*self.factor, *all),
            (None, _, _) => of(*self.factor, 1.0),
        }
    }

    /// The ramp covers the pairs that make between `beta_slow` and `beta_fast` turns within the original
    /// context.
    fn ramp(&self, theta: f64, dim: u64) -> FrequencyRule {
        let dim = dim as f64;
        // The pair that makes `beta` turns within the original context: the inverse of `original * theta^(-2
        // pair / dim) / 2π`.
        let turns = |beta: f64| {
            let original = *self.original_context as f64;
            dim * (original / (beta * 2.0 * std::f64::consts::PI)).ln() / (2.0 * theta.ln())
        };
        let (low, high) = (turns(*self.beta_fast), turns(*self.beta_slow));
        let (low, high) = if self.truncate { (low.floor(), high.ceil()) } else { (low, high) };
        // `dim - 1` and not the last pair, as in Hugging Face's library.
        let (low, mut high) = (low.max(0.0), high.min(dim - 1.0));
        // As in Hugging Face's library: the slope of the ramp would be infinite.
        if low == high {
            high += 0.001;
        }
        FrequencyRule::Ramp { factor: *self.factor, low, high }
    }
}

/// Each frequency divided by its number; the plain frequencies if all numbers are 1.
fn divided(by: &[Positive]) -> FrequencyRule {
    // So that emitted code has no list of ones.
    if by.iter().all(|by| **by == 1.0) {
        return FrequencyRule::Plain;
    }
    FrequencyRule::DividedEach(by.iter().map(|by| **by).collect())
}
