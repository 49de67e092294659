//! Every model computes the same numbers as the library it comes from.

use std::path::Path;

use trafoc::interp::{Captures, Inputs, Model, Options, Weights};
use trafoc::tensor_file::TensorFile;

use super::{Fixture, models, numbers_of};

/// How far a number may be off, relative to the largest one.
const TOLERANCE: f32 = 1e-4;

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The positions that are compared: those that the mask keeps, if the output has positions that may be
/// padding.
fn kept(inputs: &serde_json::Value, shape: &[usize]) -> Option<Vec<bool>> {
    let rows = inputs.get("mask")?.as_array()?;
    let width = rows.first()?.as_array()?.len();
    let keep = rows.iter().flat_map(|row| row.as_array().unwrap().iter().map(|n| n.as_u64() == Some(1)));
    (shape.len() >= 2 && shape[..2] == [rows.len(), width]).then(|| keep.collect())
}

#[test]
fn outputs_are_those_of_the_library() {
    let device = crate::backend::device();
    let mut wrong = Vec::new();
    for Fixture { name, folder, imported, graph, .. } in models() {
        let mut numbers = numbers_of(imported, graph, folder);
        let weights = Weights::build(graph, &device, |path, slot| {
            Ok(numbers.sized(path, slot.shape.iter().product()).unwrap())
        });
        let run = Model::new(graph.clone(), weights.unwrap()).unwrap();
        let given = json(&folder.join("inputs.json"));
        let given = imported.target.map_or(given.clone(), |target| target.completed(given));
        let inputs = Inputs::from_json(run.plan(), &given, &device).unwrap();
        let options = Options { training: false, captures: Captures::of(["hidden".to_owned()]) };
        let outputs = run.forward(&inputs, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut expected = TensorFile::open(&folder.join("expected.safetensors")).unwrap();
        let entries = expected.entries().clone();
        for (output, entry) in entries {
            let wanted = expected.floats(&output).unwrap();
            let found = outputs[&output].to_floats().unwrap();
            assert_eq!(found.len(), wanted.len(), "{name}: {output}");
            let keep = kept(&given, &entry.shape);
            let width: usize = entry.shape.iter().skip(2).product();
            let counts = |i: usize| keep.as_ref().is_none_or(|keep| keep[i / width]);
            let scale = wanted.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            let off = found.iter().zip(&wanted).enumerate().filter(|(i, _)| counts(*i));
            // `max` passes over NaN, which must not count as close.
            let apart = |a: f32, b: f32| if a.is_nan() != b.is_nan() { f32::INFINITY } else { (a - b).abs() };
            let off = off.fold(0.0f32, |m, (_, (a, b))| m.max(apart(*a, *b)));
            if off > TOLERANCE * scale {
                wrong.push(format!("{name}: {output} is off by {off} at a scale of {scale}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
