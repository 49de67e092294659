//! The captured values of a run as plain numbers, with the labels of their positions, for `trafoc inspect`.

use crate::cli::inspect::Observe;
use crate::cli::outcome::Failure;
use crate::diag::count::counted;
use crate::inspect::Matrix;
use crate::inspect::attention::Heads;
use crate::inspect::sites::{Sequence, Site};
use crate::interp::{Outputs, Value};
use crate::learn::data::Codebook;
use crate::learn::token::Tokenizer;

/// The labels of the positions of each sequence.
pub struct Words {
    target: Labels,
    source: Labels,
}

/// The labels of the positions of one sequence, and where they come from.
struct Labels {
    /// The option that sets them, `--labels` or `--source-labels`, for messages.
    option: &'static str,
    /// Whether the option was given.
    is_given: bool,
    words: Vec<String>,
}

impl Words {
    /// The labels that are given, or the tokens of a run's tokenizer, or the ids.
    pub fn of(one: &Observe, json: &serde_json::Value, codebook: Option<&Codebook>) -> Self {
        let labels = |option, given: &Option<String>, found: Vec<String>| Labels {
            option,
            is_given: given.is_some(),
            words: match given {
                Some(text) => text.split_whitespace().map(str::to_owned).collect(),
                None => found,
            },
        };
        let [target, source] = tokens(json, codebook);
        Self {
            target: labels("--labels", &one.labels, target),
            source: labels("--source-labels", &one.source_labels, source),
        }
    }

    fn of_sequence(&self, sequence: Sequence) -> &Labels {
        match sequence {
            Sequence::Target => &self.target,
            Sequence::Source => &self.source,
        }
    }

    /// The labels of a sequence with this number of positions; empty if only their numbers are known.
    ///
    /// # Errors
    /// The user gave another number of labels.
    pub fn at(&self, sequence: Sequence, positions: usize) -> Result<Vec<String>, Failure> {
        let Labels { option, is_given, words } = self.of_sequence(sequence);
        if words.len() == positions {
            return Ok(words.clone());
        }
        // Ids fit no sequence that the model itself extends, as by a class token; then positions have
        // numbers.
        if !is_given {
            return Ok(Vec::new());
        }
        let words = counted(words.len(), "word");
        let message =
            format!("`{option}` gives {words}, but the sequence has {}", counted(positions, "position"));
        Err(Failure::usage(message).help("give one label for each position, separated by spaces"))
    }

    /// Refuses labels of a sequence that is not shown.
    ///
    /// # Errors
    /// The user gave labels for a sequence that is not shown.
    pub fn refuse_unused(&self, shown: &[Sequence]) -> Result<(), Failure> {
        for (sequence, which) in [(Sequence::Target, "target"), (Sequence::Source, "source")] {
            let Labels { option, is_given, .. } = self.of_sequence(sequence);
            if *is_given && !shown.contains(&sequence) {
                let message = format!("`{option}` would have no effect: nothing of a {which} is shown");
                return Err(Failure::usage(message));
            }
        }
        Ok(())
    }
}

/// The tokens of the first sequence of the target and of the source; ids without a tokenizer.
pub fn tokens(json: &serde_json::Value, codebook: Option<&Codebook>) -> [Vec<String>; 2] {
    let of = |names: &[&str], tokenizer: Option<&Tokenizer>| -> Vec<String> {
        // Only the first sequence of a batch is shown.
        let found = names.iter().find_map(|name| json.get(name)?.get(0)?.as_array());
        let word = |id: &serde_json::Value| {
            let number = id.as_u64().and_then(|id| u32::try_from(id).ok());
            number.zip(tokenizer).and_then(|(id, t)| t.token(id)).unwrap_or_else(|| id.to_string())
        };
        found.into_iter().flatten().map(word).collect()
    };
    let target = codebook.and_then(|c| c.tokenizer.as_ref());
    let source = codebook.and_then(Codebook::source_tokenizer);
    [of(&["tokens", "target"], target), of(&["source"], source)]
}

/// The attention weights of all heads for the first sequence.
///
/// # Errors
/// The layer has no head with the selected index, or a label is missing.
pub fn heads(one: &Observe, site: &Site, outputs: &Outputs, words: &Words) -> Result<Heads, Failure> {
    let value = captured(outputs, &site.weights)?;
    let shape = value.dims().unwrap_or_default();
    let [_, count, queries, keys] = shape.as_slice() else {
        return Err(Failure::bug(format!("{} has the shape {shape:?}", site.weights)));
    };
    let shown = shown_heads(one, *count)?;
    let first = shown.start;
    // The first sequence comes first in row-major order, so the axis of the batch needs no offset below.
    let numbers = singles(value)?;
    let size = queries * keys;
    // Only heads that are shown become numbers of double precision, which take twice the memory.
    let of = |head: usize| {
        let own = numbers.get(head * size..(head + 1) * size).unwrap_or_default();
        own.iter().copied().map(f64::from).collect()
    };
    let weights = shown.map(|head| Matrix::new(*queries, *keys, of(head))).collect();
    let (queries, keys) = (words.at(site.queries, *queries)?, words.at(site.keys, *keys)?);
    Ok(Heads { site: site.clone(), weights, first, queries, keys })
}

/// The indices of the heads that are shown.
fn shown_heads(one: &Observe, count: usize) -> Result<std::ops::Range<usize>, Failure> {
    let Some(head) = one.head else { return Ok(0..count) };
    match usize::try_from(head).ok().filter(|head| *head < count) {
        Some(head) => Ok(head..head + 1),
        None => Err(Failure::usage(format!("there is no head {head}: a layer has {count}, counted from 0"))),
    }
}

/// A captured value, or the last one if it is computed several times.
///
/// # Errors
/// No value with this path was captured, which is a bug.
pub fn captured<'a>(outputs: &'a Outputs, path: &str) -> Result<&'a Value, Failure> {
    // A module that is called several times, as shared layers are, captures its values with the number of
    // the call.
    let times = format!("{path}@");
    let last = outputs.iter().rev().find(|(name, _)| *name == path || name.starts_with(&times));
    last.map(|(_, value)| value).ok_or_else(|| Failure::bug(format!("{path} was not captured")))
}

/// The numbers of a value in row-major order.
///
/// # Errors
/// The value cannot be read back from the device.
pub fn floats(value: &Value) -> Result<Vec<f64>, Failure> {
    Ok(singles(value)?.into_iter().map(f64::from).collect())
}

fn singles(value: &Value) -> Result<Vec<f32>, Failure> {
    value.to_floats().ok_or_else(|| Failure::bug("a captured value could not be read back"))
}

/// The first sequence of a value `[B, T, D]`: T, D and the numbers in row-major order.
///
/// # Errors
/// The value has another shape, or cannot be read back from the device.
pub fn first_sequence(value: &Value) -> Result<(usize, usize, Vec<f64>), Failure> {
    let shape = value.dims().unwrap_or_default();
    let [_, rows, columns] = shape.as_slice() else {
        return Err(Failure::bug(format!("a layer's output has the shape {shape:?}")));
    };
    let mut numbers = floats(value)?;
    // In row-major order the first sequence comes first.
    numbers.truncate(rows * columns);
    Ok((*rows, *columns, numbers))
}
