//! The guide to parts of one's own: every spec on the page compiles, or has the error that the page shows.

use crate::cli::trafoc_in;
use crate::compiled::repository;

/// The fenced blocks of a page: the word after the fence, and the lines up to the next one.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push((kind, inside.join("\n") + "\n"));
        }
    }
    found
}

#[test]
fn every_spec_of_the_guide_is_as_it_says() {
    let page = std::fs::read_to_string(repository("docs/parts.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all = blocks(&page);
    let (mut good, mut bad) = (0, 0);
    for (i, (kind, text)) in all.iter().enumerate().filter(|(_, (kind, _))| *kind != "text") {
        let name = format!("model.{kind}");
        std::fs::write(folder.path().join(&name), text).unwrap();
        let said = trafoc_in(folder.path(), &["check", &name]);
        // The error that a spec has is the block after it.
        if let Some((_, error)) = all.get(i + 1).filter(|(kind, _)| *kind == "text") {
            assert!(said.code == 1 && said.err.starts_with(error), "{text}\n{}", said.err);
            bad += 1;
        } else {
            assert_eq!(said.code, 0, "{text}\n{}", said.err);
            good += 1;
        }
    }
    assert!(good >= 5 && bad >= 1, "{good} {bad}");
}
