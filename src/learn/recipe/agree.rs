//! Checks a recipe against the spec it is for, before any data is read.
//!
//! The head determines what the data must contain and which metrics make sense; paths of parameters must
//! exist; a vocabulary whose size the recipe gives must fit the spec's. Diagnostics show both places.

use std::collections::BTreeSet;

use super::data::{Format, Table};
use super::run::{Metric, Split};
use super::tokens::Tokens;
use super::value::Pattern;
use serde::{Deserialize, Serialize};

use super::{Recipe, reach};
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::words::listed;
use crate::ir::{Graph, Layer, paths};
use crate::learn::start::Origins;
use crate::parts::Head;
use crate::parts::pattern::{matches, nearest};
use crate::source::Span;
use crate::spec::ModelSpec;

/// The task for which a head is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Predicts the next token (`lm`).
    NextToken,
    /// Predicts masked tokens (`mlm`).
    HiddenToken,
    /// Predicts the target tokens of a source (`translate`).
    Translate,
    /// Predicts the class of a text, or several with `multi_label`.
    ClassifyText,
    /// Predicts the class of an image.
    ClassifyImage,
    /// Predicts a class for every token.
    Tag,
    /// Predicts the start and the end of an answer.
    Span,
    /// Finds the text that belongs to another one, by their vectors (`embed`).
    Embed,
}

impl Task {
    /// The task of a spec; `None` if its head cannot be trained.
    pub fn of(spec: &ModelSpec) -> Option<Self> {
        match &spec.head {
            Head::Lm(_) => Some(Self::NextToken),
            Head::Mlm(_) => Some(Self::HiddenToken),
            Head::Translate(_) => Some(Self::Translate),
            // The heads of texts and of images are the same; a model with a vocabulary reads texts.
            Head::Classify(_) if spec.vocab.is_some() => Some(Self::ClassifyText),
            Head::Classify(_) => Some(Self::ClassifyImage),
            Head::Tag(_) => Some(Self::Tag),
            Head::Span(_) => Some(Self::Span),
            Head::Embed(_) if spec.vocab.is_some() => Some(Self::Embed),
            // Pairs of images are in none of the formats of data.
            Head::Embed(_) => None,
        }
    }

    /// The data formats whose examples the task can use.
    fn formats(self) -> &'static [&'static str] {
        match self {
            Self::NextToken | Self::HiddenToken => &["lines", "text", "table"],
            Self::Translate => &["pairs", "parallel", "table"],
            Self::ClassifyText => &["table"],
            Self::ClassifyImage => &["images", "pixels", "idx"],
            Self::Tag => &["tagged"],
            Self::Span => &["squad"],
            Self::Embed => &["pairs", "parallel", "table"],
        }
    }

    /// What the data must contain, for messages.
    pub fn needs(self) -> &'static str {
        match self {
            Self::NextToken | Self::HiddenToken => "text",
            Self::Translate => "sources with their targets",
            Self::ClassifyText => "texts with their classes",
            Self::ClassifyImage => "images with their classes",
            Self::Tag => "words with their classes",
            Self::Span => "questions about texts",
            Self::Embed => "pairs of texts that belong together",
        }
    }

    /// The metrics that can be computed for the task.
    pub fn metrics(self) -> &'static [Metric] {
        use Metric::{Accuracy, BitsPerCharacter, Bleu, ExactMatch, F1, Loss, MacroF1, Perplexity};
        match self {
            Self::NextToken => &[Loss, Perplexity, BitsPerCharacter, Accuracy],
            Self::HiddenToken => &[Loss, Perplexity, Accuracy],
            Self::Translate => {
                &[Loss, Perplexity, Accuracy, Bleu, Metric::WordBleu, Metric::SentenceBleu, ExactMatch]
            }
            Self::ClassifyText | Self::ClassifyImage | Self::Tag => &[Loss, Accuracy, MacroF1],
            Self::Span => &[Loss, ExactMatch, F1],
            Self::Embed => &[Loss, Accuracy],
        }
    }
}

/// The trained model from which training starts, as far as a recipe must agree with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Body<'a> {
    /// Whether it has a tokenizer.
    pub has_tokenizer: bool,
    /// The weights with which training starts.
    pub start: Weights<'a>,
}

/// The weights with which training starts.
#[derive(Clone, Copy, Debug, Default)]
pub enum Weights<'a> {
    /// All parameters start fresh, with the spec's initial values.
    #[default]
    Fresh,
    /// Those of a trained model, except for some.
    Trained(&'a Origins),
    /// Those of a checkpoint of the same run.
    Checkpoint,
}

/// Reports every disagreement between a recipe and a spec.
pub fn check(recipe: &Recipe, spec: &ModelSpec, graph: &Graph, body: Body<'_>, sink: &mut Sink) {
    let head = spec.places.of("head");
    let Some(task) = Task::of(spec) else {
        let message = format!("a model with the head `{}` has no target to be trained on", spec.head.part());
        sink.push(
            Diagnostic::error(Code::HeadMismatch, head, message)
                .help("use such a model with `trafoc predict`; train it with another head"),
        );
        return;
    };
    let agreement = Agreement { recipe, spec, graph, body, task, head };
    // No data for such a model could be right, so nothing else matters.
    if agreement.lacks_target(sink) {
        return;
    }
    agreement.format(sink);
    agreement.tokens(sink);
    agreement.figures(sink);
    agreement.keys(sink);
    agreement.patterns(sink);
    // The number of steps of an epoch is known only with the data. A run that continues was checked when it began.
    if let Some(steps) = recipe.steps.filter(|_| !matches!(body.start, Weights::Checkpoint)) {
        reach::check(recipe, *steps, sink);
    }
}

struct Agreement<'a> {
    recipe: &'a Recipe,
    spec: &'a ModelSpec,
    graph: &'a Graph,
    body: Body<'a>,
    task: Task,
    head: Span,
}

impl Agreement<'_> {
    /// Whether the graph has an input with this name, such as `language`.
    fn has_input(&self, name: &str) -> bool {
        let root = self.graph.root();
        root.values.iter().take(root.args).any(|v| v.name == name)
    }

    /// Reports a model that reads a target although the examples of its task have none, such as BART as a
    /// classifier. Returns whether it did.
    fn lacks_target(&self, sink: &mut Sink) -> bool {
        let has_target = match self.task {
            Task::NextToken | Task::Translate | Task::ClassifyImage => return false,
            Task::HiddenToken | Task::ClassifyText | Task::Tag | Task::Span | Task::Embed => {
                self.has_input("target")
            }
        };
        if has_target {
            let (head, needs) = (self.spec.head.part(), self.task.needs());
            let message = format!(
                "the head `{head}` is trained on {needs}, but the decoder of this spec also reads a target"
            );
            let diagnostic = Diagnostic::error(Code::HeadMismatch, self.head, message);
            sink.push(
                diagnostic
                    .help("a spec with the encoder or the decoder alone can be trained with this head")
                    .help(
                        "`trafoc predict` uses a model of Hugging Face whose library says what its target is",
                    ),
            );
        }
        has_target
    }

    /// Reports a format of data that the task cannot use, and settings that do not fit it.
    fn format(&self, sink: &mut Sink) {
        let data = &self.recipe.data;
        let part = data.format.part();
        if !self.task.formats().contains(&part) {
            let needs = self.task.needs();
            let message =
                format!("`{}` needs {needs}, but the format `{part}` has none", self.spec.head.part());
            sink.push(
                Diagnostic::error(Code::DataMismatch, data.places.of("format"), message)
                    .label(self.head, "the head determines what the data must contain")
                    .help(format!("it can be {}", listed(self.task.formats()))),
            );
            // Other faults of the format would only follow from this one.
            return;
        }
        // Tables alone have a column for it; the other formats have room for two texts.
        if self.has_input("language") && !matches!(data.format, Format::Table(_)) {
            let message = format!(
                "the spec has several languages, and the format `{part}` does not name \
                the language of an example"
            );
            sink.push(
                Diagnostic::error(Code::DataMismatch, data.places.of("format"), message)
                    .help("write `{table: {source: ..., target: ..., language: ...}}`"),
            );
        }
        if let Format::Table(table) = &data.format {
            self.columns(table, sink);
        }
        if matches!(data.format, Format::Text(_)) && data.limit.is_some() {
            let message = "the format `text` is one long text, which has no examples to count";
            sink.push(
                Diagnostic::error(Code::UnusedKey, data.places.of("limit"), message)
                    .help("remove it, or use the format `lines`"),
            );
        }
        if self.task == Task::ClassifyImage || data.longest.is_none() {
            return;
        }
        // A spec need not have a context, and then no length is too large for it.
        let (Some(longest), Some(context)) = (data.longest, self.spec.context) else { return };
        if *longest > context {
            let message =
                format!("examples of {} do not fit a context of {context}", counted(*longest, "token"));
            sink.push(
                Diagnostic::error(Code::DataMismatch, data.places.of("longest"), message)
                    .label(self.spec.places.of("context"), "the spec's context")
                    .help(format!("write `longest: {context}`, or remove it")),
            );
        }
    }

    /// The columns of a table must be exactly those that the task reads.
    fn columns(&self, table: &Table, sink: &mut Sink) {
        let given = [
            ("text", table.text.is_some()),
            ("second", table.second.is_some()),
            ("label", table.label.is_some()),
            ("source", table.source.is_some()),
            ("target", table.target.is_some()),
            ("language", table.language.is_some()),
        ];
        let (needed, allowed): (&[&str], &[&str]) = match self.task {
            Task::Translate if self.has_input("language") => (&["source", "target", "language"], &[]),
            Task::Translate | Task::Embed => (&["source", "target"], &[]),
            Task::ClassifyText => (&["text", "label"], &["second"]),
            Task::NextToken | Task::HiddenToken => (&["text"], &[]),
            Task::ClassifyImage | Task::Tag | Task::Span => (&[], &[]),
        };
        for (key, is_given) in given {
            if needed.contains(&key) && !is_given {
                let message = format!("`{}` needs the column of `{key}`", self.spec.head.part());
                sink.push(
                    Diagnostic::error(Code::MissingKey, table.places.whole(), message)
                        .label(self.head, "the head determines what the data must contain")
                        .help(format!(
                            "add `{key}: ...` with the column's name, or its number counted \
                            from 1"
                        )),
                );
            }
            if is_given && !needed.contains(&key) && !allowed.contains(&key) {
                let message = format!("`{}` does not read a column of `{key}`", self.spec.head.part());
                sink.push(Diagnostic::error(Code::UnusedKey, table.places.of(key), message).removable());
            }
        }
    }

    /// Reports a missing or useless tokenizer, and a vocabulary that is larger than the spec's.
    fn tokens(&self, sink: &mut Sink) {
        let recipe = self.recipe;
        let tokens = match (&recipe.tokens, self.task) {
            (None, Task::ClassifyImage) => return,
            (Some(_), Task::ClassifyImage) => {
                let message = "the input is an image, so `tokens` would have no effect";
                let place = recipe.places.of("tokens");
                sink.push(Diagnostic::error(Code::UnusedKey, place, message).removable());
                return;
            }
            (None, _) if self.body.has_tokenizer => return,
            (None, _) => {
                let message = "the recipe does not say how text becomes tokens";
                let diagnostic = Diagnostic::error(Code::MissingKey, recipe.places.whole(), message);
                // The ids of a trained body have a meaning, which no new vocabulary would have.
                sink.push(match self.body.start {
                    Weights::Trained(origins) if origins.has_tokens() => diagnostic
                        .help(
                            "the trained model has no tokenizer: put its tokenizer.json next to its \
                            weights",
                        )
                        .help(
                            "or write `tokens: {file: {path: PATH}}` with the vocabulary that it was \
                            trained with",
                        ),
                    Weights::Trained(_) | Weights::Checkpoint | Weights::Fresh => {
                        diagnostic.help("add `tokens: bytes`, or another of `trafoc explain tokens`")
                    }
                });
                return;
            }
            (Some(tokens), _) => tokens,
        };
        let asked = match tokens {
            // The only vocabulary whose size is known without the data and without a setting.
            Tokens::Bytes(_) => Some((super::BYTES, tokens.places().whole())),
            _ => tokens.asked(),
        };
        let sizes = [("vocab", self.spec.vocab), ("source_vocab", self.spec.source_vocab)];
        for (key, size) in sizes {
            if let (Some((asked, place)), Some(size)) = (asked, size)
                // A smaller vocabulary is no error: the remaining rows are warned of once the data was read.
                && asked > size
            {
                sink.push(too_many(asked, place, key, size, self.spec));
            }
        }
    }

    /// Reports metrics that cannot be computed, and a part of the data that the recipe does not have.
    fn figures(&self, sink: &mut Sink) {
        let allowed = self.task.metrics();
        let evaluate = &self.recipe.evaluate;
        let place = |index: usize| evaluate.places.of_item("metrics", index);
        for (i, metric) in evaluate.metrics.iter().enumerate().filter(|(_, m)| !allowed.contains(m)) {
            let words: Vec<&str> = allowed.iter().map(|m| m.word()).collect();
            let message = format!(
                "the metric `{}` cannot be computed for the head `{}`",
                metric.word(),
                self.spec.head.part()
            );
            sink.push(
                Diagnostic::error(Code::DataMismatch, place(i), message)
                    .label(self.head, "the head determines which metrics can be computed")
                    .help(format!("it can be {}", listed(&words))),
            );
        }
        // Its values would be recorded twice under one name.
        for (i, metric) in evaluate.metrics.iter().enumerate() {
            if let Some(first) = evaluate.metrics.iter().take(i).position(|before| before == metric) {
                let message = format!("`{}` is listed twice", metric.word());
                let diagnostic = Diagnostic::error(Code::KeysExclude, place(i), message);
                sink.push(diagnostic.label(place(first), "the first time").help("list it once"));
            }
        }
        let data = &self.recipe.data;
        let held = data.split.as_ref();
        let has = |split: Split| match split {
            Split::Train => true,
            Split::Validation => data.validation.is_some() || held.is_some_and(|s| *s.validation > 0.0),
            Split::Test => data.test.is_some() || held.is_some_and(|s| *s.test > 0.0),
        };
        if let Some(split) = evaluate.split.filter(|s| !has(*s)) {
            let word = split.word();
            let message = format!("the recipe evaluates on `{word}`, but its data has no such part");
            sink.push(
                Diagnostic::error(Code::DataMismatch, evaluate.places.of("split"), message)
                    .label(data.places.whole(), "the data")
                    .help(format!("add `data.{word}: FILE` or `data.split: {{{word}: 0.1}}`")),
            );
        }
    }

    /// Reports keys that would have no effect with this head.
    fn keys(&self, sink: &mut Sink) {
        let recipe = self.recipe;
        let head = self.spec.head.part();
        let mut unused = |key: &str, why: String| {
            let place = recipe.places.of(key);
            sink.push(
                Diagnostic::error(Code::UnusedKey, place, why).label(self.head, "the head").removable(),
            );
        };
        let is_sigmoid = matches!(&self.spec.head, Head::Classify(c) if c.multi_label);
        if *recipe.label_smoothing > 0.0 && is_sigmoid {
            unused("label_smoothing", "label smoothing does not apply to labels of sigmoids".to_owned());
        }
        if *recipe.label_smoothing > 0.0 && self.task == Task::Span {
            unused("label_smoothing", format!("the head `{head}` does not use label smoothing"));
        }
        if recipe.masking.is_some() && self.task != Task::HiddenToken {
            unused("masking", format!("the head `{head}` masks no tokens"));
        }
    }

    /// Reports patterns that match no parameter.
    fn patterns(&self, sink: &mut Sink) {
        // A pattern may name one block by its index, so it is compared with the path of each block, unless
        // there are more than can be trained.
        let known: BTreeSet<String> = match paths::expanded(self.graph) {
            Ok(all) => all.into_iter().map(|(path, _)| path).collect(),
            Err(_) => paths::folded(self.graph).into_iter().map(|p| p.path).collect(),
        };
        let rules = self.recipe.optimizer.patterns();
        let excepted = self.recipe.start.iter().flat_map(|start| &start.except.0);
        // An error and not a warning: a misspelt pattern would train what should be frozen, or with another
        // rate.
        let idle = |p: &&Pattern| !known.iter().any(|path| matches(&p.text, path));
        // No more would be kept, and to look for what each may mean takes its time.
        for pattern in rules.chain(&self.recipe.freeze.0).chain(excepted).filter(idle).take(Sink::LIMIT) {
            let message = format!("no parameter's path matches `{}`", pattern.text);
            let diagnostic = Diagnostic::error(Code::UnusedRule, pattern.span, message);
            let diagnostic = match nearest(&pattern.text, &known) {
                Some(near) => diagnostic.help(format!("`{near}` would match")),
                None => diagnostic,
            };
            sink.push(diagnostic.help("`trafoc show SPEC` lists the paths; `*` matches any text"));
        }
        self.frozen(&known, sink);
        self.adapted(sink);
        let all_frozen = known.iter().all(|path| self.recipe.freeze.matches(path));
        if all_frozen && !self.recipe.freeze.0.is_empty() {
            let place = self.recipe.places.of("freeze");
            let message = "every parameter is frozen, so nothing would be trained";
            sink.push(Diagnostic::error(Code::OutOfRange, place, message).help("freeze fewer parameters"));
        }
    }
}

impl Agreement<'_> {
    /// Reports an adaptation of nothing: patterns that match no projection, and a model that is not trained
    /// yet.
    fn adapted(&self, sink: &mut Sink) {
        let Some(lora) = self.recipe.lora() else { return };
        let mut too_large: Vec<(String, (u64, u64))> = Vec::new();
        if matches!(self.body.start, Weights::Fresh) {
            let message = "`adapt` keeps the weights of a trained model, but here all parameters start fresh";
            sink.push(
                Diagnostic::error(Code::FrozenFresh, self.recipe.places.of("adapt"), message)
                    .help("`start: {from: DIR}` starts from the weights of a trained model"),
            );
        }
        // A model of more tensors than a file may have is refused before it is trained, and listing its layers
        // would take as long as it is deep.
        if paths::counted(&paths::folded(self.graph)).is_err() {
            return;
        }
        let mut projections: Vec<String> = Vec::new();
        for (path, layer) in paths::layers(self.graph) {
            // Adapters are added to products with matrices; norms and embedding tables have none.
            let Layer::Linear { input, output, .. } = layer else { continue };
            let least = input.get().min(output.get());
            if lora.is_on(&paths::join(&path, "weight")) && *lora.rank > least {
                too_large.push((path.clone(), (output.get(), input.get())));
            }
            projections.push(path);
        }
        // The smallest matrix, so that the rank in the advice fits all of them.
        if let Some((path, (rows, columns))) = too_large.iter().min_by_key(|(_, (a, b))| a.min(b)) {
            let more = match too_large.len() {
                1 => String::new(),
                n => format!(" (and that of {} more)", n - 1),
            };
            let message = format!(
                "the rank {} is larger than that of the {rows} x {columns} weight of `{path}`{more}",
                *lora.rank
            );
            let least = rows.min(columns);
            sink.push(
                Diagnostic::error(Code::OutOfRange, lora.places.of("rank"), message)
                    .label(lora.places.of("on"), "these projections are adapted")
                    .help(format!(
                        "a matrix of this size has at most the rank {least}: write `rank: {least}` or less, \
                         or leave the projection out of `on`"
                    )),
            );
        }
        let is_of = |pattern: &Pattern, layer: &String| {
            matches(&pattern.text, layer) || matches(&pattern.text, &paths::join(layer, "weight"))
        };
        for pattern in lora.on.0.iter().filter(|p| !projections.iter().any(|layer| is_of(p, layer))) {
            let message = format!("no projection's path matches `{}`", pattern.text);
            let diagnostic = Diagnostic::error(Code::UnusedRule, pattern.span, message);
            let diagnostic = match nearest(&pattern.text, &projections) {
                Some(near) => diagnostic.help(format!("`{near}` would match")),
                None => diagnostic,
            };
            sink.push(diagnostic.help("`trafoc show SPEC` lists the paths; `*` matches any text"));
        }
    }

    /// Reports parameters that are frozen and start fresh, so that they keep random numbers.
    fn frozen(&self, known: &BTreeSet<String>, sink: &mut Sink) {
        let freeze = &self.recipe.freeze;
        let place = self.recipe.places.of("freeze");
        let start = match self.body.start {
            Weights::Trained(start) => start,
            // The run was checked when it began.
            Weights::Checkpoint => return,
            Weights::Fresh => {
                if known.iter().any(|path| freeze.matches(path)) {
                    let message = "all parameters start fresh, so those that are frozen keep random numbers";
                    sink.push(
                        Diagnostic::warning(Code::FrozenFresh, place, message)
                            .help("`start: {from: DIR}` starts from the weights of a trained model"),
                    );
                }
                return;
            }
        };
        let mut fresh = start.fresh.iter().filter(|path| freeze.matches(path));
        if let Some(first) = fresh.next() {
            let more = match fresh.count() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let message =
                format!("`{first}`{more} would start fresh and never be trained, because it is frozen");
            sink.push(
                Diagnostic::error(Code::FrozenFresh, place, message)
                    .help("freeze only parameters of the trained model"),
            );
        }
    }
}

/// The diagnostic for a tokenizer with more tokens than the spec's embedding table has rows.
pub fn too_many(found: u64, place: Span, key: &str, size: u64, spec: &ModelSpec) -> Diagnostic {
    let message = format!("`{key}` is {size}, too small for {}", counted(found, "token"));
    Diagnostic::error(Code::VocabMismatch, place, message)
        .label(spec.places.of(key), format!("{key} is {size} here"))
        .help(format!("write `{key}: {found}` in the spec, or `--set {key}={found}`"))
}
