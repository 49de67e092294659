//! How a trained model is adapted without changing its own weights.

use super::value::Patterns;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{record, slot};
use crate::field::{Context, Positive, Probability, Size};

record! {
    /// Low-rank adaptation: the weight `W` of a projection becomes `W + alpha / rank * B A`, where `A` is
    /// `[rank, in]` and `B` is `[out, rank]` (Hu et al. 2021). `W` stays as it is, `A` starts uniform in
    /// `±1/sqrt(in)` and `B` with zeros. In training both products are computed and added, so that no matrix
    /// of the size of `W` gets a gradient.
    pub struct Lora as "lora" {
        /// The rank of the change.
        rank: Size = value(Size(8));
        /// The factor on the change, before it is divided by the rank.
        alpha: Positive = value(Positive(8.0));
        /// The share of the elements of a projection's input that the change does not see in training.
        dropout: Probability = value(Probability(0.0));
        /// The projections that are adapted, by the path of the layer or of its weight; `*` matches any text.
        on: Patterns = required;
    } check Self::check;
}

impl Lora {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        if !self.on.0.is_empty() {
            return Some(());
        }
        let diagnostic =
            Diagnostic::error(Code::MissingKey, self.places.of("on"), "no projection is adapted");
        cx.report(diagnostic.help("write `on: [\"*.query\", \"*.value\"]`"));
        None
    }

    /// The factor on `B A`.
    pub fn scale(&self) -> f64 {
        *self.alpha / *self.rank as f64
    }

    /// Whether the weight of a projection with this path is adapted.
    pub fn is_on(&self, path: &str) -> bool {
        let layer = path.strip_suffix(".weight");
        self.on.matches(path) || layer.is_some_and(|layer| self.on.matches(layer))
    }
}

slot! {
    /// How a trained model is adapted. Its own weights stay as they are; only what is added to them is
    /// trained, and fresh parameters such as a new head.
    pub enum Adapt as "adapt" {
        /// Low-rank changes of projections.
        "lora" => Lora(Lora),
    }
}

/// The last words of the paths of what is added to a projection.
pub const ADDED: [&str; 2] = ["lora_a", "lora_b"];

/// Whether a path is that of something that was added to a projection.
pub fn is_added(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, last)| ADDED.contains(&last))
}
