//! `trafoc compare`: the differences between specs, and their costs.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::command::Command;
use super::format::{Format, FormatArg, TableFormat};
use super::new_head::StartArgs;
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{self, ForceArg, Mark};
use super::scene::SceneArgs;
#[cfg(feature = "interp")]
use super::setting::DEVICE;
#[cfg(feature = "interp")]
use super::settings;
use super::shelf::SHELF;
use super::subject::{OverArgs, Subject};
use super::ui::{Ui, path_line};
use crate::diag::Diagnostic;
use crate::draw::comparison::page;
use crate::draw::model::{Outline, outline};
use crate::report::compare::condition::{Condition, Verdict};
use crate::report::compare::learning::Learning;
use crate::report::compare::nearest::{Known, Near, nearest};
use crate::report::compare::timing::Timing;
use crate::report::compare::{Comparison, Entry, compare};
use crate::report::cost::{Cost, cost};
use crate::report::number;
use crate::report::scene::Scene;
use crate::source::SourceMap;

const NAMES: &str = "Costs have names: params, active, embedding, attention, ffn, norm, head,\nbuffers, flops, \
    flops_per_token, attention_flops, visible_flops,\ntraining_flops, decoding_flops, kv_per_token, kv, \
    weights, run_memory, train_memory.\n`first.params` is that of the first spec. If the only spec has a \
    sweep,\nits variants are compared.";

/// The number of seeds with which models are trained by default.
#[cfg(feature = "interp")]
const SEEDS: u64 = 3;

/// The command line of `compare`.
#[derive(Debug, Args)]
#[command(after_help = NAMES)]
pub struct Compare {
    /// Specs: files, `-` for stdin, shipped ones such as `@gpt1`, folders of
    /// runs, or Hugging Face model directories
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<String>,
    #[command(flatten)]
    over: OverArgs,
    #[command(flatten)]
    start: StartArgs,
    #[command(flatten)]
    scene: SceneArgs,
    /// Exit with 1 if this holds for a spec, such as `params > 125M`; may be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Compare with the shipped spec that is most similar to this one
    #[arg(long)]
    nearest: bool,
    /// Write a page with diagrams and charts to this file
    #[arg(long, value_name = "FILE", value_parser = overwrite::page)]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// Measure forward passes and training steps of each spec, in turns
    #[arg(long)]
    measure: bool,
    /// Train each spec with this recipe, on the same data in the same order, and show what they learned
    #[arg(long, value_name = "RECIPE")]
    train: Option<PathBuf>,
    /// The number of seeds for each spec, starting from the recipe's own; 3 if not given
    #[arg(long, value_name = "N", requires = "train", value_parser = amount::between(1_u64, 100))]
    seeds: Option<u64>,
    /// Change a value of the recipe, such as `steps=100`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE", requires = "train")]
    with: Vec<String>,
    /// The folder for the runs; existing runs in it are continued. If not given, a temporary folder is used
    #[arg(long, value_name = "DIR", requires = "train")]
    out: Option<PathBuf>,
    /// The device to run on: flex, cuda:0, auto, ...; `trafoc doctor` lists them [env: TRAFOC_DEVICE]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    format: FormatArg<TableFormat>,
}

/// The data of a comparison in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The models with their costs, how they differ, and how long they take and what they learn if asked for.
    #[serde(flatten)]
    comparison: Comparison,
    /// The most similar shipped specs, with `--nearest`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<Near>,
    /// Every condition of `--fail-if` for every spec.
    conditions: Vec<Verdict>,
    /// The page of `--html`.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<PathBuf>,
    /// The folder of the runs of `--train`, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<PathBuf>,
}

impl Command for Compare {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format.into()
    }

    /// Compares the specs; the exit is 1 if a condition of `--fail-if` holds.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let mut sources = SourceMap::new();
        // Before any spec is read: a condition with an error is wrong for all of them.
        let conditions = self.conditions(&mut sources, ui)?;
        self.refuse_unused_options()?;
        // Before models are measured or trained, because a refusal afterwards would lose hours of work.
        if let Some(path) = &self.html {
            self.force.permit(path, Mark::Drawn, "another `--html`")?;
        }
        let mut subjects = Vec::new();
        // A new head is put on every spec.
        let over = self.start.over(&self.over)?;
        for spec in &self.specs {
            let subject = over.compile(spec, ui)?;
            subjects.push((subject.spec.name.clone(), subject));
        }
        // Also without `--nearest`, because a single spec with a sweep is compared with its variants.
        let near = self.add(&mut subjects, ui)?;
        // Conditions may be about one spec alone.
        if subjects.len() < 2 && conditions.is_empty() {
            let help = "`--nearest` compares one spec with those that are part of trafoc";
            return Err(Failure::usage("a comparison needs at least two specs").help(help));
        }
        let names = distinct(&subjects);
        let costs: Vec<Cost> = subjects.iter().map(|(_, s)| cost(&s.graph)).collect();
        let scene = self.scene.scene(costs.iter());
        let entries: Vec<Entry<'_>> = names
            .iter()
            .zip(&subjects)
            .map(|(name, (_, s))| Entry { name, spec: &s.spec, graph: &s.graph })
            .collect();
        let mut comparison = compare(&entries, scene);
        if self.measure {
            comparison.timing = Some(self.timing(&names, &subjects, &scene, ui)?);
        }
        let outlines: Vec<Outline> = subjects
            .iter()
            .zip(&names)
            // Only the page shows them.
            .filter(|_| self.html.is_some())
            .map(|((_, s), name)| Outline { name: name.clone(), ..outline(&s.graph, &s.sources) })
            .collect();
        // Before training, which may take hours: a condition may have no value.
        let judged = judge(&conditions, &comparison).map_err(|diagnostic| {
            ui.diagnose(&[diagnostic], &sources);
            Failure::usage("the condition has no value")
        })?;
        let (mut ending, mut runs) = (Exit::Ok, None);
        if let Some(recipe) = &self.train {
            let subjects = subjects.into_iter().map(|(_, subject)| subject);
            let (learning, left, exit) =
                self.learning(recipe, names.iter().cloned().zip(subjects).collect(), ui)?;
            comparison.learning = Some(learning);
            (ending, runs) = (exit, left);
        }
        let failed: Vec<&Verdict> = judged.iter().filter(|j| j.holds).collect();
        let format = self.format.format;
        let mut text = match format {
            TableFormat::Text => {
                let nearest = text_of(&near) + if near.is_empty() { "" } else { "\n" };
                nearest + &comparison.text(ui.width())
            }
            TableFormat::Csv => comparison.csv(),
            TableFormat::Agent => comparison.plain().tsv(),
            TableFormat::Markdown => comparison.markdown(),
            // The envelope has the data and not this text.
            TableFormat::Json => String::new(),
        };
        // In CSV and Markdown a further line would be no row of the table; there the exit code says it.
        if format == TableFormat::Text && !failed.is_empty() {
            text.push('\n');
            text.extend(failed.iter().map(|j| line(j)));
        }
        if format == TableFormat::Agent {
            text_of(&near).lines().for_each(|line| ui.note(line));
            failed.iter().for_each(|verdict| ui.note(line(verdict).trim_end()));
        }
        if let Some(path) = &self.html {
            overwrite::write(path, &page(&comparison, &outlines).html())?;
            if format == TableFormat::Text {
                if ui.is_quiet() {
                    // The page has all of it, so the text is no more than a summary.
                    text.clear();
                }
                text += if text.is_empty() { "" } else { "\n" };
                text += &path_line(path);
            }
        }
        // That training was interrupted, or failed, matters more than a condition.
        let exit = if failed.is_empty() || ending != Exit::Ok { ending } else { Exit::Failed };
        let page = self.html.clone();
        let data = Data { comparison, nearest: near, conditions: judged, page, runs };
        Ok(Output::new(text, data).with_exit(exit))
    }
}

impl Compare {
    fn refuse_unused_options(&self) -> Result<(), Failure> {
        self.force.refuse_unused(self.html.is_some())?;
        if self.start.from_scratch && self.train.is_none() {
            let failure = Failure::usage("--from-scratch would have no effect: no model is trained");
            return Err(failure.help("`--train RECIPE` trains the models"));
        }
        match &self.device {
            Some(_) if !self.measure && self.train.is_none() => {
                let failure = Failure::usage("--device would have no effect: no model is run");
                Err(failure.help("`--measure` and `--train RECIPE` run the models"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The device that is given as an option, in the environment or in a file.
    #[cfg(feature = "interp")]
    fn device(&self) -> Option<String> {
        // Read here and not by clap: a setting is meant for every command, so one that has no effect on this
        // comparison must not be refused as the option is.
        self.device.clone().or_else(|| settings::get().standing(&DEVICE)?.0.into_string().ok())
    }

    #[cfg(feature = "interp")]
    fn timing(
        &self,
        names: &[String],
        subjects: &[(String, Subject)],
        scene: &Scene,
        ui: &mut Ui,
    ) -> Result<Timing, Failure> {
        let named: Vec<_> = names.iter().cloned().zip(subjects.iter().map(|(_, s)| s)).collect();
        super::compute::timing::timing(&named, scene, self.device().as_deref(), ui)
    }

    /// What the models learned, the folder of their runs, and whether the user stopped the training.
    #[cfg(feature = "interp")]
    fn learning(
        &self,
        recipe: &Path,
        subjects: Vec<(String, Subject)>,
        ui: &mut Ui,
    ) -> Result<(Learning, Option<PathBuf>, Exit), Failure> {
        let device = self.device();
        let contest = super::compute::rivals::Contest {
            recipe,
            start: &self.start,
            families: self.over.families(),
            with: &self.with,
            seeds: self.seeds.unwrap_or(SEEDS),
            out: self.out.as_deref(),
            device: device.as_deref(),
        };
        super::compute::rivals::learning(&contest, subjects, ui)
    }

    #[cfg(not(feature = "interp"))]
    fn learning(
        &self,
        _: &Path,
        _: Vec<(String, Subject)>,
        _: &mut Ui,
    ) -> Result<(Learning, Option<PathBuf>, Exit), Failure> {
        Err(super::ui::without_interp("train models"))
    }

    #[cfg(not(feature = "interp"))]
    fn timing(
        &self,
        _: &[String],
        _: &[(String, Subject)],
        _: &Scene,
        _: &mut Ui,
    ) -> Result<Timing, Failure> {
        Err(super::ui::without_interp("run models"))
    }

    fn conditions(&self, sources: &mut SourceMap, ui: &mut Ui) -> Result<Vec<Condition>, Failure> {
        let mut conditions = Vec::new();
        let mut wrong = Vec::new();
        for argument in &self.fail_if {
            match Condition::parse(sources, argument) {
                Ok(condition) => conditions.push(condition),
                Err(diagnostic) => wrong.push(diagnostic),
            }
        }
        if wrong.is_empty() {
            return Ok(conditions);
        }
        ui.diagnose(&wrong, sources);
        Err(Failure::usage("`--fail-if` needs a condition on costs"))
    }

    /// Adds what a single spec is compared with: the most similar shipped spec, or the variants of its
    /// sweep.
    fn add(&self, subjects: &mut Vec<(String, Subject)>, ui: &mut Ui) -> Result<Vec<Near>, Failure> {
        if self.nearest && subjects.len() > 1 {
            return Err(Failure::usage("`--nearest` needs exactly one spec"));
        }
        let (true, Some((_, only))) = (subjects.len() == 1, subjects.first()) else { return Ok(Vec::new()) };
        if !self.nearest {
            let variants = only.compile_variants(ui)?;
            subjects.extend(variants.into_iter().map(|(name, subject)| (short(&name), subject)));
            return Ok(Vec::new());
        }
        let mut known = Vec::new();
        // A shipped spec is at no distance from itself.
        for shipped in SHELF.iter().filter(|s| format!("@{}", s.name) != only.name) {
            known.push((
                shipped.name.to_owned(),
                // Without the changes of the command line, which are for the user's spec.
                OverArgs::default().compile(&format!("@{}", shipped.name), ui)?,
            ));
        }
        let specs: Vec<Known<'_>> =
            known.iter().map(|(name, s)| Known { name, spec: &s.spec, graph: &s.graph }).collect();
        let mut near = nearest(&only.spec, &only.graph, &specs);
        // The first is compared with; the others are named in one line.
        near.truncate(5);
        let first = near.first().and_then(|first| known.iter().position(|(name, _)| *name == first.name));
        if let Some(index) = first {
            // The known model comes first, so that the differences are those of the user's spec.
            subjects.insert(0, known.swap_remove(index));
        }
        Ok(near)
    }
}

/// The name of a combination of a grid, with only the last words of its paths: `layers=6,d_model=512`.
fn short(name: &str) -> String {
    let end = |axis: &str| {
        let (path, value) = axis.split_once('=')?;
        Some(format!("{}={value}", path.rsplit('.').next().unwrap_or(path)))
    };
    let ends: Option<Vec<String>> = name.split(',').map(end).collect();
    ends.map_or_else(|| name.to_owned(), |ends| ends.join(","))
}

/// Names that distinguish the specs: their own, or else as the user named them.
fn distinct(subjects: &[(String, Subject)]) -> Vec<String> {
    let count = |name: &String| subjects.iter().filter(|(other, _)| other == name).count();
    let mut names: Vec<String> = subjects
        .iter()
        .map(|(name, subject)| if count(name) > 1 { subject.name.clone() } else { name.clone() })
        .collect();
    // The same spec may be named twice; then its place in the list is added.
    // From front to back, so that each is compared with names that are final.
    for i in 1..names.len() {
        let (before, rest) = names.split_at_mut(i);
        if let Some(name) = rest.first_mut().filter(|name| before.contains(name)) {
            *name = format!("{name} ({})", i + 1);
        }
    }
    names
}

fn judge(conditions: &[Condition], comparison: &Comparison) -> Result<Vec<Verdict>, Diagnostic> {
    let mut judged = Vec::new();
    // A condition may refer to it: `params > 2 * first.params`.
    let Some(first) = comparison.models.first() else { return Ok(judged) };
    for condition in conditions {
        for model in &comparison.models {
            judged.push(condition.judge(&model.name, &model.costs, &first.costs)?);
        }
    }
    Ok(judged)
}

fn line(judged: &Verdict) -> String {
    let shown = |n: f64| {
        // Larger whole numbers may not be those of the cost any more, since a float rounds them.
        if n >= 0.0 && n.fract() == 0.0 && n < 1e15 { number::exact(n as u128) } else { format!("{n:e}") }
    };
    let Verdict { condition, model, left, right, .. } = judged;
    format!("failed: {model}: {condition} ({} and {})\n", shown(*left), shown(*right))
}

/// The most similar specs in two lines; empty if they were not asked for.
fn text_of(near: &[Near]) -> String {
    let Some((first, others)) = near.split_first() else { return String::new() };
    let text = match first.distance {
        // Equal specs are at a distance of exactly 0, without rounding.
        0.0 => format!("this is {}", first.name),
        n => format!(
            "the most similar spec is {}, at a distance of {n:.2} (0 is the same model, 1 nothing in common)",
            first.name
        ),
    };
    let others: Vec<String> = others.iter().map(|n| format!("{} {:.2}", n.name, n.distance)).collect();
    text + &format!("\nthen {}\n", others.join(", "))
}
