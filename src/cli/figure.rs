//! A metric in JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A metric by its name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Figure {
    /// The name, as recipes write it.
    pub metric: &'static str,
    /// The value; null if it is not finite.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
}

/// The metrics of an evaluation under the words that recipes use for them, in the recipe's order.
#[cfg(feature = "interp")]
pub fn named(figures: &crate::learn::evaluate::Figures) -> Vec<Figure> {
    figures.iter().map(|(metric, value)| Figure { metric: metric.word(), value: *value }).collect()
}
