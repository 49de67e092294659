//! A batch without data, with which the time and the memory of a model are measured.

use super::data::{Array, Batch, Labels};
use super::recipe::agree::Task;
use crate::interp::Plan;
use crate::ir::{DType, Lengths};
use crate::parts::Head;
use crate::spec::ModelSpec;

/// The name of an input as batches use it.
fn input(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 8] =
        ["tokens", "mask", "token_types", "source", "source_mask", "target", "image", "language"];
    // Batches have static names, and those of a plan are its own; an input with another name gets no values.
    NAMES.into_iter().find(|n| *n == name)
}

/// Inputs and labels of these lengths: ids spread over the vocabulary, images with a pattern.
pub fn sample(spec: &ModelSpec, plan: &Plan, task: Option<Task>, lengths: &Lengths) -> Batch {
    let mut inputs = Vec::new();
    for (value, known) in plan.inputs().iter().filter_map(|v| Some((v, input(&v.name)?))) {
        // Optional inputs, such as masks, are left out, as in training without padding.
        if value.ty.optional {
            continue;
        }
        let sizes = value.ty.shape.iter().map(|dim| usize::try_from(dim.eval(lengths)).unwrap_or(usize::MAX));
        let shape: Vec<usize> = sizes.collect();
        let count: usize = shape.iter().product();
        // An id beyond the table would stop some backends and read other memory on others.
        let rows = value.rows.as_ref().map_or(1, |(rows, _)| (*rows).max(1));
        // Multiples of a large number, which Knuth gives for hashing, reach many different rows of the table,
        // as real text does.
        let id = |i: usize| ((i as u64).wrapping_mul(2_654_435_761) >> 7) % rows;
        let array = match value.ty.dtype {
            DType::Int | DType::Bool => {
                Array::Ints { shape, values: (0..count).map(|i| id(i) as i64).collect() }
            }
            DType::Float => {
                Array::Floats { shape, values: (0..count).map(|i| (i as f32 * 0.7).sin()).collect() }
            }
        };
        inputs.push((known, array));
    }
    let size = usize::try_from(lengths.batch).unwrap_or(1);
    let time = usize::try_from(lengths.time).unwrap_or(1);
    let positions = || Labels::Positions {
        shape: [size, time],
        classes: vec![0; size * time],
        weights: vec![1.0; size * time],
    };
    let labels = match (task, &spec.head) {
        (Some(Task::Embed), _) => Labels::Alike(size / 2),
        (Some(Task::Span), _) => Labels::Spans { start: vec![0; size], end: vec![0; size] },
        (Some(Task::ClassifyText | Task::ClassifyImage), Head::Classify(head)) if head.multi_label => {
            let classes = usize::try_from(*head.classes).unwrap_or(1);
            Labels::Several { shape: [size, classes], values: vec![0.0; size * classes] }
        }
        (Some(Task::ClassifyText | Task::ClassifyImage), _) => Labels::Classes(vec![0; size]),
        (_, _) => positions(),
    };
    let counted = match &labels {
        Labels::Positions { weights, .. } => weights.len(),
        Labels::Several { values, .. } => values.len(),
        Labels::Classes(_) | Labels::Spans { .. } => size,
        Labels::Alike(pairs) => *pairs,
    };
    Batch { inputs, padded: None, labels, indices: (0..size).collect(), counted, tokens: size * time }
}
