//! Maps the numbers of a parameter to and from a tensor of a file.
//!
//! From outside in, a tensor has axes of length 1, a stack of experts, then rows and columns, which may be
//! transposed. Several parameters can share its rows: one after the other, or alternating in groups, head
//! by head.

/// How the parameters that share a tensor lie in it, and which of them is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The length of the stack, and the parameter's index in it.
    pub stack: Option<(usize, usize)>,
    /// The number of rows of each parameter in the tensor.
    pub parts: Vec<usize>,
    /// The index of this parameter among them.
    pub which: usize,
    /// The number of groups in which the rows alternate.
    pub groups: usize,
    /// The number of columns.
    pub columns: usize,
    /// Whether columns are the outer axis in the file.
    pub transpose: bool,
}

impl Layout {
    /// A tensor that holds this parameter only.
    pub fn whole(rows: usize, columns: usize) -> Self {
        Self { stack: None, parts: vec![rows], which: 0, groups: 1, columns, transpose: false }
    }

    /// Whether the tensor's numbers are the parameter's, in the same order.
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
        uneven.map(|rows| format!("{rows} rows cannot be divided into {} groups", self.groups))
    }

    /// Visits the runs of numbers that are contiguous in both: the index in the parameter, the index in the
    /// tensor, and the length.
    fn runs(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let total = self.rows().unwrap_or(0);
        let own = self.parts.get(self.which).copied().unwrap_or(0);
        let before: usize = self.parts.iter().take(self.which).sum();
        let groups = self.groups.max(1);
        let (of_group, of_part, offset) = (total / groups, own / groups, before / groups);
        let base = self.stack.map_or(0, |(_, index)| index * total * self.columns);
        for group in 0..groups {
            let row = group * of_group + offset;
            if !self.transpose {
                let length = of_part * self.columns;
                visit(group * of_part * self.columns, base + row * self.columns, length);
                continue;
            }
            for r in 0..of_part {
                for c in 0..self.columns {
                    visit((group * of_part + r) * self.columns + c, base + c * total + row + r, 1);
                }
            }
        }
    }

    /// Takes the parameter's numbers out of the tensor's; `None` if the tensor has another size.
    pub fn take(&self, tensor: &[f32]) -> Option<Vec<f32>> {
        if self.len() != Some(tensor.len()) {
            return None;
        }
        let own = self.parts.get(self.which)?.checked_mul(self.columns)?;
        let mut values = vec![0.0; own];
        let mut fits = true;
        self.runs(|at, from, length| {
            match (values.get_mut(at..at + length), tensor.get(from..from + length)) {
                (Some(to), Some(numbers)) => to.copy_from_slice(numbers),
                _ => fits = false,
            }
        });
        fits.then_some(values)
    }

    /// Puts the parameter's numbers into the tensor's; `false` if the sizes do not fit.
    pub fn put(&self, values: &[f32], tensor: &mut [f32]) -> bool {
        let mut fits = self.len() == Some(tensor.len());
        self.runs(|at, from, length| {
            match (values.get(at..at + length), tensor.get_mut(from..from + length)) {
                (Some(numbers), Some(to)) => to.copy_from_slice(numbers),
                _ => fits = false,
            }
        });
        fits
    }
}
