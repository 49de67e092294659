//! What is wrong in data files: where it is, and what to write instead.

use super::Pair;
use crate::compiled::repository;
use trafoc::learn::data::{Inherited, Refused, prepare};
use trafoc::learn::token::Tokenizer;

/// A classifier of texts, and a table of them.
const TABLE: (&str, &str) = ("specs/doc-classify.yaml", "{table: {text: text, label: label}}");

/// The messages, each with its help, about files of these parts of the data, whose names end so.
fn faults((spec, format): (&str, &str), end: &str, files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut data = format!("format: {format}");
    for (part, text) in files {
        std::fs::write(folder.path().join(format!("{part}.{end}")), text).unwrap();
        data += &format!(", {part}: {part}.{end}");
    }
    let tokens = if format == "pixels" { "" } else { "tokens: words\n" };
    let recipe = format!("recipe: 1\ndata: {{{data}}}\n{tokens}steps: 10\n");
    let path = folder.path().join("recipe.yaml");
    let mut pair = Pair::of_text(path.to_str().unwrap(), &recipe, &repository(spec), None, &[]);
    assert!(pair.found().is_empty(), "{}", pair.rendered());
    let read = pair.recipe.clone().unwrap();
    let refused = prepare(&read, &pair.spec, &Inherited::default(), &pair.sources, &mut pair.sink);
    let mut lines: Vec<String> = Vec::new();
    for fault in pair.found() {
        lines.push(fault.message);
        lines.extend(fault.help.into_iter().map(|help| format!("  {help}")));
    }
    match refused.err() {
        Some(Refused::File { why, .. }) => lines.push(why),
        Some(Refused::Data) => {}
        None => lines.push("nothing is refused".to_owned()),
    }
    lines.join("\n")
}

/// The messages about a table with these rows below its header.
fn table(rows: &str) -> String {
    faults(TABLE, "csv", &[("train", &format!("text,label\n{rows}"))])
}

/// A quotation mark that belongs to the text joins no lines to one cell: two of them were read without a word.
#[test]
fn stray_quotation_marks_are_found_where_they_are() {
    insta::assert_snapshot!(table("5\" screen,x\n\"5\" screen,y\n\"great,x\nb,y\n\"c,z\nd,x\n"), @r#"
    `train.csv`, line 3, column 3: text follows the quotation mark that closes a cell
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    `train.csv`, line 4, column 1: the quotation mark that is opened here is closed at line 6, column 1, where text follows
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    "#);
    insta::assert_snapshot!(table("\"b\"\"c\r\nd\" e,y\r\né\"é,y\r\n\"éé\"é,y"), @r#"
    `train.csv`, line 2, column 1: the quotation mark that is opened here is closed at line 3, column 2, where text follows
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    `train.csv`, line 5, column 4: text follows the quotation mark that closes a cell
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    "#);
    insta::assert_snapshot!(table("\"He said \"hi\" to me\",x\n \"a, b\",y\n\"ok\" ,y\n\"end,x\n"), @r#"
    `train.csv`, line 2, column 10: text follows the quotation mark that closes a cell
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    `train.csv`, line 3: it has 3 columns, but the header names 2
      the blank before a quotation mark makes it part of the text: remove the blank
    `train.csv`, line 5, column 1: a quotation mark is opened here and not closed
      close it, or write it twice where it belongs to a text in quotation marks
    "#);
    // The byte order mark is before the cell, and the names of the columns are a row like others.
    insta::assert_snapshot!(faults(TABLE, "csv", &[("train", "\u{feff}\"te\"xt,label\na,b\n")]), @r#"
    `train.csv`, line 1, column 4: text follows the quotation mark that closes a cell
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    "#);
    insta::assert_snapshot!(table(&format!("\"a {}", "bbbbbbbbbbbbb,x\n".repeat(1_200_000))), @"a row is longer than 16777216 bytes: the quotation mark at line 2, column 1 is not closed before");
}

/// Some bad lines are named, the others are counted.
#[test]
fn all_bad_lines_are_counted() {
    insta::assert_snapshot!(table(&"a\nb,x\n".repeat(13)), @"`train.csv`, lines 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 3 more: it has 1 column, but no `label` is among them");
    insta::assert_snapshot!(table(&"a\n".repeat(30)), @"`train.csv`, lines 2 to 31: it has 1 column, but no `label` is among them");
    insta::assert_snapshot!(table(&format!("{}b\nc\n", "\"a\" b,x\n".repeat(12))), @r#"
    `train.csv`, lines 2 (column 3), 3 (column 3), 4 (column 3), 5 (column 3), 6 (column 3), 7 (column 3), 8 (column 3), 9 (column 3), 10 (column 3), 11 (column 3) and 2 more: text follows the quotation mark that closes a cell
      inside quotation marks, write `""` for each one of the text: `"a 5"" screen"`
    there are 2 faults of other kinds after these
    "#);
    insta::assert_snapshot!(table(&"a\nb,x\n".repeat(3000)), @"`train.csv`, lines 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and at least 990 more: it has 1 column, but no `label` is among them");
}

/// The files of all parts are read, and not only the first that has a fault.
#[test]
fn faults_of_all_files_are_reported_at_once() {
    let held = [("validation", "text,label\nb,x\nc\nd,\n"), ("test", "text\na\n")];
    insta::assert_snapshot!(faults(TABLE, "csv", &[("train", "text,label\na\n"), held[0], held[1]]), @r"
    `test.csv` has no column `label`
      its columns are `text`
    `train.csv`, line 2: it has 1 column, but no `label` is among them
    `validation.csv`, line 3: it has 1 column, but no `label` is among them
    `validation.csv`, line 4: `label` is empty
      write the class of the text there, or remove the line
    ");
    // These are found when the examples are encoded.
    let held = [("validation", "text,label\na,z\n"), ("test", "text,label\na,w\n")];
    insta::assert_snapshot!(faults(TABLE, "csv", &[("train", "text,label\na,x\nb,y\n"), held[0], held[1]]), @r"
    `validation.csv`, line 2: the class `z` does not occur in the training data
    `test.csv`, line 2: the class `w` does not occur in the training data
    the data has 2 classes, but the spec has 8
    the data has 6 tokens, but `vocab` has 30522 rows
      write `vocab: 6`
    ");
}

/// A value that is missing is named by its key, or its column.
#[test]
fn missing_values_are_named() {
    let rows = [
        r#"{"text": "a", "label": null}"#,
        r#"{"text": [], "label": "x"}"#,
        r#"{"text": "b", "label": {}}"#,
        r#"{"text": "b", "label": []}"#,
        r#"{"text": "b", "label": [["x"]]}"#,
    ];
    insta::assert_snapshot!(faults(TABLE, "jsonl", &[("train", &rows.join("\n"))]), @r"
    `train.jsonl`, line 1: `label` is `null`, but a text or a number is expected
      write the value there, or remove the line
    `train.jsonl`, line 2: `text` has 0 values, but one is expected
    `train.jsonl`, line 3: `label` is an object, but a text or a number is expected
      write the text or the number itself
    `train.jsonl`, line 4: `label` is empty
      write the class of the text there, or remove the line
    `train.jsonl`, line 5: `label` is a list in a list, but a text or a number is expected
      write the text or the number itself
    ");
    insta::assert_snapshot!(table("a,\nb, \nc,y\n"), @r"
    `train.csv`, lines 2 and 3: `label` is empty
      write the class of the text there, or remove the line
    ");
    insta::assert_snapshot!(faults(("specs/vit.yaml", "pixels"), "csv", &[("train", "0,0,\n")]), @r"
    `train.csv`, line 1: the class is empty
      `label` says whether it is the first or the last of a line
    ");
    let tagged = ("tests/good/head-tag.yaml", "tagged");
    insta::assert_snapshot!(faults(tagged, "txt", &[("train", "a\t\n\tx\nb\n")]), @r"
    `train.txt`, line 1: the class is empty
      expected a word, a tab and its class
    `train.txt`, line 2: the word is empty
      expected a word, a tab and its class
    `train.txt`, line 3: expected a word, a tab and its class, but found 1 column
    ");
}

/// A character or a word that a codebook lists twice would have the id of only one of its places.
#[test]
fn what_a_vocabulary_lists_twice_is_named() {
    for (text, why) in [
        (
            r#"{"characters": {"boundary": null, "lower": false, "alphabet": ["a", "b", "a"]}}"#,
            "has `a` twice",
        ),
        (r#"{"characters": {"boundary": ".", "lower": false, "alphabet": ["\t", "\t"]}}"#, r"has `\t` twice"),
        (r#"{"words": {"lower": true, "words": ["of", "it", "it"]}}"#, "has `it` twice"),
    ] {
        let error = serde_json::from_str::<Tokenizer>(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
