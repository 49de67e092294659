//! Which frequencies a table of rotary positions has: one rule, or another one for long sequences.

use crate::ir::Extent;
use crate::ir::op::{FrequencyRule, LongRule, Pairing, RotaryTable, Sequence};

/// The function of every target that rotates pairs of features: `(x [B, H, T, D], cos, sin)`.
pub fn function(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Half => "rotate_half",
        Pairing::Interleaved => "rotate_interleaved",
    }
}

/// The frequencies of a table, which may depend on the length of the sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Frequencies<'r> {
    /// The same for every sequence that the table is for.
    Same(Rule<'r>),
    /// Other frequencies for long sequences.
    ByLength {
        /// Sequences with more positions than this are long.
        from: u64,
        /// The frequencies of all other sequences.
        usual: Rule<'r>,
        /// The frequencies of long sequences.
        long: Rule<'r>,
    },
}

/// How the frequencies of a table are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule<'r> {
    /// By a rule that does not depend on the length.
    Fixed(&'r FrequencyRule),
    /// By a base that grows with the length beyond `from` (dynamic NTK).
    Dynamic {
        /// How much longer sequences may be than in training.
        factor: f64,
        /// The number of positions in training, beyond which the base grows.
        from: u64,
    },
}

/// The frequencies of a table along a sequence. Where the length is known, or both rules are the same, there
/// is no choice.
pub fn frequencies(rotary: &RotaryTable, along: Sequence) -> Frequencies<'_> {
    let usual = Rule::Fixed(&rotary.rule);
    let Some(long) = &rotary.long else { return Frequencies::Same(usual) };
    let from = long.from;
    let beyond = match &long.rule {
        LongRule::Frequencies(rule) => Rule::Fixed(rule),
        LongRule::Dynamic { factor } => Rule::Dynamic { factor: *factor, from },
    };
    match along {
        Sequence::Fixed(length) if length <= Extent::from(from) => Frequencies::Same(usual),
        Sequence::Fixed(_) => Frequencies::Same(beyond),
        Sequence::Whole | Sequence::Cached | Sequence::Source if beyond == usual => Frequencies::Same(usual),
        Sequence::Whole | Sequence::Cached | Sequence::Source => {
            Frequencies::ByLength { from, usual, long: beyond }
        }
    }
}
