//! What a training step is given: lists of numbers with shapes, named like the graph's inputs.

/// Numbers with a shape, the last dimension's neighbours side by side.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Ids, masks, classes.
    Ints {
        /// Sizes of the dimensions.
        shape: Vec<usize>,
        /// As many as the sizes' product.
        values: Vec<i64>,
    },
    /// Images.
    Floats {
        /// Sizes of the dimensions.
        shape: Vec<usize>,
        /// As many as the sizes' product.
        values: Vec<f32>,
    },
}

/// What the outputs should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// A class for every position, `[B, T]` each: tokens of `lm`, `mlm` and `translate`, classes of `tag`.
    /// A position of weight 0 is not to be predicted, and its class is 0.
    Positions {
        /// `[B, T]`
        shape: [usize; 2],
        /// The right class.
        classes: Vec<i64>,
        /// 1 or 0.
        weights: Vec<f32>,
    },
    /// One class for every example, `[B]`.
    Classes(Vec<i64>),
    /// 1 for every class that holds, `[B, C]`.
    Several {
        /// `[B, C]`
        shape: [usize; 2],
        /// 1 or 0.
        values: Vec<f32>,
    },
    /// First and last token of the answer, `[B]` each.
    Spans {
        /// The first token.
        start: Vec<i64>,
        /// The last token, itself part of the answer.
        end: Vec<i64>,
    },
}

/// Examples that are computed together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The graph's inputs by name, in the graph's order. An optional input that says nothing (a mask
    /// without padding) is absent.
    pub inputs: Vec<(&'static str, Array)>,
    /// What the outputs should be.
    pub labels: Labels,
    /// Which examples of their part these are.
    pub indices: Vec<usize>,
    /// How many predictions count: the loss is their mean.
    pub counted: usize,
    /// Tokens or patches that are read, padding among them; what a step costs.
    pub tokens: usize,
}

impl Batch {
    /// An input by its name.
    pub fn input(&self, name: &str) -> Option<&Array> {
        self.inputs.iter().find(|(n, _)| *n == name).map(|(_, array)| array)
    }
}

impl Array {
    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Ints { shape, .. } | Self::Floats { shape, .. } => shape,
        }
    }
}
