//! Runs whose checkpoints a project for PyTorch has written: they have no state of the optimizer.

use trafoc::learn::whole::FileList;

use super::*;

/// Makes a checkpoint one of a project, which keeps the state of the optimizer in files of its own.
pub fn as_of_a_project(checkpoint: &Path) {
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

/// No command reads a run of another version as one of this version, and none changes it.
#[test]
fn a_run_of_another_version_is_refused_by_every_command() {
    let place = Folder::new();
    place.trained("run", &[]);
    let marker = place.path("run/run.json");
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("trafoc-run/1", "trafoc-run/9")).unwrap();
    let checkpoints = place.path("run/checkpoints");
    // As a folder that this version would delete as incomplete.
    std::fs::create_dir(checkpoints.join("step-000000099")).unwrap();
    for arguments in [
        &["train", "--resume", "--out", "run"][..],
        &["train", "spec.yaml", "--recipe", "recipe.yaml", "--out", "more", "--weights", "run"],
        &["reproduce", "run"],
        &["eval", "run"],
        &["eval", "run", "--checkpoint", "averaged"],
        &["generate", "run"],
        &["check", "run"],
        &["expand", "run"],
        &["run", "run", "--inputs", r#"{"tokens": [[1]]}"#],
        &["export", "run", "--to", "exported"],
        &["build", "run", "--out", "model.rs"],
        &["compare", "spec.yaml", "run"],
        &["inspect", "training", "run"],
        &["inspect", "data", "run"],
        &["inspect", "changes", "run", "--against", "run"],
        &["inspect", "positions", "run"],
        &["inspect", "attention", "run", "--text", "a"],
    ] {
        let said = said(place.command(arguments).output().unwrap());
        assert_eq!(said.code, Some(4), "{arguments:?}: {}", said.err);
        let why = "it has the format `trafoc-run/9`, and this version of trafoc reads `trafoc-run/1`";
        assert!(said.err.contains(why), "{arguments:?}: {}", said.err);
    }
    assert!(checkpoints.join("step-000000099").is_dir(), "what another version has written stays");
    // Its list says so of a checkpoint by itself, which is then passed over like a damaged one.
    std::fs::write(&marker, text).unwrap();
    let list = checkpoints.join("step-000000012/whole.json");
    let own = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, own.replace("trafoc-checkpoint/1", "trafoc-checkpoint/2")).unwrap();
    let said = said(place.command(&["eval", "run", "--checkpoint", "12"]).output().unwrap());
    let why = "whole.json: it has the format `trafoc-checkpoint/2`, and this version of trafoc reads";
    assert!(said.code == Some(4) && said.err.contains(why), "{}", said.err);
}
