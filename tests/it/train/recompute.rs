//! Steps that compute blocks again are steps that do not, bit for bit.

use std::collections::BTreeMap;
use std::process::Command;

use trafoc::interp::weights::Adapter;
use trafoc::interp::{Plan, Weights};
use trafoc::ir::{Lengths, Verified};
use trafoc::learn::data::Batch;
use trafoc::learn::recipe::agree::Task;
use trafoc::learn::recipe::{Optimizer, Recompute};
use trafoc::learn::sample::sample;
use trafoc::learn::step::{Rules, StepResult, step};
use trafoc::learn::update::Updater;
use trafoc::spec::ModelSpec;

use crate::backend::device;
use crate::compiled::repository;
use crate::front::Front;

const ALONE: &str = "TRAFOC_TEST_ALONE";

/// The numbers of all parameters, as bits.
type Bits = BTreeMap<String, Vec<u32>>;

/// In the place of frozen parameters: all are frozen, and the projections of queries have low-rank changes.
const ADAPTED: &str = "adapted";

fn adapter(path: &String) -> Adapter {
    let added = ["a", "b"].map(|name| format!("{path}.lora.{name}"));
    Adapter { path: path.clone(), added, rank: 2, scale: 0.5, dropout: 0.25 }
}

/// Two steps of three batches each: what they tell, and the parameters after them.
fn trained(
    graph: &Verified,
    batches: &[Batch],
    recompute: Recompute,
    frozen: &str,
) -> (Vec<StepResult>, Bits) {
    let plan = Plan::for_training(graph).unwrap();
    let mut weights = Weights::init(graph, &device().autodiff(), 3).unwrap();
    if frozen == ADAPTED {
        let adapters: Vec<Adapter> =
            weights.layout().keys().filter(|path| path.ends_with("query.weight")).map(adapter).collect();
        assert!(adapters.len() > 2);
        weights = weights.adapted(&adapters, 5).unwrap();
    }
    let is_frozen = |path: &str| match frozen {
        "" => false,
        ADAPTED => !path.contains("lora"),
        part => path.contains(part),
    };
    let mut updater = Updater::new(&Optimizer::usual(), is_frozen, &weights);
    weights = updater.freeze(weights);
    // A bound that no norm reaches, so that norms are told.
    let rules = Rules { recompute, clip: Some(1e9), ..Rules::plain(7) };
    let mut told = Vec::new();
    for number in 1..=2 {
        let (moved, made) = step(&plan, weights, &mut updater, batches, number, 1.0, &rules)
            .unwrap_or_else(|e| panic!("{e}"));
        weights = moved;
        told.push(made);
    }
    let values = |path: &String| weights.values(path).unwrap().into_iter().map(f32::to_bits).collect();
    let bits = weights.layout().keys().map(|path| (path.clone(), values(path))).collect();
    (told, bits)
}

fn batches(spec: &ModelSpec, graph: &Verified) -> Vec<Batch> {
    let plan = Plan::for_training(graph).unwrap();
    let task = Task::of(spec);
    let longest = graph.context.min(6);
    let lengths = |batch, time| Lengths { batch, time, source: time, past: 0, rows: 0 };
    [(2, longest), (4, longest.min(4)), (2, longest)]
        .map(|(batch, time)| sample(spec, &plan, task, &lengths(batch, time)))
        .to_vec()
}

/// Whether this is the process in which only the test of this name runs; if not, one is started. On flex all tests
/// of a process share the random numbers of dropout.
fn is_alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("train::recompute::{name}"), "--nocapture"]).env(ALONE, "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

/// The names of parameters with other bits, or of what is told otherwise.
fn differences(spec: &ModelSpec, graph: &Verified, frozen: &str) -> Vec<String> {
    let batches = batches(spec, graph);
    let (told, whole) = trained(graph, &batches, Recompute::None, frozen);
    let (again, blocks) = trained(graph, &batches, Recompute::Blocks, frozen);
    let mut wrong: Vec<String> =
        whole.iter().filter(|(path, bits)| blocks[*path] != **bits).map(|(path, _)| path.clone()).collect();
    if told != again {
        wrong.push(format!("{told:?} and {again:?}"));
    }
    wrong
}

/// A file as a spec, with this number of layers in each of its stacks if there is one. `None` if that is no
/// spec, or one that cannot be trained.
fn compiled(folder: &str, name: &str, layers: Option<u64>) -> Option<(ModelSpec, Verified)> {
    let text = std::fs::read_to_string(repository(folder).join(name)).unwrap();
    let mark = if name.ends_with(".trafo") { "//" } else { "#" };
    let has = |stack: &str| text.lines().any(|line| line.trim_start().starts_with(stack));
    let stacks = ["encoder", "decoder"].into_iter().filter(|stack| layers.is_some() && has(stack));
    let settings: String =
        stacks.map(|stack| format!("{mark} set: {stack}.layers={}\n", layers.unwrap_or(1))).collect();
    let front = Front::of_text(name, &(settings + &text), folder);
    let (spec, graph) = (front.compilation.spec?, front.compilation.graph?);
    Task::of(&spec)?;
    // A billion layers have no plan.
    Plan::for_training(&graph).ok()?;
    Some((spec, graph))
}

/// Every small spec that can be trained, as it is and with more layers: parts, dropout, experts, losses, shared
/// layers, tied weights, memories.
#[test]
fn blocks_are_computed_again_with_the_same_bits() {
    if !is_alone("blocks_are_computed_again_with_the_same_bits") {
        return;
    }
    let mut wrong = Vec::new();
    let mut compared = 0;
    for folder in ["tests/good", "tests/memory"] {
        let files = std::fs::read_dir(repository(folder)).unwrap().map(|file| file.unwrap());
        let mut names: Vec<String> = files
            .map(|file| file.file_name().into_string().unwrap())
            .filter(|name| name.contains('.'))
            .collect();
        names.sort();
        let each = names.iter().flat_map(|name| [None, Some(3)].map(|layers| (name, layers)));
        for (name, layers) in each {
            let Some((spec, graph)) = compiled(folder, name, layers) else { continue };
            compared += 1;
            let found = differences(&spec, &graph, "");
            if !found.is_empty() {
                wrong.push(format!("{name} {layers:?}: {}", found.join(", ")));
            }
        }
    }
    assert!(compared > 200, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n"));
}

/// Below blocks that are trained may be some that are not, and above them, too.
#[test]
fn frozen_parameters_stay_frozen() {
    if !is_alone("frozen_parameters_stay_frozen") {
        return;
    }
    let (spec, graph) = compiled("tests/memory", "t5.yaml", None).unwrap();
    for frozen in ["embed", "encoder", "decoder", "blocks.0", "blocks.2", "attention", ADAPTED] {
        let found = differences(&spec, &graph, frozen);
        assert!(found.is_empty(), "{frozen}: {}", found.join(", "));
    }
}

/// Masks of dropout are drawn in every step and for every batch anew.
#[test]
fn dropout_differs_from_step_to_step() {
    if !is_alone("dropout_differs_from_step_to_step") {
        return;
    }
    let (spec, graph) = compiled("tests/memory", "t5.yaml", None).unwrap();
    let plan = Plan::for_training(&graph).unwrap();
    let one = batches(&spec, &graph).remove(0);
    for recompute in [Recompute::None, Recompute::Blocks] {
        let rules = Rules { recompute, ..Rules::plain(7) };
        let loss = |number: u64, batches: &[Batch]| {
            let weights = Weights::init(&graph, &device().autodiff(), 3).unwrap();
            let mut updater = Updater::new(&Optimizer::usual(), |_| false, &weights);
            step(&plan, weights, &mut updater, batches, number, 1.0, &rules).unwrap().1.loss
        };
        let single = std::slice::from_ref(&one);
        assert_eq!(loss(1, single), loss(1, single));
        assert_ne!(loss(1, single), loss(2, single));
        // The second of two equal batches has other masks than the first.
        assert_ne!(loss(1, single), loss(1, &[one.clone(), one.clone()]));
    }
}
