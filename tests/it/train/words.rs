//! What a forecast and the contents of data say where there is one of something, or nothing to say.

use crate::cli::trafoc;

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
    assert!(steps.contains(" ms each, as ") && steps.ends_with(" of 29,996 examples take"), "{steps}");
    // The four whole steps that are made of shorter ones would take several times as long.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}
