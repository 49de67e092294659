//! Exact numbers: ratios of integers as long as they fit, and otherwise floats.
//!
//! A ratio is in lowest terms and has a positive denominator. An operation that overflows returns `None`.

use std::fmt;

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `num / den`, exact.
    Ratio(i128, i128),
    /// A number that is not a ratio of 128-bit integers: roots, logarithms, very small or very large
    /// decimals.
    Float(f64),
}

impl Number {
    /// The number `value`, exact.
    pub fn integer(value: i128) -> Self {
        Number::Ratio(value, 1)
    }

    /// `num / den` in lowest terms; `None` if `den` is 0 or changing a sign overflows.
    pub fn ratio(num: i128, den: i128) -> Option<Self> {
        if den == 0 {
            return None;
        }
        // Of absolute values in u128: that of the least i128 is not an i128.
        let divisor = i128::try_from(gcd(num.unsigned_abs(), den.unsigned_abs())).ok()?;
        let (num, den) = (num.checked_div(divisor)?, den.checked_div(divisor)?);
        if den < 0 {
            return Some(Number::Ratio(num.checked_neg()?, den.checked_neg()?));
        }
        Some(Number::Ratio(num, den))
    }

    /// The value of a decimal literal, in which `_` is allowed between digits; `None` if the text is not a
    /// decimal literal or its value is too large for a float.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.replace('_', "");
        let float: f64 = digits.parse().ok()?;
        // Rust would also parse `inf`, `nan` and `-1` as floats.
        if !float.is_finite() || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        // One with more digits than a ratio can have is read as it would be printed, so that it stays the same
        // number.
        Some(decimal(&digits).or_else(|| decimal(&float_text(float))).unwrap_or(Number::Float(float)))
    }

    /// The value as a count, if it is one.
    pub fn to_u64(self) -> Option<u64> {
        match self {
            Number::Ratio(num, 1) => u64::try_from(num).ok(),
            Number::Ratio(..) => None,
            // Above 2^53 floats skip whole numbers, so this one might stand for another.
            Number::Float(f) if f.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&f) => {
                Some(f as u64)
            }
            Number::Float(_) => None,
        }
    }

    /// The nearest float. For a decimal literal it equals what Rust parses its text to.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Ratio(num, den) => {
                let size = nearest(num.unsigned_abs(), den.unsigned_abs());
                if num < 0 { -size } else { size }
            }
            Number::Float(f) => f,
        }
    }

    /// Whether the value is a whole number.
    pub fn is_integer(self) -> bool {
        match self {
            Number::Ratio(_, den) => den == 1,
            Number::Float(f) => f.fract() == 0.0,
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        match self {
            Number::Ratio(num, _) => num == 0,
            Number::Float(f) => f == 0.0,
        }
    }

    /// Whether the value is below zero.
    pub fn is_negative(self) -> bool {
        match self {
            Number::Ratio(num, _) => num < 0,
            Number::Float(f) => f < 0.0,
        }
    }

    /// `-a`; `None` if it overflows
    pub fn negate(self) -> Option<Self> {
        match self {
            Number::Ratio(num, den) => Some(Number::Ratio(num.checked_neg()?, den)),
            Number::Float(f) => Some(Number::Float(-f)),
        }
    }

    /// `a + b`, exact for ratios; `None` if it overflows
    pub fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Number::Ratio(a, b), Number::Ratio(c, d)) => {
                // Over the least common denominator, so that fewer sums overflow.
                let divisor = i128::try_from(gcd(b.unsigned_abs(), d.unsigned_abs())).ok()?;
                let (left, right) = (d.checked_div(divisor)?, b.checked_div(divisor)?);
                let num = a.checked_mul(left)?.checked_add(c.checked_mul(right)?)?;
                Number::ratio(num, b.checked_mul(left)?)
            }
            // One float is enough to make a sum inexact, so both are floats from here on.
            (a, b) => finite(a.to_f64() + b.to_f64()),
        }
    }

    /// `a - b`, exact for ratios; `None` if it overflows
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negate()?)
    }

    /// `a * b`, exact for ratios; `None` if it overflows
    pub fn times(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Number::Ratio(a, b), Number::Ratio(c, d)) => {
                // Common factors are cancelled crosswise first, so that 8/3 * 3 does not overflow if 8 does
                // not.
                let (Number::Ratio(a, d), Number::Ratio(c, b)) = (Number::ratio(a, d)?, Number::ratio(c, b)?)
                else {
                    return None;
                };
                Number::ratio(a.checked_mul(c)?, b.checked_mul(d)?)
            }
            (a, b) => finite(a.to_f64() * b.to_f64()),
        }
    }

    /// `a / b`; `None` also if `b` is zero.
    pub fn over(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, Number::Ratio(c, d)) if matches!(a, Number::Ratio(..)) => a.times(Number::ratio(d, c)?),
            (a, b) => finite(a.to_f64() / b.to_f64()),
        }
    }

    /// `a ^ b`: exact for whole exponents, a float otherwise. `0 ^ 0` is 1.
    pub fn power(self, exponent: Self) -> Option<Self> {
        match (self, exponent) {
            (Number::Ratio(..), Number::Ratio(e, 1)) => {
                // An exponent beyond 2^32 overflows for every base but -1, 0 and 1.
                let count = u32::try_from(e.unsigned_abs()).ok()?;
                let Number::Ratio(num, den) = self else { return None };
                if e < 0 {
                    return Number::integer(1).over(Number::ratio(num, den)?.power(exponent.negate()?)?);
                }
                Number::ratio(num.checked_pow(count)?, den.checked_pow(count)?)
            }
            (a, b) => finite(a.to_f64().powf(b.to_f64())),
        }
    }

    /// The square root; exact if the number is the square of a ratio.
    pub fn sqrt(self) -> Option<Self> {
        // `1/sqrt(64)` must stay exact, because a size may be computed from it.
        if let Number::Ratio(num, den) = self
            && let (Ok(n), Ok(d)) = (u128::try_from(num), u128::try_from(den))
            && let (rn, rd) = (n.isqrt(), d.isqrt())
            && rn.checked_mul(rn) == Some(n)
            && rd.checked_mul(rd) == Some(d)
        {
            return Number::ratio(i128::try_from(rn).ok()?, i128::try_from(rd).ok()?);
        }
        finite(self.to_f64().sqrt())
    }

    /// The greatest whole number that is not larger.
    pub fn floor(self) -> Self {
        match self {
            Number::Ratio(num, den) => Number::integer(num.div_euclid(den)),
            Number::Float(f) => whole(f.floor()),
        }
    }

    /// The least whole number that is not smaller.
    pub fn ceil(self) -> Option<Self> {
        self.negate()?.floor().negate()
    }

    /// The nearest whole number, halves away from zero.
    pub fn round(self) -> Option<Self> {
        match self {
            Number::Ratio(num, _) => {
                let half = Number::Ratio(1, 2);
                if num < 0 { self.minus(half)?.ceil() } else { Some(self.plus(half)?.floor()) }
            }
            Number::Float(f) => Some(whole(f.round())),
        }
    }

    /// Compares two numbers, exactly if both are ratios.
    pub fn compare(self, other: Self) -> std::cmp::Ordering {
        match (self, other) {
            (Number::Ratio(..), Number::Ratio(..)) => match self.minus(other) {
                Some(difference) if difference.is_negative() => std::cmp::Ordering::Less,
                Some(difference) if difference.is_zero() => std::cmp::Ordering::Equal,
                Some(_) => std::cmp::Ordering::Greater,
                // Only ratios of very large integers have a difference that overflows; as floats their order
                // is right up to rounding.
                None => self.to_f64().total_cmp(&other.to_f64()),
            },
            (a, b) => a.to_f64().total_cmp(&b.to_f64()),
        }
    }
}

impl fmt::Display for Number {
    /// Prints integers as they are, decimals with all their digits, and other ratios as `8/3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Number::Ratio(num, 1) => write!(f, "{num}"),
            Number::Ratio(num, den) => match decimal_text(num, den) {
                Some(text) => f.write_str(&text),
                None => write!(f, "{num}/{den}"),
            },
            Number::Float(value) => f.write_str(&float_text(value)),
        }
    }
}

/// A ratio as the decimal that reads back as it, with an exponent if that is shorter; `None` if there is none.
fn decimal_text(num: i128, den: i128) -> Option<String> {
    let is_whole = |places: &u32| 10i128.checked_pow(*places)?.checked_rem(den).map(|rest| rest == 0);
    let places = (1..=i128::MAX.ilog10()).find(|places| is_whole(places) == Some(true))?;
    let digits = num.checked_mul(10i128.checked_pow(places)?.checked_div(den)?)?.unsigned_abs().to_string();
    let sign = if num < 0 { "-" } else { "" };
    let places = usize::try_from(places).ok()?;
    let padded = format!("{digits:0>width$}", width = places.checked_add(1)?);
    let (whole, fraction) = padded.split_at_checked(padded.len().checked_sub(places)?)?;
    let (first, rest) = digits.split_at_checked(1)?;
    let point = if rest.is_empty() { "" } else { "." };
    let power = isize::try_from(rest.len()).ok()?.checked_sub_unsigned(places)?;
    let (plain, exponent) =
        (format!("{sign}{whole}.{fraction}"), format!("{sign}{first}{point}{rest}e{power}"));
    Some(if exponent.len() < plain.len() { exponent } else { plain })
}

/// The shortest text that parses back to the float, with an exponent if that is shorter.
fn float_text(value: f64) -> String {
    let (plain, exponent) = (format!("{value}"), format!("{value:e}"));
    if exponent.len() < plain.len() { exponent } else { plain }
}

/// A literal of digits with at most one dot and an exponent, as an exact ratio if it fits.
fn decimal(digits: &str) -> Option<Number> {
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // Zeros at the end of a fraction would only make the numerator larger.
    let fraction = fraction.trim_end_matches('0');
    // The leading `0` is for literals such as `.5`.
    let num: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let scale = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    // The power of ten may overflow even for zero: `0e500`.
    if num == 0 {
        return Some(Number::integer(0));
    }
    let power = 10i128.checked_pow(scale.unsigned_abs())?;
    if scale < 0 { Number::ratio(num, power) } else { Some(Number::integer(num.checked_mul(power)?)) }
}

/// The float nearest to `num / den`, rounded once.
fn nearest(num: u128, den: u128) -> f64 {
    const EXACT: u128 = 1 << 53;
    // Both are floats without rounding, so only the division rounds.
    if num <= EXACT && den <= EXACT {
        return num as f64 / den as f64;
    }
    // Long division to 64 significant bits or more; what is left over is kept in the last bit, so that
    // the one rounding, in the conversion to a float, sees on which side of the middle the value lies.
    let (Some(mut quotient), Some(mut rest)) = (num.checked_div(den), num.checked_rem(den)) else {
        return f64::NAN;
    };
    let mut scale: i32 = 0;
    // Each round gives a bit, and at most 191 are needed; the bound of `scale` only makes the end plain.
    while quotient < 1 << 64 && rest != 0 && scale < 1000 {
        // `rest` is below `den`, which is at most 2^127, so no bit is shifted out.
        rest <<= 1;
        quotient <<= 1;
        if rest >= den {
            rest = rest.saturating_sub(den);
            quotient |= 1;
        }
        scale = scale.saturating_add(1);
    }
    if rest != 0 {
        quotient |= 1;
    }
    quotient as f64 * 0.5f64.powi(scale)
}

/// A whole float as an exact number where it is one.
fn whole(f: f64) -> Number {
    // Up to 2^53 the float is the exact result; above, its neighbours are more than 1 apart.
    if f.abs() <= 9_007_199_254_740_992.0 { Number::integer(f as i128) } else { Number::Float(f) }
}

/// A float, unless it is infinite or not a number.
fn finite(f: f64) -> Option<Number> {
    f.is_finite().then_some(Number::Float(f))
}

/// The greatest common divisor.
fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
