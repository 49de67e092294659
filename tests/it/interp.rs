//! The interpreter: laws that hold for every model, and numbers of another implementation.

mod activated;
mod dropped;
mod dtypes;
mod fused;
mod init;
mod kernels;
mod laws;
mod norms;
mod numbers;
mod packed;
mod pytorch;
mod refusals;
#[cfg(feature = "flex")]
mod step;
mod training;
mod traps;

use burn::prelude::*;
use trafoc::interp::plan::Input;
use trafoc::interp::{Inputs, Model, Options, Outputs, Plan, Value, Weights};
use trafoc::ir::{DType, Lengths, Op, Verified};

use super::backend::{bounds, device};
use super::compiled::{graph_with, specs};

/// Small specs that together use every part, by name.
fn cases() -> Vec<(String, Verified)> {
    specs("tests/numeric").into_iter().map(|(name, path)| (name, graph_with(&path, &[]))).collect()
}

/// The graph of a text.
pub fn spec(text: &str) -> Verified {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.yaml");
    std::fs::write(&path, text).unwrap();
    graph_with(&path, &[])
}

fn model(graph: Verified) -> Model {
    let weights = Weights::init(&graph, &device(), 1).unwrap();
    Model::new(graph, weights).unwrap()
}

const LENGTHS: Lengths = Lengths { batch: 2, time: 7, source: 6, past: 0, rows: 0 };

/// Numbers from 0 to 1 that look random and never change.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A value for an input; padding masks keep everything.
fn value(input: &Input, lengths: &Lengths, seed: u64) -> Value {
    value_on(input, lengths, seed, &device())
}

fn value_on(input: &Input, lengths: &Lengths, seed: u64, device: &Device) -> Value {
    let shape: Vec<usize> = input.ty.shape.iter().map(|d| d.eval(lengths) as usize).collect();
    let count = shape.iter().product();
    let mut next = noise(seed);
    match input.ty.dtype {
        DType::Float => {
            let numbers: Vec<f32> = (0..count).map(|_| 2.0 * next() as f32 - 1.0).collect();
            let data = TensorData::new(numbers, shape);
            Value::Float(trafoc::interp::Ranked::from_data(data, device).unwrap())
        }
        DType::Int | DType::Bool => {
            let rows = input.rows.as_ref().map_or(2, |(rows, _)| *rows) as f64;
            let of = |x: f64| if input.keep { 1 } else { (x * rows) as i64 };
            let numbers: Vec<i64> = (0..count).map(|_| of(next())).collect();
            let data = TensorData::new(numbers, shape);
            Value::Int(trafoc::interp::Ranked::from_data(data, device).unwrap())
        }
    }
}

/// Values for all inputs.
fn inputs(plan: &Plan, lengths: &Lengths) -> Inputs {
    inputs_on(plan, lengths, &device())
}

fn inputs_on(plan: &Plan, lengths: &Lengths, device: &Device) -> Inputs {
    plan.inputs().iter().enumerate().fold(Inputs::new(), |all, (i, input)| {
        all.with(&input.name, value_on(input, lengths, 17 + i as u64, device))
    })
}

fn run(model: &Model, inputs: &Inputs) -> Outputs {
    model.forward(inputs, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn floats(value: &Value) -> Vec<f32> {
    value.to_floats().unwrap()
}

/// What is not seen must change nothing, except for rounding if the number of an expert's rows depends on
/// it.
#[track_caller]
fn assert_hidden(graph: &Verified, before: &[f32], after: &[f32], name: &str) {
    assert_eq!(before.len(), after.len(), "{name}");
    let worst = before.iter().zip(after).fold(0.0f32, |m, (x, y)| m.max((x - y).abs()));
    let mut nodes = graph.modules.iter().flat_map(|module| &module.nodes);
    let has_experts = nodes.any(|node| matches!(node.op, Op::Experts { .. }));
    let most = if has_experts { bounds().experts } else { 0.0 };
    assert!(worst <= most && before.iter().all(|x| x.is_finite()), "{name}: off by {worst}");
}

/// Asserts a bound on the largest difference, relative to the largest number.
#[track_caller]
fn assert_close(a: &[f32], b: &[f32]) {
    let tolerance = bounds().ways;
    assert_eq!(a.len(), b.len());
    let scale = a.iter().fold(1.0f32, |m, x| m.max(x.abs()));
    let worst = a.iter().zip(b).fold(0.0f32, |m, (x, y)| m.max((x - y).abs()));
    assert!(worst <= tolerance * scale, "they differ by {worst} at a scale of {scale}");
}

/// The mean of an output's numbers `x_i cos(i)`, of which the fixtures store the gradients.
fn weighted(value: &Value) -> Tensor<1> {
    let dims = value.dims().unwrap();
    let count = dims.iter().product::<usize>();
    let flat = match dims.len() {
        1 => value.float::<1>().unwrap(),
        2 => value.float::<2>().unwrap().reshape([count]),
        3 => value.float::<3>().unwrap().reshape([count]),
        other => panic!("an output of rank {other}"),
    };
    let factors: Vec<f32> = (0..count).map(|i| (i as f64).cos() as f32).collect();
    let factors = Tensor::<1>::from_data(TensorData::new(factors, [count]), &flat.device());
    (flat * factors).mean()
}
