//! The memory of training as predicted and as measured on flex: the largest heap during a step, and the
//! growth of the peak resident set.
//!
//! Every point runs in a process of its own with a fresh heap: this test program starts itself again, with
//! a variable that names the point. Without the variable, [`one_point`] does nothing.

use std::process::Command;

use burn::prelude::Tensor;
use trafoc::interp::{Cache, Captures, Plan, Weights, device::device};
use trafoc::ir::Lengths;
use trafoc::learn::recipe::agree::Task;
use trafoc::learn::recipe::{Optimizer, Recompute};
use trafoc::learn::sample::sample;
use trafoc::learn::step::{self, Rules};
use trafoc::learn::update::Updater;
use trafoc::parts::own::vocabulary::words;
use trafoc::report::cost::cost;
use trafoc::report::memory::memory;
use trafoc::report::scene::{Element, Scene};
use trafoc::report::tape::{Keeping, Pass, activation_memory_of, forward};
use trafoc_kernels::linear_of;

use crate::compiled::repository;
use crate::front::Front;

const POINT: &str = "TRAFOC_TEST_MEMORY";

/// Spec, batch and length. In different points, most of the memory is used by activations, attention
/// scores, logits or parameters.
const POINTS: [(&str, u64, u64); 27] = [
    ("specs/gbt-mulm", 16, 31),
    ("specs/gbt-mulm", 64, 31),
    ("specs/gbt-mulm", 256, 31),
    ("specs/d2l-nmt", 64, 10),
    ("specs/d2l-nmt", 256, 40),
    ("specs/d2l-nmt", 512, 16),
    ("specs/vit", 16, 16),
    ("specs/vit", 128, 16),
    ("specs/multilingual-nmt", 32, 16),
    ("specs/transformer", 4, 16),
    ("specs/deepseek-v3-tiny", 16, 64),
    ("tests/memory/llama", 8, 64),
    ("tests/memory/llama", 4, 256),
    ("tests/memory/gemma", 8, 64),
    ("tests/memory/gemma", 2, 256),
    ("tests/memory/mixtral", 8, 64),
    ("tests/memory/t5", 16, 32),
    ("tests/memory/t5", 8, 128),
    ("tests/memory/falcon", 8, 64),
    ("tests/memory/falcon", 4, 256),
    ("tests/memory/additive", 16, 32),
    ("tests/memory/additive", 4, 128),
    ("tests/memory/parts", 8, 64),
    ("tests/memory/pairs", 16, 64),
    ("tests/memory/pairs", 4, 256),
    ("tests/memory/losses", 8, 64),
    ("tests/memory/patches", 64, 64),
];

/// Spec, batch, length, what is computed again, and the number of batches of a step, for which a training is
/// forecast.
const STEPS: [(&str, u64, u64, Recompute, usize); 40] = [
    ("specs/gbt-mulm", 256, 31, Recompute::None, 1),
    ("tests/memory/llama", 4, 256, Recompute::None, 1),
    ("specs/gbt-mulm", 64, 31, Recompute::Blocks, 1),
    ("specs/gbt-mulm", 256, 31, Recompute::Blocks, 1),
    ("specs/gbt-mulm", 64, 31, Recompute::Blocks, 2),
    ("specs/gbt-mulm", 64, 31, Recompute::None, 2),
    ("specs/d2l-nmt", 256, 40, Recompute::Blocks, 1),
    ("specs/d2l-nmt", 64, 10, Recompute::None, 3),
    ("specs/vit", 128, 16, Recompute::Blocks, 1),
    ("specs/deepseek-v3-tiny", 16, 64, Recompute::Blocks, 1),
    ("tests/memory/llama", 4, 256, Recompute::Blocks, 1),
    ("tests/memory/llama", 4, 256, Recompute::None, 2),
    ("tests/memory/gemma", 2, 256, Recompute::Blocks, 1),
    ("tests/memory/mixtral", 8, 64, Recompute::Blocks, 2),
    ("tests/memory/t5", 8, 128, Recompute::Blocks, 1),
    ("tests/memory/falcon", 4, 256, Recompute::Blocks, 1),
    ("tests/memory/additive", 4, 128, Recompute::Blocks, 1),
    ("tests/memory/losses", 8, 64, Recompute::Blocks, 1),
    ("tests/memory/patches", 64, 64, Recompute::None, 1),
    ("tests/memory/shallow", 64, 64, Recompute::None, 1),
    ("tests/memory/shallow", 16, 256, Recompute::None, 2),
    ("tests/memory/biases", 4, 300, Recompute::None, 1),
    ("tests/memory/mamba", 4, 64, Recompute::None, 1),
    ("tests/memory/linear", 8, 128, Recompute::None, 1),
    ("tests/memory/mamba2", 8, 128, Recompute::None, 1),
    ("tests/memory/mamba2", 4, 200, Recompute::Blocks, 1),
    ("tests/memory/delta", 8, 128, Recompute::None, 1),
    ("tests/memory/delta", 4, 200, Recompute::Blocks, 1),
    ("tests/memory/replaced", 4, 64, Recompute::None, 1),
    ("tests/memory/narrow", 8, 64, Recompute::None, 1),
    ("tests/memory/heads", 4, 250, Recompute::None, 1),
    ("tests/memory/solved", 8, 64, Recompute::None, 1),
    ("tests/memory/solved", 8, 100, Recompute::Blocks, 1),
    ("tests/memory/shared", 8, 64, Recompute::None, 1),
    ("tests/memory/convolved", 4, 250, Recompute::None, 1),
    ("tests/memory/convolved", 8, 100, Recompute::Blocks, 1),
    ("tests/memory/difference", 8, 64, Recompute::None, 1),
    ("tests/memory/joined", 16, 200, Recompute::None, 1),
    ("tests/memory/joined", 16, 200, Recompute::Blocks, 1),
    ("tests/memory/difference", 8, 100, Recompute::Blocks, 1),
];

/// The number of runs, each of two steps, of which the second has the optimizer's state.
const RUNS: usize = 4;

/// The memory of the library's threads and tables, in addition to the model.
const LIBRARY: u64 = 8 << 20;

/// A value in the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn one_point() {
    let Ok(point) = std::env::var(POINT) else { return };
    let words: Vec<&str> = point.split(' ').collect();
    let (batch, tokens) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let front = Front::of_file(&repository(&format!("{}.yaml", words[0])));
    let (spec, graph) = (front.compilation.spec.unwrap(), front.compilation.graph.unwrap());
    let scene = Scene { batch, tokens, element: Element::F32 };
    let recompute = if words[3] == "blocks" { Recompute::Blocks } else { Recompute::None };
    let count: usize = words[4].parse().unwrap();
    let mut predicted = memory(&graph, &cost(&graph), &scene);
    if words[5] == "forecast" {
        let keeping = Keeping {
            is_frozen: None,
            recomputes: recompute == Recompute::Blocks,
            accumulates: count > 1,
            has_kernels: trafoc_kernels::packs_weights(),
        };
        predicted.activations = activation_memory_of(&graph, &scene.whole(), 4, keeping);
    }
    let plan = Plan::for_training(&graph).unwrap();
    let task = Task::of(&spec);
    let batches = vec![sample(&spec, &plan, task, &scene.whole()); count];
    let learning = device("flex").unwrap().device.autodiff();
    let train = |steps| {
        let mut weights = Weights::init(&graph, &learning, 0).unwrap();
        let mut updater = Updater::new(&Optimizer::usual(), |_| false, &weights);
        let rules = Rules { recompute, ..Rules::plain(0) };
        for number in 1..=steps {
            (weights, _) = step::step(&plan, weights, &mut updater, &batches, number, 1.0, &rules).unwrap();
        }
    };
    let (resident, code) = (status("VmRSS:"), status("RssFile:"));
    // When a thread runs kernels for the first time, they allocate some 3 MiB and keep them. This does not
    // belong to a step; the smallest of several runs does not contain it.
    train(2);
    // The process of a user trains once: what the allocator keeps of further runs is not counted. Nor is the code that was
    // read from the program's file, which is not memory of the model.
    let resident = (status("VmHWM:") - resident) - (status("RssFile:") - code);
    let runs = (0..RUNS).map(|_| {
        trafoc_kernels::release_buffers();
        let held = crate::HEAP.current_usage();
        crate::HEAP.reset_peak_usage();
        train(2);
        crate::HEAP.peak_usage() - held
    });
    let heap = runs.min().unwrap();
    // What is kept for later results is all that is left of a training. It does not grow with tensors that burn's own ops
    // make and kernels read.
    let plain = device("flex").unwrap().device;
    let weight = Tensor::<2>::ones([1024, 1], &plain);
    for _ in 0..200 {
        linear_of(Tensor::<2>::ones([256, 1024], &plain), weight.clone(), None);
    }
    drop(weight);
    let after = crate::HEAP.current_usage();
    trafoc_kernels::release_buffers();
    let kept = after - crate::HEAP.current_usage();
    println!("measured {heap} {resident} {} {kept}", predicted.to_train());
}

/// A count is at most 5 % below the largest heap, a forecast never, and both are at most 20 % above. The resident set also
/// contains what the allocator keeps.
#[test]
fn memory_of_training_is_what_is_predicted() {
    let mut wrong = Vec::new();
    let plain = POINTS.map(|(name, batch, tokens)| (name, batch, tokens, Recompute::None, 1, "count"));
    let steps = STEPS
        .map(|(name, batch, tokens, recompute, count)| (name, batch, tokens, recompute, count, "forecast"));
    for (name, batch, tokens, recompute, count, what) in plain.into_iter().chain(steps) {
        let manner = if recompute == Recompute::Blocks { "blocks" } else { "none" };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::one_point", "--nocapture"]);
        command.env(POINT, format!("{name} {batch} {tokens} {manner} {count} {what}"));
        // Every thread has memory of its own, so their number is fixed.
        command.env("RAYON_NUM_THREADS", "2");
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = text.lines().find_map(|l| l.split_once("measured ")).unwrap_or_else(|| panic!("{said:?}"));
        let numbers: Vec<u64> = line.1.split(' ').map(|n| n.parse().unwrap()).collect();
        let [heap, resident, predicted, kept] = numbers[..] else { panic!("{line:?}") };
        // The forecast, unlike the count of a report, is never too low.
        let least = if what == "forecast" { 100 } else { 95 };
        let is_near = predicted * 100 >= heap * least && predicted * 100 <= heap * 120;
        let row = format!(
            "{name} {count} of {batch} x {tokens}, recompute {manner}: predicted {predicted}, {:.3} of the heap's {heap}; resident {resident}, kept {kept}",
            predicted as f64 / heap as f64
        );
        println!("{row}");
        let keeps = kept > 0 && kept <= heap;
        if !is_near || !keeps || resident * 100 > predicted * 140 + LIBRARY * 100 {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Spec, batch, length and past of forward passes; a past is decoded with a cache.
const PASSES: [(&str, u64, u64, u64); 47] = [
    ("specs/gbt-mulm", 64, 31, 0),
    ("specs/gbt-mulm", 512, 31, 0),
    ("specs/d2l-nmt", 256, 10, 0),
    ("specs/vit", 64, 16, 0),
    ("tests/memory/patches", 64, 64, 0),
    ("specs/multilingual-nmt", 64, 16, 0),
    ("specs/transformer", 4, 64, 0),
    ("specs/deepseek-v3-tiny", 16, 64, 0),
    ("tests/memory/llama", 1, 256, 0),
    ("tests/memory/llama", 8, 64, 0),
    ("tests/memory/llama", 32, 256, 0),
    ("tests/memory/gemma", 8, 64, 0),
    ("tests/memory/gemma", 16, 256, 0),
    ("tests/memory/mixtral", 8, 64, 0),
    ("tests/memory/mixtral", 32, 128, 0),
    ("tests/memory/t5", 16, 32, 0),
    ("tests/memory/t5", 16, 128, 0),
    ("tests/memory/falcon", 8, 64, 0),
    ("tests/memory/falcon", 16, 256, 0),
    ("tests/memory/additive", 8, 64, 0),
    ("tests/memory/additive", 4, 128, 0),
    ("tests/memory/additive", 64, 1, 100),
    ("tests/memory/llama", 16, 1, 100),
    ("tests/memory/gemma", 64, 1, 100),
    ("tests/memory/falcon", 32, 1, 200),
    ("specs/gbt-mulm", 512, 1, 20),
    ("tests/memory/t5", 1, 1, 120),
    ("specs/transformer", 1, 1, 120),
    ("tests/memory/mamba", 8, 128, 0),
    ("tests/memory/mamba", 8, 200, 0),
    ("tests/memory/linear", 16, 256, 0),
    ("tests/memory/linear", 16, 200, 0),
    ("tests/memory/mamba2", 16, 256, 0),
    ("tests/memory/mamba2", 16, 200, 0),
    ("tests/memory/delta", 16, 256, 0),
    ("tests/memory/delta", 16, 200, 0),
    ("tests/memory/replaced", 16, 100, 0),
    ("tests/memory/mamba2", 64, 1, 20),
    ("tests/memory/pairs", 8, 64, 0),
    ("tests/memory/pairs", 16, 256, 0),
    ("tests/memory/narrow", 16, 250, 0),
    ("tests/memory/narrow", 32, 1, 100),
    ("tests/memory/heads", 8, 64, 0),
    ("tests/memory/solved", 16, 250, 0),
    ("tests/memory/shared", 16, 250, 0),
    ("tests/memory/convolved", 16, 250, 0),
    ("tests/memory/difference", 16, 250, 0),
];

/// Spec, batch and length of prompts, of which only the last position has logits.
const PROMPTS: [(&str, u64, u64); 5] = [
    ("tests/memory/llama", 1, 256),
    ("tests/memory/llama", 16, 128),
    ("tests/memory/gemma", 8, 64),
    ("tests/memory/falcon", 16, 256),
    ("specs/gbt-mulm", 512, 31),
];

const PASS: &str = "TRAFOC_TEST_PASS";

#[test]
fn one_pass() {
    let Ok(point) = std::env::var(PASS) else { return };
    let words: Vec<&str> = point.split(' ').collect();
    let [batch, tokens, past] = [1, 2, 3].map(|i: usize| words[i].parse::<u64>().unwrap());
    let only_last = words[4] == "last";
    let front = Front::of_file(&repository(&format!("{}.yaml", words[0])));
    let (spec, graph) = (front.compilation.spec.unwrap(), front.compilation.graph.unwrap());
    let scene = |batch, tokens| Scene { batch, tokens, element: Element::F32 }.whole();
    let flex = device("flex").unwrap().device;
    let task = Task::of(&spec);
    let plan = Plan::new(&graph, &Captures::none()).unwrap();
    let inputs =
        |plan: &Plan, lengths: &Lengths| step::inputs(&sample(&spec, plan, task, lengths), &flex).unwrap();
    let decode = |plan: &Plan, weights: &Weights| {
        let mut cache = Cache::new(plan);
        if past > 0 {
            plan.run_cached(weights, &inputs(plan, &scene(batch, past)), &mut cache).unwrap();
        }
        cache
    };
    // Kernels take room of their own, some 3 MiB, when a thread first runs one, and keep it: a plan of its
    // own runs first.
    {
        let weights = Weights::init(&graph, &flex, 0).unwrap();
        let plan = Plan::new(&graph, &Captures::none()).unwrap();
        // Several times, so that every thread has had work on a busy machine too.
        for _ in 0..2 * RUNS {
            plan.run(&weights, &inputs(&plan, &scene(batch, tokens.max(past))), false).unwrap();
            decode(&plan, &weights);
        }
    }
    trafoc_kernels::release_buffers();
    let held = crate::HEAP.current_usage();
    let weights = Weights::init(&graph, &flex, 0).unwrap();
    // Decoding goes on with the source of the first pass.
    let lengths = Lengths { past, source: scene(batch, tokens.max(past)).source, ..scene(batch, tokens) };
    // The names of inputs do not depend on their lengths.
    let given: Vec<String> = inputs(&plan, &scene(1, 4)).names().map(str::to_owned).collect();
    let pass = Pass {
        lengths: &lengths,
        is_given: &|name| given.iter().any(|n| n == name),
        is_cached: past > 0 || only_last,
        only_last,
        shows_attention: false,
        threads: 2,
        has_kernels: trafoc_kernels::packs_weights(),
    };
    let weights_bytes = cost(&graph).parameters.bytes(4);
    let forecast = forward(&graph, &pass, 4);
    // The smallest of several passes: a thread may take memory at any time, and keeps it. So every pass is
    // measured from the memory that was used before it.
    let passes = (0..RUNS).map(|_| {
        let mut cache = decode(&plan, &weights);
        trafoc_kernels::release_buffers();
        let before = crate::HEAP.current_usage();
        crate::HEAP.reset_peak_usage();
        let given = inputs(&plan, &scene(batch, tokens));
        let outputs = match past {
            0 if only_last => plan.run_last(&weights, &given, Some(&mut cache)),
            0 => plan.run(&weights, &given, false),
            _ => plan.run_cached(&weights, &given, &mut cache),
        };
        drop(outputs.unwrap());
        (crate::HEAP.peak_usage() - before, before - held)
    });
    let passes: Vec<(usize, usize)> = passes.collect();
    // What was there before: weights, and keys and values of the past.
    let known = passes.iter().map(|(_, before)| *before).min().unwrap();
    let heap = known + passes.iter().map(|(grown, _)| *grown).min().unwrap();
    let known = known as u128;
    assert!(known >= weights_bytes, "{known} bytes of weights, which have {weights_bytes}");
    println!("measured {heap} {}", known + forecast);
}

/// What is predicted is never below what the heap holds, and at most a fifth above.
#[test]
fn memory_of_a_forward_pass_is_what_is_predicted() {
    let mut wrong = Vec::new();
    let passes = PASSES.map(|(name, batch, tokens, past)| (name, batch, tokens, past, "all"));
    let prompts = PROMPTS.map(|(name, batch, tokens)| (name, batch, tokens, 0, "last"));
    for (name, batch, tokens, past, wanted) in passes.into_iter().chain(prompts) {
        wrong.extend(forecast_of_pass(&format!("{name} {batch} {tokens} {past} {wanted}")).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs one pass in a process of its own. The error is a forecast below what the heap held, or more than a fifth above.
fn forecast_of_pass(point: &str) -> Result<(), String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "memory::one_pass", "--nocapture"]);
    command.env(PASS, point).env("RAYON_NUM_THREADS", "2");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|l| l.split_once("measured ")).unwrap_or_else(|| panic!("{output:?}"));
    let numbers: Vec<u64> = line.1.split(' ').map(|n| n.parse().unwrap()).collect();
    let [heap, predicted] = numbers[..] else { panic!("{line:?}") };
    let ratio = predicted as f64 / heap as f64;
    let row = format!("{point}: predicted {predicted}, {ratio:.3} of the heap's {heap}");
    println!("{row}");
    if (1.0..=1.2).contains(&ratio) { Ok(()) } else { Err(row) }
}

/// The example of every word of a part's equation, in a model that is nothing but this part.
#[test]
fn memory_of_every_call_is_what_is_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for word in words() {
        let (example, position) =
            (word.example(), if word.name == "rotate" { "  position: rotary\n" } else { "" });
        let text = format!(
            "name: one-call\nvocab: 8\ncontext: 128\nd_model: 192\nparts:\n  example: |\n    {example}\n\
             decoder:\n  layers: 2\n{position}  attention: example\n  block: x = x + attention(x)\n  \
             final_norm: none\nhead: lm\n"
        );
        let file = folder.path().join(format!("{}.yaml", word.name));
        std::fs::write(&file, text).unwrap();
        let name = file.with_extension("");
        wrong.extend(forecast_of_pass(&format!("{} 64 100 0 all", name.display())).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is made of the results counts as well: pictures of attention take several times the weights' memory.
/// At every limit the command ends well or refuses, and both happen.
#[cfg(target_os = "linux")]
#[test]
fn pictures_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs.json");
    let tokens: Vec<String> = (0..1_200).map(|i| (i % 32).to_string()).collect();
    std::fs::write(&inputs, format!("{{\"tokens\": [[{}]]}}", tokens.join(","))).unwrap();
    let spec = folder.path().join("long.yaml");
    let text = "name: long\nvocab: 32\ncontext: 2000\nd_model: 8\n\
                decoder: {layers: 4, attention: {heads: 4}, ffn: {hidden: 8}}\nhead: lm\n";
    std::fs::write(&spec, text).unwrap();
    for what in ["attention", "steps"] {
        let mut codes = Vec::new();
        for limit in [260_000, 330_000, 2_000_000] {
            let mut command = crate::compiled::alone("sh");
            let script = format!("ulimit -v {limit}; exec \"$0\" \"$@\"");
            command.args(["-c", &script, crate::compiled::PROGRAM, "inspect", what]);
            let output = command.arg(&spec).arg("--inputs").arg(&inputs).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 3)), "{what} within {limit} KiB: {code:?} {text}");
            codes.extend(code);
        }
        assert!(codes.contains(&0) && codes.contains(&3), "{what}: {codes:?}");
    }
}

/// A process with less memory than a run takes is told that a run does not fit, and is not ended by the
/// system.
#[cfg(target_os = "linux")]
#[test]
fn what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs.json");
    let tokens: Vec<String> = (0..12_000).map(|i| (i % 100).to_string()).collect();
    std::fs::write(&inputs, format!("{{\"tokens\": [[{}]]}}", tokens.join(","))).unwrap();
    let spec = repository("tests/memory/falcon.yaml");
    let run = |settings: &[&str]| {
        let mut command = crate::compiled::alone("sh");
        command.args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\"", crate::compiled::PROGRAM, "run"]);
        command.arg(&spec).arg("--inputs").arg(&inputs);
        command.args(settings.iter().flat_map(|s| ["--set", s]));
        command.output().unwrap()
    };
    // Biases of 12,000 by 12,000 positions and 8 heads are 4.6 GB; the weights of 4 layers of that width 2.7
    // GB.
    for settings in [&["context=12000"][..], &["context=12000", "d_model=4096", "decoder.layers=4"][..]] {
        let output = run(settings);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains("of memory") && text.contains("is free"), "{text}");
    }
}

/// A run of minutes is not begun for inputs that it does not take, nor a model unrolled that has too many layers: the
/// memory here has room for neither.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_run_is_refused_before_it_is_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("deep.yaml");
    let text = "name: deep\nvocab: 300\ncontext: 8\nd_model: 16\n\
                decoder: {layers: 100000, share: 1, attention: {heads: 2}}\nhead: lm\n";
    std::fs::write(&spec, text).unwrap();
    let run = |inputs: &str, settings: &[&str]| {
        let mut command = crate::compiled::alone("sh");
        command.args(["-c", "ulimit -v 700000; exec \"$0\" \"$@\"", crate::compiled::PROGRAM, "run"]);
        command.arg(&spec).arg("--inputs").arg(inputs);
        command.args(settings.iter().flat_map(|s| ["--set", s]));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run("{\"tokens\": [[1]]}", &[]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("`decoder.blocks` applies 100.0 K blocks"), "{text}");
    // A table of 1.2 GB.
    let (code, text) = run("{\"tokns\": [[1]]}", &["decoder.layers=1", "embed.dim=1000000"]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("no input `tokns`; did you mean `tokens`?"), "{text}");
}

/// Weights in fewer bits are packed one by one, so they fit where the model in single precision would not.
#[cfg(target_os = "linux")]
#[test]
fn weights_in_fewer_bits_fit_where_single_precision_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs.json");
    std::fs::write(&inputs, r#"{"tokens": [[1, 2, 3]]}"#).unwrap();
    let spec = folder.path().join("wide.yaml");
    // 101 million parameters: 385 MiB in single precision, of which the largest matrix has 16.
    let text = "name: wide\nvocab: 100\ncontext: 8\nd_model: 1024\n\
                decoder: {layers: 8, attention: {heads: 8}, ffn: {hidden: 4096}}\nhead: lm\n";
    std::fs::write(&spec, text).unwrap();
    let run = |more: &[&str]| {
        let mut command = crate::compiled::alone("sh");
        command.args(["-c", "ulimit -v 600000; exec \"$0\" \"$@\"", crate::compiled::PROGRAM, "run"]);
        let output = command.arg(&spec).arg("--inputs").arg(&inputs).args(more).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(&[]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the weights need 385.2 MiB"), "{text}");
    let (code, text) = run(&["--weights-dtype", "int4"]);
    assert_eq!(code, Some(0), "{text}");
}

/// What a command reads may be much larger than its files: numbers of JSON, and the pixels of an image.
#[cfg(target_os = "linux")]
#[test]
fn inputs_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let spec = "name: seen\nd_model: 8\nembed: {patches: {image: 64, size: 32}, position: learned}\n\
                encoder: {layers: 1, attention: {heads: 2}, ffn: {hidden: 8}}\nhead: {classify: {classes: 2}}\n";
    std::fs::write(path("seen.yaml"), spec).unwrap();
    let row = format!("[{}]", vec!["0.5"; 64].join(","));
    let plane = format!("[{}]", vec![row.as_str(); 64].join(","));
    let image = format!("[{}]", [plane.as_str(); 3].join(","));
    std::fs::write(path("inputs.json"), format!("{{\"image\":[{}]}}", vec![image.as_str(); 600].join(",")))
        .unwrap();
    let within = |limit: u32, arguments: &str| {
        let script = format!("ulimit -v {limit}; exec \"$0\" {arguments}");
        let mut command = crate::compiled::alone("sh");
        command.args(["-c", &script, crate::compiled::PROGRAM]).current_dir(folder.path());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for limit in [250_000, 400_000, 600_000] {
        let (code, text) = within(limit, "run seen.yaml --inputs inputs.json");
        assert_eq!(code, Some(3), "within {limit} KiB: {text}");
        assert!(text.contains("need more memory than the"), "{text}");
    }
    // 64 million pixels, all of them black.
    std::fs::create_dir_all(path("images/a")).unwrap();
    let large = image::DynamicImage::new_rgb8(8_000, 8_000);
    large.save_with_format(path("images/a/large.png"), image::ImageFormat::Png).unwrap();
    let recipe = "recipe: 1\ndata: {format: {images: {resize: true}}, train: images}\nsteps: 1\n";
    std::fs::write(path("recipe.yaml"), recipe).unwrap();
    let (code, text) = within(250_000, "inspect data seen.yaml --recipe recipe.yaml");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("its pixels take 183 MiB, for which too little memory is free"), "{text}");
}
