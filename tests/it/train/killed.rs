//! Runs that are killed, again and again, end like one that was not.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Folder, same};

/// Random numbers for the moments at which runs are killed.
fn noise(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut stream = trafoc::learn::random::Stream::new(seed, "kill", 0);
    move |most| stream.below(most)
}

/// Whether a process is writing a checkpoint, or was killed while doing so.
fn writes(checkpoints: &Path, process: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(checkpoints) else { return false };
    let ending = format!(".{process}.tmp");
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(&ending))
}

/// Kills runs `kills` times, at least a quarter of them while a checkpoint is written, and compares every
/// run that ends in the end with one that was not interrupted.
fn killed(kills: u32, steps: &str, seed: u64) {
    let place = Folder::new();
    let more = ["--with", steps, "--with", "checkpoint.every=1", "--with", "evaluate.every=5"];
    let last: u64 = steps.trim_start_matches("steps=").parse().unwrap();
    let checkpoints = place.path("killed/checkpoints");
    let start = std::time::Instant::now();
    place.trained("whole", &more);
    // Moments within a run, however short it is.
    let mut most = (start.elapsed().as_millis() as u64 * 3 / 4).max(1);
    let mut random = noise(seed);
    let (mut died, mut within) = (0, 0);
    for attempt in 0.. {
        assert!(attempt < 20 * kills, "of {attempt} runs {died} were killed, {within} in a save");
        let enough = died >= kills && 4 * within >= kills;
        let mut command = place.train("killed", &more);
        let mut child: Child = command
            .arg("--resume")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if !enough && attempt % 2 == 0 {
            std::thread::sleep(Duration::from_millis(random(most)));
        } else if !enough {
            // Not always the first save of a run.
            let saves = random(8);
            for _ in 0..=saves {
                while child.try_wait().unwrap().is_none() && !writes(&checkpoints, child.id()) {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(random(1500)));
            }
        }
        if !enough {
            let _ = child.kill();
        }
        let process = child.id();
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => {
                same(&place.bytes("whole", last), &place.bytes("killed", last));
                if enough {
                    break;
                }
                // The run had ended before it could be killed.
                std::fs::remove_dir_all(place.path("killed")).unwrap();
                most = (most / 2).max(1);
            }
            None => {
                died += 1;
                within += u32::from(writes(&checkpoints, process));
            }
            Some(code) => panic!("exit {code}: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }
    println!("{died} deaths, {within} of them within a save");
}

#[test]
fn a_killed_run_ends_like_one_that_was_not() {
    killed(6, "steps=24", 1);
}

/// The same for much longer: `cargo test -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn a_run_killed_two_hundred_times_ends_like_one_that_was_not() {
    killed(200, "steps=400", 2);
}

/// Interrupts and terminates runs at random moments, `signals` times, and resumes each: it says by its exit
/// code what ended it, and a run that ends in the end is like one that was never signalled.
fn signalled(signals: u32, steps: &str, seed: u64) {
    let folder = Folder::new();
    let more = ["--with", steps];
    let last: u64 = steps.trim_start_matches("steps=").parse().unwrap();
    let start = std::time::Instant::now();
    folder.trained("whole", &more);
    let most = (start.elapsed().as_millis() as u64).max(1);
    let mut random = noise(seed);
    // Signals while training, and those before anything could be saved.
    let (mut saved, mut early) = (0, 0);
    while saved < signals {
        assert!(early < 5 * signals, "{saved} signals of {signals} met a training");
        let mut command = folder.train("cut", &more);
        let child = command.arg("--resume").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random(most)));
        let (signal, code) = if random(2) == 0 { ("-INT", 130) } else { ("-TERM", 143) };
        // It may have ended meanwhile.
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {
                same(&folder.bytes("whole", last), &folder.bytes("cut", last));
                std::fs::remove_dir_all(folder.path("cut")).unwrap();
                early += 1;
            }
            Some(found) => {
                assert_eq!(found, code, "{said}");
                saved += 1;
            }
            // The program was still starting, and the signal ended it as it ends any program.
            None => early += 1,
        }
    }
    folder.trained("cut", &[&more[..], &["--resume"]].concat());
    same(&folder.bytes("whole", last), &folder.bytes("cut", last));
    println!("{saved} signals while training, {early} before or after");
}

#[test]
fn a_signalled_run_ends_like_one_that_was_not() {
    signalled(4, "steps=24", 3);
}

/// The same for much longer: `cargo test -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn a_run_signalled_a_hundred_times_ends_like_one_that_was_not() {
    signalled(100, "steps=120", 4);
}
