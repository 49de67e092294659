//! The folder of a training run: checkpoints, which are always complete, and a record of metrics.
//!
//! ```text
//! RUN/run.json                        what this folder is
//! RUN/start/                          the spec, the recipe and whose weights it began with
//! RUN/lock                            held by the process that trains
//! RUN/metrics.jsonl                   one line for every evaluation
//! RUN/checkpoints/step-000004000/     model, optimizer, state, tokenizers, spec, recipe
//!                               whole.json   every file with its size and SHA-256, written last
//! ```
//! A checkpoint is written into a folder with another name, flushed file by file, and then renamed: a
//! folder named `step-...` with a correct `whole.json` is complete. Older checkpoints are deleted only
//! afterwards. Reading compares every byte with `whole.json` and falls back to the previous checkpoint.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The format that `run.json` declares.
const RUN: &str = "trafoc-run/1";
/// The format that `whole.json` declares.
const WHOLE: &str = "trafoc-checkpoint/1";
/// The name of the list of files, without which a checkpoint is not complete.
const LIST: &str = "whole.json";
/// The longest list of files that is read, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// Why a run cannot be opened or written.
#[derive(Debug)]
pub enum RunDirError {
    /// An I/O error.
    Io(PathBuf, io::Error),
    /// The folder is not empty, and not the folder of a run.
    Foreign(PathBuf),
    /// The folder already belongs to another run.
    Taken(PathBuf),
    /// Another process is training in the folder.
    Held {
        /// The path of the folder.
        path: PathBuf,
        /// The id of that process, if it could be read.
        by: Option<u32>,
    },
    /// There is no complete checkpoint.
    NoCheckpoint {
        /// The path of the folder.
        path: PathBuf,
        /// The checkpoints that exist, and what is wrong with them.
        found: Vec<Damaged>,
    },
}

/// A checkpoint that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The name of the checkpoint.
    pub name: String,
    /// The reason, in lower case without a full stop.
    pub why: String,
}

impl fmt::Display for RunDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunDirError::Io(path, error) => write!(f, "`{}`: {error}", path.display()),
            RunDirError::Foreign(path) => {
                write!(f, "`{}` is not empty, and not the folder of a run", path.display())
            }
            RunDirError::Taken(path) => write!(f, "`{}` is already the folder of a run", path.display()),
            RunDirError::Held { path, by: Some(pid) } => {
                write!(f, "process {pid} is training in `{}`", path.display())
            }
            RunDirError::Held { path, by: None } => {
                write!(f, "another process is training in `{}`", path.display())
            }
            RunDirError::NoCheckpoint { path, found } => {
                write!(f, "`{}` has no complete checkpoint", path.display())?;
                found.iter().try_for_each(|d| write!(f, "; {}: {}", d.name, d.why))
            }
        }
    }
}

impl std::error::Error for RunDirError {}

/// The state of a training in addition to the parameters and the optimizer's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The number of steps made.
    pub step: u64,
    /// The total number of steps.
    pub steps: u64,
    /// The seed of everything random. Dropout, order and masking of a step are functions of the seed and
    /// the step alone, so these two numbers are the random state and the position in the data.
    pub seed: u64,
    /// The number of target tokens or examples seen.
    pub targets: u64,
    /// The best evaluation so far.
    pub best: Option<Best>,
    /// The best value of the metric that may end the run early.
    pub stop: Option<f64>,
    /// The number of evaluations since that value was reached.
    pub stale: u64,
    /// Whether the run is complete.
    pub finished: bool,
}

/// The best evaluation so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// The number of steps before it.
    pub step: u64,
    /// The value of the metric.
    pub value: f64,
}

/// The list of a checkpoint's files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    format: String,
    files: IndexMap<String, Sum>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sum {
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: String,
    name: String,
}

/// The folder of a run, locked until this is dropped.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    // The operating system releases the lock when the process ends, even if it is killed.
    _lock: File,
}

/// A complete checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The path of its folder.
    pub path: PathBuf,
    /// The state of the training at that step.
    pub state: State,
    /// Newer checkpoints that cannot be used.
    pub damaged: Vec<Damaged>,
}

impl Found {
    /// The name of the checkpoint.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> RunDirError + '_ {
    |error| RunDirError::Io(path.to_owned(), error)
}

/// Whether a folder is that of a run.
pub fn is_run(root: &Path) -> bool {
    root.join("run.json").is_file()
}

impl RunDir {
    /// Makes the folder of a new run. It must not be there, or be empty. `start` puts into a folder what the run
    /// begins with, so that it can begin again where it ends before its first checkpoint.
    ///
    /// # Errors
    /// It holds something, or the system refuses.
    pub fn create(
        root: &Path,
        name: &str,
        start: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, RunDirError> {
        if is_run(root) {
            return Err(RunDirError::Taken(root.to_owned()));
        }
        fs::create_dir_all(root.join("checkpoints")).map_err(io_at(root))?;
        let known = ["checkpoints", "lock", START];
        let foreign = fs::read_dir(root).map_err(io_at(root))?.flatten().any(|entry| {
            let name = entry.file_name();
            !known.iter().any(|k| name == **k) && !is_scratch(&name.to_string_lossy())
        });
        let used = fs::read_dir(root.join("checkpoints")).map_err(io_at(root))?.next().is_some();
        if foreign || used {
            return Err(RunDirError::Foreign(root.to_owned()));
        }
        let lock = hold(root)?;
        put_start(root, start).map_err(io_at(root))?;
        let marker = Marker { format: RUN.to_owned(), name: name.to_owned() };
        write_file(&root.join("run.json"), &to_json(&marker)).map_err(io_at(root))?;
        flush_folder(root).map_err(io_at(root))?;
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    /// Opens the folder of an existing run and deletes what a killed process has left incomplete.
    ///
    /// # Errors
    /// It is not the folder of a run, another process trains there, or an I/O error.
    pub fn open(root: &Path) -> Result<Self, RunDirError> {
        if !is_run(root) {
            return Err(match fs::metadata(root) {
                Ok(_) => RunDirError::Foreign(root.to_owned()),
                Err(error) => RunDirError::Io(root.to_owned(), error),
            });
        }
        let lock = hold(root)?;
        let run = Self { root: root.to_owned(), _lock: lock };
        let folder = run.checkpoints();
        fs::create_dir_all(&folder).map_err(io_at(&folder))?;
        for entry in fs::read_dir(&folder).map_err(io_at(&folder))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_scratch(&name) || (step_of(&name).is_some() && !entry.path().join(LIST).exists()) {
                fs::remove_dir_all(entry.path()).map_err(io_at(&folder))?;
            }
        }
        Ok(run)
    }

    /// Begins anew a run that has no checkpoint yet, with what `start` puts into a folder.
    ///
    /// # Errors
    /// As [`RunDir::open`].
    pub fn restart(root: &Path, start: impl FnOnce(&Path) -> io::Result<()>) -> Result<Self, RunDirError> {
        let run = Self::open(root)?;
        put_start(root, start).map_err(io_at(root))?;
        Ok(run)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Writes a checkpoint: `write` creates files in the folder it is given. Of the older checkpoints, the
    /// best one and the last `keep` (including this one) are kept.
    ///
    /// # Errors
    /// An I/O error; the earlier checkpoints are then unchanged.
    pub fn save(
        &self,
        state: &State,
        keep: u64,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        let name = step_name(state.step);
        let path = self.put(&name, state, write)?;
        self.prune(keep, state.best.as_ref().map(|b| b.step)).map_err(io_at(&self.checkpoints()))?;
        Ok(path)
    }

    /// Writes the model that is the mean of several checkpoints.
    ///
    /// # Errors
    /// An I/O error.
    pub fn save_averaged(
        &self,
        state: &State,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        self.put(AVERAGED, state, write)
    }

    fn put(
        &self,
        name: &str,
        state: &State,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        let folder = self.checkpoints();
        let beside = folder.join(scratch(name));
        let target = folder.join(name);
        let result = (|| {
            match fs::remove_dir_all(&beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            fs::create_dir_all(&beside)?;
            write(&beside)?;
            write_file(&beside.join("state.json"), &to_json(state))?;
            let mut whole = Whole { format: WHOLE.to_owned(), files: IndexMap::new() };
            let mut names: Vec<String> = Vec::new();
            for entry in fs::read_dir(&beside)? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            for name in names {
                let path = beside.join(&name);
                File::open(&path)?.sync_all()?;
                whole.files.insert(name, sum(&path)?);
            }
            write_file(&beside.join(LIST), &to_json(&whole))?;
            flush_folder(&beside)?;
            if target.exists() {
                // The old folder is damaged, or the step was repeated after an older checkpoint was
                // resumed.
                let aside = folder.join(scratch(&format!("{name}.old")));
                fs::rename(&target, &aside)?;
                fs::rename(&beside, &target)?;
                fs::remove_dir_all(&aside)?;
            } else {
                fs::rename(&beside, &target)?;
            }
            flush_folder(&folder)
        })();
        match result {
            Ok(()) => Ok(target),
            Err(error) => {
                // If it cannot be deleted now, it is deleted when the run is opened again.
                let _ = fs::remove_dir_all(&beside);
                Err(RunDirError::Io(target, error))
            }
        }
    }

    fn prune(&self, keep: u64, best: Option<u64>) -> io::Result<()> {
        let mut steps = steps(&self.checkpoints())?;
        steps.sort_unstable_by(|a, b| b.cmp(a));
        for step in steps.into_iter().skip(usize::try_from(keep).unwrap_or(usize::MAX)) {
            if Some(step) != best {
                let path = self.checkpoints().join(step_name(step));
                // Without its list it is no longer a checkpoint, even if deleting the rest fails.
                match fs::remove_file(path.join(LIST)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }

    /// Adds lines to the record of metrics.
    ///
    /// # Errors
    /// An I/O error.
    pub fn record(&self, line: &impl Serialize) -> Result<(), RunDirError> {
        let path = self.root.join(super::record::FILE);
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let mut file = own_file(&path).map_err(io_at(&path))?;
        file.write_all(&text).map_err(io_at(&path))
    }

    /// Removes from the record what was measured after a step, because it will be measured again.
    ///
    /// # Errors
    /// An I/O error.
    pub fn rewind(&self, step: u64) -> Result<(), RunDirError> {
        #[derive(Deserialize)]
        struct At {
            step: u64,
        }
        let path = self.root.join(super::record::FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RunDirError::Io(path, error)),
        };
        let mut kept = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(io_at(&path))?;
            if serde_json::from_slice::<At>(&line).is_ok_and(|at| at.step <= step) {
                kept.extend_from_slice(&line);
                kept.push(b'\n');
            }
        }
        let beside = self.root.join(scratch("metrics"));
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunDirError::Io(beside, error));
            }
            Ok(()) | Err(_) => {}
        }
        write_file(&beside, &kept).and_then(|()| fs::rename(&beside, &path)).map_err(io_at(&path))
    }

    /// The newest complete checkpoint.
    ///
    /// # Errors
    /// No checkpoint is complete.
    pub fn newest(&self) -> Result<Found, RunDirError> {
        newest(&self.root)
    }
}

/// Name of the folder of what a run began with.
const START: &str = "start";

/// A file of what a run began with, if it is there.
pub fn start_file(root: &Path, name: &str) -> Option<PathBuf> {
    Some(root.join(START).join(name)).filter(|path| path.is_file())
}

fn put_start(root: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let (beside, folder) = (root.join(scratch(START)), root.join(START));
    for old in [&beside, &folder] {
        match fs::remove_dir_all(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::create_dir(&beside)?;
    write(&beside)?;
    flush_folder(&beside)?;
    fs::rename(&beside, &folder)
}

/// Name of the mean of several checkpoints.
pub const AVERAGED: &str = "averaged";

/// The newest complete checkpoint of a run, which may be training at the same time.
///
/// # Errors
/// No checkpoint is complete.
pub fn newest(root: &Path) -> Result<Found, RunDirError> {
    let folder = root.join("checkpoints");
    let mut all = steps(&folder).map_err(io_at(&folder))?;
    all.sort_unstable_by(|a, b| b.cmp(a));
    let mut damaged = Vec::new();
    for step in all {
        match check(&folder.join(step_name(step))) {
            Ok(state) => return Ok(Found { path: folder.join(step_name(step)), state, damaged }),
            Err(why) => damaged.push(Damaged { name: step_name(step), why }),
        }
    }
    Err(RunDirError::NoCheckpoint { path: root.to_owned(), found: damaged })
}

/// How many steps a run is to have, as its newest checkpoint says. Nothing of it is held against its checksum:
/// this is for telling how far a run is, not for going on with it.
pub fn planned(root: &Path) -> Option<u64> {
    let folder = root.join("checkpoints");
    let newest = steps(&folder).ok()?.into_iter().max()?;
    let mut bytes = Vec::new();
    let file = File::open(folder.join(step_name(newest)).join("state.json")).ok()?;
    file.take(MAX_LIST).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice::<State>(&bytes).ok().map(|state| state.steps)
}

/// The checkpoint with this name.
///
/// # Errors
/// It does not exist, or is not complete.
pub fn named(root: &Path, name: &str) -> Result<Found, RunDirError> {
    let path = root.join("checkpoints").join(name);
    match check(&path) {
        Ok(state) => Ok(Found { path, state, damaged: Vec::new() }),
        Err(why) => {
            let found = vec![Damaged { name: name.to_owned(), why }];
            Err(RunDirError::NoCheckpoint { path: root.to_owned(), found })
        }
    }
}

/// The last `count` complete checkpoints, newest first.
///
/// # Errors
/// An I/O error.
pub fn last(root: &Path, count: usize) -> Result<Vec<Found>, RunDirError> {
    let folder = root.join("checkpoints");
    let mut all = steps(&folder).map_err(io_at(&folder))?;
    all.sort_unstable_by(|a, b| b.cmp(a));
    let found = all.into_iter().filter_map(|step| named(root, &step_name(step)).ok());
    Ok(found.take(count).collect())
}

/// The name of a step's checkpoint.
pub fn step_name(step: u64) -> String {
    format!("step-{step:09}")
}

fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("step-")?;
    let step = digits.parse().ok()?;
    (step_name(step) == name).then_some(step)
}

fn steps(folder: &Path) -> io::Result<Vec<u64>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(step) = step_of(&entry.file_name().to_string_lossy())
            && entry.path().join(LIST).exists()
        {
            out.push(step);
        }
    }
    Ok(out)
}

/// A name that is not a checkpoint's.
fn scratch(name: &str) -> String {
    format!(".{name}.{}.tmp", std::process::id())
}

fn is_scratch(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Compares every byte of a checkpoint with its list.
fn check(path: &Path) -> Result<State, String> {
    let said = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => error.to_string(),
    };
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let file = File::open(path.join(name)).map_err(|e| format!("{name}: {}", said(&e)))?;
        file.take(MAX_LIST).read_to_end(&mut bytes).map_err(|e| format!("{name}: {}", said(&e)))?;
        Ok::<_, String>(bytes)
    };
    let bytes = read(LIST)?;
    let whole: Whole = serde_json::from_slice(&bytes).map_err(|e| format!("{LIST} is damaged: {e}"))?;
    if whole.format != WHOLE || to_json(&whole) != bytes {
        return Err(format!("{LIST} is damaged, or of another version"));
    }
    for (name, expected) in &whole.files {
        if name.is_empty() || name.contains(['/', '\\', ':']) || name.starts_with('.') {
            return Err(format!("{LIST} is damaged: it names `{name}`"));
        }
        let file = path.join(name);
        let length = fs::metadata(&file).map_err(|e| format!("{name}: {}", said(&e)))?.len();
        if length != expected.bytes {
            return Err(format!("{name} has {length} bytes instead of {}", expected.bytes));
        }
        if sum(&file).map_err(|e| format!("{name}: {}", said(&e)))? != *expected {
            return Err(format!("{name} is damaged: its checksum is wrong"));
        }
    }
    serde_json::from_slice(&read("state.json")?).map_err(|e| format!("state.json: {e}"))
}

fn sum(path: &Path) -> io::Result<Sum> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..n).filter(|part| !part.is_empty()) else { break };
        hash.update(part);
        bytes += n as u64;
    }
    let digest = hash.finalize();
    Ok(Sum { bytes, sha256: digest.iter().map(|b| format!("{b:02x}")).collect() })
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Writes and flushes a new file; there must be none of its name.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn flush_folder(path: &Path) -> io::Result<()> {
    // A renaming is durable only after its folder is flushed; not every system can do that.
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied && cfg!(unix) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Takes the lock of a run's folder. Its file is made anew or is an ordinary one: writing through a link would
/// overwrite a file somewhere else.
fn hold(root: &Path) -> Result<File, RunDirError> {
    let path = root.join("lock");
    let mut file = own_file(&path).map_err(io_at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let by = (&file).take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(RunDirError::Held { path: root.to_owned(), by });
        }
        Err(TryLockError::Error(error)) => return Err(RunDirError::Io(path, error)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_at(&path))?;
    Ok(file)
}

/// Opens a file of the folder for writing, made if it is not there, never through a link of any kind.
fn own_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let foreign = || io::Error::other("it is a link or no ordinary file, and is not written to");
    // A pipe would not open before another process reads from it.
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Err(foreign());
    }
    let file = options.open(path)?;
    // The name may have become a link since; nothing has been written yet.
    match same_file(&named, &file.metadata()?) {
        true => Ok(file),
        false => Err(foreign()),
    }
}

/// Whether two looks at a file are of the same one, which has no other name.
#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino()) && b.nlink() == 1
}

#[cfg(not(unix))]
fn same_file(_: &fs::Metadata, b: &fs::Metadata) -> bool {
    b.is_file()
}
