//! `trafoc check`: is the spec right, and what is it?

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::agreement::{agreed, alone};
use super::command::Command;
use super::fix::{FixArg, Repair, is_own};
use super::format::{Format, FormatArg, Formats};
use super::mending::Fixed;
use super::next_step::{after_check, is_lasting, quoted};
use super::outcome::{Exit, Failure, Output};
use super::subject::{OverArgs, Subject};
use super::ui::Ui;
use super::watch::WatchArg;
use crate::diag::count::counted;
use crate::diag::render::visible_name;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::report::number;
use crate::report::summary::{Summary, summary};
use crate::syntax::allow::{Allowance, allowances};

/// The command line of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Spec files, `-` for stdin, or shipped specs such as `@gpt1`
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<String>,
    #[command(flatten)]
    over: OverArgs,
    /// Also check this recipe (a file or a shipped one such as `@gbt-mulm`), its data, and whether it fits
    /// each spec
    #[arg(long, value_name = "RECIPE")]
    recipe: Option<String>,
    /// Change a value of the recipe, such as `data.train=FILE`; may be repeated
    #[arg(long, value_name = "PATH=VALUE", requires = "recipe")]
    with: Vec<String>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    fix: FixArg,
    #[command(flatten)]
    watch: WatchArg,
    #[command(flatten)]
    format: FormatArg<CheckFormat>,
}

/// The formats of `check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// For people
    #[default]
    Text,
    /// One line per diagnostic, for editors
    Short,
    /// One object on stdout, for programs
    Json,
    /// Workflow commands, which GitHub Actions shows at the lines of a change
    Github,
    /// A log in the format of static analysis tools, version 2.1.0
    Sarif,
    /// Compact and uncut, with tabs
    Agent,
}

impl Formats for CheckFormat {
    const HELP: &'static str = "text, short (one line per diagnostic), json, github (workflow commands), sarif or \
         agent (compact, uncut)";
}

/// The data of `check` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The specs in the order of the command line.
    specs: Vec<Checked>,
    /// What `--fix` has changed before they were checked, or what `--diff` shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Fixed>,
    /// What `--diff` shows, as a unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    diff: String,
}

/// The result for one spec.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// The spec as the command line names it.
    spec: String,
    /// Whether it has no errors.
    ok: bool,
    /// The number of variants in its sweep.
    variants: usize,
    /// What it is and what it costs, if it has no errors.
    summary: Option<Summary>,
    /// Why it is not right, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How to fix that, one suggestion each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    help: Vec<String>,
}

impl Command for Check {
    type Data = Data;

    fn format(&self) -> Format {
        match self.format.format {
            CheckFormat::Text => Format::Text,
            CheckFormat::Short => Format::Short,
            CheckFormat::Json => Format::Json,
            CheckFormat::Github => Format::Github,
            CheckFormat::Sarif => Format::Sarif,
            CheckFormat::Agent => Format::Agent,
        }
    }

    fn watch(&self) -> WatchArg {
        self.watch
    }

    fn page(data: &Data) -> Option<&Summary> {
        match data.specs.as_slice() {
            [only] => only.summary.as_ref(),
            _ => None,
        }
    }

    /// Checks every spec, and every variant of its sweep.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let read = self.specs.iter().chain(&self.recipe).map(String::as_str);
        self.watch.agree(self.format(), read)?;
        let recipe = self.recipe.as_deref().map(|recipe| (recipe, self.with.as_slice()));
        let Repair { fixed, diff } = self.fix.repair(&self.specs, &self.over, recipe, ui)?;
        if self.fix.shows() {
            return self.shown(fixed, diff, ui);
        }
        // One spec is described in full, each of several in one line.
        if let [only] = self.specs.as_slice() {
            let checked = match self.check(only, ui) {
                Ok(checked) => checked,
                // The files have been changed, which a program must learn whatever is still wrong with them.
                Err(failure) if !fixed.is_empty() && failure.exit != Exit::Bug => {
                    let exit = failure.exit;
                    let specs = vec![failed(only, failure, 0, ui)];
                    let data = Data { specs, fixed, diff: String::new() };
                    return Ok(Output::new("", data).with_exit(exit));
                }
                Err(failure) => {
                    self.hint(only, &failure, ui);
                    return Err(failure);
                }
            };
            let text = checked.summary.as_ref().map_or(String::new(), |summary| ui.summary(summary));
            // The summary is a courtesy; with `--quiet` the exit code is the answer.
            let text = if ui.is_quiet() { String::new() } else { text };
            // What is from stdin or a pipe cannot be read again by the next command.
            if is_lasting(only) && self.recipe.as_deref().is_none_or(is_lasting) {
                let mut next = after_check(only, &self.over.as_options(), self.recipe.as_deref());
                self.with.iter().for_each(|with| next += &format!(" --with {}", quoted(with)));
                ui.next(&next);
            }
            return Ok(Output::new(text, Data { specs: vec![checked], fixed, diff: String::new() }));
        }
        let (all, worst) = self.each(ui)?;
        let summaries = all.iter().filter_map(|checked| Some((&checked.spec, checked.summary.as_ref()?)));
        let text: String = summaries.map(|(spec, summary)| line(spec, summary)).collect();
        let text = if ui.is_quiet() { String::new() } else { text };
        Ok(Output::new(text, Data { specs: all, fixed, diff: String::new() }).with_exit(worst))
    }
}

impl Check {
    /// Checks every spec, and shows what would be fixed in place of what the specs are.
    fn shown(&self, fixed: Vec<Fixed>, diff: String, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let (specs, worst) = self.each(ui)?;
        let exit = if worst == Exit::Ok && !fixed.is_empty() { Exit::Failed } else { worst };
        Ok(Output::new(diff.clone(), Data { specs, fixed, diff }).with_exit(exit))
    }

    /// Checks one spec after the other, whatever is wrong with those before it, and says how the worst ended.
    fn each(&self, ui: &mut Ui) -> Result<(Vec<Checked>, Exit), Failure> {
        let mut all = Vec::new();
        let mut worst = Exit::Ok;
        for spec in &self.specs {
            let errors = ui.errors();
            match self.check(spec, ui) {
                Ok(checked) => all.push(checked),
                // Among the results of other specs it would be overlooked.
                Err(failure) if failure.exit == Exit::Bug => return Err(failure),
                // The other specs are checked all the same, so that one run finds everything.
                Err(failure) => {
                    // The order of the specs does not decide the exit.
                    if failure.exit.code() > worst.code() {
                        worst = failure.exit;
                    }
                    all.push(failed(spec, failure, errors, ui));
                }
            }
        }
        Ok((all, worst))
    }

    /// Says that `--fix` may mend some of what is wrong with a spec.
    fn hint(&self, spec: &str, failure: &Failure, ui: &Ui) {
        let may = failure.exit == Exit::Failed && !self.fix.fixes() && !self.over.changes() && is_own(spec);
        if may && !self.watch.is_on() && ui.has_fix(spec) {
            ui.next(&format!("trafoc check {} --fix", quoted(spec)));
        }
    }

    fn check(&self, spec: &str, ui: &mut Ui) -> Result<Checked, Failure> {
        let mut compiled = self.over.compile(spec, ui);
        // Errors of the recipe are in the same report, once.
        if let (Err(failure), Some(recipe), [_]) = (&mut compiled, &self.recipe, self.specs.as_slice())
            && failure.exit == Exit::Failed
            && let Some(more) = alone(recipe, &self.with, ui)?
        {
            failure.message += &format!(", and {more}");
        }
        let mut subject: Subject = compiled?;
        if let Some(recipe) = &self.recipe {
            // `--strict` is about warnings of the recipe too.
            subject.warnings += agreed(&mut subject, recipe, &self.with, ui)?;
        }
        // A warning of one of several models, of a variant, or of a spec as it is without the changes, may be meant.
        let is_one = self.specs.len() == 1 && !self.over.changes() && subject.tree.get("sweep").is_none();
        if is_one {
            let files = [spec, self.recipe.as_deref().unwrap_or("")];
            subject.warnings += allowed_nothing(&subject, files, ui);
        }
        // Compiling has checked every variant together with the spec.
        let variants = subject.variants();
        if self.strict && subject.warnings > 0 {
            let message = format!("`{}` has warnings, and `--strict` allows none", subject.name);
            return Err(Failure::new(Exit::Failed, message));
        }
        match variants {
            0 => {}
            1 => ui.note("the variant of its sweep is valid, too"),
            _ => ui.note(&format!("all {variants} variants of its sweep are valid, too")),
        }
        let summary = Some(summary(&subject.graph));
        Ok(Checked { spec: spec.to_owned(), ok: true, variants, summary, error: None, help: Vec::new() })
    }
}

/// The failure of a spec that has errors. `errors` is the number of errors that were reported before it.
fn failed(spec: &str, failure: Failure, errors: usize, ui: &mut Ui) -> Checked {
    ui.fail(&failure, failure.exit == Exit::Failed && ui.errors() > errors);
    let Failure { message, help, .. } = failure;
    // Otherwise its diagnostics have said everything.
    let error = Some(message).filter(|message| !message.is_empty());
    Checked { spec: spec.to_owned(), ok: false, variants: 0, summary: None, error, help }
}

fn line(spec: &str, summary: &Summary) -> String {
    let parameters = counted(number::count_with_short(summary.parameters.total), "parameter");
    format!("{}: ok, {}, {parameters}\n", visible_name(spec), summary.kind.words())
}

/// Warns about comments that allow a warning which is not there. Some are about the recipe and the data, and so are looked
/// for only with a recipe.
fn allowed_nothing(subject: &Subject, files: [&str; 2], ui: &mut Ui) -> usize {
    let [spec, recipe] = files;
    let mut found = Vec::new();
    for Allowance { code, place, .. } in allowances(&subject.sources) {
        // What a base allows may be for other specs that extend it.
        let name = subject.sources.get(place.source).map_or("", |source| source.name.as_str());
        let is_own = !name.is_empty() && (name == spec || name == recipe);
        let known = Code::from_slug(&code);
        let is_looked_for = !recipe.is_empty() || known.is_none_or(|code| code == Code::BeyondEnd);
        if ui.has_allowed(place) || !is_looked_for || !is_own {
            continue;
        }
        found.push(match known {
            Some(_) => {
                let message = format!("there is no warning `{code}` here that could be allowed");
                Diagnostic::warning(Code::UnusedKey, place, message).help("remove the comment")
            }
            None if code.is_empty() => {
                let message = "this comment is meant for trafoc, and allows nothing";
                let help = "write `# trafoc: allow(CODE) the reason`; `trafoc explain` lists the codes";
                Diagnostic::warning(Code::UnknownWord, place, message).help(help)
            }
            None => {
                let slugs: Vec<&str> = Code::ALL.iter().map(|code| code.slug()).collect();
                let message = format!("there is no code `{code}`, so the comment allows nothing");
                let diagnostic = Diagnostic::warning(Code::UnknownWord, place, message);
                match suggest(&code, &slugs) {
                    Some(near) => diagnostic.meant(&code, &near),
                    None => diagnostic.help("`trafoc explain` lists the codes"),
                }
            }
        });
    }
    ui.diagnose(&found, &subject.sources)
}
