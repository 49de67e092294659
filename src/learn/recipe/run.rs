//! How long, in which portions, what is kept and what is measured.

use crate::diag::{Code, Diagnostic};
use crate::field::record::{Places, choice, record};
use crate::field::{Context, Count, Probability, Size};

record! {
    /// How many examples make a step.
    pub struct Batch as "batch" {
        /// Examples that are computed together.
        size: Size = value(Size(32));
        /// Batches whose gradients are summed before a step; the step is that of one larger batch.
        accumulate: Size = value(Size(1));
        /// Batches' worth of examples that are sorted by length among themselves, so that a batch holds
        /// examples of like length and little padding; 0 for none.
        bucket: Count = value(Count(0));
    }
}

impl Batch {
    /// What holds where a recipe says nothing.
    pub fn usual() -> Self {
        Self { size: Size(32), accumulate: Size(1), bucket: Count(0), places: Places::default() }
    }
}

record! {
    /// When a checkpoint is written, and how many are kept.
    pub struct Checkpoint as "checkpoint" {
        /// Steps from one to the next.
        every: Size = value(Size(500));
        /// How many of the last are kept; the best is kept beside them.
        keep: Size = value(Size(2));
    }
}

impl Checkpoint {
    /// What holds where a recipe says nothing.
    pub fn usual() -> Self {
        Self { every: Size(500), keep: Size(2), places: Places::default() }
    }
}

choice! {
    /// A figure that says how good a model is.
    pub enum Metric {
        /// Cross-entropy in nats, the mean over everything that is predicted
        "loss" => Loss,
        /// `exp(loss)`
        "perplexity" => Perplexity,
        /// Bits per character of the text
        "bits_per_character" => BitsPerCharacter,
        /// Share that is predicted right: of tokens, or of examples
        "accuracy" => Accuracy,
        /// Mean over the classes of the harmonic mean of precision and recall
        "macro_f1" => MacroF1,
        /// BLEU of the whole corpus, 0 to 100 (Papineni et al. 2002), as sacreBLEU counts it
        "bleu" => Bleu,
        /// Mean over sentences of the BLEU of "Dive into Deep Learning" with `k = 2`, 0 to 1
        "sentence_bleu" => SentenceBleu,
        /// Share of examples whose whole output is right
        "exact_match" => ExactMatch,
        /// Overlap in words of the answer with the nearest right one (Rajpurkar et al. 2016)
        "f1" => F1,
    }
}

impl Metric {
    /// As a recipe spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Perplexity => "perplexity",
            Self::BitsPerCharacter => "bits_per_character",
            Self::Accuracy => "accuracy",
            Self::MacroF1 => "macro_f1",
            Self::Bleu => "bleu",
            Self::SentenceBleu => "sentence_bleu",
            Self::ExactMatch => "exact_match",
            Self::F1 => "f1",
        }
    }

    /// Whether less is better.
    pub fn falls(self) -> bool {
        match self {
            Self::Loss | Self::Perplexity | Self::BitsPerCharacter => true,
            Self::Accuracy
            | Self::MacroF1
            | Self::Bleu
            | Self::SentenceBleu
            | Self::ExactMatch
            | Self::F1 => false,
        }
    }
}

choice! {
    /// A part of the data.
    pub enum Split {
        /// What is learnt from
        "train" => Train,
        /// What is held back to choose by
        "validation" => Validation,
        /// What is held back to the end
        "test" => Test,
    }
}

impl Split {
    /// As a recipe spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

record! {
    /// What is measured, when, on which part of the data.
    pub struct Evaluate as "evaluate" {
        /// Steps from one evaluation to the next; at the end alone where absent.
        every: Option<Size> = absent;
        /// What is measured; the first figure says which checkpoint is the best.
        metrics: Vec<Metric> = value(vec![Metric::Loss]);
        /// On which part of the data; `validation` where there is one, else `train`.
        split: Option<Split> = absent;
        /// Examples that are looked at, the first ones of the part; all where absent.
        limit: Option<Size> = absent;
    } check Self::check
}

impl Evaluate {
    /// What holds where a recipe says nothing.
    pub fn usual() -> Self {
        Self { every: None, metrics: vec![Metric::Loss], split: None, limit: None, places: Places::default() }
    }

    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        if !self.metrics.is_empty() {
            return Some(());
        }
        let message = "an evaluation measures nothing";
        let diagnostic = Diagnostic::error(Code::MissingKey, self.places.of("metrics"), message);
        cx.report(diagnostic.help("write `metrics: [loss]`"));
        None
    }
}

record! {
    /// When training ends early: a figure has not become better for some evaluations.
    pub struct Stop as "stop" {
        /// The figure.
        metric: Metric = value(Metric::Loss);
        /// Evaluations in a row without a better one.
        patience: Size = required;
    }
}

record! {
    /// Which tokens are hidden (Devlin et al. 2018). Of those that are chosen, the rest stays as it is.
    pub struct Masking as "masking" {
        /// Share of the tokens that is chosen.
        share: Probability = value(Probability(0.15));
        /// Of these, the share that becomes the mask token.
        hide: Probability = value(Probability(0.8));
        /// Of these, the share that becomes a random token.
        replace: Probability = value(Probability(0.1));
    } check Self::check
}

impl Masking {
    /// What holds where a recipe says nothing.
    pub fn usual() -> Self {
        Self {
            share: Probability(0.15),
            hide: Probability(0.8),
            replace: Probability(0.1),
            places: Places::default(),
        }
    }

    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let sum = *self.hide + *self.replace;
        if *self.share > 0.0 && sum <= 1.0 {
            return Some(());
        }
        let (key, message) = match *self.share > 0.0 {
            true => ("replace", format!("`hide` and `replace` are {sum} together, more than all")),
            false => ("share", "no token would be hidden".to_owned()),
        };
        let diagnostic = Diagnostic::error(Code::OutOfRange, self.places.of(key), message);
        cx.report(diagnostic.help("the usual ones are `{share: 0.15, hide: 0.8, replace: 0.1}`"));
        None
    }
}
