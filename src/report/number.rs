//! Numbers for readers: every table and page formats them with these functions.
//!
//! Exact numbers are grouped (`124,439,808`); short ones have at least three digits and a unit (`124.4 M`).
//! Counts use thousand, million, billion, trillion (`K M B T`), operations use the decimal prefixes (`k M G
//! T P E`), bytes the binary ones (`KiB MiB GiB`).

use crate::ir::{Dim, Sym};

pub use crate::ir::text::thousands as exact;

/// A count in a few characters: `124.4 M`, `8.03 B`; below a thousand, the number itself.
pub fn count(n: u128) -> String {
    prefixed(n as f64, 1000.0, &["", "K", "M", "B", "T"])
}

/// Operations in a few characters: `284.8 M`, `1.20 T`.
pub fn operations(n: u128) -> String {
    prefixed(n as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// Bytes in a few characters: `474.7 MiB`.
pub fn bytes(n: u128) -> String {
    prefixed(n as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// `124,439,808 (124.4 M)`; below ten thousand, only the exact number.
pub fn count_with_short(n: u128) -> String {
    if n < 10_000 { exact(n) } else { format!("{} ({})", exact(n), count(n)) }
}

/// A share in percent: `31.6 %`; `<0.1 %` if it is small but not zero, `0 %` if it is zero.
pub fn share(part: u128, whole: u128) -> String {
    if part == 0 || whole == 0 {
        return "0 %".into();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    if percent < 0.05 { "<0.1 %".into() } else { format!("{percent:.1} %") }
}

/// A change in percent: `+15.3 %`, `×21.0` or `÷10000`; empty if nothing changes or the first value is 0.
pub fn percent(from: u128, to: u128) -> String {
    if from == to || from == 0 {
        return String::new();
    }
    let percent = (to as f64 - from as f64) * 100.0 / from as f64;
    match percent {
        // From ten times on, a factor is easier to read than a percentage.
        p if p >= 900.0 => format!("×{:.1}", to as f64 / from as f64),
        // It would be rounded to −100 %, as if nothing were left.
        p if p < -99.95 && to > 0 => format!("÷{:.0}", from as f64 / to as f64),
        // One decimal would show it as `+0.0 %` or `−0.0 %`.
        p if p.abs() < 0.05 => "<0.1 %".into(),
        p if p < 0.0 => format!("−{:.1} %", -p),
        p => format!("+{p:.1} %"),
    }
}

/// A polynomial for reading: `247,064,064·B·T + 36,864·B·T²`.
pub fn formula(dim: &Dim) -> String {
    let terms: Vec<String> = dim.terms().into_iter().map(|(syms, n)| term(&syms, n)).collect();
    if terms.is_empty() { "0".into() } else { terms.join(" + ") }
}

fn term(syms: &[Sym], n: u128) -> String {
    let mut factors = Vec::new();
    if n != 1 || syms.is_empty() {
        factors.push(exact(n));
    }
    // Equal symbols are adjacent and become a power.
    for power in syms.chunk_by(|a, b| a == b) {
        let letters: String = power.iter().take(1).map(|s| s.letter()).collect();
        factors.push(match power.len() {
            1 => letters,
            2 => format!("{letters}²"),
            3 => format!("{letters}³"),
            n => format!("{letters}^{n}"),
        });
    }
    factors.join("·")
}

/// The number with the largest unit that leaves at least 1 before the point. There are no decimals without
/// a unit; beyond the largest unit, powers of ten are used.
fn prefixed(n: f64, base: f64, units: &[&str]) -> String {
    let mut value = n;
    let mut larger = units.iter().copied();
    let mut name = larger.next().unwrap_or_default();
    let mut is_plain = true;
    // A value that would be rounded up to the base takes the next unit.
    while value >= base - 0.05
        && let Some(next) = larger.next()
    {
        value /= base;
        (name, is_plain) = (next, false);
    }
    let number = match (is_plain, value) {
        (true, _) => format!("{value:.0}"),
        // There is no larger unit.
        (_, v) if v >= base * 1000.0 => format!("{v:.1e}"),
        (_, v) if v >= base => exact(v.round() as u128),
        // 9.995 and above would be rounded to `10.00`.
        (_, v) if v >= 9.995 => format!("{v:.1}"),
        (_, v) => format!("{v:.2}"),
    };
    if name.is_empty() { number } else { format!("{number} {name}") }
}
