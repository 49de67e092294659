//! Signals that end a training: it saves first, and says so.

use super::*;

#[test]
fn a_signal_saves_and_says_so() {
    let place = Folder::new();
    place.trained("whole", &["--with", "steps=60"]);
    let mut signals = vec![("INT", 130), ("TERM", 143)];
    // Elsewhere than on Linux it is not known whether SIGHUP is ignored, so that it is left as it is. Under `nohup`, the
    // tests ignore it, and so does what they start.
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) if !ignores_hangups(&status) => signals.push(("HUP", 129)),
        Ok(_) | Err(_) => eprintln!("SIGHUP is ignored or not known here, so it is not tested"),
    }
    for (signal, code) in signals {
        let mut child = place.train(signal, &["--with", "steps=60"]).stderr(Stdio::piped()).spawn().unwrap();
        // The first record is written after the first step.
        while !place.path(signal).join("metrics.jsonl").exists() {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "it ended before it could be interrupted: {:?}",
                child.wait_with_output()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        // A second signal at the same time has no additional effect.
        let child_id = child.id().to_string();
        let kill = Command::new("kill").arg(format!("-{signal}")).args([&child_id, &child_id]).status();
        assert!(kill.unwrap().success());
        let ended = said(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        let next = format!("and saved\nnext: trafoc train --resume --out {signal}");
        assert!(ended.err.contains(&next), "{}", ended.err);
        // The run's own spec and recipe are used.
        let resumed = said(place.command(&["train", "--out", signal, "--resume"]).output().unwrap());
        assert_eq!(resumed.code, Some(0), "{}", resumed.err);
        same(&place.bytes("whole", 60), &place.bytes(signal, 60));
    }
}

/// Whether the mask of ignored signals in `/proc/self/status` has the lowest bit, which is that of SIGHUP.
fn ignores_hangups(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & 1 == 1
}

/// `nohup` lets its command ignore the end of the terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_run_under_nohup_goes_on_without_a_terminal() {
    let place = Folder::new();
    place.trained("whole", &["--with", "steps=60"]);
    let script = "trap '' HUP; exec \"$@\"";
    let train = place.train("run", &["--with", "steps=60"]);
    let mut command = Command::new("sh");
    command.current_dir(place.path("")).args(["-c", script, "sh"]).arg(train.get_program());
    let mut child = command.args(train.get_args()).stderr(Stdio::piped()).spawn().unwrap();
    while !place.path("run").join("metrics.jsonl").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be signalled");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    let ended = said(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    same(&place.bytes("whole", 60), &place.bytes("run", 60));
}
