//! `tests/bad`: specs with an error. The file's name begins with the code that must be reported first; the
//! rendered diagnostics are a snapshot.

use trafoc::diag::Code;

use crate::compiled::{repository, specs};
use crate::front::Front;

/// The code with which a file's name begins.
pub fn code_of(stem: &str) -> Option<Code> {
    // Some codes begin with the whole of another, so the longest that fits is meant.
    let fits = |c: &Code| stem == c.slug() || stem.starts_with(&format!("{}-", c.slug()));
    Code::ALL.iter().copied().filter(fits).max_by_key(|c| c.slug().len())
}

#[test]
fn faults_are_found_and_shown() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/bad"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut wrong = Vec::new();
    for (name, path) in specs("tests/bad") {
        let front = Front::of_file(&path);
        let codes = front.codes();
        let expected = code_of(&name).map(Code::slug);
        if codes.first().copied() != expected || front.compilation.graph.is_some() {
            wrong.push(format!("{name}: found {codes:?}\n{}", front.rendered()));
            continue;
        }
        settings.set_description(String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        settings.bind(|| insta::assert_snapshot!(name, front.rendered()));
    }
    assert!(wrong.is_empty(), "these report something else:\n{}", wrong.join("\n"));
}

/// All errors are reported in one run, without errors that only follow from others.
#[test]
fn twenty_mistakes_are_twenty_diagnostics() {
    let path = repository("tests/bad/base/twenty.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let marked: Vec<usize> =
        (1..).zip(text.lines()).filter(|(_, line)| line.ends_with("# mistake")).map(|(n, _)| n).collect();
    let front = Front::of_file(&path);
    let diagnostics = &front.compilation.diagnostics;
    let found: Vec<usize> = diagnostics.iter().map(|d| front.sources.line(d.span())).collect();
    assert_eq!(found, marked, "\n{}", front.rendered());
    assert_eq!(found.len(), 20);
}

/// A misspelled key replaces what its right name would: `hidden` in a range the `expansion` of all layers, but not one that
/// is written next to it.
#[test]
fn a_misspelled_key_replaces_its_alternative() {
    let stack = "{layers: 6, attention: {heads: 2}, ffn: {expansion: 4}, ranges: {0..1: {ffn: FFN}}}";
    let codes = |ffn: &str| {
        let decoder = stack.replace("FFN", ffn);
        let spec = format!(
            "name: a\nvocab: 16\ncontext: 8\nd_model: 8\nnorm: rms_norm\nhead: lm\ndecoder: {decoder}\n"
        );
        Front::of_text("alternative.yaml", &spec, ".").codes()
    };
    assert_eq!(codes("{hidden: 64}"), [""; 0]);
    assert_eq!(codes("{hiden: 64}"), ["unknown-key"]);
    assert_eq!(codes("{hiden: 64, expansion: 2}"), ["unknown-key", "keys-exclude"]);
}
