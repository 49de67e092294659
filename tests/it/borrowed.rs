//! Words of other libraries, written where people write them first: what the first suggestion says.
//!
//! `tests/words/table.txt` has a line for each word, `DOCUMENT PLACE | KEY: VALUE | HELP`. The word is written in
//! place of the comment `# PLACE` of `tests/words/DOCUMENT.yaml`, and `HELP` is a path, which the help must name as the
//! word's place here, or a text in quotes that it must contain, or `keys` for a list of the keys that there are.

use trafoc::compile::compile_tree;
use trafoc::diag::{Code, Diagnostic, Sink};
use trafoc::learn::recipe;
use trafoc::spec::load;
use trafoc::syntax::{Notation, parse};

use crate::compiled::repository;

/// What is said about a document with a line in place of one of its comments.
fn found(document: &str, place: &str, line: &str) -> Vec<Diagnostic> {
    let text = std::fs::read_to_string(repository(&format!("tests/words/{document}.yaml"))).unwrap();
    let comment = format!("# {place}\n");
    assert_eq!(text.matches(&comment).count(), 1, "{document}: {place}");
    let mut sources = load::sources();
    let id = sources.add(document, text.replace(&comment, &format!("{line}\n")));
    let mut sink = Sink::new();
    if document == "recipe" {
        recipe::read(&sources, id, &[], &mut sink);
        return sink.into_sorted();
    }
    let tree = parse(&sources, id, Notation::Yaml, &mut sink).unwrap();
    compile_tree(&sources, Some(tree), sink).unwrap().diagnostics
}

/// Whether a help says what a line of the table wants.
fn says(help: &str, wanted: &str) -> bool {
    match wanted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => help.contains(text),
        None if wanted == "keys" => help.starts_with("it has "),
        None => ["trafoc calls this", "it belongs at", "did you mean"]
            .iter()
            .any(|start| help.starts_with(&format!("{start} `{wanted}`"))),
    }
}

#[test]
fn words_of_other_libraries_are_understood() {
    let table = std::fs::read_to_string(repository("tests/words/table.txt")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let mut wrong = Vec::new();
    for row in &rows {
        let [place, line, wanted] = row.split(" | ").collect::<Vec<&str>>()[..] else { panic!("{row}") };
        let (document, place) = place.split_once(' ').unwrap();
        let all = found(document, place, line);
        let helps: Vec<&str> = all.iter().flat_map(|d| &d.help).map(String::as_str).collect();
        if std::env::var_os("TRAFOC_SHOW").is_some() {
            println!("{row}\n    {}", helps.join("\n    "));
        }
        let is_one = all.len() == 1 && all.iter().all(|d| d.code == Code::UnknownKey);
        if !is_one || !helps.first().is_some_and(|help| says(help, wanted)) {
            wrong.push(format!("{row}\n    {} of {}: {}", helps.len(), all.len(), helps.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() > 200, "{}", rows.len());
}
