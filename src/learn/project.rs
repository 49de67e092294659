//! The content of a training project for PyTorch, as it follows from a spec and its recipe.
//!
//! [`crate::emit::pytorch::project`] has the files and the words by which their parts are chosen; here the
//! words and the settings are derived from a recipe. A key of the recipe that a project cannot honour is
//! refused by name.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::data::store::Needs;
use super::recipe::agree::Task;
use super::recipe::optimizer::{Adjust, Optimizer};
use super::recipe::value::Betas;
use super::recipe::{Masking, Metric, Pattern, Recipe, Recompute, Reduction, Schedule, Split, Tokens};
use super::token::Tokenizer;
use crate::emit::pytorch::project::{Project, Value};
use crate::field::words::listed;
use crate::ir::Verified;
use crate::spec::ModelSpec;

/// What training begins with, as far as a project depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begins<'t> {
    /// The tokenizer for a recipe without `tokens`.
    pub tokenizer: Option<&'t Tokenizer>,
    /// Whether it begins with the weights of a trained model.
    pub with_weights: bool,
}

/// The project that trains a spec, which headers call `named`, as a recipe says.
///
/// # Errors
/// The key of the recipe that a project cannot honour, with the reason, without a full stop.
pub fn project(
    graph: &Verified,
    spec: &ModelSpec,
    recipe: &Recipe,
    begins: &Begins<'_>,
    named: &str,
) -> Result<Project, String> {
    let Some(task) = Task::of(spec) else {
        return Err(format!("a model with the head `{}` has no target to be trained on", spec.head.part()));
    };
    // A process sees the pairs of its own part of a batch only, and the loss compares all with all.
    if task == Task::Embed {
        return Err("the head `embed`, whose loss is over all pairs of a batch".to_owned());
    }
    if recipe.adapt.is_some() {
        return Err("`adapt`, because the emitted model has no adapters".to_owned());
    }
    if graph.has_losses() {
        let names = listed(&graph.loss_names());
        return Err(format!(
            "losses of parts ({names}), because the emitted model computes only its outputs"
        ));
    }
    let needs = Needs::of(recipe, spec, task);
    let mut words = BTreeSet::new();
    task_words(task, &needs, &mut words);
    recipe_words(recipe, &mut words);
    metric_words(task, recipe, begins.tokenizer, &mut words);
    words.extend(begins.with_weights.then_some("start"));
    // Texts that are continued have no types; a graph without such an input takes none.
    let has_types = graph.root().arguments().iter().any(|input| input.name == "token_types");
    let is_typed = has_types && !matches!(task, Task::NextToken | Task::Translate);
    words.extend(Some("token_types").filter(|_| is_typed));
    // With several outputs the emitted model returns an object, from which the project takes the logits. The
    // two outputs of `span` are read by code of their own.
    words.extend(Some("outputs").filter(|_| graph.root().results.len() > 1 && task != Task::Span));
    Ok(Project {
        words,
        settings: settings(spec, recipe),
        needs: wanted(task, &needs),
        spec: named.to_owned(),
    })
}

/// The task's name in `data.json`.
fn word(task: Task) -> &'static str {
    // The words in which serde writes a task; a match, so that a new one is not forgotten.
    match task {
        Task::NextToken => "next_token",
        Task::HiddenToken => "hidden_token",
        Task::Translate => "translate",
        Task::ClassifyText => "classify_text",
        Task::ClassifyImage => "classify_image",
        Task::Tag => "tag",
        Task::Span => "span",
        Task::Embed => "embed",
    }
}

/// The words for the task: which inputs, labels and losses the project has.
fn task_words(task: Task, needs: &Needs, words: &mut BTreeSet<&'static str>) {
    let of_task: &[&str] = match task {
        Task::NextToken => &["text", "positions"],
        Task::HiddenToken => &["text", "positions", "masked"],
        Task::Translate => &["text", "positions", "masked"],
        Task::Tag => &["text", "positions", "masked"],
        Task::ClassifyText => &["text", "classes", "masked"],
        Task::ClassifyImage => &["classes"],
        Task::Span | Task::Embed => &["text", "masked"],
    };
    words.insert(word(task));
    words.extend(of_task);
    match task {
        Task::ClassifyText | Task::ClassifyImage if needs.several => words.extend(["several"]),
        Task::ClassifyText => words.extend(["one_class", "one_class_text"]),
        Task::ClassifyImage => words.extend(["one_class", "one_class_image"]),
        Task::NextToken | Task::HiddenToken | Task::Translate | Task::Tag | Task::Span | Task::Embed => {}
    }
    words.extend(needs.languages.map(|_| "languages"));
}

/// The words for the settings of training.
fn recipe_words(recipe: &Recipe, words: &mut BTreeSet<&'static str>) {
    words.insert(recipe.optimizer.part());
    words.insert(recipe.schedule.part());
    words.insert(match recipe.reduction {
        Reduction::Mean => "mean",
        Reduction::Sum => "sum",
    });
    words.insert(if recipe.steps.is_some() { "steps" } else { "epochs" });
    let warms_up = match &recipe.schedule {
        Schedule::Constant(constant) => *constant.warmup > 0,
        Schedule::Linear(_) | Schedule::Cosine(_) | Schedule::Noam(_) | Schedule::InverseSqrt(_) => true,
    };
    // Only this schedule may be without a warm-up in the project; the formulas of the others contain it.
    let is_constant = matches!(recipe.schedule, Schedule::Constant(_));
    // For SGD alone: PyTorch's class refuses Nesterov's momentum with dampening when it is created, so the
    // project sets it in another place.
    let looks_ahead = match &recipe.optimizer {
        Optimizer::Sgd(sgd) => sgd.nesterov,
        Optimizer::Adam(_) | Optimizer::AdamW(_) | Optimizer::Muon(_) => false,
    };
    let optimizer = &recipe.optimizer;
    let has_groups = optimizer.decays().iter().any(|decay| !decay.0.is_empty())
        || optimizer.rates().iter().any(|rates| !rates.0.is_empty());
    let holds = [
        ("sgd_nesterov", looks_ahead),
        ("bucket", *recipe.batch.bucket > 0),
        ("groups", has_groups),
        ("warmup", warms_up),
        ("constant_warmup", warms_up && is_constant),
        ("recompute", recipe.recompute == Recompute::Blocks),
        ("clip", recipe.clip.is_some()),
        ("smoothing", *recipe.label_smoothing > 0.0),
        ("freeze", !recipe.freeze.0.is_empty()),
        ("matches", !recipe.freeze.0.is_empty()),
        ("average", recipe.average.is_some()),
        ("evaluate_every", recipe.evaluate.every.is_some()),
        ("stop", recipe.stop.is_some()),
    ];
    words.extend(holds.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word));
    // Groups are formed by patterns, too, and a set has the word once.
    words.extend(Some("matches").filter(|_| words.contains("groups")));
}

/// The words for the metrics, and for what they need: texts that the model writes, or a tokenizer that
/// decodes.
fn metric_words(
    task: Task,
    recipe: &Recipe,
    inherited: Option<&Tokenizer>,
    words: &mut BTreeSet<&'static str>,
) {
    let metrics = &recipe.evaluate.metrics;
    let has = |of: &[Metric]| metrics.iter().any(|metric| of.contains(metric));
    words.extend(metrics.iter().map(|metric| metric.word()));
    let compares =
        has(&[Metric::Bleu, Metric::WordBleu, Metric::SentenceBleu, Metric::ExactMatch, Metric::F1]);
    // The same metrics compare translations and answers, which a project obtains in different ways.
    let writes = task == Task::Translate && compares;
    let answers = task == Task::Span && compares;
    // Without a limit, the number of characters is that of the part, which `data.json` gives.
    let counts = has(&[Metric::BitsPerCharacter]) && recipe.evaluate.limit.is_some();
    let tokenizer = match (&recipe.tokens, inherited) {
        (Some(Tokens::Characters(_)), _) | (None, Some(Tokenizer::Characters(_))) => "characters",
        (Some(Tokens::Words(_)), _) | (None, Some(Tokenizer::Words(_))) => "words",
        (Some(Tokens::Bytes(_)), _) | (None, Some(Tokenizer::Bytes(_))) => "bytes",
        (Some(Tokens::Bpe(_) | Tokens::WordPiece(_) | Tokens::File(_)), _)
        | (None, Some(Tokenizer::Subword(_))) => "subword",
        (None, None) => "",
    };
    let decodes = writes || counts;
    let holds = [
        ("predicted", has(&[Metric::Accuracy, Metric::MacroF1])),
        ("writes", writes),
        ("answers", answers),
        ("texts", writes || answers),
        ("counts_characters", counts),
        ("decodes", decodes),
        (tokenizer, decodes),
        // Bytes are decoded without a vocabulary.
        ("codebook", decodes && tokenizer != "bytes"),
    ];
    words.extend(holds.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word));
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn pair(betas: Betas) -> Value {
    Value::Tuple(vec![Value::Float(betas.0), Value::Float(betas.1)])
}

/// Numbers by patterns of parameter paths.
fn rules<N: Deref<Target = f64>>(rules: &[(Pattern, N)]) -> Value {
    let rule =
        |(pattern, number): &(Pattern, N)| Value::Tuple(vec![text(&pattern.text), Value::Float(**number)]);
    Value::Tuple(rules.iter().map(rule).collect())
}

/// The values of all settings; a project takes those whose fields it has.
fn settings(spec: &ModelSpec, recipe: &Recipe) -> Vec<(&'static str, Value)> {
    // Every setting has a value, even where it is unused: the file's parts decide which of them are written.
    let masking = recipe.masking.clone().unwrap_or_else(Masking::usual);
    let shares = [*masking.share, *masking.hide, *masking.replace].map(Value::Float);
    let data = &recipe.data;
    let held = data.split.as_ref().is_some_and(|split| *split.validation > 0.0);
    // As training with trafoc chooses, but before the data is read.
    let usual = if held || data.validation.is_some() { Split::Validation } else { Split::Train };
    let evaluate = &recipe.evaluate;
    let stop = recipe.stop.as_ref();
    let mut all = vec![
        ("name", text(&spec.name)),
        ("seed", Value::Int(*recipe.seed)),
        ("batch_size", Value::Int(*recipe.batch.size)),
        ("accumulate", Value::Int(*recipe.batch.accumulate)),
        ("bucket", Value::Int(*recipe.batch.bucket)),
        ("recompute", Value::Bool(recipe.recompute == Recompute::Blocks)),
        ("steps", Value::maybe(recipe.steps.map(|steps| *steps))),
        ("epochs", Value::maybe(recipe.epochs.map(|epochs| *epochs))),
        ("warmup", Value::Int(recipe.schedule.warmup())),
        ("floor", Value::Float(recipe.schedule.floor())),
        // For the schedule `noam`, whose rate depends on the width.
        ("d_model", Value::Int(spec.d_model)),
        ("clip", recipe.clip.map_or(Value::None, |clip| Value::Float(*clip))),
        ("label_smoothing", Value::Float(*recipe.label_smoothing)),
        ("masking", Value::Tuple(shares.to_vec())),
        ("freeze", Value::Tuple(recipe.freeze.0.iter().map(|pattern| text(&pattern.text)).collect())),
        ("checkpoint_every", Value::Int(*recipe.checkpoint.every)),
        ("checkpoint_keep", Value::Int(*recipe.checkpoint.keep)),
        ("average", Value::maybe(recipe.average.map(|average| *average))),
        ("evaluate_every", Value::maybe(evaluate.every.map(|every| *every))),
        ("evaluate_split", text(evaluate.split.unwrap_or(usual).word())),
        ("evaluate_limit", Value::maybe(evaluate.limit.map(|limit| *limit))),
        ("metrics", Value::Tuple(evaluate.metrics.iter().map(|metric| text(metric.word())).collect())),
        ("stop_metric", text(stop.map_or(Metric::Loss, |stop| stop.metric).word())),
        ("stop_patience", Value::maybe(stop.map(|stop| *stop.patience))),
        ("positions", Value::Int(super::data::positions(spec))),
    ];
    all.extend(optimizer(&recipe.optimizer));
    all
}

/// The settings of the optimizer, by the names of the project's fields.
fn optimizer(optimizer: &Optimizer) -> Vec<(&'static str, Value)> {
    let rate = ("learning_rate", Value::Float(optimizer.learning_rate()));
    match optimizer {
        Optimizer::Adam(o) => vec![
            rate,
            ("betas", pair(o.betas)),
            ("eps", Value::Float(*o.eps)),
            ("weight_decay", Value::Float(*o.weight_decay)),
            ("rates", rules(&o.rates.0)),
            ("decay", rules(&o.decay.0)),
        ],
        Optimizer::AdamW(o) => vec![
            rate,
            ("betas", pair(o.betas)),
            ("eps", Value::Float(*o.eps)),
            ("weight_decay", Value::Float(*o.weight_decay)),
            ("rates", rules(&o.rates.0)),
            ("decay", rules(&o.decay.0)),
        ],
        Optimizer::Sgd(o) => vec![
            rate,
            ("momentum", Value::Float(*o.momentum)),
            ("dampening", Value::Float(*o.dampening)),
            ("weight_decay", Value::Float(*o.weight_decay)),
            ("rates", rules(&o.rates.0)),
            ("decay", rules(&o.decay.0)),
        ],
        Optimizer::Muon(o) => vec![
            rate,
            ("momentum", Value::Float(*o.momentum)),
            ("nesterov", Value::Bool(o.nesterov)),
            ("eps", Value::Float(*o.eps)),
            ("iterations", Value::Int(*o.iterations)),
            (
                "adjust",
                text(match o.adjust {
                    Adjust::Original => "original",
                    Adjust::MatchRmsAdamW => "match_rms_adamw",
                }),
            ),
            ("weight_decay", Value::Float(*o.weight_decay)),
            ("rates", rules(&o.rates.0)),
            ("decay", rules(&o.decay.0)),
            ("others_learning_rate", Value::Float(*o.others.learning_rate)),
            ("others_betas", pair(o.others.betas)),
            ("others_eps", Value::Float(*o.others.eps)),
            ("others_weight_decay", Value::Float(*o.others.weight_decay)),
            ("others_rates", rules(&o.others.rates.0)),
            ("others_decay", rules(&o.others.decay.0)),
        ],
    }
}

/// What `data.json` must say of the spec.
fn wanted(task: Task, needs: &Needs) -> Vec<(&'static str, Value)> {
    let image = needs.image.map_or(Value::None, |form| {
        Value::Map(vec![
            ("channels", Value::Int(form.channels as u64)),
            ("side", Value::Int(form.side as u64)),
        ])
    });
    vec![
        ("task", text(word(task))),
        ("vocab", Value::maybe(needs.vocab)),
        ("source_vocab", Value::maybe(needs.source_vocab)),
        ("classes", Value::maybe(needs.classes)),
        ("several", Value::Bool(needs.several)),
        ("languages", Value::maybe(needs.languages)),
        ("image", image),
        ("longest", Value::maybe(needs.longest)),
    ]
}
