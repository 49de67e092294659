//! Kernels that go by the backend against their plain form, which is the same on all backends.

use burn::tensor::ops::AttentionModuleOptions;
use trafoc::ir::Extent;
use trafoc::ir::op::{FrequencyRule, RotaryTable};
use trafoc_kernels::{
    attention, divided_frequencies, frequencies, frequencies_divided_each, gelu, ramp_frequencies, reference,
    wavelength_frequencies,
};

use super::*;

fn tensor<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let mut next = noise(seed);
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| 6.0 * next() as f32 - 3.0).collect();
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

fn assert_close<const D: usize>(a: Tensor<D>, b: Tensor<D>, what: &str) {
    let numbers = |x: Tensor<D>| x.into_data().iter::<f32>().collect::<Vec<f32>>();
    let (a, b) = (numbers(a), numbers(b));
    let largest = b.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let off = a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0f32, f32::max);
    assert!(off <= bounds().ways * largest, "{what}: off by {off} of {largest}");
}

#[test]
fn gelu_and_its_gradient_are_those_of_the_reference() {
    let device = device().autodiff();
    let x = tensor([7, 33], 1, &device).require_grad();
    let (kernel, plain) = (gelu(x.clone()), reference::gelu::gelu(x.clone()));
    assert_close(kernel.clone().inner(), plain.clone().inner(), "gelu");
    let gradient = |y: Tensor<2>| x.grad(&(y.clone() * y).sum().backward()).unwrap();
    assert_close(gradient(kernel), gradient(plain), "its gradient");
}

#[test]
fn attention_and_its_gradients_are_those_of_the_reference() {
    let device = device().autodiff();
    let (heads, queries, keys, width) = (2, 5, 8, 4);
    let hidden: Vec<bool> = (0..2 * keys).map(|i| i % 5 == 3 || i > 13).collect();
    let mask = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [2, 1, 1, keys]), &device);
    for (is_causal, softcap, has_mask, has_bias) in [
        (false, None, false, false),
        (true, None, false, false),
        (true, None, true, false),
        (false, Some(5.0), true, true),
        (true, Some(5.0), true, true),
    ] {
        let q = tensor([2, heads, queries, width], 2, &device).require_grad();
        let k = tensor([2, heads, keys, width], 3, &device).require_grad();
        let v = tensor([2, heads, keys, width + 1], 4, &device).require_grad();
        let bias = has_bias.then(|| tensor([1, heads, queries, keys], 5, &device));
        let mask = has_mask.then(|| mask.clone());
        let options = AttentionModuleOptions { scale: Some(0.4), softcap, is_causal };
        let given = || (q.clone(), k.clone(), v.clone(), mask.clone(), bias.clone());
        let (a, b, c, m, s) = given();
        let kernel = attention(a, b, c, m, s, options);
        let (a, b, c, m, s) = given();
        let plain = reference::attention::attention(a, b, c, m, s, options);
        // Without gradients, where a backend's own kernel runs.
        let bare = |x: &Tensor<4>| x.clone().inner();
        let bare_mask = mask.clone().map(|mask| mask.inner());
        let fused = attention(bare(&q), bare(&k), bare(&v), bare_mask, bias.map(|b| b.inner()), options);
        let what = format!("causal {is_causal}, softcap {softcap:?}, mask {has_mask}, bias {has_bias}");
        assert_close(kernel.clone().inner(), plain.clone().inner(), &what);
        assert_close(fused, plain.clone().inner(), &what);
        // A graph can be walked back once.
        let gradients = |y: Tensor<4>| {
            let all = (y.clone() * y).sum().backward();
            [&q, &k, &v].map(|x| x.grad(&all).unwrap())
        };
        for (kernel, plain) in gradients(kernel).into_iter().zip(gradients(plain)) {
            assert_close(kernel, plain, &format!("{what}: a gradient"));
        }
    }
}

/// Emitted Rust computes rotary angles with the formulas of the kernels, the interpreter with those of the graph.
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
