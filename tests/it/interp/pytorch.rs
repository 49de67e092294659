//! Writes what `tests/pytorch/compare.py` compares with emitted PyTorch: for each spec with which targets are
//! tested, weights, inputs, and what the interpreter computes of them, at once, step by step, and backwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value as Json, json};
use trafoc::interp::{Captures, Ranked};
use trafoc::ir::{Init, MemberKind, Module};

use super::numbers::gradients;
use super::*;
use crate::compiled::repository;
use crate::listed::{self, Listed};

/// The number of sequences, of their tokens, and of the source's tokens.
const SIZES: Lengths = Lengths { batch: 3, time: 7, source: 6, past: 0, rows: 0 };
/// The positions that are decoded together.
const STEPS: [(usize, usize); 3] = [(0, 3), (3, 4), (4, 7)];

/// Which optional inputs are given, and what their masks hide.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    /// None of them.
    Required,
    /// All; sequences end at different places.
    Unequal,
    /// All; the first sequence is hidden as a whole, the others begin late and have gaps.
    Hidden,
}

/// Numbers with their shape.
#[derive(Clone)]
enum Array {
    Ints(Vec<usize>, Vec<i64>),
    Floats(Vec<usize>, Vec<f32>),
}

impl Array {
    fn value(&self, device: &Device) -> Value {
        match self {
            Array::Ints(shape, numbers) => {
                let data = TensorData::new(numbers.clone(), shape.clone());
                Value::Int(Ranked::from_data(data, device).unwrap())
            }
            Array::Floats(shape, numbers) => {
                let data = TensorData::new(numbers.clone(), shape.clone());
                Value::Float(Ranked::from_data(data, device).unwrap())
            }
        }
    }

    /// The columns `from..to`.
    fn columns(&self, from: usize, to: usize) -> Self {
        let Array::Ints(shape, numbers) = self else { panic!("numbers of an image have no time") };
        let rows = numbers.chunks(shape[1]).flat_map(|row| row[from..to].to_vec());
        Array::Ints(vec![shape[0], to - from], rows.collect())
    }

    fn of(value: &Value) -> Self {
        Array::Floats(value.dims().unwrap(), floats(value))
    }
}

/// Everything that goes into one file, by name.
#[derive(Default)]
struct Written(BTreeMap<String, Array>);

impl Written {
    fn add(&mut self, name: String, array: Array) {
        assert!(self.0.insert(name, array).is_none());
    }

    fn save(&self, path: &Path) {
        let bytes: Vec<(&str, Dtype, &Vec<usize>, Vec<u8>)> = self
            .0
            .iter()
            .map(|(name, array)| match array {
                Array::Ints(shape, numbers) => {
                    (name.as_str(), Dtype::I64, shape, numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
                }
                Array::Floats(shape, numbers) => {
                    (name.as_str(), Dtype::F32, shape, numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
                }
            })
            .collect();
        let views = bytes.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, (*shape).clone(), bytes).unwrap())
        });
        safetensors::serialize_to_file(views, None, path).unwrap();
    }
}

/// Weights that are neither zero nor one anywhere, so that biases and norms matter too.
fn weights(graph: &Verified, device: &Device) -> Weights {
    Weights::build(graph, device, |path, slot| {
        let seed = path.bytes().fold(17u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut next = noise(seed);
        // Scores that are far apart would leave softmax no gradient.
        Ok((0..slot.shape.iter().product()).map(|_| (0.8 * next() - 0.4) as f32).collect())
    })
    .unwrap()
}

fn inputs_of(plan: &Plan, given: Given) -> Vec<(&Input, Array)> {
    let wanted = plan.inputs().iter().filter(|input| !input.ty.optional || given != Given::Required);
    let of = |(i, input): (usize, &'_ Input)| {
        let shape: Vec<usize> = input.ty.shape.iter().map(|d| d.eval(&SIZES) as usize).collect();
        let count: usize = shape.iter().product();
        let mut next = noise(17 + i as u64);
        if input.ty.dtype == DType::Float {
            return Array::Floats(shape, (0..count).map(|_| 2.0 * next() as f32 - 1.0).collect());
        }
        if input.keep {
            let length = shape[1];
            let keeps = |b: usize, t: usize| match (given, b) {
                (Given::Required, _) => true,
                (Given::Unequal, 0) => true,
                (Given::Unequal, 1) => t < length - 3,
                (Given::Unequal, _) => t < 1,
                (Given::Hidden, 0) => false,
                (Given::Hidden, 1) => t >= 2,
                (Given::Hidden, _) => t % 3 != 1,
            };
            let all = (0..count).map(|at| i64::from(keeps(at / length, at % length)));
            return Array::Ints(shape.clone(), all.collect());
        }
        let rows = input.rows.as_ref().map_or(2, |(rows, _)| *rows) as f64;
        Array::Ints(shape, (0..count).map(|_| (next() * rows) as i64).collect())
    };
    wanted.enumerate().map(|(i, input)| (input, of((i, input)))).collect()
}

/// The inputs of the positions `from..to`; those of the encoder belong to the first step.
fn step_of<'p>(all: &[(&'p Input, Array)], (from, to): (usize, usize)) -> Vec<(&'p Input, Array)> {
    let part = |(input, array): &(&'p Input, Array)| {
        let axis = input.ty.shape.get(1).map(|dim| dim.to_string());
        let array = match axis.as_deref() {
            Some("T") => array.columns(from, to),
            Some("P+T") => array.columns(0, to),
            _ => array.clone(),
        };
        (*input, array)
    };
    all.iter().filter(|(input, _)| from == 0 || !input.memory).map(part).collect()
}

fn together(all: &[(&Input, Array)], device: &Device) -> Inputs {
    all.iter().fold(Inputs::new(), |inputs, (input, array)| inputs.with(&input.name, array.value(device)))
}

/// How many times each probability is used in one forward pass; `None` if the tokens decide that.
fn dropouts(graph: &Verified, module: &Module, times: u64, found: &mut BTreeMap<String, Option<u64>>) {
    let mut use_of = |p: f64, times: Option<u64>| {
        if p > 0.0 {
            let count = found.entry(p.to_string()).or_insert(Some(0));
            *count = count.zip(times).map(|(a, b)| a + b);
        }
    };
    for node in &module.nodes {
        match &node.op {
            Op::Dropout { p } => use_of(*p, (times > 0).then_some(times)),
            Op::Attention(attention) => use_of(attention.dropout, (times > 0).then_some(times)),
            _ => {}
        }
    }
    for node in &module.nodes {
        let (member, each) = match &node.op {
            Op::Call { member } => (member, times),
            Op::Scan { member, each, .. } => (member, times * each),
            // Zero, since the tokens decide how often an expert runs.
            Op::Experts { member, .. } => (member, 0),
            _ => continue,
        };
        match &module.member(*member).kind {
            MemberKind::Module(id) => dropouts(graph, graph.module(*id), each, found),
            MemberKind::Stack(runs) => {
                for run in runs {
                    for (i, id) in run.cycle.iter().enumerate().filter(|(i, _)| run.blocks(*i) > 0) {
                        dropouts(graph, graph.module(*id), each * run.blocks(i), found);
                    }
                }
            }
            MemberKind::Layer(_) => {}
        }
    }
}

fn rule(init: &Init) -> Json {
    match init {
        Init::Zeros => json!({"rule": "constant", "value": 0.0}),
        Init::Ones => json!({"rule": "constant", "value": 1.0}),
        Init::Constant(value) => json!({"rule": "constant", "value": value}),
        Init::Normal { std } => json!({"rule": "normal", "std": std}),
        Init::TruncatedNormal { std, cut } => json!({"rule": "truncated_normal", "std": std, "cut": cut}),
        Init::Uniform { bound } => json!({"rule": "uniform", "bound": bound}),
        Init::XavierUniform { gain } => json!({"rule": "xavier_uniform", "gain": gain}),
        Init::XavierNormal { gain } => json!({"rule": "xavier_normal", "gain": gain}),
        Init::KaimingUniform { gain } => json!({"rule": "kaiming_uniform", "gain": gain}),
        Init::KaimingNormal { gain } => json!({"rule": "kaiming_normal", "gain": gain}),
        Init::Orthogonal { gain } => json!({"rule": "orthogonal", "gain": gain}),
        Init::Logarithms { gain } => json!({"rule": "logarithms", "gain": gain}),
    }
}

fn write(listed: &Listed, out: &Path) {
    let (graph, _) = listed.compiled(&repository("."));
    let folder = out.join(listed.name());
    std::fs::create_dir_all(&folder).unwrap();
    let mut case = json!({
        "spec": repository(&listed.spec),
        "settings": listed.settings,
        "decodes": graph.decodes,
        "runs": 0,
    });
    if !listed::is_large(&graph) {
        let plain = weights(&graph, &device());
        plain.save(&folder.join("weights.safetensors"), &Default::default()).unwrap();
        let start = |(path, slot): (&String, &trafoc::interp::weights::Slot)| {
            let mut rule = rule(&slot.init);
            rule["padding"] = json!(slot.padding);
            rule["trained"] = json!(slot.trained);
            (path.clone(), rule)
        };
        case["init"] = plain.layout().iter().map(start).collect();
        let mut dropped = BTreeMap::new();
        dropouts(&graph, graph.root(), 1, &mut dropped);
        case["dropout"] = json!(dropped);
        let mut written = Written::default();
        let runs = runs(&graph, plain, &mut written);
        case["runs"] = json!(runs);
        written.save(&folder.join("runs.safetensors"));
    }
    std::fs::write(folder.join("case.json"), case.to_string()).unwrap();
}

/// Adds all runs of a model, and returns their number.
fn runs(graph: &Verified, plain: Weights, written: &mut Written) -> usize {
    let trained = weights(graph, &device().autodiff());
    let model = Model::new(graph.clone(), plain).unwrap();
    let plan = Plan::new(graph, &Captures::none()).unwrap();
    let has_optional = plan.inputs().iter().any(|input| input.ty.optional);
    let kinds = [Given::Required, Given::Unequal, Given::Hidden];
    let kinds = if has_optional { &kinds[..] } else { &kinds[..1] };
    for (run, given) in kinds.iter().enumerate() {
        let all = inputs_of(&plan, *given);
        for (input, array) in &all {
            written.add(format!("{run}.inputs.{}", input.name), array.clone());
        }
        for (name, value) in super::run(&model, &together(&all, &device())) {
            written.add(format!("{run}.outputs.{name}"), Array::of(&value));
        }
        let outputs = plan.run(&trained, &together(&all, &device()), false).unwrap();
        let loss = Tensor::cat(outputs.values().map(weighted).collect(), 0).sum();
        for (path, gradient) in gradients(&trained, loss) {
            let shape = trained.layout()[&path].shape.clone();
            written.add(format!("{run}.gradients.{path}"), Array::Floats(shape, gradient));
        }
        if !graph.decodes {
            continue;
        }
        let mut cache = model.cache();
        for (i, step) in STEPS.into_iter().enumerate() {
            let part = step_of(&all, step);
            for (input, array) in &part {
                written.add(format!("{run}.steps.{i}.inputs.{}", input.name), array.clone());
            }
            let outputs = model.forward_cached(&together(&part, &device()), &mut cache).unwrap();
            for (name, value) in &outputs {
                written.add(format!("{run}.steps.{i}.outputs.{name}"), Array::of(value));
            }
        }
    }
    kinds.len()
}

#[test]
#[ignore = "only writes files, of which `.ci/run pytorch` names the folder"]
fn what_the_interpreter_computes_is_written() {
    let out = PathBuf::from(std::env::var_os("TRAFOC_PYTORCH").expect("TRAFOC_PYTORCH names a folder"));
    let random = std::env::var("TRAFOC_PYTORCH_RANDOM").map_or(60, |n| n.parse().unwrap());
    let specs = out.join("specs");
    std::fs::create_dir_all(&specs).unwrap();
    let names = ["tests/emitted/names.txt", "tests/pytorch/names.txt"];
    let mut all = listed::all(&repository("."), &specs, random, &names);
    for folder in ["tests/numeric", "tests/pytorch/hostile"] {
        let own = crate::compiled::specs(folder).into_iter();
        all.extend(own.map(|(name, _)| Listed { spec: format!("{folder}/{name}.yaml"), settings: vec![] }));
    }
    // No file of the repository may have such a name, as Windows has none.
    let named = specs.join("hostile_\"\"\" + __import__('os').abort() + \"\"\"\n# \\.yaml");
    std::fs::copy(repository("tests/pytorch/hostile/quotes.yaml"), &named).unwrap();
    all.push(Listed { spec: named.display().to_string(), settings: vec![] });
    let (cases, next) = (out.join("cases"), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(listed) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    write(listed, &cases);
                }
            });
        }
    });
}
