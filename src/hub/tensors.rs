//! The numbers of a graph's parameters, read from a checkpoint one parameter at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::arrange::Layout;
use super::checkpoint::{Checkpoint, CheckpointError};
use super::mapping::{Mapping, Origin};
use crate::names::constant::Constant;

/// The number of tensors with several parameters that are kept in memory, so that a fused tensor is read once
/// and not for each of its parameters.
const KEPT: usize = 4;

/// A checkpoint together with a mapping that has no mismatches.
#[derive(Debug)]
pub struct Tensors {
    checkpoint: Checkpoint,
    mapping: Mapping,
    /// Tensors with several parameters, which are usually read one after the other; the most recently used
    /// tensor is last.
    kept: Vec<(String, Vec<f32>)>,
    /// The number of NaN or infinite values, by parameter.
    pub not_finite: BTreeMap<String, usize>,
}

/// Why a parameter of the graph cannot be read from a checkpoint.
#[derive(Debug)]
pub enum TensorsError {
    /// The tensors are not those of this model: one line for each difference.
    Differ(Vec<String>),
    /// A file cannot be read.
    Checkpoint(CheckpointError),
}

impl fmt::Display for TensorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorsError::Differ(lines) => {
                f.write_str("the file does not contain this model's parameters")?;
                lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            TensorsError::Checkpoint(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TensorsError {}

impl From<CheckpointError> for TensorsError {
    fn from(error: CheckpointError) -> Self {
        TensorsError::Checkpoint(error)
    }
}

impl Tensors {
    /// Joins a checkpoint with its mapping.
    ///
    /// # Errors
    /// A tensor does not fit, or a tensor that should repeat a parameter has other values.
    pub fn new(checkpoint: Checkpoint, mapping: Mapping) -> Result<Self, TensorsError> {
        if !mapping.mismatches.is_empty() {
            return Err(TensorsError::Differ(mapping.mismatches.into_iter().map(|m| m.message).collect()));
        }
        // Only one copy of a tied weight is read. If they differ, the file is not what its config says.
        let repeats = mapping.repeats.clone();
        let mut tensors = Self { checkpoint, mapping, kept: Vec::new(), not_finite: BTreeMap::new() };
        let mut lines = Vec::new();
        for (tensor, path) in repeats {
            let own = tensors.floats(&path)?;
            let other = tensors.checkpoint.floats(&tensor)?;
            // Bits are compared, because a NaN does not equal itself.
            if own.len() != other.len() || own.iter().zip(&other).any(|(a, b)| a.to_bits() != b.to_bits()) {
                lines.push(format!("`{tensor}` should repeat {path}, but holds other numbers"));
            }
        }
        for (tensor, value) in tensors.mapping.constants.clone() {
            let found = tensors.checkpoint.floats(&tensor)?;
            for other in found.iter().filter(|found| !Constant::is(value, **found)) {
                lines.push(format!("`{tensor}` should be {value}, but is {other}"));
            }
        }
        // Reading the repeated ones has counted them; they are counted again when the model reads them.
        tensors.not_finite.clear();
        if lines.is_empty() { Ok(tensors) } else { Err(TensorsError::Differ(lines)) }
    }

    /// As [`Tensors::new`], but only for the parameters whose tensors fit: those that are missing, unknown or
    /// of another shape are ignored.
    ///
    /// # Errors
    /// A tensor that should repeat a parameter has other values.
    pub fn of_those_that_fit(checkpoint: Checkpoint, mut mapping: Mapping) -> Result<Self, TensorsError> {
        mapping.mismatches.clear();
        let unfit = std::mem::take(&mut mapping.unfit);
        mapping.origins.retain(|path, _| !unfit.contains(path));
        let origins = &mapping.origins;
        mapping.repeats.retain(|(_, path)| origins.contains_key(path));
        Self::new(checkpoint, mapping)
    }

    /// The paths of the parameters that can be read.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.mapping.origins.keys().map(String::as_str)
    }

    /// The names of the tensors that no parameter is read from and that are no copies or constants either.
    pub fn unread(&self) -> Vec<&str> {
        let mut read: BTreeSet<&str> = BTreeSet::new();
        for origin in self.mapping.origins.values() {
            match origin {
                Origin::Tensor(name, _) => read.extend([name.as_str()]),
                Origin::Joined(parts) => read.extend(parts.iter().map(|(name, _)| name.as_str())),
                Origin::Constant(_) => {}
            }
        }
        read.extend(self.mapping.repeats.iter().map(|(name, _)| name.as_str()));
        read.extend(self.mapping.constants.iter().map(|(name, _)| name.as_str()));
        self.checkpoint.names().filter(|name| !read.contains(name)).collect()
    }

    /// The names of the tensors that contain a parameter, for messages; empty if a constant fills it.
    pub fn origin(&self, path: &str) -> String {
        match self.mapping.origins.get(path) {
            Some(Origin::Tensor(name, _)) => name.clone(),
            Some(Origin::Joined(parts)) => {
                let first = parts.first().map_or("", |(name, _)| name.as_str());
                format!("{first} and {} more", parts.len().saturating_sub(1))
            }
            Some(Origin::Constant(_)) | None => String::new(),
        }
    }

    /// A parameter's numbers, in its own order and shape.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn floats(&mut self, path: &str) -> Result<Vec<f32>, TensorsError> {
        let missing = || TensorsError::Differ(vec![format!("{path} is missing")]);
        let values = match self.mapping.origins.get(path).cloned().ok_or_else(missing)? {
            // A single value; the caller knows how often it is repeated.
            Origin::Constant(value) => return Ok(vec![value]),
            Origin::Joined(parts) => {
                let mut values = Vec::new();
                for (name, layout) in parts {
                    values.extend(self.part(&name, &layout)?);
                }
                values
            }
            // Not kept: no other parameter is in it, and a copy would double the memory.
            Origin::Tensor(name, layout) if layout.is_whole() => self.checkpoint.floats(&name)?,
            Origin::Tensor(name, layout) => self.part(&name, &layout)?,
        };
        let bad = values.iter().filter(|v| !v.is_finite()).count();
        if bad > 0 {
            self.not_finite.insert(path.to_owned(), bad);
        }
        Ok(values)
    }

    /// As [`Tensors::floats`], with a constant repeated `count` times.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sized(&mut self, path: &str, count: usize) -> Result<Vec<f32>, TensorsError> {
        let values = self.floats(path)?;
        match (values.as_slice(), self.mapping.origins.get(path)) {
            ([one], Some(Origin::Constant(_))) => Ok(vec![*one; count]),
            _ => Ok(values),
        }
    }

    fn part(&mut self, name: &str, layout: &Layout) -> Result<Vec<f32>, TensorsError> {
        let at = self.kept.iter().position(|(n, _)| n == name);
        let tensor = match at {
            Some(at) => self.kept.remove(at),
            None => {
                // Before the next one is read, so that no more than this are in memory at a time.
                while self.kept.len() >= KEPT {
                    self.kept.remove(0);
                }
                (name.to_owned(), self.checkpoint.floats(name)?)
            }
        };
        let values = layout.take(&tensor.1);
        // Put back at the end, so that the one that is dropped next is the one that was used longest ago.
        self.kept.push(tensor);
        values
            .ok_or_else(|| TensorsError::Differ(vec![format!("`{name}` does not have the expected layout")]))
    }
}
