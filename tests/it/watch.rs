//! `--watch`: a command is carried out again when a file changes, whatever is wrong with the file meanwhile.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// How long a test waits before it fails: far longer than any command takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A command that watches, and the lines that it writes to stderr.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn begin(folder: &Path, words: &[&str]) -> Self {
        let mut child = crate::compiled::program()
            .current_dir(folder)
            .args(words)
            .args(["--watch", "--color", "never"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let reader = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || reader.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { child, lines }
    }

    /// What is written up to the line that says which files are watched.
    fn round(&self) -> (String, String) {
        let mut said = String::new();
        loop {
            let line = self.lines.recv_timeout(LONG).unwrap_or_else(|e| panic!("{e} after: {said}"));
            if line.starts_with("watching ") {
                return (said, line.split(", done").next().unwrap().to_owned());
            }
            said += &(line + "\n");
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SPEC: &str = "trafo: 1\nextends: base.yaml\nname: child\n";
const BASE: &str = "trafo: 1\nname: base\nd_model: 64\nvocab: 100\ncontext: 128\n\
    decoder: {layers: 4, attention: {heads: 4}, ffn: {hidden: 256}}\nhead: {lm: {}}\n";

#[test]
fn a_command_is_repeated_when_a_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("child.yaml", SPEC);
    write("base.yaml", BASE);
    let watching = Watching::begin(folder.path(), &["check", "child.yaml"]);
    let (said, watched) = watching.round();
    assert_eq!(said, "");
    assert_eq!(watched, "watching `child.yaml` and `base.yaml`");
    // The file that was named stays as it is; its base changes.
    write("base.yaml", &BASE.replace("layers: 4", "layers: 6"));
    insta::assert_snapshot!(watching.round().0.trim_start(), @r"
    parameters   212.9 K → 312.8 K (+47.0 %)
    FLOPs        68.7 M → 102.3 M (+48.8 %)
      decoding   537.1 k → 799.2 k (+48.8 %)
    KV cache     128.0 KiB → 192.0 KiB (+50.0 %)
    ");
    write("base.yaml", &BASE.replace("heads", "heds"));
    assert!(watching.round().0.contains("did you mean `heads`?"));
    // A file that is gone is waited for.
    fs::remove_file(folder.path().join("base.yaml")).unwrap();
    assert!(watching.round().0.contains("base.yaml"));
    // Compared with the last version that was right.
    write("base.yaml", &BASE.replace("layers: 4", "layers: 7"));
    assert!(watching.round().0.contains("parameters   312.8 K → 362.8 K"));
}

#[test]
fn what_is_built_is_not_what_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(folder.path().join("base.yaml"), text).unwrap();
    write(BASE);
    let watching = Watching::begin(folder.path(), &["build", "base.yaml", "--out", "base.rs", "-q"]);
    assert_eq!(watching.round().1, "watching `base.yaml`");
    let read = || fs::read_to_string(folder.path().join("base.rs")).unwrap();
    let first = read();
    write(&BASE.replace("hidden: 256", "hidden: 96"));
    watching.round();
    assert_ne!(first, read());
    // A mistake leaves the last good file.
    let second = read();
    write("trafo: 1\n");
    assert!(watching.round().0.contains("error"));
    assert_eq!(second, read());
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let run = |words: &[&str]| {
        let said = crate::compiled::program()
            .args(words)
            .args(["--watch", "--color", "never"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (said.status.code(), String::from_utf8(said.stderr).unwrap())
    };
    assert_eq!(
        run(&["check", "-"]),
        (Some(2), "error: `--watch` needs files, and `-` can be read only once\n".into())
    );
    let (code, said) = run(&["check", "@gpt1", "--format", "sarif"]);
    assert_eq!((code, said.as_str()), (Some(2), ""));
    let (code, said) = run(&["draw", "@gpt1"]);
    assert!(code == Some(2) && said.contains("`--out` names"), "{said}");
    let (code, said) = run(&["check", "@gpt1"]);
    assert!(code == Some(0) && said.contains("there is nothing to watch"), "{said}");
}
