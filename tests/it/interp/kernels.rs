//! Kernels that go by the backend against their plain form, which is the same on all backends.

use burn::tensor::DType;
use trafoc::ir::Extent;
use trafoc::ir::op::{FrequencyRule, RotaryTable};
use trafoc_kernels::{
    divided_frequencies, frequencies, frequencies_divided_each, gelu, gelu_tanh, largest_score, linear_of,
    quick_gelu, ramp_frequencies, reference, silu, sum_exp, unembed, wavelength_frequencies,
};

use super::*;

pub fn tensor<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let mut next = noise(seed);
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| 6.0 * next() as f32 - 3.0).collect();
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

pub fn assert_close<const D: usize>(a: Tensor<D>, b: Tensor<D>, what: &str) {
    let numbers = |x: Tensor<D>| x.into_data().iter::<f32>().collect::<Vec<f32>>();
    let (a, b) = (numbers(a), numbers(b));
    let largest = b.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let off = a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0f32, f32::max);
    assert!(off <= bounds().ways * largest, "{what}: off by {off} of {largest}");
}

/// The activations that are kernels, and their plain form.
const ACTIVATIONS: [(&str, Activation, Activation); 4] = [
    ("gelu", gelu::<2>, reference::gelu::gelu::<2>),
    ("gelu_tanh", gelu_tanh::<2>, reference::gelu_tanh::gelu_tanh::<2>),
    ("quick_gelu", quick_gelu::<2>, reference::quick_gelu::quick_gelu::<2>),
    ("silu", silu::<2>, reference::silu::silu::<2>),
];

type Activation = fn(Tensor<2>) -> Tensor<2>;

#[test]
fn activations_and_their_gradients_are_those_of_the_reference() {
    let device = device().autodiff();
    for (name, kernel, plain) in ACTIVATIONS {
        let x = tensor([7, 33], 1, &device).require_grad();
        let (kernel, plain) = (kernel(x.clone()), plain(x.clone()));
        assert_close(kernel.clone().inner(), plain.clone().inner(), name);
        let gradient = |y: Tensor<2>| x.grad(&(y.clone() * y).sum().backward()).unwrap();
        assert_close(gradient(kernel), gradient(plain), &format!("the gradient of {name}"));
    }
}

/// Numbers of every size, and those that are no numbers, so many that threads share them.
fn hostile() -> Vec<f32> {
    let special =
        [0.0, 1e-45, 1e-38, 1e-10, 14.5, 15.5, 87.0, 89.0, 105.0, 1e4, 1e30, f32::MAX, f32::INFINITY];
    let mut all: Vec<f32> = special.iter().flat_map(|x| [*x, -x]).chain([f32::NAN]).collect();
    all.extend((-20_000..20_001).map(|i| i as f32 * 1e-3));
    all
}

/// Scores of every size, with NaN and `-inf` among them, in numbers that are no multiple of a register.
#[test]
fn sums_of_exponentials_are_those_of_double_precision() {
    let all: Vec<f32> = hostile().into_iter().filter(|x| *x < f32::MAX).chain([f32::NAN]).collect();
    let small: Vec<f32> = all.iter().copied().filter(|x| x.is_nan() || x.abs() < 20.0).collect();
    for (scores, temperature) in [(&all, 1.0), (&small, 1.0), (&small, 0.7), (&small, 3.0), (&small, 1e-3)] {
        for count in [1, 15, 16, 17, 1000, scores.len()] {
            let scores = &scores[scores.len() - count..];
            let numbers = || scores.iter().copied().filter(|x| !x.is_nan());
            let largest = numbers().fold(f32::NEG_INFINITY, f32::max);
            assert!(largest_score(scores) == largest, "{count}: {}", largest_score(scores));
            let plain: f64 =
                numbers().map(|x| ((f64::from(x) - f64::from(largest)) / temperature).exp()).sum();
            let found = sum_exp(scores, largest, temperature);
            assert!((found - plain).abs() <= 1e-14 * plain, "{count} at {temperature}: {found}, not {plain}");
        }
    }
}

#[test]
fn activations_are_those_of_double_precision_for_all_numbers() {
    let device = Device::flex().autodiff();
    let numbers = hostile();
    let all = [1, numbers.len()];
    for (name, kernel, plain) in ACTIVATIONS {
        let x = Tensor::<2>::from_data(TensorData::new(numbers.clone(), all), &device).require_grad();
        let exact = Tensor::<2>::from_data(TensorData::new(numbers.clone(), all), (&device, DType::F64));
        let exact = exact.require_grad();
        let (y, wanted) = (kernel(x.clone()), plain(exact.clone()));
        let slopes = x.grad(&y.clone().sum().backward()).unwrap();
        let wanted_slopes = exact.grad(&wanted.clone().sum().backward()).unwrap();
        for (what, got, wanted) in
            [(name, y.inner(), wanted.inner()), ("its derivative", slopes, wanted_slopes)]
        {
            let got: Vec<f32> = got.into_data().iter().collect();
            let wanted: Vec<f64> = wanted.into_data().iter().collect();
            for ((x, got), wanted) in numbers.iter().zip(got).zip(wanted) {
                // The derivative at infinity is a limit, which formulas do not give.
                if wanted.is_nan() && x.is_infinite() && what != name {
                    let limit = if *x > 0.0 { 1.0 } else { 0.0 };
                    assert!((got - limit).abs() < 1e-30, "{name}: {what} at {x} is {got}");
                    continue;
                }
                let off = (f64::from(got) - wanted).abs();
                let is_same = got.is_nan() && wanted.is_nan() || f64::from(got) == wanted;
                let bound = 1e-6 * wanted.abs() + 3e-7;
                assert!(is_same || off <= bound, "{name}: {what} at {x} is {got}, not {wanted}");
            }
        }
    }
}

#[test]
fn activations_do_not_depend_on_how_many_numbers_there_are() {
    let device = Device::flex();
    let numbers = hostile();
    let tensor = |numbers: &[f32]| {
        Tensor::<2>::from_data(TensorData::new(numbers.to_vec(), [1, numbers.len()]), &device)
    };
    let bits = |x: Tensor<2>| x.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<u32>>();
    for (name, kernel, _) in ACTIVATIONS {
        let all = bits(kernel(tensor(&numbers)));
        // Memory that something else still uses is not overwritten.
        let kept = tensor(&numbers);
        assert_eq!(bits(kernel(kept.clone())), all, "{name}");
        assert_eq!(bits(kept), bits(tensor(&numbers)), "{name}");
        for length in [0, 1, 2, 15, 16, 17, 31, 33, 100] {
            let few = bits(kernel(tensor(&numbers[..length])));
            assert_eq!(few, all[..length], "{name} of {length} numbers");
        }
        // Numbers that do not follow each other in memory.
        let square = tensor(&numbers[..10_000]).reshape([100, 100]).transpose();
        let turned = bits(kernel(square.clone()).transpose());
        assert_eq!(turned, all[..10_000], "{name} of a transposed tensor");
    }
}

#[test]
fn products_with_one_row_are_those_of_double_precision() {
    let device = Device::flex();
    let exact = |x: &Tensor<2>| x.clone().cast(DType::F64);
    let numbers = |x: Tensor<2>| x.into_data().iter::<f64>().collect::<Vec<f64>>();
    // Sizes around those of vectors, of strips of rows and of what is worth several threads.
    for [k, n] in [[1, 1], [3, 2], [5, 7], [16, 16], [95, 33], [97, 64], [200, 17], [1030, 300], [64, 5000]] {
        let x = tensor([1, k], 1, &device);
        let weight = tensor([k, n], 2, &device);
        let table = tensor([n, k], 3, &device);
        let bias = tensor([1, n], 4, &device);
        let products = [
            ("linear", linear_of(x.clone(), weight.clone(), None), exact(&x).matmul(exact(&weight))),
            (
                "linear with a bias",
                linear_of(x.clone(), weight.clone(), Some(bias.clone().reshape([n]))),
                exact(&x).matmul(exact(&weight)) + exact(&bias),
            ),
            ("unembed", unembed(x.clone(), table.clone()), exact(&x).matmul(exact(&table).transpose())),
            // Matrices whose numbers are in another order.
            (
                "transposed",
                linear_of(x.clone(), table.clone().transpose(), None),
                exact(&x).matmul(exact(&table).transpose()),
            ),
        ];
        for (name, got, wanted) in products {
            assert_eq!(got.dims(), [1, n], "{name}");
            for (got, wanted) in numbers(got).into_iter().zip(numbers(wanted)) {
                // Each of the sums has k terms of up to 9.
                let bound = 1e-6 * 9.0 * (k as f64).sqrt() + 1e-6 * wanted.abs();
                assert!((got - wanted).abs() <= bound, "{name} of {k} x {n}: {got}, not {wanted}");
            }
        }
        let bad = x.clone() * f32::NAN;
        let all = [linear_of(bad.clone(), weight, None), unembed(bad, table)];
        assert!(all.into_iter().flat_map(numbers).all(f64::is_nan), "{k} x {n}");
    }
}

/// Emitted Rust computes rotary angles with the formulas of the kernels, the interpreter with those of the
/// graph.
#[test]
fn formulas_of_rotary_angles_give_the_bits_of_the_graph() {
    let (theta, dim) = (10_000.0, 64u32);
    let each: Vec<f64> = (0..dim / 2).map(|i| 1.0 + 0.37 * f64::from(i)).collect();
    let plain = || frequencies(theta, dim as usize);
    let cases = [
        (FrequencyRule::Plain, plain()),
        (FrequencyRule::Divided { by: 3.3 }, divided_frequencies(plain(), 3.3)),
        (FrequencyRule::DividedEach(each.clone()), frequencies_divided_each(plain(), &each)),
        (
            FrequencyRule::Ramp { factor: 4.7, low: 5.0, high: 19.5 },
            ramp_frequencies(plain(), 4.7, 5.0, 19.5),
        ),
        (
            FrequencyRule::ByWavelength { factor: 8.0, original: 500, low: 1.0, high: 4.0 },
            wavelength_frequencies(plain(), 8.0, 500, 1.0, 4.0),
        ),
    ];
    for (rule, found) in cases {
        let size = Extent::from(u64::from(dim));
        let table = RotaryTable { dim: size, theta, rule, long: None, magnitude: 1.0 };
        let wanted: Vec<u64> =
            (0..u64::from(dim) / 2).map(|i| table.inverse_frequency(i).to_bits()).collect();
        let found: Vec<u64> = found.into_iter().map(f64::to_bits).collect();
        assert_eq!(found, wanted, "{:?}", table.rule);
    }
}

/// The largest score of a query is that of the keys it may see. A query that may see none keeps its own, so that differences
/// to the largest do not overflow.
#[test]
fn the_largest_score_is_finite_where_nothing_is_seen() {
    let device = device().autodiff();
    let numbers: Vec<f32> = (0..2 * 3 * 4).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
    let scores =
        Tensor::<4>::from_data(TensorData::new(numbers.clone(), [2, 1, 3, 4]), &device).require_grad();
    // The first example is padding only, the second has padding at its first two keys.
    let hidden: Vec<bool> = (0..8).map(|i| i < 6).collect();
    let mask = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [2, 1, 1, 4]), &device);
    let most = trafoc_kernels::hide_scores_if_any(scores.clone(), Some(mask)).max_dim(3);
    let wanted: Vec<f32> = (0..6)
        .map(|row| {
            numbers[row * 4 + if row < 3 { 0 } else { 2 }..row * 4 + 4]
                .iter()
                .copied()
                .fold(f32::MIN, f32::max)
        })
        .collect();
    assert_eq!(most.to_data().iter::<f32>().collect::<Vec<f32>>(), wanted);
    let gradients = (scores.clone() - most).exp().sum().backward();
    let gradient = scores.grad(&gradients).unwrap();
    assert!(gradient.into_data().iter::<f32>().all(f32::is_finite));
}
