//! Memory of training as it is bounded and as it is measured on flex: the growth of the resident set's peak.
//!
//! Every point runs in a process of its own, whose heap is fresh: this test program once more, told by a
//! variable what to do. Without it [`one_point`] has nothing to do.

use std::process::Command;

use trafoc::interp::{Captures, Plan, Weights, device::device};
use trafoc::learn::recipe::agree::Task;
use trafoc::learn::recipe::{Optimizer, Patterns};
use trafoc::learn::sample::sample;
use trafoc::learn::step::{self, Rules};
use trafoc::learn::update::Updater;
use trafoc::report::cost::cost;
use trafoc::report::costs::{Element, Scene};
use trafoc::report::memory::memory;

use crate::compiled::repository;
use crate::front::Front;

const POINT: &str = "TRAFOC_TEST_MEMORY";

/// Spec, batch and length.
const POINTS: [(&str, u64, u64); 5] = [
    ("gbt-mulm", 64, 31),
    ("gbt-mulm", 256, 31),
    ("gbt-mulm", 512, 16),
    ("d2l-nmt", 256, 10),
    ("d2l-nmt", 512, 40),
];

/// What the library's threads and tables take beside the model.
const BESIDE: u128 = 8 << 20;

/// Bytes of a line of the process's status.
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
    let front = Front::of_file(&repository(&format!("specs/{}.yaml", words[0])));
    let (spec, graph) = (front.compilation.spec.unwrap(), front.compilation.graph.unwrap());
    let scene = Scene { batch, tokens, element: Element::F32 };
    let predicted = memory(&graph, &cost(&graph), &scene);
    let plan = Plan::new(&graph, &Captures::none()).unwrap();
    let task = Task::of(&spec);
    let batch = sample(&spec, &plan, task, &scene.whole());
    let chosen = device("flex").unwrap().device;
    let before = status("VmRSS:");
    let mut weights = Weights::init(&graph, &chosen.autodiff(), 0).unwrap();
    let mut updater = Updater::new(&Optimizer::usual(), &Patterns::default(), &weights);
    let rules = Rules { clip: None, smoothing: 0.0, seed: 0 };
    for number in 1..=3 {
        let batches = std::slice::from_ref(&batch);
        (weights, _) = step::step(&plan, weights, &mut updater, batches, number, 1.0, &rules).unwrap();
    }
    let bound = predicted.to_train() + 2 * predicted.activations + BESIDE;
    println!("measured {} {bound}", status("VmHWM:") - before);
}

/// What refuses to train must not let through what would not fit: a step takes no more than the model, its
/// gradients and moments, and three times its activations, as `trafoc train` and `compare --measure` count.
#[test]
fn a_step_takes_no_more_than_is_refused_by() {
    for (name, batch, tokens) in POINTS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::one_point", "--nocapture"]);
        command.env(POINT, format!("{name} {batch} {tokens}"));
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = text.lines().find_map(|l| l.split_once("measured ")).unwrap_or_else(|| panic!("{said:?}"));
        let numbers: Vec<u128> = line.1.split(' ').map(|n| n.parse().unwrap()).collect();
        let [measured, bound] = numbers[..] else { panic!("{line:?}") };
        assert!(measured <= bound, "{name} {batch} x {tokens}: {measured} > {bound}");
    }
}
