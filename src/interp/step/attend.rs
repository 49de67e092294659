//! Makes the attention of a step: to keys that grow with every position, or to those of an encoder's output, which do not.

use trafoc_kernels::row::Lookup;

use super::compile::{Compiler, Found, Unsupported};
use super::known::Known;
use super::program::{Attend, Bias, Keys, Mask, Size, Work};
use crate::ir::op::Attention;

/// Keys or values of a program, with the number of heads and of features of a head, and how often a head is repeated.
struct Side {
    keys: Keys,
    heads: usize,
    width: usize,
    times: usize,
}

impl Compiler<'_> {
    pub fn attend(&mut self, fields: &Attention, inputs: &[Known]) -> Found<Known> {
        let Attention { scale, softcap, has_mask, has_bias, has_sinks, .. } = fields;
        if fields.is_composed() {
            return Err(Unsupported);
        }
        let (q, dims) = Self::row(inputs.first())?;
        let [1, heads, 1, width] = dims[..] else { return Err(Unsupported) };
        let mut others = inputs.iter().skip(1);
        let mut side = || match others.next() {
            Some(Known::Kept { buffer, span, heads, width, times }) => Ok(Side {
                keys: Keys::Growing { buffer: *buffer, latest: *span },
                heads: heads * times,
                width: *width,
                times: *times,
            }),
            Some(Known::Held { index, heads, width }) => {
                Ok(Side { keys: Keys::Held(*index), heads: *heads, width: *width, times: 1 })
            }
            _ => Err(Unsupported),
        };
        let (k, v) = (side()?, side()?);
        if k.heads != heads || v.heads != heads || k.width != width || k.times != v.times {
            return Err(Unsupported);
        }
        // What constants say of keys has their number only where these grow.
        let grows = match (k.keys, v.keys) {
            (Keys::Growing { .. }, Keys::Growing { .. }) => true,
            (Keys::Held(_), Keys::Held(_)) => false,
            _ => return Err(Unsupported),
        };
        let mask = match has_mask.then(|| others.next()).flatten() {
            Some(Known::Constant { index, grows: true, .. }) if grows => {
                self.program.masks.push(*index);
                Some(Mask::Constant(*index))
            }
            Some(Known::HeldMask { index }) if !grows => Some(Mask::Held(*index)),
            None | Some(Known::Absent) => None,
            Some(_) => return Err(Unsupported),
        };
        let bias = match has_bias.then(|| others.next()).flatten() {
            Some(Known::Constant { index, grows: true, .. }) if grows => {
                self.numbers_of(*index, Size::OfKeys(heads));
                Some(Bias::Constant(*index))
            }
            Some(Known::DistanceBias { table, buckets }) if grows => {
                Some(Bias::OfDistance { table: *table, buckets: *buckets })
            }
            None => None,
            Some(_) => return Err(Unsupported),
        };
        let sinks = match has_sinks.then(|| others.next()).flatten() {
            Some(Known::Parameter { index, .. }) => self.program.parameters.get(*index).cloned(),
            None => None,
            Some(_) => return Err(Unsupported),
        };
        let to = self.slot(heads * v.width);
        let shared = self.share(heads * v.width, v.width);
        self.program.work.push(Work::Attend(Attend {
            q,
            keys: [k.keys, v.keys],
            times: k.times,
            heads,
            scale: **scale as f32,
            softcap: softcap.map(|cap| cap as f32),
            mask,
            bias,
            sinks,
            to: to.slot,
            shared,
        }));
        Ok(Known::Row { span: to, dims: vec![1, heads, 1, v.width] })
    }

    /// The table of biases whose rows the buckets of distances name.
    pub fn distance_table(&mut self, weight: usize, buckets: Option<&Known>) -> Found<Known> {
        let Some(Known::Buckets { index }) = buckets else { return Err(Unsupported) };
        let table = self.weights.matrices.get(weight).ok_or(Unsupported)?.val();
        self.program.tables.push(Lookup::new(table).ok_or(Unsupported)?);
        if !self.program.buckets.contains(index) {
            self.program.buckets.push(*index);
        }
        Ok(Known::DistanceRows { table: self.program.tables.len() - 1, buckets: *index })
    }

    /// The rows of a table of biases, arranged like scores.
    pub fn distance_bias(&mut self, rows: &Known) -> Found<Known> {
        match rows {
            Known::DistanceRows { table, buckets } => {
                Ok(Known::DistanceBias { table: *table, buckets: *buckets })
            }
            _ => Err(Unsupported),
        }
    }
}
