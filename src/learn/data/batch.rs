//! The input of a training step: arrays of numbers with shapes, named like the graph's inputs.

/// Numbers with a shape, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Token ids `[B, T]`, padding masks, token types, languages `[B]`.
    Ints {
        /// The sizes of the dimensions.
        shape: Vec<usize>,
        /// The values; their number is the product of the sizes.
        values: Vec<i64>,
    },
    /// Pixels of images, `[B, C, H, W]`.
    Floats {
        /// The sizes of the dimensions.
        shape: Vec<usize>,
        /// The values; their number is the product of the sizes.
        values: Vec<f32>,
    },
}

/// What the outputs should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// A class for every position, `[B, T]` each: tokens of `lm`, `mlm` and `translate`, classes of `tag`.
    /// A position with weight 0 takes no part in the loss, and its class is 0.
    Positions {
        /// The shape `[B, T]`.
        shape: [usize; 2],
        /// The class that each position should have, row by row.
        classes: Vec<i64>,
        /// 1 if the position takes part in the loss, else 0.
        weights: Vec<f32>,
    },
    /// One class for every example, `[B]`.
    Classes(Vec<i64>),
    /// Several classes for every example, `[B, C]`.
    Several {
        /// The shape `[B, C]`.
        shape: [usize; 2],
        /// 1 if the class applies, else 0.
        values: Vec<f32>,
    },
    /// The first and the last token of each answer, `[B]` each.
    Spans {
        /// The indices of the first tokens.
        start: Vec<i64>,
        /// The indices of the last tokens, which belong to the answers.
        end: Vec<i64>,
    },
    /// The number of pairs of texts: the rows are the first text of each, then the second of each, and no
    /// first text belongs to the second of another pair.
    Alike(usize),
}

/// Examples that are computed together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The graph's inputs by name, in the graph's order. An optional input without information (a mask if
    /// there is no padding) is absent.
    pub inputs: Vec<(&'static str, Array)>,
    /// 1 for a token and 0 for padding, `[B, T]`, where there is padding and none of the inputs says so.
    pub padded: Option<Array>,
    /// What the outputs should be.
    pub labels: Labels,
    /// The indices of these examples in their part of the data.
    pub indices: Vec<usize>,
    /// The number of predictions that take part in the loss, which is their mean.
    pub counted: usize,
    /// The number of tokens or patches that are read, including padding: the cost of a step.
    pub tokens: usize,
}

impl Batch {
    /// The input with this name; `None` if the batch does not have it, such as a mask without padding.
    pub fn input(&self, name: &str) -> Option<&Array> {
        self.inputs.iter().find(|(n, _)| *n == name).map(|(_, array)| array)
    }

    /// The bytes of its numbers.
    pub fn bytes(&self) -> u128 {
        let inputs = self.inputs.iter().map(|(_, array)| array).chain(&self.padded).map(Array::bytes);
        let labels = match &self.labels {
            Labels::Positions { classes, weights, .. } => {
                size_of_val(classes.as_slice()) + size_of_val(weights.as_slice())
            }
            Labels::Classes(classes) => size_of_val(classes.as_slice()),
            Labels::Several { values, .. } => size_of_val(values.as_slice()),
            Labels::Spans { start, end } => size_of_val(start.as_slice()) + size_of_val(end.as_slice()),
            Labels::Alike(_) => 0,
        };
        inputs.sum::<u128>() + labels as u128
    }
}

impl Array {
    /// The sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Ints { shape, .. } | Self::Floats { shape, .. } => shape,
        }
    }

    /// The bytes of its values.
    pub fn bytes(&self) -> u128 {
        let bytes = match self {
            Self::Ints { values, .. } => size_of_val(values.as_slice()),
            Self::Floats { values, .. } => size_of_val(values.as_slice()),
        };
        bytes as u128
    }

    /// The rows, along the first dimension, with these indices, in this order; an index may occur several
    /// times, and one that no row has is left out.
    pub fn select(&self, rows: &[usize]) -> Self {
        fn chosen<T: Copy>(shape: &[usize], values: &[T], rows: &[usize]) -> (Vec<usize>, Vec<T>) {
            let each = shape.iter().skip(1).product::<usize>();
            // Whole rows are copied, whatever the further dimensions are: an image is a row, too.
            let row = |i: &usize| values.get(i.checked_mul(each)?..i.checked_add(1)?.checked_mul(each)?);
            let kept: Vec<&[T]> = rows.iter().filter_map(row).collect();
            let shape = std::iter::once(kept.len()).chain(shape.iter().skip(1).copied()).collect();
            (shape, kept.concat())
        }
        match self {
            Self::Ints { shape, values } => {
                let (shape, values) = chosen(shape, values, rows);
                Self::Ints { shape, values }
            }
            Self::Floats { shape, values } => {
                let (shape, values) = chosen(shape, values, rows);
                Self::Floats { shape, values }
            }
        }
    }
}
