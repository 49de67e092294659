//! Runs whose checkpoints a project for PyTorch has written: they have no state of the optimizer.

use trafoc::learn::whole::FileList;

use super::*;

/// Makes a checkpoint one of a project, which keeps the state of the optimizer in files of its own.
fn as_of_a_project(checkpoint: &Path) {
    std::fs::remove_file(checkpoint.join("optimizer.safetensors")).unwrap();
    std::fs::remove_file(checkpoint.join("whole.json")).unwrap();
    FileList::flushed(checkpoint, "trafoc-checkpoint/1").unwrap().write(checkpoint).unwrap();
}

#[test]
fn a_run_of_a_project_continues_with_a_new_state_of_the_optimizer() {
    let place = Folder::new();
    place.trained("run", &[]);
    let checkpoints = place.path("run/checkpoints");
    let good = place.bytes("run", 12);
    let resume = || said(place.command(&["train", "--resume", "--out", "run"]).output().unwrap());
    as_of_a_project(&checkpoints.join("step-000000012"));
    // A run that has made its steps needs no optimizer.
    let finished = resume();
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert!(finished.err.contains("continues from step 12\n"), "{}", finished.err);
    assert!(finished.err.contains("next: trafoc") && !finished.err.contains("optimizer"), "{}", finished.err);
    std::fs::remove_dir_all(checkpoints.join("step-000000012")).unwrap();
    as_of_a_project(&checkpoints.join("step-000000009"));
    let resumed = resume();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.err.contains("continues from step 9\n"), "{}", resumed.err);
    assert!(resumed.err.contains("note: the optimizer begins with a new state"), "{}", resumed.err);
    assert_ne!(good, place.bytes("run", 12), "momenta are those of the steps since then");
    assert_eq!(place.lines("run").iter().filter(|line| line["rate"].is_number()).count(), 12);
    // What it has written now is trafoc's own.
    let again = resume();
    assert!(again.code == Some(0) && !again.err.contains("optimizer"), "{}", again.err);
}
