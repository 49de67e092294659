//! The stack as its parts see it while they are lowered.
//!
//! Parts ask a [`Scope`] for *ambient* values: masks, rotary tables, shared biases. Each is computed once
//! in the stack, however many blocks use it, and passed to them as an argument.

use std::cell::RefCell;
use std::rc::Rc;

use indexmap::IndexMap;

use super::init::InitPlan;
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::{MaskRule, RotaryTable, Sequence, Slopes};
use crate::ir::{Dim, Extent, Layer, ModuleId, Sym, Type, ValueId};

/// A stack whose blocks are being lowered.
pub struct Scope {
    /// The modules built so far.
    pub arena: Arena,
    /// The initial values of parameters, by path.
    pub init: Rc<InitPlan>,
    /// The path of the stack, such as `decoder`.
    pub path: String,
    /// The prefix of module names, such as `Decoder`; empty if the model has only one stack.
    pub prefix: String,
    /// The width of the stack's values.
    pub d_model: Extent,
    /// The sequence the stack works on.
    pub sequence: Sequence,
    /// Whether a query sees no later key, unless a mask says otherwise.
    pub is_causal: bool,
    /// Whether the stack takes a padding mask for its own sequence.
    pub is_padded: bool,
    /// The encoder's output, if there is an encoder.
    pub memory: Option<Memory>,
    /// What the parts have requested so far; empty at first.
    pub ambients: Ambients,
}

/// The ambient values of a stack, in the order of the requests.
#[derive(Default)]
// A cell, because parts request values through a shared reference to their scope. The map keeps the order of
// the requests, so that an ambient is found by its index.
pub struct Ambients(RefCell<IndexMap<Ambient, Computation>>);

impl Ambients {
    /// Whether one of them hides the padding of the stack's own sequence.
    pub fn need_mask(&self) -> bool {
        self.0.borrow().keys().any(|a| matches!(a, Ambient::Mask { padding: Padding::Own, .. }))
    }
}

/// What an ambient value is. Requests for equal ones share one computation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ambient {
    /// The keys that are hidden from each query.
    Mask {
        /// The length of the queries.
        queries: Sequence,
        /// The length of the keys.
        keys: Sequence,
        /// What is hidden in addition to padding.
        rule: MaskRule,
        /// The padding that is hidden.
        padding: Padding,
    },
    /// The sines and cosines of rotary angles.
    Angles {
        /// The sequence whose positions have the angles.
        along: Sequence,
        /// The rule that gives each pair of features its angle.
        rotary: RotaryTable,
    },
    /// ALiBi's bias on the scores.
    Alibi {
        /// The length of queries and keys.
        along: Sequence,
        /// The slopes of the heads.
        slopes: Slopes,
    },
    /// The buckets of relative positions.
    Buckets(Buckets),
    /// A bias for each bucket and head from a table that all layers share.
    BucketBias {
        /// The rule by which distances are put into buckets.
        buckets: Buckets,
        /// The number of query heads, each of which has its own bias.
        heads: u64,
    },
    /// A parameter that all layers share.
    Parameter {
        /// The name of the stack's member.
        name: String,
        /// The shape.
        sizes: Vec<u64>,
    },
}

/// The buckets of relative positions (Raffel et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buckets {
    /// The length of queries and keys.
    pub along: Sequence,
    /// The number of buckets, including those for keys after the query.
    pub buckets: u64,
    /// This distance and all larger ones share a bucket.
    pub max_distance: u64,
    /// Whether keys after the query have separate buckets.
    pub bidirectional: bool,
}

/// The padding that a mask includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Nothing is hidden as padding, as in an image.
    None,
    /// The padding of the stack's own sequence.
    Own,
    /// The padding of the memory.
    Memory,
}

/// The encoder's output as a decoder sees it.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The sequence of the encoder.
    pub sequence: Sequence,
    /// The width of the encoder's output.
    pub width: Extent,
    /// Whether it may contain padding; an image does not.
    pub is_padded: bool,
}

/// The stack's padding masks, from which ambient values are built.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks {
    /// The mask of the stack's own sequence, `[B, K]`.
    pub own: Option<ValueId>,
    /// The mask of the memory, `[B, S]`.
    pub memory: Option<ValueId>,
}

// Kept until all blocks are lowered, since only then is it known which values the stack must compute.
type Build = Box<dyn Fn(&mut Builder, &Masks) -> Result<Vec<ValueId>, Mismatch>>;

/// How an ambient is computed: the names and types of its values, and the nodes.
struct Computation {
    values: Vec<(&'static str, Type)>,
    build: Build,
}

/// Identifies an ambient value of a [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AmbientId(usize);

/// A lowered part: its module, which is called with `x` and then the values of these ambients.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The module of the part.
    pub module: ModuleId,
    /// The ambients it takes after `x` (and the memory).
    pub needs: Vec<AmbientId>,
}

impl Scope {
    /// `[B, T, features]` for this stack's sequence.
    pub fn activations(&self, features: Extent) -> Type {
        Type::float([Dim::sym(Sym::Batch), self.sequence.queries(), Dim::from(features)])
    }

    /// What a part is given: the encoder's output, or a value for each position of this stack.
    pub fn input(&self, is_memory: bool) -> Type {
        match self.memory.as_ref().filter(|_| is_memory) {
            Some(memory) => {
                Type::float([Dim::sym(Sym::Batch), memory.sequence.queries(), Dim::from(memory.width)])
            }
            None => self.activations(self.d_model),
        }
    }

    /// Requests values that are computed once in the stack, for all requests of an equal ambient.
    pub fn ambient(
        &self,
        ambient: Ambient,
        values: Vec<(&'static str, Type)>,
        build: impl Fn(&mut Builder, &Masks) -> Result<Vec<ValueId>, Mismatch> + 'static,
    ) -> AmbientId {
        let mut ambients = self.ambients.0.borrow_mut();
        // The first of equal requests decides how the value is computed; the others would compute the same.
        let entry = ambients.entry(ambient);
        let id = AmbientId(entry.index());
        entry.or_insert_with(|| Computation { values, build: Box::new(build) });
        id
    }

    /// The names and types of an ambient's values.
    pub fn ambient_values(&self, id: AmbientId) -> Vec<(&'static str, Type)> {
        self.ambients.0.borrow().get_index(id.0).map_or(Vec::new(), |(_, a)| a.values.clone())
    }

    /// Adds arguments for these ambients to a module under construction.
    pub fn arguments(&self, b: &mut Builder, needs: &[AmbientId]) -> Vec<Vec<ValueId>> {
        needs
            .iter()
            // An ambient may have several values, as rotary positions have sines and cosines.
            .map(|id| self.ambient_values(*id).into_iter().map(|(name, ty)| b.argument(name, ty)).collect())
            .collect()
    }

    /// Computes all ambients in the stack's own module, and returns the values of each.
    pub fn build_ambients(&self, b: &mut Builder, masks: &Masks) -> Result<Vec<Vec<ValueId>>, Mismatch> {
        self.ambients.0.borrow().values().map(|a| (a.build)(b, masks)).collect()
    }

    /// The values of some ambients, in order, given those of all.
    pub fn select(all: &[Vec<ValueId>], needs: &[AmbientId]) -> Vec<ValueId> {
        needs.iter().flat_map(|id| all.get(id.0).cloned().unwrap_or_default()).collect()
    }

    /// A projection whose initial values follow the spec's rules for that path.
    pub fn linear(&self, path: &str, input: Extent, output: Extent, bias: bool) -> Layer {
        self.init.linear(&format!("{}.{path}", self.path), input, output, bias)
    }

    /// The last projection of a residual branch, whose initial weights are also scaled by `residual` of
    /// `init`.
    pub fn branch_output(&self, path: &str, input: Extent, output: Extent, bias: bool) -> Layer {
        self.init.branch_output(&format!("{}.{path}", self.path), input, output, bias)
    }
}

impl AmbientId {
    /// The position among the stack's ambients.
    pub fn index(self) -> usize {
        self.0
    }
}
