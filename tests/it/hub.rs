//! Hugging Face models: directories with weights and expected outputs, written by the library itself.
//!
//! A directory `tests/hub/<name>` contains `config.json`, `model.safetensors`, `inputs.json`,
//! `expected.safetensors` and `facts.json`. To add a test, add such a directory.

mod alone;
mod arrange;
mod code;
mod hostile;
mod keys;
#[cfg(feature = "interp")]
mod numbers;
#[cfg(feature = "interp")]
mod own;
mod published;
#[cfg(feature = "interp")]
mod real;
mod shorten;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use trafoc::compile::compile;
use trafoc::diag::{Sink, render};
use trafoc::hub::checkpoint::Checkpoint;
use trafoc::hub::export::{Exported, export};
use trafoc::hub::mapping::{Header, Mapping, Origin, map, parameters};
use trafoc::hub::shelf::{Families, SHELF};
use trafoc::hub::tensors::Tensors;
use trafoc::hub::written::tensors;
use trafoc::hub::{Imported, import};
use trafoc::ir::Verified;
use trafoc::names::formula::same;
use trafoc::source::SourceMap;
use trafoc::spec::{ModelSpec, load};
use trafoc::syntax::Notation;

use crate::compiled::repository;

/// Keys that have no effect next to the others of their configs, and therefore are not exported again.
const IDLE: &[(&str, &str)] = &[
    ("dinov2-giant", "hidden_act"),
    ("exaone4", "sliding_window_pattern"),
    ("exaone4-global", "sliding_window_pattern"),
    ("falcon", "num_kv_heads"),
    ("llama-longrope", "rope_parameters.factor"),
    ("mamba-body", "expand"),
    ("ministral3", "pad_token_id"),
    ("minimax_m2", "rotary_dim"),
    ("phi3", "rope_parameters.original_max_position_embeddings"),
    ("qwen2", "max_window_layers"),
    ("qwen2_moe", "intermediate_size"),
    ("qwen2_moe", "mlp_only_layers"),
    ("qwen3_moe", "intermediate_size"),
    ("qwen3_moe", "mlp_only_layers"),
    ("smollm3", "layer_types"),
];

/// A directory written by the library, and its import.
struct Fixture {
    name: String,
    folder: PathBuf,
    imported: Imported,
    spec: ModelSpec,
    graph: Verified,
}

/// The directories in the order of their names; each is imported and compiled once.
fn models() -> &'static [Fixture] {
    static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
        let folder = std::fs::read_dir(repository("tests/hub")).unwrap();
        let mut found: Vec<PathBuf> = folder.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
        found.sort();
        let model = |folder: PathBuf| {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(folder.join("config.json")).unwrap();
            let imported = imported(&name, &text).unwrap_or_else(|why| panic!("{name}: {why}"));
            let (spec, graph) = compiled(&imported);
            Fixture { name, folder, imported, spec, graph }
        };
        found.into_iter().map(model).collect()
    });
    &FIXTURES
}

/// The imported specs of the directories, by name.
#[cfg(feature = "interp")]
pub fn texts() -> impl Iterator<Item = (String, &'static str)> {
    models().iter().map(|model| (model.name.clone(), model.imported.text.as_str()))
}

fn shown(sink: Sink, sources: &SourceMap) -> String {
    render::render(&sink.into_sorted(), sources, false, 100)
}

/// Imports a config's text, or returns what is wrong with it.
fn imported(name: &str, text: &str) -> Result<Imported, String> {
    let mut sources = load::sources();
    let mut sink = Sink::new();
    let id = sources.add("config.json", text);
    let found = import(&Families::default(), name, id, &mut sources, &mut sink);
    found.ok_or_else(|| shown(sink, &sources))
}

fn compiled(model: &Imported) -> (ModelSpec, Verified) {
    let mut sources = load::sources();
    let id = sources.add("spec", model.text.clone());
    let found = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap();
    assert!(found.diagnostics.is_empty(), "{}", render::render(&found.diagnostics, &sources, false, 100));
    (found.spec.unwrap(), found.graph.unwrap())
}

fn mapped(model: &Imported, graph: &Verified, folder: &Path) -> (Checkpoint, Mapping) {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let names = model.names(checkpoint.names());
    let mapping = map(&parameters(graph).unwrap(), &names, model, &checkpoint);
    (checkpoint, mapping)
}

/// The numbers of a directory, by the paths of parameters.
fn numbers_of(model: &Imported, graph: &Verified, folder: &Path) -> Tensors {
    let (checkpoint, mapping) = mapped(model, graph, folder);
    Tensors::new(checkpoint, mapping).unwrap()
}

fn exported(spec: &ModelSpec, family: &str) -> Exported {
    let mut sources = load::sources();
    let mut sink = Sink::new();
    let found = export(spec, &Families::default(), Some(family), &mut sources, &mut sink);
    found.unwrap_or_else(|why| panic!("{}: {why:?} {}", spec.name, shown(sink, &sources)))
}

#[test]
fn every_family_file_is_known_and_sound() {
    let folder = std::fs::read_dir(repository("src/hub/families")).unwrap();
    let files: BTreeSet<String> = folder
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = SHELF.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, known, "the shelf and the folder differ");
    let families = Families::default();
    for name in families.names() {
        let mut sources = SourceMap::new();
        let mut sink = Sink::new();
        let family = families.read(name, &mut sources, &mut sink);
        assert!(family.is_some(), "{name}: {}", shown(sink, &sources));
    }
}

#[test]
fn configs_become_short_specs() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/hub"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        for model in models() {
            insta::assert_snapshot!(model.name.clone(), model.imported.text);
        }
    });
}

#[test]
fn parameters_are_as_many_as_the_library_counts() {
    for Fixture { name, folder, graph, .. } in models() {
        let facts = std::fs::read_to_string(folder.join("facts.json")).unwrap();
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        let wanted = u128::from(facts["parameters"].as_u64().unwrap());
        // The library counts fixed sinusoidal tables as parameters, although not all files contain them.
        let fixed = match name.as_str() {
            "marian" => 2 * 40 * 32,
            "marian-parts" | "pegasus" => 2 * 24 * 32,
            "fsmt" => 2 * 26 * 32,
            "roformer" => 24 * 8,
            // Without a tie there is a second bias, which is never used.
            "roberta-untied" | "albert-wide" => 97,
            // Weights of attention weights, which predict the contacts of residues.
            "esm" => 2 * 4 + 1,
            "esm-absolute" => 4 + 1,
            // The token of hidden patches, which only training with them reads.
            "dinov2_with_registers" => 32,
            // The correction of the router, which is not trained.
            "ernie4_5_moe" => 4,
            _ => 0,
        };
        let found = trafoc::report::cost::cost(graph).parameters.all().total;
        assert_eq!(found + fixed, wanted, "{name}");
    }
}

#[test]
fn every_tensor_has_its_place() {
    for Fixture { name, folder, imported, graph, .. } in models() {
        let (_, mapping) = mapped(imported, graph, folder);
        assert!(mapping.mismatches.is_empty(), "{name}: {:#?}", mapping.mismatches);
    }
}

/// Files from before 2019 use the names `gamma` and `beta`.
#[test]
fn older_ends_of_names_are_read() {
    struct Older<'a>(&'a Checkpoint);
    impl Older<'_> {
        fn renamed(name: &str) -> String {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        }
    }
    impl Header for Older<'_> {
        fn names(&self) -> Vec<&str> {
            Vec::new()
        }
        fn tensor(&self, name: &str) -> Option<(&str, &[usize])> {
            let known = self.0.names().find(|known| Self::renamed(known) == name)?;
            Header::tensor(self.0, known)
        }
    }
    let model = models().iter().find(|model| model.name == "bert-mlm").unwrap();
    let checkpoint = Checkpoint::open(&model.folder).unwrap();
    let names = model.imported.names(checkpoint.names());
    let mapping = map(&parameters(&model.graph).unwrap(), &names, &model.imported, &Older(&checkpoint));
    assert!(mapping.mismatches.is_empty(), "{:#?}", mapping.mismatches);
    let gammas = mapping
        .origins
        .values()
        .filter(|origin| matches!(origin, Origin::Tensor(name, _) if name.ends_with("LayerNorm.gamma")));
    assert!(gammas.count() > 2);
}

#[test]
fn a_config_comes_back_from_its_spec() {
    let mut wrong = Vec::new();
    for Fixture { name, imported: model, spec, .. } in models() {
        let back = exported(spec, &model.family.name);
        assert!(back.lost.is_empty(), "{name}: {:?}", back.lost);
        assert_eq!(back.head, model.head, "{name}");
        let config = back.config(&spec.name).to_string();
        let again = imported(name, &config).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(again.text, model.text, "{name}");
        for (key, value) in &model.values {
            let other = &again.values[key];
            // Two words for the same function are equal to a spec.
            let words = |v: &serde_json::Value| {
                let of =
                    |t: &serde_json::Map<_, serde_json::Value>| v.as_str().and_then(|w| t.get(w)).cloned();
                model.family.tables.values().find_map(of)
            };
            let agree = same(value, other) || (words(value).is_some() && words(value) == words(other));
            // A `null` may come back as the value that it means, and the names of classes as their number.
            let absent = value.is_null() || key == "id2label";
            let idle = IDLE.contains(&(name.as_str(), key.as_str()));
            if !(agree || absent || idle) {
                wrong.push(format!("{name}: {key} was {value} and is {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Readers from before `rope_parameters` find the keys they look for.
#[test]
fn positions_are_written_for_older_readers_too() {
    let written = |model: &str, more: serde_json::Value| {
        let text = std::fs::read_to_string(repository("tests/hub").join(model).join("config.json")).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let model_of = imported(model, &config.to_string()).unwrap();
        let back = exported(&compiled(&model_of).0, &model_of.family.name).config(model);
        assert_eq!(imported(model, &back.to_string()).unwrap().text, model_of.text);
        back
    };
    let plain = written("llama", serde_json::json!({}));
    assert_eq!(plain["rope_theta"], plain["rope_parameters"]["rope_theta"]);
    assert!(plain["rope_theta"].is_f64() && plain.get("rope_scaling").is_none(), "{plain}");
    let scaled = serde_json::json!({"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0,
        "original_max_position_embeddings": 10});
    let scaled = written("llama", serde_json::json!({"rope_parameters": scaled}));
    assert_eq!((&scaled["rope_theta"], &scaled["rope_scaling"]["factor"]), (&5000.0.into(), &4.0.into()));
    assert_eq!(scaled["rope_scaling"]["rope_type"], "yarn");
    let neox = written("gpt_neox", serde_json::json!({}));
    assert!(neox["rotary_emb_base"].is_f64() && neox["rotary_pct"].is_f64(), "{neox}");
    let gemma = written("gemma3_text", serde_json::json!({}));
    assert!(gemma["rope_theta"].is_f64() && gemma["rope_local_base_freq"].is_f64(), "{gemma}");
}

#[test]
fn weights_come_back_bit_for_bit() {
    for Fixture { name, folder, imported, spec, graph } in models() {
        let back = exported(spec, &imported.family.name);
        let parameters = parameters(graph).unwrap();
        let mut numbers = numbers_of(imported, graph, folder);
        let mut original = Checkpoint::open(folder).unwrap();
        let written = tensors(&parameters, &back.names(), &back).unwrap();
        // Newer versions of the library leave a prefix out, but read files with it as well.
        let in_file = |n: &str| match name.as_str() {
            "vit_msn" => n.replace("vit.encoder.", "encoder."),
            // These are written by their names from before 2019.
            "esm" | "esm-absolute" => {
                n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            }
            _ => n.to_owned(),
        };
        let ours: BTreeSet<String> = written.keys().map(String::as_str).map(in_file).collect();
        // Fixed tables, and what no forward pass uses, do not have to be written.
        let idle = |n: &str| match name.as_str() {
            "fsmt" | "pegasus" | "roformer" => n.contains("embed_positions"),
            "dinov2_with_registers" => n.ends_with("mask_token"),
            "esm" | "esm-absolute" => n.contains("contact_head") || n.ends_with("inv_freq"),
            "minimax" => n.ends_with("_decay") || n.ends_with("slope_rate"),
            _ => false,
        };
        // Without it the library would report that it is missing, but nothing reads it, so it has any numbers.
        let unused = |n: &str| match name.as_str() {
            "albert-wide" => n == "predictions.bias",
            "roberta-untied" => n == "lm_head.bias",
            _ => false,
        };
        let theirs = original.names().filter(|n| !idle(n));
        let theirs: BTreeSet<String> = theirs.map(str::to_owned).collect();
        assert_eq!(ours, theirs, "{name}");
        for (tensor, made) in &written {
            let tensor = &in_file(tensor);
            let mut values = vec![made.rest; made.shape.iter().product()];
            for part in &made.parts {
                let own = numbers.sized(&part.path, part.count()).unwrap();
                assert!(part.put(&own, &mut values), "{name}: {}", part.path);
            }
            assert_eq!(made.shape, original.entry(tensor).unwrap().shape, "{name}: {tensor}");
            let wanted = original.floats(tensor).unwrap();
            if unused(tensor) {
                continue;
            }
            let same = values.iter().zip(&wanted).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{name}: {tensor}");
        }
    }
}

/// A buffer that a family declares to be fixed is compared with its number, which half precision may have rounded.
#[test]
fn a_buffer_with_another_number_is_refused() {
    let model = models().iter().find(|model| model.name == "apertus").unwrap();
    let name = "model.layers.1.mlp.act_fn.beta";
    let with = |value: f32| {
        let (checkpoint, mut mapping) = mapped(&model.imported, &model.graph, &model.folder);
        let own = mapping.constants.iter_mut().find(|(tensor, _)| tensor == name).unwrap();
        own.1 = value;
        Tensors::new(checkpoint, mapping).map(|_| ()).map_err(|error| error.to_string())
    };
    with(0.501).unwrap();
    let why = with(0.4).unwrap_err();
    assert!(why.contains("`model.layers.1.mlp.act_fn.beta` should be 0.4, but is 0.5"), "{why}");
}

#[test]
fn what_no_family_can_say_is_named() {
    let text = "name: odd\nvocab: 97\ncontext: 40\nd_model: 32\nembed: {position: rotary}\nnorm: rms_norm\n\
                decoder: {layers: 2, attention: {heads: 4, bias: false, gate: headwise}, ffn: {glu: {bias: false}}}\n\
                head: lm\n";
    let mut sources = load::sources();
    let id = sources.add("spec", text);
    let spec = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap().spec.unwrap();
    let refused = export(&spec, &Families::default(), None, &mut sources, &mut Sink::new()).unwrap_err();
    assert_eq!(refused.knobs, ["decoder.attention.multi_head.gate: headwise, not none"]);
    // Nearly all of the time goes into comparing, so no spec is compared twice, and most are tried more than once.
    let work = refused.work;
    assert_eq!(work.compared, work.different, "{work:?}");
    assert!(2 * work.compared < work.tried, "{work:?}");
}

/// Newer models of Mistral have no window, which their configs say by `null`.
#[test]
fn what_no_window_is_for_mistral() {
    let text = "name: plain\nvocab: 97\ncontext: 24\nd_model: 32\nembed: {position: rotary}\nnorm: {rms_norm: {eps: 1e-6}}\n\
                decoder: {layers: 2, attention: {heads: 4, bias: false}, ffn: {glu: {hidden: 48, bias: false}}}\nhead: lm\n";
    let mut sources = load::sources();
    let id = sources.add("spec", text);
    let spec = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap().spec.unwrap();
    assert_eq!(exported(&spec, "mistral").values.get("sliding_window"), Some(&serde_json::Value::Null));
}

/// The library refuses a number of segments that is null, and without a number BERT has segments.
#[test]
fn what_the_library_needs_is_no_null() {
    let text = "name: plain\nvocab: 97\ncontext: 40\nd_model: 32\nembed: {position: learned, norm: layer_norm}\n\
                encoder: {layers: 2, attention: {heads: 4}, ffn: {expansion: 4}, final_norm: false, block: \"x = \
                norm(x + attention(x)); x = norm(x + ffn(x))\"}\nhead: mlm\n";
    let mut sources = load::sources();
    let id = sources.add("spec", text);
    let spec = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap().spec.unwrap();
    for family in ["bert", "electra", "albert", "ernie"] {
        let refused = export(&spec, &Families::default(), Some(family), &mut sources, &mut Sink::new());
        let knobs = refused.unwrap_err().knobs;
        assert!(knobs.iter().any(|knob| knob.contains("segments")), "{family}: {knobs:?}");
    }
}

#[test]
fn shipped_specs_find_a_family() {
    let cases = [
        ("gpt2-small", "gpt2"),
        ("llama3-8b", "llama"),
        ("mistral-7b", "mistral"),
        ("mixtral-8x7b", "mixtral"),
        ("gemma2-2b", "gemma2"),
        ("pythia-160m", "gpt_neox"),
        ("bert-base", "bert"),
        ("vit-b16", "vit"),
        ("t5-small", "t5"),
        ("bart-base", "bart"),
    ];
    for (name, family) in cases {
        let mut sources = load::sources();
        let text = std::fs::read_to_string(repository(&format!("specs/{name}.yaml"))).unwrap();
        let id = sources.add(name, text);
        let spec = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap().spec.unwrap();
        assert_eq!(exported(&spec, family).family.name, family, "{name}");
    }
}

/// A config may leave out everything except the type of the model.
#[test]
fn what_a_config_leaves_out_has_the_usual_value() {
    let families = Families::default();
    let mut sources = SourceMap::new();
    for name in families.names() {
        let family = families.read(name, &mut sources, &mut Sink::new()).unwrap();
        for class in family.architectures.keys() {
            let mut config = serde_json::json!({"model_type": family.models[0], "architectures": [class]});
            // With its own value the library rotates 22 features of 42 by the frequencies of 21.
            if name == "glm4_moe" {
                config["head_dim"] = 128.into();
            }
            imported(name, &config.to_string()).unwrap_or_else(|why| panic!("{class}: {why}"));
        }
    }
}

/// Keys mean what they mean to the classes of `transformers` 5.23: their own bases of rotary positions, lengths and factors that
/// a class does not read, and keys of published files that none does.
#[test]
fn keys_mean_what_they_mean_to_the_library() {
    let of = |config: serde_json::Value| imported("m", &config.to_string());
    let spec = |config: serde_json::Value| of(config).unwrap_or_else(|why| panic!("{why}")).text;
    let rope = |kind: &str| serde_json::json!({"rope_type": kind, "factor": 2.0, "original_max_position_embeddings": 64});
    assert!(spec(serde_json::json!({"model_type": "nomic_bert"})).contains("theta: 1000}"));
    assert!(spec(serde_json::json!({"model_type": "bitnet"})).contains("theta: 500000"));
    let llama = |key: &str, value: serde_json::Value| {
        let mut config = serde_json::json!({"model_type": "llama", "max_position_embeddings": 128});
        config[key] = value;
        of(config)
    };
    let dynamic = llama("rope_parameters", rope("dynamic")).unwrap().text;
    // Also where it equals the context, which may be set.
    assert!(dynamic.contains("dynamic: {factor: 2, original_context: 128}"), "{dynamic}");
    let linear =
        llama("rope_parameters", serde_json::json!({"rope_type": "linear", "factor": 2.0})).unwrap().text;
    assert!(linear.contains("linear"), "{linear}");
    assert!(llama("partial_rotary_factor", 0.5.into()).unwrap_err().contains("not supported"));
    llama("partial_rotary_factor", 1.0.into()).unwrap();
    assert!(
        of(serde_json::json!({"model_type": "gemma3_text", "attn_logit_softcapping": 50.0}))
            .unwrap_err()
            .contains("not supported")
    );
    // Python writes infinity as a word that JSON does not have.
    let text = r#"{"model_type": "mamba2", "norm_before_gate": true, "time_step_limit": [0.0, Infinity]}"#;
    imported("m", text).unwrap();
    imported("m", &text.replace("Infinity", "1.0")).unwrap_err();
    for config in [
        serde_json::json!({"model_type": "mamba", "d_inner": 8, "ssm_cfg": {}, "fused_add_norm": true}),
        serde_json::json!({"model_type": "phi3", "attention_bias": false}),
        serde_json::json!({"model_type": "lfm2", "rope_theta": 1000.0, "conv_dim": 8, "block_use_swiglu": true}),
    ] {
        spec(config);
    }
}

/// Defaults that depend on whether a map is present, and heads that exclude some value of a key.
#[test]
fn what_a_config_says_of_a_head_or_a_map_counts() {
    let of = |config: serde_json::Value| imported("m", &config.to_string());
    let of_rope = |rope: serde_json::Value| {
        let mut config = serde_json::json!({"model_type": "gpt_oss"});
        config.as_object_mut().unwrap().extend(rope.as_object().unwrap().clone());
        of(config).unwrap().text
    };
    for rope in [serde_json::json!({}), serde_json::json!({"rope_theta": 5000.0, "rope_scaling": null})] {
        assert!(of_rope(rope).contains("yarn: {factor: 32, original_context: 4096, truncate: false}"));
    }
    let plain = serde_json::json!({"rope_parameters": {"rope_theta": 5000.0}});
    assert!(!of_rope(plain).contains("scaling"));
    let opt = |class: &str, tied: bool| {
        of(serde_json::json!({"model_type": "opt", "architectures": [class], "word_embed_proj_dim": 512,
            "tie_word_embeddings": tied}))
    };
    assert!(opt("OPTForCausalLM", true).is_ok() && opt("OPTForSequenceClassification", false).is_ok());
    for (class, tied) in [("OPTForCausalLM", false), ("OPTModel", true)] {
        let why = opt(class, tied).unwrap_err();
        assert!(
            why.contains(&format!("`word_embed_proj_dim` is 512, which is not supported with {class}")),
            "{why}"
        );
    }
}

/// The target that the library derives itself.
#[test]
fn a_target_that_is_not_given_is_the_source_one_place_on() {
    let target = |name: &str| {
        let model = models().iter().find(|model| model.name == name).unwrap();
        model.imported.target.unwrap()
    };
    let source = serde_json::json!({"source": [[0, 5, 2, 7, 1]]});
    let found = target("bart-classify").completed(source.clone());
    assert_eq!(found["target"], serde_json::json!([[2, 0, 5, 2, 7]]));
    assert_eq!(found["mask"], serde_json::json!([[1, 1, 1, 0, 0]]));
    assert_eq!(target("mbart-classify").completed(source)["target"], serde_json::json!([[7, 0, 5, 2, 7]]));
    let given = serde_json::json!({"source": [[0, 5, 2]], "target": [[2, 7]]});
    assert_eq!(target("bart-classify").completed(given.clone()), given);
}

/// Everything that is wrong with a config is reported in one run, each error once and at its place.
#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = std::fs::read_to_string(repository("tests/hub/llama/config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |more: serde_json::Value| {
        let mut odd = config.clone();
        odd.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        imported("odd", &serde_json::to_string_pretty(&odd).unwrap()).unwrap_err()
    };
    let why = of(serde_json::json!({
        "hidden_size": "context", "num_hidden_layers": -3, "hidden_act": "cosine", "rms_norm_eps": [1],
        "vocab_size": 1.5, "attention_bias": "no", "num_key_value_heads": {}, "bar": 1,
        "rope_parameters": "x", "architectures": ["Foo"], "attention_dropout": 7,
    }));
    let wanted = [
        "`hidden_size` is \"context\", but must be a number",
        "`num_hidden_layers`: -3 is not between 1 and",
        "`hidden_act`: `cosine` is not one of",
        "`rms_norm_eps` is [1], but must be a number",
        "`vocab_size`: 1.5 is not a whole number",
        "`attention_bias` is \"no\", but must be true or false",
        "`num_key_value_heads` is {}, but must be a number",
        "the family llama has no key `bar`",
        "`rope_parameters` must be a map",
        "the family llama has no class `Foo`",
        "`attention_dropout`: 7 is not",
    ];
    for wanted in wanted {
        assert_eq!(why.matches(wanted).count(), 1, "{wanted}\n{why}");
    }
    assert_eq!(why.matches("error[").count(), wanted.len(), "{why}");
    assert!(!why.contains("<import>"), "{why}");
    let why = of(serde_json::json!({"num_key_value_heads": 3}));
    assert!(why.contains("`num_key_value_heads`: kv_heads (3) does not divide heads (4)"), "{why}");
    assert!(!why.contains("<import>"), "{why}");
    let why = of(serde_json::json!({"hidden_size": null}));
    assert!(why.contains("the spec needs `d_model`") && why.contains("`hidden_size` is null here"), "{why}");
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    let folder = repository("tests/hub/llama");
    let text = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let odd = text.replace("\"attention_bias\"", "\"atention_bias\"");
    let why = imported("odd", &odd).unwrap_err();
    assert!(why.contains("error[unknown-key]: the family llama has no key `atention_bias`"), "{why}");
    assert!(why.contains("did you mean `attention_bias`?") && why.contains("config.json:"), "{why}");
    let odd = text.replace("\"hidden_act\": \"silu\"", "\"hidden_act\": \"cosine\"");
    let why = imported("odd", &odd).unwrap_err();
    assert!(why.contains("`hidden_act`: `cosine` is not one of"), "{why}");
    let odd = text.replace("\"model_type\": \"llama\"", "\"model_type\": \"lama\"");
    let why = imported("odd", &odd).unwrap_err();
    assert!(why.contains("trafoc has no family for `lama`") && why.contains("`llama` is supported"), "{why}");
    let why = imported("odd", &text.replace("\"llama\"", "\"qwen2_vl\"")).unwrap_err();
    assert!(why.contains("`qwen2_vl` is a model that reads pictures") && !why.contains("supported"), "{why}");
}

/// A fragment that uses itself, or fragments that use each other, end with an error.
#[test]
fn fragments_in_a_circle_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "shared.yaml",
        "fragments: {one: {spec: {a: {use: two}}}, two: {spec: {b: {use: one}, c: {use: one}}}}\n",
    );
    write("circle.yaml", "models: [circle]\nspec: {decoder: {use: one}}\n");
    let families = Families::new(Some(folder.path())).unwrap();
    let mut sink = Sink::new();
    families.read("circle", &mut SourceMap::new(), &mut sink);
    let found = sink.into_sorted();
    assert!(found.iter().any(|d| d.message.contains("perhaps in a cycle")), "{found:?}");
}
