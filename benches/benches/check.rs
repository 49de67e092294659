//! `trafoc check` as a cold process: every shipped spec, a thousand layers, a trillion parameters, and
//! every hostile text.
//!
//! Criterion measures some of them; of all others only the slowest is reported, by the median of seven
//! runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};

#[path = "../../tests/hostile/made.rs"]
mod made;

/// How often each file of a folder is measured.
const ROUNDS: usize = 7;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The release build of the program, if it exists.
fn program() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository("target"), PathBuf::from);
    let program = target.join("release/trafoc");
    program.exists().then_some(program)
}

fn run(program: &Path, spec: &Path, more: &[&str]) -> Duration {
    let start = Instant::now();
    let status = Command::new(program)
        .arg("check")
        .arg(spec)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // A process that was ended by a signal has no code.
    assert!(status.is_ok_and(|s| s.code().is_some()), "{} did not end by itself", spec.display());
    start.elapsed()
}

/// The files of a folder that are specs, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "yaml" || e == "trafo"));
    files.sort();
    files
}

/// The slowest of some files, with its median.
fn slowest(program: &Path, files: &[PathBuf]) -> Option<(Duration, String)> {
    let median = |file: &PathBuf| {
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| run(program, file, &[])).collect();
        times.sort();
        let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        times.get(ROUNDS / 2).map(|t| (*t, name))
    };
    files.iter().filter_map(median).max()
}

fn check(c: &mut Criterion) {
    let Some(program) = program() else {
        eprintln!("skipped: build the program first, with `cargo build --release`");
        return;
    };
    let gpt2 = repository("specs/gpt2-small.yaml");
    let cases: [(&str, PathBuf, &[&str]); 4] = [
        ("gpt2-small", gpt2.clone(), &[]),
        ("deepseek-v3-tiny", repository("specs/deepseek-v3-tiny.yaml"), &[]),
        ("a thousand layers", gpt2.clone(), &["--set", "decoder.layers=1000"]),
        ("a trillion parameters", gpt2, &["--set", "decoder.layers=1000", "--set", "d_model=9216"]),
    ];
    let mut group = c.benchmark_group("check");
    for (name, spec, more) in cases {
        group.bench_function(name, |b| b.iter(|| run(&program, &spec, more)));
    }
    group.finish();
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for generated texts") };
    let mut hostile = files(&repository("tests/hostile"));
    for (name, text) in made::made() {
        let file = folder.path().join(name);
        assert!(std::fs::write(&file, text).is_ok(), "{name} cannot be written");
        hostile.push(file);
    }
    for (what, files) in [("shipped spec", files(&repository("specs"))), ("hostile text", hostile)] {
        if let Some((time, name)) = slowest(&program, &files) {
            let all = files.len();
            println!("slowest {what} of {all}: {name}, {:.1} ms", time.as_secs_f64() * 1e3);
        }
    }
}

criterion_group!(benches, check);
criterion_main!(benches);
