//! The archived crate `serde_yaml` and the crate that replaces it read the shipped specs alike.

use serde_yaml_archived::Value;
use trafoc::diag::Sink;
use trafoc::source::SourceMap;
use trafoc::syntax::tree::{Kind, Node, Style};
use trafoc::syntax::{Notation, parse};

use crate::compiled::specs;

/// Whether both values are equal. Ours keeps a scalar as it is written; the other crate has guessed its
/// type.
fn same(ours: &Node, theirs: &Value) -> Result<(), String> {
    let differ = || Err(format!("{ours:?} is not {theirs:?}"));
    match (&ours.kind, theirs) {
        (Kind::Null, Value::Null) => Ok(()),
        (Kind::Delete, Value::Tagged(tagged)) if tagged.tag == "delete" => Ok(()),
        // The line break that ends a text on lines of its own is no part of it.
        (Kind::Scalar(s), Value::String(text)) if s.style == Style::Block => {
            if s.text == text.trim_end_matches('\n') { Ok(()) } else { differ() }
        }
        (Kind::Scalar(s), Value::String(text)) if s.text == *text => Ok(()),
        (Kind::Scalar(s), Value::Bool(truth)) if s.text == truth.to_string() => Ok(()),
        (Kind::Scalar(s), Value::Number(number)) if s.text.parse().ok() == number.as_f64() => Ok(()),
        (Kind::List(items), Value::Sequence(values)) if items.len() == values.len() => {
            items.iter().zip(values).try_for_each(|(a, b)| same(a, b))
        }
        (Kind::Map(entries), Value::Mapping(map)) if entries.len() == map.len() => {
            entries.iter().zip(map).try_for_each(|(e, (key, value))| {
                let key = match key {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    other => format!("{other:?}"),
                };
                if e.key != key { Err(format!("`{}` is not `{key}`", e.key)) } else { same(&e.value, value) }
            })
        }
        _ => differ(),
    }
}

#[test]
fn both_crates_read_every_spec_alike() {
    let mut read = 0;
    for folder in ["specs", "tests/good"] {
        for (name, path) in specs(folder) {
            if Notation::from_path(path.to_str().unwrap()) != Some(Notation::Yaml) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let theirs: Value = serde_yaml_archived::from_str(&text).unwrap();
            let mut sources = SourceMap::new();
            let id = sources.add(&name, text);
            let mut sink = Sink::new();
            let ours = parse(&sources, id, Notation::Yaml, &mut sink).unwrap();
            same(&ours, &theirs).unwrap_or_else(|why| panic!("{name}: {why}"));
            read += 1;
        }
    }
    assert!(read > 100, "{read} specs");
}

/// A key in the place of which another one says the same makes room for it.
#[test]
fn merging_replaces_what_says_the_same() {
    for (base, over, want) in [
        ("{layers: 4, pattern: [a, b]}", "runs: [{4: a}]", "{layers: 4, runs: [{4: a}]}"),
        ("{runs: [{4: a}]}", "pattern: [a, b]", "{pattern: [a, b]}"),
        ("attention_factor: 1.2", "{mscale: 1, mscale_all_dim: 1}", "{mscale: 1, mscale_all_dim: 1}"),
        ("{mscale: 1, mscale_all_dim: 1}", "attention_factor: 1.2", "attention_factor: 1.2"),
        ("qkv: false", "query: true", "{query: true, key: false, value: false}"),
        ("{query: true, key: false, output: true}", "qkv: true", "{output: true, qkv: true}"),
        ("{train: a, split: {validation: 0.1}}", "validation: b", "{train: a, validation: b}"),
        (
            "{train: a, split: {validation: 0.1, test: 0.2}}",
            "validation: b",
            "{train: a, split: {test: 0.2}, validation: b}",
        ),
        ("{train: a, test: b}", "split: {test: 0.1}", "{train: a, split: {test: 0.1}}"),
    ] {
        let read = |text: &str| crate::syntax::parse(text, Notation::Yaml).unwrap();
        let mut sink = Sink::new();
        let merged = trafoc::syntax::merge::merge(&read(base), &read(over), &|_: &str| false, &mut sink);
        assert_eq!(merged, read(want), "{over} over {base}");
        assert!(sink.into_sorted().is_empty());
    }
}

/// The wrong bracket is marked, and the one that it does not close is shown.
#[test]
fn a_wrong_closing_bracket_is_marked() {
    for (text, wrong, open) in
        [("attention: {heads: 4]\n", "]", "{"), ("a: [1, {b: '}', c: \"]\"}, # }\n  2}\n", "}\n", "[")]
    {
        let found = crate::syntax::parse(text, Notation::Yaml).unwrap_err();
        let (at, begin) = (found[0].labels[0].span.range().start, found[0].labels[1].span.range().start);
        assert_eq!((at, begin), (text.rfind(wrong).unwrap(), text.find(open).unwrap()), "{text}");
        assert!(found[0].help[0].starts_with("close it with `"), "{:?}", found[0].help);
    }
}
