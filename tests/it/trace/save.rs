//! The calls of a training that saves: each of them fails once and is the last one once, and the run is continued; and
//! their order, by which a crash of the system costs no checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trafoc::learn::run_dir::{self, Checkpoint};

use super::{Call, calls, of, traced};
use crate::train::{Folder, said, same};

/// The calls that change files, or on which it depends what is changed.
const CALLS: &[&str] = &[
    "openat",
    "read",
    "write",
    "writev",
    "pwrite64",
    "copy_file_range",
    "sendfile",
    "fsync",
    "fdatasync",
    "ftruncate",
    "flock",
    "fchmod",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "getdents64",
];

/// The calls that write to an open file.
const WRITES: &[&str] = &["write", "writev", "pwrite64", "copy_file_range", "sendfile", "ftruncate"];

/// A checkpoint after every step, of which the last one is kept; with one thread the calls are always the same.
fn settings(steps: u64) -> [String; 8] {
    let with = |setting: &str| ["--with".to_owned(), setting.to_owned()];
    let [a, b] = with(&format!("steps={steps}"));
    let [c, d] = with("checkpoint={every: 1, keep: 1}");
    let [e, f] = with("evaluate.every=2");
    [a, b, c, d, e, f, "--threads".to_owned(), "1".to_owned()]
}

/// What a training of `steps` into the folder `run` calls for the files of that folder: the name of each call, which call
/// of that name it is in its thread, and the call.
fn saved(place: &Folder, steps: u64) -> Vec<(usize, Call)> {
    let run = place.path("run");
    let settings = settings(steps);
    let mut command = place.train(run.to_str().unwrap(), &[]);
    command.args(&settings);
    let (output, threads) = calls(&command, &[of(CALLS)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: Vec<Vec<(usize, Call)>> = Vec::new();
    for all in threads.into_values() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut own = Vec::new();
        for call in all {
            let count = counts.entry(call.name.clone()).or_default();
            *count += 1;
            if call.paths(&place.path("")).iter().any(|path| path.starts_with(&run)) {
                own.push((*count, call));
            }
        }
        found.push(own);
    }
    found.retain(|own| !own.is_empty());
    // The order of calls of several threads would not be known.
    assert_eq!(found.len(), 1, "one thread writes a run");
    found.remove(0)
}

/// The checkpoint in a folder of a run, which must be complete.
fn named(run: &Path, folder: &Path) -> Checkpoint {
    run_dir::named(run, folder.file_name().unwrap().to_str().unwrap()).unwrap()
}

/// Trains once for each call of a training of two steps, which is `inject`ed there, and continues the run.
/// `check` is given what the program said and the call.
fn each(inject: &str, check: impl Fn(&std::process::Output, &Call)) -> usize {
    let place = Folder::new();
    let settings = settings(2);
    let more: Vec<&str> = settings.iter().map(String::as_str).collect();
    place.trained("whole", &more);
    let whole = place.bytes("whole", 2);
    let all = saved(&place, 2);
    let run = place.path("run");
    for (number, call) in &all {
        std::fs::remove_dir_all(&run).unwrap();
        let mut command = place.train(run.to_str().unwrap(), &more);
        command.stdin(std::process::Stdio::null());
        let option = format!("--inject={}:{inject}:when={number}", call.name);
        let folder = tempfile::tempdir().unwrap();
        let output = traced(&command, folder.path(), &[of(CALLS), option]).output().unwrap();
        check(&output, call);
        // The folder need not exist yet.
        let resumed = said(place.train(run.to_str().unwrap(), &more).arg("--resume").output().unwrap());
        assert_eq!(resumed.code, Some(0), "after {call:?}: {}", resumed.err);
        same(&whole, &place.bytes("run", 2));
        // Nothing that is incomplete stays; an older checkpoint does if it was not deleted before a run was complete.
        for entry in std::fs::read_dir(run.join("checkpoints")).unwrap() {
            let left = entry.unwrap().path();
            assert!(left.join("whole.json").exists(), "after {call:?}: {left:?}");
            named(&run, &left);
        }
    }
    all.len()
}

#[test]
#[ignore = "needs strace; `.ci/run trace`"]
fn every_call_of_a_training_may_fail() {
    let count = each("error=EIO", |output, call| {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{call:?}: {said}");
        assert!(said.contains("error: ") && said.contains("input/output error"), "{call:?}: {said}");
    });
    println!("{count} calls failed, one in each training: exit 4, and the run was continued");
}

#[test]
#[ignore = "needs strace; `.ci/run trace`"]
fn every_call_of_a_training_may_be_the_last() {
    let count = each("signal=SIGKILL", |output, call| {
        assert_eq!(output.status.code(), None, "{call:?}: {}", String::from_utf8_lossy(&output.stderr));
    });
    println!("{count} trainings were killed, each in another call");
}

/// By a trace of four steps with a checkpoint each, of which one is kept: whatever gets a name that readers look for is on
/// the disk by then, and what came before is deleted only when its successor's name is on the disk, too.
#[test]
#[ignore = "needs strace; `.ci/run trace`"]
fn files_are_flushed_before_they_get_their_names() {
    let place = Folder::new();
    let run = place.path("run");
    let checkpoints = run.join("checkpoints");
    // What is written, and in which folder names changed, since it was flushed last.
    let (mut written, mut changed) = (BTreeSet::<PathBuf>::new(), BTreeSet::<PathBuf>::new());
    let (mut renamed, mut deleted, mut flushed) = (0, 0, 0);
    let parent = |path: &Path| path.parent().unwrap().to_owned();
    for (_, call) in saved(&place, 4) {
        let paths = call.paths(&place.path(""));
        let last = paths.last().unwrap().clone();
        match call.name.as_str() {
            _ if !call.succeeded() => {}
            "openat" if call.arguments.contains("O_CREAT") || call.arguments.contains("O_TRUNC") => {
                written.insert(last.clone());
                changed.insert(parent(&last));
            }
            name if WRITES.contains(&name) => written.extend(paths),
            "fsync" | "fdatasync" => {
                flushed += 1;
                written.remove(&last);
                changed.remove(&last);
            }
            "mkdir" | "mkdirat" => drop(changed.insert(parent(&last))),
            "rename" | "renameat" | "renameat2" => {
                let first = &paths[0];
                let within: Vec<&PathBuf> = written.iter().filter(|path| path.starts_with(first)).collect();
                assert!(within.is_empty(), "{call:?} comes before these are flushed: {within:?}");
                let within: Vec<&PathBuf> = changed.iter().filter(|path| path.starts_with(first)).collect();
                assert!(
                    within.is_empty(),
                    "{call:?} comes before the names in these are flushed: {within:?}"
                );
                renamed += usize::from(parent(&last) == checkpoints);
                changed.extend([parent(first), parent(&last)]);
            }
            // Deleting a checkpoint begins with its list.
            "unlink" | "unlinkat" if last.starts_with(&checkpoints) && last.ends_with("whole.json") => {
                assert!(!changed.contains(&checkpoints), "{call:?} comes before the new name is flushed");
                deleted += 1;
            }
            // These change no content and no name.
            _ => {}
        }
    }
    assert_eq!((renamed, deleted), (4, 3), "four checkpoints, of which one is kept");
    println!("{flushed} flushes before {renamed} checkpoints got their names and {deleted} were deleted");
}
