//! The recipe: how a spec is trained. A YAML document of its own, as strict as a spec.
//!
//! ```text
//! recipe: 1
//! data: {format: lines, train: names.txt}
//! tokens: {characters: {boundary: "."}}
//! optimizer: {adamw: {learning_rate: 5e-4}}
//! batch: {size: 16}
//! steps: 4000
//! ```
//! A text becomes a [`Recipe`] by [`read`]; [`agree::check`] holds it against the spec it is for, whose
//! head says what the data must hold. Fields, defaults and documentation stand in one table each, so
//! `explain` and the schema know the recipe as they know the spec.
//!
//! Adding an optimizer, a schedule, a data format or a way to make tokens: a record and a row in its slot.

pub mod agree;
pub mod data;
pub mod optimizer;
pub mod run;
pub mod schedule;
pub mod tokens;
pub mod value;

pub use data::{Data, Format};
pub use optimizer::Optimizer;
pub use run::{Batch, Checkpoint, Evaluate, Masking, Metric, Split, Stop};
pub use schedule::Schedule;
pub use tokens::Tokens;
pub use value::{Decay, Location, Locations, Pattern, Patterns};

use crate::diag::{Code, Diagnostic, Sink};
use crate::field::record::record;
use crate::field::{Context, Count, Positive, Probability, Size, Value};
use crate::source::{SourceId, SourceMap};
use crate::spec::explain::{self, Topic};
use crate::spec::schema;
use crate::syntax::merge::settle;
use crate::syntax::set::{self, Setting};
use crate::syntax::tree::Kind;
use crate::syntax::{Notation, parse};

/// The version of the recipe language this program reads.
pub const VERSION: u64 = 1;

/// How many tokens `bytes` has: every byte, and marks to pad, to begin and to end.
pub const BYTES: u64 = 256 + 3;

record! {
    /// How a spec is trained: on what, how, for how long, and what is measured.
    pub struct Recipe as "recipe" {
        /// Version of the language.
        recipe: Size = value(Size(VERSION));
        /// What is learnt from.
        data: Data = required;
        /// How text becomes tokens. Needed unless the input is an image.
        tokens: Option<Tokens> = absent;
        /// How gradients change parameters.
        optimizer: Optimizer = value(Optimizer::usual());
        /// How the learning rate goes over the steps.
        schedule: Schedule = value(Schedule::usual());
        /// How many examples make a step.
        batch: Batch = value(Batch::usual());
        /// How many steps are made. This or `epochs`.
        steps: Option<Size> = absent;
        /// How often the data is gone through. This or `steps`.
        epochs: Option<Size> = absent;
        /// The longest the gradient of all parameters together may be; a longer one is scaled to it.
        clip: Option<Positive> = absent;
        /// Share of the probability that is spread over all classes but the right one (Szegedy et al. 2016).
        label_smoothing: Probability = value(Probability(0.0));
        /// Which tokens are hidden; for the head `mlm`.
        masking: Option<Masking> = absent;
        /// Parameters that are not trained, by path; `*` is any text.
        freeze: Patterns = value(Patterns::default());
        /// When a checkpoint is written, and how many are kept.
        checkpoint: Checkpoint = value(Checkpoint::usual());
        /// The finished model is the mean of this many last checkpoints.
        average: Option<Size> = absent;
        /// What is measured, when, on which part of the data.
        evaluate: Evaluate = value(Evaluate::usual());
        /// When training ends early.
        stop: Option<Stop> = absent;
        /// Everything random comes from it: the start, the order, dropout, masking.
        seed: Count = value(Count(0));
    } check Self::check
}

impl Recipe {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let mut ok = Some(());
        let mut report = |diagnostic: Diagnostic| {
            cx.report(diagnostic);
            ok = None;
        };
        if *self.recipe != VERSION {
            let message =
                format!("this is version {} of recipes; trafoc reads version {VERSION}", *self.recipe);
            let diagnostic = Diagnostic::error(Code::UnknownVersion, self.places.of("recipe"), message);
            report(diagnostic.help(format!("write `recipe: {VERSION}`")));
        }
        match (self.steps, self.epochs) {
            (Some(_), Some(_)) => report(
                Diagnostic::error(
                    Code::KeysExclude,
                    self.places.of("epochs"),
                    "`steps` and `epochs` both say how long training lasts",
                )
                .label(self.places.of("steps"), "the other one")
                .help("keep one of them"),
            ),
            (None, None) => report(
                Diagnostic::error(
                    Code::MissingKey,
                    self.places.whole(),
                    "`recipe` needs `steps` or `epochs`",
                )
                .help("add `steps: ...`, a whole number"),
            ),
            (Some(_), None) | (None, Some(_)) => {}
        }
        if let Some(average) = self.average.filter(|n| **n > *self.checkpoint.keep) {
            let kept = *self.checkpoint.keep;
            let message = format!("the mean of {} checkpoints is asked for, and {kept} are kept", *average);
            let diagnostic = Diagnostic::error(Code::KeysExclude, self.places.of("average"), message);
            // A default stands nowhere.
            let given = Some(self.checkpoint.places.of("keep")).filter(|_| self.places.has("checkpoint"));
            report(
                given
                    .into_iter()
                    .fold(diagnostic, |d, place| d.label(place, format!("keep is {kept} here")))
                    .help(format!("write `checkpoint: {{keep: {}}}`", *average)),
            );
        }
        if let Some(stop) = self.stop.as_ref().filter(|s| !self.evaluate.metrics.contains(&s.metric)) {
            let word = stop.metric.word();
            let message = format!("`stop` waits for `{word}`, which is not measured");
            let place = if stop.places.has("metric") { "metric" } else { "patience" };
            let diagnostic = Diagnostic::error(Code::KeysExclude, stop.places.of(place), message);
            let given = Some(self.evaluate.places.of("metrics")).filter(|_| self.places.has("evaluate"));
            report(
                given
                    .into_iter()
                    .fold(diagnostic, |d, place| d.label(place, "what is measured"))
                    .help(format!("add `{word}` to `evaluate.metrics`")),
            );
        }
        if let Some(stop) = self.stop.as_ref().filter(|_| self.evaluate.every.is_none()) {
            let message = "`stop` waits for evaluations, and the only one is at the end";
            let place = stop.places.of("patience");
            let diagnostic = Diagnostic::error(Code::KeysExclude, place, message);
            report(diagnostic.help("write `evaluate: {every: 100}`, or take `stop` away"));
        }
        ok
    }

    /// How many steps are made, where one epoch has that many.
    pub fn total_steps(&self, steps_of_epoch: u64) -> u64 {
        match (self.steps, self.epochs) {
            (Some(steps), _) => *steps,
            (None, Some(epochs)) => epochs.saturating_mul(steps_of_epoch.max(1)),
            (None, None) => 0,
        }
    }
}

/// What `explain` and the schema say of a recipe as a whole.
const DOC: &str = "How a spec is trained: a YAML document of its own.";

/// Everything there is to explain about recipes.
pub fn catalogue() -> Vec<Topic> {
    explain::catalogue_of("recipe", DOC, &Recipe::fields())
}

/// The JSON schema of a recipe.
pub fn schema() -> serde_json::Value {
    schema::document("recipe", DOC, &Recipe::fields(), true)
}

/// Whether a word is the name of a part, which laying settings over a recipe must know.
pub fn is_part(word: &str) -> bool {
    [Optimizer::PARTS, Schedule::PARTS, Format::PARTS, Tokens::PARTS].iter().any(|p| p.contains(&word))
}

/// Decodes one source, with settings laid over it. `None` if there is any error; the sink says which.
pub fn read(sources: &SourceMap, id: SourceId, settings: &[Setting], sink: &mut Sink) -> Option<Recipe> {
    let tree = parse(sources, id, Notation::Yaml, sink)?;
    if matches!(tree.kind, Kind::Null) {
        let diagnostic = Diagnostic::error(Code::MissingKey, tree.span, "the text holds no recipe");
        sink.push(diagnostic.help("`trafoc explain recipe` lists the keys"));
        return None;
    }
    let mut tree = settle(&tree, sink);
    for setting in settings {
        if let Err(diagnostic) = set::apply(&mut tree, setting, &is_part, sink) {
            sink.push(diagnostic);
        }
    }
    let recipe = Recipe::decode(&tree, &mut Context::new(sources, sink).without_lets());
    recipe.filter(|_| !sink.has_errors())
}
