//! The words that the equation of a part may call, apart from other parts: layers with parameters, and ops.

use crate::field::record::{record, slot};
use crate::field::value::Field;
use crate::field::{Positive, Probability, Real, Size};
use crate::ir::op::Elementary;
use crate::parts::activation::Activation;
use crate::parts::gain::Gain;
use crate::parts::init::Distribution;
use crate::parts::norm::Norm;
use crate::syntax::expr::Function;

record! {
    /// `linear(x, size)`: a projection with parameters of its own.
    pub struct Linear as "linear" {
        /// Whether there is a bias.
        bias: bool = value(true);
    }
}

record! {
    /// `param(size, ..)`: a tensor of parameters.
    pub struct Param as "param" {
        /// Where it starts; if absent, as the weights of projections.
        init: Option<Distribution> = absent;
    }
}

record! {
    /// `clamp(x)`: every element kept between two bounds.
    pub struct Clamp as "clamp" {
        /// The smallest result.
        min: Option<Real> = absent;
        /// The largest result.
        max: Option<Real> = absent;
    }
}

record! {
    /// `dropout(x)`: in training, elements are zeroed at random.
    pub struct Dropout as "dropout" {
        /// The probability that an element is zeroed.
        p: Probability = required;
    }
}

record! {
    /// `attend(q, k, v)`: softmax attention of every head.
    pub struct Attend as "attend" {
        /// Factor on the scores; if absent, one divided by the root of the features of a head.
        scale: Option<Positive> = absent;
        /// Bound on the scores: `c tanh(score / c)`.
        softcap: Option<Positive> = absent;
        /// Positions that a query sees, its own among them; if absent, all that the stack lets it see.
        window: Option<Size> = absent;
        /// Dropout on the weights.
        dropout: Probability = value(Probability(0.0));
    }
}

record! {
    /// `conv1d(x, width)`: every feature convolved over the last positions.
    pub struct Conv1d as "conv1d" {
        /// Whether there is a bias.
        bias: bool = value(true);
    }
}

record! {
    /// A word without fields.
    pub struct Nothing as "word" {}
}

slot! {
    /// A word of the vocabulary with its fields.
    pub enum Fields as "word" {
        /// A projection: `x W^T + b`
        "linear" => Linear(Linear),
        /// A tensor of parameters
        "param" => Param(Param),
        /// A learned factor for every feature
        "gain" => Gain(Gain),
        /// In training, elements are zeroed at random
        "dropout" => Dropout(Dropout),
        /// `min(max(x, min), max)`
        "clamp" => Clamp(Clamp),
        /// `cap * tanh(x / cap)`
        "softcap" => Softcap(Nothing),
        /// `x / |x|`
        "normalize" => Normalize(Nothing),
        /// Some of the features
        "slice" => Slice(Nothing),
        /// Features one after the other
        "concat" => Concat(Nothing),
        /// `e^x / sum(e^x)` over the features
        "softmax" => Softmax(Nothing),
        /// Features split into heads
        "split" => Split(Nothing),
        /// Heads joined to features
        "merge" => Merge(Nothing),
        /// Every head several times in a row
        "repeat" => Repeat(Nothing),
        /// Heads turned by their positions
        "rotate" => Rotate(Nothing),
        /// Softmax attention of every head
        "attend" => Attend(Attend),
        /// The value some positions earlier
        "shift" => Shift(Nothing),
        /// Every feature convolved over the last positions
        "conv1d" => Conv1d(Conv1d),
        /// The sum over all positions so far
        "cumsum" => Cumsum(Nothing),
        /// A state of keys and values that fades
        "recurrence" => Recurrence(Nothing),
        /// The sum of the features
        "sum" => Sum(Nothing),
        /// The mean of the features
        "mean" => Mean(Nothing),
        /// The largest of the features
        "amax" => Amax(Nothing),
    }
}

/// How many arguments of a kind a word takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Many {
    /// The least number of them.
    pub least: usize,
    /// The most of them.
    pub most: usize,
}

const fn exactly(n: usize) -> Many {
    Many { least: n, most: n }
}

/// A word with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The name in equations.
    pub name: &'static str,
    /// The arguments of an example, with their meanings for names.
    arguments: &'static str,
    /// What it computes, with shapes.
    pub doc: &'static str,
    /// The tensors, which are its first arguments.
    pub tensors: Many,
    /// The numbers, which follow the tensors.
    pub numbers: Many,
    /// Whether it has parameters, so that a call of it can have a name.
    pub has_parameters: bool,
    /// The arguments with names.
    pub fields: fn() -> Vec<Field>,
}

/// The most sizes of a parameter.
const MOST_AXES: usize = 4;

/// The most tensors that are joined at once.
const MOST_JOINED: usize = 16;

const WORDS: &[Word] = &[
    Word {
        name: "linear",
        arguments: "x, size",
        doc: "a projection with a weight and a bias of its own, `[.., D] → [.., size]`",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: true,
        fields: Linear::fields,
    },
    Word {
        name: "param",
        arguments: "size",
        doc: "a tensor of parameters of its own, `[size, ..]`",
        tensors: exactly(0),
        numbers: Many { least: 1, most: MOST_AXES },
        has_parameters: true,
        fields: Param::fields,
    },
    Word {
        name: "gain",
        arguments: "x",
        doc: "a learned factor for every feature, `[.., D] → [.., D]`, which starts at 1e-5 or at `init: 1`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: true,
        fields: Gain::fields,
    },
    Word {
        name: "dropout",
        arguments: "x, p: 0.1",
        doc: "in training, elements zeroed with probability `p` and the others scaled up",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Dropout::fields,
    },
    Word {
        name: "clamp",
        arguments: "x, min: -7, max: 7",
        doc: "`min(max(x, min), max)`, element by element",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Clamp::fields,
    },
    Word {
        name: "softcap",
        arguments: "x, cap",
        doc: "`cap * tanh(x / cap)`, element by element",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "normalize",
        arguments: "x",
        doc: "`x / max(|x|, 1e-12)`: the features scaled to unit length",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "slice",
        arguments: "x, start, size",
        doc: "`size` features, the first of which is number `start`, counted from 0: `[.., D] → [.., size]`",
        tensors: exactly(1),
        numbers: exactly(2),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "concat",
        arguments: "x, y",
        doc: "the features of all, one after the other: `[.., D], [.., E] → [.., D + E]`",
        tensors: Many { least: 2, most: MOST_JOINED },
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "softmax",
        arguments: "x",
        doc: "`e^x / sum(e^x)` over the features, `[.., D] → [.., D]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "split",
        arguments: "x, heads",
        doc: "the features split into heads, `[B, T, H*D] → [B, H, T, D]`; of a vector, `[H*D] → [1, H, 1, D]`",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "merge",
        arguments: "x",
        doc: "the heads joined to features, `[B, H, T, D] → [B, T, H*D]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "repeat",
        arguments: "x, times",
        doc: "every head `times` times in a row, `[B, H, T, D] → [B, H*times, T, D]`",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "rotate",
        arguments: "x",
        doc: "queries or keys turned by the block's rotary positions, `[B, H, T, D] → [B, H, T, D]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "attend",
        arguments: "q, k, v",
        doc: "`softmax(scale q kᵀ) v` in every head, with the stack's mask and the bias of its positions: \
              `[B, H, T, D], [B, G, T, D], [B, G, T, E] → [B, H, T, E]`, where `G` divides `H`",
        tensors: exactly(3),
        numbers: exactly(0),
        has_parameters: false,
        fields: Attend::fields,
    },
    Word {
        name: "shift",
        arguments: "x, n",
        doc: "the value `n` positions earlier, zeros before the first, `[.., T, D] → [.., T, D]`",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "conv1d",
        arguments: "x, width",
        doc: "every feature convolved over its last `width` positions, with weights `[D, 1, width]` and a bias of its \
              own, `[B, T, D] → [B, T, D]`; no position sees a later one",
        tensors: exactly(1),
        numbers: exactly(1),
        has_parameters: true,
        fields: Conv1d::fields,
    },
    Word {
        name: "cumsum",
        arguments: "x",
        doc: "the sum over all positions up to the present one, `[.., T, D] → [.., T, D]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "recurrence",
        arguments: "q, k, v, decay",
        doc: "a state `S` of every head that fades, is added to and is read, `S = decay * S + k vᵀ`, `y = Sᵀ q`: \
              `[B, G, T, N], [B, G, T, N], [B, H, T, P] → [B, H, T, P]`, where `G` divides `H` and every axis of the decay \
              is 1 or that of `[B, H, T, N]`; a fifth tensor `beta`, `[B, H, T, 1]`, gives the delta rule, \
              `S = D + beta k (v - Dᵀ k)ᵀ` with `D = decay * S`",
        tensors: Many { least: 4, most: 5 },
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "sum",
        arguments: "x",
        doc: "the sum of the features, `[.., D] → [.., 1]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "mean",
        arguments: "x",
        doc: "the mean of the features, `[.., D] → [.., 1]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
    Word {
        name: "amax",
        arguments: "x",
        doc: "the largest of the features, `[.., D] → [.., 1]`",
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    },
];

impl Word {
    /// A call of it: `linear(x, size)`.
    pub fn usage(&self) -> String {
        format!("{}({})", self.name, self.arguments)
    }
}

/// Every word: those of the table, the norms, the elementary functions, and the activations.
pub fn words() -> impl Iterator<Item = Word> {
    let norms = Norm::documentation().parts.into_iter().map(|part| Word {
        name: part.name,
        arguments: "x",
        doc: part.doc,
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: true,
        fields: part.fields,
    });
    // The norm that does nothing is the one that has no field.
    let norms = norms.filter(|word| !(word.fields)().is_empty());
    let activations = Activation::WORDS.iter().filter(|word| activation(word.name).is_some());
    let activations = activations.map(|word| Word {
        name: word.name,
        arguments: "x",
        doc: word.doc,
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    });
    let functions = Elementary::ALL.iter().map(|function| Word {
        name: function.name(),
        arguments: "x",
        doc: function.doc(),
        tensors: exactly(1),
        numbers: exactly(0),
        has_parameters: false,
        fields: Nothing::fields,
    });
    WORDS.iter().copied().chain(norms).chain(functions).chain(activations)
}

/// The word of that name.
pub fn word(name: &str) -> Option<Word> {
    let name = Function::of_numbers(name).map_or(name, |function| function.name());
    // Most calls are of words in the table.
    WORDS.iter().copied().find(|word| word.name == name).or_else(|| words().find(|word| word.name == name))
}

/// The elementary function of that name.
pub fn elementary(name: &str) -> Option<Elementary> {
    Elementary::ALL.iter().copied().find(|function| function.name() == name)
}

/// The activation of that name.
pub fn activation(name: &str) -> Option<Activation> {
    let named = |a: &Activation| a.word() == name;
    Activation::ALL.iter().copied().find(named).filter(|a| *a != Activation::None)
}
