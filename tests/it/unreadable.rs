//! Files that are there and cannot be read: pipes, folders, devices and links to nothing.

use crate::compiled::repository;
use crate::files::{shell, text};

/// A file that a directory may lack: one that cannot be read is none that is missing.
#[test]
fn files_of_a_model_that_cannot_be_read_are_not_taken_to_be_absent() {
    for name in [
        "config.json",
        "model.safetensors",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ] {
        for (make, what) in [
            ("mkfifo", "it is a pipe, and must be an ordinary file"),
            ("mkdir", "it is a folder"),
            ("ln -s nowhere", "it is a link to a file that does not exist"),
            ("ln -s /dev/zero", "it is a device, and must be an ordinary file"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let whole = repository("tests/hub/gpt2");
            let script = format!(
                "cp -r '{}' whole && rm -f whole/{name} && {make} whole/{name} && \"$0\" generate whole --prompt a",
                whole.display()
            );
            let output = shell(folder.path(), &script);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{script}: {said}");
            let is_outside =
                name == "model.safetensors" && said.contains("is a link that leaves the directory");
            assert!(said.contains(name) && (said.contains(what) || is_outside), "{script}: {said}");
        }
    }
}

/// In the folder of a run as well, where a checkpoint without its list is one that was being deleted, and in data.
#[test]
fn files_of_a_run_that_cannot_be_read_are_not_taken_to_be_absent() {
    let folder = tempfile::tempdir().unwrap();
    let begin = "\"$0\" new gpt --small && \"$0\" train gpt.yaml --recipe gpt.recipe.yaml --with steps=1 --with schedule=constant -o run";
    let output = shell(folder.path(), begin);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in ["run.json", "checkpoints/step-000000001/whole.json", "checkpoints/step-000000001/state.json"]
    {
        for (make, what) in [
            ("mkfifo", "it is a pipe"),
            ("mkdir", "it is a folder"),
            ("ln -s nowhere", "it is a link to a file that does not exist"),
        ] {
            let script = format!(
                "rm -rf other && cp -r run other && rm other/{name} && {make} other/{name} && \"$0\" train --resume -o other"
            );
            let output = shell(folder.path(), &script);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{script}: {said}");
            assert!(said.contains(what), "{script}: {said}");
            assert!(folder.path().join("other/checkpoints/step-000000001").exists(), "{script}");
        }
    }
    let recipe = "recipe: 1\ndata: {format: images, train: classes}\noptimizer: {adamw: {learning_rate: 1e-3}}\nbatch: {size: 2}\nsteps: 1\n";
    std::fs::write(folder.path().join("images.yaml"), recipe).unwrap();
    let script =
        "mkdir -p classes/a && ln -s nowhere classes/b && \"$0\" data @vit --recipe images.yaml --out data";
    let output = shell(folder.path(), script);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("`classes/b`: it is a link to a file that does not exist"), "{said}");
}
