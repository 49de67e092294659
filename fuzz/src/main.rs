//! Feeds mutated files to every reader of trafoc, on stable Rust and with nothing but the standard library's
//! processes: a worker mutates and reads, and writes down what it is about to read; whatever ends it, a
//! panic, a stack that overflows, memory beyond its limit or time, the file it has written is the find.
//!
//! ```text
//! cargo run --release -p trafoc-fuzz                        every reader for two minutes
//! cargo run --release -p trafoc-fuzz -- --seconds 10 set    one of them for ten seconds
//! cargo run --release -p trafoc-fuzz -- --once set FILE     one file
//! cargo run --release -p trafoc-fuzz -- --measure 10000     time and memory of that number of hostile inputs
//! ```
//! Finds are shrunk and kept in `tests/regressions/<reader>/`, where an ordinary test reads them again.

mod mutate;
// A promise that is broken is a panic, and a panic is a find.
#[allow(clippy::expect_used, clippy::unwrap_used)]
#[path = "../../tests/it/readers.rs"]
mod readers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use mutate::Corpus;
use readers::{LONGEST, READERS, Reader};

/// KiB of memory a worker may take beyond its program.
const MEMORY: u64 = 1 << 20;
/// How long one input may be read.
const SLOW: Duration = Duration::from_secs(10);
/// Milliseconds and MiB that a command may take for one input of [`LONGEST`] bytes in a release build.
const MOST_MS: f64 = 100.0;
const MOST_MIB: f64 = 64.0;
/// How long shrinking a find may take.
const SHRINKING: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--worker", name, seed, seconds, current] => worker(name, seed, seconds, Path::new(current)),
        ["--once", name, path] => once(name, Path::new(path)),
        ["--seconds", seconds, names @ ..] => every(seconds.parse().ok(), names),
        ["--measure", count, names @ ..] => measured(count.parse().ok(), names),
        names if names.iter().all(|n| !n.starts_with('-')) => every(Some(120), names),
        _ => every(None, &[]),
    }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = READERS.iter().map(|r| r.name).collect();
    eprintln!(
        "usage: trafoc-fuzz [--seconds N | --measure INPUTS] [READER ...]\nreaders: {}",
        names.join(" ")
    );
    ExitCode::from(2)
}

fn reader(name: &str) -> Option<&'static Reader> {
    READERS.iter().find(|r| r.name == name)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs readers, each for the given number of seconds; fails if any of them found a fault.
fn every(seconds: Option<u64>, names: &[&str]) -> ExitCode {
    let Some(seconds) = seconds else { return usage() };
    if names.iter().any(|n| reader(n).is_none()) {
        return usage();
    }
    let mut finds = 0;
    for reader in READERS.iter().filter(|r| names.is_empty() || names.contains(&r.name)) {
        match fuzz(reader, Duration::from_secs(seconds)) {
            Ok(found) => finds += found,
            Err(why) => {
                eprintln!("{}: {why}", reader.name);
                return ExitCode::FAILURE;
            }
        }
    }
    if finds == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads one file with a reader, in this process.
fn once(name: &str, path: &Path) -> ExitCode {
    let (Some(reader), Ok(bytes)) = (reader(name), fs::read(path)) else { return usage() };
    (reader.run)(&bytes);
    ExitCode::SUCCESS
}

/// Reads inputs, the same number with each reader: every file it begins with, then mutants and hostile ones in
/// turns. Prints the slowest and the largest of each reader, keeps both and the last among the temporary files, and fails
/// where one takes more time or memory than an input may. The seed is always the same, so that figures can be
/// compared.
fn measured(count: Option<usize>, names: &[&str]) -> ExitCode {
    let chosen: Vec<&Reader> =
        READERS.iter().filter(|r| names.is_empty() || names.contains(&r.name)).collect();
    let (Some(count), false) = (count, chosen.is_empty()) else { return usage() };
    let each = count.div_ceil(chosen.len());
    let mut beyond = 0;
    println!("{:14} {:>7} {:>12} {:>12} {:>12}", "reader", "inputs", "mean ms", "slowest ms", "most MiB");
    for reader in chosen {
        let corpus = Corpus::of(&repository(), reader.seeds, LONGEST);
        let mut random = fastrand::Rng::with_seed(1);
        // Tables that are made once are no input's, nor are the families, which a config of none of them asks for.
        (reader.run)(b"");
        (reader.run)(br#"{"model_type": ""}"#);
        let (mut all, mut slowest, mut most) = (0.0, 0.0, 0.0);
        let keep = |what: &str, input: &[u8]| {
            let kept = std::env::temp_dir().join(format!("trafoc-{what}-{}", reader.name));
            if let Err(error) = fs::write(&kept, input) {
                eprintln!("{}: {error}", kept.display());
            }
        };
        for number in 0..each {
            let input = match (corpus.file(number), number % 2) {
                (Some(file), _) => file.to_vec(),
                (None, 0) => corpus.mutant(&mut random),
                (None, _) => corpus.hostile(&mut random),
            };
            // Kept until the next one, for the case that reading it ends this program.
            keep("last", &input);
            let before = memory::forget_peak();
            let start = cpu::milliseconds();
            (reader.run)(&input);
            let time = cpu::milliseconds() - start;
            let size = memory::peak().saturating_sub(before) as f64 / 1024.0;
            all += time;
            beyond += usize::from(time > MOST_MS * commands(reader) || size > MOST_MIB);
            if time > slowest {
                slowest = time;
                keep("slowest", &input);
            }
            if size > most {
                most = size;
                keep("largest", &input);
            }
        }
        let mean = all / each as f64;
        println!("{:14} {each:>7} {mean:>12.2} {slowest:>12.1} {most:>12.1}", reader.name);
    }
    if beyond == 0 {
        return ExitCode::SUCCESS;
    }
    eprintln!("{beyond} inputs took more than {MOST_MS} ms or {MOST_MIB} MiB");
    ExitCode::FAILURE
}

/// How many commands do what a reader does with one input: a text is formatted and converted several times, to
/// see that it stays the same.
fn commands(reader: &Reader) -> f64 {
    if reader.name.starts_with("format") { 6.0 } else { 1.0 }
}

/// The time that this thread has computed.
mod cpu {
    use std::fs;
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    /// Other programs on the machine do not count, except where the system does not say what this one took.
    pub fn milliseconds() -> f64 {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
        nanoseconds.map_or_else(|| START.elapsed().as_secs_f64() * 1e3, |n| n / 1e6)
    }
}

/// The memory of this process, in KiB; 0 where the system does not say.
mod memory {
    use std::fs;

    fn status(name: &str) -> u64 {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Lets the peak begin anew, at what there is now.
    pub fn forget_peak() -> u64 {
        // Where the system has no such file, nothing is measured.
        let _ = fs::write("/proc/self/clear_refs", "5");
        status("VmRSS:")
    }

    /// The most there has been since.
    pub fn peak() -> u64 {
        status("VmHWM:")
    }
}

/// Mutates and reads until the time is over.
fn worker(name: &str, seed: &str, seconds: &str, current: &Path) -> ExitCode {
    let (Some(reader), Ok(seed), Ok(seconds)) = (reader(name), seed.parse(), seconds.parse()) else {
        return usage();
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let corpus = Corpus::of(&repository(), reader.seeds, LONGEST);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut count = 0u64;
    while Instant::now() < end {
        let input = corpus.mutant(&mut random);
        // A find is what is in this file.
        if fs::write(current, &input).is_err() {
            return ExitCode::from(2);
        }
        (reader.run)(&input);
        count += 1;
    }
    println!("{count}");
    ExitCode::SUCCESS
}

/// A process of this program, with the limits of a worker.
fn limited(arguments: &[&str]) -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = match cfg!(target_os = "linux") {
        true => {
            let mut shell = Command::new("sh");
            // Finds are many, and each would leave a file with all its memory.
            shell.args(["-c", &format!("ulimit -d {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"")]).arg(own);
            shell
        }
        false => Command::new(own),
    };
    command.args(arguments).env("RUST_BACKTRACE", "0");
    Ok(command)
}

/// Runs one reader for some time, and returns the number of its finds.
fn fuzz(reader: &Reader, time: Duration) -> Result<usize, String> {
    let folder = std::env::temp_dir().join(format!("trafoc-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (current, log) = (folder.join("current"), folder.join("log"));
    let end = Instant::now() + time;
    // Another process begins with other mutants.
    let (mut finds, mut executions, mut seed) = (0, 0u64, u64::from(std::process::id()));
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| left.as_secs() > 0) {
        seed += 1;
        let seconds = left.as_secs().to_string();
        let words = ["--worker", reader.name, &seed.to_string(), &seconds, &current.to_string_lossy()];
        let said = fs::File::create(&log).map_err(|e| e.to_string())?;
        let mut child =
            limited(&words)?.stdout(Stdio::piped()).stderr(said).spawn().map_err(|e| e.to_string())?;
        let why = watch(&mut child, &current);
        match why {
            None => {
                let out = child.wait_with_output().map_err(|e| e.to_string())?;
                executions += String::from_utf8_lossy(&out.stdout).trim().parse().unwrap_or(0);
            }
            Some(why) => {
                let input = fs::read(&current).map_err(|e| e.to_string())?;
                let said = fs::read_to_string(&log).unwrap_or_default();
                let said: String = said.chars().take(2_000).collect();
                // A machine that slept, or memory that many inputs have left, is no fault of this one.
                if !fails(reader, &input, &folder)? {
                    eprintln!("{}: {why}, but not when the last input is read alone\n{said}", reader.name);
                    continue;
                }
                let smaller = shrunk(reader, input.clone(), &folder)?;
                let input = if fails(reader, &smaller, &folder)? { smaller } else { input };
                let path = keep(reader, &input)?;
                eprintln!("{}: {why}: {}\n{said}", reader.name, path.display());
                finds += 1;
            }
        }
    }
    fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    eprintln!("{}: {executions} inputs in whole runs, {finds} finds", reader.name);
    Ok(finds)
}

/// Waits for a worker. Why it ended, unless it ended well.
fn watch(child: &mut Child, current: &Path) -> Option<String> {
    loop {
        std::thread::sleep(Duration::from_millis(50));
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) => {}
            Err(error) => return Some(error.to_string()),
        }
        // A worker writes the file right before it reads, so the file is as old as the reading.
        let changed = fs::metadata(current).and_then(|m| m.modified()).ok();
        if changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > SLOW) {
            // It has ended meanwhile if it cannot be ended.
            let _ = child.kill();
            let _ = child.wait();
            return Some(format!("it took more than {} seconds", SLOW.as_secs()));
        }
    }
}

/// Whether a reader fails on an input.
fn fails(reader: &Reader, input: &[u8], folder: &Path) -> Result<bool, String> {
    let path = folder.join("shrinking");
    fs::write(&path, input).map_err(|e| e.to_string())?;
    let mut command = limited(&["--once", reader.name, &path.to_string_lossy()])?;
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    Ok(watch(&mut child, &path).is_some())
}

/// A find without the parts that it does not need in order to fail.
fn shrunk(reader: &Reader, mut input: Vec<u8>, folder: &Path) -> Result<Vec<u8>, String> {
    let end = Instant::now() + SHRINKING;
    let mut size = input.len() / 2;
    while size > 0 && Instant::now() < end {
        let mut at = 0;
        while at < input.len() && Instant::now() < end {
            let mut without = input.clone();
            without.drain(at..(at + size).min(input.len()));
            match fails(reader, &without, folder)? {
                true => input = without,
                false => at += size,
            }
        }
        size /= 2;
    }
    Ok(input)
}

/// Writes a find under a name that follows from its bytes, so that the same find is kept once.
fn keep(reader: &Reader, input: &[u8]) -> Result<PathBuf, String> {
    let folder = repository().join("tests/regressions").join(reader.name);
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let path = folder.join(format!("found-{hash:016x}"));
    fs::write(&path, input).map_err(|e| e.to_string())?;
    Ok(path)
}
