//! What is emitted for PyTorch, as text: `tests/pytorch` runs it. Hostile names stay in strings and comments,
//! and what Python could not read is refused before it is written.

use std::collections::BTreeSet;

use trafoc::compile::{Compilation, compile};
use trafoc::emit::pytorch::{check::check, name, refusal, runtime, source};
use trafoc::ir::Verified;
use trafoc::source::SourceMap;
use trafoc::spec::load;
use trafoc::syntax::Notation;

use crate::compiled::{Folder, graph, repository, specs};

fn emit(graph: &Verified, spec: &str) -> String {
    source(graph, &SourceMap::new(), spec).unwrap_or_else(|why| panic!("{spec}: {why}"))
}

/// The graph of a spec that is not a file.
fn compiled(text: &str) -> Verified {
    compiled_with_sources(text).0
}

fn compiled_with_sources(text: &str) -> (Verified, SourceMap) {
    let mut sources = load::sources();
    let id = sources.add("spec.yaml", text);
    let mut folder = Folder(repository("specs"));
    let Compilation { graph, diagnostics, .. } =
        compile(&mut sources, id, Notation::Yaml, &[], &mut folder).unwrap();
    (graph.unwrap_or_else(|| panic!("{diagnostics:#?}")), sources)
}

#[test]
fn every_spec_is_emitted_in_lines_of_88_characters() {
    for (name, path) in specs("tests/good").into_iter().chain(specs("specs")) {
        let text = emit(&graph(&path), &name);
        // The first line names the file, which may be called anything.
        for (number, line) in text.lines().enumerate().skip(1) {
            assert!(line.chars().count() <= 88, "{name}:{}: {line}", number + 1);
            assert!(!line.ends_with(' '), "{name}:{}: a space at the end", number + 1);
        }
    }
}

#[test]
fn files_do_not_grow_with_layers() {
    let path = repository("specs/gpt1.yaml");
    let lines = |layers: &str| emit(&crate::compiled::graph_with(&path, &[layers]), "gpt1").lines().count();
    assert_eq!(lines("decoder.layers=1000"), lines("decoder.layers=2"));
}

/// The text of Python without what is in strings and comments.
#[cfg(feature = "learn")]
pub fn outside_strings(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['"', '#']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        if found.starts_with('#') {
            rest = found.split_once('\n').map_or("", |(_, rest)| rest);
            out.push('\n');
            continue;
        }
        let end = if found.starts_with("\"\"\"") { "\"\"\"" } else { "\"" };
        let mut within = found.strip_prefix(end).unwrap();
        while !within.starts_with(end) {
            let escaped = within.starts_with('\\');
            within = within.split_at(within.char_indices().nth(1 + usize::from(escaped)).unwrap().0).1;
        }
        out.push_str("\"\"");
        rest = within.strip_prefix(end).unwrap();
    }
    out + rest
}

/// A small spec with a name of the author's in every place where there may be one.
fn named(name: &str, instance: &str) -> String {
    let quoted = serde_json::to_string(name).unwrap();
    format!(
        "trafo: 1\nname: {quoted}\nvocab: 11\ncontext: 8\nd_model: 8\nembed: {{position: learned}}\n\
         norm: layer_norm\ndecoder:\n  layers: 2\n  blocks:\n    b_{instance}: {{}}\n    other: {{ffn: {{expansion: 2}}}}\n  \
         pattern: [b_{instance}, other]\n  block: |\n    {instance} = x + attention[{instance}](norm(x))\n    \
         x = {instance} + ffn(norm({instance}))\n  attention: {{heads: 2}}\n  ffn: {{expansion: 4, activation: gelu}}\n\
         head: {{lm: {{tied: true}}}}\n"
    )
}

#[test]
fn hostile_names_stay_in_strings_and_comments() {
    let names = [
        "\"\"\"\nimport os\nos.system('true')\n\"\"\"",
        "x\"\"\" + __import__('os').name + \"\"\"",
        "ends with a quote\"",
        "ends with a backslash\\",
        "\\\"\"\"",
        "\u{202e}txt\u{2028}import os",
        "# a comment\r\nimport os",
        "class",
    ];
    let plain = emit(&compiled(&named("plain", "h")), "plain");
    let code = |text: &str| -> Vec<String> {
        // What is outside of docstrings and comments.
        let outside = text.split("\"\"\"").step_by(2).collect::<Vec<_>>().join("");
        let lines = outside.lines().map(|line| line.split("  #").next().unwrap_or("").trim_end().to_owned());
        lines.filter(|line| !line.starts_with('#') && !line.starts_with("Model = ")).collect()
    };
    for name in names {
        // The name of a file may have any character, that of a spec none that is hidden.
        let visible: String = name.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).collect();
        let text = emit(&compiled(&named(&visible, "h")), name);
        let (wanted, got) = (code(&plain), code(&text));
        let differ: Vec<(&String, &String)> = wanted.iter().zip(&got).filter(|(a, b)| a != b).collect();
        assert_eq!(wanted.len(), got.len(), "{name:?}");
        assert!(
            differ.iter().all(|(a, b)| a.starts_with("class ") && b.starts_with("class ")),
            "{differ:#?}"
        );
    }
}

#[test]
fn members_keep_their_names_whatever_python_thinks_of_them() {
    for instance in ["lambda", "train", "forward", "reset_parameters", "stacks", "self", "torch", "f"] {
        let text = emit(&compiled(&named("model", instance)), "spec.yaml");
        let is_attribute = name::is_attribute(instance);
        assert_eq!(text.contains(&format!("self.{instance} = ")), is_attribute, "{instance}");
        assert_eq!(text.contains(&format!("self._modules[\"{instance}\"] = ")), !is_attribute, "{instance}");
    }
    // PyTorch has a flag of this name in every module.
    let (graph, sources) = compiled_with_sources(&named("model", "training"));
    let why = refusal(&graph, &sources).unwrap();
    assert!(why.contains("`training` (spec.yaml:"), "{why}");
}

#[test]
fn text_that_python_cannot_read_is_refused() {
    let wrong = [
        ("x = \"a\n", "line 1: a string does not end on its line"),
        ("x = (1\n", "line 2: `(` is not closed"),
        ("x = [1)\n", "line 1: `)` closes no bracket"),
        ("if x:\ny = 1\n", "line 2: a block is not indented"),
        ("x = 1\n    y = 1\n", "line 2: a line is indented without a block"),
        ("if x:\n    y = 1\n  z = 1\n", "line 3: a line is indented like no block around it"),
        ("\"\"\"a\"\"\"\"\n", "line 1: a string does not end on its line"),
        ("x = a ? b\n", "line 1: `?` is outside of strings and comments"),
        ("x = 'a'\n", "line 1: `\\'` is outside of strings and comments"),
        ("# a\u{c}b\n", "line 1: `\\u{c}` is in a comment"),
        ("def f():\n", "line 2: the file ends where a block begins"),
        ("\"\"\"a\n", "line 2: the string that begins in line 1 does not end"),
    ];
    for (text, why) in wrong {
        assert_eq!(check(text), Err(why.to_owned()), "{text:?}");
    }
}

#[test]
fn every_file_of_the_runtime_can_be_written() {
    let listed: BTreeSet<&str> = runtime::files().collect();
    for entry in std::fs::read_dir(repository("src/emit/pytorch/runtime")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".py") else { continue };
        assert!(name == "__init__" || listed.contains(name), "{file} is in no list");
    }
}
