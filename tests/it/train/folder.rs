//! The folder of a run by itself: which checkpoints are complete, which are damaged, and which are deleted.

use std::path::Path;

use trafoc::learn::run_dir::{self, Best, RunDir, RunDirError, State};

fn state(step: u64) -> State {
    State {
        step,
        steps: 100,
        seed: 1,
        order: 2,
        data: None,
        began_with: None,
        targets: step,
        best: None,
        stop: None,
        stale: 0,
        finished: false,
    }
}

fn save(run: &RunDir, state: &State) {
    let write = |folder: &Path| {
        std::fs::write(folder.join("model.safetensors"), format!("model {}", state.step).repeat(2000))?;
        std::fs::write(folder.join("spec.yaml"), "name: tiny\n")
    };
    run.save(state, 2, write).unwrap();
}

fn names(root: &Path) -> Vec<String> {
    let all = std::fs::read_dir(root.join("checkpoints")).unwrap();
    let mut names: Vec<String> = all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_last_ones_and_the_best_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    let run = RunDir::create(&root, "tiny", |_| Ok(())).unwrap();
    for step in 1..=5 {
        let best = (step > 1).then_some(Best { step: 2, value: 0.5 });
        save(&run, &State { best, ..state(step) });
    }
    assert_eq!(names(&root), ["step-000000002", "step-000000004", "step-000000005"]);
    assert_eq!(run.newest().unwrap().state.step, 5);
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    let run = RunDir::create(&root, "tiny", |_| Ok(())).unwrap();
    save(&run, &state(1));
    save(&run, &state(2));
    let mut stream = trafoc::learn::random::Stream::new(5, "flip", 0);
    let newest = root.join("checkpoints/step-000000002");
    for name in ["model.safetensors", "spec.yaml", "state.json", "whole.json"] {
        let path = newest.join(name);
        let bytes = std::fs::read(&path).unwrap();
        for round in 0..300 {
            let mut damaged = bytes.clone();
            if round % 3 == 0 {
                damaged.truncate(stream.below(bytes.len() as u64) as usize);
            } else {
                let at = stream.below(8 * bytes.len() as u64) as usize;
                damaged[at / 8] ^= 1 << (at % 8);
            }
            std::fs::write(&path, damaged).unwrap();
            let found = run.newest().unwrap();
            assert_eq!(found.state.step, 1, "{name}, round {round}");
            assert_eq!(found.damaged.len(), 1);
            assert_eq!(found.damaged[0].name, "step-000000002");
        }
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(run.newest().unwrap().state.step, 2);
    }
    std::fs::remove_file(newest.join("spec.yaml")).unwrap();
    assert_eq!(run.newest().unwrap().state.step, 1);
}

#[test]
fn what_was_half_written_is_never_taken_and_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    let run = RunDir::create(&root, "tiny", |_| Ok(())).unwrap();
    save(&run, &state(1));
    drop(run);
    let checkpoints = root.join("checkpoints");
    for half in [".step-000000002.17.tmp", "step-000000003"] {
        std::fs::create_dir(checkpoints.join(half)).unwrap();
        std::fs::write(checkpoints.join(half).join("model.safetensors"), "half").unwrap();
    }
    assert_eq!(run_dir::newest(&root).unwrap().state.step, 1);
    let run = RunDir::open(&root).unwrap();
    assert_eq!(names(&root), ["step-000000001"]);
    // A save that fails leaves the existing checkpoints unchanged.
    let failed = run.save(&state(2), 2, |_| Err(std::io::ErrorKind::StorageFull.into()));
    assert!(matches!(failed, Err(RunDirError::Io(..))));
    assert_eq!(names(&root), ["step-000000001"]);
    assert!(run.newest().unwrap().damaged.is_empty());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
    assert!(matches!(RunDir::create(folder.path(), "tiny", |_| Ok(())), Err(RunDirError::Foreign(_))));
    assert!(matches!(RunDir::open(folder.path()), Err(RunDirError::Foreign(_))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a refused folder stays as it is");
    let own = folder.path().join("own");
    drop(RunDir::create(&own, "tiny", |_| Ok(())).unwrap());
    assert!(matches!(RunDir::create(&own, "tiny", |_| Ok(())), Err(RunDirError::Exists(_))));
    assert!(matches!(run_dir::newest(&folder.path().join("none")), Err(RunDirError::Io(..))));
}

#[test]
fn figures_after_a_step_are_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    let run = RunDir::create(&root, "tiny", |_| Ok(())).unwrap();
    for step in 1..=5 {
        run.record(&serde_json::json!({"step": step, "loss": 1.0})).unwrap();
    }
    let path = root.join("metrics.jsonl");
    // The last line was cut off.
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.truncate(text.len() - 8);
    std::fs::write(&path, &text).unwrap();
    run.rewind(3).unwrap();
    let lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// The lock and the record of figures are files of the folder itself: what a link leads to stays as it is.
#[cfg(unix)]
#[test]
fn no_link_of_a_run_is_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    let hard = |from: &Path, to: &Path| std::fs::hard_link(from, to).unwrap();
    let soft = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).unwrap();
    for link in [&hard as &dyn Fn(&Path, &Path), &soft] {
        std::fs::write(&precious, "mine").unwrap();
        for name in ["lock", "metrics.jsonl"] {
            let root = folder.path().join("run");
            let run = RunDir::create(&root, "tiny", |_| Ok(())).unwrap();
            match name {
                "lock" => {
                    drop(run);
                    std::fs::remove_file(root.join(name)).unwrap();
                    link(&precious, &root.join(name));
                    assert!(matches!(RunDir::open(&root), Err(RunDirError::Io(..))));
                }
                _ => {
                    link(&precious, &root.join(name));
                    assert!(run.record(&serde_json::json!({"step": 1})).is_err());
                    // Replaced as a whole, a hard link is left to its other name.
                    if root.join(name).is_symlink() {
                        assert!(run.rewind(0).is_err());
                    }
                }
            }
            assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
            std::fs::remove_dir_all(&root).unwrap();
        }
        // A link that leads nowhere would make a file where it points to.
        let root = folder.path().join("new");
        std::fs::create_dir(&root).unwrap();
        soft(&folder.path().join("made"), &root.join("lock"));
        assert!(RunDir::create(&root, "tiny", |_| Ok(())).is_err());
        assert!(!folder.path().join("made").exists());
        std::fs::remove_dir_all(&root).unwrap();
        std::fs::remove_file(&precious).unwrap();
    }
}
