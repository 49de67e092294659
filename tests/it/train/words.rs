//! What a forecast and the contents of data say where there is one of something, or nothing to say.

use crate::cli::trafoc;
use crate::compiled::program;

const IMAGES: [&str; 4] = ["--variant", "digits", "--recipe", "@vit"];

#[test]
fn a_forecast_counts_one_evaluation_and_no_tokens_of_images() {
    let said = trafoc(&[&["train", "@vit", "--dry-run"], &IMAGES[..]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains(", 1 evaluation of "), "{}", said.out);
    assert!(said.out.contains("\nexamples     1,438\n"), "{}", said.out);
    assert!(!said.out.contains("tokens"), "{}", said.out);
    // The evaluations of this recipe are many.
    let said = trafoc(&["train", "@gbt-mulm", "--recipe", "@gbt-mulm", "--dry-run"]);
    assert!(said.out.contains(", 4 evaluations of ") && said.out.contains("\ntokens  "), "{}", said.out);
}

#[test]
fn the_contents_of_images_have_no_tokens() {
    let said = trafoc(&[&["inspect", "data", "@vit"], &IMAGES[..]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("As it is read."), "{}", said.out);
    assert!(!said.out.contains("tokens and ids") && !said.out.contains("in tokens"), "{}", said.out);
}

/// A step over all data takes half a minute here; a part of it is measured, which is said.
#[test]
fn a_forecast_does_not_wait_for_long_steps() {
    let begun = std::time::Instant::now();
    let all = ["train", "@gbt-mulm", "--recipe", "@gbt-mulm", "--with", "batch.size=29996", "--dry-run"];
    let said = trafoc(&all);
    assert_eq!(said.code, 0, "{}", said.err);
    let steps = said.out.lines().find(|line| line.starts_with("  steps ")).unwrap();
    assert!(steps.contains(" each, as ") && steps.ends_with(" of 29,996 examples take"), "{steps}");
    // The four whole steps that are made of shorter ones would take several times as long.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

/// What the steps have left that were made to measure their duration is no memory of the training: with it, this forecast
/// was 1.45 times the peak.
#[cfg(target_os = "linux")]
#[test]
fn a_forecast_does_not_count_its_own_steps() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--with", "steps=3", "--with", "batch.size=300", "--with", "evaluate.limit=100"];
    let all = [&["train", "@gbt-mulm", "--recipe", "@gbt-mulm", "--set", "d_model=64"][..], &few].concat();
    let said = trafoc(&[&all[..], &["--dry-run", "--format", "json"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let forecast = json["data"]["memory_bytes"].as_f64().unwrap();
    let mut command = program();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(&all).arg("--out").arg(folder.path().join("run"));
    let mut child =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut peak = 0.0f64;
    let status = loop {
        // The peak so far, which only grows; a process that has ended no longer has one.
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        peak = kib.and_then(|kib| kib.parse().ok()).map_or(peak, |kib: f64| peak.max(kib * 1024.0));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    assert!(status.success());
    assert!((peak..1.2 * peak).contains(&forecast), "{forecast} bytes are forecast, and {peak} were needed");
}

/// The loss of a model that sees the tokens it is to predict is said to be too low; a mask that hides them needs no word.
#[test]
fn a_training_says_that_its_positions_see_what_they_predict() {
    let all = ["train", "@gbt-mulm", "--recipe", "@gbt-mulm", "--dry-run", "--set"];
    for (mask, note) in [
        (
            "bidirectional",
            Some("every position sees later tokens and so the one to predict: losses are lower"),
        ),
        ("{prefix: 3}", Some("the first 3 positions see later tokens and so the one to predict")),
        ("[causal, {window: 4}]", None),
    ] {
        let said = trafoc(&[&all[..], &[&format!("decoder.attention.mask={mask}")]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.err.contains("under the decoder's mask"), note.is_some(), "{mask}: {}", said.err);
        assert!(said.err.contains(note.unwrap_or_default()), "{mask}: {}", said.err);
    }
}
