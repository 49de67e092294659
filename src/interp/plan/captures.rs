//! Selects the values to capture, by paths in which `*` matches any one segment.

use std::fmt;

use indexmap::IndexMap;

use crate::diag::paths::{least_unlike, nearest_paths};

/// Paths of values to return in addition to the outputs: `decoder.blocks.3.attention.weights`,
/// `decoder.blocks.*.attention.weights`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Captures {
    paths: Vec<String>,
    reading: Reading,
}

/// The memory that a caller needs after a run to read its results, in bytes per element. A run whose results
/// could not be read for lack of memory is refused before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading {
    /// Bytes per element of the largest value, for a caller that reads one value after the other.
    pub largest: u64,
    /// Bytes per element of all captured values, for a caller that reads them together.
    pub each: u64,
}

/// The error that a path of a capture names no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// The path, as the caller gave it.
    pub path: String,
    /// A few existing paths, one of which may be meant.
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
    /// Captures nothing, so that a run returns only the outputs.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether nothing is captured.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Captures the values that these paths match.
    pub fn of<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), reading: Reading::default() }
    }

    /// The same captures, for a caller that needs this memory to read the results.
    #[must_use]
    pub fn read(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// The memory that the caller needs to read the results.
    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    /// The numbers of the values that the paths match, by full name, in the order of the paths. `values` maps
    /// each path of a graph to the numbers of its values, one for each time it is computed. `parts` maps the
    /// path of each part to its results in the same way; it is searched only if no value matches.
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
                // Compared as text, so that `@01` is not another name of `@1`.
                each.filter(|(i, _)| time.is_none_or(|time| time == i.to_string()))
                    .map(|(_, one)| one)
                    .collect()
            };
            // Values come first: a module and one of its values may have the same path.
            let mut meant = among(values);
            if meant.is_empty() {
                meant = among(parts);
            }
            let any = !meant.is_empty();
            found.extend(meant);
            if !any {
                // A path may name a module that has no value of its own, so what is inside of it is suggested
                // first; then what is spelt like it.
                let below = format!("{pattern}.");
                let mut like: Vec<&str> =
                    values.keys().map(String::as_str).filter(|p| p.starts_with(&below)).take(5).collect();
                if like.is_empty() {
                    let all = values.keys().chain(parts.keys().filter(|path| !values.contains_key(*path)));
                    like = nearest_paths(pattern, all.map(String::as_str), 3);
                }
                if like.is_empty() {
                    like = least_unlike(pattern, values.keys().map(String::as_str), 3);
                }
                let like = like.into_iter().map(str::to_owned).collect();
                return Err(CaptureError { path: pattern.clone(), like });
            }
        }
        Ok(found)
    }
}

/// The name of each value with this path: the path alone if it is computed once, otherwise followed by `@0`,
/// `@1`, ...
pub(super) fn names(path: &str, times: &[usize]) -> Vec<(String, usize)> {
    match times {
        [one] => vec![(path.to_owned(), *one)],
        several => several.iter().enumerate().map(|(i, value)| (format!("{path}@{i}"), *value)).collect(),
    }
}

/// Splits `path@1` into the path and the number after `@`, which selects one of several computations.
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
