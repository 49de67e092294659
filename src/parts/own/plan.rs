//! A use of a defined part: the values of its fields, and its equation with every size known.

use std::sync::Arc;

use super::fields::Fields;
use crate::field::Places;
use crate::field::definition::Definition;
use crate::field::record::{encode_part, entry};
use crate::field::value::{Value, plain};
use crate::ir::Extent;
use crate::ir::op::{Axes, Elementary};
use crate::parts::Norm;
use crate::parts::Position;
use crate::parts::activation::Activation;
use crate::source::Span;
use crate::syntax::expr::Number;
use crate::syntax::tree::Node;

/// A part that the spec defines, with a value for each of its fields.
#[derive(Clone, Debug)]
pub struct OwnPart {
    /// What the part is.
    pub definition: Arc<Definition>,
    /// The value of every field, in the order of the definition.
    pub values: Vec<(String, FieldValue)>,
    /// The fields whose values are their defaults, whether they are given or not.
    pub follows: Vec<String>,
    /// The places of the part and of the fields that are given.
    pub places: Places,
    /// The tensors that get names, in order.
    pub steps: Vec<Step>,
    /// What the part returns, computed from inputs and steps.
    pub result: Flow,
}

/// What follows from the definition and the values takes no part in equality.
impl PartialEq for OwnPart {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.definition == other.definition
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum FieldValue {
    /// A number, exact where it can be, so that the normal form writes what was meant.
    Number(Number),
    /// `true` or `false`
    Truth(bool),
    /// An activation.
    Activation(Activation),
}

impl PartialEq for FieldValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // A root is a float, and so is its decimal form when that is read as a ratio.
            (FieldValue::Number(a), FieldValue::Number(b)) => a.to_f64() == b.to_f64(),
            (FieldValue::Truth(a), FieldValue::Truth(b)) => a == b,
            (FieldValue::Activation(a), FieldValue::Activation(b)) => a == b,
            (FieldValue::Number(_) | FieldValue::Truth(_) | FieldValue::Activation(_), _) => false,
        }
    }
}

impl FieldValue {
    /// The value as a spec writes it.
    pub fn encode(&self) -> Node {
        match self {
            FieldValue::Number(number) => plain(number.to_string()),
            FieldValue::Truth(truth) => truth.encode(),
            FieldValue::Activation(activation) => activation.encode(),
        }
    }
}

/// A tensor that gets a name.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name as the author writes it; a later step may give it another value.
    pub target: String,
    /// What is computed, from inputs and earlier steps.
    pub value: Flow,
}

/// A term whose value is a tensor, with its place.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The form and the operands.
    pub kind: FlowKind,
    /// The place in the definition.
    pub span: Span,
}

/// The forms of a tensor.
#[derive(Clone, Debug)]
pub enum FlowKind {
    /// An input, or the last step of this name before it.
    Name(String),
    /// A number instead of a tensor, the same for every element.
    Number(f64),
    /// The sum of two or more tensors.
    Sum(Vec<Flow>),
    /// The elementwise product of two or more tensors.
    Product(Vec<Flow>),
    /// A tensor times a number.
    Scale(f64, Box<Flow>),
    /// A tensor plus a number.
    Shift(f64, Box<Flow>),
    /// One tensor divided by the other.
    Quotient(Box<[Flow; 2]>),
    /// An elementary function.
    Elementary(Elementary, Box<Flow>),
    /// An activation.
    Activate(Activation, Box<Flow>),
    /// A norm, with the name of its member.
    Norm(Box<Norm>, String, Box<Flow>),
    /// Another word of the vocabulary.
    Word(Box<WordCall>),
    /// Another part.
    Part(Box<PartCall>),
}

/// A call of a word of the vocabulary.
#[derive(Clone, Debug)]
pub struct WordCall {
    /// The word with its fields.
    pub fields: Fields,
    /// The name of the layer or parameter; empty if it has none.
    pub member: String,
    /// The tensors that it is given.
    pub inputs: Vec<Flow>,
    /// The numbers that it is given.
    pub numbers: Vec<Amount>,
    /// The axes that a product runs over, with their place, for the word that has them.
    pub axes: Option<(Axes, Span)>,
    /// Whether the value, apart from factors and dropout, is the result of the part: the last projection of a
    /// residual branch.
    pub is_output: bool,
}

/// A call of another part.
#[derive(Clone, Debug)]
pub struct PartCall {
    /// The part with its fields.
    pub part: OwnPart,
    /// The name of the member.
    pub member: String,
    /// The tensors that it is given.
    pub inputs: Vec<Flow>,
}

/// A number that is an argument.
#[derive(Clone, Debug)]
pub struct Amount {
    /// The value.
    pub number: Number,
    /// The value as a size with the names in it, if it is whole and not too large.
    pub size: Option<Extent>,
    /// The text of the argument, such as `4 * d_model`, for messages.
    pub text: String,
    /// Where the names in it have their values, in words.
    pub names: Vec<(Span, String)>,
    /// The place of the argument.
    pub span: Span,
}

impl WordCall {
    /// Whether it is a parameter that all layers of a stack share.
    fn is_shared(&self) -> bool {
        matches!(&self.fields, Fields::Param(param) if param.shared)
    }
}

/// Whether a product may add up over positions, which are the last axis but one. Its tensors are known only where it is
/// lowered, so the axes may also be others of the same places.
fn may_sum_positions(axes: &Axes) -> bool {
    let place = |letters: &str, c| letters.chars().rev().position(|other| other == c);
    let are_positions = |c: char| {
        let places = [&axes.left, &axes.right].map(|letters| (place(letters, c), letters.chars().count()));
        let found: Vec<(usize, usize)> =
            places.into_iter().filter_map(|(place, rank)| Some((place?, rank))).collect();
        found.iter().all(|(place, _)| *place == 1) && found.iter().any(|(_, rank)| *rank > 2)
    };
    axes.summed().any(are_positions)
}

impl Flow {
    /// The first word in it that passes a test, those of called parts included.
    fn word(&self, test: &dyn Fn(&WordCall) -> bool) -> Option<&'static str> {
        let first = |all: &[Flow]| all.iter().find_map(|flow| flow.word(test));
        match &self.kind {
            FlowKind::Name(_) | FlowKind::Number(_) => None,
            FlowKind::Sum(all) | FlowKind::Product(all) => first(all),
            FlowKind::Quotient(both) => first(both.as_slice()),
            FlowKind::Scale(_, inner)
            | FlowKind::Shift(_, inner)
            | FlowKind::Elementary(_, inner)
            | FlowKind::Activate(_, inner)
            | FlowKind::Norm(_, _, inner) => inner.word(test),
            FlowKind::Word(call) if test(call) => Some(call.fields.part()),
            FlowKind::Word(call) => first(&call.inputs),
            FlowKind::Part(call) => call.part.word(test).or_else(|| first(&call.inputs)),
        }
    }
}

/// The input that is the encoder's output, as in the equation of a block.
pub const MEMORY: &str = "memory";

impl OwnPart {
    /// Whether one of its inputs is the encoder's output.
    pub fn reads_memory(&self) -> bool {
        self.definition.inputs.iter().any(|(name, _)| name == MEMORY)
    }

    /// The name of the part.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// A word that it calls, itself or in other parts, that needs the values of a stack, such as its masks; `None`
    /// if there is none.
    pub fn of_stack(&self) -> Option<&'static str> {
        let is_one = |call: &WordCall| {
            matches!(
                &call.fields,
                Fields::Attend(_)
                    | Fields::Rotate(_)
                    | Fields::Shift(_)
                    | Fields::Conv1d(_)
                    | Fields::Cumsum(_)
                    | Fields::Recurrence(_)
                    | Fields::Scores(_)
                    | Fields::Relative(_)
                    | Fields::Weigh(_)
                    | Fields::OfKeys(_)
                    | Fields::AtKeys(_)
                    | Fields::Positions(_)
            ) || call.is_shared()
                || call.axes.as_ref().is_some_and(|(axes, _)| may_sum_positions(axes))
        };
        self.word(&is_one)
    }

    /// Why a slot that gives it each position by itself cannot hold it; `None` if it can.
    pub fn needs_stack(&self, slot: &str) -> Option<String> {
        let (name, word) = (self.name(), self.of_stack()?);
        let shares = self.word(&WordCall::is_shared).is_some();
        Some(if shares {
            format!(
                "`{name}` has a parameter that all layers of a stack share, but a part in `{slot}` does not \
                    know the stack"
            )
        } else {
            format!(
                "`{name}` calls `{word}`, which needs a whole sequence, but a part in `{slot}` sees each \
                    position by itself"
            )
        })
    }

    /// A word of losses that it calls, itself or in other parts; `None` if there is none.
    pub fn of_losses(&self) -> Option<&'static str> {
        self.word(&|call| matches!(call.fields, Fields::WithLoss(_) | Fields::BatchMean(_)))
    }

    /// Whether it makes a difference which positions its block has.
    pub fn has_positions(&self, position: &Position) -> bool {
        let is_user = |call: &WordCall| match position {
            Position::Rotary(_) => matches!(call.fields, Fields::Rotate(_)),
            Position::Alibi(_) | Position::T5(_) => {
                matches!(call.fields, Fields::Attend(_) | Fields::Scores(_))
            }
            Position::None(_) | Position::Learned(_) | Position::Sinusoidal(_) => false,
        };
        self.word(&is_user).is_some()
    }

    fn word(&self, test: &dyn Fn(&WordCall) -> bool) -> Option<&'static str> {
        self.steps.iter().map(|step| &step.value).chain([&self.result]).find_map(|flow| flow.word(test))
    }

    /// The fields with their values.
    pub fn fields(&self) -> Node {
        let entries = self.values.iter().map(|(name, value)| entry(name, value.encode())).collect();
        Node::map(entries, Span::default())
    }

    /// The part as a slot has it: its name with every field.
    pub fn encode(&self) -> Node {
        encode_part(self.name(), self.fields())
    }
}
