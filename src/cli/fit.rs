//! `trafoc fit`: finds sizes that give a spec a wanted cost.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::command::Command;
use super::format::{Format, FormatArg, TableFormat};
use super::next_step::{is_lasting, quoted};
use super::outcome::{Exit, Failure, Output};
use super::scene::SceneArgs;
use super::shelf::shipped;
use super::subject::{OverArgs, SpecArgs, Subject};
use super::ui::Ui;
use crate::diag::paths::nearest_paths;
use crate::diag::suggest::suggest;
use crate::report::compare::condition::no_bytes;
use crate::report::cost::cost;
use crate::report::costs::{Costs, Name, Unit};
use crate::report::fit::{Fit, Fitter, Size, Unfit, Wanted};
use crate::report::number;
use crate::report::scene::Scene;
use crate::report::table::{Column, Table};
use crate::source::{SourceMap, Span};
use crate::syntax::Notation;
use crate::syntax::expr::{self, NoNames};
use crate::syntax::tree::Node;

/// The sizes that change unless others are given.
const OVER: &str = "d_model,layers";

/// If a cost differs by more than this share from the wanted one, a note says so.
const FAR: f64 = 0.1;

/// The command line of `fit`.
#[derive(Debug, Args)]
#[command(override_usage = "trafoc fit [OPTIONS] --<COST> <N|SPEC> <SPEC>")]
pub struct Fitting {
    #[command(flatten)]
    spec: SpecArgs,
    #[command(flatten)]
    wanted: WantedArgs,
    /// The sizes that may change, such as `d_model,layers`
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = OVER)]
    over: Vec<String>,
    #[command(flatten)]
    scene: SceneArgs,
    /// How many results to show
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = amount::at_least(1_u16))]
    most: u16,
    #[command(flatten)]
    format: FormatArg<TableFormat>,
}

/// The wanted cost: a number such as `124e6`, or a spec that has this cost.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
struct WantedArgs {
    // Negative numbers are accepted as values, so that `--params -5` is refused for what it says and not as
    // an option that does not exist.
    /// The target number of parameters, or a spec with that number
    #[arg(long, value_name = "N|SPEC", allow_negative_numbers = true)]
    params: Option<String>,
    /// The target number of parameters that a token uses
    #[arg(long, value_name = "N|SPEC", allow_negative_numbers = true)]
    active: Option<String>,
    /// The target number of operations per token
    #[arg(long, value_name = "N|SPEC", allow_negative_numbers = true)]
    flops_per_token: Option<String>,
    /// The target number of bytes that a token adds to the cache
    #[arg(long, value_name = "N|SPEC", allow_negative_numbers = true)]
    kv_per_token: Option<String>,
    /// The target number of bytes of a training step
    #[arg(long, value_name = "N|SPEC", allow_negative_numbers = true)]
    train_memory: Option<String>,
}

impl WantedArgs {
    fn given(&self) -> Option<(Name, &str)> {
        [
            (Name::Params, &self.params),
            (Name::Active, &self.active),
            (Name::FlopsPerToken, &self.flops_per_token),
            (Name::KvPerToken, &self.kv_per_token),
            (Name::TrainMemory, &self.train_memory),
        ]
        .into_iter()
        .find_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// The data of `fit` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The name that the spec gives the model.
    model: String,
    /// The cost that was asked for.
    cost: Name,
    /// The value that this cost should have, in its unit.
    wanted: f64,
    /// The sizes that may change.
    over: Vec<Size>,
    /// The results, the best first.
    found: Vec<Fit>,
}

impl Command for Fitting {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format.into()
    }

    /// Finds the sizes; the exit is 1 if no result is near the wanted cost.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let subject = self.spec.compile(ui)?;
        let scene = self.scene.scene([cost(&subject.graph)].iter());
        let (name, value) = self.wanted.given().ok_or_else(|| Failure::usage("no target cost is given"))?;
        if Costs::one(name, &subject.graph, &cost(&subject.graph), &scene).is_none() {
            let message = format!("`{}` has no {}, whatever its sizes", subject.name, name.phrase());
            return Err(Failure::new(Exit::Failed, message)
                .help(format!("`trafoc check {}` shows the costs that it has", quoted(&self.spec.spec))));
        }
        let wanted = Wanted { cost: name, value: amount(name, value, &scene, ui)?, scene };
        let fitter = Fitter::new(&subject.spec, &subject.tree, &subject.sources);
        // The user has not named a size that each of several stacks has for itself, so each of them changes.
        let is_default = OVER.split(',').eq(self.over.iter().map(String::as_str));
        let names = self.over.iter().flat_map(|over| match fitter.size(over) {
            Err(Unfit::Several(paths)) if is_default => paths,
            Ok(_) | Err(_) => vec![over.clone()],
        });
        let sizes: Vec<Size> = names.map(|over| size(&fitter, &over, &subject)).collect::<Result<_, _>>()?;
        let found = fitter.fit(&sizes, &wanted, usize::from(self.most));
        let Some(best) = found.first() else {
            let message = format!(
                "no sizes between an eighth and eight times those of `{}` give a valid spec",
                subject.name
            );
            return Err(Failure::new(Exit::Failed, message));
        };
        // The results are shown all the same: the nearest says how far the sizes can go.
        let is_far = found.iter().all(|fit| fit.off.abs() > FAR);
        if is_far {
            ui.note(&format!(
                "note: no result is within 10 % of it; sizes between an eighth and eight times those of \
                    `{}` are tried",
                subject.name
            ));
        }
        // A spec from stdin cannot be read again by the next command.
        if !is_far && is_lasting(&self.spec.spec) {
            let sets: String = sizes
                .iter()
                .zip(&best.sizes)
                // A size that the spec gives in several places is changed in each.
                .flat_map(|(size, n)| size.paths.iter().map(move |path| format!(" --set {path}={n}")))
                .collect();
            let changes = self.spec.over().as_options();
            ui.next(&format!("trafoc check {}{changes}{sets}", quoted(&self.spec.spec)));
        }
        let is_plain = matches!(self.format.format, TableFormat::Csv | TableFormat::Agent);
        let table = table(&sizes, &wanted, &found, is_plain);
        let text = match self.format.format {
            TableFormat::Text => {
                let head =
                    format!("{} {} for {}\n\n", name.word(), shown(name, wanted.value), subject.spec.name);
                format!("{head}{}", table.text(ui.width()))
            }
            TableFormat::Csv => table.csv(),
            TableFormat::Agent => table.tsv(),
            TableFormat::Markdown => table.markdown(),
            TableFormat::Json => String::new(),
        };
        let data =
            Data { model: subject.spec.name, cost: name, wanted: wanted.value as f64, over: sizes, found };
        Ok(Output::new(text, data).with_exit(if is_far { Exit::Failed } else { Exit::Ok }))
    }
}

fn size(fitter: &Fitter, name: &str, subject: &Subject) -> Result<Size, Failure> {
    // A list of sizes may have spaces after its commas.
    let name = name.trim();
    fitter.size(name).map_err(|unfit| match unfit {
        Unfit::Several(paths) => {
            Failure::usage(format!("`{name}` names several sizes of `{}`", subject.name))
                .help(format!("give the path of one: {}", paths.join(", ")))
        }
        Unfit::Listed(stack) => {
            Failure::usage(format!("the layers of `{stack}` in `{}` cannot change in number", subject.name))
                .help(
                    "its `runs` add up to them, so more or fewer would need others; with `ranges` or `pattern` in place of \
                     `runs` the number can change",
                )
                .help("give other sizes with `--over`, such as `--over d_model`")
        }
        Unfit::Unknown(paths) => {
            // Users name a size by the last word of its path.
            let ends: Vec<&str> = paths.iter().map(|p| p.rsplit('.').next().unwrap_or(p)).collect();
            // Of a path, the whole is compared: `decoder.layer` means `decoder.layers`.
            let near = if name.contains('.') { None } else { suggest(name, &ends) };
            let near = near.or_else(|| {
                nearest_paths(name, paths.iter().map(String::as_str), 1).first().map(|p| (*p).to_owned())
            });
            let failure = Failure::usage(format!("`{}` has no size `{name}` that can change", subject.name));
            match near {
                Some(near) => failure.help(format!("did you mean `{near}`?")),
                None => failure.help(format!("its sizes are {}", paths.join(", "))),
            }
        }
    })
}

/// A number, or the cost of a spec.
fn amount(name: Name, value: &str, scene: &Scene, ui: &mut Ui) -> Result<u128, Failure> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '(' | '-');
    // `-` alone is stdin, and a file can be `./small.yaml` or `7b.yaml`.
    let is_spec = value == "-" || Notation::from_path(value).is_some();
    // Parsed as the expressions of specs are, so that `7e9`, `124M` and `12 * 768^2` are numbers here too.
    if value.starts_with(is_number) && !is_spec {
        let value = value.trim();
        let mut sources = SourceMap::new();
        let id = sources.add(format!("--{}", name.word().replace('_', "-")), value);
        let node = Node::plain(value, Span::new(id, 0, value.len()));
        let number = match no_bytes(name, value, id) {
            Some(diagnostic) => Err(diagnostic),
            None => expr::parse_amount(&sources, &node).and_then(|expr| expr::eval(&expr, &NoNames)),
        };
        let number = number.map_err(|diagnostic| {
            ui.diagnose(&[diagnostic], &sources);
            Failure::usage("the target cost is not a number")
        })?;
        return match number.to_f64() {
            // Below 2^128 ≈ 3.4e38, so that the number fits; NaN is in no range.
            n if (1.0..1e36).contains(&n) => Ok(n.round() as u128),
            n => Err(Failure::usage(format!("no model has a cost of {n}"))),
        };
    }
    let is_file = || std::path::Path::new(value).exists();
    // That a name lacks its `@` is said where the spec is read.
    if !is_spec && !value.starts_with('@') && !is_file() && shipped(value).is_none() {
        let number = match name.unit() {
            Unit::Parameters => "`124M`, `7B` or `12 * 768^2`",
            Unit::Operations | Unit::Bytes => "`250M` or `1e12`",
        };
        let shown = if value.trim().is_empty() { "an empty text".to_owned() } else { format!("`{value}`") };
        return Err(Failure::usage(format!("{shown} is neither a number nor a spec")).help(format!(
            "give a number, such as {number}, or a spec with that cost, such as `@gpt2-small`"
        )));
    }
    // The changes of the command line are for the spec that is fitted.
    let other = OverArgs::default().compile(value, ui)?;
    // A spec without the cost, such as a cache where nothing is decoded, counts as 0.
    Ok(Costs::one(name, &other.graph, &cost(&other.graph), scene).unwrap_or(0))
}

fn shown(name: Name, n: u128) -> String {
    match name.unit() {
        Unit::Parameters => number::exact(n),
        Unit::Operations | Unit::Bytes => name.unit().short(n),
    }
}

/// The results: `is_exact` for programs, with plain numbers and the distance as a share of the wanted cost.
fn table(sizes: &[Size], wanted: &Wanted, found: &[Fit], is_exact: bool) -> Table {
    let mut columns: Vec<Column> = sizes.iter().map(|size| Column::number(size.path.clone())).collect();
    columns.extend([Column::number(wanted.cost.word()), Column::number("off")]);
    let row = |fit: &Fit| {
        if is_exact {
            let values = fit.sizes.iter().map(u64::to_string);
            return values.chain([fit.value.to_string(), format!("{:.6}", fit.off)]).collect();
        }
        let values = fit.sizes.iter().map(|n| number::exact(u128::from(*n)));
        let off = match fit.off * 100.0 {
            // Two decimals would show it as `+0.00 %` or `−0.00 %`.
            p if p.abs() < 0.005 => "0 %".to_owned(),
            // A percentage of so many digits says less than how many times it is.
            p if p >= 1000.0 => format!("×{}", number::exact((fit.off + 1.0).round() as u128)),
            // As `−100.00 %` it would be nothing at all.
            p if p <= -99.995 && fit.value > 0 => {
                format!("÷{}", number::exact((wanted.value as f64 / fit.value as f64).round() as u128))
            }
            p if p < 0.0 => format!("−{:.2} %", -p),
            p => format!("+{p:.2} %"),
        };
        values.chain([shown(wanted.cost, fit.value), off]).collect()
    };
    Table { columns, rows: found.iter().map(row).collect(), total: Vec::new() }
}
