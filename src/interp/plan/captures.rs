//! Which values are captured: paths with `*` for any one segment.

use std::fmt;

use indexmap::IndexMap;

use crate::diag::suggest::nearest_paths;

/// Paths of values to return in addition to the outputs: `decoder.blocks.3.attention.weights`,
/// `decoder.blocks.*.attention.weights`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Captures {
    paths: Vec<String>,
    reading: Reading,
}

/// The memory that a caller takes after a run to read what the run returned, in bytes for each element. A run whose
/// results would not fit afterwards is refused before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading {
    /// Of the largest value, where one is read after the other.
    pub largest: u64,
    /// Of every captured value, where all are read together.
    pub each: u64,
}

/// A path that names no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// As given.
    pub path: String,
    /// Paths most like it.
    pub like: Vec<String>,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no value is called `{}`", self.path)?;
        if !self.like.is_empty() {
            write!(f, "; there are {}, ...", self.like.join(", "))?;
        }
        Ok(())
    }
}

impl Captures {
    /// Nothing in addition to the outputs.
    pub fn none() -> Self {
        Self::default()
    }

    /// These paths.
    pub fn of<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), reading: Reading::default() }
    }

    /// The same paths, and what reading them takes.
    #[must_use]
    pub fn read(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// What reading takes.
    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    /// The values that the paths name, by their full names, in the order the paths are given. `values` are all
    /// values of a graph by path, one for each time a value is computed; `parts` what its parts give, which a
    /// path names if no value has it.
    pub(super) fn resolve(
        &self,
        values: &IndexMap<String, Vec<usize>>,
        parts: &IndexMap<String, Vec<usize>>,
    ) -> Result<IndexMap<String, usize>, CaptureError> {
        let mut found = IndexMap::new();
        for pattern in &self.paths {
            let (wanted, time) = stem(pattern);
            let among = |all: &IndexMap<String, Vec<usize>>| -> Vec<(String, usize)> {
                let fitting = all.iter().filter(|(path, _)| matches(wanted, path));
                let each = fitting.flat_map(|(path, times)| names(path, times).into_iter().enumerate());
                each.filter(|(i, _)| time.is_none_or(|time| time == i.to_string()))
                    .map(|(_, one)| one)
                    .collect()
            };
            let mut meant = among(values);
            if meant.is_empty() {
                meant = among(parts);
            }
            let any = !meant.is_empty();
            found.extend(meant);
            if !any {
                let below = format!("{pattern}.");
                let mut like: Vec<&str> =
                    values.keys().map(String::as_str).filter(|p| p.starts_with(&below)).take(5).collect();
                if like.is_empty() {
                    like = nearest_paths(pattern, values.keys().map(String::as_str), 3);
                }
                if like.is_empty() {
                    like = values.keys().map(String::as_str).take(3).collect();
                }
                let like = like.into_iter().map(str::to_owned).collect();
                return Err(CaptureError { path: pattern.clone(), like });
            }
        }
        Ok(found)
    }
}

/// The names of a value that is computed one or several times.
pub(super) fn names(path: &str, times: &[usize]) -> Vec<(String, usize)> {
    match times {
        [one] => vec![(path.to_owned(), *one)],
        several => several.iter().enumerate().map(|(i, value)| (format!("{path}@{i}"), *value)).collect(),
    }
}

/// A path and, after `@`, which time.
fn stem(path: &str) -> (&str, Option<&str>) {
    match path.split_once('@') {
        Some((stem, time)) => (stem, Some(time)),
        None => (path, None),
    }
}

/// Whether a path fits a pattern, segment by segment.
fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('.'), path.split('.'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(wanted), Some(segment)) if wanted == "*" || wanted == segment => {}
            _ => return false,
        }
    }
}
