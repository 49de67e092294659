//! The frequencies of rotary positions as an expression.

use super::function::Function;
use super::lengths::key_count;
use super::syntax::{Expr, Sign};
use crate::emit::program::rotary::{self, Frequencies, Rule};
use crate::ir::op::quantity::Named;
use crate::ir::op::{FrequencyRule, RotaryTable, Sequence};
use crate::lower::Bug;

/// The inverse frequencies of all pairs.
pub fn frequencies(f: &mut Function<'_>, rotary: &RotaryTable, along: Sequence) -> Result<Expr, Bug> {
    match rotary::frequencies(rotary, along) {
        Frequencies::Same(rule) => by_rule(f, rotary, rule, along),
        Frequencies::ByLength { from, usual, long } => {
            let (usual, long) = (by_rule(f, rotary, usual, along)?, by_rule(f, rotary, long, along)?);
            let from = f.file.count(Named::OriginalContext, from);
            Ok(key_count(f, along).binary(Sign::Compare(">"), from).choose(long, usual))
        }
    }
}

/// The frequencies by a rule that may depend on the number of keys.
fn by_rule(f: &mut Function<'_>, rotary: &RotaryTable, rule: Rule<'_>, along: Sequence) -> Result<Expr, Bug> {
    match rule {
        Rule::Fixed(rule) => under(f, rotary, rule),
        Rule::Dynamic { factor, from } => {
            let sizes = [
                f.file.real(Named::Theta, rotary.theta),
                f.file.extent(rotary.dim),
                f.file.real(Named::ScalingFactor, factor),
                f.file.count(Named::OriginalContext, from),
                key_count(f, along),
                f.device(),
            ];
            Ok(Expr::Runtime("dynamic_frequencies").call(sizes))
        }
    }
}

/// The frequencies under a rule that does not depend on the length: the plain ones, and how they are changed.
fn under(f: &mut Function<'_>, rotary: &RotaryTable, rule: &FrequencyRule) -> Result<Expr, Bug> {
    let theta = f.file.real(Named::Theta, rotary.theta);
    let plain = Expr::Runtime("frequencies").call([theta, f.file.extent(rotary.dim), f.device()]);
    let file = f.file;
    let factor = |by: f64| file.real(Named::ScalingFactor, by);
    Ok(match rule {
        FrequencyRule::Plain => plain,
        FrequencyRule::Divided { by } => plain.over(factor(*by)),
        FrequencyRule::DividedEach(by) => {
            let id = f.file.program.constants.table(by);
            let id = id.ok_or_else(|| Bug(format!("{} divisors of angles have no name", by.len())))?;
            Expr::Runtime("divided_frequencies").call([plain, Expr::Table(id)])
        }
        FrequencyRule::Ramp { factor: by, low, high } => Expr::Runtime("ramp_frequencies").call([
            plain,
            factor(*by),
            f.file.real(Named::RampLow, *low),
            f.file.real(Named::RampHigh, *high),
        ]),
        FrequencyRule::ByWavelength { factor: by, original, low, high } => {
            Expr::Runtime("wavelength_frequencies").call([
                plain,
                factor(*by),
                f.file.count(Named::OriginalContext, *original),
                f.file.real(Named::LowFreqFactor, *low),
                f.file.real(Named::HighFreqFactor, *high),
            ])
        }
    })
}
