//! How gradients change parameters. Defaults are PyTorch's.

use super::value::{Betas, Decay};
use crate::diag::{Code, Diagnostic};
use crate::field::record::{Places, choice, record, slot};
use crate::field::{Context, Positive, Probability, Size};

record! {
    /// Steps by the gradient's running mean over the root of its running square (Kingma and Ba 2015).
    pub struct Adam as "adam" {
        /// Factor on every step.
        learning_rate: Positive = value(Positive(1e-3));
        /// How slowly the mean and the square forget.
        betas: Betas = value(Betas(0.9, 0.999));
        /// Added to the root.
        eps: Positive = value(Positive(1e-8));
        /// The parameter's share that is added to its gradient.
        weight_decay: Probability = value(Probability(0.0));
        /// Other weight decays by parameter path; the last pattern that matches holds.
        decay: Decay = value(Decay::default());
    }
}
record! {
    /// Adam whose weight decay does not pass through the gradient (Loshchilov and Hutter 2019).
    pub struct AdamW as "adamw" {
        /// Factor on every step.
        learning_rate: Positive = value(Positive(1e-3));
        /// How slowly the mean and the square forget.
        betas: Betas = value(Betas(0.9, 0.999));
        /// Added to the root.
        eps: Positive = value(Positive(1e-8));
        /// The parameter's share that is taken away in a step, times the learning rate.
        weight_decay: Probability = value(Probability(0.01));
        /// Other weight decays by parameter path; the last pattern that matches holds.
        decay: Decay = value(Decay::default());
    }
}
record! {
    /// Steps along the gradient, with momentum where asked for.
    pub struct Sgd as "sgd" {
        /// Factor on every step.
        learning_rate: Positive = value(Positive(1e-3));
        /// Share of the last step that is made again.
        momentum: Probability = value(Probability(0.0));
        /// Share by which a gradient counts less beside that momentum.
        dampening: Probability = value(Probability(0.0));
        /// Whether the gradient is taken ahead of the momentum (Sutskever et al. 2013).
        nesterov: bool = value(false);
        /// The parameter's share that is added to its gradient.
        weight_decay: Probability = value(Probability(0.0));
        /// Other weight decays by parameter path; the last pattern that matches holds.
        decay: Decay = value(Decay::default());
    } check Self::check
}

impl Sgd {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let said = [("nesterov", self.nesterov), ("dampening", *self.dampening > 0.0)];
        let idle = said.iter().find(|(_, given)| *given && *self.momentum == 0.0);
        let Some((key, _)) = idle else { return Some(()) };
        let message = format!("without `momentum`, `{key}` does nothing");
        cx.report(
            Diagnostic::error(Code::KeysExclude, self.places.of(key), message).help("add `momentum: 0.9`"),
        );
        None
    }
}

choice! {
    /// How a matrix's shape changes its learning rate.
    pub enum Adjust {
        /// `sqrt(max(1, rows / columns))`
        "original" => Original,
        /// `0.2 sqrt(max(rows, columns))`, so that learning rates of AdamW fit (Liu et al. 2025)
        "match_rms_adamw" => MatchRmsAdamW,
    }
}

record! {
    /// Steps along the orthogonalised momentum of matrices (Jordan et al. 2024). Everything else
    /// (embeddings, norms, biases, the head) is trained by `others`.
    pub struct Muon as "muon" {
        /// Factor on every step.
        learning_rate: Positive = value(Positive(1e-3));
        /// Share of the last step that is made again.
        momentum: Probability = value(Probability(0.95));
        /// Whether the gradient is taken ahead of the momentum.
        nesterov: bool = value(true);
        /// Iterations of Newton and Schulz.
        iterations: Size = value(Size(5));
        /// How a matrix's shape changes its learning rate.
        adjust: Adjust = value(Adjust::Original);
        /// Added to the norm a momentum is divided by.
        eps: Positive = value(Positive(1e-7));
        /// The parameter's share that is taken away in a step, times the learning rate.
        weight_decay: Probability = value(Probability(0.1));
        /// Other weight decays by parameter path; the last pattern that matches holds.
        decay: Decay = value(Decay::default());
        /// How parameters that are no matrices of a block are trained.
        others: AdamW = value(AdamW::usual());
    }
}

impl AdamW {
    /// All defaults.
    pub fn usual() -> Self {
        Self {
            learning_rate: Positive(1e-3),
            betas: Betas(0.9, 0.999),
            eps: Positive(1e-8),
            weight_decay: Probability(0.01),
            decay: Decay::default(),
            places: Places::default(),
        }
    }
}

slot! {
    /// How gradients change parameters.
    pub enum Optimizer as "optimizer" {
        /// Adam without its weight decay set apart.
        "adam" => Adam(Adam),
        /// Adam with its weight decay set apart.
        "adamw" => AdamW(AdamW),
        /// Along the gradient.
        "sgd" => Sgd(Sgd),
        /// Along the orthogonalised momentum.
        "muon" => Muon(Muon),
    }
}

impl Optimizer {
    /// What holds where a recipe says nothing.
    pub fn usual() -> Self {
        Self::AdamW(AdamW::usual())
    }

    /// Factor on every step, before the schedule's.
    pub fn learning_rate(&self) -> f64 {
        match self {
            Self::Adam(o) => *o.learning_rate,
            Self::AdamW(o) => *o.learning_rate,
            Self::Sgd(o) => *o.learning_rate,
            Self::Muon(o) => *o.learning_rate,
        }
    }

    /// Every rule of weight decay.
    pub fn decays(&self) -> Vec<&Decay> {
        match self {
            Self::Adam(o) => vec![&o.decay],
            Self::AdamW(o) => vec![&o.decay],
            Self::Sgd(o) => vec![&o.decay],
            Self::Muon(o) => vec![&o.decay, &o.others.decay],
        }
    }
}
