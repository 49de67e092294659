//! A training that a signal ends leaves its terminal as it was.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::train::Folder;

#[test]
#[ignore = "needs `script`; `.ci/run trace`"]
fn a_signal_leaves_the_terminal_as_it_was() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let place = Folder::new();
        // In a terminal of its own, which `script` makes: the settings before and after, and how it ended in between.
        let trafoc = crate::compiled::PROGRAM;
        let train = "train spec.yaml --recipe recipe.yaml --with steps=100000 --out run";
        let line = format!("stty -a > before; '{trafoc}' {train}; echo $? > code; stty -a > after");
        let mut terminal = crate::compiled::alone("script");
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(place.path(""));
        let output = terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = output.spawn().expect("this test needs `script`");
        // The first record is written after the first step.
        while !place.path("run/metrics.jsonl").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
            std::thread::sleep(Duration::from_millis(5));
        }
        let process = std::fs::read_to_string(place.path("run/lock")).unwrap();
        let kill = Command::new("kill").args([&format!("-{signal}"), process.trim()]).status();
        assert!(kill.unwrap().success());
        assert!(child.wait().unwrap().success());
        let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
        assert_eq!(read("code").trim(), code.to_string());
        assert!(read("before").contains("echo"), "{}", read("before"));
        assert_eq!(read("before"), read("after"), "{signal}");
    }
}
