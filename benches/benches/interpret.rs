//! The interpreter against the same model written by hand in burn, measured in turns in one process.
//!
//! The two alternate, so that both run under the same conditions; criterion reports the duration of the
//! interpreter. The ratio of their medians is printed at the end.

use std::path::Path;
use std::time::{Duration, Instant};

use burn::prelude::*;
use criterion::{Criterion, criterion_group, criterion_main};
use trafoc::compile::compile;
use trafoc::interp::{Inputs, Model, Options, Weights};
use trafoc::spec::load::{self, NoFiles};
use trafoc::syntax::Notation;
use trafoc_benches::{Gpt, Sizes, loss};

fn model(spec: &str, device: &Device) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs").join(spec);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut sources = load::sources();
    let id = sources.add(spec, text);
    let graph = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles).ok().and_then(|c| c.graph);
    let Some(graph) = graph else { panic!("{spec} does not compile") };
    let Ok(weights) = Weights::init(&graph, device, 0) else { panic!("{spec} has no weights") };
    match Model::new(graph, weights) {
        Ok(model) => model,
        Err(error) => panic!("{error}"),
    }
}

fn tokens(batch: usize, length: usize, vocab: usize, device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i32> = (0..batch * length).map(|i| ((i * 7919 + 13) % vocab) as i32).collect();
    Tensor::from_data(TensorData::new(ids, [batch, length]), device)
}

/// Measures `a` and `b` in turns, and reports how long the first takes compared with the second.
fn pair(c: &mut Criterion, name: &str, mut a: impl FnMut(), mut b: impl FnMut()) {
    let timed = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    let mut rounds: Vec<(Duration, Duration)> = Vec::new();
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for which in ["interpreter", "by hand"] {
        group.bench_function(which, |bencher| {
            bencher.iter_custom(|n| {
                let mut total = Duration::ZERO;
                for i in 0..n {
                    // The order within a pair alternates.
                    let (x, y) = if i % 2 == 0 {
                        let x = timed(&mut a);
                        (x, timed(&mut b))
                    } else {
                        let y = timed(&mut b);
                        (timed(&mut a), y)
                    };
                    rounds.push((x, y));
                    total += if which == "interpreter" { x } else { y };
                }
                total
            });
        });
    }
    group.finish();
    let mut ratios: Vec<f64> = rounds.iter().map(|(x, y)| x.as_secs_f64() / y.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |q: f64| {
        ratios.get((q * (ratios.len().saturating_sub(1)) as f64) as usize).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{name}: interpreter / by hand = {:.3} (quartiles {:.3} to {:.3}, {} pairs)",
        at(0.5),
        at(0.25),
        at(0.75),
        ratios.len()
    );
}

fn forward(c: &mut Criterion) {
    let device = Device::flex();
    let sizes = Sizes::GPT2_SMALL;
    let by_hand = Gpt::new(sizes, &device);
    let interpreted = model("gpt2-small.yaml", &device);
    let ids = tokens(1, 128, sizes.vocab, &device);
    let inputs = Inputs::new().with("tokens", ids.clone());
    let options = Options::default();
    pair(
        c,
        "gpt2-small forward, 1 x 128",
        || {
            let outputs = interpreted.forward(&inputs, &options);
            let logits = outputs.ok().and_then(|mut o| o.shift_remove("logits")).and_then(|v| v.float::<3>());
            drop(logits.map(Tensor::into_data));
        },
        || drop(by_hand.forward(ids.clone()).into_data()),
    );
}

fn training_step(c: &mut Criterion) {
    let device = Device::flex().autodiff();
    let sizes = Sizes::GBT_MULM;
    let by_hand = Gpt::new(sizes, &device);
    let interpreted = model("gbt-mulm.yaml", &device);
    let ids = tokens(16, 31, sizes.vocab, &device);
    let inputs = Inputs::new().with("tokens", ids.clone());
    let options = Options { training: true, ..Options::default() };
    pair(
        c,
        "gbt-mulm forward and backward, 16 x 31",
        || {
            let outputs = interpreted.forward(&inputs, &options);
            let logits = outputs.ok().and_then(|mut o| o.shift_remove("logits")).and_then(|v| v.float::<3>());
            let Some(logits) = logits else { panic!("no logits") };
            drop(loss(logits, ids.clone()).backward());
        },
        || drop(loss(by_hand.forward(ids.clone()), ids.clone()).backward()),
    );
}

criterion_group!(benches, forward, training_step);
criterion_main!(benches);
