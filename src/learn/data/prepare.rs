//! Reads a recipe's files: tokenizers are trained, examples encoded, parts divided.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::Refused;
use super::codebook::Codebook;
use super::dataset::Dataset;
use super::encode::Encoder;
use super::examples::Part;
use super::file::Named;
use super::form::Form;
use super::inherited::Inherited;
use super::order::Loader;
use super::read::{Faults, Place, Raw, read};
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::words::listed;
use crate::learn::random::Stream;
use crate::learn::recipe::agree::{Task, too_many};
use crate::learn::recipe::data::TooLong;
use crate::learn::recipe::reach;
use crate::learn::recipe::{Batch, Format, Locations, Masking, Recipe, Split, Tokens};
use crate::learn::token::{Maker, Tokenizer};
use crate::parts::{Embed, Head};
use crate::source::{SourceMap, Span};
use crate::spec::ModelSpec;

/// Reads the files that a recipe names. The recipe has been checked against the spec before. Training that
/// starts from a trained model takes over what it brings along.
///
/// # Errors
/// A file cannot be read, or does not contain what the task needs; the diagnostics are in the sink.
pub fn prepare(
    recipe: &Recipe,
    spec: &ModelSpec,
    inherited: &Inherited,
    sources: &SourceMap,
    sink: &mut Sink,
) -> Result<Dataset, Refused> {
    let plan = Plan::new(recipe, spec, inherited, sources)?;
    let (membership, codebook) = plan.learnt(sink)?;
    let [train, validation, test] = plan.parts(&codebook, &membership, sink)?;
    let Some(train) = train.filter(|p| !p.is_empty()) else {
        sink.push(nothing_fits(recipe));
        return Err(Refused::Data);
    };
    plan.held_back(validation.as_ref(), test.as_ref(), sink);
    if sink.has_errors() {
        return Err(Refused::Data);
    }
    Ok(plan.dataset(codebook, train, validation, test))
}

/// Warns about recipes that are valid but probably not intended: a batch larger than the data, numbers of steps
/// beyond the last one.
pub fn proportions(recipe: &Recipe, dataset: &Dataset, sink: &mut Sink) {
    let (batch, examples) = (&recipe.batch, dataset.train.len() as u64);
    // Not for the default size, which the author did not choose; a run and a project write it out.
    if *batch.size > examples && batch.size != Batch::usual().size {
        let message =
            format!("the batch size is {}, but there are only {examples} training examples", *batch.size);
        sink.push(
            Diagnostic::warning(Code::DataMismatch, batch.places.of("size"), message)
                .help(format!("every step uses all of them, as with `size: {examples}`")),
        );
    }
    // With a number of steps this was checked before the data was read.
    if recipe.steps.is_none() {
        reach::check(recipe, recipe.total_steps(Loader::new(dataset).steps_of_epoch()), sink);
    }
}

/// The diagnostic for data without a single example.
fn nothing_to_learn(recipe: &Recipe) -> Diagnostic {
    let place = recipe.data.places.of("train");
    Diagnostic::error(Code::BadData, place, "there are no training examples")
        .help("is this the right file, and the right format?")
}

/// The diagnostic for data whose examples were all left out.
fn nothing_fits(recipe: &Recipe) -> Diagnostic {
    // A long text is cut into pieces that fit.
    if recipe.data.too_long != TooLong::Skip || matches!(recipe.data.format, Format::Text(_)) {
        return nothing_to_learn(recipe);
    }
    let message = "there are no training examples: each is too long and left out";
    Diagnostic::error(Code::DataMismatch, recipe.data.places.of("too_long"), message)
        .help("raise `longest` or the spec's `context`, or write `too_long: cut`")
}

/// The recipe and the spec for which data is prepared, and what a trained model passes on.
pub(super) struct Plan<'a> {
    recipe: &'a Recipe,
    spec: &'a ModelSpec,
    inherited: &'a Inherited,
    sources: &'a SourceMap,
    pub(super) task: Task,
}

/// The embedding of the first stack, which reads the input.
fn embed(spec: &ModelSpec) -> Option<&Embed> {
    spec.encoder.as_ref().or(spec.decoder.as_ref()).map(|stack| &stack.embed)
}

/// The number of languages that a spec distinguishes, with its place in the spec.
pub(super) fn languages(spec: &ModelSpec) -> Option<(u64, Span)> {
    embed(spec).and_then(|e| Some((**e.languages.as_ref()?, e.places.of("languages"))))
}

/// The number of positions of an image; 0 if the spec reads none.
pub fn positions(spec: &ModelSpec) -> u64 {
    embed(spec).and_then(|e| e.patches.as_ref()).map_or(0, |patches| {
        let side = *patches.image / (*patches.size).max(1);
        side.saturating_mul(side)
    })
}

/// The most positions of an example.
pub(super) fn longest(recipe: &Recipe, spec: &ModelSpec) -> usize {
    let context = spec.context.and_then(|c| usize::try_from(c).ok()).unwrap_or(usize::MAX);
    // A shorter limit saves memory and time; a longer one has no positions.
    recipe.data.longest.and_then(|l| usize::try_from(*l).ok()).unwrap_or(context).min(context)
}

/// The number of classes that a head distinguishes, with its place in the spec.
pub(super) fn classes(spec: &ModelSpec) -> Option<(u64, Span)> {
    match &spec.head {
        Head::Classify(c) => Some((*c.classes, c.places.of("classes"))),
        Head::Tag(t) => Some((*t.classes, t.places.of("classes"))),
        Head::Lm(_) | Head::Mlm(_) | Head::Translate(_) | Head::Span(_) | Head::Embed(_) => None,
    }
}

/// Whether several classes may apply to one example.
pub(super) fn several(spec: &ModelSpec) -> bool {
    matches!(&spec.head, Head::Classify(c) if c.multi_label)
}

/// The part to which every example of the training files belongs; if empty, all of them are training data.
type Membership = Vec<Split>;

/// The part to which an example of the training files belongs.
fn part_of(membership: &Membership, index: usize) -> Split {
    membership.get(index).copied().unwrap_or(Split::Train)
}

impl<'a> Plan<'a> {
    /// A plan for a spec and a recipe.
    pub(super) fn new(
        recipe: &'a Recipe,
        spec: &'a ModelSpec,
        inherited: &'a Inherited,
        sources: &'a SourceMap,
    ) -> Result<Self, Refused> {
        let task = Task::of(spec).ok_or(Refused::Data)?;
        Ok(Self { recipe, spec, inherited, sources, task })
    }

    /// The data set of these parts.
    pub(super) fn dataset(
        &self,
        codebook: Codebook,
        train: Part,
        validation: Option<Part>,
        test: Option<Part>,
    ) -> Dataset {
        let Self { recipe, spec, .. } = self;
        let hides = self.task == Task::HiddenToken;
        let embed = embed(spec);
        Dataset {
            codebook,
            train,
            validation,
            test,
            batch: recipe.batch.clone(),
            seed: *recipe.seed,
            masking: hides.then(|| recipe.masking.clone().unwrap_or_else(Masking::usual)),
            has_types: embed.is_some_and(|e| e.segments.is_some()),
            vocab: spec.vocab.unwrap_or(0),
            outputs: classes(spec).map_or(0, |(count, _)| usize::try_from(count).unwrap_or(usize::MAX)),
            positions: usize::try_from(positions(spec)).unwrap_or(usize::MAX),
        }
        .with_longest_target()
    }
}

impl Plan<'_> {
    fn files(&self, locations: &Locations) -> Vec<Named> {
        locations.0.iter().map(|l| Named { path: l.path(self.sources), span: l.span }).collect()
    }

    /// The size and the channels of images.
    fn form(&self) -> Option<Form> {
        Form::of(self.spec)
    }

    fn limit(&self) -> Option<u64> {
        self.recipe.data.limit.map(|l| *l)
    }

    /// Calls `visit` with the examples of some files and their indices.
    fn each(
        &self,
        locations: &Locations,
        sink: &mut Sink,
        visit: &mut dyn FnMut(usize, Raw, Place<'_>, &mut Faults<'_>) -> ControlFlow<()>,
    ) -> Result<(), Refused> {
        // Every pass over the files gives the examples in the same order, so an index always means the same
        // one.
        let mut index = 0;
        let mut faults = Faults::new(sink);
        let files = self.files(locations);
        let (format, limit) = (&self.recipe.data.format, self.limit());
        let form = self.form().map(|form| (form, self.inherited.preparation.as_ref()));
        let several = several(self.spec);
        let outcome = read(format, &files, form, several, limit, &mut faults, &mut |raw, place, faults| {
            // Questions about the same paragraph belong to the same part.
            let group = if let Raw::Question { paragraph, .. } = &raw { *paragraph } else { index };
            let flow = visit(group, raw, place, faults);
            index += 1;
            flow
        });
        let is_wrong = faults.report();
        outcome?;
        if is_wrong { Err(Refused::Data) } else { Ok(()) }
    }

    /// What is learnt from the training files: which examples are held out, and the tokenizers and classes. If the
    /// files have faults, those of the other files are reported with them.
    fn learnt(&self, sink: &mut Sink) -> Result<(Membership, Codebook), Refused> {
        let learnt = self.membership(sink).and_then(|membership| {
            let codebook = self.codebook(&membership, sink)?;
            Ok((membership, codebook))
        });
        if let Err(Refused::Data) = learnt {
            for locations in [&self.recipe.data.validation, &self.recipe.data.test].into_iter().flatten() {
                match self.each(locations, sink, &mut |_, _, _, _| ControlFlow::Continue(())) {
                    Ok(()) | Err(Refused::Data) => {}
                    Err(refused) => return Err(refused),
                }
            }
        }
        learnt
    }

    /// Selects by the seed which examples are held out.
    fn membership(&self, sink: &mut Sink) -> Result<Membership, Refused> {
        let Some(held) = &self.recipe.data.split else { return Ok(Vec::new()) };
        // The shares are of all examples, so these are counted first.
        let mut count = 0usize;
        self.each(&self.recipe.data.train, sink, &mut |index, _, _, _| {
            count = count.max(index + 1);
            ControlFlow::Continue(())
        })?;
        let mut order: Vec<usize> = (0..count).collect();
        // A stream of its own, so that another setting that draws numbers does not change which examples are
        // held out.
        Stream::new(*self.recipe.seed, "split", 0).shuffle(&mut order);
        let share = |share: f64| (share * count as f64).round() as usize;
        let (validation, test) = (share(*held.validation), share(*held.test));
        // Shares below 1 do that only where they are rounded, of a few examples.
        if count > 0 && validation + test >= count {
            let groups =
                if matches!(self.recipe.data.format, Format::Squad(_)) { "paragraph" } else { "example" };
            let all = match count {
                1 => format!("the only {groups}"),
                count => format!("all {}", counted(count, groups)),
            };
            let message = format!("the split holds out {all}, which leaves nothing to train on");
            sink.push(
                Diagnostic::error(Code::DataMismatch, self.recipe.data.places.of("split"), message)
                    .help("hold out smaller shares, or add examples"),
            );
            return Err(Refused::Data);
        }
        let mut membership = vec![Split::Train; count];
        // Validation first, so that a larger share for the test leaves the validation data as it was.
        for (place, index) in order.into_iter().take(validation + test).enumerate() {
            if let Some(of) = membership.get_mut(index) {
                *of = if place < validation { Split::Validation } else { Split::Test };
            }
        }
        Ok(membership)
    }

    /// Checks that each part that the recipe holds out has an example; otherwise its metrics would be
    /// computed from nothing.
    fn held_back(&self, validation: Option<&Part>, test: Option<&Part>, sink: &mut Sink) {
        let data = &self.recipe.data;
        let split = data.split.as_ref();
        let parts = [
            ("validation", validation, data.validation.is_some(), split.map(|s| *s.validation)),
            ("test", test, data.test.is_some(), split.map(|s| *s.test)),
        ];
        for (part, there, is_file, share) in parts {
            let (place, help) = match (there, split, share) {
                (Some(_), _, _) => continue,
                (None, Some(split), Some(share)) if share > 0.0 => {
                    (split.places.of(part), "hold out a larger share, or remove it")
                }
                (None, _, _) if is_file => {
                    (data.places.of(part), "is this the right file, and the right format?")
                }
                (None, _, _) => continue,
            };
            let message = format!("no example is held out for `{part}`");
            sink.push(Diagnostic::error(Code::BadData, place, message).help(help));
        }
    }

    /// Trains or reads the tokenizers, and collects classes and languages.
    fn codebook(&self, membership: &Membership, sink: &mut Sink) -> Result<Codebook, Refused> {
        let data = &self.recipe.data;
        let longest = longest(self.recipe, self.spec);
        let mut makers = Makers::of(self)?;
        // Ordered, so that indices do not depend on the order of the files.
        let mut names: [BTreeSet<String>; 2] = Default::default();
        let [classes, languages] = &mut names;
        let mut is_empty = true;
        self.each(&data.train, sink, &mut |index, raw, _, _| {
            is_empty = false;
            // A vocabulary that had seen the held-out texts would make their loss look better than that of
            // new ones.
            let is_learnt = part_of(membership, index) == Split::Train;
            makers.add(&raw, is_learnt);
            // Classes that only held-out examples have are collected too, or these could not be encoded.
            match raw {
                Raw::Labelled { labels, .. } => classes.extend(labels),
                Raw::Tagged { tags, .. } => classes.extend(tags),
                Raw::Image { label, .. } => drop(classes.insert(label)),
                Raw::Pair { language, .. } => languages.extend(language),
                Raw::Text(_) | Raw::Question { .. } => {}
            }
            ControlFlow::Continue(())
        })?;
        // Checked before the tokenizer is made, whose settings would be blamed for the missing texts.
        if is_empty {
            sink.push(nothing_to_learn(self.recipe));
            return Err(Refused::Data);
        }
        let [classes, languages] = names;
        let (tokenizer, source) = match &self.recipe.tokens {
            Some(_) => makers.finish(self, sink)?,
            None => (self.inherited.tokenizer.clone(), self.inherited.source.clone()),
        };
        let classes = self.named(classes, sink);
        let codebook = Codebook {
            task: self.task,
            tokenizer,
            source,
            classes,
            languages: self.ordered(languages),
            several: several(self.spec),
            // As the trained model's own tokenizer gives it none.
            untyped: self.inherited.untyped && self.recipe.tokens.is_none(),
            image: self.form(),
            preparation: self.inherited.preparation.clone(),
            // Another vocabulary has other special tokens.
            writing: (self.inherited.writing.clone())
                .filter(|_| self.task == Task::Translate && self.recipe.tokens.is_none()),
            longest,
            // Known once the examples are read.
            longest_target: None,
        };
        self.fits(&codebook, sink);
        match sink.has_errors() {
            true => Err(Refused::Data),
            false => Ok(codebook),
        }
    }

    /// The names of the classes by index: those of the head that training continues with, else those of the
    /// data.
    fn named(&self, found: BTreeSet<String>, sink: &mut Sink) -> Vec<String> {
        let own = &self.inherited.classes;
        if own.is_empty() || classes(self.spec).is_none() {
            return sorted(found);
        }
        let mut other = found.iter().filter(|name| !own.contains(name));
        if let Some(first) = other.next() {
            let shown: Vec<&str> = own.iter().take(12).map(String::as_str).collect();
            let message = format!("the data has the class `{first}`, which the trained head does not have");
            let head = self.spec.head.part();
            sink.push(
                Diagnostic::error(Code::DataMismatch, self.recipe.data.places.of("train"), message)
                    .help(format!("its classes are {}", listed(&shown)))
                    .help(format!(
                        "`--head {head} --classes {}` starts a new head with the classes of the data",
                        found.len()
                    )),
            );
        }
        own.clone()
    }

    /// The names of the languages by index: those of the trained model, whose rows keep their meaning, and
    /// then those that only the data has.
    fn ordered(&self, mut found: BTreeSet<String>) -> Vec<String> {
        let mut all = self.inherited.languages.clone();
        found.retain(|name| !all.contains(name));
        // After the trained ones: an index in between would give a trained row to another language.
        all.extend(sorted(found));
        all
    }

    /// Compares the rows, classes and languages of the spec with those of the data.
    pub(super) fn fits(&self, codebook: &Codebook, sink: &mut Sink) {
        let place = self.recipe.places.of("tokens");
        let sides = [
            ("vocab", &codebook.tokenizer, self.spec.vocab),
            ("source_vocab", &codebook.source, self.spec.source_vocab),
        ];
        for (key, tokenizer, size) in sides {
            let (Some(tokenizer), Some(size)) = (tokenizer, size) else { continue };
            let found = tokenizer.vocab() as u64;
            // The recipe's own size first, which is at most that of the spec.
            if let Some((asked, at)) = self.recipe.tokens.as_ref().and_then(Tokens::asked)
                && found > asked
            {
                let message =
                    format!("`vocab` is {asked}, but the data needs at least {}", counted(found, "token"));
                sink.push(
                    Diagnostic::error(Code::VocabMismatch, at, message)
                        .help(format!("write `vocab: {found}`")),
                );
            } else if found > size {
                sink.push(too_many(found, place, key, size, self.spec));
            } else if found < size && self.recipe.tokens.is_some() {
                // Not for the tokenizer of a trained model, whose table was often rounded up.
                let message = format!(
                    "the data has {}, but `{key}` has {}",
                    counted(found, "token"),
                    counted(size, "row")
                );
                sink.push(
                    Diagnostic::warning(Code::VocabMismatch, place, message)
                        .label(self.spec.places.of(key), "the remaining rows are never trained")
                        .help(format!("write `{key}: {found}`")),
                );
            }
        }
        let counts = [
            ("classes", codebook.classes.len() as u64, classes(self.spec)),
            ("languages", codebook.languages.len() as u64, languages(self.spec)),
        ];
        for (what, found, known) in counts {
            let Some((size, at)) = known else { continue };
            // A single sigmoid distinguishes two classes.
            let wanted = if what == "classes" && codebook.several && size == 1 { 2 } else { size };
            let place = self.recipe.data.places.of("train");
            if let ("classes", [only], false) = (what, codebook.classes.as_slice(), codebook.several) {
                let message =
                    format!("every example has the class `{only}`, so there is nothing to distinguish");
                sink.push(
                    Diagnostic::error(Code::DataMismatch, place, message)
                        .label(at, format!("classes is {size} here"))
                        .help("is this the right column?"),
                );
            } else if found > wanted {
                let names = if what == "classes" { &codebook.classes } else { &codebook.languages };
                // A message with the names of a thousand classes could not be read.
                let shown: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
                let message = format!("the data has {found} {what}, but the spec has {size}");
                let error = Diagnostic::error(Code::DataMismatch, place, message)
                    .label(at, format!("{what} is {size} here"))
                    .help(format!("the data has {}", listed(&shown)));
                let joined = names.iter().find(|name| what == "classes" && name.contains('|'));
                sink.push(match joined.filter(|_| !codebook.several) {
                    Some(name) => error
                        .help(format!("with `multi_label: true` in the spec, `{name}` is several classes")),
                    None => error,
                });
            } else if found < wanted {
                let message = format!("the data has {found} {what}, but the spec has {size}");
                sink.push(
                    Diagnostic::warning(Code::DataMismatch, place, message)
                        .label(at, "the others never occur"),
                );
            }
        }
    }

    /// Encodes the examples of all files: the parts for training, validation and test, where there are
    /// examples.
    fn parts(
        &self,
        codebook: &Codebook,
        membership: &Membership,
        sink: &mut Sink,
    ) -> Result<[Option<Part>; 3], Refused> {
        let data = &self.recipe.data;
        let is_stream = matches!(data.format, Format::Text(_));
        let encoder = || Encoder::new(codebook, data.too_long, is_stream);
        // The training files have examples of every part if shares of them are held out.
        let (mut train, mut validation, mut test) = (encoder(), encoder(), encoder());
        let mut outcome = self.each(&data.train, sink, &mut |index, raw, place, faults| {
            match part_of(membership, index) {
                Split::Train => &mut train,
                Split::Validation => &mut validation,
                Split::Test => &mut test,
            }
            .add(raw, place, faults)
        });
        let held = [(&data.validation, validation), (&data.test, test)];
        let mut parts = vec![Some(train.finish())];
        for (locations, mut own) in held {
            if let Some(locations) = locations {
                // Also if the files before them have faults, so that those of all files are reported.
                let held =
                    self.each(locations, sink, &mut |_, raw, place, faults| own.add(raw, place, faults));
                outcome = outcome.and(held);
            }
            parts.push(Some(own.finish()).filter(|p| !p.is_empty()));
        }
        outcome?;
        let mut parts = parts.into_iter();
        let mut next = || parts.next().flatten();
        Ok([next(), next(), next()])
    }
}

/// Names in order: by value if all are numbers, so that 10 comes after 9, otherwise as texts.
fn sorted(names: BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    if names.iter().all(|n| n.parse::<u64>().is_ok()) {
        names.sort_by_key(|n| n.parse::<u64>().unwrap_or(u64::MAX));
    }
    names
}

/// The builders of the tokenizers, which see every training text before the first one is encoded.
struct Makers<'r> {
    /// For the sequence, or for the target.
    text: Option<Maker<'r>>,
    /// For a source with its own vocabulary.
    source: Option<Maker<'r>>,
}

impl<'r> Makers<'r> {
    fn of(plan: &Plan<'r>) -> Result<Self, Refused> {
        let Some(tokens) = &plan.recipe.tokens else { return Ok(Self { text: None, source: None }) };
        let files = match tokens {
            Tokens::File(file) => Some((
                file.path.path(plan.sources),
                file.merges.as_ref().map(|merges| merges.path(plan.sources)),
            )),
            _ => None,
        };
        let maker = |size: Option<u64>| Maker::new(tokens, files.clone(), size);
        let vocab = plan.spec.vocab;
        let source = plan.spec.source_vocab.map(|size| maker(Some(size)));
        Ok(Self { text: Some(maker(vocab)), source })
    }

    /// Shows an example to the builders; see [`Maker::add`].
    fn add(&mut self, raw: &Raw, is_learnt: bool) {
        let Some(text) = &mut self.text else { return };
        match raw {
            Raw::Text(t) => text.add(t, is_learnt),
            Raw::Pair { source, target, .. } => {
                // With one vocabulary for both languages, the same tokenizer learns from both sides.
                self.source.as_mut().unwrap_or(text).add(source, is_learnt);
                if let Some(text) = &mut self.text {
                    text.add(target, is_learnt);
                }
            }
            Raw::Labelled { text: first, second, .. } => {
                text.add(first, is_learnt);
                second.iter().for_each(|second| text.add(second, is_learnt));
            }
            Raw::Tagged { words, .. } => words.iter().for_each(|word| text.add(word, is_learnt)),
            Raw::Question { question, context, .. } => {
                text.add(question, is_learnt);
                text.add(context, is_learnt);
            }
            Raw::Image { .. } => {}
        }
    }

    /// The tokenizer of the text, and of the source if it has its own.
    fn finish(
        self,
        plan: &Plan<'_>,
        sink: &mut Sink,
    ) -> Result<(Option<Tokenizer>, Option<Tokenizer>), Refused> {
        // Once, and not at every text that has the character.
        if let Some(clash) = [&self.text, &self.source].into_iter().flatten().find_map(Maker::clash) {
            sink.push(clash);
            return Err(Refused::Data);
        }
        let mut make = |maker: Option<Maker<'r>>| {
            maker
                .map(Maker::finish)
                .transpose()
                .map_err(|fault| fault.refused(plan.recipe.places.of("tokens"), sink))
        };
        Ok((make(self.text)?, make(self.source)?))
    }
}
