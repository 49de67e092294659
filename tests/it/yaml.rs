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
