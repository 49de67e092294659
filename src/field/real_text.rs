//! Real numbers as a spec writes them.

/// A real number as it is written in a spec: `1e-5`, `10000`, `0.5`, `8/3`.
pub(super) fn real_text(value: f64) -> String {
    quotient(value).unwrap_or_else(|| decimal_text(value))
}

/// A real number as a decimal: `1e-5`, `10000`, `2.6666666666666665`.
// Rust prints whole floats with `.0`, which a spec does not need; from 1e16 on it prints an exponent.
pub fn decimal_text(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:?}") }
}

/// A number that has no short decimal form as the quotient of small whole numbers, if it is the double
/// closest to one. Read again as a decimal, 2.6666666666666665 times 48 would not be a whole number.
fn quotient(value: f64) -> Option<String> {
    // Every decimal of up to 15 digits is kept by a double, so such a number was probably written as one.
    const SHORT: usize = 15;
    let is_long = format!("{value:?}").chars().filter(char::is_ascii_digit).count() > SHORT;
    let of = |below: u32| {
        let above = (value * f64::from(below)).round();
        // With larger numbers above the line, nearly every double would be some quotient by chance.
        (above.abs() < 1e6 && above / f64::from(below) == value).then(|| format!("{above:.0}/{below}"))
    };
    is_long.then(|| (2..=1000).find_map(of))?
}

/// The number that a spec writes as the quotient of two whole numbers, `8/3` or `-1/12`: the same double from which the
/// text was made.
pub fn quotient_of(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/')?;
    let whole = |text: &str| text.parse::<i32>().ok().map(f64::from);
    Some(whole(above)? / whole(below)?).filter(|value| value.is_finite())
}
