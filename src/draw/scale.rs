//! Scales: they map numbers to positions on an axis, to tick labels, and to colours.
//!
//! The colour scales are readable with any colour vision and in grey: one rises in lightness, for values
//! that start at zero (viridis); one has a pale middle, for values with a sign (blue to red).

/// A range of numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The number at the beginning of the axis.
    pub low: f64,
    /// The number at the end of the axis, above `low`.
    pub high: f64,
    /// Whether the scale is logarithmic: equal factors have equal distances.
    pub is_log: bool,
    /// What it counts, for the words of its ticks.
    pub unit: Unit,
}

/// What an axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Anything: thousands are shortened to K, M, B and T.
    #[default]
    Count,
    /// Operations: as counts, with G for thousand millions, as operations are written everywhere else.
    Operations,
    /// Bytes: round numbers of KiB, MiB, GiB, as bytes are written everywhere else.
    Bytes,
}

/// Units of bytes, each 1024 times the one before.
const BYTES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl Scale {
    /// The smallest linear scale that contains all numbers, widened to round ticks.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        Self::counting(Unit::Count, values)
    }

    /// The smallest linear scale that contains all numbers, widened to ticks that are round in a unit.
    pub fn counting(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        let step = unit.step(low, high);
        // A number that rounding has put beyond a tick, such as 100.00000000000001, needs no other tick.
        let slack = 1e-9;
        let (low, high) = ((low / step + slack).floor() * step, (high / step - slack).ceil() * step);
        Self { low, high, is_log: false, unit }
    }

    /// The smallest linear scale that contains all numbers.
    pub fn tight(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        Self { low, high, is_log: false, unit: Unit::Count }
    }

    /// The smallest logarithmic scale from one power of ten to another that contains all positive numbers.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Self {
        // A loss of 0 has no logarithm; it is left out instead of making the whole axis infinite.
        let (low, high) = bounds(values.into_iter().filter(|v| *v > 0.0).map(f64::log10));
        // Powers beyond 10^308 are infinite in `f64`.
        let (low, high) = (low.floor().clamp(-300.0, 300.0), high.ceil().clamp(-300.0, 300.0));
        let high = if high > low { high } else { low + 1.0 };
        Self { low: 10f64.powf(low), high: 10f64.powf(high), is_log: true, unit: Unit::Count }
    }

    /// The position of a number, from 0 to 1 within the scale; not finite if the number has no position, such
    /// as 0 on a logarithmic scale.
    pub fn share(&self, value: f64) -> f64 {
        if self.is_log {
            return (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10());
        }
        (value - self.low) / (self.high - self.low)
    }

    /// The ticks from low to high, with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if self.is_log {
            let (first, last) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            // At most seven powers are labelled; `10⁻³⁰⁰` to `10³⁰⁰` would leave no room between them.
            let stride = ((last - first) / 6 + 1).max(1);
            let exponents = (first..=last).step_by(usize::try_from(stride).unwrap_or(1));
            return exponents.map(|e| (10f64.powi(e), power(e))).collect();
        }
        let step = self.unit.step(self.low, self.high);
        let first = (self.low / step - 1e-9).ceil();
        // Rounding may make a step too small; a chart with more ticks could not be read.
        let count = ((self.high / step + 1e-9).floor() - first).clamp(0.0, 50.0) as usize;
        let word = |v: f64| match self.unit {
            Unit::Count => tick(v, step),
            // A billion operations are a GFLOP, and never "B", which looks like bytes; a thousand are "k".
            Unit::Operations => tick(v, step).replace(" B", " G").replace(" K", " k"),
            Unit::Bytes if v.abs() < step * 1e-6 => "0".to_owned(),
            Unit::Bytes => {
                let (size, name) = binary(self.low, self.high);
                format!("{} {name}", tick(v / size, step / size))
            }
        };
        (0..=count).map(|i| (first + i as f64) * step).map(|v| (v, word(v))).collect()
    }
}

impl Unit {
    /// A round step that divides the range into four to eight.
    fn step(self, low: f64, high: f64) -> f64 {
        match self {
            Unit::Count | Unit::Operations => step(low, high),
            Unit::Bytes => {
                let (size, _) = binary(low, high);
                // Ticks at fractions of a byte would mean nothing.
                (step(low / size, high / size) * size).max(1.0)
            }
        }
    }
}

/// The bytes in the largest unit that does not exceed the largest number of the range, and its name.
fn binary(low: f64, high: f64) -> (f64, &'static str) {
    let most = low.abs().max(high.abs()).max(1.0);
    let power = (most.log2() / 10.0).floor().clamp(0.0, (BYTES.len() - 1) as f64);
    (1024f64.powf(power), BYTES.get(power as usize).copied().unwrap_or("B"))
}

/// The smallest and the largest of the finite numbers. If they are equal or there are none, the range is
/// widened, so that its ends always differ.
fn bounds(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|v| v.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match (low.is_finite(), high > low) {
        (false, _) => (0.0, 1.0),
        (true, true) => (low, high),
        (true, false) => (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0)),
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides the range into four to eight.
fn step(low: f64, high: f64) -> f64 {
    let raw = (high - low) / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let lead = raw / power;
    // A step may be up to a sixth smaller than asked for: a tick more is better than half as many.
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().find(|r| lead <= r * 1.2).unwrap_or(10.0);
    // A range beyond the smallest or largest `f64` has no power of ten.
    if power.is_finite() && power > 0.0 { round * power } else { 1.0 }
}

/// The label of a tick, where neighbouring ticks are `step` apart.
fn tick(value: f64, step: f64) -> String {
    // Rounding leaves numbers such as 1e-17 where a tick is at 0.
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    // A unit is used only if the steps need at most one decimal in it.
    let (size, unit) = match step.max(value.abs()) {
        v if v >= 1e15 => return format!("{value:.0e}"),
        v if v >= 1e12 && step >= 1e11 => (1e12, " T"),
        v if v >= 1e9 && step >= 1e8 => (1e9, " B"),
        v if v >= 1e6 && step >= 1e5 => (1e6, " M"),
        v if v >= 1e4 && step >= 1e2 => (1e3, " K"),
        _ => (1.0, ""),
    };
    let (value, step) = (value / size, step / size);
    let decimals = (-step.log10().floor()).clamp(0.0, 8.0) as usize;
    // With more zeros than these after the point, neighbouring labels cannot be told apart at a glance.
    if decimals > 5 {
        return format!("{value:.1e}").replace('-', "−");
    }
    // Zero is the same in every unit.
    let unit = if value == 0.0 { "" } else { unit };
    format!("{value:.decimals$}{unit}").replace('-', "−")
}

fn power(exponent: i32) -> String {
    match exponent {
        // Written out, `0.001` and `10000` are as short as powers and easier to read.
        -3..=4 => format!("{}", 10f64.powi(exponent)),
        e => {
            let digits: String = e.to_string().chars().map(raised).collect();
            format!("10{digits}")
        }
    }
}

fn raised(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

/// The colours of a heatmap's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// Dark to light, for values that start at zero.
    Rising,
    /// Blue over white to red, for values with a sign.
    Signed,
}

/// Ten samples of viridis.
const RISING: [u32; 10] =
    [0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725];
/// ColorBrewer's RdBu with eleven classes, from blue to red.
const SIGNED: [u32; 11] = [
    0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7, 0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b,
    0x67001f,
];

impl Colors {
    /// Red, green and blue at a position from 0 to 1.
    pub fn at(self, share: f64) -> [u8; 3] {
        let anchors: &[u32] = match self {
            Colors::Rising => &RISING,
            Colors::Signed => &SIGNED,
        };
        // A NaN has the first colour, as a position must be some colour.
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let place = share * (anchors.len() - 1) as f64;
        let index = place.floor() as usize;
        let of = |i: usize, shift: u32| {
            f64::from((anchors.get(i).or(anchors.last()).copied().unwrap_or(0) >> shift) & 0xff)
        };
        let mixed = |shift| {
            let (a, b) = (of(index, shift), of(index + 1, shift));
            (a + (b - a) * (place - index as f64)).round() as u8
        };
        [mixed(16), mixed(8), mixed(0)]
    }
}
