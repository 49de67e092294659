//! Resizes images.
//!
//! A new pixel is a weighted sum of the old ones around its centre; if an image shrinks, the window grows
//! accordingly. Each axis is resized separately, width first. Every result is rounded to a byte and every
//! weight to 22 fractional bits, which gives the same numbers as Pillow, with which models have been
//! trained.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// How weights decrease with the distance from a pixel's centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The old pixel whose area contains the centre.
    Nearest,
    /// `sinc(x) sinc(x/3)` for distances up to 3 pixels.
    Lanczos,
    /// `1 - |x|` for distances up to 1 pixel.
    Bilinear,
    /// The cubic of Keys (1981) with a slope of -1/2, for distances up to 2 pixels.
    Bicubic,
    /// 1 for distances up to half a pixel.
    Box,
    /// `sinc(x) (0.54 + 0.46 cos(pi x))` for distances up to 1 pixel.
    Hamming,
}

impl Filter {
    /// The distance from which on weights are 0.
    fn reach(self) -> f64 {
        match self {
            Filter::Nearest => 0.0,
            Filter::Box => 0.5,
            Filter::Bilinear | Filter::Hamming => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    /// The weight of an old pixel at the distance `x` from the centre of the new one.
    fn weight(self, x: f64) -> f64 {
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        let away = x.abs();
        match self {
            Filter::Nearest => 1.0,
            // The area of a pixel is half-open, so that a centre on an edge belongs to only one of two
            // pixels.
            Filter::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
            Filter::Bilinear => (1.0 - away).max(0.0),
            Filter::Hamming if away < 1.0 => sinc(x) * (0.54 + 0.46 * (PI * x).cos()),
            Filter::Bicubic if away < 1.0 => (1.5 * away - 2.5) * away * away + 1.0,
            Filter::Bicubic if away < 2.0 => ((-0.5 * away + 2.5) * away - 4.0) * away + 2.0,
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Hamming | Filter::Bicubic | Filter::Lanczos => 0.0,
        }
    }
}

/// An image of bytes, `[H, W, C]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
    /// The number of values per pixel.
    pub channels: usize,
    /// The values, `height * width * channels` of them.
    pub bytes: Vec<u8>,
}

/// The number of fractional bits of a weight.
const BITS: u32 = 22;

/// The old pixels that a new one is computed from: the index of the first, and the weights from there on.
struct Window {
    from: usize,
    weights: Vec<i64>,
}

/// The window of each of `new` pixels along an axis that had `old` ones.
fn windows(old: usize, new: usize, filter: Filter) -> Vec<Window> {
    let scale = old as f64 / new as f64;
    // A smaller image needs a wider window, or pixels between the samples would be lost (aliasing).
    let stretch = scale.max(1.0);
    let reach = filter.reach() * stretch;
    let window = |i: usize| {
        let centre = (i as f64 + 0.5) * scale;
        if filter == Filter::Nearest {
            // Rounding may put the last centre on the far edge of the image.
            return Window { from: (centre as usize).min(old - 1), weights: vec![1 << BITS] };
        }
        // Conversion saturates a float that is out of the integer's range.
        let from = (centre - reach + 0.5) as usize;
        let to = ((centre + reach + 0.5) as usize).min(old);
        let weights: Vec<f64> =
            (from..to).map(|j| filter.weight((j as f64 + 0.5 - centre) / stretch)).collect();
        // The window is cut off at the edges of the image, so what is left of the weights must add up to 1
        // again.
        let sum: f64 = weights.iter().sum();
        let fixed = |w: &f64| (w / sum * f64::from(1u32 << BITS)).round() as i64;
        Window { from, weights: weights.iter().map(fixed).collect() }
    };
    (0..new).map(window).collect()
}

impl Pixels {
    /// The image resized to another height and width, neither of which is 0.
    pub fn resized(self, height: usize, width: usize, filter: Filter) -> Self {
        // An axis that keeps its length is left out, as in Pillow.
        let wide = if width == self.width { self } else { self.along(filter, width, true) };
        if height == wide.height { wide } else { wide.along(filter, height, false) }
    }

    /// Resizes along one axis: along the rows if `across`, else along the columns.
    fn along(&self, filter: Filter, new: usize, across: bool) -> Self {
        let (height, width) = if across { (self.height, new) } else { (new, self.width) };
        let windows = windows(if across { self.width } else { self.height }, new, filter);
        let channels = self.channels;
        let step = if across { channels } else { self.width * channels };
        let mut bytes = Vec::with_capacity(height * width * channels);
        for row in 0..height {
            for column in 0..width {
                let (window, start) = match across {
                    true => (windows.get(column), row * self.width * channels),
                    false => (windows.get(row), column * channels),
                };
                let Some(window) = window else { continue };
                for channel in 0..channels {
                    let old = self.bytes.iter().skip(start + window.from * step + channel).step_by(step);
                    let sum: i64 = old.zip(&window.weights).map(|(byte, w)| i64::from(*byte) * w).sum();
                    // Half of the last place is added, so that the shift rounds to nearest.
                    let rounded = (sum + (1 << (BITS - 1))) >> BITS;
                    // Bicubic and Lanczos have negative weights, with which a sum may leave the range of a
                    // byte.
                    bytes.push(rounded.clamp(0, 255) as u8);
                }
            }
        }
        Self { height, width, channels, bytes }
    }

    /// The middle part of an image, surrounded by black if the image is smaller.
    pub fn cropped(self, height: usize, width: usize) -> Self {
        // Rounds like Hugging Face's image processors: a margin that is cut is rounded down, one that is
        // added is rounded up.
        let first = |old: usize, new: usize| match old >= new {
            true => ((old - new) / 2) as isize,
            false => -((new - old).div_ceil(2) as isize),
        };
        let (top, left) = (first(self.height, height), first(self.width, width));
        let mut bytes = Vec::with_capacity(height * width * self.channels);
        let place =
            |i: usize, first: isize, size: usize| i.checked_add_signed(first).filter(|place| *place < size);
        for row in 0..height {
            let row = place(row, top, self.height);
            for column in 0..width {
                let pixel = row.zip(place(column, left, self.width)).and_then(|(row, column)| {
                    let at = (row * self.width + column) * self.channels;
                    self.bytes.get(at..at + self.channels)
                });
                match pixel {
                    Some(pixel) => bytes.extend_from_slice(pixel),
                    None => bytes.extend(std::iter::repeat_n(0, self.channels)),
                }
            }
        }
        Self { height, width, channels: self.channels, bytes }
    }
}
