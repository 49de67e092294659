//! Numbers of another implementation: what PyTorch computed in double precision, with one spec per part.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{ModuleVisitor, Param};
use burn::tensor::Gradients;
use safetensors::{Dtype, SafeTensors};
use trafoc::interp::tensor_file::TensorFile;
use trafoc::interp::weights::Slot;
use trafoc::learn::loss::of_parts;

use super::*;
use crate::compiled::repository;

fn read(tensors: &SafeTensors<'_>, name: &str) -> Value {
    let view = tensors.tensor(name).unwrap();
    let shape = view.shape().to_vec();
    let data = match view.dtype() {
        Dtype::I64 => {
            let (numbers, _) = view.data().as_chunks::<8>();
            TensorData::new(numbers.iter().map(|b| i64::from_le_bytes(*b)).collect::<Vec<_>>(), shape)
        }
        Dtype::F32 => {
            let (numbers, _) = view.data().as_chunks::<4>();
            let numbers: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
            return Value::Float(
                trafoc::interp::Ranked::from_data(TensorData::new(numbers, shape), &device()).unwrap(),
            );
        }
        other => panic!("{name} holds {other:?}"),
    };
    Value::Int(trafoc::interp::Ranked::from_data(data, &device()).unwrap())
}

#[test]
fn every_part_computes_what_pytorch_computes() {
    let mut wrong = Vec::new();
    for (name, graph) in cases() {
        let path = repository(&format!("tests/numeric/{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let mut file = TensorFile::open(&path).unwrap();
        let mut used = 0;
        let weights = Weights::build(&graph, &device(), |path: &str, slot: &Slot| {
            let name = format!("weights.{path}");
            assert_eq!(file.entries()[&name].shape, slot.shape, "{name}");
            used += 1;
            Ok(file.floats(&name)?)
        })
        .unwrap();
        let stored = tensors.names().iter().filter(|n| n.starts_with("weights.")).count();
        assert_eq!(used, stored, "{name} stores other parameters than the model has");
        let model = Model::new(graph, weights).unwrap();
        for run in 0.. {
            let of = |kind: &str| {
                let prefix = format!("runs.{run}.{kind}.");
                let names = tensors.names().into_iter().filter_map(move |n| n.strip_prefix(&prefix));
                let mut names: Vec<String> = names.map(str::to_owned).collect();
                names.sort();
                names
            };
            if of("outputs").is_empty() {
                assert!(run > 0, "{name} has no runs");
                break;
            }
            let inputs = of("inputs").into_iter().fold(Inputs::new(), |all, input| {
                all.with(&input, read(&tensors, &format!("runs.{run}.inputs.{input}")))
            });
            let found = match model.forward(&inputs, &Options::default()) {
                Ok(found) => found,
                Err(error) => {
                    wrong.push(format!("{name} run {run}: {error}"));
                    continue;
                }
            };
            for output in of("outputs") {
                let expected = floats(&read(&tensors, &format!("runs.{run}.outputs.{output}")));
                let Some(value) = found.get(&output) else {
                    wrong.push(format!("{name} run {run} gives no {output}"));
                    continue;
                };
                let found = floats(value);
                assert_eq!(found.len(), expected.len(), "{name} {output}");
                // An output at a padded position has no meaning and is stored as NaN.
                let scale = expected.iter().filter(|x| !x.is_nan()).fold(0.0f32, |m, x| m.max(x.abs()));
                let worst =
                    expected.iter().zip(&found).filter(|(e, _)| !e.is_nan()).fold(0.0f32, |m, (e, f)| {
                        if f.is_nan() { f32::INFINITY } else { m.max((e - f).abs()) }
                    });
                if worst > bounds().outputs * scale {
                    wrong.push(format!("{name} run {run} {output}: {worst} at a scale of {scale}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Collects the gradients of all parameters, by rank and in their order.
struct Collect<'a> {
    gradients: &'a Gradients,
    found: [Vec<Option<Vec<f32>>>; 5],
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let gradient = parameter.val().grad(self.gradients);
        self.found[D].push(gradient.map(|g| g.into_data().iter::<f32>().collect()));
    }
}

/// The gradients of a loss by path, in the shape of files; those of parameters on which it does not depend
/// are left out.
pub fn gradients(weights: &Weights, loss: Tensor<1>) -> BTreeMap<String, Vec<f32>> {
    let gradients = loss.backward();
    let mut collect = Collect { gradients: &gradients, found: Default::default() };
    weights.visit(&mut collect);
    let of = |(path, slot): (&String, &Slot)| {
        let mut found = collect.found[slot.place.rank][slot.place.index].clone()?;
        // Projections are transposed in memory.
        if slot.transposed {
            let (rows, columns) = (slot.shape[0], slot.shape[1]);
            found = (0..rows * columns).map(|i| found[i % columns * rows + i / columns]).collect();
        }
        Some((path.clone(), found))
    };
    weights.layout().iter().filter(|(_, slot)| slot.trained).filter_map(of).collect()
}

/// The weights of a fixture.
fn stored(path: &Path, graph: &Verified, device: &Device) -> Weights {
    let mut file = TensorFile::open(path).unwrap();
    Weights::build(graph, device, |path: &str, _: &Slot| Ok(file.floats(&format!("weights.{path}"))?))
        .unwrap()
}

/// A causal decoder needs no mask for padding after a text; its losses leave padding out all the same.
#[test]
fn losses_of_parts_leave_out_padding_without_a_mask() {
    let (_, graph) = cases().into_iter().find(|(name, _)| name == "moe-losses-padded").unwrap();
    let path = repository("tests/numeric/moe-losses-padded.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let weights = stored(&path, &graph, &device());
    let plan = Plan::for_training(&graph).unwrap();
    let tokens = || Inputs::new().with("tokens", read(&tensors, "runs.0.inputs.tokens"));
    let losses = |inputs: Inputs| -> Vec<f32> {
        let outputs = plan.run(&weights, &inputs, false).unwrap();
        let all = of_parts(&plan, &outputs).unwrap();
        all.into_iter().map(|loss| loss.mean.into_scalar::<f32>()).collect()
    };
    let mask = || read(&tensors, "runs.0.inputs.mask");
    let (masked, padded) = (losses(tokens().with("mask", mask())), losses(tokens().with_padded(mask())));
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5 * a.abs());
    assert!(near(&masked, &padded), "{masked:?} {padded:?}");
    let all = losses(tokens());
    assert!(!near(&masked, &all), "{masked:?} {all:?}");
}

#[test]
fn every_gradient_is_that_of_pytorch() {
    let mut wrong = Vec::new();
    for (name, graph) in cases() {
        let path = repository(&format!("tests/numeric/{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let weights = stored(&path, &graph, &device().autodiff());
        let inputs = tensors.names().into_iter().filter_map(|n| Some((n, n.strip_prefix("runs.0.inputs.")?)));
        let inputs = inputs.fold(Inputs::new(), |all, (name, input)| all.with(input, read(&tensors, name)));
        let plan = Plan::for_training(&graph).unwrap();
        let outputs = plan.run(&weights, &inputs, false).unwrap();
        let mut own = Vec::new();
        for loss in of_parts(&plan, &outputs).unwrap() {
            let wanted = floats(&read(&tensors, &format!("losses.{}", loss.name)));
            let found: Vec<f32> = loss.mean.into_data().iter::<f32>().collect();
            assert!(
                (wanted[0] - found[0]).abs() < 1e-5 * wanted[0].abs(),
                "{name} {}: {found:?} for {wanted:?}",
                loss.name
            );
            own.push(loss.weighted);
        }
        let of_names = tensors.names().into_iter().filter(|name| name.starts_with("losses.")).count();
        assert_eq!(own.len(), of_names, "{name}: losses");
        let wanted = tensors.names().into_iter().filter_map(|n| n.strip_prefix("runs.0.outputs."));
        let parts: Vec<Tensor<1>> = wanted.map(|output| weighted(&outputs[output])).collect();
        let all = gradients(&weights, Tensor::cat([parts, own].concat(), 0).sum());
        let mut file = TensorFile::open(&path).unwrap();
        let largest = |values: &[f32]| values.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let mut compared = Vec::new();
        for (path, _) in weights.layout().iter().filter(|(_, slot)| slot.trained) {
            let found = all.get(path).cloned();
            let gradient = format!("gradients.{path}");
            if !file.entries().contains_key(&gradient) {
                let is_zero = found.is_none_or(|g| largest(&g) == 0.0);
                assert!(is_zero, "{name}: {path} has a gradient, where PyTorch has none");
                continue;
            }
            let wanted = file.floats(&gradient).unwrap();
            let found = found.unwrap_or_else(|| vec![0.0; wanted.len()]);
            compared.push((path, wanted, found));
        }
        // If softmax or norms cancel a gradient, only rounding is left, at the scale of the other
        // gradients.
        let model = compared.iter().fold(0.0f32, |m, (_, wanted, _)| m.max(largest(wanted)));
        for (path, wanted, found) in compared {
            let worst = wanted.iter().zip(&found).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
            let scale = largest(&wanted).max(1e-2 * model);
            if worst > bounds().gradients * scale || found.iter().any(|x| x.is_nan()) {
                wrong.push(format!("{name} {path}: {worst} at a scale of {scale}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
