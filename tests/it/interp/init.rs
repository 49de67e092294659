//! Initial values of parameters: their distribution, their bounds, and the generator of random numbers.

use trafoc::interp::init::start;
use trafoc::interp::random::Stream;
use trafoc::ir::Init;

#[test]
fn normal_numbers_have_their_mean_and_spread() {
    let x = start(&Init::Normal { std: 0.5 }, &[300, 1000], 1, "w");
    let mean = x.iter().map(|v| f64::from(*v)).sum::<f64>() / x.len() as f64;
    let var = x.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / x.len() as f64;
    assert!(mean.abs() < 0.005 && (var.sqrt() - 0.5).abs() < 0.003, "{mean} {var}");
}

#[test]
fn truncation_holds_for_wide_and_narrow_cuts() {
    for cut in [0.01, 0.7, 2.0] {
        let x = start(&Init::TruncatedNormal { std: 3.0, cut }, &[1000], 1, "w");
        assert!(x.iter().all(|v| f64::from(v.abs()) <= 3.0 * cut * 1.000_001));
        assert!(x.iter().any(|v| f64::from(v.abs()) > 1.5 * cut));
    }
}

#[test]
fn orthogonal_rows_or_columns() {
    for shape in [[3, 5], [5, 3]] {
        let x = start(&Init::Orthogonal { gain: 2.0 }, &shape, 1, "w");
        let at = |i: usize, j: usize| f64::from(x[i * shape[1] + j]);
        let small = shape[0].min(shape[1]);
        for a in 0..small {
            for b in 0..small {
                let dot: f64 = match shape[0] <= shape[1] {
                    true => (0..shape[1]).map(|j| at(a, j) * at(b, j)).sum(),
                    false => (0..shape[0]).map(|i| at(i, a) * at(i, b)).sum(),
                };
                let wanted = if a == b { 4.0 } else { 0.0 };
                assert!((dot - wanted).abs() < 1e-5, "{shape:?} {a} {b} {dot}");
            }
        }
    }
}

#[test]
fn threads_and_other_parameters_change_nothing() {
    let init = Init::Normal { std: 1.0 };
    let long = start(&init, &[400_000], 7, "a");
    let short = start(&init, &[1000], 7, "a");
    assert_eq!(long[..1000], short[..]);
    assert_ne!(short, start(&init, &[1000], 7, "b"));
    assert_ne!(short, start(&init, &[1000], 8, "a"));
}

/// The known answer of the reference implementation when all bits are set.
#[test]
fn philox_gives_the_published_numbers() {
    let stream = Stream::of_key([u32::MAX, u32::MAX]);
    assert_eq!(stream.block(u64::MAX, u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let zeros = Stream::of_key([0, 0]);
    assert_eq!(zeros.block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}

/// Emitted Rust draws truncated normal numbers with the kernels, by another method if the cut is narrow.
/// Mean, variance and range are those of the distribution: its variance is `1 - 2 c φ(c) / (2 Φ(c) - 1)`.
#[test]
fn kernels_draw_truncated_normal_numbers_whatever_the_cut() {
    let device = burn::prelude::Device::flex();
    for (cut, variance) in
        [(0.001_f64, 3.333_333e-7_f64), (0.5, 0.080_573), (1.0, 0.291_125), (2.0, 0.773_741)]
    {
        let drawn = trafoc_kernels::truncated_normal([100_000], 3.0, cut, &device).val();
        let values: Vec<f64> = drawn.into_data().iter::<f32>().map(|x| f64::from(x) / 3.0).collect();
        assert!(values.iter().all(|x| x.abs() <= cut * 1.000_001), "{cut}");
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let found = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02 * variance.sqrt(), "{cut}: {mean}");
        assert!((found / variance - 1.0).abs() < 0.03, "{cut}: {found}, not {variance}");
    }
}
