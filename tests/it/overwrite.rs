//! No file is lost that trafoc did not write.

use crate::cli::trafoc_in;

/// Every option that names a file to write: what trafoc wrote is replaced, and nothing else without
/// `--force`.
#[test]
fn no_file_is_lost_that_trafoc_did_not_write() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    std::fs::write(folder.path().join("in.json"), r#"{"tokens": [[1, 2, 3]]}"#).unwrap();
    let mut commands: Vec<(Vec<&str>, &str)> = vec![
        (vec!["draw", "@gpt1", "--out"], "a.svg"),
        (vec!["draw", "@gpt1", "--out"], "a.html"),
        (vec!["draw", "@gpt1", "--out"], "a.dot"),
        (vec!["draw", "@gpt1", "--out"], "a.mmd"),
        (vec!["inspect", "positions", "@transformer", "--out"], "b.svg"),
        (vec!["inspect", "positions", "@transformer", "--out"], "b.html"),
        (vec!["compare", "@gpt1", "@gpt2-small", "--html"], "c.html"),
        (vec!["build", "@gpt1", "--out"], "d.rs"),
    ];
    if cfg!(feature = "png") {
        commands.push((vec!["draw", "@gpt1", "--out"], "a.png"));
    }
    if cfg!(feature = "flex") {
        commands.push((vec!["run", "@gbt-mulm", "--inputs", "in.json", "--outputs"], "e.safetensors"));
    }
    for (mut arguments, file) in commands {
        arguments.push(file);
        let path = folder.path().join(file);
        // Its own output, again and again.
        for _ in 0..2 {
            let said = run(&arguments);
            assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        }
        let written = std::fs::read(&path).unwrap();
        for foreign in ["my thesis", ""] {
            std::fs::write(&path, foreign).unwrap();
            let said = run(&arguments);
            assert_eq!(said.code, 3, "{arguments:?}: {}", said.err);
            assert!(
                said.err.contains("trafoc did not write it") && said.err.contains("`--force`"),
                "{}",
                said.err
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
        let said = run(&[&arguments[..], &["--force"]].concat());
        assert_eq!(
            (said.code, std::fs::read(&path).unwrap() == written),
            (0, true),
            "{arguments:?}: {}",
            said.err
        );
    }
    // What its user changed since is no longer trafoc's alone.
    for (arguments, file) in [
        (vec!["draw", "@gpt1", "--out", "e.svg"], "e.svg"),
        (vec!["draw", "@gpt1", "--out", "e.dot"], "e.dot"),
        (vec!["compare", "@gpt1", "@gpt2-small", "--html", "e.html"], "e.html"),
        (vec!["build", "@gpt1", "--out", "e.rs"], "e.rs"),
        (vec!["build", "@gpt1", "--target", "pytorch", "--out", "e.py"], "e.py"),
        (vec!["build", "@gpt1", "--crate", "crate"], "crate/src/main.rs"),
    ] {
        let path = folder.path().join(file);
        assert_eq!(run(&arguments).code, 0, "{file}");
        let text = std::fs::read_to_string(&path).unwrap();
        for changed in [text.replacen('\n', "\n\n", 1), format!("{text}my own\n")] {
            std::fs::write(&path, &changed).unwrap();
            let said = run(&arguments);
            assert_eq!(said.code, 3, "{file}: {}", said.err);
            assert!(said.err.contains("was changed since trafoc wrote it"), "{}", said.err);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), changed);
        }
        assert_eq!(run(&[&arguments[..], &["--force"]].concat()).code, 0, "{file}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    // Specs and other files that people edit are not recognised, even if trafoc wrote them.
    let mut edited: Vec<(Vec<&str>, &str)> =
        vec![(vec!["convert", "@gpt1", "--out"], "f.trafo"), (vec!["new", "gpt"], "g.yaml")];
    if cfg!(feature = "flex") {
        edited.push((vec!["run", "@gbt-mulm", "--inputs", "in.json", "--outputs"], "h.json"));
    }
    for (mut arguments, file) in edited {
        arguments.push(file);
        assert_eq!(run(&arguments).code, 0);
        let said = run(&arguments);
        assert!(said.code == 3 && said.err.contains("already exists"), "{arguments:?}: {}", said.err);
        assert_eq!(run(&[&arguments[..], &["--force"]].concat()).code, 0);
    }
    // The sources of a crate are protected by its manifest.
    assert_eq!(run(&["build", "@gpt1", "--crate", "model"]).code, 0);
    // What a killed process has left goes when the command is repeated.
    let left = folder.path().join("model/src/.trafoc.2.7.tmp");
    std::fs::write(&left, "//").unwrap();
    assert_eq!(run(&["build", "@gpt1", "--crate", "model"]).code, 0);
    assert!(!left.exists());
    std::fs::create_dir_all(folder.path().join("own/src")).unwrap();
    std::fs::write(folder.path().join("own/src/main.rs"), "fn main() {}\n").unwrap();
    assert_eq!(run(&["build", "@gpt1", "--crate", "own"]).code, 3);
    std::fs::write(folder.path().join("own/Cargo.toml"), "[package]\nname = \"own\"\n").unwrap();
    assert_eq!(run(&["build", "@gpt1", "--crate", "own"]).code, 3);
    assert_eq!(std::fs::read_to_string(folder.path().join("own/src/main.rs")).unwrap(), "fn main() {}\n");
    // A file is no folder.
    std::fs::write(folder.path().join("gpt.trafo"), "mine").unwrap();
    let said = run(&["build", "@gpt1", "--out", "gpt.trafo"]);
    assert!(said.code == 4 && said.err.contains("`gpt.trafo` is a file"), "{}", said.err);
    // A device is written to.
    assert_eq!(run(&["draw", "@gpt1", "--format", "svg", "--out", "/dev/null"]).code, 0);
}
