//! Numbers of another implementation: what PyTorch computed in double precision for a spec a part.

use safetensors::{Dtype, SafeTensors};
use trafoc::interp::tensor_file::TensorFile;
use trafoc::interp::weights::Slot;

use super::*;
use crate::compiled::repository;

/// Of the largest expected number: single against double precision, which loses at most 3e-6 here when
/// PyTorch itself computes in single precision.
const TOLERANCE: f32 = 1e-5;

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
                let scale = expected.iter().filter(|x| !x.is_nan()).fold(0.0f32, |m, x| m.max(x.abs()));
                let worst =
                    expected.iter().zip(&found).filter(|(e, _)| !e.is_nan()).fold(0.0f32, |m, (e, f)| {
                        if f.is_nan() { f32::INFINITY } else { m.max((e - f).abs()) }
                    });
                if worst > TOLERANCE * scale {
                    wrong.push(format!("{name} run {run} {output}: {worst} at a scale of {scale}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
