//! Comments that allow warnings.

use std::fs;

use crate::cli::trafoc_in;

const SPEC: &str = "name: wide
vocab: 32
context: 8
d_model: 8
decoder:
  layers: 1
  # ABOVE
  attention:
    heads: 2
    mask:
      window: 100  # BEHIND
  ffn:
    hidden: 16  # ELSEWHERE
head: lm
";

const ALLOW: &str = "trafoc: allow(beyond-end) the context will grow";

/// What `check --strict` says of the spec with a comment in one place.
fn strictly(place: &str, comment: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), SPEC.replace(place, comment)).unwrap();
    let said = trafoc_in(folder.path(), &["check", "a.yaml", "--strict"]);
    (said.code, said.err)
}

#[test]
fn a_comment_allows_a_warning_in_its_line_or_its_entry() {
    let (code, said) = strictly("NOWHERE", "");
    assert!(code == 1 && said.contains("warning[beyond-end]"), "{said}");
    for place in ["ABOVE", "BEHIND"] {
        let (code, said) = strictly(place, ALLOW);
        assert!(code == 0 && !said.contains("warning"), "{place}: {said}");
    }
    let (code, said) = strictly("ELSEWHERE", ALLOW);
    assert!(code == 1 && said.contains("warning[beyond-end]"), "{said}");
    assert!(said.contains("there is no warning `beyond-end` here that could be allowed"), "{said}");
    assert!(said.contains("a.yaml:13:33"), "{said}");
    let (code, said) = strictly("BEHIND", "trafoc: allow(frozen-fresh, beyond-ned)");
    assert!(code == 1 && said.contains("there is no code `beyond-ned`"), "{said}");
    assert!(said.contains("did you mean `beyond-end`?"), "{said}");
    for wrong in ["trafoc: alow(beyond-end)", "trafoc: allow(beyond-end", "trafoc: allow()"] {
        let (code, said) = strictly("BEHIND", wrong);
        assert!(code == 1 && said.contains("this comment is meant for trafoc, and allows nothing"), "{said}");
    }
}

/// A comment above the first entry is about it, whatever is before the comment; with changes, nothing is said of a comment
/// that is for the spec without them.
#[test]
fn a_comment_may_be_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str, arguments: &[&str]| {
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        trafoc_in(folder.path(), &[&["check", "a.yaml", "--strict"], arguments].concat())
    };
    let spec = SPEC.strip_prefix("name: wide\n").unwrap();
    let (before, decoder) = spec.split_once("decoder:").unwrap();
    for (begin, mark) in [("", ""), ("", "---\n"), ("\u{feff}", ""), ("---\n", "")] {
        let text = format!("{begin}# {ALLOW}\n{mark}decoder:{decoder}{before}name: wide\n");
        let said = check(&text, &[]);
        assert!(said.code == 0 && !said.err.contains("warning"), "{text}: {}", said.err);
    }
    let text = SPEC.replace("BEHIND", ALLOW);
    let said = check(&text, &["--set", "context=128"]);
    assert!(said.code == 0 && !said.err.contains("warning"), "{}", said.err);
    let said = check(&format!("{text}sweep: {{long: {{context: 128}}}}\n"), &[]);
    assert!(said.code == 0 && !said.err.contains("warning"), "{}", said.err);
}

/// The notation makes no difference, and formatting keeps what is allowed.
#[test]
fn comments_are_kept_in_both_notations() {
    let folder = tempfile::tempdir().unwrap();
    for place in ["ABOVE", "BEHIND"] {
        fs::write(folder.path().join("a.yaml"), SPEC.replace(place, ALLOW)).unwrap();
        let converted = trafoc_in(folder.path(), &["convert", "a.yaml", "--out", "a.trafo", "--force"]);
        assert_eq!(converted.code, 0, "{}", converted.err);
        let said = trafoc_in(folder.path(), &["check", "a.trafo", "--strict"]);
        assert!(said.code == 0 && !said.err.contains("warning"), "{place}: {}", said.err);
        let formatted = trafoc_in(folder.path(), &["fmt", "--write", "a.yaml", "a.trafo"]);
        assert_eq!(formatted.code, 0, "{}", formatted.err);
        for name in ["a.yaml", "a.trafo"] {
            let said = trafoc_in(folder.path(), &["check", name, "--strict"]);
            assert!(said.code == 0 && !said.err.contains("warning"), "{place} in {name}: {}", said.err);
        }
    }
}

/// Warnings about a recipe are allowed in the recipe; errors are not, and a text in quotes is no comment.
#[test]
fn errors_cannot_be_allowed() {
    let (code, said) = strictly("hidden: 16  # ELSEWHERE", "hidden: many  # trafoc: allow(unknown-name)");
    assert!(code == 1 && said.contains("error[unknown-name]"), "{said}");
    let (code, said) = strictly("wide", "\"# trafoc: allow(beyond-end)\"");
    assert!(
        code == 1 && said.contains("warning[beyond-end]") && !said.contains("could be allowed"),
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let recipe = "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {characters: {}}\n\
                  # trafoc: allow(beyond-end) copied\nschedule: {cosine: {warmup: 500}}\nsteps: 100\n";
    fs::write(folder.path().join("names.txt"), "ann\nbob\ncarl\ndora\n").unwrap();
    let warns = |text: String| {
        fs::write(folder.path().join("r.yaml"), text).unwrap();
        trafoc_in(folder.path(), &["check", "@gbt-mulm", "--recipe", "r.yaml"])
            .err
            .contains("the learning rate rises")
    };
    assert!(warns(recipe.replace("# trafoc: allow(beyond-end) copied\n", "")));
    assert!(!warns(recipe.to_owned()));
}
