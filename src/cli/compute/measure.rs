//! Computes metrics for `trafoc eval`.

use std::fmt::Write as _;

use super::beginning::Choice;
use super::failures::step_failure;
use super::packing::pack_as;
use super::prepared::{Source, prepare_all};
use super::trained::Trained;
use crate::cli::command::Command;
use crate::cli::eval::{Data, Eval, Translation};
use crate::cli::figure::named;
use crate::cli::format::Format;
use crate::cli::next_step::quoted;
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::place::WeightsDtype;
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::field::words::listed;
use crate::learn::evaluate::{Asked, Measured, Written, evaluate};
use crate::learn::metric::bleu;
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::{Metric, Split};
use crate::learn::session::{self, files};
use crate::report::number;

impl Command for Eval {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        measure(self, ui)
    }
}

/// Computes the metrics of a trained model on a part of the recipe's data.
///
/// # Errors
/// The data does not fit the model.
fn measure(arguments: &Eval, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    let kept = arguments.model.kept.weights_dtype;
    // Weights in fewer bits are compared with the whole ones below.
    let trained = if kept == WeightsDtype::F32 {
        Trained::open_packed(&arguments.model, ui)?
    } else {
        Trained::open(&arguments.model, ui)?
    };
    let mut weights = trained.weights.clone();
    pack_as(kept, ui, |of| weights.pack(&trained.plan, of))?;
    let own = trained.found.as_ref();
    let Some(recipe) = arguments.recipe.clone().or_else(|| own.map(|f| f.file(files::RECIPE))) else {
        return Err(Failure::usage("a spec with weights needs a recipe, which names the data")
            .help("`--recipe FILE`"));
    };
    let spec = own.map_or(arguments.model.model.clone(), |f| f.file(files::SPEC).display().to_string());
    let subject = trained.again(&spec, ui)?;
    // `stop` needs its metric among those that are computed, and `evaluate.metrics` may leave it out here.
    let with: Vec<String> = arguments.with.iter().cloned().chain(["stop=none".to_owned()]).collect();
    let source = own.map_or(Source::Files, |f| Source::Run(f.root()));
    let choice = Choice { families: arguments.model.over.families(), ..Choice::default() };
    let mut prepared = prepare_all(subject, &recipe, &with, source, &choice, ui)?;
    let before = &trained.codebook;
    if before.image.is_some() && trained.subject.model.is_some() {
        let message = "the images of a recipe are preprocessed as in training with trafoc, which differs \
            from this model's own preprocessing";
        return Err(Failure::usage(message).help("`trafoc predict` uses the model's own preprocessing"));
    }
    // The special tokens of another library's model do not depend on the data.
    prepared.dataset.codebook.writing.clone_from(&before.writing);
    // Nor does the length of a translation depend on the examples that are measured.
    prepared.dataset.codebook.longest_target = before.longest_target;
    // Neither do its token types.
    prepared.dataset.codebook.untyped = before.untyped;
    // The same id would mean another token or class, and the metrics would be wrong without any error.
    if prepared.dataset.codebook != *before {
        let message = "the data gives another vocabulary or other classes than those the model was \
            trained with";
        let failure = Failure::new(Exit::Failed, message);
        return Err(failure.help("use the recipe's `data.train` and `tokens` from the training"));
    }
    if arguments.each && before.task != Task::Translate {
        return Err(Failure::usage("`--each` lists translations, but this model does not translate")
            .help("`trafoc predict` shows the model's results for texts and images"));
    }
    let split = match arguments.split.as_deref() {
        Some("validation") => Split::Validation,
        Some("test") => Split::Test,
        // The grammar of the command line allows no fourth word.
        Some(_) => Split::Train,
        None => session::measured(&prepared.recipe, &prepared.dataset),
    };
    if prepared.dataset.part(split).is_none() {
        let message = format!("the recipe's data has no part `{}`", split.word());
        let help = format!(
            "add `--with 'data.split={{{0}: 0.1}}'`, or a file with `--with data.{0}=FILE`",
            split.word()
        );
        return Err(Failure::usage(message).help(help));
    }
    let limit = prepared.recipe.evaluate.limit.map(|l| *l);
    let all = prepared.dataset.part(split).map_or(0, |part| part.len() as u64);
    // The figures alone would not say what they were measured on.
    ui.note(&match limit.filter(|limit| *limit < all) {
        Some(limit) => format!(
            "note: `evaluate.limit` uses {limit} of the {all} examples of `{}`, the first ones; `--with \
                evaluate.limit=none` uses all",
            split.word()
        ),
        None => format!("measured on `{}`, {}", split.word(), counted(number::exact(all.into()), "example")),
    });
    let metrics = std::mem::take(&mut prepared.recipe.evaluate.metrics);
    let asked = Asked { split, limit, metrics: &metrics, writes: arguments.each };
    // What fewer bits cost is seen only next to the same metrics of the whole weights.
    let whole = match kept {
        WeightsDtype::F32 => None,
        WeightsDtype::Bf16 | WeightsDtype::Int8 | WeightsDtype::Int4 => {
            // Its translations are not listed, only its metrics.
            let asked = Asked { writes: false, ..asked };
            let measured = evaluate(&trained.plan, &trained.weights, &prepared.dataset, asked);
            Some(measured.map_err(step_failure)?.figures)
        }
    };
    let Measured { figures, written } =
        evaluate(&trained.plan, &weights, &prepared.dataset, asked).map_err(step_failure)?;
    say_what_is_too_short(&metrics, &written, ui);
    let mut each: Vec<Translation> = Vec::new();
    if arguments.each {
        each = written.into_iter().map(Translation::of).collect();
        each.sort_by(|a, b| b.bleu.total_cmp(&a.bleu));
    }
    let translations: String = each.iter().map(Translation::text).collect();
    let mut text = String::new();
    let widest = figures.iter().map(|(m, _)| m.word().len()).max().unwrap_or(0);
    for (i, (metric, value)) in figures.iter().enumerate() {
        let _ = write!(text, "{:widest$}  {value:.4}", metric.word());
        // Both have the metrics in the order of the recipe.
        if let Some((_, before)) = whole.as_ref().and_then(|whole| whole.get(i)) {
            let _ = write!(text, "  in {}, {before:.4} in f32", kept.word());
        }
        text.push('\n');
    }
    let data = Data {
        checkpoint: own.map(|f| f.name()),
        step: own.map(|f| f.state.step),
        split: split.word(),
        figures: named(&figures),
        weights_dtype: kept.word(),
        in_f32: whole.as_ref().map(named),
        translations: arguments.each.then_some(each),
    };
    // Only a run has weights that its user made and may want to pass on.
    if trained.found.is_some() {
        ui.next(&format!("trafoc export {} --to exported", quoted(&arguments.model.model)));
    }
    Ok(Output::new(translations + &ui.page(text), data))
}

/// Says of a BLEU of 0 that it follows from the length of the translations alone.
fn say_what_is_too_short(metrics: &[Metric], written: &[Written], ui: &Ui) {
    let own: Vec<&str> = written.iter().map(|text| text.own.as_str()).collect();
    let is_zero = |metric: &Metric| {
        *metric == Metric::Bleu && !bleu::is_long_enough(&own)
            || *metric == Metric::WordBleu && !bleu::is_long_enough_in_words(&own)
    };
    let zero: Vec<&str> =
        metrics.iter().filter(|metric| is_zero(metric)).map(|metric| metric.word()).collect();
    if !zero.is_empty() && !own.is_empty() {
        ui.note(&format!(
            "note: {} would be 0 whatever the translations say, because none has {} words, of which this metric compares \
             runs; `sentence_bleu` and `exact_match` measure shorter ones, too",
            listed(&zero),
            bleu::ORDER
        ));
    }
}

impl Translation {
    fn of(written: Written) -> Self {
        let Written { source, own, right } = written;
        Self {
            bleu: bleu::of_one(&own, &right),
            word_bleu: bleu::of_one_in_words(&own, &right),
            sentence_bleu: bleu::sentence(&own, &right, 2),
            source,
            reference: right,
            written: own,
        }
    }

    fn text(&self) -> String {
        let Self { source, reference, written, bleu, word_bleu, sentence_bleu } = self;
        format!(
            "source     {source}\nreference  {reference}\nwritten    {written}\n\
             bleu {bleu:.1} of 100, word_bleu {word_bleu:.1} of 100, sentence_bleu {sentence_bleu:.3} of 1\n\n"
        )
    }
}
