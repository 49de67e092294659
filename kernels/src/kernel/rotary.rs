//! The angles of rotary positions (Su et al. 2021).

use burn::prelude::*;

/// Cosines and sines of `position * inverse_frequency`, times `magnitude`, for `length` positions from
/// `start` on: two tables `[T, pairs]`. Computed on the host in double precision, so that they are the
/// same on every device and exact for large positions.
pub fn rotary_table(
    inverse_frequencies: &[f64],
    magnitude: f64,
    start: usize,
    length: usize,
    device: &Device,
) -> (Tensor<2>, Tensor<2>) {
    let table = |f: fn(f64) -> f64| {
        let values: Vec<f32> = (start..start + length)
            .flat_map(|p| inverse_frequencies.iter().map(move |w| (magnitude * f(p as f64 * w)) as f32))
            .collect();
        Tensor::from_data(TensorData::new(values, [length, inverse_frequencies.len()]), device)
    };
    (table(f64::cos), table(f64::sin))
}

/// The inverse frequencies `theta^(-2i / dim)` of all pairs of features.
pub fn frequencies(theta: f64, dim: usize) -> Vec<f64> {
    (0..dim / 2).map(|i| theta.powf(-((2 * i) as f64) / dim as f64)).collect()
}

/// Inverse frequencies that are all divided by the same number (Chen et al. 2023).
pub fn divided_frequencies(plain: Vec<f64>, by: f64) -> Vec<f64> {
    plain.into_iter().map(|w| w / by).collect()
}

/// Inverse frequencies that are divided by a number each (LongRoPE, Ding et al. 2024).
pub fn frequencies_divided_each(plain: Vec<f64>, by: &[f64]) -> Vec<f64> {
    plain.into_iter().zip(by).map(|(w, by)| w / by).collect()
}

/// Inverse frequencies of which those up to pair `low` are kept, those from pair `high` on divided by
/// `factor`, with a linear ramp in between (YaRN, Peng et al. 2023).
pub fn ramp_frequencies(plain: Vec<f64>, factor: f64, low: f64, high: f64) -> Vec<f64> {
    let ramp = |i: usize| ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
    plain.into_iter().enumerate().map(|(i, w)| w / factor * ramp(i) + w * (1.0 - ramp(i))).collect()
}

/// Inverse frequencies of which those with wavelengths below `trained / high` are kept, those with
/// wavelengths above `trained / low` divided by `factor`, and those in between interpolated (Llama 3.1).
/// `trained` is the number of positions in training.
pub fn wavelength_frequencies(plain: Vec<f64>, factor: f64, trained: usize, low: f64, high: f64) -> Vec<f64> {
    let trained = trained as f64;
    let changed = |w: f64| {
        let wavelength = 2.0 * std::f64::consts::PI / w;
        if wavelength < trained / high {
            w
        } else if wavelength > trained / low {
            w / factor
        } else {
            let kept = (trained / wavelength - low) / (high - low);
            (1.0 - kept) * w / factor + kept * w
        }
    };
    plain.into_iter().map(changed).collect()
}

/// The inverse frequencies of dynamic NTK for a sequence of `n` positions, more than the `trained` ones of
/// training: `theta` grows to `theta * (factor * n / trained - (factor - 1)) ^ (dim / (dim - 2))`.
pub fn dynamic_frequencies(theta: f64, factor: f64, trained: usize, n: usize, dim: usize) -> Vec<f64> {
    let d = dim as f64;
    let grown = theta * (factor * n as f64 / trained as f64 - (factor - 1.0)).powf(d / (d - 2.0));
    (0..dim / 2).map(|i| 1.0 / grown.powf(2.0 * i as f64 / d)).collect()
}
