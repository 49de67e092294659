//! How gradients change parameters. The defaults are PyTorch's.

use super::value::{Betas, Decay, Pattern, Rates};
use crate::field::record::{choice, record, slot};
use crate::field::rule::{Is, Rule};
use crate::field::{NotNegative, Positive, Share, Size};

record! {
    /// Divides the gradient's running mean by the root of its running square (Kingma and Ba 2015).
    pub struct Adam as "adam" {
        /// The learning rate, before the schedule's factor.
        learning_rate: Positive = value(Positive(1e-3));
        /// Other learning rates by parameter path, before the schedule's factor; the last pattern that
        /// matches applies.
        rates: Rates = value(Rates::default());
        /// The decay rates of the running mean and of the running square.
        betas: Betas = value(Betas(0.9, 0.999));
        /// Added to the root, so that nothing is divided by zero.
        eps: Positive = value(Positive(1e-8));
        /// The share of a parameter that is added to its gradient.
        weight_decay: NotNegative = value(NotNegative(0.0));
        /// Other weight decays by parameter path; the last pattern that matches applies.
        decay: Decay = value(Decay::default());
    }
}
record! {
    defaults;
    /// Adam with decoupled weight decay, which does not pass through the gradient (Loshchilov and Hutter
    /// 2019).
    pub struct AdamW as "adamw" {
        /// The learning rate, before the schedule's factor.
        learning_rate: Positive = value(Positive(1e-3));
        /// Other learning rates by parameter path, before the schedule's factor; the last pattern that
        /// matches applies.
        rates: Rates = value(Rates::default());
        /// The decay rates of the running mean and of the running square.
        betas: Betas = value(Betas(0.9, 0.999));
        /// Added to the root, so that nothing is divided by zero.
        eps: Positive = value(Positive(1e-8));
        /// The share of a parameter that is subtracted in each step, times the learning rate.
        weight_decay: NotNegative = value(NotNegative(0.01));
        /// Other weight decays by parameter path; the last pattern that matches applies.
        decay: Decay = value(Decay::default());
    }
}
record! {
    /// Stochastic gradient descent, optionally with momentum.
    pub struct Sgd as "sgd" {
        /// The learning rate, before the schedule's factor.
        learning_rate: Positive = value(Positive(1e-3));
        /// Other learning rates by parameter path, before the schedule's factor; the last pattern that
        /// matches applies.
        rates: Rates = value(Rates::default());
        /// The factor on the running sum of gradients (momentum) in each step.
        momentum: Share = value(Share(0.0));
        /// The share by which a new gradient is reduced as it is added to the momentum.
        dampening: Share = value(Share(0.0));
        /// Whether Nesterov's momentum is used, which looks one step ahead (Sutskever et al. 2013).
        nesterov: bool = value(false);
        /// The share of a parameter that is added to its gradient.
        weight_decay: NotNegative = value(NotNegative(0.0));
        /// Other weight decays by parameter path; the last pattern that matches applies.
        decay: Decay = value(Decay::default());
    } rules [of_momentum("nesterov", Is::True), of_momentum("dampening", Is::NotZero)];
}

/// A field about the momentum, which has no effect without one.
const fn of_momentum(field: &'static str, is: Is) -> Rule {
    Rule::excludes((field, is), ("momentum", Is::Zero), "without `momentum`, `{field}` has no effect")
        .label("no momentum here")
        .help("add `momentum: 0.9`")
}

choice! {
    /// How a matrix's shape scales its learning rate.
    pub enum Adjust {
        /// `sqrt(max(1, rows / columns))`
        "original" => Original,
        /// `0.2 sqrt(max(rows, columns))`, so that learning rates for AdamW can be used (Liu et al. 2025)
        "match_rms_adamw" => MatchRmsAdamW,
    }
}

record! {
    /// Updates matrices with their orthogonalised momentum (Jordan et al. 2024). All other parameters
    /// (embeddings, norms, biases, the head) are trained by `others`.
    pub struct Muon as "muon" {
        /// The learning rate, before the schedule's factor.
        learning_rate: Positive = value(Positive(1e-3));
        /// Other learning rates by parameter path, before the schedule's factor; the last pattern that
        /// matches applies.
        rates: Rates = value(Rates::default());
        /// The factor on the running sum of gradients (momentum) in each step.
        momentum: Share = value(Share(0.95));
        /// Whether Nesterov's momentum is used, which looks one step ahead.
        nesterov: bool = value(true);
        /// The number of Newton-Schulz iterations.
        iterations: Size = value(Size(5));
        /// How a matrix's shape scales its learning rate.
        adjust: Adjust = value(Adjust::Original);
        /// The smallest norm by which the momentum is divided.
        eps: Positive = value(Positive(1e-7));
        /// The share of a parameter that is subtracted in each step, times the learning rate.
        weight_decay: NotNegative = value(NotNegative(0.1));
        /// Other weight decays by parameter path; the last pattern that matches applies.
        decay: Decay = value(Decay::default());
        /// How parameters that are not matrices of a block are trained.
        others: AdamW = value(AdamW::usual());
    }
}

slot! {
    /// How gradients change parameters.
    pub enum Optimizer as "optimizer" {
        /// Adam; weight decay is added to the gradient.
        "adam" => Adam(Adam),
        /// Adam with decoupled weight decay.
        "adamw" => AdamW(AdamW),
        /// Stochastic gradient descent, optionally with momentum.
        "sgd" => Sgd(Sgd),
        /// Orthogonalised momentum for matrices.
        "muon" => Muon(Muon),
    }
}

impl Optimizer {
    /// The optimizer of a recipe that names none.
    pub fn usual() -> Self {
        Self::AdamW(AdamW::usual())
    }

    /// The learning rate, before the schedule's factor.
    pub fn learning_rate(&self) -> f64 {
        match self {
            Self::Adam(o) => *o.learning_rate,
            Self::AdamW(o) => *o.learning_rate,
            Self::Sgd(o) => *o.learning_rate,
            Self::Muon(o) => *o.learning_rate,
        }
    }

    /// The rules of weight decay; `muon` has a second one for its other parameters.
    pub fn decays(&self) -> Vec<&Decay> {
        match self {
            Self::Adam(o) => vec![&o.decay],
            Self::AdamW(o) => vec![&o.decay],
            Self::Sgd(o) => vec![&o.decay],
            Self::Muon(o) => vec![&o.decay, &o.others.decay],
        }
    }

    /// The learning rates by path; `muon` has a second list for its other parameters.
    pub fn rates(&self) -> Vec<&Rates> {
        match self {
            Self::Adam(o) => vec![&o.rates],
            Self::AdamW(o) => vec![&o.rates],
            Self::Sgd(o) => vec![&o.rates],
            Self::Muon(o) => vec![&o.rates, &o.others.rates],
        }
    }

    /// All patterns of parameter paths.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        let decays = self.decays().into_iter().flat_map(|decay| decay.patterns());
        decays.chain(self.rates().into_iter().flat_map(|rates| rates.patterns()))
    }
}
