//! Maps the numbers of a parameter to and from a tensor of a file.
//!
//! From outside in, a tensor has axes of length 1, a stack of experts, then rows and columns, which may be
//! transposed. Several parameters can share its rows: one after the other, or alternating in groups, head
//! by head.

use std::ops::Range;

use crate::diag::count::counted;

/// How several parameters share a tensor of a file, and which of them is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The length of the stack, and the parameter's index in it.
    pub stack: Option<(usize, usize)>,
    /// The number of rows of each parameter in the tensor.
    pub parts: Vec<usize>,
    /// The index of this parameter among them.
    pub which: usize,
    /// The number of groups in which the rows alternate: with 12 for a fused query, key and value, the file
    /// has the three of the first head, then those of the second, and so on.
    pub groups: usize,
    /// The number of columns; axes after the second are multiplied into it.
    pub columns: usize,
    /// Whether columns are the outer axis in the file.
    pub transpose: bool,
}

impl Layout {
    /// A tensor that contains this parameter only.
    pub fn whole(rows: usize, columns: usize) -> Self {
        Self { stack: None, parts: vec![rows], which: 0, groups: 1, columns, transpose: false }
    }

    /// Whether the tensor's numbers are the parameter's, in the same order, so that none has to be moved.
    pub fn is_whole(&self) -> bool {
        self.stack.is_none() && self.parts.len() == 1 && !self.transpose
    }

    /// The number of rows of all parameters; `None` if that overflows.
    pub fn rows(&self) -> Option<usize> {
        self.parts.iter().try_fold(0usize, |n, rows| n.checked_add(*rows))
    }

    /// The number of elements of the tensor; `None` if that overflows.
    pub fn len(&self) -> Option<usize> {
        let one = self.rows()?.checked_mul(self.columns)?;
        one.checked_mul(self.stack.map_or(1, |(count, _)| count))
    }

    /// Whether the tensor has no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The reason why the rows cannot be divided into these groups, if they cannot.
    pub fn fault(&self) -> Option<String> {
        let uneven = self.parts.iter().find(|rows| self.groups == 0 || !rows.is_multiple_of(self.groups));
        uneven.map(|rows| {
            format!("{} cannot be divided into {}", counted(rows, "row"), counted(self.groups, "group"))
        })
    }

    /// Visits the runs of numbers that are contiguous in both: their range in the parameter, and that in the
    /// tensor. Stops with `None` if a visit returns it or an index overflows.
    fn runs(&self, mut visit: impl FnMut(Range<usize>, Range<usize>) -> Option<()>) -> Option<()> {
        // Sizes and numbers of groups come from configs and headers, so every product is checked.
        let total = self.rows()?;
        let own = *self.parts.get(self.which)?;
        let before = self.parts.iter().take(self.which).try_fold(0usize, |n, rows| n.checked_add(*rows))?;
        // A layout of no groups has a fault, which its reader reports; here it must only not divide by
        // zero.
        let groups = self.groups.max(1);
        let (of_group, of_part) = (total.checked_div(groups)?, own.checked_div(groups)?);
        let offset = before.checked_div(groups)?;
        let index = self.stack.map_or(0, |(_, index)| index);
        let base = index.checked_mul(total)?.checked_mul(self.columns)?;
        for group in 0..groups {
            let row = group.checked_mul(of_group)?.checked_add(offset)?;
            let own_row = group.checked_mul(of_part)?;
            if !self.transpose {
                // The rows of a group are adjacent in both, so a whole group is copied at once.
                let length = of_part.checked_mul(self.columns)?;
                let from = base.checked_add(row.checked_mul(self.columns)?)?;
                visit(range(own_row.checked_mul(self.columns)?, length)?, range(from, length)?)?;
                continue;
            }
            // In a transposed tensor no two numbers of a row are adjacent, so each is a run of its own.
            for r in 0..of_part {
                let at = own_row.checked_add(r)?.checked_mul(self.columns)?;
                let from = base.checked_add(row)?.checked_add(r)?;
                for c in 0..self.columns {
                    // In the file a column is an axis of all rows, those of the other parameters included.
                    let from = from.checked_add(c.checked_mul(total)?)?;
                    visit(range(at.checked_add(c)?, 1)?, range(from, 1)?)?;
                }
            }
        }
        Some(())
    }

    /// Takes the parameter's numbers out of the tensor's; `None` if the tensor has another size.
    pub fn take(&self, tensor: &[f32]) -> Option<Vec<f32>> {
        // Equal sizes are checked first, so that a wrong layout moves nothing instead of a part.
        if self.len() != Some(tensor.len()) {
            return None;
        }
        let own = self.parts.get(self.which)?.checked_mul(self.columns)?;
        let mut values = vec![0.0; own];
        self.runs(|at, from| copied(tensor.get(from)?, values.get_mut(at)?))?;
        Some(values)
    }

    /// Puts the parameter's numbers into the tensor's; `false` if the sizes do not fit.
    pub fn put(&self, values: &[f32], tensor: &mut [f32]) -> bool {
        let fits = self.len() == Some(tensor.len());
        fits && self.runs(|at, from| copied(values.get(at)?, tensor.get_mut(from)?)).is_some()
    }
}

fn range(from: usize, length: usize) -> Option<Range<usize>> {
    Some(from..from.checked_add(length)?)
}

/// Copies numbers; `None` if the two slices differ in length.
fn copied(from: &[f32], to: &mut [f32]) -> Option<()> {
    (from.len() == to.len()).then(|| to.copy_from_slice(from))
}
