//! No command uses a network.

use std::collections::BTreeSet;

use super::calls;
use crate::cli::commands;
use crate::compiled::repository;

/// Calls of every command, in an order in which each has what it needs; the model `hub` is of the tests.
const CALLS: &[&str] = &[
    "new gpt --small",
    "check gpt.yaml --recipe gpt.recipe.yaml",
    "build @gbt-mulm --out model.rs",
    "build @gbt-mulm --target pytorch --out model.py",
    "build gpt.yaml --recipe gpt.recipe.yaml --target pytorch --out project",
    "expand @gpt1",
    "print graph @gbt-mulm",
    "explain heads",
    "show @gpt1",
    "compare @gpt1 @gpt2-small --html compare.html",
    "fit @gpt2-small --params 350e6 --over d_model,layers",
    "draw @gpt1 --out gpt1.html",
    "inspect positions @transformer --out positions.html",
    "inspect init gpt.yaml",
    "data gpt.yaml --recipe gpt.recipe.yaml --out data",
    "train gpt.yaml --recipe gpt.recipe.yaml --with steps=2 --out run --page live.html",
    "inspect training run",
    "eval run",
    "reproduce run",
    "generate run --count 2",
    "predict run --text ankara",
    "run hub --inputs hub/inputs.json",
    "import hub --out imported.yaml",
    "export run --to exported",
    "fmt gpt.yaml",
    "convert gpt.yaml --out gpt.trafo",
    "schema",
    "config",
    "doctor",
    "completions bash",
    "man --out man",
];

/// The commands that cannot do what they are asked to here: a language model predicts no class.
const REFUSED: &[&str] = &["predict run --text ankara"];

#[test]
#[ignore = "needs strace; `.ci/run trace`"]
fn no_command_uses_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let hub = folder.path().join("hub");
    std::fs::create_dir(&hub).unwrap();
    for entry in std::fs::read_dir(repository("tests/hub/apertus")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), hub.join(entry.file_name())).unwrap();
    }
    let called: BTreeSet<&str> = CALLS.iter().filter_map(|call| call.split(' ').next()).collect();
    let all = commands();
    assert_eq!(called, all.iter().map(String::as_str).collect(), "every command is called");
    for call in CALLS {
        let mut command = crate::compiled::program();
        command.current_dir(folder.path()).args(call.split(' '));
        // A call that every program makes shows that the trace would show the others.
        let (output, threads) = calls(&command, &["--trace=%network,execve".to_owned()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), !REFUSED.contains(call), "{call}: {said}");
        let found: Vec<_> = threads.into_values().flatten().collect();
        assert!(found.iter().any(|call| call.name == "execve"), "{call}: {found:?}");
        let network: Vec<_> = found.iter().filter(|call| call.name != "execve").collect();
        assert!(network.is_empty(), "{call}: {network:?}");
    }
    println!("{} calls of {} commands, and none of a network", CALLS.len(), all.len());
}
