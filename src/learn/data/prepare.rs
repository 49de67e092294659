//! A recipe's files, read: tokenizers made, examples encoded, parts divided.

use std::ops::ControlFlow;

use super::Refused;
use super::codebook::Codebook;
use super::encode::Encoder;
use super::examples::Part;
use super::file::Named;
use super::read::{Faults, Place, Raw, read};
use crate::diag::{Code, Diagnostic, Severity, Sink};
use crate::learn::random::Stream;
use crate::learn::recipe::agree::{Task, too_many};
use crate::learn::recipe::{Batch, Locations, Recipe, Split};
use crate::learn::token::Maker;
use crate::source::SourceMap;
use crate::spec::ModelSpec;

/// Everything a run learns from and is measured on.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// What ids and classes mean.
    pub codebook: Codebook,
    /// What is learnt from.
    pub train: Part,
    /// What is held back to choose by.
    pub validation: Option<Part>,
    /// What is held back to the end.
    pub test: Option<Part>,
    /// How examples become batches.
    pub batch: Batch,
    /// Where the order comes from.
    pub seed: u64,
}

impl Dataset {
    /// A part, if there is one.
    pub fn part(&self, split: Split) -> Option<&Part> {
        match split {
            Split::Train => Some(&self.train),
            Split::Validation => self.validation.as_ref(),
            Split::Test => self.test.as_ref(),
        }
    }
}

/// Reads what a recipe names. The recipe has been held against the spec before.
///
/// # Errors
/// A file cannot be read, or holds something else than the task needs; the sink then says what.
pub fn prepare(
    recipe: &Recipe,
    spec: &ModelSpec,
    sources: &SourceMap,
    sink: &mut Sink,
) -> Result<Dataset, Refused> {
    let Some(task) = Task::of(spec) else { return Err(Refused::Data) };
    let plan = Plan { recipe, spec, sources, task };
    let membership = plan.membership(sink)?;
    let codebook = plan.codebook(&membership, sink)?;
    let [train, validation, test] = plan.parts(&codebook, &membership, sink)?;
    let Some(train) = train.filter(|p| !p.is_empty()) else {
        let place = recipe.data.places.of("train");
        sink.push(
            Diagnostic::error(Code::BadData, place, "there is no example to learn from")
                .help("is it the right file, and the right format?"),
        );
        return Err(Refused::Data);
    };
    let (batch, seed) = (recipe.batch.clone(), *recipe.seed);
    Ok(Dataset { codebook, train, validation, test, batch, seed })
}

struct Plan<'a> {
    recipe: &'a Recipe,
    spec: &'a ModelSpec,
    sources: &'a SourceMap,
    task: Task,
}

/// Which part every example of the training files belongs to; all of them to training where empty.
type Membership = Vec<Split>;

fn part_of(membership: &Membership, index: usize) -> Split {
    membership.get(index).copied().unwrap_or(Split::Train)
}

impl Plan<'_> {
    fn files(&self, locations: &Locations) -> Vec<Named> {
        locations.0.iter().map(|l| Named { path: l.path(self.sources), span: l.span }).collect()
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
        let mut index = 0;
        let mut faults = Faults::new(sink);
        let files = self.files(locations);
        read(&self.recipe.data.format, &files, self.limit(), &mut faults, &mut |raw, place, faults| {
            let flow = visit(index, raw, place, faults);
            index += 1;
            flow
        })?;
        if faults.any() { Err(Refused::Data) } else { Ok(()) }
    }

    /// Chooses by the seed which examples are held back.
    fn membership(&self, sink: &mut Sink) -> Result<Membership, Refused> {
        let Some(held) = &self.recipe.data.split else { return Ok(Vec::new()) };
        let mut count = 0usize;
        self.each(&self.recipe.data.train, sink, &mut |_, _, _, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        let mut order: Vec<usize> = (0..count).collect();
        Stream::new(*self.recipe.seed, "split", 0).shuffle(&mut order);
        let share = |share: f64| (share * count as f64).round() as usize;
        let (validation, test) = (share(*held.validation), share(*held.test));
        let mut membership = vec![Split::Train; count];
        for (place, index) in order.into_iter().take(validation + test).enumerate() {
            if let Some(of) = membership.get_mut(index) {
                *of = if place < validation { Split::Validation } else { Split::Test };
            }
        }
        Ok(membership)
    }

    /// Makes or reads the tokenizers.
    fn codebook(&self, membership: &Membership, sink: &mut Sink) -> Result<Codebook, Refused> {
        let data = &self.recipe.data;
        let context = self.spec.context.and_then(|c| usize::try_from(c).ok()).unwrap_or(usize::MAX);
        let longest = data.longest.and_then(|l| usize::try_from(*l).ok()).unwrap_or(context).min(context);
        let mut codebook = Codebook {
            task: self.task,
            tokenizer: None,
            source: None,
            classes: Vec::new(),
            languages: Vec::new(),
            longest,
        };
        let Some(tokens) = &self.recipe.tokens else { return Ok(codebook) };
        let mut text = Maker::new(tokens);
        let mut source = self.spec.source_vocab.map(|_| Maker::new(tokens));
        self.each(&data.train, sink, &mut |index, raw, _, _| {
            let is_learnt = part_of(membership, index) == Split::Train;
            match raw {
                Raw::Text(t) => text.add(&t, is_learnt),
                Raw::Pair { source: from, target, .. } => {
                    source.as_mut().unwrap_or(&mut text).add(&from, is_learnt);
                    text.add(&target, is_learnt);
                }
            }
            ControlFlow::Continue(())
        })?;
        codebook.tokenizer = Some(text.finish());
        codebook.source = source.map(Maker::finish);
        let place = self.recipe.places.of("tokens");
        let sides = [
            ("vocab", &codebook.tokenizer, self.spec.vocab),
            ("source_vocab", &codebook.source, self.spec.source_vocab),
        ];
        for (key, tokenizer, size) in sides {
            let (Some(tokenizer), Some(size)) = (tokenizer, size) else { continue };
            let found = tokenizer.vocab() as u64;
            if found > size {
                sink.push(too_many(found, place, key, size, self.spec));
            } else if found < size {
                let message = format!("the data has {found} tokens, and `{key}` has room for {size}");
                sink.push(
                    Diagnostic::warning(Code::VocabMismatch, place, message)
                        .label(self.spec.places.of(key), "the other rows are never trained")
                        .help(format!("write `{key}: {found}`")),
                );
            }
        }
        match sink.iter().any(|d| d.severity == Severity::Error) {
            true => Err(Refused::Data),
            false => Ok(codebook),
        }
    }

    fn parts(
        &self,
        codebook: &Codebook,
        membership: &Membership,
        sink: &mut Sink,
    ) -> Result<[Option<Part>; 3], Refused> {
        let data = &self.recipe.data;
        let encoder = || Encoder::new(codebook, data.too_long);
        let (mut train, mut validation, mut test) = (encoder(), encoder(), encoder());
        self.each(&data.train, sink, &mut |index, raw, place, faults| {
            match part_of(membership, index) {
                Split::Train => &mut train,
                Split::Validation => &mut validation,
                Split::Test => &mut test,
            }
            .add(raw, place, faults)
        })?;
        let held = [(&data.validation, validation), (&data.test, test)];
        let mut parts = vec![Some(train.finish())];
        for (locations, mut own) in held {
            if let Some(locations) = locations {
                self.each(locations, sink, &mut |_, raw, place, faults| own.add(raw, place, faults))?;
            }
            parts.push(Some(own.finish()).filter(|p| !p.is_empty()));
        }
        let mut parts = parts.into_iter();
        let mut next = || parts.next().flatten();
        Ok([next(), next(), next()])
    }
}
