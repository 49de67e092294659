//! Dropout of the weights of attention.

use burn::nn::DropoutConfig;
use burn::tensor::ops::AttentionModuleOptions;
use trafoc_kernels::{attention_weights, attention_with_dropout};

use super::kernels::{assert_close, tensor};
use super::*;

/// The weights of attention to these keys after dropout, `[B, H, T, K]`, behind the result of attention: keys have values
/// of their own and, behind them, the rows of an identity matrix.
fn with_weights(values: Tensor<4>) -> Tensor<4> {
    let [batch, heads, keys, _] = values.dims();
    let ones = Tensor::<2>::eye(keys, &values.device()).unsqueeze::<4>().expand([batch, heads, keys, keys]);
    Tensor::cat(vec![values, ones], 3)
}

#[test]
fn attention_with_dropout_and_its_gradients_are_those_of_separate_operations() {
    let device = device().autodiff();
    let heads = 2;
    for ([queries, keys], width, p) in
        [([5, 8], 4, 0.5), ([6, 9], 16, 0.3), ([61, 61], 8, 0.1), ([70, 131], 20, 0.9)]
    {
        let hidden: Vec<bool> = (0..2 * keys).map(|i| i % 5 == 3 || i > 2 * keys - 3).collect();
        let mask = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [2, 1, 1, keys]), &device);
        for (is_causal, softcap, has_mask, has_bias) in [
            (false, None, false, false),
            (true, None, true, false),
            (false, Some(5.0), true, true),
            (true, None, false, true),
        ] {
            let q = tensor([2, heads, queries, width], 2, &device).require_grad();
            let k = tensor([2, heads, keys, width], 3, &device).require_grad();
            let v = with_weights(tensor([2, heads, keys, width + 1], 4, &device)).require_grad();
            let bias = has_bias.then(|| tensor([1, heads, queries, keys], 5, &device).require_grad());
            let mask = has_mask.then(|| mask.clone());
            let options = AttentionModuleOptions { scale: Some(0.4), softcap, is_causal };
            let given = || (q.clone(), k.clone(), mask.clone(), bias.clone());
            let (a, b, m, s) = given();
            let dropout = DropoutConfig::new(p).init();
            let kernel = attention_with_dropout(a, b, v.clone(), m, s, options, &dropout);
            // What was dropped is seen in the result, so that nothing depends on the generator, which all tests share.
            let dropped = kernel.clone().detach().narrow(3, width + 1, keys);
            let factors = dropped.greater_elem(0.0).float() / (1.0 - p);
            let (a, b, m, s) = given();
            let weights = attention_weights(a, b, m, s, None, options);
            let plain = (weights * factors).matmul(v.clone());
            let what = format!(
                "{queries} x {keys}, causal {is_causal}, softcap {softcap:?}, bias {has_bias}, p {p}"
            );
            assert_close(kernel.clone().inner(), plain.clone().inner(), &what);
            let gradients = |y: Tensor<4>| {
                let all = (y.clone() * y).sum().backward();
                [Some(&q), Some(&k), Some(&v), bias.as_ref()].map(|x| x.map(|x| x.grad(&all).unwrap()))
            };
            let (kernel, plain) = (gradients(kernel), gradients(plain));
            for (name, (kernel, plain)) in ["q", "k", "v", "bias"].iter().zip(kernel.into_iter().zip(plain)) {
                if let (Some(kernel), Some(plain)) = (kernel, plain) {
                    assert_close(kernel, plain, &format!("{what}: the gradient of {name}"));
                }
            }
        }
    }
}

/// Counts that are within five standard deviations of what independent draws give.
#[test]
fn weights_are_dropped_independently_of_their_places() {
    let device = device().autodiff();
    let [heads, queries, keys] = [2, 64, 512];
    let zeros = |size| Tensor::<4>::zeros([2, heads, size, 4], &device);
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: false };
    for p in [0.1, 0.5] {
        let v = with_weights(Tensor::zeros([2, heads, keys, 1], &device));
        let dropout = DropoutConfig::new(p).init();
        let y = attention_with_dropout(zeros(queries), zeros(keys), v, None, None, options, &dropout);
        let kept: Vec<f32> = y.inner().narrow(3, 1, keys).into_data().iter().collect();
        let rows: Vec<Vec<bool>> =
            kept.chunks(keys).map(|row| row.iter().map(|x| *x > 0.0).collect()).collect();
        let expect = |what: &str, count: usize, of: usize, chance: f64| {
            let (mean, spread) = (of as f64 * chance, (of as f64 * chance * (1.0 - chance)).sqrt());
            assert!(
                (count as f64 - mean).abs() < 5.0 * spread,
                "p {p}: {what}: {count} of {of}, expected {mean:.0} ± {spread:.0}"
            );
        };
        let all: usize = rows.iter().flatten().filter(|kept| **kept).count();
        expect("kept", all, kept.len(), 1.0 - p);
        // Keys next to each other, queries next to each other, heads, sequences, and rows that would be shifted.
        let same = p * p + (1.0 - p) * (1.0 - p);
        for (apart, shift) in [(0, 1), (0, 16), (1, 0), (1, 1), (2, 1), (queries, 0), (heads * queries, 0)] {
            let pairs = rows.iter().zip(rows.iter().skip(apart));
            let pairs = pairs.flat_map(|(a, b)| a.iter().zip(b.iter().skip(shift)));
            let (equal, of) = pairs.fold((0, 0), |(equal, of), (a, b)| (equal + usize::from(a == b), of + 1));
            expect(&format!("rows {apart} apart, shifted by {shift}"), equal, of, same);
        }
    }
}

#[test]
fn a_frozen_dropout_drops_nothing() {
    let device = device().autodiff();
    let [q, k, v] = [1, 2, 3].map(|seed| tensor::<4>([1, 2, 9, 4], seed, &device));
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: true };
    let plain = trafoc_kernels::attention(q.clone(), k.clone(), v.clone(), None, None, options);
    let frozen = burn::module::Module::freeze(DropoutConfig::new(0.5).init());
    assert_close(
        attention_with_dropout(q, k, v, None, None, options, &frozen).inner(),
        plain.inner(),
        "a frozen dropout",
    );
}
