//! Examples to a batch: marks added, padded to the longest, labels shifted.

use super::batch::{Array, Batch, Labels};
use super::examples::Part;
use super::prepare::Dataset;
use crate::learn::recipe::Split;
use crate::learn::token::Marks;

/// Rows of ids, padded to the longest.
struct Rows {
    pad: u32,
    rows: Vec<Vec<u32>>,
}

impl Rows {
    fn width(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    fn shape(&self) -> [usize; 2] {
        [self.rows.len(), self.width()]
    }

    fn ids(&self) -> Array {
        let width = self.width();
        let padded = |row: &Vec<u32>| {
            let padding = std::iter::repeat_n(i64::from(self.pad), width - row.len());
            row.iter().map(|id| i64::from(*id)).chain(padding).collect::<Vec<i64>>()
        };
        Array::Ints { shape: self.shape().to_vec(), values: self.rows.iter().flat_map(padded).collect() }
    }

    /// 1 for a token, 0 for padding; nothing where there is none.
    fn mask(&self) -> Option<Array> {
        let width = self.width();
        if self.rows.iter().all(|row| row.len() == width) {
            return None;
        }
        let mask = |row: &Vec<u32>| (0..width).map(|i| i64::from(i < row.len())).collect::<Vec<i64>>();
        Some(Array::Ints { shape: self.shape().to_vec(), values: self.rows.iter().flat_map(mask).collect() })
    }

    /// Every row as classes of positions, padding not to be predicted.
    fn labels(&self) -> (Labels, usize) {
        let width = self.width();
        let mut classes = Vec::with_capacity(self.rows.len() * width);
        let mut weights = Vec::with_capacity(classes.capacity());
        for row in &self.rows {
            let padding = width - row.len();
            classes.extend(row.iter().map(|id| i64::from(*id)).chain(std::iter::repeat_n(0, padding)));
            weights.extend(row.iter().map(|_| 1.0).chain(std::iter::repeat_n(0.0, padding)));
        }
        let counted = self.rows.iter().map(Vec::len).sum();
        (Labels::Positions { shape: self.shape(), classes, weights }, counted)
    }
}

/// What is read and what is predicted, one position on.
fn shifted(ids: &[u32], marks: Marks) -> (Vec<u32>, Vec<u32>) {
    let all: Vec<u32> = marks.start.into_iter().chain(ids.iter().copied()).chain(marks.end).collect();
    let read = all.split_last().map_or(&[][..], |(_, rest)| rest).to_vec();
    let predicted = all.split_first().map_or(&[][..], |(_, rest)| rest).to_vec();
    (read, predicted)
}

impl Dataset {
    /// The batch of some examples of a part. The epoch decides which tokens are hidden.
    pub fn collate(&self, split: Split, indices: &[usize], _epoch: u64) -> Batch {
        let mut inputs: Vec<(&'static str, Array)> = Vec::new();
        let marks = self.codebook.marks();
        let (labels, counted, tokens) = match self.part(split) {
            Some(Part::Texts { ids, .. }) => {
                let (read, predicted): (Vec<_>, Vec<_>) =
                    indices.iter().map(|i| shifted(ids.get(*i), marks)).unzip();
                let read = Rows { pad: marks.pad, rows: read };
                let (labels, counted) = Rows { pad: 0, rows: predicted }.labels();
                let [b, t] = read.shape();
                // What is behind a token changes nothing before it, so padding needs no mask.
                inputs.push(("tokens", read.ids()));
                (labels, counted, b * t)
            }
            Some(Part::Pairs { source, target, .. }) => {
                let from = self.codebook.source_marks();
                let sources = indices.iter().map(|i| [source.get(*i), from.end.as_slice()].concat());
                let sources = Rows { pad: from.pad, rows: sources.collect() };
                // A vocabulary without a mark of the start begins with padding, as T5 does.
                let marks = Marks { start: marks.start.or(Some(marks.pad)), ..marks };
                let (read, predicted): (Vec<_>, Vec<_>) =
                    indices.iter().map(|i| shifted(target.get(*i), marks)).unzip();
                let read = Rows { pad: marks.pad, rows: read };
                let (labels, counted) = Rows { pad: 0, rows: predicted }.labels();
                let tokens = [sources.shape(), read.shape()].iter().map(|[b, t]| b * t).sum();
                inputs.push(("source", sources.ids()));
                inputs.extend(sources.mask().map(|mask| ("source_mask", mask)));
                inputs.push(("target", read.ids()));
                (labels, counted, tokens)
            }
            None => (Labels::Classes(Vec::new()), 0, 0),
        };
        Batch { inputs, labels, indices: indices.to_vec(), counted, tokens }
    }
}
