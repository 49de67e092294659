//! A verified graph as a flat list of instructions, which is built once and run many times.
//!
//! Calls and stacks are unrolled, and parameters are referred to by index. Every value has a register, and
//! every read knows whether it is the last one, so that the value can be moved into the op. Values that
//! depend only on lengths (position tables, masks, biases with fixed slopes) are [`Constant`]s, computed
//! once for these lengths. Values that no output needs are left out, for example attention weights.
//!
//! Cached decoding: a node that depends neither on the decoded sequence nor on its length (an encoder, the
//! keys and values of cross attention) belongs to the *memory*. It runs in the first call, and the values
//! that other nodes need remain in the [`Cache`](super::Cache).

mod captures;
mod depends;
mod error;
mod flatten;
mod instruction;
mod registers;
mod segments;
mod unrolled;

pub use captures::{CaptureError, Captures, Reading};
pub use error::PlanError;
pub(super) use instruction::{Action, Body, Constant, Instruction, Operand, Use};
pub use instruction::{Input, Lookup};
pub(super) use segments::{Segment, Segments};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use indexmap::IndexMap;

use super::room::{Room, Values};
use super::weights::{TensorIndex, layout};
use crate::ir::last::for_last_position;
use crate::ir::op::Sequence;
use crate::ir::{Dim, Op, Sym, Type, ValueId, Verified};
use captures::names;
use flatten::{FlatValue, whole};
use registers::{FlatNode, Source, assign};
use unrolled::refuse_too_many;

/// A graph ready to run.
#[derive(Debug)]
pub struct Plan {
    pub(super) inputs: Vec<Input>,
    pub(super) constants: Vec<Constant>,
    pub(super) body: Body,
    /// The names of the results; captured values follow the graph's own.
    pub(super) names: Vec<String>,
    /// The registers of the memory that other nodes read.
    pub(super) kept: Vec<usize>,
    /// The number of buffers that cached decoding needs.
    pub(super) buffers: usize,
    /// The lookups of positions in learned tables.
    pub(super) lookups: Vec<Lookup>,
    /// Whether the model can decode with a cache.
    pub(super) decodes: bool,
    /// Whether some parameter is so large that even the product with one row is divided among threads.
    pub(super) has_large_matrix: bool,
    /// Every shape, with the first value that has it, to check against the limits of a device.
    pub(super) shapes: IndexMap<Vec<Dim>, String>,
    /// Forecasts the memory that runs take, to refuse what does not fit.
    pub(super) room: Room,
    /// The losses of parts, each of which is also a result; empty unless the plan is for training.
    pub(super) losses: Vec<ExtraLoss>,
    /// The segments of the backward pass, by whether each block is one; found when they are first asked for.
    segments: [OnceLock<Segments>; 2],
}

/// A loss of a part that training adds to that of the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraLoss {
    /// Its name, which the same loss of other layers has, too.
    pub name: String,
    /// The name of the result.
    pub result: String,
    /// The factor with which it is added.
    pub weight: f64,
}

impl Plan {
    /// Plans a graph. The results of a run are the outputs of the graph, followed by the captured values.
    ///
    /// # Errors
    /// The graph is too large to run, or no value has the path of a capture.
    pub fn new(graph: &Verified, captures: &Captures) -> Result<Self, PlanError> {
        Self::of(graph, captures)
    }

    /// Plans the training of a model: with the losses of its parts, of which no value is captured.
    ///
    /// # Errors
    /// The graph is too large to run.
    pub fn for_training(graph: &Verified) -> Result<Self, PlanError> {
        Self::of(&graph.for_training(), &Captures::none())
    }

    fn of(graph: &Verified, captures: &Captures) -> Result<Self, PlanError> {
        // A captured value may be one that a fused op does not compute.
        let run = if captures.is_empty() { Cow::Owned(graph.fused()) } else { Cow::Borrowed(graph) };
        let graph = run.as_ref();
        refuse_too_many(graph)?;
        let layout = layout(graph).map_err(PlanError::Weights)?;
        // From this number of multiplications on, the kernels divide a product with packed weights among
        // threads (`WORTH` in `cpu/packed.rs` of the kernels).
        let has_large_matrix = layout.values().any(|slot| slot.shape.iter().product::<usize>() >= 1 << 18);
        let (flat, results) = whole(graph, &layout)?;
        let root = graph.root();
        let mut outputs: IndexMap<String, usize> = IndexMap::new();
        for (id, value) in root.results.iter().zip(results) {
            outputs.insert(root.value(*id).name.clone(), value);
        }
        let mut captured = Vec::new();
        let mut shows_attention = false;
        for (name, value) in captures.resolve(&flat.names, &flat.parts).map_err(PlanError::Capture)? {
            let is_weights = |node: &FlatNode| {
                matches!(node.action, Action::Op(Op::Attention(_))) && node.outputs.get(1) == Some(&value)
            };
            // Weights that are returned are all in memory at once, which attention avoids otherwise.
            shows_attention |= flat.nodes.iter().any(is_weights);
            captured.push(flat.values[value].ty.shape.to_vec());
            // An output that is captured, too, has the same name and is returned once.
            outputs.insert(name, value);
        }
        let mut losses = Vec::new();
        for loss in flat.losses {
            outputs.insert(loss.path.clone(), loss.value);
            losses.push(ExtraLoss { name: loss.name, result: loss.path, weight: loss.weight });
        }
        let shape = |id: &ValueId| root.value(*id).ty.shape.to_vec();
        let returned = root.results.iter().map(shape).collect();
        let for_last = for_last_position(graph, root);
        let cut: Vec<ValueId> = root
            .nodes
            .iter()
            .zip(for_last)
            .filter(|(_, is_for_last)| *is_for_last)
            .flat_map(|(node, _)| node.outputs.iter().copied())
            .collect();
        let one = Dim::of(1u64);
        let last = |dim: &Dim| dim.substitute(Sym::Time, &one);
        let returned_last = root
            .results
            .iter()
            .map(|id| if cut.contains(id) { shape(id).iter().map(last).collect() } else { shape(id) })
            .collect();
        let values = Values { captured, returned, returned_last, shows_attention };
        let room = Room::new(graph, values, captures.reading());

        // Later calls of cached decoding skip the memory, so what other nodes and the outputs read of it has
        // to survive the first call.
        let kept: Vec<usize> = {
            let mut read: Vec<usize> = flat
                .nodes
                .iter()
                .filter(|node| !node.memory)
                .flat_map(|node| &node.inputs)
                .chain(outputs.values().map(|v| &flat.values[*v].from))
                .filter_map(|source| match source {
                    Source::Value(value) => Some(*value),
                    Source::Constant(_) => None,
                })
                .filter(|value| flat.values[*value].depends.is_memory())
                .collect();
            // Each once, and in a fixed order: that of the values in a cache.
            read.sort_unstable();
            read.dedup();
            read
        };
        let mut constants = flat.constants;
        let by_step = flat.nodes.iter().filter(|node| !node.memory).flat_map(|node| &node.inputs);
        // The same for constants: those that only the memory reads are not computed again for every token.
        let mut wanted: Vec<usize> = by_step
            .chain(outputs.values().map(|v| &flat.values[*v].from))
            .filter_map(|source| match source {
                Source::Value(_) => None,
                Source::Constant(constant) => Some(*constant),
            })
            .collect();
        // With a constant, those from which it is computed are needed.
        while let Some(i) = wanted.pop() {
            if !constants[i].by_step {
                constants[i].by_step = true;
                wanted.extend_from_slice(&constants[i].inputs);
            }
        }
        let shapes = shapes(&flat.names, &flat.values);
        let arguments: Vec<usize> = (0..flat.inputs.len()).collect();
        let results: Vec<Source> = outputs.values().map(|v| flat.values[*v].from).collect();
        let (body, kept) = assign(flat.values.len(), &arguments, flat.nodes, &results, &kept);
        Ok(Self {
            inputs: flat.inputs,
            constants,
            body,
            names: outputs.into_keys().collect(),
            kept,
            buffers: flat.buffers,
            lookups: flat.lookups,
            decodes: graph.decodes,
            has_large_matrix,
            shapes,
            room,
            losses,
            segments: Default::default(),
        })
    }

    /// The segments of the backward pass: the whole body, or with `by_block` each block by itself.
    pub(super) fn segments(&self, by_block: bool) -> &Segments {
        let [whole, blocks] = &self.segments;
        let known = if by_block { blocks } else { whole };
        known.get_or_init(|| {
            let place = |name: &String| self.names.iter().position(|other| other == name);
            let is_loss = |name: &&String| self.losses.iter().any(|loss| loss.result == **name);
            let outputs = self.names.iter().filter(|name| !is_loss(name)).filter_map(place);
            // The losses of parts are summed by name, in the order in which a name comes first.
            let names: Vec<&str> = self.losses.iter().map(|loss| loss.name.as_str()).collect();
            let mut losses: Vec<&ExtraLoss> = self.losses.iter().collect();
            losses.sort_by_key(|loss| names.iter().position(|name| *name == loss.name));
            let losses = losses.into_iter().filter_map(|loss| place(&loss.result));
            let ends: Vec<usize> = outputs.chain(losses).collect();
            Segments::new(&self.body, by_block, &ends)
        })
    }

    /// The losses of parts, which training adds to that of the outputs.
    pub fn losses(&self) -> &[ExtraLoss] {
        &self.losses
    }

    /// Whether the model can decode with a cache, without computing past positions again.
    pub fn decodes(&self) -> bool {
        self.decodes
    }

    /// How each matrix of the weights is used, by its index.
    pub(super) fn uses(&self) -> BTreeMap<usize, Use> {
        let mut uses = BTreeMap::new();
        self.body.each(&mut |action| {
            let (index, how) = match action {
                Action::Linear { weight, .. } => (*weight, Use::Linear),
                Action::Embedding { weight } => (*weight, Use::Rows),
                Action::Unembed { weight } => (*weight, Use::Logits),
                Action::Param(TensorIndex { rank: 2, index }) => (*index, Use::Other),
                Action::Param(_)
                | Action::LayerNorm { .. }
                | Action::RmsNorm { .. }
                | Action::Patches { .. }
                | Action::Experts(_)
                | Action::Last
                | Action::Cache { .. }
                | Action::State { .. }
                | Action::Op(_) => return,
            };
            let known = uses.entry(index).or_insert(how);
            *known = known.and(how);
        });
        uses
    }

    /// The most positions of a source, if the model has a learned table of them.
    pub fn most_of_source(&self) -> Option<u64> {
        let tables = self.lookups.iter().filter(|lookup| lookup.along == Sequence::Source);
        tables.map(|lookup| lookup.rows.saturating_sub(lookup.offset)).min()
    }

    /// The inputs of the graph.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The names of the results of a run, in order.
    pub fn outputs(&self) -> &[String] {
        &self.names
    }

    /// The number of instructions in a full run.
    pub fn len(&self) -> usize {
        self.body.instructions.len()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.body.instructions.is_empty()
    }
}

/// Every value that can be captured, by path, in the order of computation. A value that is computed several
/// times (shared layers) has one path each time: `@0`, `@1`, ...
///
/// # Errors
/// The graph is too large to run.
pub fn paths(graph: &Verified) -> Result<Vec<(String, Type)>, PlanError> {
    let layout = layout(graph).map_err(PlanError::Weights)?;
    let (flat, _) = whole(graph, &layout)?;
    let each = flat.names.iter().flat_map(|(path, times)| names(path, times));
    Ok(each.map(|(name, value)| (name, flat.values[value].ty.clone())).collect())
}

/// Every shape that a value has, with the path of the first such value. Attention weights are included even
/// if no output needs them, because burn's graphics backends have no kernel for attention with an explicit
/// scale that does without them.
fn shapes(names: &IndexMap<String, Vec<usize>>, values: &[FlatValue]) -> IndexMap<Vec<Dim>, String> {
    let mut shapes = IndexMap::new();
    for (path, times) in names {
        for value in times {
            let shape = &values[*value].ty.shape;
            if !shapes.contains_key(shape.as_ref()) {
                shapes.insert(shape.to_vec(), format!("`{path}`"));
            }
        }
    }
    shapes
}
