//! Trains a model for `trafoc train`: spec, recipe and data together, progress, interruptions, the folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::execute::{choose, load, weights_failure};
use super::file;
use super::live::LivePage;
use super::shelf::recipe_text;
use super::subject::Subject;
use super::train::Train;
use super::ui::{Exit, Failure, Output, Ui, counted};
use crate::diag::Sink;
use crate::field::Value as _;
use crate::interp::Weights;
use crate::interp::device::Chosen;
use crate::learn::data::{Dataset, Refused, prepare, proportions};
use crate::learn::recipe::{self, Location, Locations, Recipe, agree};
use crate::learn::record::{Evaluation, Step};
use crate::learn::run_dir::{self, Found, RunDir, RunDirError, State};
use crate::learn::session::{self, Clock, Ending, Figures, Job, Session, SessionError, Watcher, files};
use crate::read::{self, limit};
use crate::report::number;
use crate::spec::expand::expand;
use crate::syntax::set::parse_setting;
use crate::syntax::{Notation, print, text};

/// A spec with its recipe and what the recipe names.
pub struct Prepared {
    /// The spec.
    pub subject: Subject,
    /// The recipe, which has been held against it.
    pub recipe: Recipe,
    /// The data.
    pub dataset: Dataset,
}

impl Prepared {
    /// What a session is made of.
    pub fn job<'a>(&'a self, device: &'a Chosen, documents: &'a [(&'static str, String)]) -> Job<'a> {
        let Self { subject, recipe, dataset } = self;
        let (graph, d_model, device) = (&subject.graph, subject.spec.d_model, &device.device);
        Job { graph, d_model, recipe, dataset, device, documents }
    }
}

/// The newest checkpoint of a run, if the folder is one and has any.
///
/// # Errors
/// None of those that are there can be used.
pub fn newest(root: &Path) -> Result<Option<Found>, Failure> {
    if !run_dir::is_run(root) {
        return Ok(None);
    }
    match run_dir::newest(root) {
        Ok(found) => Ok(Some(found)),
        // A run that was ended before its first checkpoint begins anew.
        Err(RunDirError::NoCheckpoint { found, .. }) if found.is_empty() => Ok(None),
        Err(error) => Err(run_failure(error)),
    }
}

/// A session that goes on from what was found, or begins, with the weights of the file `from` where there is one: in
/// a new folder, or in that of a run that was ended before its first checkpoint.
///
/// # Errors
/// The folder is another's, or the run would not fit.
pub fn session<'a>(
    job: Job<'a>,
    prepared: &Prepared,
    root: &Path,
    found: Option<&Found>,
    from: Option<&Path>,
    weights: impl FnOnce() -> Result<Option<Weights>, Failure>,
    ui: &Ui,
) -> Result<Session<'a>, Failure> {
    if let Some(found) = found {
        same_documents(found, job.documents)?;
        tell_damage(found, ui);
        let run = RunDir::open(root).map_err(run_failure)?;
        ui.note(&format!("goes on from step {}", found.state.step));
        return Session::resume(job, run, found).map_err(session_failure);
    }
    super::forecast::refuse_what_does_not_fit(prepared)?;
    let start = |folder: &Path| {
        session::write_documents(folder, job.documents)?;
        let from = from.map(|path| path.canonicalize()).transpose()?;
        let text = json!({ "weights": from }).to_string();
        run_dir::write_file(&folder.join(files::FROM), text.as_bytes())
    };
    // A run that was ended before its first checkpoint has nothing to lose.
    let run = match run_dir::is_run(root) && newest(root)?.is_none() {
        true => RunDir::restart(root, start),
        false => RunDir::create(root, &prepared.subject.spec.name, start),
    };
    let run = run.map_err(run_failure)?;
    Session::begin(job, run, weights()?).map_err(session_failure)
}

/// Trains.
///
/// # Errors
/// Anything given is wrong, does not fit, or cannot be written.
pub fn train(arguments: &Train, ui: &mut Ui) -> Result<Output, Failure> {
    let found = match (&arguments.out, arguments.resume) {
        (Some(root), true) => newest(root)?,
        (_, _) => None,
    };
    // What a run has of its own: that of its checkpoint, or what it began with where it has none.
    let own = |name: &str| match (&found, &arguments.out) {
        (Some(found), _) => Some(found.file(name)),
        (None, Some(root)) if arguments.resume => run_dir::start_file(root, name),
        (None, _) => None,
    };
    let spec = match (&arguments.spec, own(files::SPEC)) {
        (Some(spec), _) => spec.clone(),
        (None, Some(path)) => path.display().to_string(),
        (None, None) => return Err(nothing_to_resume(arguments.out.as_deref())),
    };
    let Some(recipe) = arguments.recipe.clone().or_else(|| own(files::RECIPE)) else {
        return Err(nothing_to_resume(arguments.out.as_deref()));
    };
    let subject = arguments.over.compile(&spec, ui)?;
    let prepared = prepare_all(subject, &recipe, &arguments.with, ui)?;
    if found.is_none() {
        let mut sink = Sink::new();
        proportions(&prepared.recipe, &prepared.dataset, &mut sink);
        ui.diagnose(&sink.into_sorted(), &prepared.subject.sources);
    }
    if arguments.dry_run {
        return super::forecast::forecast(&prepared, arguments.device.as_deref(), ui);
    }
    let Some(root) = &arguments.out else { return Err(Failure::usage("`--out DIR` says where it goes")) };
    let chosen = choose(arguments.device.as_deref(), ui)?;
    let documents = documents(&prepared)?;
    let Prepared { subject, dataset, .. } = &prepared;
    let job = prepared.job(&chosen, &documents);
    let from = match (&arguments.weights, &found) {
        (Some(path), _) => Some(path.clone()),
        (None, None) => own(files::FROM).map(|path| began_with(&path)).transpose()?.flatten(),
        (None, Some(_)) => None,
    };
    let weights = || match &from {
        Some(path) => load(subject, path, &chosen.device.clone().autodiff(), ui).map(Some),
        None => Ok(None),
    };
    let known = found.as_ref();
    let mut session = session(job, &prepared, root, known, from.as_deref(), weights, ui)?;
    let signals = Signals::listen();
    let state = session.state();
    let examples = dataset.train.len();
    ui.note(&format!(
        "{}: {} parameters, {} examples, {} steps",
        subject.spec.name,
        number::exact(crate::report::cost::cost(&subject.graph).parameters.all().total),
        number::exact(examples as u128),
        number::exact(u128::from(state.steps)),
    ));
    let page = match &arguments.page {
        Some(path) => Some(LivePage::begin(path, root, state)?),
        None => None,
    };
    let mut progress = Progress::new(ui, &prepared.recipe, state, signals, page);
    let ended = session.run(&mut progress).map_err(session_failure);
    // What was seen until a run failed is worth as much as what was seen to its end.
    if let Some(page) = progress.page.take() {
        page.end(ui);
    }
    let ending = ended?;
    let (figures, loss) = (std::mem::take(&mut progress.figures), progress.loss);
    let signal = progress.signals.caught();
    let state = session.state();
    let root = session.root().display().to_string();
    let data = json!({
        "run": root,
        "step": state.step,
        "steps": state.steps,
        "loss": loss,
        "figures": session::named(&figures),
        "best": state.best,
        "ending": match ending {
            Ending::Complete => "complete",
            Ending::Stopped => "stopped",
            Ending::Interrupted => "interrupted",
        },
    });
    let mut output = Output::new(format!("{root}\n"), data)?;
    match ending {
        Ending::Complete => ui.next(&super::new::after_training(&prepared.subject.spec.head, &root)),
        Ending::Stopped => {
            ui.note(&format!("ended at step {}: it has not become better any more", state.step))
        }
        Ending::Interrupted => {
            ui.note(&format!("interrupted at step {}, and saved; `--resume` goes on", state.step));
            output.exit = if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted };
        }
    }
    Ok(output)
}

/// Reads a recipe, holds it against the spec, and reads the data.
///
/// # Errors
/// Something is wrong with them, and has been told.
pub fn prepare_all(
    mut subject: Subject,
    recipe: &Path,
    with: &[String],
    ui: &mut Ui,
) -> Result<Prepared, Failure> {
    let (name, bytes) = recipe_text(recipe)?;
    let mut sink = Sink::new();
    let mut settings = Vec::new();
    for argument in with {
        match parse_setting(&mut subject.sources, ("--with", "steps=100"), argument) {
            Ok(setting) => settings.push(setting),
            Err(diagnostic) => sink.push(diagnostic),
        }
    }
    let id = text::decode(&mut subject.sources, &name, &bytes, &mut sink);
    let read = id.and_then(|id| recipe::read(&subject.sources, id, &settings, &mut sink));
    if let Some(recipe) = &read {
        agree::check(recipe, &subject.spec, &subject.graph, &mut sink);
    }
    let (Some(recipe), false) = (read, sink.has_errors()) else {
        return Err(refused(sink, &subject, &name, ui));
    };
    match prepare(&recipe, &subject.spec, &subject.sources, &mut sink) {
        Ok(dataset) => {
            ui.diagnose(&sink.into_sorted(), &subject.sources);
            Ok(Prepared { subject, recipe, dataset })
        }
        Err(Refused::File { path, why }) => {
            ui.diagnose(&sink.into_sorted(), &subject.sources);
            Err(Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display())))
        }
        Err(Refused::Data) => Err(refused(sink, &subject, &name, ui)),
    }
}

fn refused(sink: Sink, subject: &Subject, name: &str, ui: &mut Ui) -> Failure {
    let found = sink.into_sorted();
    ui.diagnose(&found, &subject.sources);
    Failure::new(Exit::Failed, format!("`{name}` has {}", counted(&found)))
}

/// What stands beside the parameters of a checkpoint, so that it can be used without anything else.
pub fn documents(prepared: &Prepared) -> Result<Vec<(&'static str, String)>, Failure> {
    let Prepared { subject, recipe, dataset } = prepared;
    let codebook = dataset.codebook.to_json().map_err(|e| Failure::bug(e.to_string()))?;
    let mut recipe = recipe.clone();
    let data = &mut recipe.data;
    for locations in
        [Some(&mut data.train), data.validation.as_mut(), data.test.as_mut()].into_iter().flatten()
    {
        absolute(locations, subject);
    }
    if let Some(recipe::Tokens::File(from)) = &mut recipe.tokens {
        absolute_one(&mut from.path, subject);
        from.merges.iter_mut().for_each(|merges| absolute_one(merges, subject));
    }
    Ok(vec![
        (files::SPEC, expand(&subject.spec, Notation::Yaml)),
        (files::RECIPE, print::yaml(&recipe.encode())),
        (files::CODEBOOK, codebook),
    ])
}

/// Paths as they are found from anywhere: a recipe in a run no longer lies where it was written.
fn absolute(locations: &mut Locations, subject: &Subject) {
    locations.0.iter_mut().for_each(|location| absolute_one(location, subject));
}

fn absolute_one(location: &mut Location, subject: &Subject) {
    let path = location.path(&subject.sources);
    location.text = path.canonicalize().unwrap_or(path).display().to_string();
}

/// A run goes on with the spec, recipe and vocabulary it began with.
fn same_documents(found: &Found, documents: &[(&'static str, String)]) -> Result<(), Failure> {
    for (name, text) in documents {
        let path = found.file(name);
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
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
            return Err(failure.help("`trafoc train --resume` without SPEC and --recipe takes the run's own; another `--out` begins anew"));
        }
    }
    Ok(())
}

/// The weights that a run without a checkpoint was given.
fn began_with(path: &Path) -> Result<Option<PathBuf>, Failure> {
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let bytes = read::bounded(path, limit::SPEC).map_err(|e| failed(file::reason(&e)))?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| failed(e.to_string()))?;
    Ok(json["weights"].as_str().map(PathBuf::from))
}

fn nothing_to_resume(root: Option<&Path>) -> Failure {
    let name = root.map(|r| r.display().to_string()).unwrap_or_default();
    Failure::usage(format!("`{name}` holds no checkpoint to go on from"))
        .help("give SPEC and --recipe, and training begins anew")
}

/// Says which checkpoints could not be used.
pub fn tell_damage(found: &Found, ui: &Ui) {
    for damaged in &found.damaged {
        ui.note(&format!(
            "warning: the checkpoint {} cannot be used, {} is taken: {}",
            damaged.name,
            found.name(),
            damaged.why
        ));
    }
}

/// Why a folder cannot be used.
pub fn run_failure(error: RunDirError) -> Failure {
    let message = match &error {
        RunDirError::Io(path, error) => format!("`{}`: {}", path.display(), file::reason(error)),
        RunDirError::Foreign(_)
        | RunDirError::Taken(_)
        | RunDirError::Held { .. }
        | RunDirError::NoCheckpoint { .. } => error.to_string(),
    };
    let failure = Failure::new(Exit::File, message);
    match error {
        RunDirError::Foreign(_) => failure.help("give a new folder, or `--resume` for one of trafoc's"),
        RunDirError::Taken(_) => failure.help("`--resume` goes on with it; another `--out` begins anew"),
        RunDirError::Io(_, error) if error.kind() == std::io::ErrorKind::StorageFull => {
            failure.help("what was saved before is whole: `trafoc train --resume` goes on once there is room")
        }
        RunDirError::Io(..) | RunDirError::Held { .. } | RunDirError::NoCheckpoint { .. } => failure,
    }
}

/// Why a run did not reach its end.
pub fn session_failure(error: SessionError) -> Failure {
    match error {
        SessionError::RunDir(error) => run_failure(error),
        SessionError::Weights(error) => weights_failure(error),
        SessionError::Optimizer(error) => Failure::new(Exit::File, error.to_string()),
        SessionError::Step(error) => Failure::new(Exit::Failed, error.to_string()),
        SessionError::NotANumber { .. } => Failure::new(Exit::Failed, error.to_string())
            .help("a lower `learning_rate`, a longer `warmup` or `clip: 1.0` in the recipe keeps it one"),
    }
}

const SIGINT: usize = 2;
/// The number of the wish to end.
pub const SIGTERM: usize = 15;

/// Hears Ctrl-C and the system's wish to end the process. Another one, a second or more later, ends it at
/// once; before, it is the same wish said twice, as `timeout` and others do to a process and to its group.
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Begins to listen.
    pub fn listen() -> Self {
        let caught = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
            let number = signal as i32;
            // Where the system gives no signals there is nothing to hear.
            let _ = signal_hook::flag::register_conditional_shutdown(number, code, Arc::clone(&again));
            let _ = signal_hook::flag::register_usize(number, Arc::clone(&caught), signal);
        }
        let heard = Arc::clone(&caught);
        // Without that thread a second wish is heard like the first.
        let _ = std::thread::Builder::new().spawn(move || {
            while heard.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
            std::thread::sleep(Duration::from_secs(1));
            again.store(true, Ordering::SeqCst);
        });
        Self(caught)
    }

    /// The number of what was heard; 0 for nothing.
    pub fn caught(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Shows a run: one line on a terminal, else a line now and then.
struct Progress<'u> {
    ui: &'u Ui,
    signals: Signals,
    recipe: &'u Recipe,
    from: u64,
    tokens: u64,
    /// The loss as it is shown: the mean of the first 20 steps, then one that forgets.
    loss: Option<f64>,
    shown: Instant,
    figures: Figures,
    page: Option<LivePage>,
}

impl<'u> Progress<'u> {
    fn new(ui: &'u Ui, recipe: &'u Recipe, state: &State, signals: Signals, page: Option<LivePage>) -> Self {
        let now = Instant::now();
        Self {
            ui,
            signals,
            recipe,
            from: state.step,
            tokens: 0,
            loss: None,
            shown: now,
            figures: Figures::new(),
            page,
        }
    }

    fn line(&self, state: &State, clock: &Clock) -> String {
        let left = clock.left(state.step.saturating_sub(self.from), state, self.recipe);
        let rate = (self.tokens as f64 / clock.steps.as_secs_f64().max(1e-9)).round();
        let mut line = format!("step {}/{}", state.step, state.steps);
        if let Some(loss) = self.loss {
            line += &format!("  loss {loss:.4}");
        }
        line += &format!("  {} tokens/s  {} left", number::count(rate as u128), duration(left));
        if let Some(bytes) = resident() {
            line += &format!("  {}", number::bytes(bytes));
        }
        line
    }
}

impl Watcher for Progress<'_> {
    fn stepped(&mut self, state: &State, line: &Step, clock: &Clock) {
        self.tokens += line.tokens;
        let seen = state.step.saturating_sub(self.from).max(1);
        let share = (1.0 / seen as f64).max(0.05);
        self.loss = Some(self.loss.map_or(line.loss, |before| before + share * (line.loss - before)));
        if let Some(page) = &mut self.page {
            page.stepped(line, self.ui);
        }
        let is_first = state.step == self.from + 1;
        if is_first || self.shown.elapsed().as_millis() >= 100 {
            self.shown = Instant::now();
            if self.ui.status(&self.line(state, clock)) {
                return;
            }
        }
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
        self.ui.note(&format!("step {}: {}{best}", state.step, all.join(", ")));
        self.figures.clone_from(figures);
    }

    fn saved(&mut self, _: &State, _: &Path) {}

    fn is_over(&mut self) -> bool {
        self.signals.caught() != 0
    }
}

/// `2h 05m`, `1m 20s`, `7s`
pub fn duration(seconds: f64) -> String {
    let all = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m {seconds:02}s"),
        _ => format!("{hours}h {minutes:02}m"),
    }
}

/// Bytes of memory this process has, where the system says so.
pub fn resident() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: u128 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
