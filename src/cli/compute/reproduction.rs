//! Trains a run again for `trafoc reproduce`, in a folder of its own, and compares the two.
//!
//! Everything is as `trafoc train` does it. What the run has at the beginning, the checksums of its checkpoint and its
//! metrics, is kept in memory: a run that is in training may delete that checkpoint in the meantime.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::beginning::Choice;
use super::failures::session_failure;
use super::prepared::{Prepared, Source, documents, prepare_all};
use super::run_folder::{report_damage, run_failure};
use super::signals::Signals;
use super::training::{Progress, call, divide, opened, record_call, session};
use crate::cli::command::Command;
use crate::cli::course::record;
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::next_step::quoted;
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::reproduce::{Compared, Data, First, Maker, Reproduce};
use crate::cli::subject::OverArgs;
use crate::cli::ui::{Ui, path_line};
use crate::diag::count::counted;
use crate::learn::calls::{Call, calls};
use crate::learn::evaluate::Figures;
use crate::learn::likeness::{first_difference, tensors};
use crate::learn::record::{Evaluation, Record, Step};
use crate::learn::run_dir::{self, AVERAGED, Checkpoint, State};
use crate::learn::session::{self, Clock, Watcher, files};
use crate::learn::whole::Sum;
use crate::read::{self, limit};
use crate::tensor_file::TensorFile;

impl Command for Reproduce {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        reproduce(self, ui)
    }
}

/// What a run had when its repetition began.
struct Original {
    checkpoint: Checkpoint,
    sums: Vec<(String, Sum)>,
    record: Record,
    calls: Vec<Call>,
}

/// Trains a run again and compares the two.
///
/// # Errors
/// The run cannot be made again, or its repetition was interrupted.
fn reproduce(arguments: &Reproduce, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    // Before the first op, which would choose a number of its own.
    let given = divide(arguments.threads)?;
    let root = &arguments.run;
    let original = Original::read(root, arguments.steps, ui)?;
    let found = &original.checkpoint;
    if let Some(out) = &arguments.out {
        permit(out, root)?;
    }
    let subject = OverArgs::default().compile(&found.file(files::SPEC).display().to_string(), ui)?;
    let choice = Choice {
        run: Some(root),
        begins_again: true,
        trains: true,
        families: arguments.families.as_deref(),
        ..Choice::default()
    };
    let recipe = found.file(files::RECIPE);
    let mut prepared = prepare_all(subject, &recipe, &[], Source::Run(root), &choice, ui)?;
    session::same_examples(&found.state, &prepared.dataset)
        .map_err(|error| changed(error.to_string(), &recipe))?;
    let documents = documents(&prepared)?;
    compare_documents(found, &documents, ui)?;
    let started = prepared.started.take();
    if let (Some(started), None) = (&started, &found.state.began_with) {
        let from = started.data().from;
        ui.note(&format!("note: it began from {from}, whose weights must be those that it had then"));
    }
    let chosen = opened(arguments.device.as_deref(), arguments.threads, ui)?;
    let now = call(&chosen, given, 0);
    original.say_makers(&now, ui);
    let last = found.state.step;
    let place = Place::new(arguments.out.as_deref())?;
    let job = prepared.job(&chosen, &documents);
    let mut session = session(job, &prepared, &place.root, None, (started, false), ui)?;
    session::same_beginning(&found.state, session.state().began_with.as_deref()).map_err(session_failure)?;
    record_call(&now, &place.root)?;
    let signals = Signals::listen();
    let progress = Progress::new(ui, &prepared.recipe, session.state(), signals, None);
    let mut until = Until { progress, made: 0, last };
    session.run(&mut until).map_err(session_failure)?;
    let (made, steps) = (session.state().step, session.state().steps);
    // The lock is no longer needed.
    drop(session);
    let signals = &until.progress.signals;
    if made < last && signals.is_caught() {
        let message = format!("interrupted at step {made} of {last}, so nothing was compared");
        return Err(Failure::new(signals.exit(), message));
    }
    let again = record(&place.root)?;
    let first = first_difference(&original.record, &again, last);
    let files = match made < last {
        true => Vec::new(),
        false => compared(&original, &prepared, &place.root, last, ui)?,
    };
    let is_equal =
        first.is_none() && made == last && files.iter().all(|compared| compared.different == Some(0));
    let data = Data {
        run: root.display().to_string(),
        out: arguments.out.as_ref().map(|out| out.display().to_string()),
        step: last,
        steps,
        is_equal,
        recorded: original.record.steps.len(),
        first: first.map(|d| First {
            step: d.step,
            split: d.split,
            metric: d.name,
            run: d.one,
            again: d.other,
        }),
        files,
        made_with: original.calls.iter().map(maker).collect(),
        made_again_with: maker(&now),
    };
    let exit = if is_equal { Exit::Ok } else { Exit::Failed };
    let mut text = text(&data, made);
    if let Some(out) = &arguments.out {
        text += &path_line(out);
    }
    Ok(Output::new(text, data).with_exit(exit))
}

fn maker(call: &Call) -> Maker {
    let Call { version, device, threads, .. } = call;
    Maker { version: version.clone(), device: device.clone(), threads: *threads }
}

impl Original {
    /// The state of a run at a step, or at its newest complete checkpoint if no step is given.
    ///
    /// # Errors
    /// There is no such checkpoint, or it cannot be made again by `train`.
    fn read(root: &Path, step: Option<u64>, ui: &Ui) -> Result<Self, Failure> {
        let checkpoint = match step {
            Some(step) if !run_dir::exists(root, &run_dir::step_name(step)) => {
                return Err(no_checkpoint(root, step));
            }
            Some(step) => run_dir::named(root, &run_dir::step_name(step)),
            None => run_dir::newest(root),
        };
        let checkpoint = checkpoint.map_err(run_failure)?;
        report_damage(&checkpoint, ui);
        let calls = calls(root);
        // A project keeps the state of the optimizer in files of its own, and does not record its calls.
        let began_elsewhere = calls.first().is_some_and(|call| call.step > 0);
        if began_elsewhere || !session::has_optimizer(&checkpoint) {
            let message = format!(
                "`{}` was trained by a PyTorch project, at least in part, and trafoc does not compute its bits",
                root.display()
            );
            return Err(Failure::new(Exit::Refused, message)
                .help("`torchrun ... train.py` with the same seed and another `--out` trains it again"));
        }
        let damaged = |why: String| {
            Failure::new(Exit::File, format!("cannot read `{}`: {why}", checkpoint.path.display()))
        };
        let list = checkpoint.list().map_err(damaged)?;
        let mut sums: Vec<(String, Sum)> = tensor_files(list.files());
        // The mean of checkpoints belongs to the end of a run.
        if checkpoint.state.finished
            && let Ok(averaged) = run_dir::named(root, AVERAGED)
        {
            let list = averaged.list().map_err(damaged)?;
            let named = tensor_files(list.files());
            sums.extend(named.into_iter().map(|(name, sum)| (format!("{AVERAGED}/{name}"), sum)));
        }
        let mut record = record(root)?;
        record.steps.retain(|line| line.step <= checkpoint.state.step);
        record.evaluations.retain(|line| line.step <= checkpoint.state.step);
        Ok(Self { checkpoint, sums, record, calls })
    }

    /// Says what the run was made with, and what is different now.
    fn say_makers(&self, now: &Call, ui: &Ui) {
        let Some(first) = self.calls.first() else {
            ui.note("note: the run has not recorded with which version, device and threads it was made");
            return;
        };
        let shown = |call: &Call| {
            let threads = counted(call.threads, "thread");
            format!("trafoc {} on {}, {threads}", call.version, call.device)
        };
        let mut all: Vec<&Call> = vec![first];
        for call in &self.calls {
            if !all.iter().any(|known| maker(known) == maker(call)) {
                all.push(call);
            }
        }
        let names: Vec<String> = all.iter().map(|call| shown(call)).collect();
        ui.note(&format!("made by {}", names.join("; then by ")));
        let differs = |of: &dyn Fn(&Call, &Call) -> bool| all.iter().any(|call| !of(call, now));
        if differs(&|a, b| a.version == b.version) {
            ui.note(&format!("warning: this is trafoc {}, which may compute other bits", now.version));
        }
        if differs(&|a, b| a.device == b.device) {
            ui.note(&format!("warning: this is on {}, which may compute other bits", now.device));
        }
        if differs(&|a, b| a.threads == b.threads) {
            let threads = counted(now.threads, "thread");
            ui.note(&format!("note: this is with {threads}, on which no bit depends with flex"));
        }
    }
}

/// The files of a list that have tensors.
fn tensor_files(files: &indexmap::IndexMap<String, Sum>) -> Vec<(String, Sum)> {
    let all = files.iter().filter(|(name, _)| name.ends_with(".safetensors"));
    all.map(|(name, sum)| (name.clone(), sum.clone())).collect()
}

/// That a run has no checkpoint of a step, with those that it has.
fn no_checkpoint(root: &Path, step: u64) -> Failure {
    let there = match run_dir::last(root, usize::MAX) {
        Ok(there) => there,
        Err(error) => return run_failure(error),
    };
    let mut there: Vec<String> = there.iter().map(|found| found.state.step.to_string()).collect();
    there.reverse();
    let failure = Failure::new(Exit::File, format!("`{}` has no checkpoint of step {step}", root.display()));
    match there.is_empty() {
        true => failure,
        false => failure.help(format!("it has complete ones of the steps {}", there.join(", "))),
    }
}

/// Checks that a folder is not that of a run, and not within the one that is made again, which stays as it is.
fn permit(out: &Path, root: &Path) -> Result<(), Failure> {
    let named = out.display();
    if run_dir::is_run(out) {
        let message = format!("`{named}` is already the folder of a run");
        return Err(Failure::new(Exit::Refused, message).help("another `--out` makes a new one"));
    }
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The folder may not exist yet, and the nearest one above it may be named through a link.
    let above = whole(out).ancestors().find_map(|above| above.canonicalize().ok()).unwrap_or_default();
    if above.starts_with(root.canonicalize().unwrap_or_else(|_| whole(root))) {
        let message = format!("`{named}` is in the folder of the run, which is not changed");
        return Err(Failure::usage(message).help("give an `--out` outside of it"));
    }
    Ok(())
}

/// That the run cannot be made again because its data has changed.
fn changed(why: String, recipe: &Path) -> Failure {
    let recipe = quoted(&recipe.display().to_string());
    Failure::usage(why)
        .help(format!("it can be made again with the data as it was, whose files {recipe} names"))
}

/// Compares the documents of the run with those that were read now: a vocabulary follows from the data, and the other
/// two from the program, which may write out more in another version.
fn compare_documents(
    found: &Checkpoint,
    documents: &[(&'static str, String)],
    ui: &Ui,
) -> Result<(), Failure> {
    for (name, text) in documents {
        let path = found.file(name);
        let before = read::bounded(&path, limit::CODEBOOK).map_err(|error| {
            Failure::new(Exit::File, format!("cannot read `{}`: {}", path.display(), file::reason(&error)))
        })?;
        if before == text.as_bytes() {
            continue;
        }
        if *name == files::CODEBOOK {
            let why = "the data's vocabulary is not the one the run began with";
            return Err(changed(why.to_owned(), &found.file(files::RECIPE)));
        }
        ui.note(&format!("warning: this version writes out the {name} of the run with another text"));
    }
    Ok(())
}

/// The folder of the run that is made, which is removed when this is dropped if it is a temporary one.
struct Place {
    root: PathBuf,
    is_own: bool,
}

impl Place {
    fn new(out: Option<&Path>) -> Result<Self, Failure> {
        if let Some(out) = out {
            return Ok(Self { root: out.to_owned(), is_own: false });
        }
        let folder = std::env::temp_dir();
        let process = std::process::id();
        // A process of the same id may have been killed and have left one, and others may write here, too.
        for attempt in 0..1000 {
            let root = folder.join(format!("trafoc-reproduce-{process}-{attempt}"));
            match fs::create_dir(&root) {
                Ok(()) => return Ok(Self { root, is_own: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let why = file::reason(&error);
                    let message = format!("cannot make the folder `{}`: {why}", root.display());
                    return Err(Failure::new(Exit::File, message).help("`--out` names another one"));
                }
            }
        }
        let message = format!("`{}` has too many folders of trafoc", folder.display());
        Err(Failure::new(Exit::File, message).help("`--out` names another one"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_own {
            // A temporary folder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// Shows the progress, and ends the training after a step.
struct Until<'u> {
    progress: Progress<'u>,
    made: u64,
    last: u64,
}

impl Watcher for Until<'_> {
    fn stepped(&mut self, state: &State, line: &Step, clock: &Clock) {
        self.made = state.step;
        self.progress.stepped(state, line, clock);
    }

    fn evaluated(&mut self, state: &State, line: &Evaluation, figures: &Figures, is_best: bool) {
        self.progress.evaluated(state, line, figures, is_best);
    }

    fn saved(&mut self, state: &State, path: &Path) {
        self.progress.saved(state, path);
    }

    fn averaged(&mut self, found: usize, wanted: usize) {
        self.progress.averaged(found, wanted);
    }

    fn is_over(&mut self) -> bool {
        self.made >= self.last || self.progress.is_over()
    }
}

/// The files of the two checkpoints, compared.
fn compared(
    original: &Original,
    prepared: &Prepared,
    again: &Path,
    step: u64,
    ui: &Ui,
) -> Result<Vec<Compared>, Failure> {
    let root = original.checkpoint.root();
    let made = run_dir::named(again, &run_dir::step_name(step)).map_err(run_failure)?;
    let mut all = Vec::new();
    for (name, sum) in &original.sums {
        let (own, other) = match name.strip_prefix(&format!("{AVERAGED}/")) {
            None => (original.checkpoint.file(name), made.file(name)),
            Some(_) if !are_of_same_steps(prepared, root, again) => {
                ui.note(&format!(
                    "note: `{AVERAGED}` is not compared: it is the mean of other checkpoints, since one is written where \
                     a run is interrupted"
                ));
                continue;
            }
            Some(file) => {
                let of = |root: &Path| root.join("checkpoints").join(AVERAGED).join(file);
                (of(root), of(again))
            }
        };
        all.push(file_compared(name, &own, sum, &other)?);
    }
    Ok(all)
}

/// Whether the mean of checkpoints is that of the same steps in two runs.
fn are_of_same_steps(prepared: &Prepared, root: &Path, again: &Path) -> bool {
    let count = prepared.recipe.average.map_or(0, |count| usize::try_from(*count).unwrap_or(usize::MAX));
    let steps = |root: &Path| {
        let last = run_dir::last(root, count).ok()?;
        Some(last.into_iter().map(|found| found.state.step).collect::<Vec<_>>())
    };
    steps(root).is_some() && steps(root) == steps(again)
}

/// A file of a run, which had this checksum, compared with that of the run that was made again.
fn file_compared(name: &str, own: &Path, sum: &Sum, other: &Path) -> Result<Compared, Failure> {
    let failed = |why: String| Failure::new(Exit::File, why);
    let count = TensorFile::open(other).map_err(|error| failed(error.to_string()))?.entries().len();
    let same =
        Compared { file: name.to_owned(), tensors: count, different: Some(0), largest: None, tensor: None };
    let made = Sum::of_file(other)
        .map_err(|error| failed(format!("cannot read `{}`: {}", other.display(), file::reason(&error))))?;
    if made == *sum {
        return Ok(same);
    }
    // A run in training may have deleted the file, or replaced it.
    if Sum::of_file(own).ok().as_ref() != Some(sum) {
        return Ok(Compared { different: None, ..same });
    }
    let found = tensors(own, other).map_err(|error| failed(error.to_string()))?;
    Ok(Compared {
        different: Some(found.different),
        largest: found.largest.as_ref().map(|(_, value)| *value),
        tensor: found.largest.map(|(name, _)| name).or(found.first),
        ..same
    })
}

/// The result in words.
fn text(data: &Data, made: u64) -> String {
    let Data { step, recorded, first, files, .. } = data;
    let record = match recorded {
        0 => "no metrics, which the run has not recorded".to_owned(),
        _ => format!("the metrics of {}", counted(*recorded, "step")),
    };
    if data.is_equal {
        let all = files.iter().map(|file| format!("{} of {}", counted(file.tensors, "tensor"), file.file));
        return format!("equal bits at step {step}: {}, and {record}\n", all.collect::<Vec<_>>().join(", "));
    }
    let mut text = match first {
        Some(First { step, split, metric, run, again }) => {
            let shown = |value: &Option<f64>| value.map_or("nothing".to_owned(), |value| value.to_string());
            let on = split.as_ref().map_or(String::new(), |split| format!(" on {split}"));
            let (run, again) = (shown(run), shown(again));
            format!("first difference at step {step}: {metric}{on} is {again}, and was {run}\n")
        }
        None => format!("equal up to step {made}: {record}\n"),
    };
    if made < *step {
        text += &format!("training ended at step {made}, and the run's did not\n");
    }
    for Compared { file, tensors, different, largest, tensor } in files {
        let all = counted(*tensors, "tensor");
        text += &match different {
            Some(0) => format!("equal at step {step}: {all} of {file}\n"),
            None => format!(
                "different at step {step}: {file}, by its checksum; the run no longer has the file itself\n"
            ),
            Some(count) => {
                let by = match (largest, tensor) {
                    (Some(largest), Some(tensor)) => format!(", by up to {largest:.3e} in {tensor}"),
                    (None, Some(tensor)) => format!(", the first of them {tensor}"),
                    (_, None) => String::new(),
                };
                format!("different at step {step}: {count} of {all} of {file}{by}\n")
            }
        };
    }
    text
}
