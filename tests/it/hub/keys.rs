//! What single keys of configs mean to the classes of `transformers` 5.23, in both directions: what a config with them
//! becomes, and what is written into one.

use serde_json::{Value as Json, json};

use trafoc::hub::mapping::parameters;
use trafoc::hub::written::tensors;

use super::{compiled, exported, imported};
use crate::compiled::repository;

/// The config of a directory of `tests/hub` with other values.
fn config(name: &str, more: Json) -> Json {
    let text = std::fs::read_to_string(repository("tests/hub").join(name).join("config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&text).unwrap();
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// The spec of such a config, without a key of it.
fn spec(name: &str, without: &str, more: Json) -> String {
    let mut config = config(name, more);
    config.as_object_mut().unwrap().remove(without);
    imported(name, &config.to_string()).unwrap_or_else(|why| panic!("{name}: {why}")).text
}

/// The config that is written for the spec of such a config.
fn written(name: &str, more: Json) -> Json {
    let model = imported(name, &config(name, more).to_string()).unwrap();
    let back = exported(&compiled(&model).0, &model.family.name).config(name);
    assert_eq!(imported(name, &back.to_string()).unwrap().text, model.text, "{name}");
    back
}

/// Experts without an activation are those of a family, whose word for it is a translation of `none`.
#[test]
fn no_activation_is_a_value() {
    for name in ["deepseek_v2", "qwen3_moe", "granitemoehybrid"] {
        assert_eq!(written(name, json!({"hidden_act": "linear"}))["hidden_act"], "linear", "{name}");
    }
}

/// The width of Mamba layers is a multiple of the number of their heads, also where there are no such layers.
#[test]
fn models_without_mamba_layers_have_whole_heads() {
    for (name, layers) in [
        ("granitemoehybrid-dense", json!({"layer_types": ["full_attention", "full_attention"]})),
        ("bamba", json!({"attn_layer_indices": [0, 1]})),
    ] {
        let config = written(name, layers);
        let number =
            |key: &str| config[key].as_u64().unwrap_or_else(|| panic!("{name}: {key} is {}", config[key]));
        let width = number("mamba_expand") * number("hidden_size");
        assert_eq!(number("mamba_n_heads") * number("mamba_d_head"), width, "{name}");
    }
}

/// A spec has 10/3 for a number without a short decimal form, and a config the number itself.
#[test]
fn quotients_of_a_spec_are_numbers_in_a_config() {
    let third = 10.0 / 3.0;
    let rope = |kind: &str| {
        json!({"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, "factor": third,
            "original_max_position_embeddings": 10}})
    };
    for kind in ["linear", "yarn"] {
        let config = written("qwen3", rope(kind));
        assert_eq!(config["rope_parameters"]["factor"], json!(third), "{config}");
        assert_eq!(config["rope_scaling"]["factor"], json!(third), "{config}");
    }
    let config = written("llama", json!({"rms_norm_eps": 1.0 / 3.0, "initializer_range": 1.0 / 12.0}));
    assert_eq!(
        (&config["rms_norm_eps"], &config["initializer_range"]),
        (&json!(1.0 / 3.0), &json!(1.0 / 12.0))
    );
    let long = json!({"rope_parameters": {"rope_type": "longrope", "rope_theta": 500.0, "factor": 4.0,
        "short_factor": [1.0, 7.0 / 6.0, 4.0 / 3.0, 1.5], "long_factor": [1.0, 2.0, 3.0, 4.0],
        "original_max_position_embeddings": 20}});
    let config = written("llama-longrope", long.clone());
    assert_eq!(config["rope_parameters"]["short_factor"][1], json!(7.0 / 6.0), "{config}");
    let multipliers = json!({"attention_multiplier": 1.0 / 12.0, "residual_multiplier": 0.22,
        "logits_scaling": 6.0, "embedding_multiplier": 12.0});
    let config = written("granite", multipliers.clone());
    for (key, value) in multipliers.as_object().unwrap() {
        assert_eq!(config[key], *value, "{key}");
    }
    assert_eq!(
        written("deepseek_v3", json!({"routed_scaling_factor": 7.0 / 6.0}))["routed_scaling_factor"],
        json!(7.0 / 6.0)
    );
}

/// The library takes `rope_scaling` instead of `rope_parameters` if a config has both, and not next to it.
#[test]
fn an_older_map_has_every_value_of_the_newer_one() {
    for super::Fixture { name, imported: model, spec, .. } in super::models() {
        let config = exported(spec, &model.family.name).config(&spec.name);
        let Some(older) = config["rope_scaling"].as_object() else { continue };
        let newer = &config["rope_parameters"];
        let newer = if newer["full_attention"].is_object() { &newer["full_attention"] } else { newer };
        for (key, value) in newer.as_object().unwrap() {
            assert!(older.get(key).or(config.get(key)) == Some(value), "{name}: {key}: {config}");
        }
    }
    let config = written("ministral3", json!({}));
    assert_eq!(config["rope_scaling"]["llama_4_scaling_beta"], json!(0.3), "{config}");
}

/// For the library's checks `4` is no float, also where the usual value is `null` or computed.
#[test]
fn floats_are_written_as_floats() {
    for (name, key) in [
        ("olmo", "clip_qkv"),
        ("gemma3_text", "final_logit_softcapping"),
        ("hyperclovax", "attention_multiplier"),
        ("youtu", "initializer_range"),
        ("youtu", "embedding_initializer_range"),
    ] {
        let config = written(name, json!({ key: 5.0 }));
        assert!(config[key].is_f64() && config[key] == json!(5.0), "{name}: {config}");
    }
}

/// Every class of the library with the head of classes reads `problem_type`.
#[test]
fn several_classes_apply_if_the_config_says_so() {
    let families = trafoc::hub::shelf::Families::default();
    let mut found = 0;
    for name in families.names() {
        let mut sources = trafoc::source::SourceMap::new();
        let family = families.read(name, &mut sources, &mut trafoc::diag::Sink::new()).unwrap();
        let Some((class, _)) = family.architectures.iter().find(|(_, head)| *head == "classify") else {
            continue;
        };
        let mut config = json!({"model_type": family.models[0], "architectures": [class], "num_labels": 3});
        if name == "glm4_moe" {
            config["head_dim"] = 128.into();
        }
        for (problem, is_several) in [("multi_label_classification", true), ("regression", false)] {
            config["problem_type"] = problem.into();
            let model = imported(name, &config.to_string()).unwrap_or_else(|why| panic!("{class}: {why}"));
            assert_eq!(model.text.contains("multi_label: true"), is_several, "{class}: {}", model.text);
        }
        found += 1;
    }
    assert!(found > 40, "{found}");
    let several = written("gpt2-classify", json!({"problem_type": "multi_label_classification"}));
    assert_eq!(several["problem_type"], "multi_label_classification");
}

/// The base of rotary positions that each class uses without a key for it.
#[test]
fn the_usual_base_is_that_of_the_class() {
    assert!(spec("emu3_text", "rope_parameters", json!({})).contains("theta: 1000000"));
}

/// The width that a newer library reads, next to a whole factor: it takes no other one.
#[test]
fn the_width_of_a_mamba_may_be_any() {
    for (name, width, factor) in
        [("mamba", 40, 1), ("mamba-body", 40, 1), ("falcon_mamba", 20, 1), ("mamba", 96, 3)]
    {
        let config = written(name, json!({"intermediate_size": width, "expand": 2}));
        assert_eq!(
            (&config["expand"], &config["intermediate_size"]),
            (&json!(factor), &json!(width)),
            "{name}"
        );
    }
}

/// Where a class scales positions unless a config has a map for them, it does not read the base outside of it.
#[test]
fn a_base_without_its_map_is_not_read() {
    for (name, base) in [("apertus", "12000000"), ("cwm", "1000000"), ("ministral3", "1000000")] {
        let plain = spec(name, "rope_parameters", json!({"rope_theta": 777.0}));
        assert!(plain.contains(&format!("theta: {base}")), "{name}: {plain}");
        assert_eq!(plain, spec(name, "rope_parameters", json!({})), "{name}");
        let map = json!({"rope_type": "linear", "factor": 2.0});
        let scaled = spec(name, "rope_parameters", json!({"rope_theta": 777.0, "rope_scaling": map}));
        assert!(scaled.contains("theta: 777") && scaled.contains("linear"), "{name}: {scaled}");
        let config = written(name, json!({}));
        assert_eq!(config["rope_theta"], config["rope_parameters"]["rope_theta"], "{name}");
    }
}

/// The Japanese GPT-NeoX reads two names of GPT-NeoX, and no others outside of the map.
#[test]
fn names_that_a_class_does_not_read_have_no_effect() {
    let of = |more: Json| spec("gpt_neox_japanese", "rope_parameters", more);
    let plain = of(json!({}));
    assert_eq!(of(json!({"rope_theta": 777.0, "partial_rotary_factor": 0.5})), plain);
    assert!(of(json!({"rotary_emb_base": 777.0})).contains("theta: 777"));
    assert!(of(json!({"rotary_pct": 0.5})).contains("fraction: 0.5"));
}

/// The class of OLMo 3 adds `rope_scaling` to a map that has a `rope_type`, next to which `type` is not read.
#[test]
fn olmo_3_does_not_read_the_older_word_for_scaling() {
    let of =
        |key: &str| spec("olmo3", "rope_parameters", json!({"rope_scaling": {key: "linear", "factor": 2.0}}));
    assert!(of("rope_type").contains("linear") && !of("type").contains("linear"));
}

/// Frequencies are those of the width that the key says, which must be that of the rotated features.
#[test]
fn the_width_of_a_head_is_that_of_what_is_rotated() {
    for name in ["deepseek_v3", "youtu"] {
        let why = imported(name, &config(name, json!({"head_dim": 2})).to_string()).unwrap_err();
        assert!(
            why.contains("`head_dim` is 2, which is not supported") && why.contains("it must be 4"),
            "{why}"
        );
    }
    let why = imported("m", &config("deepseek_v3", json!({"n_shared_experts": 0})).to_string()).unwrap_err();
    assert!(why.contains("`n_shared_experts`: 0 is not between 1 and"), "{why}");
}

/// A list that is repeated for all layers may end in the middle.
#[test]
fn the_blocks_of_recurrent_gemma_are_repeated_as_they_are() {
    let of = |layers: u64| {
        let more =
            json!({"num_hidden_layers": layers, "block_types": ["recurrent", "attention", "recurrent"]});
        spec("recurrent_gemma", "architectures", more)
    };
    assert!(of(3).contains("pattern: [unit, look]"), "{}", of(3));
    for layers in [4, 6] {
        assert!(of(layers).contains("pattern: [unit, look, unit]"), "{}", of(layers));
    }
}

/// The window of ModernBERT has as many positions on each side as half of the key, rounded down.
#[test]
fn an_odd_window_of_modernbert_is_rounded_down() {
    for (given, window) in [(3, 3), (6, 7), (7, 7)] {
        let text = spec("modernbert", "architectures", json!({"local_attention": given}));
        assert!(text.contains(&format!("window: {window}")), "{text}");
    }
}

/// A feed-forward part without a nonlinearity has `linear` in a config.
#[test]
fn no_nonlinearity_is_a_word_of_the_library() {
    for name in ["gpt_neox", "biogpt", "exaone4", "granitemoe"] {
        assert_eq!(written(name, json!({"hidden_act": "linear"}))["hidden_act"], "linear", "{name}");
    }
}

/// The activation of T5's feed-forward part and whether it has a gate are in one word, from which the library computes
/// the two keys for them.
#[test]
fn the_word_of_t5_says_what_the_other_two_keys_say() {
    for (name, gated, act, word) in [
        ("t5", true, "gelu_new", "gated-gelu"),
        ("t5", true, "silu", "gated-silu"),
        ("t5", false, "relu", "relu"),
        ("t5", false, "gelu", "gelu"),
        ("mt5", true, "gelu_new", "gated-gelu"),
        ("mt5", false, "relu", "relu"),
        ("umt5", true, "gelu_new", "gated-gelu"),
    ] {
        let config =
            written(name, json!({"is_gated_act": gated, "dense_act_fn": act, "feed_forward_proj": word}));
        let own = ["feed_forward_proj", "is_gated_act", "dense_act_fn"].map(|key| &config[key]);
        assert_eq!(own, [&json!(word), &json!(gated), &json!(act)], "{name}: {config}");
    }
}

/// With the key, every layer has a second attention, whose weights the spec would lack.
#[test]
fn attention_to_an_encoder_that_is_not_there_is_refused() {
    for name in ["gpt2", "gpt_bigcode", "xglm"] {
        imported(name, &config(name, json!({"add_cross_attention": false})).to_string()).unwrap();
        let why =
            imported(name, &config(name, json!({"add_cross_attention": true})).to_string()).unwrap_err();
        assert!(why.contains("`add_cross_attention` is true, which is not supported"), "{name}: {why}");
    }
}

/// A config may say of each layer that it has no positions; a spec says it once. The library computes the same.
#[test]
fn positions_that_no_layer_uses_are_left_out() {
    for (name, more) in [
        ("cohere2", json!({"layer_types": ["full_attention", "full_attention"]})),
        ("smollm3", json!({"no_rope_layers": [0, 0]})),
    ] {
        let text = spec(name, "rope_parameters", more);
        assert!(!text.contains("rotary") && !text.contains("position"), "{name}: {text}");
    }
}

/// The names of the tensors that are written for such a config.
fn names(name: &str, more: Json) -> Vec<String> {
    let model = imported(name, &config(name, more).to_string()).unwrap();
    let (spec, graph) = compiled(&model);
    let back = exported(&spec, &model.family.name);
    tensors(&parameters(&graph).unwrap(), &back.names(), &back).unwrap().keys().cloned().collect()
}

/// Next to a tied table, the bias of the scores is a parameter of its own.
#[test]
fn phimoe_has_a_bias_with_a_tie_too() {
    for tied in [true, false] {
        let names = names("phimoe", json!({"tie_word_embeddings": tied, "lm_head_bias": true}));
        assert!(names.iter().any(|name| name == "lm_head.bias"), "{names:?}");
    }
}

/// The table that the class has next to those of the two stacks is written without a tie too, although nothing reads it.
#[test]
fn the_common_table_is_written_without_a_tie() {
    for name in ["bart", "mbart", "mvp", "plbart", "marian"] {
        let names = names(name, json!({"tie_word_embeddings": false}));
        let all =
            ["model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"];
        assert!(all.iter().all(|own| names.iter().any(|name| name == own)), "{name}: {names:?}");
    }
    let names = names("marian-parts", json!({"tie_word_embeddings": false}));
    assert!(names.iter().all(|name| name != "model.shared.weight"), "{names:?}");
}

/// ESM has the bias of its scores next to their matrix, with a tie and without one.
#[test]
fn esm_has_its_bias_outside_of_the_output() {
    for tied in [true, false] {
        let names = names("esm", json!({"tie_word_embeddings": tied}));
        let has = |own: &str| names.iter().any(|name| name == own);
        assert!(has("lm_head.bias") && !has("lm_head.decoder.bias"), "{names:?}");
        assert_eq!(has("lm_head.decoder.weight"), !tied, "{names:?}");
    }
}

/// A model of a kind that no spec can express is explained, and not answered with the names of all families.
#[test]
fn models_outside_of_the_language_are_explained() {
    for model in
        ["whisper", "clip", "siglip", "swin", "xlnet", "perceiver", "llava", "longformer", "wav2vec2"]
    {
        let why = imported("odd", &json!({ "model_type": model }).to_string()).unwrap_err();
        assert!(why.contains("help: trafoc has no ") && why.contains("; nearest: "), "{model}: {why}");
        assert!(!why.contains("these are supported"), "{model}: {why}");
    }
}

/// A model that nothing is known of is answered with the nearest three names, and the help of `import` has all.
#[test]
fn an_unknown_model_is_answered_with_the_nearest() {
    let of = |model: &str| imported("odd", &json!({ "model_type": model }).to_string()).unwrap_err();
    for (model, near) in [("qwen9", "`qwen2`"), ("lamma", "`llama`"), ("zzz", " and ")] {
        let why = of(model);
        assert!(why.contains(near) && why.contains("`trafoc import --help` lists all"), "{model}: {why}");
        assert!(why.len() < 400, "{model}: {why}");
    }
    assert!(of("gpt_nexo").contains("`gpt_neox` is supported"));
    let help = crate::cli::trafoc(&["import", "--help"]).out;
    for model in trafoc::hub::shelf::Families::default().models() {
        assert!(help.contains(&model), "{model}");
    }
}

/// So is a family that an export asks for.
#[test]
fn an_unknown_family_is_answered_with_the_nearest() {
    for (family, said) in
        [("gpt_nexo", "did you mean `gpt_neox`?"), ("wrong", "`trafoc import --help` lists all")]
    {
        let asked = crate::cli::trafoc(&["export", "@gpt2-small", "--to", "nowhere", "--family", family]);
        assert_eq!(asked.code, 2, "{}", asked.err);
        assert!(asked.err.contains(said) && asked.err.len() < 400, "{family}: {}", asked.err);
    }
}

/// In transformers, all dropout of an MPT model uses `attn_pdrop`, which its config allows to be a whole number only. The head
/// that classifies tokens has a dropout of its own.
#[test]
fn an_mpt_drops_nothing_but_before_its_head() {
    let text = spec("mpt", "pad_token_id", json!({"resid_pdrop": 0.2, "emb_pdrop": 0.3}));
    assert!(!text.contains("dropout"), "{text}");
    let attention = |p: f64| json!({"attn_config": {"attn_pdrop": p}});
    spec("mpt", "pad_token_id", attention(0.0));
    let refused = imported("mpt", &config("mpt", attention(0.1)).to_string()).map(|model| model.text);
    assert!(refused.unwrap_err().contains("attn_pdrop"));
    for (more, dropout) in [
        (json!({}), "0.1"),
        (json!({"hidden_dropout": 0.2}), "0.2"),
        (json!({"hidden_dropout": 0.2, "classifier_dropout": 0.3}), "0.3"),
    ] {
        let mut more = more;
        more["architectures"] = json!(["MptForTokenClassification"]);
        let text = spec("mpt", "pad_token_id", more);
        assert!(text.contains(&format!("dropout: {dropout}")), "{text}");
    }
}
