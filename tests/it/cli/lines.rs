//! Command lines as shells write them: variables, aliases, streams and names of files.

use super::{TINY, program, trafoc, trafoc_given, trafoc_in};

#[test]
fn a_variable_that_is_empty_is_not_set() {
    for name in ["TRAFOC_COLOR", "TRAFOC_FAMILIES", "TRAFOC_DEVICE"] {
        let output = program().env(name, "").args(["check", "@gpt1"]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let wrong = program().env("TRAFOC_COLOR", "green").args(["check", "@gpt1"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// So that an alias such as `trafoc --color never` can be overridden.
#[test]
fn the_last_of_equal_options_counts() {
    let last = |words: [&str; 2]| {
        let line = ["--color", words[0], "check", "@gpt1", "--set", "vocab=many", "--color", words[1]];
        trafoc(&line).err.contains('\u{1b}')
    };
    assert!(last(["never", "always"]));
    assert!(!last(["always", "never"]));
    assert_eq!(trafoc(&["check", "-q", "-q", "--strict", "--strict", "@gpt1"]).code, 0);
    let both = trafoc(&["check", "@gpt1", "--set", "vocab=many", "--set", "context=many"]);
    assert!(both.err.contains("--set #1") && both.err.contains("--set #2"), "{}", both.err);
}

#[test]
fn a_minus_is_stdout_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (line, begins) in [
        (vec!["draw", "@gbt-mulm", "-o", "-"], "<svg"),
        (vec!["convert", "@gbt-mulm", "--out", "-"], "#"),
        (vec!["build", "@gbt-mulm", "-o", "-"], "//"),
    ] {
        let said = trafoc_in(folder.path(), &line);
        assert!(said.out.starts_with(begins), "{line:?}: {}", said.out.chars().take(80).collect::<String>());
    }
    let page = trafoc_in(folder.path(), &["compare", "@gbt-mulm", "@gpt1", "--html", "-"]);
    assert_eq!(page.code, 2, "{}", page.err);
    assert!(page.err.contains("`-` means stdout"), "{}", page.err);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn stdin_is_given_once() {
    let said = trafoc_given(TINY, &["compare", "-", "-"]);
    assert_eq!(said.code, 4);
    assert!(said.err.contains("stdin can be given once"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn a_name_of_a_file_begins_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let name = "new\nline.yaml";
    std::fs::write(folder.path().join(name), "vocab: many\n").unwrap();
    let short = trafoc_in(folder.path(), &["check", "--format", "short", name]);
    let found: Vec<&str> = short.err.lines().filter(|line| line.contains("error[")).collect();
    assert!(found.len() > 1, "{}", short.err);
    assert!(found.iter().all(|line| line.starts_with("new\\nline.yaml:1:")), "{}", short.err);
    let long = trafoc_in(folder.path(), &["check", name]);
    assert!(long.err.contains(" --> new\\nline.yaml:1:"), "{}", long.err);
}

/// `/dev/full` refuses every byte, as a disk that is full does.
#[cfg(target_os = "linux")]
#[test]
fn help_that_was_not_written_is_a_failure() {
    for word in ["--help", "--version"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program().arg(word).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{word}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
    }
}

#[test]
fn a_layer_without_attention_is_told_from_those_with_it() {
    let said = trafoc(&["inspect", "attention", "@d2l-nmt", "--kind", "cross", "--layer", "9"]);
    assert_eq!(said.code, 2);
    for part in ["of the kind `cross` at layer 9", "`--kind encoder` at layers 0 to 1"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn the_machine_is_described() {
    let said = trafoc(&["doctor"]).out;
    for label in ["trafoc ", "threads ", "memory ", "encoding "] {
        assert!(said.lines().any(|line| line.starts_with(label)), "{label}: {said}");
    }
}
