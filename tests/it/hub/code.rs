//! Directories with code of their own: what is written for every spec, and what is read back. That Hugging
//! Face's library uses them is tested by `tests/pytorch/hub.py`.

use std::collections::BTreeMap;

use trafoc::emit::MARK;
use trafoc::hub::code::{Code, SPEC, code};
use trafoc::hub::mapping::{Header, map, parameters};
use trafoc::hub::own_names::weights;
use trafoc::ir::Verified;
use trafoc::source::SourceMap;
use trafoc::spec::ModelSpec;

use super::{compiled, imported};
use crate::compiled::specs;
use crate::front::Front;
use crate::pytorch::outside_strings;

fn fixtures() -> Vec<(String, ModelSpec, Verified, SourceMap)> {
    let all = specs("specs").into_iter().chain(specs("tests/good"));
    all.map(|(name, path)| {
        let front = Front::of_file(&path);
        let compilation = front.compilation.clone();
        (name, compilation.spec.unwrap(), compilation.graph.unwrap(), front.sources.clone())
    })
    .collect()
}

fn coded(spec: &ModelSpec, graph: &Verified, sources: &SourceMap) -> Code {
    code(graph, spec, sources, "spec.yaml").unwrap()
}

/// Tensors by name and shape.
struct Listed(BTreeMap<String, Vec<usize>>);

impl Header for Listed {
    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
    fn tensor(&self, name: &str) -> Option<(&str, &[usize])> {
        self.0.get(name).map(|shape| ("F32", shape.as_slice()))
    }
}

#[test]
fn every_spec_is_read_back_from_its_config() {
    for (name, spec, graph, sources) in fixtures() {
        let made = coded(&spec, &graph, &sources);
        let model = imported("model", &made.config.to_string()).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(model.architecture, made.architecture, "{name}");
        let (own, again) = compiled(&model);
        assert_eq!(own, ModelSpec { weights: None, ..spec.clone() }, "{name}");
        // Models with more tensors than a file may have are not exported.
        let Ok(all) = parameters(&again) else { continue };
        // The library puts a prefix before the names of what it saves.
        for prefix in ["", "model."] {
            let there = all.iter().map(|(path, shape)| (format!("{prefix}{path}"), shape.clone())).collect();
            let there = Listed(there);
            let mapping = map(&all, &model.names(there.names()), &model, &there);
            assert!(mapping.mismatches.is_empty(), "{name}: {:?}", mapping.mismatches);
            assert_eq!(mapping.origins.len(), all.len(), "{name}");
            let rows = weights(&model, Some(&there.names()), &again);
            // Tensors that have the names of parameters need no `weights`.
            assert_eq!(rows.entries().is_none_or(<[_]>::is_empty), prefix.is_empty(), "{name}");
        }
    }
}

#[test]
fn the_files_are_complete() {
    for (name, spec, graph, sources) in fixtures() {
        let made = coded(&spec, &graph, &sources);
        let files: BTreeMap<&str, &str> = made
            .files
            .iter()
            .map(|(file, text)| (file.strip_suffix(".py").unwrap(), text.as_str()))
            .collect();
        for (file, text) in &files {
            assert!(text.lines().next().unwrap().contains(MARK), "{name}: {file}");
            for left in ["PLACEHOLDER", "placeholder", "MODEL_TYPE"] {
                assert!(!text.contains(left), "{name}: {file} has {left}");
            }
            for line in text.lines().filter_map(|line| line.strip_prefix("from .")) {
                let (module, items) = line.split_once(" import ").unwrap();
                let other = files.get(module).unwrap_or_else(|| panic!("{name}: {file} needs {module}"));
                for item in items.trim_matches(['(', ')']).split(", ").filter(|item| !item.is_empty()) {
                    let kinds = ["class ", "def ", ""].map(|kind| format!("\n{kind}{item}"));
                    assert!(kinds.iter().any(|kind| other.contains(kind)), "{name}: {module} has no {item}");
                }
            }
        }
        for class in made.config["auto_map"].as_object().unwrap().values() {
            let (module, class) = class.as_str().unwrap().split_once('.').unwrap();
            assert!(files[module].contains(&format!("\nclass {class}(")), "{name}: {module} has no {class}");
        }
    }
}

/// The library refuses a single class of which one is chosen, and `generate` passes on only what `forward`
/// names.
#[test]
fn the_library_accepts_one_class_and_languages() {
    let made = |rest: &str| {
        let text = format!("trafo: 1\nname: small\nvocab: 32\ncontext: 8\nd_model: 8\n{rest}\n");
        let front = Front::of_text("spec.yaml", &text, "tests");
        let compilation = front.compilation.clone();
        coded(&compilation.spec.unwrap(), &compilation.graph.unwrap(), &front.sources)
    };
    let problem = |classes: u32| {
        let head = format!("head: {{classify: {{classes: {classes}}}}}");
        let config = made(&format!("encoder: {{layers: 1, attention: {{heads: 2}}}}\n{head}")).config;
        config.get("problem_type").cloned()
    };
    assert_eq!(problem(1), None);
    assert_eq!(problem(2), Some("single_label_classification".into()));

    let files = made("embed: {languages: 3}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm").files;
    let (_, text) = files.iter().find(|(file, _)| file == "decoding.py").unwrap();
    let (_, class) = text.split_once("\nclass CausalLM(").unwrap();
    let (_, forward) = class.split_once("    def forward(\n").unwrap();
    let (parameters, body) = forward.split_once("    ) -> ").unwrap();
    assert!(parameters.contains("        language: Tensor | None = None,\n"), "{parameters}");
    assert!(body.contains("language=language"), "{body}");
    // A language is that of a whole sequence, and is not joined to those of earlier calls.
    let (_, extend) = text.split_once("    def extend(").unwrap();
    assert!(extend.contains("None if name == \"language\" else"), "{extend}");
}

#[test]
fn a_config_that_contradicts_its_spec_is_refused() {
    let (_, spec, graph, sources) = fixtures().into_iter().find(|(name, ..)| name == "doc-classify").unwrap();
    let config = coded(&spec, &graph, &sources).config;
    let with = |key: &str, value: serde_json::Value| {
        let mut config = config.clone();
        config[key] = value;
        imported("model", &config.to_string())
    };
    let why = with("hidden_size", 17.into()).unwrap_err();
    assert!(why.contains("`hidden_size` is 17, and the spec in `trafo_spec` gives"), "{why}");
    let why = with("id2label", serde_json::json!({"0": "one"})).unwrap_err();
    assert!(why.contains("`num_labels` is 1"), "{why}");
    let why = with(SPEC, serde_json::json!(["a"])).unwrap_err();
    assert!(why.contains("not the text of a spec"), "{why}");
    // What concerns only the use of a model may change.
    let model = with("eos_token_id", 3.into()).unwrap();
    assert!(model.passed.contains(&"eos_token_id".to_owned()), "{:?}", model.passed);
    // The reason of a spec with an error is given where it is compiled.
    assert!(with(SPEC, "trafo: 1".into()).is_ok());
}

/// As many names as a spec may have classes would not fit into memory.
#[test]
fn very_many_classes_are_a_number_in_the_config() {
    for (classes, are_named) in [(3_u64, true), (1 << 40, false)] {
        let text = format!(
            "trafo: 1\nname: many\nvocab: 32\ncontext: 8\nd_model: 8\n\
             decoder: {{layers: 1, attention: {{heads: 2}}, ffn: {{hidden: 8}}}}\n\
             head: {{classify: {{pool: last, classes: {classes}}}}}\n"
        );
        let front = Front::of_text("spec.yaml", &text, "tests");
        let spec = front.compilation.spec.clone().unwrap();
        let made = coded(&spec, front.compilation.graph.as_ref().unwrap(), &front.sources);
        assert_eq!(made.config.get("id2label").is_some(), are_named);
        assert_eq!(made.config.get("num_labels").is_none(), are_named);
        let (own, _) = compiled(&imported("model", &made.config.to_string()).unwrap());
        assert_eq!(own, ModelSpec { weights: None, ..spec });
    }
}

#[test]
fn names_of_models_cannot_be_mistaken_for_code() {
    for name in ["placeholder", "class", "import os", "9-lives", "decoding", "\"\"\"", "Müller", "MODEL_TYPE"]
    {
        let text = format!(
            "trafo: 1\nname: {}\nvocab: 32\ncontext: 8\nd_model: 8\n\
             decoder: {{layers: 1, attention: {{heads: 2}}}}\nhead: lm\n",
            serde_json::to_string(name).unwrap()
        );
        let front = Front::of_text("spec.yaml", &text, "tests");
        let (Some(spec), Some(graph)) = (front.compilation.spec.clone(), front.compilation.graph.clone())
        else {
            continue;
        };
        let made = coded(&spec, &graph, &front.sources);
        let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        for (file, text) in &made.files {
            let module = file.strip_suffix(".py").unwrap();
            assert!(
                is_word(module) && module.starts_with(|c: char| c.is_ascii_lowercase()),
                "{name}: {file}"
            );
            let classes = text.lines().filter_map(|line| line.strip_prefix("class "));
            for class in classes {
                let class = class.split(['(', ':']).next().unwrap();
                assert!(
                    is_word(class) && class.starts_with(|c: char| c.is_ascii_uppercase()),
                    "{name}: {class}"
                );
            }
        }
    }
}

#[test]
fn hostile_names_stay_in_strings_and_comments() {
    let made = |name: &str, file: &str| {
        let quoted = serde_json::to_string(name).unwrap();
        let text = format!(
            "trafo: 1\nname: {quoted}\nvocab: 11\ncontext: 8\nd_model: 8\ndecoder: {{layers: 2, attention: {{heads: 2}}}}\nhead: lm\n"
        );
        let front = Front::of_text("spec.yaml", &text, "specs");
        let compilation = front.compilation.clone();
        code(&compilation.graph.unwrap(), &compilation.spec.unwrap(), &front.sources, file).unwrap()
    };
    let plain = made("plain", "spec.yaml");
    for name in [
        "class",
        "import os",
        "\"\"\"",
        "x\"\"\" + __import__('os').name + \"\"\"",
        "a\\",
        "# {0} %s \\N{DIGIT ONE}",
    ] {
        // The name of a file may have line breaks too.
        let hostile = made(name, &format!("{name}\nimport os"));
        assert_eq!(plain.files.len(), hostile.files.len(), "{name:?}");
        for ((_, wanted), (file, text)) in plain.files.iter().zip(&hostile.files) {
            let (wanted, text) = (outside_strings(wanted), outside_strings(text));
            assert_eq!(wanted.lines().count(), text.lines().count(), "{name:?}: {file}");
            // What Python calls the model and its files are words made of the name.
            let is_named = |line: &str| {
                let starts = ["class ", "Model = ", "from .configuration_", "    config_class = "];
                let is_word = |c: char| c.is_ascii_alphanumeric() || " _.=():".contains(c);
                starts.iter().any(|start| line.starts_with(start)) && line.chars().all(is_word)
            };
            for (wanted, line) in wanted.lines().zip(text.lines()) {
                assert!(wanted == line || is_named(line), "{name:?}: {file}: {line}");
            }
            assert!(file.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')), "{file:?}");
        }
    }
}
