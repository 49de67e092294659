//! What some backend of burn gets wrong without a work-around. Each test fails on the backend it names if
//! the work-around is removed; the comment at the work-around names the place in burn.

use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{DType as Elements, FloatDType, activation};
use trafoc_kernels::{
    Appended, attention, attention_weights, gelu, layer_norm_of, pool_mean, repeat_heads, rms_norm_of,
    route_softmax, route_softmax_of_chosen, sinusoid_concat, unit_length,
};

use super::*;
use crate::compiled::repository;

/// The number of queries, and of keys, which is larger as in cached decoding.
const QUERIES: usize = 3;
const KEYS: usize = 5;
const WIDTH: usize = 4;

/// `[1, heads, length, WIDTH]`
fn rows(heads: usize, length: usize, seed: u64, device: &Device) -> Tensor<4> {
    let mut next = noise(seed);
    let numbers: Vec<f32> = (0..heads * length * WIDTH).map(|_| 4.0 * next() as f32 - 2.0).collect();
    Tensor::from_data(TensorData::new(numbers, [1, heads, length, WIDTH]), device)
}

/// Scaled dot-product attention by its definition, in double precision. Each key head is shared by `groups`
/// query heads.
fn defined(
    [q, k, v]: &[Vec<f32>; 3],
    heads: usize,
    groups: usize,
    softcap: Option<f64>,
    hidden: impl Fn(usize, usize) -> bool,
) -> Vec<f32> {
    let mut out = Vec::new();
    for (head, query) in (0..heads).flat_map(|head| (0..QUERIES).map(move |query| (head, query))) {
        let row = |of: &[f32], head: usize, at: usize, length: usize| -> Vec<f64> {
            let start = (head * length + at) * WIDTH;
            of[start..start + WIDTH].iter().map(|x| f64::from(*x)).collect()
        };
        let asked = row(q, head, query, QUERIES);
        let weights: Vec<f64> = (0..KEYS)
            .map(|key| {
                let given = row(k, head / groups, key, KEYS);
                let score = asked.iter().zip(&given).map(|(a, b)| a * b).sum::<f64>() / (WIDTH as f64).sqrt();
                let score = softcap.map_or(score, |cap| cap * (score / cap).tanh());
                if hidden(query, key) { 0.0 } else { score.exp() }
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        let values: Vec<Vec<f64>> = (0..KEYS).map(|key| row(v, head / groups, key, KEYS)).collect();
        out.extend(
            (0..WIDTH)
                .map(|i| (weights.iter().zip(&values).map(|(w, v)| w * v[i]).sum::<f64>() / sum) as f32),
        );
    }
    out
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Compares both implementations of attention, with and without gradients, with the definition.
#[track_caller]
fn attends(softcap: Option<f64>, is_causal: bool, hides: Option<fn(usize, usize) -> bool>) {
    let options = || AttentionModuleOptions { scale: None, softcap, is_causal };
    for device in [device(), device().autodiff()] {
        let of = |length, seed| rows(2, length, seed, &device).require_grad_if(&device);
        let (q, k, v) = (of(QUERIES, 1), of(KEYS, 2), of(KEYS, 3));
        let mask = hides.map(|hides| {
            let cells = (0..QUERIES).flat_map(|query| (0..KEYS).map(move |key| hides(query, key)));
            let data = TensorData::new(cells.collect::<Vec<bool>>(), [1, 1, QUERIES, KEYS]);
            Tensor::<4, Bool>::from_data(data, &device)
        });
        let future = |query, key| is_causal && key > query + KEYS - QUERIES;
        let hidden = |query, key| future(query, key) || hides.is_some_and(|hides| hides(query, key));
        let inputs = [q.clone(), k.clone(), v.clone()].map(numbers);
        let wanted = defined(&inputs, 2, 1, softcap, hidden);
        let whole = attention(q.clone(), k.clone(), v.clone(), mask.clone(), None, options());
        assert_close(&wanted, &numbers(whole));
        let weights = attention_weights(q, k, mask, None, None, options());
        assert_close(&wanted, &numbers(weights.matmul(v)));
    }
}

/// Enables gradients of a tensor if the device supports them.
trait Track {
    fn require_grad_if(self, device: &Device) -> Self;
}

impl<const D: usize> Track for Tensor<D> {
    fn require_grad_if(self, device: &Device) -> Self {
        if device.is_autodiff() { self.require_grad() } else { self }
    }
}

/// LibTorch interprets a mask the other way round.
#[test]
fn a_mask_hides_where_it_is_true() {
    attends(None, false, Some(|query, key| key == query || key == 4));
    attends(None, true, Some(|query, key| key < query));
}

/// LibTorch ignores the softcap.
#[test]
fn a_softcap_bounds_the_scores() {
    attends(Some(0.5), false, None);
    attends(Some(0.5), true, None);
}

/// LibTorch lets the first query see only the first key, although the last query should see all keys.
#[test]
fn causal_is_counted_from_the_last_key() {
    attends(None, true, None);
}

/// Flex returns zeros for a query whose scores are all NaN.
#[test]
fn nan_scores_give_nan_outputs() {
    let device = device();
    // Other backends may differ: a shader may assume that there are no NaNs.
    if !format!("{device:?}").contains("Flex") {
        return;
    }
    for is_causal in [false, true] {
        let of = |length, seed| rows(2, length, seed, &device);
        let (q, k, v) = (of(QUERIES, 1), of(KEYS, 2), of(KEYS, 3));
        let nan = |x: &Tensor<4>| x.clone().mul_scalar(f32::NAN);
        for (q, k) in [(nan(&q), k.clone()), (q.clone(), nan(&k))] {
            let options = AttentionModuleOptions { scale: None, softcap: None, is_causal };
            let found = numbers(attention(q, k, v.clone(), None, None, options));
            assert!(found.iter().all(|x| x.is_nan()), "{found:?}");
        }
    }
}

/// Flex requires as many key heads as query heads, and mixes them up in training.
#[test]
fn grouped_heads_are_the_same_in_training() {
    for device in [device(), device().autodiff()] {
        let of = |heads, length, seed| rows(heads, length, seed, &device).require_grad_if(&device);
        let (q, k, v) = (of(4, QUERIES, 1), of(2, KEYS, 2), of(2, KEYS, 3));
        let inputs = [q.clone(), k.clone(), v.clone()].map(numbers);
        let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: false };
        let found = attention(q, repeat_heads(k, 2), repeat_heads(v, 2), None, None, options);
        assert_close(&defined(&inputs, 4, 2, None, |_, _| false), &numbers(found));
    }
    // The repetition is in the graph and not in the kernel, so no backend can leave it out.
    let grouped = graph_with(&repository("tests/numeric/attention-grouped.yaml"), &[]);
    // Keys and values are repeated alike.
    assert_eq!(trafoc::ir::print::print(&grouped, None).matches("repeat_heads").count() % 2, 0);
    assert!(trafoc::ir::print::print(&grouped, None).contains("repeat_heads"));
}

/// CubeCL's backends use the derivative of the tanh approximation.
#[test]
fn the_gradient_of_gelu_is_its_own() {
    let x = [-3.0f32, -2.1, -1.0, -0.5, 0.0, 0.5, 1.0, 2.1, 3.0];
    // cdf(x) + x pdf(x) of the normal distribution
    let wanted = [
        -0.011_945_65,
        -0.074_500_96,
        -0.083_315_47,
        0.132_504_87,
        0.5,
        0.867_495_1,
        1.083_315_5,
        1.074_501,
        1.011_945_6,
    ];
    let x = Tensor::<1>::from_floats(x, &device().autodiff()).require_grad();
    let y = gelu(x.clone());
    assert_close(&numbers(activation::gelu(x.clone().inner())), &numbers(y.clone().inner()));
    let gradient = x.grad(&y.sum().backward()).unwrap();
    assert_close(&wanted, &numbers(gradient));
}

/// Only LibTorch converts element types: Flex panics, and CubeCL's backends compute nonsense.
#[test]
fn kernels_keep_their_element_type() {
    let device = device();
    for dtype in [Elements::F16, Elements::BF16] {
        let float = if dtype == Elements::F16 { FloatDType::F16 } else { FloatDType::BF16 };
        if !device.supports_dtype(float) {
            continue;
        }
        // The bound allows one or two rounding errors.
        let bound = if dtype == Elements::F16 { 4e-3 } else { 3e-2 };
        let near = |what: &str, single: Vec<f32>, half: (Elements, Vec<f32>)| {
            assert_eq!(half.0, dtype, "{what}");
            let scale = single.iter().fold(1.0f32, |m, x| m.max(x.abs()));
            let off = single.iter().zip(&half.1).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(off <= bound * scale && half.1.iter().all(|x| x.is_finite()), "{what}: off by {off}");
        };
        let typed = |t: Tensor<3>| (t.dtype(), numbers(t));
        let typed4 = |t: Tensor<4>| (t.dtype(), numbers(t));
        let x = |of: Elements| rows(1, 6, 1, &device).squeeze_dim::<3>(0).cast(of);
        let w = |of: Elements| Tensor::<1>::from_floats([0.5, 1.5, 1.0, -2.0], &device).cast(of);
        let keep = || Tensor::<2, Int>::from_ints([[1, 1, 1, 1, 0, 0]], &device);
        let wide = Elements::F32;
        let each: [(&str, &dyn Fn(Elements) -> Tensor<3>); 8] = [
            ("layer_norm_of", &|of| layer_norm_of(x(of), Some(w(of)), Some(w(of)), 1e-5)),
            ("a plain layer_norm_of", &|of| layer_norm_of(x(of), None, None, 1e-5)),
            ("rms_norm_of", &|of| rms_norm_of(x(of), Some(w(of)), 1e-5)),
            ("unit_length", &|of| unit_length(x(of))),
            ("pool_mean", &|of| pool_mean(x(of), Some(keep())).unsqueeze()),
            ("route_softmax", &|of| route_softmax(x(of), 2, true, |x| x)),
            ("route_softmax_of_chosen", &|of| route_softmax_of_chosen(x(of), 2, |x| x)),
            ("append", &|of| Appended::default().append(x(of), 0)),
        ];
        for (what, kernel) in each {
            near(what, numbers(kernel(wide)), typed(kernel(dtype)));
        }
        let options = || AttentionModuleOptions { scale: None, softcap: Some(2.0), is_causal: true };
        let (q, k) = (rows(2, QUERIES, 1, &device), rows(2, KEYS, 2, &device));
        let bias = |of: Elements| rows(2, KEYS, 3, &device).narrow(2, 0, QUERIES).narrow(3, 0, 1).cast(of);
        let bias = |of| bias(of).expand([1, 2, QUERIES, KEYS]);
        let fused = |of: Elements| {
            attention(
                q.clone().cast(of),
                k.clone().cast(of),
                k.clone().cast(of),
                None,
                Some(bias(of)),
                options(),
            )
        };
        near("attention", numbers(fused(wide)), typed4(fused(dtype)));
        let weights = |of: Elements| {
            attention_weights(
                q.clone().cast(of),
                k.clone().cast(of),
                None,
                Some(bias(of)),
                Some(w(of).narrow(0, 0, 2)),
                options(),
            )
        };
        near("attention_weights", numbers(weights(wide)), typed4(weights(dtype)));
    }
}

/// Integers have 32 bits on Flex and CubeCL's backends, and 64 bits on LibTorch.
#[test]
fn integers_of_either_width_are_read() {
    let device = device();
    let table = |of: Elements| {
        let positions =
            Tensor::<2, Int>::from_data(TensorData::new(vec![0i64, 1, 70_000], [1, 3]), (&device, of));
        numbers(sinusoid_concat(positions, 4, 10_000.0))
    };
    assert_eq!(table(Elements::I32), table(Elements::I64));
    assert_close(&table(Elements::I64)[4..8], &[0.841_471, 0.009_999_833, 0.540_302_3, 0.999_95]);
    let ids = Tensor::<2, Int>::from_data(TensorData::new(vec![3i64, -1, 1 << 30], [1, 3]), &device);
    assert_eq!(Value::from(ids).to_data().unwrap().iter::<i64>().collect::<Vec<_>>(), [3, -1, 1 << 30]);
}

const TIED: &str = "
trafo: 1
name: little
vocab: 7
context: 8
d_model: 8
embed: {position: none}
decoder: {layers: 1, attention: {heads: 2}}
head: {lm: {tied: PLACE, bias: false}}
";

/// A parameter that is copied into two fields would be updated only in the first one.
#[test]
fn a_tied_table_is_one_parameter_with_the_gradient_of_both_uses() {
    const RATE: f64 = 0.5;
    let device = device().autodiff();
    let table = "embed.tokens.weight";
    let trained = |is_tied: bool| {
        let graph = spec(&TIED.replace("PLACE", if is_tied { "true" } else { "false" }));
        let own = Weights::init(&graph, &device, 3).unwrap();
        let plan = Plan::new(&graph, &trafoc::interp::Captures::none()).unwrap();
        // The untied model starts with two equal tables.
        let start = own.values(table).unwrap();
        let weights = Weights::build(&graph, &device, |path: &str, _: &_| {
            Ok(if path == "head.output.weight" { start.clone() } else { own.values(path).unwrap() })
        })
        .unwrap();
        let inputs = inputs(&plan, &LENGTHS);
        let loss = weighted(&plan.run(&weights, &inputs, true).unwrap()["logits"]);
        let gradients = GradientsParams::from_grads(loss.backward(), &weights);
        let after = SgdConfig::new().init().step(RATE, weights, gradients);
        let tables: Vec<String> =
            after.layout().keys().filter(|p| p.contains("tokens") || p.contains("head")).cloned().collect();
        let moved = |path: &String| -> Vec<f32> {
            after.values(path).unwrap().iter().zip(&start).map(|(a, b)| (b - a) / RATE as f32).collect()
        };
        let moves: Vec<Vec<f32>> = tables.iter().map(moved).collect();
        let logits = floats(&plan.run(&after, &inputs, false).unwrap()["logits"]);
        // The saved table is the one that computes.
        let again =
            Weights::build(&graph, &device, |path: &str, _: &_| Ok(after.values(path).unwrap())).unwrap();
        assert_eq!(logits, floats(&plan.run(&again, &inputs, false).unwrap()["logits"]));
        moves
    };
    let (tied, apart) = (trained(true), trained(false));
    assert_eq!((tied.len(), apart.len()), (1, 2));
    let sum: Vec<f32> = apart[0].iter().zip(&apart[1]).map(|(a, b)| a + b).collect();
    assert_close(&sum, &tied[0]);
    // If one of the uses moved nothing, the sum would not show that both are counted.
    assert!(apart.iter().all(|way| way.iter().any(|x| x.abs() > 1e-3)));
}

/// Kernel fusion together with autotuning corrupts cached decoding on CubeCL's backends, and a program's
/// manifest determines whether it is built with both. `laws` tests on every backend that cached decoding
/// equals full decoding.
#[test]
fn nothing_is_built_with_fusion() {
    for manifest in ["Cargo.toml", "generated/Cargo.toml", "tests/emitted/Cargo.toml", "benches/Cargo.toml"] {
        let text = std::fs::read_to_string(repository(manifest)).unwrap();
        let code: Vec<&str> = text.lines().map(|line| line.split('#').next().unwrap()).collect();
        let code = code.join("\n");
        // The default features of burn's backends enable it.
        let wrong = ["fusion", "burn/default"].into_iter().find(|word| code.contains(word));
        assert!(wrong.is_none(), "{manifest} asks for {wrong:?}");
        for line in code.lines().filter(|line| line.starts_with("burn =")) {
            let is_plain = line.contains("default-features = false") || line.contains("workspace = true");
            assert!(is_plain, "{manifest}: {line}");
        }
    }
}
