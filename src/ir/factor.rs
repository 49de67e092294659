//! Factors in the author's words.
//!
//! A [`Factor`] is a number that multiplies a value, together with the size whose root it is, if the spec or
//! a default says so: `1/sqrt(head_dim)`. Emitted code and lessons write the root, and never guess it from an
//! equal number.

use std::fmt;
use std::ops::Deref;

use super::Extent;
use crate::field;
use crate::field::factor::RootOf;

/// A number that multiplies a value, and where it comes from. Factors are equal when their numbers are.
#[derive(Clone, Copy)]
pub struct Factor {
    by: f64,
    root: Option<Root>,
}

/// The square root of a size, or one divided by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The size under the root: `head_dim`, or a sum such as `content_dim + rotary_dim`.
    pub of: Extent,
    /// Whether one is divided by the root.
    pub is_inverse: bool,
}

impl Root {
    /// Its number, computed as emitted code does.
    fn value(&self) -> f64 {
        let root = (self.of.get() as f64).sqrt();
        if self.is_inverse { 1.0 / root } else { root }
    }
}

impl Factor {
    /// A number that the author or a default gave as this root. The root is kept only if code that computes
    /// it gets the same bits.
    pub fn new(by: f64, root: Option<Root>) -> Self {
        Self { by, root: root.filter(|root| root.value() == by) }
    }

    /// The factor of a field, where the sizes of these names are known. A root of any other name is only a
    /// number.
    pub fn of(given: &field::Factor, sizes: &[(&str, Extent)]) -> Self {
        let size = |name: &String| sizes.iter().find(|(known, _)| known == name).map(|(_, size)| *size);
        let root = given.root().and_then(|RootOf { added, is_inverse }| {
            // Several sizes for a root such as `sqrt(content_dim + rotary_dim)`.
            let sizes = added.iter().map(size).collect::<Option<Vec<_>>>()?;
            Some(Root { of: sizes.into_iter().reduce(|sum, size| sum + size)?, is_inverse: *is_inverse })
        });
        Self::new(**given, root)
    }

    /// The root that it is, if the author or a default gave it as one.
    pub fn root(&self) -> Option<Root> {
        self.root
    }
}

impl From<f64> for Factor {
    fn from(by: f64) -> Self {
        Self { by, root: None }
    }
}

impl Deref for Factor {
    type Target = f64;

    fn deref(&self) -> &f64 {
        &self.by
    }
}

impl PartialEq for Factor {
    fn eq(&self, other: &Self) -> bool {
        self.by == other.by
    }
}

impl PartialEq<f64> for Factor {
    fn eq(&self, other: &f64) -> bool {
        self.by == *other
    }
}

impl fmt::Debug for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As `Extent`: printed ops show numbers.
        fmt::Debug::fmt(&self.by, f)
    }
}
