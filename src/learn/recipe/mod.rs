//! The recipe, which describes how a spec is trained. It is a separate YAML document, checked as strictly as
//! a spec.
//!
//! ```text
//! recipe: 1
//! data: {format: lines, train: names.txt}
//! tokens: {characters: {boundary: "."}}
//! optimizer: {adamw: {learning_rate: 5e-4}}
//! batch: {size: 16}
//! steps: 4000
//! ```
//! [`read`] turns a text into a [`Recipe`]; [`agree::check`] compares it with the spec it is for, whose
//! head determines what the data must contain. Each part's fields, defaults and documentation are in one
//! table, from which `explain` and the schema are derived, as they are for the spec.
//!
//! To add an optimizer, a schedule, a data format or a tokenizer, add a record and a row in its slot.

pub mod adapt;
pub mod agree;
pub mod data;
pub mod optimizer;
pub mod reach;
pub mod run;
pub mod schedule;
pub mod start;
pub mod tokens;
pub mod value;

pub use adapt::{Adapt, Lora};
pub use data::{Data, Format};
pub use optimizer::Optimizer;
pub use run::{Batch, Checkpoint, Evaluate, Masking, Metric, Recompute, Reduction, Split, Stop};
pub use schedule::Schedule;
pub use start::Start;
pub use tokens::Tokens;
pub use value::{Decay, Location, Locations, Pattern, Patterns};

use crate::diag::{Code, Diagnostic, Sink};
use crate::field::as_setting::Reviser;
use crate::field::context::Trial;
use crate::field::elsewhere::Other;
use crate::field::record::{Reader, record};
use crate::field::rule::{Is, Rule};
use crate::field::seek::names_below;
use crate::field::{Context, Count, Positive, Probability, Size, Value, unread};
use crate::source::{SourceId, SourceMap};
use crate::spec::explain::{self, Topic};
use crate::spec::{load, model, schema, version};
use crate::syntax::merge::settle;
use crate::syntax::set::{self, Setting};
use crate::syntax::tree::{Kind, Node};
use crate::syntax::{Notation, parse};

/// The version of the recipe language this program reads.
pub const VERSION: u64 = version::RECIPE;

/// The vocabulary of `tokens: bytes`: all bytes, padding, start and end.
pub const BYTES: u64 = 256 + 3;

record! {
    /// How a spec is trained: the data, the optimizer, the number of steps, and the metrics.
    pub struct Recipe as "recipe" {
        /// The version of the recipe language.
        recipe: Count = value(Count(VERSION));
        /// The data the model is trained on.
        data: Data = required;
        /// How text is divided into tokens. Required unless the input is an image, or training starts from a
        /// model that has a tokenizer.
        tokens: Option<Tokens> = absent;
        /// The trained model from whose weights training starts. A run or a Hugging Face model directory
        /// starts from its own weights unless `--from-scratch` is given; any other spec starts from random
        /// ones.
        start: Option<Start> = absent;
        /// How gradients change parameters.
        optimizer: Optimizer = value(Optimizer::usual());
        /// How the learning rate changes over the steps.
        schedule: Schedule = value(Schedule::usual());
        /// How many examples make up a step.
        batch: Batch = value(Batch::usual());
        /// What a step recomputes in its backward pass instead of keeping it, so that larger batches and
        /// longer texts fit into memory; a step then takes about a third longer.
        recompute: Recompute = value(Recompute::None);
        /// The number of steps. Give this or `epochs`.
        steps: Option<Size> = absent;
        /// How many times training goes through the data. Give this or `steps`.
        epochs: Option<Size> = absent;
        /// The largest norm of the gradient of all parameters together; a larger gradient is scaled down to
        /// it.
        clip: Option<Positive> = absent;
        /// Whether a step follows the gradient of the mean or of the sum of its losses. Recorded and measured
        /// losses are means either way.
        reduction: Reduction = value(Reduction::Mean);
        /// The share of the probability that is spread evenly over all classes (Szegedy et al. 2016).
        label_smoothing: Probability = value(Probability(0.0));
        /// Which tokens are masked; for the head `mlm`.
        masking: Option<Masking> = absent;
        /// How the trained model is adapted, without changing its own weights.
        adapt: Option<Adapt> = absent;
        /// Parameters that are not trained, by path; `*` matches any text.
        freeze: Patterns = value(Patterns::default());
        /// When a checkpoint is written, and how many are kept.
        checkpoint: Checkpoint = value(Checkpoint::usual());
        /// The finished model is the mean of this many of the last checkpoints.
        average: Option<Size> = absent;
        /// Which metrics are computed, when, and on which part of the data.
        evaluate: Evaluate = value(Evaluate::usual());
        /// When training ends before its last step.
        stop: Option<Stop> = absent;
        /// The seed for everything random: initial parameters, the order of examples, dropout, masking.
        seed: Count = value(Count(0));
    } rules [Rule::excludes(
        ("epochs", Is::Given),
        ("steps", Is::Given),
        "`steps` and `epochs` both set how long training lasts",
    ), Rule::excludes(
        ("freeze", Is::NotEmpty),
        ("adapt", Is::Given),
        "`adapt` freezes all weights of the trained model, so `freeze` would have no effect",
    )]; pairs Self::pairs; check Self::check;
}

impl Recipe {
    /// Reports a recipe without a length, even if other fields cannot be decoded.
    fn pairs(reader: &mut Reader<'_>, cx: &mut Context<'_>) -> Option<()> {
        // A key that is given counts, even if its value is wrong: that is reported by itself.
        if reader.has("steps") || reader.has("epochs") {
            return Some(());
        }
        let message = "`recipe` needs `steps` or `epochs`";
        let diagnostic = Diagnostic::error(Code::MissingKey, reader.whole(), message);
        cx.report(diagnostic.help("add `steps: ...`, a whole number"));
        None
    }

    /// Reports keys that contradict each other, and another version.
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let mut ok = Some(());
        // Of a misspelled key, nothing else is missing for certain.
        let is_guess = |stop: &Stop| cx.doubts(stop.places.of("patience"));
        let stop = self.stop.as_ref().filter(|stop| !is_guess(stop));
        let mut report = |diagnostic: Diagnostic| {
            cx.report(diagnostic);
            ok = None;
        };
        if let Some(wrong) = version::check("recipe", *self.recipe, VERSION, self.places.of("recipe")) {
            report(wrong);
        }
        // Older checkpoints are deleted as training goes on, so they could not be averaged at the end.
        if let Some(average) = self.average.filter(|n| **n > *self.checkpoint.keep) {
            let kept = *self.checkpoint.keep;
            let message =
                format!("`average` asks for the mean of {} checkpoints, but only {kept} are kept", *average);
            let diagnostic = Diagnostic::error(Code::KeysExclude, self.places.of("average"), message);
            // A default has no place in the text that could be shown.
            let given = Some(self.checkpoint.places.of("keep")).filter(|_| self.places.has("checkpoint"));
            report(
                given
                    .into_iter()
                    .fold(diagnostic, |d, place| d.label(place, format!("keep is {kept} here")))
                    .help(format!("write `checkpoint: {{keep: {}}}`", *average)),
            );
        }
        if let Some(stop) = stop.filter(|s| !self.evaluate.metrics.contains(&s.metric)) {
            let word = stop.metric.word();
            let message = format!("`stop` waits for the metric `{word}`, which is not computed");
            // The default has no place in the text, and `patience` is required, so it always has one.
            let place = if stop.places.has("metric") { "metric" } else { "patience" };
            let diagnostic = Diagnostic::error(Code::KeysExclude, stop.places.of(place), message);
            let given = Some(self.evaluate.places.of("metrics")).filter(|_| self.places.has("evaluate"));
            report(
                given
                    .into_iter()
                    .fold(diagnostic, |d, place| d.label(place, "the metrics that are computed"))
                    .help(format!("add `{word}` to `evaluate.metrics`")),
            );
        }
        if let Some(stop) = stop.filter(|_| self.evaluate.every.is_none()) {
            let message = "`stop` waits for evaluations, but the only one is at the end";
            let place = stop.places.of("patience");
            let diagnostic = Diagnostic::error(Code::KeysExclude, place, message);
            // Often enough that training can end early: several times as often as it waits.
            let waits = (*stop.patience).saturating_add(1).saturating_mul(2);
            let every = self.steps.map_or(100, |steps| (*steps / waits).clamp(1, 100));
            let help = if self.places.has("evaluate") {
                format!("add `every: {every}` to `evaluate`, or remove `stop`")
            } else {
                format!("write `evaluate: {{every: {every}}}`, or remove `stop`")
            };
            report(diagnostic.help(help));
        }
        ok
    }

    /// Whether a parameter is not trained: one that `freeze` matches, or with `adapt` one of the trained
    /// model.
    pub fn is_frozen(&self, path: &str) -> bool {
        // What starts fresh must be trained, even with `adapt`: a new head would keep random numbers.
        let is_fresh = || self.start.as_ref().is_some_and(|start| start.except.matches(path));
        let is_kept = self.adapt.is_some() && !adapt::is_added(path) && !is_fresh();
        is_kept || self.freeze.matches(path)
    }

    /// The low-rank adaptation, if there is one.
    pub fn lora(&self) -> Option<&Lora> {
        self.adapt.as_ref().map(|Adapt::Lora(lora)| lora)
    }

    /// The files of the data and of the tokenizer, each with the key that names it.
    pub fn locations(&self) -> Vec<(&'static str, &Location)> {
        let data = &self.data;
        let parts = [("data.validation", &data.validation), ("data.test", &data.test)];
        let parts = parts.into_iter().filter_map(|(key, files)| Some((key, files.as_ref()?)));
        let parts = [("data.train", &data.train)].into_iter().chain(parts);
        let mut all: Vec<_> =
            parts.flat_map(|(key, files)| files.0.iter().map(move |file| (key, file))).collect();
        if let Some(Tokens::File(file)) = &self.tokens {
            all.push(("tokens.file.path", &file.path));
            all.extend(file.merges.as_ref().map(|merges| ("tokens.file.merges", merges)));
        }
        all
    }

    /// The number of steps, given the number of steps in one epoch.
    pub fn total_steps(&self, steps_of_epoch: u64) -> u64 {
        match (self.steps, self.epochs) {
            (Some(steps), _) => *steps,
            // Saturating, because a recipe may ask for any number of epochs.
            (None, Some(epochs)) => epochs.saturating_mul(steps_of_epoch.max(1)),
            // Refused when the recipe is read.
            (None, None) => 0,
        }
    }
}

/// The description of the whole recipe in `explain` and the schema.
const DOC: &str = "How a spec is trained: a separate YAML document.";

/// The topics of `trafoc explain` about recipes.
pub fn catalogue() -> Vec<Topic> {
    explain::catalogue_of("recipe", DOC, &Recipe::fields())
}

/// The JSON schema of a recipe.
pub fn schema() -> serde_json::Value {
    schema::document("recipe", DOC, &Recipe::fields())
}

/// Whether a word names a part. The code that applies settings to a recipe needs to know this.
pub fn is_part(word: &str) -> bool {
    // A setting that names a part replaces the one that is there, together with its fields.
    [Optimizer::PARTS, Schedule::PARTS, Format::PARTS, Tokens::PARTS, Adapt::PARTS]
        .iter()
        .any(|p| p.contains(&word))
}

/// Decodes one source with settings applied to it. Returns `None` if there is any error; the errors are in
/// the sink.
pub fn read(sources: &SourceMap, id: SourceId, settings: &[Setting], sink: &mut Sink) -> Option<Recipe> {
    let tree = parse(sources, id, Notation::Yaml, sink)?;
    if matches!(tree.kind, Kind::Null) {
        let diagnostic = Diagnostic::error(Code::MissingKey, tree.span, "the recipe is empty");
        sink.push(diagnostic.help("`trafoc explain recipe` lists the keys"));
        return None;
    }
    // The two files are easily mixed up, and every key of a spec would be reported as unknown.
    if load::is_spec(&tree) {
        let message = "this is a spec, and a recipe belongs here";
        let place = tree.entries().and_then(|e| e.first()).map_or(tree.span, |e| e.key_span);
        let diagnostic = Diagnostic::error(Code::WrongDocument, place, message);
        sink.push(diagnostic.help(
            "`trafoc new recipe` writes a recipe to begin with, and `trafoc explain recipe` lists its keys",
        ));
        return None;
    }
    let tree = set::apply(settle(&tree, sink), settings, &is_part, sink);
    let recipe = decode(sources, &tree, sink);
    let fields = Recipe::fields();
    let mut reviser = Reviser::new(sources, &fields, Some(&tree));
    sink.revise(|d| reviser.revise(d));
    recipe
}

/// Whether a word is one of specs alone, below their keys.
fn is_below_specs(word: &str) -> bool {
    names_below(&model::fields()).contains(word) && !names_below(&Recipe::fields()).contains(word)
}

/// Decodes a merged tree. `None` if the sink has any error, even an earlier one.
pub fn decode(sources: &SourceMap, tree: &Node, sink: &mut Sink) -> Option<Recipe> {
    if let Some(wrong) = version::later_tree(tree, "recipe", VERSION) {
        sink.push(wrong);
        return None;
    }
    let decode = |tree: &Node, sink: &mut Sink| {
        let again = |tree: &Node, cx: &mut Context<'_>| drop(Recipe::decode(tree, cx));
        let trial = Trial { tree, parts: &is_part, decode: &again };
        let mut cx = Context::new(sources, sink).without_lets().with_trial(trial).with_other(Other {
            keys: load::OF_SPECS,
            has_below: is_below_specs,
            help: "it belongs in the spec; `trafoc train --set KEY=VALUE` changes one there",
        });
        let recipe = Recipe::decode(tree, &mut cx);
        (recipe, cx.into_unread())
    };
    let (recipe, unread) = decode(tree, sink);
    unread::behind(tree, &unread, sink, &|tree, sink| drop(decode(tree, sink)));
    recipe.filter(|_| !sink.has_errors())
}
