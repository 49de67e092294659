//! Inspects for `trafoc inspect`: chooses what is shown, and writes the report.

use std::path::Path;

use super::command::Command;
use super::format::Format;
use super::inspect::{
    Changes, Data, DataArgs, Destination, Inspect, Inspected, Observe, Part, Positions, Table, Tables, Wanted,
};
use super::outcome::{Exit, Failure, Output};
use super::subject::Subject;
#[cfg(not(feature = "interp"))]
use super::ui::without_interp;
use super::ui::{Ui, path_line};
use super::{course, file, overwrite};
use crate::inspect::{Report, attention, positions, sites, training};
use crate::learn::marker::is_run;

impl Command for Inspect {
    type Data = Data;

    fn format(&self) -> Format {
        self.to().format.format
    }

    /// Inspects; the last line of output is the path of the file, if there is one.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        self.to().permit()?;
        // Before a model runs, which may take long.
        form(self.to())?;
        match &self.subject {
            Inspected::Positions(one) => {
                // All are compiled before the first table is read, because an error is found sooner than a
                // file is read.
                let subjects = one.specs.iter().map(|spec| one.over.compile(spec, ui));
                let subjects = subjects.collect::<Result<Vec<_>, _>>()?;
                let mut tables = Vec::new();
                for (subject, spec) in subjects.iter().zip(&one.specs) {
                    tables.push(trained_tables(subject, Path::new(spec), ui)?);
                }
                let models = subjects.iter().zip(&tables);
                let models = models.map(|(s, tables)| positions::Model { graph: &s.graph, tables });
                let models: Vec<_> = models.collect();
                let features = features(one, &models)?;
                write(&one.to, &positions::positions(&models, features), ui)
            }
            Inspected::Changes(one) => write(&one.to, &changes(one, ui)?, ui),
            Inspected::Data(one) => write(&one.to, &contents(one, ui)?, ui),
            Inspected::Training(one) => {
                // A folder without a record reads as a run without steps, so it must be a run first.
                if !is_run(&one.run) {
                    let name = one.run.display();
                    // What exists was a wrong choice, what does not was probably mistyped.
                    let failure = if one.run.exists() {
                        Failure::usage(format!("`{name}` is not the folder of a run"))
                    } else {
                        Failure::new(Exit::File, format!("cannot read `{name}`: there is no such file"))
                    };
                    return Err(failure.help("`trafoc train` creates the folder of a run"));
                }
                let course = course::course(&one.run, &course::record(&one.run)?, planned(&one.run));
                // A curve needs a point; a run that has just begun is no fault of its files.
                if course.steps.is_empty() {
                    let message = format!("`{}` has not made a step yet", one.run.display());
                    return Err(Failure::new(Exit::Failed, message));
                }
                write(&one.to, &training::training(&course::name(&one.run), &course), ui)
            }
            // Masks follow from the spec alone, so without inputs they can be shown and nothing has to run.
            Inspected::Attention(one) if one.inputs.is_none() && one.text.is_none() && !one.is_run() => {
                let unused = ["weights", "seed", "labels", "source-labels", "head", "target", "against"];
                one.refuse(&unused, "without inputs only masks can be shown")?;
                let subject = one.spec.compile(ui)?;
                let all = sites::sites(&subject.graph);
                let found = one.chosen(&all);
                if found.is_empty() {
                    return Err(one.chooses_none(&all));
                }
                ui.note("note: no inputs are given, so only masks are shown; `--inputs FILE` runs the model");
                write(&one.to, &attention::masks(&subject.graph.name, &found, subject.graph.context), ui)
            }
            Inspected::Init(one) => report(one, ui, Wanted::Init),
            Inspected::Attention(one) => report(one, ui, Wanted::Attention),
            Inspected::Steps(one) => report(one, ui, Wanted::Steps),
            Inspected::Norms(one) => report(one, ui, Wanted::Norms),
            Inspected::Flow(one) => report(one, ui, Wanted::Flow),
            Inspected::Layers(one) => report(one, ui, Wanted::Layers),
        }
    }
}

/// Reports what a model does when it runs.
fn report(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Output<Data>, Failure> {
    one.fits(wanted)?;
    if matches!(wanted, Wanted::Norms | Wanted::Layers) {
        // These are of a stack, which is chosen by the kind of its attention.
        one.stack()?;
    }
    write(&one.to, &observe(one, ui, wanted)?, ui)
}

#[cfg(feature = "interp")]
fn observe(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Report, Failure> {
    super::compute::observe::observe(one, ui, wanted)
}

#[cfg(feature = "interp")]
fn trained_tables(subject: &Subject, path: &Path, ui: &mut Ui) -> Result<Tables, Failure> {
    super::compute::observe::trained_tables(subject, path, ui)
}

/// The planned number of steps of a run: before its first checkpoint that of the recipe with which it began.
#[cfg(feature = "interp")]
fn planned(root: &Path) -> Option<u64> {
    use crate::learn::{run_dir, session::files};
    use crate::read::{bounded, limit};
    run_dir::planned(root).or_else(|| {
        let recipe = bounded(&run_dir::start_file(root, files::RECIPE)?, limit::SPEC).ok()?;
        // Every value is written out there, one a line; of a recipe with epochs the number is none.
        let recipe = String::from_utf8(recipe).ok()?;
        recipe.lines().find_map(|line| line.strip_prefix("steps: ")?.parse().ok())
    })
}

/// This is known only if checkpoints can be read.
#[cfg(not(feature = "interp"))]
fn planned(_: &Path) -> Option<u64> {
    None
}

#[cfg(feature = "interp")]
fn contents(one: &DataArgs, ui: &mut Ui) -> Result<Report, Failure> {
    super::compute::contents::contents(one, ui)
}

#[cfg(feature = "interp")]
fn changes(one: &Changes, ui: &mut Ui) -> Result<Report, Failure> {
    super::compute::changes::changes(one, ui)
}

/// Both models' weights are read by the interpreter's code, so this only reports the missing feature.
#[cfg(not(feature = "interp"))]
fn changes(_: &Changes, _: &mut Ui) -> Result<Report, Failure> {
    Err(without_interp("compare weights"))
}

/// Data is read by code that this build does not have, so this only reports the missing feature.
#[cfg(not(feature = "interp"))]
fn contents(_: &DataArgs, _: &mut Ui) -> Result<Report, Failure> {
    Err(without_interp("read data"))
}

/// Without the interpreter, only the spec itself is known.
#[cfg(not(feature = "interp"))]
fn trained_tables(_: &Subject, _: &Path, _: &mut Ui) -> Result<Tables, Failure> {
    Ok(Tables::new())
}

/// Reports the missing feature after checking the spec; what needs no interpreter is shown.
#[cfg(not(feature = "interp"))]
fn observe(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Report, Failure> {
    let subject = one.spec.compile(ui)?;
    if wanted == Wanted::Init {
        // The distributions follow from the spec; only samples of them would need the interpreter.
        let started = crate::inspect::start::started(&subject.graph);
        return Ok(crate::inspect::start::report(&subject.graph.name, &started, &[], &[]));
    }
    let message = "this trafoc was built without the feature `interp`, so it cannot run models";
    Err(Failure::new(Exit::Device, message).help("build it with `--features flex`, its default"))
}

/// The features that are drawn, which every table must have.
fn features<'a>(one: &'a Positions, models: &[positions::Model<'_>]) -> Result<&'a [u64], Failure> {
    if one.features.is_empty() {
        return Ok(&positions::FIRST);
    }
    // A feature must exist in the narrowest table, since all are drawn with the same ones.
    let Some(width) = models.iter().filter_map(positions::features).min() else {
        return Err(Failure::usage(
            "--features would have no effect: none of these positions is a vector of features",
        )
        .help("sinusoidal positions are, and learned ones once they are trained"));
    };
    match one.features.iter().find(|feature| **feature >= width) {
        Some(feature) => Err(Failure::usage(format!(
            "there is no feature {feature}: a position has {width}, \
                    counted from 0"
        ))),
        None => Ok(&one.features),
    }
}

/// The form of the file in which a report is written.
#[derive(Clone, Copy)]
enum Form {
    Svg,
    Page,
    Png,
}

/// The file of a report and its form, which its extension gives; `None` if only numbers are printed.
fn form(to: &Destination) -> Result<Option<(&Path, Form)>, Failure> {
    let Some(path) = &to.out else { return Ok(None) };
    let form = match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "svg" => Form::Svg,
        "html" | "htm" => Form::Page,
        "png" => Form::Png,
        other => {
            let message = format!("pictures are written as .svg, .html or .png, not as `.{other}`");
            return Err(Failure::usage(message));
        }
    };
    Ok(Some((path, form)))
}

/// Writes a report to its file, if there is one, and prints its numbers.
fn write(to: &Destination, report: &Report, ui: &Ui) -> Result<Output<Data>, Failure> {
    let mut text = String::new();
    // Next to a file the numbers are only a summary, which `--quiet` leaves out.
    if to.out.is_none() || !ui.is_quiet() {
        text = match ui.format() {
            Format::Agent => report.plain(),
            Format::Text | Format::Short | Format::Json | Format::Github | Format::Sarif => {
                report.text(ui.width())
            }
        };
    }
    if let Some((path, form)) = form(to)? {
        match form {
            Form::Svg => overwrite::write(path, &report.figure().svg())?,
            Form::Page => overwrite::write(path, &report.page().html())?,
            Form::Png => file::write_png(path, &report.figure())?,
        }
        text += &path_line(path);
    }
    let parts = report.parts.iter().map(|part| Part {
        title: part.title.clone(),
        facts: part.facts.iter().cloned().collect(),
        table: part.table.clone().map(|(header, rows)| Table { header, rows }),
    });
    let data = Data { title: report.title.clone(), parts: parts.collect(), path: to.out.clone() };
    Ok(Output::new(text, data))
}
