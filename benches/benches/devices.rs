//! The same work on every device that is compiled in and in PyTorch, measured in turns in one process.
//!
//! `cargo bench -p trafoc-benches --bench devices`, with `--features tch` for LibTorch. If
//! `TRAFOC_BENCH_PYTHON` names a Python with torch and transformers, `peers/devices.py` does the same work
//! between the turns. Weights are random: the durations do not depend on them.
//!
//! What the hardware allows is measured in each round, too: the operations per second of a product of matrices
//! alone, and the bytes per second that all threads read. A forward pass is compared with the first, decoding with
//! the second: every token reads all weights. A process of its own measures the memory of decoding, and a long
//! sequence shows how attention grows.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use burn::prelude::*;
use trafoc::compile::compile;
use trafoc::interp::pack::{Packs, Placement, WeightType};
use trafoc::interp::{Captures, Inputs, Plan, Weights, device};
use trafoc::ir::{Lengths, Verified};
use trafoc::learn::choose::Sampling;
use trafoc::learn::data::{Array, Batch, Labels};
use trafoc::learn::decode::{Decoder, Limits, Prompt};
use trafoc::learn::recipe::Optimizer;
use trafoc::learn::step::{Rules, step};
use trafoc::learn::update::Updater;
use trafoc::report::cost::cost;
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
    /// Greedy decoding with a cache, from one token, with weights of this type.
    Decode { weights: WeightType },
    /// A step of AdamW, from tokens to updated parameters.
    Train { batch: usize, time: usize },
}

/// Something that is measured.
struct Row {
    /// The name in `peers/devices.py`.
    name: &'static str,
    spec: &'static str,
    vocab: usize,
    work: Work,
    /// The runs in a round, the first of which is a warm-up.
    runs: usize,
}

const fn row(name: &'static str, spec: &'static str, vocab: usize, work: Work, runs: usize) -> Row {
    Row { name, spec, vocab, work, runs }
}

const GPT2: &str = "specs/gpt2-small.yaml";
const STORIES: &str = "benches/specs/stories260k.yaml";
const ATTENTION: &str = "benches/specs/attention.yaml";
const MINILM: &str = "benches/specs/minilm.yaml";
const DECODER: &str = "benches/specs/decoder30m.yaml";

const ROWS: [Row; 10] = [
    row("gpt2-small forward, 1 x 128", GPT2, 50257, Work::Forward { batch: 1, time: 128 }, 6),
    row("gpt2-small prompt, 1 x 512", GPT2, 50257, Work::Forward { batch: 1, time: 512 }, 3),
    row("MiniLM forward, 32 x 64", MINILM, 30522, Work::Forward { batch: 32, time: 64 }, 6),
    row(
        "gbt-mulm training step, 16 x 31",
        "specs/gbt-mulm.yaml",
        30,
        Work::Train { batch: 16, time: 31 },
        40,
    ),
    row("decoder30m training step, 8 x 256", DECODER, 8192, Work::Train { batch: 8, time: 256 }, 3),
    row("gpt2-small cached decoding, f32", GPT2, 50257, Work::Decode { weights: WeightType::F32 }, 3),
    row("gpt2-small cached decoding, bf16", GPT2, 50257, Work::Decode { weights: WeightType::Bf16 }, 3),
    row("gpt2-small cached decoding, int8", GPT2, 50257, Work::Decode { weights: WeightType::Int8 }, 3),
    row("gpt2-small cached decoding, int4", GPT2, 50257, Work::Decode { weights: WeightType::Int4 }, 3),
    row("stories260k cached decoding", STORIES, 512, Work::Decode { weights: WeightType::F32 }, 20),
];

fn tokens(batch: usize, time: usize, vocab: usize) -> Vec<i64> {
    (0..batch * time).map(|i| ((i * 7919 + 13) % vocab) as i64).collect()
}

fn compiled(spec: &str) -> Verified {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(spec);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut sources = load::sources();
    let id = sources.add(spec, text);
    let graph = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles).ok().and_then(|c| c.graph);
    let Some(graph) = graph else { panic!("{spec} does not compile") };
    graph
}

/// The duration of each run in seconds, and the bytes of the weights that decoding reads for a token.
fn timed(device: &Device, row: &Row) -> (Vec<f64>, usize) {
    let Row { spec, vocab, work, runs, .. } = *row;
    let graph = compiled(spec);
    let Ok(plan) = Plan::new(&graph, &Captures::none()) else { panic!("no plan") };
    let is_training = matches!(work, Work::Train { .. });
    let device = if is_training { device.clone().autodiff() } else { device.clone() };
    // As `predict` and `generate` do while they read the weights.
    let packed_as = match work {
        Work::Forward { .. } => Some(WeightType::F32),
        Work::Decode { weights } => Some(weights),
        Work::Train { .. } => None,
    };
    let packs = packed_as.map(|of| Packs::new(&plan, of));
    let placement = Placement { device: &device, packs: packs.as_ref() };
    let Ok(mut weights) = Weights::init(&graph, placement, 0) else { panic!("no weights") };
    let mut updater = Updater::new(&Optimizer::usual(), |_| false, &weights);
    let parameters = usize::try_from(cost(&graph).parameters.all().total).unwrap_or(0);
    let mut bytes = 4 * parameters;
    if let Some(of) = packed_as {
        match weights.pack(&plan, of) {
            Ok(packing) => bytes = bytes + packing.after - packing.before,
            // `generate` uses them as they are where the device has no kernels for packed ones.
            Err(_) if of == WeightType::F32 => {}
            Err(_) => return (Vec::new(), 0),
        }
    }
    let mut weights = Some(weights);
    let mut run = |number: usize| match work {
        Work::Forward { batch, time } => {
            let data = TensorData::new(tokens(batch, time, vocab), [batch, time]);
            let inputs = Inputs::new().with("tokens", Tensor::<2, Int>::from_data(data, &device));
            let outputs = weights.as_ref().map(|weights| plan.run(weights, &inputs, false));
            assert!(matches!(outputs, Some(Ok(_))), "a run failed");
            // Some devices compute while the program goes on. The numbers are not read, as in the peers.
            assert!(device.sync().is_ok(), "the device failed");
        }
        Work::Decode { .. } => {
            let Some(weights) = &weights else { panic!("no weights") };
            let prompt = Prompt { tokens: vec![1], ..Prompt::default() };
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
                padded: None,
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
    ((1..=runs).map(one).skip(1).collect(), bytes)
}

/// The exit status of `peers/devices.py` where a peer is not installed.
const NOT_INSTALLED: i32 = 69;

/// The programs that do the same work as a row, as `peers/devices.py` names them.
fn peers(row: &Row) -> Vec<&'static str> {
    match row.work {
        Work::Forward { .. } => vec!["PyTorch"],
        Work::Train { .. } => vec!["PyTorch", "torch.compile"],
        // llama.cpp has these types, and its four bits are not ours.
        Work::Decode { weights: WeightType::F32 | WeightType::Bf16 | WeightType::Int8 }
            if row.spec == GPT2 =>
        {
            vec!["PyTorch", "llama.cpp"]
        }
        Work::Decode { .. } => vec!["PyTorch"],
    }
}

/// The durations in a peer; empty if it is not installed.
fn durations_in(peer: &str, row: &Row) -> Vec<f64> {
    let Ok(python) = std::env::var("TRAFOC_BENCH_PYTHON") else { return Vec::new() };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/devices.py");
    let output = Command::new(python).arg(script).args([peer, row.name, &row.runs.to_string()]).output();
    let Ok(output) = output else { panic!("the Python of TRAFOC_BENCH_PYTHON does not start") };
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_INSTALLED) {
        eprint!("{errors}");
        return Vec::new();
    }
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The operations per second of a product of matrices alone, on all threads.
fn product_rate(device: &Device) -> f64 {
    const SHAPE: [usize; 3] = [768, 768, 3072];
    let [m, k, n] = SHAPE;
    let tensor = |shape: [usize; 2]| Tensor::<2>::ones(shape, device);
    let (x, weight) = (tensor([m, k]), tensor([k, n]));
    let mut times: Vec<f64> = (0..8)
        .map(|_| {
            let begun = Instant::now();
            drop(x.clone().matmul(weight.clone()).into_data());
            begun.elapsed().as_secs_f64()
        })
        .collect();
    2.0 * (m * k * n) as f64 / median(&mut times)
}

/// The bytes per second that all threads read.
fn reading_rate() -> f64 {
    // 256 MiB, which are more than caches have.
    let numbers = vec![1u64; 1 << 25];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for part in numbers.chunks(numbers.len().div_ceil(threads)) {
                    // Without `black_box`, what is not used would not be computed.
                    scope.spawn(|| std::hint::black_box(part.iter().fold(0, |sum, x| sum ^ x)));
                }
            });
            begun.elapsed().as_secs_f64()
        })
        .collect();
    8.0 * numbers.len() as f64 / median(&mut times)
}

/// The most memory that this process has had since the last call, in bytes; only Linux says so.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    // This number sets the peak to what is used now.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    Some(1024.0 * kib)
}

/// What a process of its own measures: the memory of decoding over that of the weights, and how the time and
/// the memory of attention grow with the length.
fn measure_alone(what: &str) {
    let Ok(device) = device::device("flex") else { return };
    if what == "memory" {
        let Some(row) = ROWS.iter().find(|row| row.name.ends_with("decoding, f32")) else { return };
        let (_, bytes) = timed(&device.device, row);
        if let Some(peak) = peak() {
            println!("gpt2-small decoding in f32, peak of memory over the size of the weights");
            println!("  {:.2} ({:.0} MB)", peak / bytes as f64, peak / 1e6);
        }
        return;
    }
    let of = |time: usize| {
        let row = row("attention", ATTENTION, 16, Work::Forward { batch: 1, time }, 6);
        // The first call forgets what was used before.
        let before = peak().and(peak());
        let (mut all, _) = timed(&device.device, &row);
        (median(&mut all), peak().zip(before).map(|(peak, before)| peak - before))
    };
    let ((short, least), (long, most)) = (of(1024), of(4096));
    println!("attention forward, 4,096 tokens over 1,024");
    println!("  time {:.1}", long / short);
    if let Some((least, most)) = least.zip(most) {
        println!("  memory {:.1}", most / least);
    }
}

/// Measures in a process of its own.
fn alone(what: &str) {
    let Ok(program) = std::env::current_exe() else { return };
    let _ = Command::new(program).arg("--alone").arg(what).status();
}

fn main() {
    // As the program does, whose ops are all called by its first thread.
    trafoc_kernels::join_threads();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [alone, what] = arguments.as_slice()
        && alone == "--alone"
    {
        measure_alone(what);
        return;
    }
    // `cargo bench` adds `--bench`; any other word is a part of the names of what is measured.
    let wanted = |name: &str| {
        let mut words = arguments.iter().filter(|word| !word.starts_with("--")).peekable();
        words.peek().is_none() || words.any(|word| name.contains(word.as_str()))
    };
    let devices: Vec<_> = ["flex", "tch"].into_iter().filter_map(|name| device::device(name).ok()).collect();
    for row in ROWS.iter().filter(|row| wanted(row.name)) {
        let mut times: Vec<(String, Vec<f64>)> =
            devices.iter().map(|d| (d.name.clone(), Vec::new())).collect();
        let mut of_peers: Vec<(&str, Vec<f64>)> =
            peers(row).into_iter().map(|peer| (peer, Vec::new())).collect();
        let (mut bounds, mut read) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            for (device, (name, all)) in devices.iter().zip(&mut times) {
                let (durations, bytes) = timed(&device.device, row);
                all.extend(durations);
                if name == "flex" {
                    read = bytes;
                    bounds.push(match row.work {
                        Work::Decode { .. } => reading_rate(),
                        Work::Forward { .. } | Work::Train { .. } => product_rate(&device.device),
                    });
                }
            }
            of_peers.iter_mut().for_each(|(peer, all)| all.extend(durations_in(peer, row)));
        }
        of_peers.retain(|(_, all)| !all.is_empty());
        let of_peers: Vec<(&str, f64)> =
            of_peers.into_iter().map(|(peer, mut all)| (peer, median(&mut all))).collect();
        println!("{}", row.name);
        let rate = |seconds: f64| match row.work {
            Work::Decode { .. } => format!(", {:.0} tokens/s", TOKENS as f64 / seconds),
            Work::Forward { .. } | Work::Train { .. } => String::new(),
        };
        for (who, all) in times.iter_mut().filter(|(_, all)| !all.is_empty()) {
            let seconds = median(all);
            let share =
                if who == "flex" { share(row, seconds, median(&mut bounds), read) } else { String::new() };
            println!("  {who:13} {:9.2} ms{}{share}", 1e3 * seconds, rate(seconds));
            for (peer, theirs) in &of_peers {
                println!("    {peer}'s time over it {:.2}", theirs / seconds);
            }
        }
        for (peer, seconds) in &of_peers {
            println!("  {peer:13} {:9.2} ms{}", 1e3 * seconds, rate(*seconds));
        }
    }
    for (what, name) in [("memory", "memory of decoding"), ("growth", "growth of attention")] {
        if wanted(name) {
            alone(what);
        }
    }
}

/// How much of what the hardware allows is reached.
fn share(row: &Row, seconds: f64, bound: f64, bytes: usize) -> String {
    let (done, unit) = match row.work {
        Work::Forward { batch, time } | Work::Train { batch, time } => {
            let lengths = Lengths { batch: batch as u64, time: time as u64, source: 0, past: 0, rows: 0 };
            let operations = cost(&compiled(row.spec)).forward(&lengths);
            let is_training = matches!(row.work, Work::Train { .. });
            let count = if is_training { operations.training } else { operations.full };
            (count as f64, "GFLOP/s")
        }
        Work::Decode { .. } => ((bytes * TOKENS) as f64, "GB/s"),
    };
    format!(
        ", {:.0} of {:.0} {unit}, {:.0} %",
        done / seconds / 1e9,
        bound / 1e9,
        100.0 * done / seconds / bound
    )
}
