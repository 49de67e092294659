//! What is said of a word of a paper or of another library, and of a word of trafoc in another place than its own.

use crate::cli::trafoc;
use crate::front::Front;

/// A spec with a word in one place of it: `norm l2` has the norm `l2`.
fn with(place: &str, word: &str) -> String {
    let value = |of: &str, usual: &'static str| if of == place { word.to_owned() } else { usual.to_owned() };
    format!(
        "trafo: 1\nname: m\nvocab: 100\ncontext: 32\nd_model: 32\nembed: {{position: {}}}\nnorm: {}\ndecoder:\n  layers: 2\n  \
         block: {}\n  attention: {}\n  ffn: {}\n{}\ninit: {}\n",
        value("position", "learned"),
        value("norm", "layer_norm"),
        value("block", "pre_norm"),
        match place {
            "attention" => word.to_owned(),
            "mask" => format!("{{heads: 4, mask: {word}}}"),
            _ => "{heads: 4}".to_owned(),
        },
        if place == "activation" {
            format!("{{expansion: 4, activation: {word}}}")
        } else {
            value("ffn", "{expansion: 4}")
        },
        match place {
            "spec" => word.to_owned(),
            "head" => format!("head: {word}"),
            _ => "head: lm".to_owned(),
        },
        value("init", "{normal: {std: 0.02}}"),
    )
}

/// The only error about a word there, and its help.
fn help(place: &str, word: &str) -> String {
    let found = Front::of_text("spec.yaml", &with(place, word), ".").compilation.diagnostics;
    let [only] = found.as_slice() else { panic!("{place}: {word}: {found:?}") };
    only.help.join("; ")
}

/// The place of a word, the word, and what its help begins with.
const SAID: &[(&str, &str, &str)] = &[
    ("norm", "l2", "trafoc has no norm of this name; nearest: `rms_norm`"),
    ("norm", "scale_norm", "trafoc has no norm of this name; nearest: `rms_norm`"),
    ("norm", "qk_norm", "`qk_norm` is a key of `attention` and `cross`; `trafoc explain qk_norm` shows it"),
    ("norm", "gain", "`gain` is a call of a block's equation, as in `x = x + gain(attention(norm(x)))`"),
    ("norm", "parallel", "`parallel` is a wiring: write `block: parallel`"),
    ("norm", "{rms_norm: {momentum: 0.1}}", "remove it: this norm is computed for each position alone"),
    ("position", "fourier", "trafoc has no positions of that name; nearest: `sinusoidal`"),
    ("position", "conditional", "trafoc has no positions that follow from the neighbours"),
    ("position", "heads", "`heads` is a key of `attention`, `cross` and `latent`; `trafoc explain heads`"),
    ("attention", "alibi", "`alibi` is a part of the slot `position`: write `position: alibi`"),
    ("attention", "relative", "trafoc calls this `t5`, a part of the slot `position`: write `position: t5`"),
    ("attention", "{heads: 4, rope: true}", "trafoc calls this `rotary`, a part of the slot `position`"),
    ("attention", "{heads: 4, causal: false}", "it has `heads`, `kv_heads`"),
    (
        "attention",
        "{heads: 4}\n  norm[ffn]: none",
        "the equation calls `attention`, `ffn`, `norm1` and `norm2`",
    ),
    (
        "attention",
        "{heads: 4}\n  init: normal",
        "initial values are those of the whole model, next to `decoder`: write `init: ...`",
    ),
    ("attention", "cross", "`cross` is a call of a block's equation, as in `x = x + cross(norm(x), memory)`"),
    ("attention", "ring", "trafoc has no key for how attention is computed"),
    ("attention", "nystrom", "trafoc has no linear attention of this name"),
    ("attention", "talking_heads", "trafoc has no attention that mixes its heads"),
    ("ffn", "window", "`window` is a part of the slot `mask`: write `attention: {mask: {window: {...}}}`"),
    (
        "ffn",
        "yarn",
        "`yarn` is a part of the slot `scaling`: write `position: {rotary: {scaling: {yarn: {...}}}}`",
    ),
    ("ffn", "orthogonal", "`orthogonal` is a part of the slot `distribution`: write `init: orthogonal`"),
    ("mask", "padding", "padding needs no rule"),
    ("mask", "document", "trafoc has no mask that keeps several texts of one sequence apart"),
    ("init", "lecun", "it is `kaiming_normal` without the factor of a ReLU"),
    ("block", "rezero", "a factor that starts at 0 is `gain`"),
    ("block", "palm", "the wiring is that of `parallel`"),
    ("block", "reversible", "trafoc has no layers whose inputs are computed from their outputs"),
    ("block", "highway", "`highway` is a part that an equation calls, as in `x = x + highway(norm(x))`"),
    ("block", "rotary", "`rotary` is a part of the slot `position`: write `position: rotary`"),
    (
        "activation",
        "softmax",
        "`softmax` is a call in a part of your own; `trafoc explain softmax` shows one",
    ),
    ("activation", "sin", "`sin` is a call in a part of your own"),
    ("activation", "prelu", "trafoc has no activation of this name"),
    ("ffn", "{experts: 8}", "`experts` is a key of `moe`; `trafoc explain experts` shows it"),
    (
        "ffn",
        "{expansion: 4, relu_squared: true}",
        "trafoc calls this `relu2`, a value of `activation`: write `ffn: {activation: relu2}`",
    ),
    ("ffn", "linear", "one projection is a part of your own"),
    ("norm", "tanh", "`tanh` is a value of `activation`: write `ffn: {activation: tanh}`"),
    (
        "attention",
        "gelu",
        "`gelu` is a value of `activation`: write `ffn: {activation: gelu}`; valid parts are `multi_head` and `latent`, and of the \
         library `differential_attention`, ",
    ),
    (
        "attention",
        "gqa",
        "`kv_heads` is what makes it one: without a name for it, write `{heads: ..., kv_heads: ...}`",
    ),
    (
        "attention",
        "{gqa: {heads: 4, kv_heads: 2}}",
        "`kv_heads` is what makes it one: without a name for it, write `{heads: 4, kv_heads: 2}`",
    ),
    (
        "attention",
        "{heads: 4, gqa: {kv_heads: 2}}",
        "what is in `gqa` is written without that map: write `kv_heads: 2` instead",
    ),
    (
        "attention",
        "{heads: 4, gqa: {heads: 2, head_dim: 8}}",
        "what is in `gqa` is written without that map: write `head_dim: 8` instead; `heads` is already set next to it",
    ),
    (
        "attention",
        "{heads: 4, mqa: true}",
        "trafoc calls this `kv_heads`, a whole number: write `kv_heads: ...`, or remove it",
    ),
    (
        "attention",
        "{heads: 4, qk_norm: true}",
        "write `{norm: layer_norm}`; what is left out has its default",
    ),
    (
        "attention",
        "{heads: 4, qk_norm: 1e-5}",
        "a number is a field of a part: write `{norm: {layer_norm: {eps: 1e-5}}}`",
    ),
    ("attention", "4", "write `{heads: 4}`"),
    ("attention", "{heads: 4, flash: true}", "trafoc has no key for how attention is computed"),
    (
        "norm",
        "1e-5",
        "a number is a field of a part: write `{layer_norm: {eps: 1e-5}}`, `{rms_norm: {eps: 1e-5}}`",
    ),
    ("init", "0.02", "a number is a field of a part: write `{normal: {std: 0.02}}`, `{truncated_normal: {"),
    (
        "init",
        "pytorch",
        "linear layers of PyTorch begin with this: write `init: {kaiming_uniform: {gain: 1/sqrt(3)}}`",
    ),
    ("block", "cait", "LayerScale, a learned factor on each part's output, is the wiring `layer_scale`"),
    ("block", "peri", "a norm before and after each part is the wiring `sandwich`: write `block: sandwich`"),
    ("norm", "ada_ln", "trafoc has no norm whose factors follow from a condition"),
    ("norm", "derf", "trafoc has no norm of this name; nearest: `dynamic_tanh`"),
    ("norm", "gemma_norm", "it is `rms_norm` whose weights are added to 1"),
    ("norm", "simple_rms_norm", "it is `rms_norm` without weights"),
    ("norm", "LlamaRMSNorm", "did you mean `rms_norm`?"),
    ("position", "abs", "`learned` has a vector for each position"),
    ("position", "sin_cos", "`sinusoidal` has sines and cosines"),
    ("position", "rel_pos_bias", "`t5` has a learned score for each distance"),
    ("position", "dynamic_position_bias", "trafoc has no positions of that name"),
    ("position", "token_type", "`segments` of `embed` is the number"),
    ("attention", "self", "this is what attention is by default, `multi_head`"),
    ("attention", "scaled_dot_product", "this is what attention is by default, `multi_head`"),
    ("attention", "flash_attention_2", "trafoc has no key for how attention is computed"),
    ("attention", "multi_latent", "trafoc calls this `latent`"),
    ("attention", "{heads: 4, one_kv_head: true}", "one head of keys and values is `kv_heads: 1`"),
    ("attention", "{heads: 4, attn_talking_heads: true}", "trafoc has no attention that mixes its heads"),
    ("attention", "{heads: 4, num_memory_kv: 4}", "trafoc has no learned keys and values besides"),
    ("mask", "look_ahead", "`causal` hides what follows"),
    ("mask", "block", "`chunk` has blocks of one size"),
    ("mask", "segment", "trafoc has no mask that keeps several texts"),
    ("head", "causal", "`lm` predicts the next token"),
    ("head", "masked", "`mlm` restores masked tokens"),
    ("head", "multiple_choice", "trafoc has no head that chooses among several texts"),
    ("head", "next_sentence", "trafoc has no data that asks whether one text follows another"),
    ("block", "gpt2", "the wiring is that of `pre_norm`"),
    ("init", "lecun_uniform", "it is `kaiming_uniform` without the factor"),
    ("spec", "head: lm\ndevice: cuda", "a spec sets no device"),
    ("position", "{rotary: {pairing: halve}}", "did you mean `half`?"),
    ("norm", "nn.LayerNorm", "did you mean `layer_norm`?"),
    ("ffn", "{hidden: 64, activation: nn.GELU}", "did you mean `gelu`?"),
    ("ffn", "{hidden: 64, activation: torch.nn.functional.silu}", "did you mean `silu`?"),
    ("ffn", "{hidden: 64, activation: F.Swish}", "did you mean `silu`?"),
    ("ffn", "{hidden: 64, bias: none}", "write `false`"),
    ("spec", "head: lm\nsweep: {wide: {d_model: [64, 128]}}", "write `grid: {d_model: [...]}`"),
    ("spec", "head: lm\nsweep: {wide: {decoder: {layers: [2, 4]}}}", "write `grid: {decoder.layers: [...]}`"),
    ("block", "x + dropout(ffn(norm(x)))", "`dropout` is a key of `embed`, of `ffn`, and of `attention`"),
    ("spec", "tie: true", "did you mean `tied`, at `head.lm.tied`?"),
    ("spec", "lm: {tied: true}", "it belongs at `head.lm`"),
    (
        "attention",
        "{heads: \"max(2, 4)\"}",
        "remove the quotes, and put it on its own line: inside `{ }` and `[ ]` a comma ends a value",
    ),
    ("attention", "{heads: \"2 * 2\"}", "remove the quotes"),
    ("attention", "\n    heads: \"max(2, 4)\"", "remove the quotes"),
];

#[test]
fn a_word_is_explained_where_it_is() {
    assert_eq!(Front::of_text("spec.yaml", &with("", ""), ".").compilation.diagnostics, []);
    let mut wrong = Vec::new();
    for (place, word, said) in SAID {
        let help = help(place, word);
        // Without what follows, such as the list of parts.
        if !help.starts_with(said) || said.starts_with("remove the quotes") && help != *said {
            wrong.push(format!("{place}: {word}: {help}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the advice tells to write is accepted: a part of one's own, a wiring, a distribution.
#[test]
fn what_is_nearest_can_be_written() {
    let talking = "parts: {talking: \"merge(weigh(softmax(einsum(\\\"bhtk,hg->bgtk\\\", scores(split(x, 4), split(x, 4)), param(4, \
                   4))), split(x, 4)))\"}\n";
    for (place, word, more) in [
        ("norm", "unit", "parts: {unit: normalize(x)}\n"),
        ("attention", "talking", talking),
        ("init", "{kaiming_normal: {gain: 1}}", ""),
        ("init", "{kaiming_uniform: {gain: 1}}", ""),
        (
            "block",
            "|\n    x = x + gain(attention(x))\n    x = x + gain(ffn(x))\n  gain: {init: 0}",
            "norm: none\n",
        ),
        ("attention", "\n    heads: max(2, 4)", ""),
        ("mask", "{chunk: 8}", ""),
        ("norm", "{rms_norm: {affine: false}}", ""),
        ("norm", "{rms_norm: {unit_offset: true}}", ""),
        (
            "norm",
            "film",
            "parts: {film: \"layer_norm(x, affine: false) * (1 + linear(silu(x), d_model))\"}\n",
        ),
    ] {
        let text = with(place, word);
        let text =
            if more.starts_with("norm") { text.replace("norm: layer_norm\n", more) } else { text + more };
        let found = Front::of_text("spec.yaml", &text, ".").compilation.diagnostics;
        assert_eq!(found, [], "{text}");
    }
}

/// A part that is written without its slot, with a misspelled key in it, is both, and the slot is not missing.
#[test]
fn a_slip_in_a_misplaced_part_is_understood() {
    let text = with("spec", "lm: {tie: true}");
    let found = Front::of_text("spec.yaml", &text, ".").compilation.diagnostics;
    let help: Vec<String> = found.iter().map(|d| d.help.join("; ")).collect();
    assert_eq!(help, ["it belongs at `head.lm`", "did you mean `tied`?"]);
}

/// The name of a template in another case is that template, and what several could be meant by names each.
#[test]
fn templates_are_found_in_any_case() {
    for (word, said) in [
        ("T5", "'t5'"),
        ("GPT", "'gpt'"),
        ("LLaMA", "'llama'"),
        ("classifier", "`trafoc new bert`"),
        ("text-classification", "`trafoc new bert`"),
    ] {
        let found = trafoc(&["new", word, "-"]);
        assert!(found.code == 2 && found.err.contains(said), "{word}: {}", found.err);
    }
    let bert = trafoc(&["new", "bert", "-"]).out.replace("head: mlm", "head: {classify: {classes: 2}}");
    assert!(bert.contains("classify"), "{bert}");
    assert_eq!(Front::of_text("bert.yaml", &bert, ".").compilation.diagnostics, []);
}

/// Both stacks with positions in place of those of the spec's embeddings are named, and what to set instead.
#[test]
fn positions_of_both_stacks_replace_those_of_the_spec() {
    let check = |more: &[&str]| {
        let sets = more.iter().flat_map(|set| ["--set", set]);
        trafoc(&["check", "@t5-small"].into_iter().chain(sets).collect::<Vec<_>>())
    };
    for at in ["embed.position", "position"] {
        let (encoder, decoder) = (format!("encoder.{at}=rotary"), format!("decoder.{at}=rotary"));
        let said = check(&[&encoder, &decoder]);
        assert!(
            said.code == 1 && said.err.contains("help: write `--set embed.position=rotary` instead"),
            "{}",
            said.err
        );
    }
    assert_eq!(check(&["embed.position=rotary"]).code, 0);
    let said = check(&["encoder.position=rotary", "decoder.position=alibi"]);
    assert!(said.err.contains("help: keep one of them"), "{}", said.err);
}

/// A key that both stacks of a spec have is named for both, also where they have it already.
#[test]
fn a_key_of_both_stacks_is_named_for_both() {
    let said = trafoc(&["check", "@transformer", "--set", "layers=3"]);
    let help = "help: write `--set encoder.layers=3`, or `--set decoder.layers=3`";
    assert!(said.err.contains(help), "{}", said.err);
    let folder = tempfile::tempdir().unwrap();
    let text = trafoc(&["expand", "@transformer"]).out + "layers: 3\n";
    std::fs::write(folder.path().join("spec.yaml"), text).unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["check", "spec.yaml"]);
    assert!(said.err.contains("help: it belongs at `encoder.layers`, and `decoder.layers`"), "{}", said.err);
    // What is also misspelled has its place all the same.
    let said = trafoc(&["check", "@gpt2-small", "--set", "decoder.attention.position=rope"]);
    assert!(said.err.contains("help: put `position` next to `decoder.attention`"), "{}", said.err);
    let said = trafoc(&["check", "@gpt2-small", "--set", "decoder.attention.position=foo"]);
    assert!(said.err.contains("help: `position` is a key of `decoder` and `embed`"), "{}", said.err);
}

/// Only a run has an adapter, and what is no run is said how it is exported.
#[test]
fn an_adapter_is_that_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("adapter");
    let said = trafoc(&["export", "@gpt1", "--adapter", "--to", to.to_str().unwrap()]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("help: a run is a folder that `trafoc train` has written"), "{}", said.err);
}

/// A recipe whose data has another vocabulary than the spec names the variant that has the same.
#[cfg(feature = "learn")]
#[test]
fn a_vocabulary_of_another_size_names_the_variant() {
    let check = |more: &[&str]| {
        let said = trafoc(&[&["check", "@transformer", "--recipe", "@transformer.numbers"], more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let said = check(&[]);
    assert!(said.contains("help: with `--variant numbers` there is no such warning"), "{said}");
    assert!(!check(&["--variant", "numbers"]).contains("vocab-mismatch"));
}

/// A key of a part within a part has its whole path in help, and several settings in one argument are said to be several.
#[test]
fn a_setting_has_its_whole_path_in_help() {
    for (spec, wrong, right) in [
        ("@mixtral-8x7b", "decoder.ffn.hidden=9", "`--set decoder.ffn.moe.expert.glu.hidden=9`"),
        ("@gpt1", "decoder.layers=4,d_model=768", "`--set decoder.layers=4 --set d_model=768`"),
        (
            "@gpt1",
            "decoder.norm=rms_norm,decoder.layers=4",
            "`--set decoder.norm=rms_norm --set decoder.layers=4`",
        ),
    ] {
        let said = trafoc(&["check", spec, "--set", wrong]);
        assert!(said.code == 1 && said.err.contains(right), "{wrong}: {}", said.err);
        let arguments = right.trim_matches('`').split(' ');
        let said = trafoc(&["check", spec].into_iter().chain(arguments).collect::<Vec<_>>());
        assert!(!said.err.contains("help: repeat") && !said.err.contains("several-parts"), "{}", said.err);
    }
}
