//! The fields of words: the arguments of a call that have names.

use crate::field::record::{record, slot};
use crate::field::rule::Rule;
use crate::field::{Positive, Probability, Real, Size};
use crate::parts::gain::Gain;
use crate::parts::init::Distribution;

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
        /// Whether it is one for all layers of the stack, and not one for each call.
        shared: bool = value(false);
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
    /// `scores(q, k)`: the product of every query with every key.
    pub struct Scores as "scores" {
        /// Factor on the scores; if absent, one divided by the root of the features of a head.
        scale: Option<Positive> = absent;
        /// Positions that a query sees, its own among them; if absent, all that the stack lets it see.
        window: Option<Size> = absent;
    }
}

record! {
    /// Every distance up to one has a number of its own, and farther ones share numbers on a logarithmic scale (He et
    /// al. 2021).
    pub struct Logarithmic as "logarithmic" {
        /// The largest distance with a number of its own.
        exact: Size = required;
        /// The distance that would be the first to have a number of twice `exact`.
        farthest: Size = required;
    } rules [Rule::below("exact", "farthest")];
}

record! {
    /// Positions are in rows, as the patches of an image: `2 * columns - 1` numbers for each row apart, and 1 for each
    /// column (Liu et al. 2021).
    pub struct Grid as "grid" {
        /// The number of positions in a row.
        columns: Size = required;
        /// Whether the first position is a class token and not in the grid. The last three features are then those of
        /// its distance to the others, of theirs to it, and of its own (Bao et al. 2021).
        class_token: bool = value(false);
    }
}

slot! {
    /// How distances are numbered.
    pub enum Distances as "distances" {
        /// Numbers of their own for near ones, shared numbers for far ones
        "logarithmic" => Logarithmic(Logarithmic),
        /// Those in a grid of positions
        "grid" => Grid(Grid),
    }
}

record! {
    /// `relative(x, center)`: for every query and key, the feature of their distance.
    pub struct Relative as "relative" {
        /// How distances are numbered; if absent, every distance has the number `query - key`.
        distances: Option<Distances> = absent;
        /// Whether the features are those of keys; otherwise they are those of queries.
        of_keys: bool = value(false);
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
    /// `with_loss(y, x)`: a tensor, next to which a loss is added in training.
    pub struct WithLoss as "with_loss" {
        /// The factor with which training adds the loss.
        weight: Positive = required;
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
        /// A learned vector for every position
        "positions" => Positions(Nothing),
        /// Rows of a learned table, by their numbers
        "embedding" => Embedding(Nothing),
        /// The numbers 0, 1, ...
        "arange" => Arange(Nothing),
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
        /// The product of every query with every key
        "scores" => Scores(Scores),
        /// For every query and key, the feature of their distance
        "relative" => Relative(Relative),
        /// For every query and key, the number of the key
        "of_keys" => OfKeys(Nothing),
        /// For every query and key, the feature whose number is the key's position
        "at_keys" => AtKeys(Nothing),
        /// Values, each multiplied by its weight and added up
        "weigh" => Weigh(Nothing),
        /// Products of two tensors, added up over some axes
        "einsum" => Einsum(Nothing),
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
        /// 1 for the largest features
        "top_k" => TopK(Nothing),
        /// Parts of which each position has a few
        "experts" => Experts(Nothing),
        /// The mean of each feature over the batch
        "batch_mean" => BatchMean(Nothing),
        /// In training, a loss next to a tensor
        "with_loss" => WithLoss(WithLoss),
    }
}
