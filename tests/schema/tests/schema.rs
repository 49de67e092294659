//! The schema of specs and recipes, by a validator of others: one of our own would share our mistakes. This is a
//! package of its own because what the validator needs would build burn with other features.

#[path = "../../it/random.rs"]
mod random;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use trafoc::compile::compile;
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::expand::expand;
use trafoc::spec::load;
use trafoc::syntax::Notation;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The specs in YAML of a folder, by name.
fn specs(folder: &str) -> Vec<(String, PathBuf)> {
    let found = std::fs::read_dir(repository(folder)).unwrap().map(|e| e.unwrap().path());
    let mut found: Vec<(String, PathBuf)> = found
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    found.sort();
    found
}

/// The files of one folder.
struct Folder(&'static str);

impl load::Files for Folder {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let text = std::fs::read_to_string(repository(self.0).join(path)).map_err(|e| e.to_string())?;
        let notation = if path.ends_with(".trafo") { Notation::Dsl } else { Notation::Yaml };
        Ok((sources.add(path, text), notation))
    }
}

/// A spec with every default.
fn expanded(text: &str, folder: &'static str) -> String {
    let mut sources = load::sources();
    let id = sources.add("spec", text.to_owned());
    let found = compile(&mut sources, id, Notation::Yaml, &[], &mut Folder(folder)).unwrap();
    expand(&found.spec.unwrap(), Notation::Yaml)
}

/// A validator of draft-07 by others.
fn validator(schema: &Json) -> jsonschema::Validator {
    jsonschema::draft7::new(schema).unwrap_or_else(|why| panic!("no schema of draft-07: {why}"))
}

#[test]
fn the_schema_accepts_what_is_right_and_refuses_much_that_is_wrong() {
    let schema = trafoc::spec::schema::schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let schema = validator(&schema);
    let recipes = trafoc::learn::recipe::schema();
    let recipes = validator(&recipes);
    let read = |text: &str| serde_yaml_archived::from_str::<Json>(text).unwrap();
    for entry in trafoc::cli::shelf::SHELF {
        assert!(schema.is_valid(&read(entry.text)), "{} does not fit", entry.name);
        let expanded = expanded(entry.text, "specs");
        assert!(schema.is_valid(&read(&expanded)), "{} expanded does not fit:\n{expanded}", entry.name);
    }
    for code in trafoc::diag::Code::ALL {
        let right = code.explanation().right;
        // Some examples are recipes, one is a setting, one a file of data.
        let schema = if right.starts_with("recipe:") { &recipes } else { &schema };
        if !right.starts_with("--set") && *code != trafoc::diag::Code::BadData {
            assert!(schema.is_valid(&read(right)), "the right example of {code} does not fit");
        }
    }
    // Those of the guide have parts of one's own and of the library in many places. The error that a spec has is the
    // block after it.
    let guide = std::fs::read_to_string(repository("docs/parts.md")).unwrap();
    let blocks = guide.split("```yaml\n").skip(1).map(|block| block.split_once("```").unwrap());
    let is_right = |rest: &str| rest.split_once("```").is_none_or(|(_, next)| !next.starts_with("text"));
    for (text, _) in blocks.filter(|(_, rest)| is_right(rest)) {
        assert!(schema.is_valid(&read(text)), "a spec of the guide does not fit:\n{text}");
    }
    for entry in std::fs::read_dir(repository("specs/recipes")).unwrap() {
        let path = entry.unwrap().path();
        let recipe = read(&std::fs::read_to_string(&path).unwrap());
        assert!(recipes.is_valid(&recipe), "{} does not fit", path.display());
    }
    assert!(!recipes.is_valid(&read("recipe: 1\ndata: {format: line, train: a}")));
    assert!(!recipes.is_valid(&read("recipe: 1\ndata: {format: lines}")));
    let wrong = "\
        heeads: 1
        vocab: [1]
        norm: [layer_norm]
        norm: {layer_norm: {}, rms_norm: {}}
        decoder: {layers: 1, attention: {haeds: 2}}
        decoder: {layers: 1, ffn: {activation: gelo}}
        decoder: {layers: 1, attention3x: {heads: 2}}
        head: {lm: {tied: 1}}
        embed: {position: {rotary: {pairing: whole}}}
        init: {normal: {std: [1]}}";
    for wrong in wrong.lines().map(str::trim) {
        // A spec that extends another need not be whole, and the other may define the parts that this one names.
        let wrong = format!("extends: base.yaml\n{wrong}");
        assert!(!schema.is_valid(&read(&wrong)), "{wrong} fits");
    }
    assert!(schema.is_valid(&read("extends: base.yaml\ndecoder: {layers: 1}")));
    // A spec that stands alone can only name the parts of the catalogue and of the library.
    let alone = |norm: &str| {
        let decoder = "{layers: 1, attention: {heads: 2}, ffn: {expansion: 2}}";
        read(&format!(
            "name: a\nvocab: 8\ncontext: 8\nd_model: 8\nnorm: {norm}\ndecoder: {decoder}\nhead: lm"
        ))
    };
    let found: Vec<String> = schema.iter_errors(&alone("layer_norm")).map(|e| e.to_string()).collect();
    assert!(found.is_empty(), "{found:?}");
    assert!(!schema.is_valid(&alone("layernorm")));
}

/// Every spec that the compiler takes is right for an editor too, and most that it refuses are wrong there. What
/// is left needs arithmetic, other files, or names that a spec gives itself.
#[test]
fn the_schema_says_as_much_as_a_schema_can() {
    let schema = validator(&trafoc::spec::schema::schema());
    let read =
        |path: &std::path::Path| serde_yaml_archived::from_slice::<Json>(&std::fs::read(path).unwrap()).ok();
    let read_text = |text: &str| serde_yaml_archived::from_str::<Json>(text).unwrap();
    for (name, path) in specs("tests/good") {
        if path.extension().is_some_and(|e| e == "yaml") {
            let found: Vec<String> = read(&path)
                .map(|spec| {
                    schema.iter_errors(&spec).map(|e| format!("{}: {e}", e.instance_path())).collect()
                })
                .unwrap_or_default();
            assert!(found.is_empty(), "{name}: {found:?}");
            // So is what it is with every default in its place.
            let expanded = expanded(&std::fs::read_to_string(&path).unwrap(), "tests/good");
            let spec: Json = serde_yaml_archived::from_str(&expanded).unwrap();
            let found: Vec<String> =
                schema.iter_errors(&spec).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(found.is_empty(), "{name} expanded: {found:?}\n{expanded}");
        }
    }
    // A variant is a spec of its own, and so is what a mistake would be in another notation.
    for right in [
        "let: {alpha: 0.5}\nd_model: 16 * alpha",
        "sweep: {deep: {decoder.layers: 4}}",
        "context: 1_000",
        "context: 2^30",
        "context: 8 # as in the paper",
        "decoder: {layers: 12, attention: {heads: 2}, ranges: {\"10..12\": {ffn: {hidden: 8}}}}",
    ] {
        let right = read_text(&format!("extends: base.yaml\n{right}"));
        let found: Vec<String> = schema.iter_errors(&right).map(|e| e.to_string()).collect();
        assert!(found.is_empty(), "{right}: {found:?}");
    }
    // What is wrong by the same rules as in `tests/bad`, with other numbers and names.
    for wrong in [
        "d_model: 96\ndecoder: {layers: 2, attention: {heads: 9}}",
        "d_model: 96\nencoder: {layers: 2, attention: {multi_head: {heads: 64}}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 12, kv_heads: 8}}",
        "d_model: 8\ndecoder: {layers: 12, share: 5, attention: {heads: 2}}",
        "d_model: 8\ndecoder: {layers: 12, attention: {heads: 2}, ranges: {\"11..14\": {ffn: {hidden: 8}}}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, ffn: {moe: {experts: 8, top_k: 9, expert: mlp}}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, ffn: {moe: {experts: 8, expert: mlp}}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2, mask: [chunk, {window: 3}, {chunk: 2}]}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, norm4: none}",
        "d_model: 3^60\ndecoder: {layers: 2, attention: {heads: 2}}",
        "d_model: 1023/5\ndecoder: {layers: 2, attention: {heads: 2}}",
        "d_model: 8\nnorm: {rms_norm: {affine: false, unit_offset: true}}\ndecoder: {layers: 2, attention: {heads: 2}}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, block: \"h = ffn(x)\\nx = x + attention(x)\"}",
        "d_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, block: \"x = x + attention(x) + x ^ 3\"}",
        "d_model: 8\nparts: {cube: \"h = tanh(x)\\nh + x ^ 3\"}\ndecoder: {layers: 2, attention: {heads: 2}, ffn: cube}",
    ] {
        let text = format!("trafo: 1\nname: wrong\nvocab: 64\ncontext: 8\n{wrong}\nhead: lm");
        assert!(!schema.is_valid(&read_text(&text)), "{wrong} fits");
    }
    let (mut refused, mut accepted, mut unread) = (0, Vec::new(), 0);
    for (name, path) in specs("tests/bad") {
        match read(&path) {
            Some(spec) if schema.is_valid(&spec) => accepted.push(name),
            Some(_) => refused += 1,
            None => unread += 1,
        }
    }
    let all = refused + accepted.len() + unread;
    let share = 100 * (refused + unread) / all;
    assert!(share >= LEAST_REFUSED, "{share} % of {all} refused, {unread} no YAML; accepted: {accepted:?}");
}

/// Percent of `tests/bad` that an editor with the schema refuses.
const LEAST_REFUSED: usize = 80;

/// Whatever the compiler takes, an editor takes too: random specs, each as it is written and with every default, and
/// every other file of the tests that is a sound spec.
#[test]
fn the_schema_refuses_nothing_that_is_right() {
    let schema = validator(&trafoc::spec::schema::schema());
    let accepts = |name: &str, text: &str| {
        let spec: Json = serde_yaml_archived::from_str(text).unwrap();
        let found: Vec<String> =
            schema.iter_errors(&spec).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(found.is_empty(), "{name}: {found:?}\n{text}");
    };
    for seed in 0..RANDOM {
        let text = random::spec(&tape(seed));
        accepts("a random spec", &text);
        accepts("an expanded random spec", &expanded(&text, "tests/good"));
    }
    let mut sound = 0;
    for folder in
        ["tests/hostile", "tests/numeric", "tests/weights", "tests/picture", "tests/compare", "tests/memory"]
    {
        for (name, path) in specs(folder) {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let mut sources = load::sources();
            let id = sources.add("spec", text.clone());
            let is_sound = compile(&mut sources, id, Notation::Yaml, &[], &mut Folder(folder))
                .is_ok_and(|found| found.spec.is_some());
            // Large ones take a validator long, and anchors are resolved before it sees them.
            if is_sound && text.len() < 100_000 && serde_yaml_archived::from_str::<Json>(&text).is_ok() {
                accepts(&name, &text);
                sound += 1;
            }
        }
    }
    assert!(sound > 20, "only {sound} sound specs were found");
}

/// How many random specs are tried.
const RANDOM: u64 = 300;

/// The numbers that determine a random spec (Knuth's linear congruential generator, MMIX).
fn tape(seed: u64) -> Vec<u16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 48) as u16
    };
    (0..160).map(|_| next()).collect()
}
