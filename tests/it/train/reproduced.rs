//! `trafoc reproduce`: a run that is trained again from what its folder records has the same bits, and what has changed
//! since is found.

use std::collections::BTreeMap;

use trafoc::learn::whole::FileList;

use super::*;
use crate::compiled::repository;

impl Folder {
    fn again(&self, more: &[&str]) -> Printed {
        said(self.command(&[&["reproduce"], more].concat()).output().unwrap())
    }

    /// Every file of a folder with its bytes.
    fn all(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut files, mut folders) = (BTreeMap::new(), vec![self.path(name)]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => drop(files.insert(path.clone(), std::fs::read(&path).unwrap())),
                }
            }
        }
        files
    }

    /// Writes the list of a checkpoint for its files as they are now.
    fn listed_again(&self, checkpoint: &str) {
        let folder = self.path(checkpoint);
        std::fs::remove_file(folder.join("whole.json")).unwrap();
        FileList::flushed(&folder, "trafoc-checkpoint/1").unwrap().write(&folder).unwrap();
    }
}

/// The names of what a reproduction has left in the folder of temporary files.
fn left(temporary: &Path) -> usize {
    std::fs::read_dir(temporary).unwrap().count()
}

#[test]
fn a_run_is_made_again_with_the_same_bits() {
    let place = Folder::new();
    place.trained("run", &["--with", "average=2", "--threads", "2"]);
    let before = place.all("run");
    std::fs::create_dir(place.path("temporary")).unwrap();
    let mut command = place.command(&["reproduce", "run", "--threads", "1"]);
    let found = said(command.env("TMPDIR", place.path("temporary")).output().unwrap());
    assert_eq!(found.code, Some(0), "{}", found.err);
    let equal = "equal bits at step 12: 37 tensors of model.safetensors, 74 tensors of optimizer.safetensors, \
                 37 tensors of averaged/model.safetensors, and the metrics of 12 steps\n";
    assert_eq!(found.out, equal);
    assert!(
        found.err.contains("made by trafoc ") && found.err.contains(" on flex, 2 threads"),
        "{}",
        found.err
    );
    assert!(found.err.contains("this is with 1 thread,") && !found.err.contains("warning"), "{}", found.err);
    assert_eq!(left(&place.path("temporary")), 0);

    // Up to an earlier checkpoint, into a folder that stays and can be continued to the same end.
    let json = place.again(&["run", "--steps", "9", "--out", "more", "--format", "json"]);
    assert_eq!(json.code, Some(0), "{}", json.err);
    let envelope: Json = serde_json::from_str(&json.out).unwrap();
    let data = &envelope["data"];
    assert_eq!((&data["is_equal"], &data["step"], &data["recorded"]), (&true.into(), &9.into(), &9.into()));
    assert_eq!((&data["out"], &data["made_with"][0]["threads"]), (&"more".into(), &2.into()));
    let resumed = said(place.command(&["train", "--resume", "--out", "more"]).output().unwrap());
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    same(&place.bytes("run", 12), &place.bytes("more", 12));

    for (arguments, code, why) in [
        (
            &["run", "--steps", "8"][..],
            4,
            "no checkpoint of step 8\nhelp: it has complete ones of the steps 9, 12",
        ),
        (&["run", "--out", "more"], 3, "`more` is already the folder of a run"),
        (&["run", "--out", "run"], 3, "`run` is already the folder of a run"),
        (&["run", "--out", "run/checkpoints/new"], 2, "in the folder of the run, which is not changed"),
        (&["temporary"], 4, "temporary"),
    ] {
        let refused = place.again(arguments);
        assert_eq!(refused.code, Some(code), "{arguments:?}: {}", refused.err);
        assert!(refused.err.contains(why), "{arguments:?}: {}", refused.err);
    }
    assert!(place.all("run") == before, "the run has not been touched");
}

#[test]
fn a_bit_that_was_changed_after_training_is_found() {
    let place = Folder::new();
    place.trained("run", &[]);
    let checkpoint = "run/checkpoints/step-000000012";
    let model = place.path(checkpoint).join("model.safetensors");
    let mut bytes = std::fs::read(&model).unwrap();
    // The lowest bit of the last number.
    let at = bytes.len() - 4;
    bytes[at] ^= 1;
    std::fs::write(&model, &bytes).unwrap();
    // A checksum that does not fit is that of a damaged checkpoint, in the place of which the one before it is taken.
    let damaged = place.again(&["run"]);
    assert_eq!(damaged.code, Some(0), "{}", damaged.err);
    assert!(damaged.err.contains("warning: the checkpoint step-000000012 cannot be used"), "{}", damaged.err);
    assert!(damaged.out.starts_with("equal bits at step 9: "), "{}", damaged.out);
    let named = place.again(&["run", "--steps", "12"]);
    assert!(named.code == Some(4) && named.err.contains("its checksum is wrong"), "{}", named.err);

    place.listed_again(checkpoint);
    let found = place.again(&["run"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    let lines: Vec<&str> = found.out.lines().collect();
    assert_eq!(lines[0], "equal up to step 12: the metrics of 12 steps");
    let different = "different at step 12: 1 of 37 tensors of model.safetensors, by up to ";
    assert!(lines[1].starts_with(different) && lines[1].contains(" in "), "{}", found.out);
    assert_eq!(lines[2..], ["equal at step 12: 74 tensors of optimizer.safetensors"]);

    // A line of the record, and one that is missing.
    let path = place.path("run/metrics.jsonl");
    let record = std::fs::read_to_string(&path).unwrap();
    let changed = record.replacen("\"accuracy\":0.", "\"accuracy\":0.9", 1);
    let shorter: String = record.lines().skip(1).map(|line| format!("{line}\n")).collect();
    for (text, first) in [
        (&changed, "first difference at step 4: accuracy on validation is 0."),
        (&shorter, "first difference at step 1: loss is 3."),
    ] {
        std::fs::write(&path, text).unwrap();
        let found = place.again(&["run", "--steps", "9"]);
        assert_eq!(found.code, Some(1), "{}", found.err);
        assert!(found.out.starts_with(first), "{}", found.out);
        assert!(found.out.contains("equal at step 9: 37 tensors of model.safetensors\n"), "{}", found.out);
    }
}

#[test]
fn data_that_have_changed_since_are_said() {
    let place = Folder::new();
    let data = std::fs::read_to_string(repository("data/isimler.txt")).unwrap();
    let names: String = data.lines().take(500).map(|line| format!("{line}\n")).collect();
    std::fs::write(place.path("names.txt"), &names).unwrap();
    std::fs::write(place.path("recipe.yaml"), RECIPE.replace("DATA", "names.txt")).unwrap();
    place.trained("run", &[]);
    let shorter: String = names.lines().skip(40).map(|line| format!("{line}\n")).collect();
    let reversed: String = names.lines().rev().map(|line| format!("{line}\n")).collect();
    let added = format!("{names}ü\n");
    for (text, why) in [
        (&shorter, "it had 475 examples and has 437"),
        (&reversed, "as many examples, but not the same"),
        (&added, "the training data is not what the run began with"),
    ] {
        std::fs::write(place.path("names.txt"), text).unwrap();
        let found = place.again(&["run"]);
        assert_eq!(found.code, Some(2), "{}", found.err);
        assert!(found.err.contains(why) && found.err.contains("with the data as it was"), "{}", found.err);
    }
    std::fs::remove_file(place.path("names.txt")).unwrap();
    let lost = place.again(&["run"]);
    assert!(lost.code == Some(4) && lost.err.contains("names.txt"), "{}", lost.err);
}

/// A run tells weights that are not those it began with, when it is made again, and when low-rank changes to them are
/// trained further.
#[test]
fn weights_that_have_changed_since_are_said() {
    let place = Folder::new();
    place.trained("base", &["--with", "steps=2"]);
    place.trained("other", &["--with", "steps=2", "--with", "seed=5"]);
    let file = |run: &str| place.path(&format!("{run}/checkpoints/step-000000002/model.safetensors"));
    let start = place.path("start.safetensors");
    std::fs::copy(file("base"), &start).unwrap();
    place.trained("whole", &["--weights", "start.safetensors"]);
    let adapt = ["--with", "adapt={lora: {rank: 2, on: [\"*.attention.*\"]}}", "--with", "checkpoint.keep=9"];
    place.trained("changes", &[&["--weights", "start.safetensors"], &adapt[..]].concat());
    std::fs::remove_dir_all(place.path("changes/checkpoints/step-000000012")).unwrap();
    let resume = || said(place.command(&["train", "--resume", "--out", "changes"]).output().unwrap());
    let why = "the weights of the model that the run began from are not those that it had then";

    std::fs::copy(file("other"), &start).unwrap();
    for found in [place.again(&["whole"]), resume()] {
        assert!(found.code == Some(4) && found.err.contains(why), "{:?} {}", found.code, found.err);
    }
    std::fs::copy(file("base"), &start).unwrap();
    for found in [place.again(&["whole"]), resume(), place.again(&["changes"])] {
        assert_eq!(found.code, Some(0), "{}", found.err);
    }
}

/// Whatever a run began with and however it went.
#[test]
fn every_kind_of_run_is_made_again() {
    let place = Folder::new();
    place.trained("base", &["--with", "steps=4"]);
    let equal = |run: &str| {
        let found = place.again(&[run]);
        assert!(
            found.code == Some(0) && found.out.starts_with("equal bits at step "),
            "{run}: {}",
            found.err
        );
        found
    };
    // Prepared data, and a block computed again.
    let prepare = ["data", "spec.yaml", "--recipe", "recipe.yaml", "--out", "data"];
    assert!(place.command(&prepare).output().unwrap().status.success());
    place.trained("prepared", &["--data", "data", "--with", "recompute=blocks"]);
    equal("prepared");
    // Weights of a file, and an optimizer without a state.
    let weights = ["--weights", "base/checkpoints/step-000000004/model.safetensors"];
    place.trained("file", &[&weights[..], &["--with", "optimizer={sgd: {learning_rate: 0.1}}"]].concat());
    equal("file");
    // The tokenizer of a run that is named in place of a spec, with its weights and without.
    let recipe = std::fs::read_to_string(place.path("recipe.yaml")).unwrap();
    let without: String =
        recipe.lines().filter(|line| !line.starts_with("tokens")).map(|line| format!("{line}\n")).collect();
    std::fs::write(place.path("bare.yaml"), without).unwrap();
    for (run, more) in [("further", &[][..]), ("fresh", &["--from-scratch"])] {
        let all = [&["train", "base", "--recipe", "bare.yaml", "--out", run], more].concat();
        let trained = said(place.command(&all).output().unwrap());
        assert_eq!(trained.code, Some(0), "{}", trained.err);
        equal(run);
    }
    // A run that was ended by its recipe.
    place.trained(
        "stopped",
        &["--with", "evaluate.every=1", "--with", "stop={metric: accuracy, patience: 1}"],
    );
    equal("stopped");
    // One that was interrupted and continued, whose mean is one of other checkpoints.
    place.trained("cut", &["--with", "average=3", "--with", "checkpoint.keep=9"]);
    for step in [9, 12] {
        std::fs::remove_dir_all(place.path(&format!("cut/checkpoints/step-{step:09}"))).unwrap();
    }
    std::fs::remove_dir_all(place.path("cut/checkpoints/averaged")).unwrap();
    place.trained("cut", &["--with", "average=3", "--with", "checkpoint.keep=9", "--resume"]);
    equal("cut");
    std::fs::remove_dir_all(place.path("cut/checkpoints/step-000000009")).unwrap();
    assert!(equal("cut").err.contains("`averaged` is not compared: it is the mean of other checkpoints"));
    // Another process has the lock, and is writing a line.
    let lock = std::fs::File::open(place.path("base/lock")).unwrap();
    lock.lock().unwrap();
    let mut record = std::fs::read(place.path("base/metrics.jsonl")).unwrap();
    record.extend(b"{\"step\":5,");
    std::fs::write(place.path("base/metrics.jsonl"), record).unwrap();
    equal("base");
    // What a project has trained is not trafoc's.
    super::foreign::as_of_a_project(&place.path("file/checkpoints/step-000000012"));
    let foreign = place.again(&["file"]);
    assert!(foreign.code == Some(3) && foreign.err.contains("by a PyTorch project"), "{}", foreign.err);
}
