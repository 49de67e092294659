//! The stack as its parts see it while they are lowered.
//!
//! Parts ask a [`Scope`] for *ambient* values: masks, rotary tables, shared biases. Each is computed once
//! in the stack, however many blocks use it, and passed to them as an argument.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::init::InitPlan;
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::Sequence;
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
    ambients: RefCell<Ambients>,
}

#[derive(Default)]
struct Ambients {
    all: Vec<Ambient>,
    by_key: BTreeMap<String, AmbientId>,
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

type Build = Box<dyn Fn(&mut Builder, &Masks) -> Result<Vec<ValueId>, Mismatch>>;

struct Ambient {
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
    /// A stack that has no blocks yet.
    #[expect(clippy::too_many_arguments, reason = "every one is a field")]
    pub fn new(
        arena: Arena,
        init: Rc<InitPlan>,
        path: String,
        prefix: String,
        d_model: Extent,
        sequence: Sequence,
        is_causal: bool,
        is_padded: bool,
        memory: Option<Memory>,
    ) -> Self {
        let ambients = RefCell::default();
        Self { arena, init, path, prefix, d_model, sequence, is_causal, is_padded, memory, ambients }
    }

    /// `[B, T, features]` for this stack's sequence.
    pub fn activations(&self, features: Extent) -> Type {
        Type::float([Dim::sym(Sym::Batch), self.sequence.queries(), Dim::from(features)])
    }

    /// Requests values that are computed once in the stack. Requests with equal keys share one ambient.
    pub fn ambient(
        &self,
        key: String,
        values: Vec<(&'static str, Type)>,
        build: impl Fn(&mut Builder, &Masks) -> Result<Vec<ValueId>, Mismatch> + 'static,
    ) -> AmbientId {
        let mut ambients = self.ambients.borrow_mut();
        if let Some(id) = ambients.by_key.get(&key) {
            return *id;
        }
        let id = AmbientId(ambients.all.len());
        ambients.all.push(Ambient { values, build: Box::new(build) });
        ambients.by_key.insert(key, id);
        id
    }

    /// The names and types of an ambient's values.
    pub fn ambient_values(&self, id: AmbientId) -> Vec<(&'static str, Type)> {
        self.ambients.borrow().all.get(id.0).map_or(Vec::new(), |a| a.values.clone())
    }

    /// Adds arguments for these ambients to a module under construction.
    pub fn arguments(&self, b: &mut Builder, needs: &[AmbientId]) -> Vec<Vec<ValueId>> {
        needs
            .iter()
            .map(|id| self.ambient_values(*id).into_iter().map(|(name, ty)| b.argument(name, ty)).collect())
            .collect()
    }

    /// Computes all ambients in the stack's own module, and returns the values of each.
    pub fn build_ambients(&self, b: &mut Builder, masks: &Masks) -> Result<Vec<Vec<ValueId>>, Mismatch> {
        self.ambients.borrow().all.iter().map(|a| (a.build)(b, masks)).collect()
    }

    /// The values of some ambients, in order, given those of all.
    pub fn select(all: &[Vec<ValueId>], needs: &[AmbientId]) -> Vec<ValueId> {
        needs.iter().flat_map(|id| all.get(id.0).cloned().unwrap_or_default()).collect()
    }

    /// A projection whose start follows the spec's rules for that path.
    pub fn linear(&self, path: &str, input: Extent, output: Extent, bias: bool) -> Layer {
        self.init.linear(&format!("{}.{path}", self.path), input, output, bias)
    }
}

impl AmbientId {
    /// Position among the stack's ambients.
    pub fn index(self) -> usize {
        self.0
    }
}
