//! How long training lasts, the batches, the checkpoints that are kept and the metrics.

use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record};
use crate::field::{Context, Count, Probability, Size};

record! {
    defaults;
    /// How many examples make up a step.
    pub struct Batch as "batch" {
        /// The number of examples in a batch.
        size: Size = value(Size(32));
        /// How many batches' gradients are summed before a step; the result is that of one larger batch.
        accumulate: Size = value(Size(1));
        /// How many batches of examples are sorted by length together, so that a batch has examples of
        /// similar length and little padding; 0 turns this off.
        bucket: Count = value(Count(0));
    }
}

record! {
    defaults;
    /// When checkpoints are written, and how many are kept.
    pub struct Checkpoint as "checkpoint" {
        /// The number of steps between two checkpoints.
        every: Size = value(Size(500));
        /// How many of the last checkpoints are kept, in addition to the best one.
        keep: Size = value(Size(2));
    }
}

choice! {
    /// How the losses of a step are combined into the number whose gradient is computed.
    pub enum Reduction {
        /// Their mean over all predictions
        "mean" => Mean,
        /// Their sum: the gradient grows with the batch, so it needs a smaller learning rate
        "sum" => Sum,
    }
}

choice! {
    /// What a training step computes again in its backward pass, instead of keeping it in memory. The numbers
    /// are the same.
    pub enum Recompute {
        /// Nothing
        "none" => None,
        /// Every block: its input is kept, and its forward pass is computed again (Chen et al. 2016)
        "blocks" => Blocks,
    }
}

choice! {
    /// A metric: how good a model is.
    pub enum Metric {
        /// Cross-entropy in nats, the mean over all predictions
        "loss" => Loss,
        /// `exp(loss)`
        "perplexity" => Perplexity,
        /// Bits per character of the text
        "bits_per_character" => BitsPerCharacter,
        /// The share of correct predictions, of tokens or of examples
        "accuracy" => Accuracy,
        /// The mean over the classes of F1, the harmonic mean of precision and recall
        "macro_f1" => MacroF1,
        /// BLEU of the whole corpus, 0 to 100 (Papineni et al. 2002), as sacreBLEU computes it
        "bleu" => Bleu,
        /// BLEU of the whole corpus, over words separated by spaces, including their punctuation
        "word_bleu" => WordBleu,
        /// The mean over sentences of the BLEU of "Dive into Deep Learning" with `k = 2`, 0 to 1
        "sentence_bleu" => SentenceBleu,
        /// The share of examples whose whole output is correct
        "exact_match" => ExactMatch,
        /// F1 of the words of the answer and of the closest reference answer (Rajpurkar et al. 2016)
        "f1" => F1,
    }
}

impl Metric {
    /// The word for the metric in a recipe.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Perplexity => "perplexity",
            Self::BitsPerCharacter => "bits_per_character",
            Self::Accuracy => "accuracy",
            Self::MacroF1 => "macro_f1",
            Self::Bleu => "bleu",
            Self::WordBleu => "word_bleu",
            Self::SentenceBleu => "sentence_bleu",
            Self::ExactMatch => "exact_match",
            Self::F1 => "f1",
        }
    }

    /// The metric with this word in a recipe, if there is one.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| metric.word() == word)
    }

    /// Whether a smaller value is better.
    pub fn falls(self) -> bool {
        match self {
            Self::Loss | Self::Perplexity | Self::BitsPerCharacter => true,
            Self::Accuracy
            | Self::MacroF1
            | Self::Bleu
            | Self::WordBleu
            | Self::SentenceBleu
            | Self::ExactMatch
            | Self::F1 => false,
        }
    }
}

choice! {
    /// A part of the data.
    pub enum Split {
        /// The training data
        "train" => Train,
        /// The validation data, by which the best checkpoint is chosen
        "validation" => Validation,
        /// The data for the final test
        "test" => Test,
    }
}

impl Split {
    /// The word for the part in a recipe.
    pub fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

record! {
    defaults;
    /// Which metrics are computed, when, and on which part of the data.
    pub struct Evaluate as "evaluate" {
        /// The number of steps between two evaluations; by default there is one, at the end.
        every: Option<Size> = absent;
        /// The metrics; the first one decides which checkpoint is the best.
        metrics: Vec<Metric> = value(vec![Metric::Loss]);
        /// The part of the data; by default `validation` if there is any, else `train`.
        split: Option<Split> = absent;
        /// How many examples are evaluated: the first ones of the part or, if they are images, spread over
        /// it; by default all.
        limit: Option<Size> = absent;
    } check Self::check;
}

impl Checkpoint {
    /// The most checkpoints that exist at a time in a run of `steps` steps: those that are kept, the best one, and the
    /// one that is being written.
    pub fn most(&self, evaluate: &Evaluate, steps: u64) -> u64 {
        // A checkpoint is also written after every evaluation that is the best so far, which may be each.
        let (own, other) = (*self.every, evaluate.every.map_or(*self.every, |every| *every));
        // No step is a multiple of both below their least common multiple.
        let both = steps / own.max(1) / (other.max(1) / divisor(own, other));
        let regular = (steps / own.max(1)).saturating_add(steps / other.max(1)) - both;
        let is_regular = [own, other].iter().any(|every| steps.is_multiple_of(*every));
        // There is always one after the last step.
        regular.saturating_add(u64::from(!is_regular)).min((*self.keep).saturating_add(2))
    }
}

/// The greatest common divisor, at least 1.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { divisor(b, a % b) }
}

impl Evaluate {
    /// The number of evaluations up to `step` in a run of `steps` steps. There is always one after the last
    /// step.
    pub fn made_until(&self, step: u64, steps: u64) -> u64 {
        let at_end = u64::from(step >= steps);
        match self.every.as_ref() {
            // The evaluation after the last step is then one of the regular ones.
            Some(every) if at_end == 1 && steps.is_multiple_of(**every) => steps / **every,
            // At the end there is one more, because the interval does not divide the number of steps.
            Some(every) => step.min(steps) / **every + at_end,
            None => at_end,
        }
    }

    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        if !self.metrics.is_empty() {
            return Some(());
        }
        let message = "the evaluation has no metrics";
        let diagnostic = Diagnostic::error(Code::MissingKey, self.places.of("metrics"), message);
        cx.report(diagnostic.help("write `metrics: [loss]`"));
        None
    }
}

record! {
    /// Ends training early when a metric has not improved for some evaluations.
    pub struct Stop as "stop" {
        /// The metric that must improve.
        metric: Metric = value(Metric::Loss);
        /// The number of evaluations in a row without an improvement after which training ends.
        patience: Size = required;
    }
}

record! {
    defaults;
    /// Which tokens are masked (Devlin et al. 2018). Selected tokens that are neither hidden nor replaced
    /// stay as they are.
    pub struct Masking as "masking" {
        /// The share of the tokens that are selected.
        share: Probability = value(Probability(0.15));
        /// The share of the selected tokens that become the mask token.
        hide: Probability = value(Probability(0.8));
        /// The share of the selected tokens that become a random token.
        replace: Probability = value(Probability(0.1));
    } check Self::check;
}

impl Masking {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let sum = *self.hide + *self.replace;
        // Of shares that add up to 1, the sum of the floats can be a little more.
        if *self.share > 0.0 && sum <= 1.0 + f64::EPSILON {
            return Some(());
        }
        let usual = "the usual values are `{share: 0.15, hide: 0.8, replace: 0.1}`".to_owned();
        let (key, message, help) = match (*self.share > 0.0, self.places.has("replace")) {
            (true, true) => {
                ("replace", format!("`hide` and `replace` add up to {sum}, which is more than 1"), usual)
            }
            (true, false) => {
                let (hide, replace) = (*self.hide, *self.replace);
                let rest = format!("`replace` is {replace} unless it is given");
                let message = format!("with `hide: {hide}` no {replace} is left for `replace`; {rest}");
                ("hide", message, format!("add `replace: 0`, or at most {:.3}", 1.0 - hide))
            }
            (false, _) => ("share", "no token would be masked".to_owned(), usual),
        };
        cx.report(Diagnostic::error(Code::OutOfRange, self.places.of(key), message).help(help));
        None
    }
}
