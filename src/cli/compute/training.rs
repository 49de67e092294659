//! Trains a model for `trafoc train`: its folder, progress, and interruptions.

use std::path::Path;
use std::time::Instant;

use indexmap::IndexMap;
use serde_json::json;
use trafoc_kernels::set_threads;

use super::beginning::Choice;
use super::body::Started;
use super::execute::choose;
use super::failures::session_failure;
use super::forecast::{forecast, refuse_what_does_not_fit};
use super::live::LivePage;
use super::prepared::{Prepared, Source, documents, prepare_all};
use super::run_folder::{newest, report_damage, run_failure};
use super::signals::Signals;
use crate::cli::command::Command;
use crate::cli::figure::named;
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::next_step::{after_training, quoted};
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::overwrite::Mark;
use crate::cli::settings;
use crate::cli::train::{self, Best, Data, Forecast, Train, Trained};
use crate::cli::ui::{Ui, VERSION, path_line, shown_duration};
use crate::diag::Sink;
use crate::diag::count::counted;
use crate::interp::device::{Chosen, is_flex};
use crate::learn::calls::{self, Call};
use crate::learn::data::proportions;
use crate::learn::evaluate::Figures;
use crate::learn::recipe::Recipe;
use crate::learn::record::{Evaluation, Step};
use crate::learn::run_dir::{self, Checkpoint, RunDir, RunDirError, State};
use crate::learn::session::{self, Clock, Ending, Job, Session, Watcher, files};
use crate::parts::Head;
use crate::read::{self, limit};
use crate::report::number;
use crate::spec::{ModelSpec, reach};

/// A session that continues from a checkpoint, or begins in a new folder or in that of a run that was ended
/// before its first checkpoint. It says what it starts from, tensor by tensor if that is asked for.
///
/// # Errors
/// The folder is not that of a run, or the run would not fit into memory.
pub fn session<'a>(
    job: Job<'a>,
    prepared: &Prepared,
    root: &Path,
    found: Option<&Checkpoint>,
    (started, is_verbose): (Option<Started>, bool),
    ui: &Ui,
) -> Result<Session<'a>, Failure> {
    if let Some(found) = found {
        // Other documents would make the continued run one that cannot be repeated from its start.
        same_documents(found, root, job.documents)?;
        report_damage(found, ui);
        let run = RunDir::open(root).map_err(run_failure)?;
        ui.note(&format!("continues from step {}", found.state.step));
        if !found.state.finished && !session::has_optimizer(found) {
            ui.note(
                "note: the optimizer begins with a new state, because this checkpoint is that of a PyTorch project, \
                 which keeps the state in files of its own",
            );
        }
        // A checkpoint of low-rank changes contains these alone; the body they change is read again.
        let base = match started.filter(|_| job.recipe.adapt.is_some()) {
            Some(mut started) => {
                let device = job.device.clone().autodiff();
                Some(started.weights(job.graph, &device, *job.recipe.seed, ui)?)
            }
            None => None,
        };
        return Session::resume(job, run, found, base).map_err(session_failure);
    }
    // Before the folder is made, so that a refusal leaves nothing on the disk.
    refuse_what_does_not_fit(prepared)?;
    // A run that is ended before its first checkpoint begins again from these.
    let start = |folder: &Path| {
        session::write_documents(folder, job.documents)?;
        let text = json!({ "folder": prepared.folder }).to_string();
        crate::write::create(&folder.join(files::PREPARED), text.as_bytes())
    };
    // A run that was ended before its first checkpoint has nothing to lose.
    let run = if run_dir::is_run(root) && newest(root)?.is_none() {
        RunDir::restart(root, start)
    } else {
        RunDir::create(root, &prepared.subject.spec.name, start)
    };
    let run = run.map_err(run_failure)?;
    let weights = match started {
        Some(mut started) => {
            started.say(is_verbose, ui);
            let device = job.device.clone().autodiff();
            Some(started.weights(job.graph, &device, *job.recipe.seed, ui)?)
        }
        None => None,
    };
    Session::begin(job, run, weights).map_err(session_failure)
}

/// Says that the losses of a model tell little whose positions can read the token that they are to predict.
fn warn_of_seen_targets(spec: &ModelSpec, ui: &Ui) {
    let predicts_next = matches!(spec.head, Head::Lm(_) | Head::Translate(_));
    if let Some(rule) = reach::ahead(spec).filter(|_| predicts_next) {
        let (which, read) = match rule.prefix {
            Some(size) => (format!("the first {size} positions see"), "losses of these positions are"),
            None => ("every position sees".to_owned(), "losses are"),
        };
        ui.note(&format!(
            "note: under the decoder's mask, {which} later tokens and so the one to predict: {read} lower than what the \
             model can write without them; `mask: causal` hides them"
        ));
    }
}

impl Command for Train {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        train(self, ui)
    }
}

/// Trains a model, continues a run, or with `--dry-run` computes what training would need.
///
/// # Errors
/// An argument is wrong or does not fit, or a file cannot be written.
fn train(arguments: &Train, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    // Before the first op, which would choose a number of its own.
    let given = divide(arguments.threads)?;
    if arguments.force.force && arguments.page.is_none() {
        let message = "`--force` would have no effect: it is for the file of `--page`";
        return Err(Failure::usage(message).help("no run is replaced: another `--out` begins a new one"));
    }
    if let Some(path) = &arguments.page {
        arguments.force.permit(path, Mark::Drawn, "another `--page`")?;
    }
    // Without `--resume` a folder that exists is refused when the run is created, and none of it is used.
    let found = match (&arguments.out, arguments.resume) {
        (Some(root), true) => newest(root)?,
        (_, _) => None,
    };
    // A document of the run: that of its checkpoint, or the one it began with if it has no checkpoint.
    let own = |name: &str| match (&found, &arguments.out) {
        (Some(found), _) => Some(found.file(name)),
        (None, Some(root)) if arguments.resume => run_dir::start_file(root, name),
        (None, _) => None,
    };
    let spec = match (&arguments.spec, own(files::SPEC)) {
        // A spec that is given with `--resume` must be the run's own, which is checked below.
        (Some(spec), _) => spec.clone(),
        (None, Some(path)) => path.display().to_string(),
        (None, None) => return Err(nothing_to_resume(arguments.out.as_deref())),
    };
    let Some(recipe) = arguments.recipe.clone().or_else(|| own(files::RECIPE)) else {
        return Err(nothing_to_resume(arguments.out.as_deref()));
    };
    let over = arguments.start.over(&arguments.over)?;
    // Before the run's own spec is changed, in which every default is written out and much contradicts a change.
    if let (None, Some(root), true) = (&arguments.spec, &arguments.out, over.changes()) {
        let message = "a run continues with its own spec, which `--set` and `--variant` would change";
        return Err(as_it_began(Failure::usage(message), root));
    }
    let subject = over.compile(&spec, ui)?;
    let source = match (&arguments.data, &arguments.out) {
        (Some(folder), _) => Source::Folder(folder),
        // A run continues with the data that it began with.
        (None, Some(root)) if arguments.resume => Source::Run(root),
        (None, _) => Source::Files,
    };
    let choice = Choice {
        run: arguments.out.as_deref().filter(|root| arguments.resume && run_dir::is_run(root)),
        begins_again: false,
        weights: arguments.weights.as_deref(),
        from_scratch: arguments.start.from_scratch,
        has_new_head: arguments.start.head.is_some(),
        trains: true,
        families: over.families(),
    };
    let begun = Instant::now();
    let mut prepared = prepare_all(subject, &recipe, &arguments.with, source, &choice, ui)?;
    let preparing = begun.elapsed();
    let started = prepared.started.take();
    // Before the session takes the weights.
    let from = started.as_ref().map(Started::data);
    // A run that continues has shown these warnings when it began.
    if found.is_none() {
        let mut sink = Sink::new();
        proportions(&prepared.recipe, &prepared.dataset, &mut sink);
        ui.diagnose(&sink.into_sorted(), &prepared.subject.sources);
        warn_of_seen_targets(&prepared.subject.spec, ui);
    }
    // Before the folder is asked for: a forecast writes nothing.
    if arguments.dry_run {
        if let Some(started) = &started {
            started.say(arguments.verbose, ui);
        }
        let (text, needs) = forecast(&prepared, preparing, arguments.device.as_deref(), ui)?;
        return Ok(Output::new(ui.page(text), Data::Forecast(Forecast { start: from, ..needs })));
    }
    let Some(root) = &arguments.out else {
        return Err(Failure::usage("training needs a folder for the run: `--out DIR`"));
    };
    let chosen = opened(arguments.device.as_deref(), arguments.threads, ui)?;
    let documents = documents(&prepared)?;
    let Prepared { subject, dataset, .. } = &prepared;
    let job = prepared.job(&chosen, &documents);
    let known = found.as_ref();
    let mut session = session(job, &prepared, root, known, (started, arguments.verbose), ui)?;
    record_call(&call(&chosen, given, session.state().step), root)?;
    // From here on there is something to save; before, Ctrl-C ends the process at once.
    let signals = Signals::listen();
    let state = session.state();
    let examples = dataset.train.len();
    ui.note(&format!(
        "{}: {}, {}, {}",
        subject.spec.name,
        counted(number::exact(crate::report::cost::cost(&subject.graph).parameters.all().total), "parameter"),
        counted(number::exact(examples as u128), "example"),
        counted(number::exact(u128::from(state.steps)), "step"),
    ));
    let split = session::measured(&prepared.recipe, dataset);
    let all = dataset.part(split).map_or(0, |part| part.len() as u64);
    if let Some(limit) = prepared.recipe.evaluate.limit.as_ref().filter(|limit| ***limit < all) {
        let limit = number::exact(u128::from(**limit));
        let all = counted(number::exact(u128::from(all)), "example");
        ui.note(&format!("evaluates the first {limit} of the {all} of `{}`", split.word()));
    }
    let page = match &arguments.page {
        Some(path) => Some(LivePage::begin(path, root, state)?),
        None => None,
    };
    let mut progress = Progress::new(ui, &prepared.recipe, state, signals, page);
    let ended = session.run(&mut progress).map_err(session_failure);
    // The page shows a run that failed as well.
    if let Some(page) = progress.page.take() {
        page.end(ui);
    }
    // Only after the last page was written.
    let ending = ended?;
    let (figures, loss) = (std::mem::take(&mut progress.figures), progress.loss);
    let exit = progress.signals.exit();
    let state = session.state();
    let root = session.root().display().to_string();
    let data = Data::Trained(Trained {
        run: root.clone(),
        start: from,
        step: state.step,
        steps: state.steps,
        loss,
        figures: named(&figures),
        best: state.best.as_ref().map(|best| Best { step: best.step, value: best.value }),
        ending: match ending {
            Ending::Complete => train::Ending::Complete,
            Ending::Stopped => train::Ending::Stopped,
            Ending::Interrupted => train::Ending::Interrupted,
        },
    });
    let text = prepared.dataset.text_to_try();
    let next = after_training(&prepared.subject.spec.head, &root, text.as_ref());
    // Stdout has the path alone, which a script can use.
    let mut output = Output::new(path_line(Path::new(&root)), data);
    match ending {
        Ending::Complete => ui.next(&next),
        Ending::Stopped => {
            ui.note(&format!("stopped at step {}, because it no longer improved", state.step));
            ui.next(&next);
        }
        Ending::Interrupted => {
            ui.note(&format!("interrupted at step {}, and saved", state.step));
            ui.next(&format!("trafoc train --resume --out {}", quoted(&root)));
            output.exit = exit;
        }
    }
    Ok(output)
}

/// Divides the work of flex among this many threads, if a number is given.
///
/// # Errors
/// It has been divided already.
pub fn divide(threads: Option<u16>) -> Result<Option<u16>, Failure> {
    let given = match threads {
        Some(count) => Some(count),
        None => settings::get().threads()?,
    };
    if let Some(count) = given {
        set_threads(count.into()).map_err(|error| {
            Failure::usage(format!("the work cannot be divided among {count} threads: {error}"))
        })?;
    }
    Ok(given)
}

/// Opens the device on which a model is trained.
///
/// # Errors
/// It is not there, or it is not one whose work is divided among a given number of threads.
pub fn opened(device: Option<&str>, threads: Option<u16>, ui: &Ui) -> Result<Chosen, Failure> {
    let chosen = choose(device, ui)?;
    // Only now, because `auto` and the default name a device once it is opened. A variable or a file is meant for every device.
    if threads.is_some() && !is_flex(&chosen.device) {
        let message = format!("`--threads` divides the work of flex, not that of {}", chosen.name);
        return Err(Failure::usage(message).help("leave `--threads` out, or `--device`"));
    }
    Ok(chosen)
}

/// This call, which trains on this device from this step on.
pub fn call(chosen: &Chosen, threads: Option<u16>, step: u64) -> Call {
    let threads =
        threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    Call::now(VERSION, &chosen.name, threads, step)
}

/// Adds a call to those that a run has recorded.
///
/// # Errors
/// The system refuses.
pub fn record_call(call: &Call, root: &Path) -> Result<(), Failure> {
    call.record(root).map_err(|error| run_failure(RunDirError::Io(root.join(calls::FILE), error)))
}

/// Checks that a run continues with the spec, the recipe and the vocabulary it began with.
fn same_documents(
    found: &Checkpoint,
    root: &Path,
    documents: &[(&'static str, String)],
) -> Result<(), Failure> {
    for (name, text) in documents {
        let path = found.file(name);
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
        // No document of a run is longer than its codebook may be.
        let before = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
        let before = String::from_utf8(before).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
        if before != *text {
            let line = before.lines().zip(text.lines()).find(|(a, b)| a != b);
            let what = match *name {
                files::SPEC => "the spec",
                files::RECIPE => "the recipe",
                _ => "the data's vocabulary",
            };
            let failure = Failure::usage(format!("{what} is not the one the run began with"));
            let failure = match line {
                Some((before, now)) => {
                    failure.help(format!("it was `{}` and is `{}`", before.trim(), now.trim()))
                }
                None => failure,
            };
            return Err(as_it_began(failure, root));
        }
    }
    Ok(())
}

/// The advice for a run that was to continue with something else than it began with.
fn as_it_began(failure: Failure, root: &Path) -> Failure {
    let root = quoted(&root.display().to_string());
    failure
        .help(format!("`trafoc train --resume --out {root}` alone continues it as it began"))
        .help(format!(
            "`trafoc train {root} --recipe RECIPE --out NEW` trains its weights further, in a new run with another recipe"
        ))
}

fn nothing_to_resume(root: Option<&Path>) -> Failure {
    let name = root.map(|r| r.display().to_string()).unwrap_or_default();
    Failure::usage(format!("`{name}` has no checkpoint to continue from"))
        .help("with SPEC and --recipe, training begins from the start")
}

/// Shows the progress: in one line on a terminal that is updated, otherwise a line for every twentieth of the
/// steps.
pub struct Progress<'u> {
    ui: &'u Ui,
    /// What ends the training early.
    pub signals: Signals,
    recipe: &'u Recipe,
    /// The step at which this process began; its speed says nothing of steps that another one made.
    from: u64,
    /// The number of tokens of the steps since then.
    tokens: u64,
    /// The loss as it is shown: the mean of the first 20 steps, then a moving average.
    loss: Option<f64>,
    /// The losses of parts, as they are shown.
    losses: IndexMap<String, f64>,
    shown: Instant,
    figures: Figures,
    page: Option<LivePage>,
}

impl<'u> Progress<'u> {
    /// The progress from this state on, with the page that shows it, if there is one.
    pub fn new(
        ui: &'u Ui,
        recipe: &'u Recipe,
        state: &State,
        signals: Signals,
        page: Option<LivePage>,
    ) -> Self {
        let now = Instant::now();
        Self {
            ui,
            signals,
            recipe,
            from: state.step,
            tokens: 0,
            loss: None,
            losses: IndexMap::new(),
            shown: now,
            figures: Figures::new(),
            page,
        }
    }

    fn line(&self, state: &State, clock: &Clock) -> String {
        let left = clock.left(state.step.saturating_sub(self.from), state, self.recipe);
        // The time of evaluations is left out, which would make training look slow.
        let rate = (self.tokens as f64 / clock.steps.as_secs_f64().max(1e-9)).round();
        let mut line = format!("step {}/{}", state.step, state.steps);
        if let Some(loss) = self.loss {
            // Said, because `metrics.jsonl` and pages have the loss of each step.
            line += &format!("  smoothed loss {loss:.4}");
        }
        for (name, value) in &self.losses {
            line += &format!("  {name} {value:.4}");
        }
        line += &format!("  {} tokens/s  {} left", number::count(rate as u128), shown_duration(left));
        if let Some(bytes) = crate::memory::resident() {
            line += &format!("  {}", number::bytes(bytes));
        }
        line
    }
}

impl Watcher for Progress<'_> {
    fn stepped(&mut self, state: &State, line: &Step, clock: &Clock) {
        self.tokens += line.tokens;
        let seen = state.step.saturating_sub(self.from).max(1);
        // 1 / n gives the mean of n steps; from 20 on the share stays, and older steps fade.
        let share = (1.0 / seen as f64).max(0.05);
        self.loss = Some(self.loss.map_or(line.loss, |before| before + share * (line.loss - before)));
        for (name, value) in &line.losses {
            let mean = self.losses.entry(name.clone()).or_insert(*value);
            *mean += share * (value - *mean);
        }
        if let Some(page) = &mut self.page {
            page.stepped(line, self.ui);
        }
        let is_first = state.step == self.from + 1;
        // More than ten lines a second could not be read, and writing them takes time.
        if is_first || self.shown.elapsed().as_millis() >= 100 {
            self.shown = Instant::now();
            if self.ui.status(&self.line(state, clock)) {
                return;
            }
        }
        // In a file or a pipe, every line stays, so there are about twenty.
        let every = state.steps.div_ceil(20).max(1);
        if (is_first || state.step.is_multiple_of(every) || state.step == state.steps)
            && !self.ui.shows_status()
        {
            self.ui.note(&self.line(state, clock));
        }
    }

    fn evaluated(&mut self, state: &State, line: &Evaluation, figures: &Figures, is_best: bool) {
        if let Some(page) = &mut self.page {
            page.evaluated(line);
        }
        let all: Vec<String> = figures.iter().map(|(m, v)| format!("{} {v:.4}", m.word())).collect();
        let best = if is_best { ", the best so far" } else { "" };
        self.ui.note(&format!("step {}, on {}: {}{best}", state.step, line.split, all.join(", ")));
        // The last ones are the result of the run in JSON.
        self.figures.clone_from(figures);
    }

    fn saved(&mut self, _: &State, _: &Path) {}

    fn averaged(&mut self, found: usize, wanted: usize) {
        if found < wanted {
            let there = counted(found, "checkpoint");
            self.ui.note(&format!(
                "note: `average` asks for {wanted} checkpoints, but the run has {there}; a smaller \
                `checkpoint.every` would write more"
            ));
        }
    }

    fn is_over(&mut self) -> bool {
        self.signals.is_caught()
    }
}
