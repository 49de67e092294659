//! The same work on every device that is compiled in and in PyTorch, measured in turns in one process.
//!
//! `cargo bench -p trafoc-benches --bench devices`, with `--features tch` for LibTorch. If
//! `TRAFOC_BENCH_PYTHON` names a Python with torch and transformers, `peers/devices.py` does the same work
//! between the turns. Weights are random: the durations do not depend on them.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use burn::prelude::*;
use trafoc::compile::compile;
use trafoc::interp::{Captures, Inputs, Plan, Weights, device};
use trafoc::learn::choose::Sampling;
use trafoc::learn::data::{Array, Batch, Labels};
use trafoc::learn::decode::{Decoder, Limits, Prompt};
use trafoc::learn::recipe::Optimizer;
use trafoc::learn::step::{Rules, step};
use trafoc::learn::update::Updater;
use trafoc::spec::load::{self, NoFiles};
use trafoc::syntax::Notation;

/// How many rounds there are; in each, every device does all the work.
const ROUNDS: usize = 3;
/// How many tokens are decoded.
const TOKENS: usize = 64;

/// What is timed.
#[derive(Clone, Copy)]
enum Work {
    /// Logits of a batch of tokens.
    Forward { batch: usize, time: usize },
    /// Greedy decoding with a cache, from one token.
    Decode,
    /// A step of AdamW, from tokens to updated parameters.
    Train { batch: usize, time: usize },
}

/// The name in `peers/devices.py`; the spec; the vocabulary; the work; the runs in a round, the first of
/// which is a warm-up.
const WORKS: [(&str, &str, usize, Work, usize); 5] = [
    ("gpt2-small forward, 1 x 128", "specs/gpt2-small.yaml", 50257, Work::Forward { batch: 1, time: 128 }, 6),
    ("MiniLM forward, 32 x 64", "benches/specs/minilm.yaml", 30522, Work::Forward { batch: 32, time: 64 }, 6),
    ("gbt-mulm training step, 16 x 31", "specs/gbt-mulm.yaml", 30, Work::Train { batch: 16, time: 31 }, 40),
    ("gpt2-small cached decoding", "specs/gpt2-small.yaml", 50257, Work::Decode, 3),
    ("stories260k cached decoding", "benches/specs/stories260k.yaml", 512, Work::Decode, 6),
];

fn tokens(batch: usize, time: usize, vocab: usize) -> Vec<i64> {
    (0..batch * time).map(|i| ((i * 7919 + 13) % vocab) as i64).collect()
}

/// The duration of each run in seconds.
fn timed(device: &Device, spec: &str, vocab: usize, work: Work, runs: usize) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(spec);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut sources = load::sources();
    let id = sources.add(spec, text);
    let graph = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles).ok().and_then(|c| c.graph);
    let Some(graph) = graph else { panic!("{spec} does not compile") };
    let Ok(plan) = Plan::new(&graph, &Captures::none()) else { panic!("no plan") };
    let is_training = matches!(work, Work::Train { .. });
    let device = if is_training { device.clone().autodiff() } else { device.clone() };
    let Ok(weights) = Weights::init(&graph, &device, 0) else { panic!("no weights") };
    let mut updater = Updater::new(&Optimizer::usual(), |_| false, &weights);
    let mut weights = Some(weights);
    let mut run = |number: usize| match work {
        Work::Forward { batch, time } => {
            let data = TensorData::new(tokens(batch, time, vocab), [batch, time]);
            let inputs = Inputs::new().with("tokens", Tensor::<2, Int>::from_data(data, &device));
            let outputs = weights.as_ref().map(|weights| plan.run(weights, &inputs, false));
            let Some(Ok(outputs)) = outputs else { panic!("a run failed") };
            for value in outputs.values() {
                drop(value.float::<3>().map(Tensor::into_data));
                drop(value.float::<2>().map(Tensor::into_data));
            }
        }
        Work::Decode => {
            let Some(weights) = &weights else { panic!("no weights") };
            let prompt = Prompt { tokens: vec![1], memory: Vec::new() };
            let limits = Limits { most: TOKENS, context: 512, stop: Vec::new(), never: vec![], last: None };
            let made =
                Decoder::new(&plan, weights)
                    .sample(&[prompt], &Sampling::GREEDY, &limits, 0, &mut |_, _| true);
            assert!(made.is_ok_and(|made| made.iter().all(|m| m.tokens.len() == TOKENS)), "decoding failed");
        }
        Work::Train { batch, time } => {
            let values = tokens(batch, time, vocab);
            let weighed = vec![1.0; batch * time];
            let batch = Batch {
                inputs: vec![("tokens", Array::Ints { shape: vec![batch, time], values: values.clone() })],
                labels: Labels::Positions { shape: [batch, time], classes: values, weights: weighed },
                indices: (0..batch).collect(),
                counted: batch * time,
                tokens: batch * time,
            };
            let rules = Rules::plain(0);
            let before = weights.take();
            let made = before.map(|w| step(&plan, w, &mut updater, &[batch], number as u64, 1.0, &rules));
            let Some(Ok((moved, _))) = made else { panic!("a step failed") };
            weights = Some(moved);
        }
    };
    let one = |number| {
        let begun = Instant::now();
        run(number);
        begun.elapsed().as_secs_f64()
    };
    (1..=runs).map(one).skip(1).collect()
}

/// The durations in PyTorch; empty if there is none.
fn peer(name: &str, runs: usize) -> Vec<f64> {
    let Ok(python) = std::env::var("TRAFOC_BENCH_PYTHON") else { return Vec::new() };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/devices.py");
    let output = Command::new(python).arg(script).arg(name).arg(runs.to_string()).output();
    let Ok(output) = output else { panic!("the Python of TRAFOC_BENCH_PYTHON does not start") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let devices: Vec<_> = ["flex", "tch"].into_iter().filter_map(|name| device::device(name).ok()).collect();
    for (name, spec, vocab, work, runs) in WORKS {
        let mut times: Vec<(String, Vec<f64>)> =
            devices.iter().map(|d| (d.name.clone(), Vec::new())).collect();
        let mut peers = Vec::new();
        for _ in 0..ROUNDS {
            for (device, (_, all)) in devices.iter().zip(&mut times) {
                all.extend(timed(&device.device, spec, vocab, work, runs));
            }
            peers.extend(peer(name, runs));
        }
        if !peers.is_empty() {
            times.push(("PyTorch".to_owned(), peers));
        }
        println!("{name}");
        for (who, all) in &mut times {
            let seconds = median(all);
            let rate = match work {
                Work::Decode => format!(", {:.0} tokens/s", TOKENS as f64 / seconds),
                Work::Forward { .. } | Work::Train { .. } => String::new(),
            };
            println!("  {who:8} {:9.2} ms{rate}", 1e3 * seconds);
        }
    }
}
