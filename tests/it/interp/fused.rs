//! Kernels with a backward pass of their own against their plain form, and against double precision.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

use burn::optim::{AdamWConfig, AdamWState, AdaptiveMomentumState, Optimizer};
use burn::tensor::activation::log_softmax;
use burn::tensor::ops::AttentionModuleOptions;
use trafoc_kernels::{
    AdamW, Packed, WeightType, adamw, attention, attention_weights, attention_with_sinks, cross_entropy,
    gelu, gelu_gate, gelu_tanh, gelu_tanh_gate, layer_norm_of, linear_of, look_up, quick_gelu,
    quick_gelu_gate, reference, rotate_half, rotate_interleaved, silu, silu_gate, unembed,
};

use super::kernels::{assert_close, tensor};
use super::*;

/// Rows and widths around those of vectors and of blocks of rows.
pub const SIZES: [[usize; 2]; 7] = [[1, 1], [2, 5], [3, 16], [7, 33], [65, 48], [200, 100], [700, 64]];

#[test]
fn attention_and_its_gradients_are_those_of_the_reference() {
    let device = device().autodiff();
    let heads = 2;
    for ([queries, keys], width) in
        [([5, 8], 4), ([6, 9], 16), ([17, 17], 33), ([61, 61], 8), ([70, 131], 20)]
    {
        let hidden: Vec<bool> = (0..2 * keys).map(|i| i % 5 == 3 || i > 2 * keys - 3).collect();
        let mask = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [2, 1, 1, keys]), &device);
        for (is_causal, softcap, has_mask, has_bias, has_sinks) in [
            (false, None, false, false, false),
            (true, None, false, false, false),
            (true, None, true, false, false),
            (false, Some(5.0), true, true, false),
            (true, Some(5.0), true, true, false),
            (false, None, false, false, true),
            (true, None, true, false, true),
            (true, Some(5.0), true, true, true),
        ] {
            let q = tensor([2, heads, queries, width], 2, &device).require_grad();
            let k = tensor([2, heads, keys, width], 3, &device).require_grad();
            let v = tensor([2, heads, keys, width + 1], 4, &device).require_grad();
            let bias = has_bias.then(|| tensor([1, heads, queries, keys], 5, &device).require_grad());
            let mask = has_mask.then(|| mask.clone());
            let sinks = has_sinks.then(|| tensor::<1>([heads], 6, &device).require_grad());
            let options = AttentionModuleOptions { scale: Some(0.4), softcap, is_causal };
            let given = || (q.clone(), k.clone(), v.clone(), mask.clone(), bias.clone());
            let (a, b, c, m, s) = given();
            let kernel = match sinks.clone() {
                Some(sinks) => attention_with_sinks(a, b, c, m, s, sinks, options),
                None => attention(a, b, c, m, s, options),
            };
            let (a, b, c, m, s) = given();
            let plain = match sinks.clone() {
                Some(sinks) => {
                    reference::attention_sinks::attention_with_sinks(a, b, c, m, s, sinks, options)
                }
                None => reference::attention::attention(a, b, c, m, s, options),
            };
            // Without gradients, where a backend's own kernel runs.
            let [a, b, c] = [&q, &k, &v].map(|x| x.clone().inner());
            let (m, s) = (mask.clone().map(|mask| mask.inner()), bias.clone().map(|bias| bias.inner()));
            let fused = match sinks.clone() {
                Some(sinks) => attention_with_sinks(a, b, c, m, s, sinks.inner(), options),
                None => attention(a, b, c, m, s, options),
            };
            let what = format!(
                "{queries} x {keys}, causal {is_causal}, softcap {softcap:?}, mask {has_mask}, bias {has_bias}, \
                 sinks {has_sinks}"
            );
            assert_close(kernel.clone().inner(), plain.clone().inner(), &what);
            assert_close(fused, plain.clone().inner(), &what);
            // A graph can be walked back once.
            let gradients = |y: Tensor<4>| {
                let all = (y.clone() * y).sum().backward();
                let of_sinks = sinks.as_ref().map(|sinks| sinks.grad(&all).unwrap());
                let of_others = [Some(&q), Some(&k), Some(&v), bias.as_ref()];
                (of_others.map(|x| x.map(|x| x.grad(&all).unwrap())), of_sinks)
            };
            let ((kernel, of_sinks), (plain, wanted)) = (gradients(kernel), gradients(plain));
            if let (Some(of_sinks), Some(wanted)) = (of_sinks, wanted) {
                assert_close(of_sinks, wanted, &format!("{what}: the gradient of the sinks"));
            }
            for (name, (kernel, plain)) in ["q", "k", "v", "bias"].iter().zip(kernel.into_iter().zip(plain)) {
                if let (Some(kernel), Some(plain)) = (kernel, plain) {
                    assert_close(kernel, plain, &format!("{what}: the gradient of {name}"));
                }
            }
        }
    }
}

/// Rows that are looked up often, once and never, also in tables that threads share.
#[test]
fn the_gradient_of_a_table_has_the_bits_of_burns() {
    let device = device().autodiff();
    for ([rows, width], [batch, time]) in [([1, 1], [1, 1]), ([7, 5], [2, 9]), ([300, 64], [8, 250])] {
        let table = tensor::<2>([rows, width], 1, &device).require_grad();
        let ids = (0..batch * time).map(|i| (i * i + i / 3) % rows.div_ceil(2).max(1)).map(|id| id as i64);
        let ids = TensorData::new(ids.collect::<Vec<i64>>(), [batch, time]);
        let ids = Tensor::<2, Int>::from_data(ids, &device);
        let all = |y: Tensor<3>| {
            let factors = tensor::<3>([batch, time, width], 2, &device);
            let gradients = (y.clone() * factors).sum().backward();
            let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
            let gradient = table.grad(&gradients).unwrap();
            (bits(y.into_data().iter().collect()), bits(gradient.into_data().iter().collect()))
        };
        let found = all(look_up(table.clone(), ids.clone()));
        assert_eq!(found, all(reference::look_up::look_up(table.clone(), ids)), "{rows} x {width}");
    }
}

/// Also of numbers that are no usual ones, and of tensors that threads share.
#[test]
fn gated_products_and_their_gradients_have_the_bits_of_separate_operations() {
    type Gate = fn(Tensor<2>, Tensor<2>) -> Tensor<2>;
    let gates: [(&str, Gate, Gate, Gate); 4] = [
        ("silu", silu_gate, |gate, x| silu(gate) * x, reference::gates::silu_gate),
        ("gelu", gelu_gate, |gate, x| gelu(gate) * x, reference::gates::gelu_gate),
        ("gelu_tanh", gelu_tanh_gate, |gate, x| gelu_tanh(gate) * x, reference::gates::gelu_tanh_gate),
        ("quick_gelu", quick_gelu_gate, |gate, x| quick_gelu(gate) * x, reference::gates::quick_gelu_gate),
    ];
    let special = [0.0, -0.0, 1e-45, -1e-38, 1e38, -1e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let device = device().autodiff();
    for (name, kernel, separate, plain) in gates {
        for shape in [[1, 1], [3, 37], [64, 1030]] {
            let what = format!("{name} of {shape:?}");
            let of = |seed: u64, numbers: &[f32]| {
                let mut x: Vec<f32> = tensor::<2>(shape, seed, &device).into_data().iter().collect();
                let count = numbers.len();
                x.iter_mut().enumerate().skip(1).step_by(2).for_each(|(i, x)| {
                    *x = if count > 0 { numbers[i / 2 % count] } else { *x };
                });
                Tensor::<2>::from_data(TensorData::new(x, shape), &device).require_grad()
            };
            for numbers in [&[][..], &special] {
                let (gate, x) = (of(1, numbers), of(2, &numbers.repeat(2).split_off(numbers.len().min(4))));
                let bits = |x: Tensor<2>| -> Vec<u32> {
                    // There are many kinds of NaN.
                    let number = |x: f32| if x.is_nan() { f32::NAN } else { x };
                    x.into_data().iter().map(|x| number(x).to_bits()).collect()
                };
                let all = |y: Tensor<2>| {
                    let gradients = (y.clone() * tensor::<2>(shape, 3, &device)).sum().backward();
                    [y.inner(), gate.grad(&gradients).unwrap(), x.grad(&gradients).unwrap()]
                };
                let found = all(kernel(gate.clone(), x.clone()));
                let wanted = all(separate(gate.clone(), x.clone()));
                assert_eq!(found.clone().map(bits), wanted.map(bits), "{what}");
                let bare = kernel(gate.clone().inner(), x.clone().inner());
                assert_eq!(bits(bare), bits(found[0].clone()), "{what}, without gradients");
                if numbers.is_empty() {
                    for (i, plain) in all(plain(gate.clone(), x.clone())).into_iter().enumerate() {
                        assert_close(found[i].clone(), plain, &format!("{what}: {i}"));
                    }
                }
            }
        }
    }
}

/// Keys that a query does not see change no bit of its result, and NaN reaches every query that sees it.
#[test]
fn rotations_and_their_gradients_are_those_of_the_reference() {
    use burn::tensor::Bool;

    let device = device().autodiff();
    type Rotation = fn(Tensor<4>, Tensor<2>, Tensor<2>) -> Tensor<4>;
    let both: [(Rotation, Rotation); 2] = [
        (rotate_half, reference::rotate::rotate_half),
        (rotate_interleaved, reference::rotate::rotate_interleaved),
    ];
    // Widths around those of vectors, features that are not turned, and many rows.
    for [heads, length, width, pairs] in
        [[1, 1, 2, 1], [3, 5, 16, 8], [2, 7, 40, 17], [4, 300, 64, 32], [2, 9, 33, 4]]
    {
        let [cos, sin] = [2, 3].map(|seed| tensor([length, pairs], seed, &device));
        let x = tensor([2, length, heads, width], 1, &device).require_grad();
        // Not in order in memory, as heads are after a projection.
        let rows = || x.clone().swap_dims(1, 2);
        for (kernel, plain) in both {
            let [a, b] = [kernel, plain].map(|f| f(rows(), cos.clone(), sin.clone()));
            let what = format!("{heads} heads of {width}, {pairs} pairs");
            let differs = |a: Tensor<4>, b: Tensor<4>| -> Tensor<4, Bool> { a.inner().not_equal(b.inner()) };
            // Bit for bit, because each number is rounded in the same steps.
            assert!(!differs(a.clone(), b.clone()).any().into_scalar::<bool>(), "{what}");
            let factors = tensor([2, heads, length, width], 4, &device);
            let [g, h] = [a, b].map(|y| x.grad(&(y * factors.clone()).sum().backward()).unwrap());
            assert_close(g, h, &format!("{what}: the gradient"));
        }
    }
    // Angles that are learned have gradients of their own.
    let [cos, sin] = [2, 3].map(|seed| tensor([4, 3], seed, &device).require_grad());
    let x = tensor([1, 2, 4, 6], 1, &device);
    for (kernel, plain) in both {
        let [a, b] = [kernel, plain].map(|f| {
            let y = f(x.clone(), cos.clone(), sin.clone());
            let all = (y.clone() * y * x.clone()).sum().backward();
            (cos.grad(&all).unwrap(), sin.grad(&all).unwrap())
        });
        assert_close(a.0, b.0, "the gradient of cosines");
        assert_close(a.1, b.1, "the gradient of sines");
    }
}

#[test]
fn a_hidden_key_changes_nothing() {
    let device = Device::flex();
    let (time, width) = (150, 24);
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: true };
    let [q, k, v] = [1, 2, 3].map(|seed| tensor([1, 2, time, width], seed, &device));
    let bits = |k: Tensor<4>, v: Tensor<4>| {
        let y = attention(q.clone(), k, v, None, None, options);
        y.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let before = bits(k.clone(), v.clone());
    for from in [1, 59, 60, 61, 149] {
        let change = |x: &Tensor<4>, by: f32| {
            let late = x.clone().narrow(2, from, time - from) * by;
            Tensor::cat(vec![x.clone().narrow(2, 0, from), late], 2)
        };
        let after = bits(change(&k, -7.0), change(&v, 9.0));
        for head in 0..2 {
            let seen = head * time * width..(head * time + from) * width;
            assert_eq!(before[seen.clone()], after[seen], "from {from}");
        }
        let bad = bits(change(&k, f32::NAN), v.clone());
        for (i, bits) in bad.iter().enumerate() {
            assert_eq!(f32::from_bits(*bits).is_nan(), i / width % time >= from, "{i} from {from}");
        }
    }
    // A query that sees no key.
    let mask = Tensor::<4, Bool>::full([1, 1, 1, time], true, &device);
    let y = attention(q, k, v, Some(mask), None, options);
    assert!(y.into_data().iter::<f32>().all(|y| y == 0.0));
}

#[test]
fn cross_entropy_and_its_gradient_are_those_of_separate_operations() {
    let device = device().autodiff();
    for [rows, width] in SIZES {
        for smoothing in [0.0, 0.1] {
            let logits = (tensor([rows, width], 1, &device) * 4.0).require_grad();
            let classes: Vec<i64> = (0..rows).map(|i| (i * 7 % width) as i64).collect();
            let weights: Vec<f32> = (0..rows).map(|i| [1.0, 0.0, 2.5][i % 3]).collect();
            let classes = Tensor::<2, Int>::from_data(TensorData::new(classes, [rows, 1]), &device);
            let weights = Tensor::<2>::from_data(TensorData::new(weights, [rows, 1]), &device);
            let kernel = cross_entropy(logits.clone(), classes.clone(), weights.clone(), smoothing);
            let logs = log_softmax(logits.clone(), 1);
            let own = logs.clone().gather(1, classes) * (1.0 - smoothing);
            let plain = ((own + logs.mean_dim(1) * smoothing) * weights).sum().neg();
            let what = format!("{rows} x {width}, smoothing {smoothing}");
            // With one class, the loss and its gradient are zero, and what is computed is rounding.
            if width > 1 {
                assert_close(kernel.clone().inner(), plain.clone().inner(), &what);
            }
            let [kernel, plain] = [kernel, plain].map(|y| logits.grad(&(y * 3.0).backward()).unwrap());
            if width > 1 {
                assert_close(kernel, plain, &format!("{what}: the gradient"));
            }
        }
    }
}

/// The logits become their own gradient only if nothing else needs them.
#[test]
fn cross_entropy_leaves_logits_that_others_read() {
    let device = device().autodiff();
    let (rows, width) = (64, 300);
    let classes: Vec<i64> = (0..rows as i64).collect();
    let classes = Tensor::<2, Int>::from_data(TensorData::new(classes, [rows, 1]), &device);
    let x = tensor([rows, width], 1, &device).require_grad();
    let gradient_of = |logits: Tensor<2>| {
        let weights = Tensor::ones([rows, 1], &device);
        let loss = cross_entropy(logits, classes.clone(), weights, 0.1);
        x.grad(&loss.backward()).unwrap().into_data()
    };
    let alone = gradient_of(x.clone() * 2.0);
    let logits = x.clone() * 2.0;
    let before = logits.clone().inner().into_data();
    let held = gradient_of(logits.clone());
    assert_eq!(held, alone);
    assert_eq!(logits.inner().into_data(), before);
}

/// Large scores do not overflow, and a position of weight 0 is not read.
#[test]
fn cross_entropy_takes_all_numbers() {
    let device = Device::flex().autodiff();
    let numbers = vec![1e30, -1e30, 5.0, f32::NEG_INFINITY, 0.0, 1.0, f32::NAN, f32::INFINITY, 3.0];
    let logits = Tensor::<2>::from_data(TensorData::new(numbers, [3, 3]), &device).require_grad();
    let classes = Tensor::<2, Int>::from_data(TensorData::new(vec![0i64, 2, 1], [3, 1]), &device);
    let weights = Tensor::<2>::from_data(TensorData::new(vec![1f32, 1.0, 0.0], [3, 1]), &device);
    let loss = cross_entropy(logits.clone(), classes, weights, 0.0);
    let value: f32 = loss.clone().into_scalar();
    assert!((f64::from(value) - (1.0 + (-1f64).exp()).ln()).abs() < 1e-6, "{value}");
    let gradient: Vec<f32> = logits.grad(&loss.backward()).unwrap().into_data().iter().collect();
    let p = 1.0 / (1.0 + (-1f32).exp());
    let wanted = [0.0, 0.0, 0.0, 0.0, 1.0 - p, p - 1.0, 0.0, 0.0, 0.0];
    for (i, (got, wanted)) in gradient.iter().zip(wanted).enumerate() {
        assert!((got - wanted).abs() < 1e-6, "{i}: {got}, not {wanted}");
    }
}

#[test]
fn steps_of_adamw_are_those_of_burn() {
    let device = device();
    let config = AdamWConfig::new().with_beta_2(0.99).with_epsilon(1e-8).with_weight_decay(0.03);
    let theirs = config.build();
    for size in [1, 33, 40_000] {
        let mut x = tensor([size], 1, &device);
        let mut y = x.clone();
        let [mut first, mut second] = [x.zeros_like(), x.zeros_like()];
        let mut state = None::<AdamWState<1>>;
        for time in 1..=4 {
            let gradient = tensor([size], 10 + time as u64, &device);
            // Burn's config has the decay in single precision.
            let step = AdamW { betas: [0.9, 0.99], eps: 1e-8, rate: 3e-3, decay: f64::from(0.03f32), time };
            [x, first, second] = adamw([x, gradient.clone(), first, second], step);
            (y, state) = theirs.step(3e-3, y, gradient, state);
            let AdaptiveMomentumState { moment_1, moment_2, .. } = state.clone().unwrap().momentum;
            for (what, a, b) in [("x", &x, &y), ("first", &first, &moment_1), ("second", &second, &moment_2)]
            {
                assert_close(a.clone(), b.clone(), &format!("{what} after step {time} of {size}"));
            }
        }
    }
}

/// Keys and values that are a part of a larger buffer, as those of a cache, are read where they are.
#[test]
fn attention_of_a_few_queries_is_that_of_double_precision() {
    let device = Device::flex();
    let (batch, heads, special) = (2, 3, [0.0, 1e-45, 1e30, f32::INFINITY, f32::NAN]);
    for ([queries, keys, width, values], special) in
        [[1, 1, 1, 1], [1, 70, 64, 64], [2, 33, 7, 50], [3, 130, 33, 16], [5, 300, 80, 96], [1, 4000, 64, 64]]
            .into_iter()
            .flat_map(|sizes| special.map(|special| (sizes, special)))
    {
        let tensors =
            [(queries, width, 2), (keys + 9, width, 3), (keys + 9, values, 4)].map(|(n, d, seed)| {
                let mut x: Vec<f32> =
                    tensor([batch, heads, n, d], seed, &device).into_data().iter().collect();
                // In the second sequence only.
                x[heads * n * d] = if seed == 2 || special.is_finite() { special } else { x[heads * n * d] };
                Tensor::<4>::from_data(TensorData::new(x, [batch, heads, n, d]), &device)
            });
        let [q, k, v] = tensors;
        let (k, v) = (k.narrow(2, 0, keys), v.narrow(2, 0, keys));
        // Queries see no key in two of the cases.
        for (is_causal, hides, has_sinks) in
            [(false, 0, false), (true, 3, false), (false, 1, false), (true, 3, true), (false, 1, true)]
        {
            let is_hidden = |b: usize, j: usize| hides > 0 && (j + b).is_multiple_of(hides);
            let hidden: Vec<bool> =
                (0..batch).flat_map(|b| (0..keys).map(move |j| is_hidden(b, j))).collect();
            let mask = (hides > 0)
                .then(|| Tensor::<4, Bool>::from_data(TensorData::new(hidden, [batch, 1, 1, keys]), &device));
            let options = AttentionModuleOptions { scale: Some(0.3), softcap: Some(20.0), is_causal };
            // Far from the scores on both sides.
            let sinks = [0.5, 40.0, -30.0];
            let (a, b, c) = (q.clone(), k.clone(), v.clone());
            let got = match has_sinks {
                true => attention_with_sinks(a, b, c, mask, None, Tensor::from_data(sinks, &device), options),
                false => attention(a, b, c, mask, None, options),
            };
            let numbers = |x: &Tensor<4>| x.clone().into_data().iter::<f64>().collect::<Vec<f64>>();
            let (got, q, k, v) = (numbers(&got), numbers(&q), numbers(&k), numbers(&v));
            for (i, got) in got.chunks(values).enumerate() {
                let (head, query) = (i / queries, i % queries);
                let row = &q[i * width..(i + 1) * width];
                let score = |j: usize| {
                    let key = &k[(head * keys + j) * width..][..width];
                    let x: f64 = row.iter().zip(key).map(|(x, y)| x * y).sum();
                    let is_later = is_causal && j + queries > query + keys;
                    let is_out = is_later || is_hidden(head / heads, j);
                    if is_out { f64::NEG_INFINITY } else { 20.0 * (x * 0.3 / 20.0).tanh() }
                };
                let weights: Vec<f64> = (0..keys).map(|j| score(j).exp()).collect();
                let of_sink = if has_sinks { f64::exp(sinks[head % heads]) } else { 0.0 };
                let sum = weights.iter().sum::<f64>() + of_sink;
                for (d, got) in got.iter().enumerate() {
                    let product = |j: usize| weights[j] * v[(head * keys + j) * values + d];
                    let wanted = if sum == 0.0 { 0.0 } else { (0..keys).map(product).sum::<f64>() / sum };
                    let is_right = if wanted.is_nan() {
                        got.is_nan()
                    } else {
                        (got - wanted).abs() <= 1e-5 * wanted.abs().max(3.0)
                    };
                    assert!(is_right, "{queries} x {keys} x {width}, {special}: {got}, not {wanted}");
                }
            }
        }
    }
}

const BITS: &str = "TRAFOC_TEST_BITS";

/// Prints a number that depends on every bit of what the kernels compute, if the variable is set.
#[test]
fn one_run() {
    if std::env::var(BITS).is_err() {
        return;
    }
    let device = Device::flex().autodiff();
    let mut hasher = DefaultHasher::new();
    let mut add = |x: Vec<f32>| x.iter().for_each(|x| x.to_bits().hash(&mut hasher));
    let x = tensor([500, 96], 1, &device).require_grad();
    let weight = tensor([96], 2, &device).require_grad();
    let y = layer_norm_of(x.clone(), Some(weight.clone()), Some(weight.clone()), 1e-5);
    let qkv = [1, 2, 3].map(|seed| tensor([2, 3, 150, 32], seed, &device).require_grad());
    let [q, k, v] = qkv.clone();
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: true };
    let sinks = tensor::<1>([3], 4, &device).require_grad();
    let z = attention_with_sinks(q.clone(), k.clone(), v.clone(), None, None, sinks.clone(), options)
        + attention(q, k, v, None, None, options);
    let classes: Vec<i64> = (0..500).map(|i| i % 96).collect();
    let classes = Tensor::<2, Int>::from_data(TensorData::new(classes, [500, 1]), &device);
    let loss = cross_entropy(y, classes, Tensor::ones([500, 1], &device), 0.1);
    add(z.clone().into_data().iter().collect());
    add(loss.clone().into_data().iter().collect());
    let all = ((z.clone() * z).sum() + loss).backward();
    add(x.grad(&all).unwrap().into_data().iter().collect());
    add(weight.grad(&all).unwrap().into_data().iter().collect());
    add(sinks.grad(&all).unwrap().into_data().iter().collect());
    for x in qkv {
        add(x.grad(&all).unwrap().into_data().iter().collect());
    }
    let few = attention(
        tensor([2, 8, 2, 64], 8, &Device::flex()),
        tensor([2, 8, 900, 64], 9, &Device::flex()).narrow(2, 0, 800),
        tensor([2, 8, 900, 64], 10, &Device::flex()).narrow(2, 0, 800),
        None,
        None,
        options,
    );
    add(few.into_data().iter().collect());
    // Rows, inputs and outputs of products that threads share.
    for [m, k, n] in [[1, 700, 900], [5, 700, 900], [40, 700, 900], [300, 700, 40]] {
        let (x, weight) = (tensor([m, k], 6, &device), tensor([k, n], 7, &device));
        let (x, weight) = (x.require_grad(), weight.require_grad());
        let bias = tensor::<1>([n], 8, &device).require_grad();
        let y = linear_of(x.clone(), weight.clone(), Some(bias.clone()));
        let all = (y.clone() * y).sum().backward();
        add(x.grad(&all).unwrap().into_data().iter().collect());
        add(weight.grad(&all).unwrap().into_data().iter().collect());
        add(bias.grad(&all).unwrap().into_data().iter().collect());
        let (x, weight) = (tensor([m, k], 6, &device).inner(), tensor([k, n], 7, &device).inner());
        add(linear_of(x.clone(), weight.clone(), None).into_data().iter().collect());
        add(unembed(x.clone(), weight.clone().transpose()).into_data().iter().collect());
        let weight: Vec<f32> = weight.into_data().iter().collect();
        for of in [WeightType::F32, WeightType::Bf16, WeightType::Int8, WeightType::Int4] {
            let packed = Packed::weight(&weight, k, n, of);
            add(packed.apply(x.clone(), None).into_data().iter().collect());
        }
    }
    println!("bits {}", hasher.finish());
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    // The number of threads is read once in a process.
    let bits = |threads: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "interp::fused::one_run", "--nocapture"]).env(BITS, "1");
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let bits = text.lines().find_map(|l| l.split_once("bits ")).map(|(_, bits)| bits.to_owned());
        bits.unwrap_or_else(|| panic!("{output:?}"))
    };
    let one = bits("1");
    for threads in ["1", "2", "3", "5"] {
        assert_eq!(bits(threads), one, "{threads} threads");
    }
}

/// Burn's attention divides by the sum of the weights, which is zero where a query sees no key.
#[test]
fn the_gradient_of_a_bias_is_a_number_where_a_query_sees_no_key() {
    let device = device().autodiff();
    let [q, k, v] = [2, 3, 4].map(|seed| tensor::<4>([2, 2, 3, 4], seed, &device));
    let bias = tensor::<4>([1, 2, 3, 3], 5, &device).require_grad();
    // The second sequence is padding only.
    let hidden: Vec<bool> = (0..18).map(|i| i >= 9 || i % 3 == 2).collect();
    let mask = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [2, 1, 3, 3]), &device);
    let options = AttentionModuleOptions { scale: Some(0.4), softcap: None, is_causal: false };
    let gradient = |y: Tensor<4>| bias.grad(&(y * 100.0).sum().backward()).unwrap();
    let given = || (q.clone(), k.clone(), Some(mask.clone()), Some(bias.clone()));
    let (a, b, m, s) = given();
    let kernel = gradient(attention(a, b, v.clone(), m, s, options));
    let (a, b, m, s) = given();
    let plain = gradient(attention_weights(a, b, m, s, None, options).matmul(v.clone()));
    assert!(kernel.clone().into_data().iter::<f32>().all(f32::is_finite), "{kernel}");
    assert_close(kernel, plain, "the gradient of the bias");
}
