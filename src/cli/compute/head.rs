//! One head of a run, for `trafoc inspect steps`: its inputs and outputs as matrices.

use super::captured::{Words, captured, floats, heads};
use crate::cli::inspect::Observe;
use crate::cli::outcome::Failure;
use crate::inspect::sites::Site;
use crate::inspect::steps::{self, Head};
use crate::inspect::{Matrix, Report};
use crate::interp::{Outputs, Value};
use crate::ir::op::Attention;

/// The attention whose steps are shown: the one with the selected layer and kind, by default the first.
fn site(all: &[Site]) -> Result<(&Site, &Attention), Failure> {
    let site = all.first().ok_or_else(|| Failure::usage("the model has no attention"))?;
    let of_pieces = || {
        let message =
            format!("a part computes the weights of {} of pieces, which have no common steps", site.path);
        Failure::usage(message).help("`trafoc inspect attention` shows the weights")
    };
    Ok((site, site.op.as_ref().ok_or_else(of_pieces)?))
}

/// The values that a run must capture: the weights, the outputs, and all inputs of attention except its
/// mask, which may be absent.
///
/// # Errors
/// No attention has the selected kind and layer.
pub fn captures(all: &[Site]) -> Result<Vec<String>, Failure> {
    let (site, op) = site(all)?;
    // Query, key and value come first among the inputs of every attention.
    let taken = [0, 1, 2].into_iter().chain(op.bias()).chain(op.sinks());
    let taken = taken.chain(op.score_weights());
    let taken = taken.filter_map(|i| site.inputs.get(i).cloned());
    Ok(taken.chain([site.weights.clone(), site.output.clone()]).collect())
}

/// The report on one head for the first sequence.
///
/// # Errors
/// The selected head or position does not exist.
pub fn report(
    one: &Observe,
    name: &str,
    all: &[Site],
    outputs: &Outputs,
    words: &Words,
) -> Result<Report, Failure> {
    let (site, op) = site(all)?;
    let shown = heads(one, site, outputs, words)?;
    let index = shown.first;
    // The selected head, or the first one.
    let weights = shown.weights.into_iter().next().unwrap_or_default();
    let count = usize::try_from(site.heads).unwrap_or(usize::MAX);
    let input = |i: usize| captured(outputs, site.inputs.get(i).map_or("", String::as_str));
    let bias = op.bias().map(|i| matrix(input(i)?, index, count)).transpose()?;
    let sink = op.sinks().map(|i| floats(input(i)?)).transpose()?.and_then(|all| all.get(index).copied());
    let score = op.score_weights().map(|i| floats(input(i)?)).transpose()?.unwrap_or_default();
    // Only additive attention has weights for scores; of all others the list is empty.
    let width = score.len().checked_div(count).unwrap_or(0);
    let score = score.into_iter().skip(index.saturating_mul(width)).take(width).collect();
    let head = Head {
        site: site.clone(),
        op: op.clone(),
        index: index as u64,
        queries: matrix(input(0)?, index, count)?,
        keys: matrix(input(1)?, index, count)?,
        values: matrix(input(2)?, index, count)?,
        bias,
        score,
        sink,
        outputs: matrix(captured(outputs, &site.output)?, index, count)?,
        weights,
        query_words: shown.queries,
        key_words: shown.keys,
    };
    let size = head.queries.rows;
    // The last query sees the most keys, also with a causal mask.
    let query = one.target.unwrap_or(size.saturating_sub(1));
    if query >= size {
        return Err(Failure::usage(format!("there is no position {query}: the input has {size}")));
    }
    Ok(steps::steps(name, &head, query))
}

/// The matrix of a head for the first sequence of `[B, H, rows, columns]`. If there are fewer key heads,
/// several query heads share one.
fn matrix(value: &Value, head: usize, count: usize) -> Result<Matrix, Failure> {
    let shape = value.dims().unwrap_or_default();
    let [_, own, rows, columns] = shape.as_slice() else {
        return Err(Failure::bug(format!("an input of a head has the shape {shape:?}")));
    };
    // With grouped queries, `count / own` query heads after each other read the same key head.
    let head = head / (count / (*own).max(1)).max(1);
    let size = rows * columns;
    let numbers = floats(value)?;
    let values = numbers.get(head * size..(head + 1) * size).unwrap_or_default().to_vec();
    Ok(Matrix::new(*rows, *columns, values))
}
