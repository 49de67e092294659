//! What trafoc says and writes when it panics. There is no command that does, so this program calls itself with the report
//! of the command line and panics.

use std::path::Path;
use std::process::Command;

use trafoc::cli::crash::{given, report_panics};

/// Panics as a command would, with the options of a command line; only in the process that the test below starts.
#[test]
#[ignore = "panics on purpose"]
fn panics() {
    let grammar = &mut trafoc::cli::grammar(&[]);
    let line = ["trafoc", "run", "secret.yaml", "-isecret.json", "--set", "name=secret", "--quiet"];
    let matches = grammar.try_get_matches_from_mut(line).unwrap();
    report_panics("run", given(grammar, &matches));
    match std::env::var("TRAFOC_TEST_PANIC").unwrap().as_str() {
        "constant" => panic!("a constant text"),
        text => panic!("the key `{text}` is unknown"),
    }
}

/// Lets this program panic in a folder, and returns what it wrote to stderr and its files there.
fn panicked(folder: &Path, temporary: &Path, with: &str) -> (String, Vec<(String, String)>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::panics", "--ignored", "--nocapture", "--test-threads=1"]);
    command.current_dir(folder).env("TMPDIR", temporary).env("TRAFOC_TEST_PANIC", with);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(101));
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read_to_string(entry.path()).unwrap())
    };
    (String::from_utf8(output.stderr).unwrap(), entries.map(read).collect())
}

#[test]
fn a_panic_writes_a_file_without_what_is_secret() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (said, files) = panicked(folder.path(), temporary.path(), "constant");
    let [(name, text)] = files.as_slice() else { panic!("{files:?}") };
    assert!(said.contains("error: this is a bug in trafoc: a constant text at tests/it/crash.rs:"), "{said}");
    assert!(said.contains(&format!("please attach {name}, which has nothing of the spec\n")), "{said}");
    let rest = name.strip_prefix("trafoc-crash-").and_then(|rest| rest.strip_suffix(".txt")).unwrap();
    let (time, process) = rest.rsplit_once('-').unwrap();
    assert!(time.len() == 18 && time.ends_with('Z') && process.parse::<u32>().is_ok(), "{name}");
    let line = |label: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        found.unwrap_or_else(|| panic!("no `{label}`: {text}"))
    };
    assert_eq!(line("version"), format!("trafoc {}", trafoc::cli::VERSION));
    assert_eq!((line("command"), line("options")), ("trafoc run", "--quiet SPEC --set --inputs"));
    assert_eq!(line("message"), "a constant text");
    assert!(line("place").starts_with("tests/it/crash.rs:") && !line("system").is_empty());
    assert!(text.contains("crash::panics"), "a backtrace: {text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn the_text_of_a_panic_that_may_quote_a_file_is_on_stderr_alone() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (said, files) = panicked(folder.path(), temporary.path(), "secret");
    assert!(said.contains("the key `secret` is unknown"), "{said}");
    let (_, text) = &files[0];
    assert!(text.contains("message   only on stderr, because it may quote a file\n"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

/// Where nothing can be written into the folder, the file is in that of temporary files; without either, there is none,
/// and the report the same.
#[cfg(target_os = "linux")]
#[test]
fn a_panic_needs_no_place_for_its_file() {
    let temporary = tempfile::tempdir().unwrap();
    // Nobody can create a file there, not even root.
    let unwritable = Path::new("/proc/self");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::panics", "--ignored", "--nocapture"]).current_dir(unwritable);
    command.env("TRAFOC_TEST_PANIC", "constant").env("TMPDIR", temporary.path());
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let path = std::fs::read_dir(temporary.path()).unwrap().next().unwrap().unwrap().path();
    assert!(said.contains(&format!("please attach {}, which", path.display())), "{said}");
    let output = command.env("TMPDIR", "/proc/self").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(101));
    assert!(said.contains("a bug in trafoc: a constant text") && !said.contains("attach"), "{said}");
}
