//! Laws of random specs: a valid one compiles, survives being printed and parsed, and has the same counts
//! in closed form and one by one; with one word changed, it compiles or is refused with a place.

use std::sync::LazyLock;

use proptest::prelude::*;
use trafoc::diag::{Severity, render};
use trafoc::emit::rust::{self, Form};
use trafoc::parts::own::vocabulary;
use trafoc::spec::expand::expand;
use trafoc::syntax::Notation;

use crate::compiled::repository;
use crate::front::Front;
use crate::good::{converted, counts};
use crate::random::spec;

/// 64 cases, or as many as `PROPTEST_CASES` says: `.ci/run` uses a thousand.
pub fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 64 };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

pub fn tape() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..160)
}

/// The words of a text: names and numbers are whole, every other character is a word of its own.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let len = match word(first) {
            true => rest.find(|c: char| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        words.push(&rest[..len]);
        rest = &rest[len..];
    }
    words
}

/// Words that replace others in mutations.
const OTHERS: &[&str] = &[
    "0",
    "-1",
    "2^40",
    "1099511627776",
    "1e400",
    "8/3",
    "7.5",
    "none",
    "null",
    "[]",
    "{}",
    "true",
    "yes",
    "x",
    "memory",
    "layers",
    "d_model",
    "head_dim",
    "*",
    "&a",
    "\"",
    "'",
    "!delete",
    "é",
    "🦀",
    "\t",
    "\n",
    ":",
    ": ",
    "#",
    "- ",
    "|",
    "norm",
    "rotary",
    "glu",
    "moe",
    "\u{7}",
    "(",
    ")",
    "%",
    "0..2",
    "",
];

/// The text with one of its words replaced.
fn replaced(text: &str, which: usize, by: &str) -> String {
    let mut all = words(text);
    let at = which % all.len();
    all[at] = by;
    all.concat()
}

fn mutated(text: &str, which: usize, how: usize, other: usize) -> String {
    let mut all = words(text);
    let at = which % all.len();
    match how % 4 {
        0 => all[at] = OTHERS[other % OTHERS.len()],
        1 => all[at] = all[other % all.len()],
        2 => all.insert(at, OTHERS[other % OTHERS.len()]),
        _ => {
            all.remove(at);
        }
    }
    all.concat()
}

/// Asserts that every place of every diagnostic is within its text, on character boundaries.
fn check_places(front: &Front) {
    for diagnostic in &front.compilation.diagnostics {
        assert!(!diagnostic.labels.is_empty() && !diagnostic.message.is_empty(), "{diagnostic:?}");
        for label in &diagnostic.labels {
            let source = front.sources.get(label.span.source).expect("a source");
            assert!(source.text.get(label.span.range()).is_some(), "{diagnostic:?}");
        }
        render::short(diagnostic, &front.sources);
    }
    assert!(!front.rendered().is_empty() || front.compilation.diagnostics.is_empty());
}

/// Whether anything was reported that is more than a warning.
fn has_errors(front: &Front) -> bool {
    front.compilation.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_sound_spec_is_itself_however_it_is_written(tape in tape()) {
        let text = spec(&tape);
        let front = Front::of_text("tiny.yaml", &text, "specs");
        prop_assert!(front.is_sound(), "{text}\n{}", front.rendered());
        let graph = front.compilation.graph.unwrap();
        let (closed, one_by_one) = counts(&graph);
        prop_assert_eq!(closed, one_by_one.unwrap_or(closed), "{}", text);
        // Emission parses its own output.
        let emitted = rust::source(&graph, &front.sources, "tiny.yaml", Form::Kernels);
        prop_assert!(emitted.is_ok(), "{text}\n{emitted:?}");
        let spec = front.compilation.spec.unwrap();
        for notation in [Notation::Yaml, Notation::Dsl] {
            let name = format!("tiny.{}", notation.extension());
            for written in [expand(&spec, notation), converted(&text, Notation::Yaml, notation)] {
                let again = Front::of_text(&name, &written, "specs");
                prop_assert!(again.is_sound(), "{text}\n{written}\n{}", again.rendered());
                prop_assert!(again.compilation.spec.as_ref() == Some(&spec), "{}\n{}", text, written);
            }
        }
    }

    #[test]
    fn a_word_changed_compiles_or_says_where_not(
        tape in tape(), which in any::<usize>(), how in any::<usize>(), other in any::<usize>(), dsl in any::<bool>()
    ) {
        let text = spec(&tape);
        let (text, name) = match dsl {
            false => (text, "tiny.yaml"),
            true => (converted(&text, Notation::Yaml, Notation::Dsl), "tiny.trafo"),
        };
        let text = mutated(&text, which, how, other);
        let front = Front::of_text(name, &text, "specs");
        check_places(&front);
        prop_assert!(front.compilation.graph.is_some() != has_errors(&front), "{text}\n{}", front.rendered());
    }

    /// The same for the texts that define parts, whose words the random specs do not all have.
    #[test]
    fn a_word_of_a_part_changed_compiles_or_says_where_not(
        file in any::<usize>(), which in any::<usize>(), how in any::<usize>(), other in any::<usize>()
    ) {
        let (name, text) = &PARTS[file % PARTS.len()];
        let others = vocabulary::words().map(|word| word.name).chain(["experts(", "[", "]", "shared", "init: ones"]);
        let others: Vec<&str> = others.collect();
        let text = match how % 8 {
            // Another word of the vocabulary is the likeliest mistake.
            7 => replaced(text, which, others[other % others.len()]),
            how => mutated(text, which, how, other),
        };
        let front = Front::of_text(name, &text, "tests/good");
        check_places(&front);
        prop_assert!(front.compilation.graph.is_some() != has_errors(&front), "{text}\n{}", front.rendered());
    }
}

/// The specs of `tests/good` and `tests/numeric` that define parts, with their names.
static PARTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut found = Vec::new();
    for folder in ["tests/good", "tests/numeric"] {
        for entry in std::fs::read_dir(repository(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.starts_with("part") && (name.ends_with(".yaml") || name.ends_with(".trafo")) {
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
});

proptest! {
    #![proptest_config(config())]

    /// A place is found as counting from the start of the text would find it.
    #[test]
    fn a_place_is_where_counting_finds_it(parts in prop::collection::vec("[a-z\u{e9}\u{1f980}\n]{0,300}", 0..6)) {
        let text = parts.concat();
        let mut sources = trafoc::source::SourceMap::new();
        let id = sources.add("text", text.as_str());
        let source = sources.get(id).unwrap();
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            prop_assert_eq!(source.line_column(at), (line, column));
        }
    }
}
