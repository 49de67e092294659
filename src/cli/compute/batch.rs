//! The input of a norm for a batch, for `trafoc inspect norms`.

use serde_json::Value as Json;

use super::captured::{captured, floats};
use crate::cli::inspect::Observe;
use crate::cli::outcome::Failure;
use crate::inspect::norms::{self, Batch};
use crate::inspect::sites::{Norm, Sequence, Sites};
use crate::inspect::{Matrix, Report};
use crate::interp::Outputs;
use crate::learn::data::Codebook;

/// The norm that is inspected: the first one of the selected stack and layer.
///
/// # Errors
/// The model has no such norm.
pub fn norm<'s>(one: &Observe, found: &'s Sites) -> Result<&'s Norm, Failure> {
    let stack = one.stack()?;
    let fits = |norm: &&Norm| {
        // A norm outside of all stacks, such as that of the embeddings, is of none that could be selected.
        let of_stack = stack.is_none_or(|stack| norm.at.is_some_and(|at| at.stack == stack));
        let layer = norm.at.and_then(|at| at.layer);
        of_stack && one.layer.is_none_or(|wanted| layer == Some(wanted))
    };
    found.norms.iter().find(fits).ok_or_else(|| {
        let failure = Failure::usage("the model has no norm at this place");
        match found.norms.first() {
            Some(first) => failure.help(format!("the first one is `{}`", first.path)),
            // A dynamic tanh, for example, is called as a norm but has no mean and no deviation.
            None => {
                failure.help("it has no LayerNorm and no RMSNorm of its vectors, and only such are shown")
            }
        }
    })
}

/// The report on the input of a norm, without padding.
///
/// # Errors
/// A value cannot be read back from the device, or the inputs contain only padding.
pub fn report(
    name: &str,
    norm: &Norm,
    (outputs, inputs): (&Outputs, &Json),
    codebook: Option<&Codebook>,
) -> Result<Report, Failure> {
    let value = captured(outputs, &norm.input)?;
    let shape = value.dims().unwrap_or_default();
    let [count, time, width] = shape.as_slice() else {
        return Err(Failure::bug(format!("{} has the shape {shape:?}", norm.input)));
    };
    // In double precision, because the statistics of a batch are sums of many numbers.
    let numbers = floats(value)?;
    let is_source = norm.sequence == Sequence::Source && inputs.get("source").is_some();
    let (ids, mask) = match is_source {
        true => ("source", "source_mask"),
        false if inputs.get("target").is_some() => ("target", "mask"),
        false => ("tokens", "mask"),
    };
    let tokenizer = if is_source {
        codebook.and_then(Codebook::source_tokenizer)
    } else {
        codebook.and_then(|c| c.tokenizer.as_ref())
    };
    let at = |input: &str, b: usize, t: usize| inputs.get(input)?.get(b)?.get(t)?.as_u64();
    // A causal language model needs no mask for padding, so padding is found by its id.
    let pad = codebook.filter(|_| inputs.get(mask).is_none()).map(|c| u64::from(c.special_tokens().pad));
    let length = |b: usize| {
        let is_text = |t: &usize| at(ids, b, *t).is_none() || at(ids, b, *t) != pad;
        // A text has at least one token, so the first position is never padding.
        // From the end, where padding is. Inside a text the same id is a token, as in GPT-2, which pads
        // with its end token.
        (1..*time).rev().find(is_text).map_or(1, |last| last + 1)
    };
    let lengths: Vec<usize> = (0..*count).map(length).collect();
    let mut batch = Batch {
        path: norm.path.clone(),
        kind: norm.kind,
        rows: Matrix::default(),
        examples: Vec::new(),
        words: Vec::new(),
        eps: norm.eps,
    };
    let mut values = Vec::with_capacity(numbers.len());
    for (b, t) in (0..*count).flat_map(|b| (0..*time).map(move |t| (b, t))) {
        // Padding would count in the statistics of BatchNorm like a token.
        if at(mask, b, t) == Some(0) || lengths.get(b).is_some_and(|length| t >= *length) {
            continue;
        }
        let first = (b * time + t) * width;
        values.extend_from_slice(numbers.get(first..first + width).unwrap_or_default());
        batch.examples.push(b);
        // Positions that are not tokens, such as patches of an image, have only a number.
        let id = at(ids, b, t);
        let word = id.and_then(|id| tokenizer?.token(u32::try_from(id).ok()?));
        batch.words.push(word.or_else(|| Some(id?.to_string())).unwrap_or_else(|| t.to_string()));
    }
    batch.rows = Matrix::new(batch.examples.len(), *width, values);
    if batch.examples.is_empty() {
        return Err(Failure::usage("the inputs contain only padding"));
    }
    Ok(norms::norms(name, &batch))
}
