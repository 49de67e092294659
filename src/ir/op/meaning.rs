//! What follows from an op: everything except how it is executed.
//!
//! Every op has one implementation of [`Meaning`], in the file of its family. Methods that every op must
//! answer for itself have no default, so that the compiler names those that a new op lacks; a default is the
//! right answer for almost every op.

use std::fmt;

use super::MaskRule;
use super::activation::Activation;
use super::callee::Callee;
use super::forward::Forward;
use super::quantity::Quantity;
use super::training::Training;
use crate::ir::infer::{Mismatch, fail};
use crate::ir::op::Sequence;
use crate::ir::text::thousands;
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, MemberId, Module, Node, Role, Type};

/// The types of an op's results, or why it does not fit its inputs.
pub type Types = Result<Vec<Type>, Mismatch>;

/// Everything that follows from an op.
pub trait Meaning {
    /// The op on one line, its name followed by its attributes: `attention scale=0.125 causal`.
    fn text(&self, module: &Module) -> String;

    /// What it does, in a few words for a learner.
    fn sentence(&self) -> &'static str;

    /// The types of its results.
    ///
    /// # Errors
    /// It does not fit its inputs.
    fn infer(&self, given: &Given<'_>) -> Types;

    /// What running it once costs, by the conventions of [`crate::ir::work`].
    fn work(&self, site: &Site<'_>) -> Work;

    /// How a picture of the model shows it.
    fn picture(&self, site: &Site<'_>) -> Picture;

    /// What it keeps and computes in a training step.
    fn training(&self, site: &Site<'_>) -> Training;

    /// How it computes its result without gradients; `None` where this follows from its notes on training.
    fn forward(&self, site: &Site<'_>) -> Option<Forward> {
        let _ = site;
        None
    }

    /// Whether a kernel computes its result, in memory that other kernels have read for the last time.
    fn is_kernel(&self) -> bool {
        self.layer().is_some()
    }

    /// Those of its numbers that have a name, in the order that readers expect.
    fn quantities(&self) -> Vec<Quantity> {
        Vec::new()
    }

    /// The member that it runs or applies.
    fn member(&self) -> Option<MemberId> {
        None
    }

    /// The layer that it applies, and the activation that follows.
    fn layer(&self) -> Option<(MemberId, Option<Activation>)> {
        None
    }

    /// The member that it needs: the one that it runs, or the one that contains the weight that it reads.
    fn uses(&self) -> Option<MemberId> {
        self.member()
    }

    /// The modules that it runs, each with how often.
    fn callees(&self, site: &Site<'_>) -> Vec<Callee> {
        // The parameter has its plain name for those who implement the method.
        let _ = site;
        Vec::new()
    }

    /// The sequences whose lengths it depends on directly, not through its inputs.
    fn along(&self) -> Vec<Sequence> {
        Vec::new()
    }

    /// The rules of the mask that it computes, where `given` are those of each input.
    fn hides(&self, given: &[Vec<MaskRule>]) -> Vec<MaskRule> {
        // As above, for those who implement the method.
        let _ = given;
        Vec::new()
    }

    /// Whether it computes a mask, positions, or a table of them. It reads no parameter, so equal ops with
    /// the same inputs can be computed once.
    fn is_table(&self) -> bool {
        false
    }

    /// Whether its result shares the memory of its first input, outside of training.
    fn is_view(&self) -> bool {
        false
    }

    /// The optional input without which the result shares the memory of the first one, outside of training.
    fn is_view_without(&self) -> Option<usize> {
        None
    }

    /// Whether each position of its results follows from the same position of its inputs. Where it does not say
    /// so, it is computed for all positions.
    fn is_by_position(&self, site: &Site<'_>) -> bool {
        let _ = site;
        false
    }

    /// What it keeps of earlier positions while the model decodes, as a cache of its own; `None` if nothing. The
    /// op that appends to a cache of keys and values grows it and is not meant here.
    fn state(&self, site: &Site<'_>) -> Option<State> {
        let _ = site;
        None
    }

    /// Whether it keeps something of earlier positions while the model decodes, as [`state`](Self::state) says.
    fn has_state(&self) -> bool {
        false
    }

    /// The factor with which training adds its result to the loss of the outputs; `None` if it is no loss.
    fn loss_weight(&self) -> Option<f64> {
        None
    }

    /// Whether two runs with the same inputs may differ.
    fn is_random(&self) -> bool {
        false
    }

    /// The index of the input that is a padding mask: 1 = keep, 0 = padding.
    fn keeps_by(&self) -> Option<usize> {
        None
    }

    /// The integers it computes, if it computes any without inputs.
    fn indices(&self) -> Option<Indices> {
        None
    }

    /// Whether each of its integers is one of its first input's, or zero.
    fn keeps_indices(&self) -> bool {
        false
    }

    /// Whether its first input is a table, and its second contains the indices of the rows to look up.
    fn looks_up(&self) -> bool {
        false
    }
}

/// What follows from rearranging the first input: it costs nothing, no picture shows it, and a training step
/// passes the gradient on in this way.
// A macro and not defaults of the trait, so that an op that does compute something cannot forget to say so.
macro_rules! rearranges {
    ($passing:expr) => {
        fn work(&self, _: &Site<'_>) -> Work {
            Work::default()
        }
        fn picture(&self, _: &Site<'_>) -> Picture {
            Picture::Pass
        }
        fn training(&self, _: &Site<'_>) -> Training {
            Training::View($passing)
        }
    };
}
pub(super) use rearranges;

/// What follows from another shape of the same elements: it shares the memory of its input, and indices in it
/// are still indices.
macro_rules! reshapes {
    () => {
        rearranges!(Passing::Shared);
        fn is_view(&self) -> bool {
            true
        }
        fn keeps_indices(&self) -> bool {
            true
        }
    };
}
pub(super) use reshapes;

/// What follows from computing a mask, positions, or a table of them: it counts as free, since it is computed
/// once.
macro_rules! tabulates {
    () => {
        fn work(&self, _: &Site<'_>) -> Work {
            Work::default()
        }
        fn training(&self, _: &Site<'_>) -> Training {
            Training::Table
        }
        fn is_table(&self) -> bool {
            true
        }
    };
}
pub(super) use tabulates;

/// An op's inputs, for the rules of types.
pub struct Given<'a> {
    /// The types of the inputs, in the op's order.
    pub inputs: &'a [&'a Type],
    /// The module that owns the members the op names.
    pub module: &'a Module,
    /// All modules so far; children come before parents.
    pub modules: &'a [Module],
}

impl<'a> Given<'a> {
    /// The module with this index.
    ///
    /// # Errors
    /// There is no such module.
    pub fn callee(&self, index: usize) -> Result<&'a Module, Mismatch> {
        self.modules.get(index).ok_or(Mismatch("no such module".into()))
    }
}

/// The type of the result of an op that is computed feature by feature, which is that of its one input.
pub(super) fn one_float(given: &Given<'_>) -> Types {
    match given.inputs {
        [x] if x.dtype == DType::Float && !x.optional => Ok(vec![(*x).clone()]),
        _ => fail("one float tensor expected"),
    }
}

/// A node in its module, with the types of its inputs and results.
pub struct Site<'a> {
    /// The node whose op is asked.
    pub node: &'a Node,
    /// The module whose body contains the node.
    pub module: &'a Module,
    /// The work of the modules that it may call, by index.
    pub measured: &'a [Work],
}

impl<'a> Site<'a> {
    /// The type of an input.
    pub fn input(&self, i: usize) -> Option<&'a Type> {
        self.node.inputs.get(i).map(|id| &self.module.value(*id).ty)
    }

    /// The type of a result.
    pub fn output(&self, i: usize) -> Option<&'a Type> {
        self.node.outputs.get(i).map(|id| &self.module.value(*id).ty)
    }

    /// The number of elements of the first result; 0 if it is a mask or indices.
    pub fn out(&self) -> Dim {
        size(self.output(0))
    }

    /// The work of computing the first result with this number of operations per element.
    pub fn per_element(&self, operations: u64) -> Work {
        let out = self.out();
        Work { elementwise: &out * &Dim::of(operations), ..Work::computed(&out) }
    }
}

/// The number of elements of a float value; 0 for masks and indices.
pub fn size(ty: Option<&Type>) -> Dim {
    match ty {
        Some(Type { dtype: DType::Float, shape, .. }) => shape.iter().cloned().product(),
        // Costs are those of floats: a mask is computed once and shared by all blocks.
        Some(Type { dtype: DType::Int | DType::Bool, .. }) | None => Dim::default(),
    }
}

/// Integers that an op computes without inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indices {
    /// `offset + P, offset + P + 1, ..` for the positions of a sequence.
    Positions {
        /// The sequence, which determines whether they start at `P`.
        along: Sequence,
        /// Added to every position.
        offset: u64,
    },
    /// Numbers from 0 to below this one.
    Below(u64),
}

/// What an op keeps of earlier positions while a model decodes, whose size does not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Elements for one position of one sequence.
    pub of_position: u128,
    /// The number of positions.
    pub positions: u64,
}

impl State {
    /// Elements for one sequence.
    pub fn elements(self) -> u128 {
        self.of_position.saturating_mul(u128::from(self.positions))
    }
}

/// How a picture of the model shows an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// As the member that it runs: a layer, a module, blocks.
    Member,
    /// Not at all: what uses its value is connected to its first input.
    Pass,
    /// By notes on whatever uses its value.
    Notes {
        /// The notes, in the order in which they are shown.
        notes: Vec<Note>,
        /// Whether it leads to a bias of scores. A table in which it is looked up is then not drawn, either.
        is_bias: bool,
    },
    /// By the notes of its inputs on whatever uses its value.
    NotesOfInputs,
    /// As a small step with a label.
    Step(String),
    /// As a sum, with a line from each input.
    Sum,
    /// As a product, with a line from each input.
    Product,
    /// As a box in the colour of a role.
    Box {
        /// The role that determines the colour.
        role: Role,
        /// The text on the box.
        label: &'static str,
        /// The notes below the text.
        notes: Vec<String>,
        /// The number of inputs, counted from the first, that no line connects with the box, such as a table.
        /// If it is larger than the number of inputs, the box itself is drawn next to what it feeds.
        aside: usize,
    },
}

/// A note on whatever uses a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Rotary positions of this number of features.
    Rotary(Extent),
    /// Anything else, in a few words.
    Words(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Rotary(features) => write!(f, "rotary {}", thousands((*features).into())),
            Note::Words(words) => f.write_str(words),
        }
    }
}

impl Picture {
    /// Notes that do not lead to a bias.
    pub fn notes(notes: impl IntoIterator<Item = Note>) -> Self {
        Picture::Notes { notes: notes.into_iter().collect(), is_bias: false }
    }

    /// A step with this label.
    pub fn step(label: impl Into<String>) -> Self {
        Picture::Step(label.into())
    }
}
