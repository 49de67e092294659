//! `inspect` for commands that run a model: the pictures and numbers of models with random weights.

use std::path::Path;

use serde_json::Value as Json;

/// Runs `trafoc inspect` and returns its data and the file it writes.
fn inspect(what: &str, spec: &str, inputs: &str, more: &[&str]) -> (Json, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("in.json"), inputs).unwrap();
    let mut command = crate::compiled::program();
    command.args(["inspect", what, spec, "--out", &at("out.html")]);
    if !inputs.is_empty() {
        command.args(["--inputs", &at("in.json")]);
    }
    let said = crate::cli::kept(command.args(["--format", "json"]).args(more).output().unwrap());
    let text = String::from_utf8(said.stdout).unwrap();
    let envelope: Json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(envelope["status"], "ok", "{text}");
    (envelope["data"].clone(), std::fs::read_to_string(Path::new(&at("out.html"))).unwrap())
}

const TRANSLATION: &str = r#"{"source": [[5, 6, 7, 8]], "target": [[1, 2, 3]]}"#;

#[test]
fn attention_of_every_kind_has_its_grid() {
    let words = ["--labels", "je suis la", "--source-labels", "i am </td> \u{202e}here"];
    let (data, html) = inspect("attention", "@d2l-nmt", TRANSLATION, &words);
    let titles: Vec<&str> =
        data["parts"].as_array().unwrap().iter().map(|p| p["title"].as_str().unwrap()).collect();
    // Two layers of each kind.
    assert_eq!(titles.len(), 6, "{titles:?}");
    assert_eq!(titles.iter().filter(|t| t.starts_with("cross")).count(), 2);
    assert!(html.contains(">suis<") && html.contains("&lt;/td&gt;") && !html.contains('\u{202e}'));
    let (_, again) = inspect("attention", "@d2l-nmt", TRANSLATION, &words);
    assert_eq!(html, again);
    let (one, _) = inspect("attention", "@d2l-nmt", TRANSLATION, &["--kind", "cross", "--layer", "1"]);
    assert_eq!(one["parts"][0]["title"], "cross attention, layer 1");
}

/// Weights that a part makes of pieces are shown if they are a softmax over keys.
#[test]
fn weights_of_pieces_are_those_of_attend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.yaml");
    let spec = path.to_str().unwrap();
    let write = |weighed: &str| {
        let heads = ["q", "k", "v"].map(|w| format!("    {w} = split(linear[{w}](x, 16), 2)\n")).concat();
        let text = format!(
            "name: tiny\nvocab: 27\ncontext: 24\nd_model: 16\nparts:\n  f: |\n{heads}    \
             linear[o](merge({weighed}), 16)\ndecoder: {{layers: 1, attention: f}}\nhead: lm\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    let tokens = r#"{"tokens": [[1, 2, 3, 4]]}"#;
    write("attend(q, k, v, window: 3)");
    let whole = inspect("attention", spec, tokens, &[]);
    write("weigh(softmax(scores(q, k, window: 3)), v)");
    let of_pieces = inspect("attention", spec, tokens, &[]);
    assert_eq!(of_pieces.0["parts"], whole.0["parts"]);
    assert!(of_pieces.1 == whole.1, "the pages differ");
    assert_eq!(whole.0["parts"][0]["table"]["rows"].as_array().unwrap().len(), 2);
    let (code, said) = refused("steps", spec, tokens, &[]);
    assert!(code == Some(2) && said.contains("of pieces, which have no common steps"), "{said}");
    write("weigh(sigmoid(scores(q, k)), v)");
    let (code, said) = refused("attention", spec, tokens, &[]);
    assert!(code == Some(2) && said.contains("are no softmax over keys"), "{said}");
}

#[test]
fn flow_and_layers_follow_the_positions() {
    let tokens = r#"{"tokens": [[3, 1, 4, 1, 5]]}"#;
    let (data, _) = inspect("flow", "@gbt-mulm", tokens, &["--target", "2"]);
    let facts = data["parts"][0]["facts"].as_object().unwrap();
    let shares: f64 = facts.values().map(|v| v.as_str().unwrap().parse::<f64>().unwrap()).sum();
    // A causal model sees only the first three positions, and a row of the rollout sums to 1.
    assert!((shares - 1.0).abs() < 0.005, "{facts:?}");
    let (data, html) = inspect("layers", "@gbt-mulm", tokens, &[]);
    assert_eq!(data["parts"][0]["table"]["rows"].as_array().unwrap().len(), 4);
    assert!(html.contains("component 1"));
}

/// Layers that share a block are as many as are applied, each with numbers of its own.
#[test]
fn layers_that_share_a_block_are_shown_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = r#"{"tokens": [[3, 1, 4, 1, 5]]}"#;
    let write = |stack: &str| {
        let path = folder.path().join("spec.yaml");
        let text = format!(
            "name: tiny\nvocab: 27\ncontext: 24\nd_model: 16\n\
             decoder: {{{stack}, attention: {{heads: 2}}, ffn: {{expansion: 2}}}}\nhead: lm\n\
             init: {{normal: {{std: 0.5}}}}\n"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rows = |data: &Json| data["parts"][0]["table"]["rows"].as_array().unwrap().clone();
    let one = rows(&inspect("layers", &write("layers: 1"), tokens, &[]).0);
    let spec = write("layers: 6, share: 2");
    let shared = rows(&inspect("layers", &spec, tokens, &[]).0);
    // The first layer has the weights of the only one, and the next ones see what it has made of the inputs.
    assert_eq!((shared.len(), &shared[0]), (6, &one[0]));
    assert!(shared.windows(2).all(|pair| pair[0][1] != pair[1][1]), "{shared:?}");
    let (data, page) = inspect("attention", &spec, tokens, &[]);
    let titles: Vec<&str> =
        data["parts"].as_array().unwrap().iter().map(|p| p["title"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..6).map(|layer| format!("decoder attention, layer {layer}")).collect();
    assert_eq!(titles, expected);
    assert!(page.contains("layer 5"));
    // What is computed from queries and keys fits the weights only if all are of the same layer.
    for layer in ["0", "1", "5"] {
        let (data, _) = inspect("steps", &spec, tokens, &["--layer", layer]);
        let facts = data["parts"][4]["facts"].as_object().unwrap();
        let far = |text: &Json| text.as_str().unwrap().replace('−', "-").parse::<f64>().unwrap() > 1e-5;
        assert!(!facts.values().any(far), "{layer}: {facts:?}");
    }
    let (_, page) = inspect("flow", &spec, tokens, &[]);
    assert!(page.contains(">layer 5<") && !page.contains(">layer 6<"));
    let init = inspect("init", &spec, "", &[]).0;
    assert!(init["parts"][1]["facts"]["decoder layer 5"].is_string(), "{init}");
    let (code, said) = refused("norms", &spec, tokens, &["--layer", "6"]);
    assert!(code == Some(2) && said.contains("there is no layer 6: a stack has 6"), "{said}");
}

/// What is not shown is said.
#[test]
fn what_is_left_out_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.yaml");
    let write = |more: &str| {
        let text = format!(
            "name: tiny\nvocab: 27\ncontext: 300\nd_model: 8\n\
             decoder: {{layers: 1, attention: {{heads: 2}}, ffn: {{expansion: 1}}}}\nhead: lm\n{more}"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let spec = write("");
    let ids = |count: usize| vec!["1"; count].join(", ");
    for (count, said) in [(257, "the first 256 of 257 positions"), (9, "for all positions")] {
        let (_, page) = inspect("layers", &spec, &format!("{{\"tokens\": [[{}]]}}", ids(count)), &[]);
        assert!(page.contains(said), "{count}");
    }
    let note = "note: shows the first of the 2 examples";
    let two = r#"{"tokens": [[1, 2], [3, 4]]}"#;
    for (what, is_said) in [("attention", true), ("layers", true), ("norms", false)] {
        let said = crate::cli::trafoc_in(folder.path(), &["inspect", what, &spec, "--inputs", two]);
        assert_eq!((said.code, said.err.contains(note)), (0, is_said), "{}", said.err);
    }
    let (code, said) = refused("norms", &write("norm: dynamic_tanh\n"), two, &[]);
    assert!(code == Some(2) && said.contains("it has no LayerNorm and no RMSNorm"), "{said}");
    let masks = |spec: &str| inspect("attention", spec, "", &[]).1.contains("Padding, which depends");
    assert!(masks("@gpt1") && !masks("@vit"), "an image has no padding");
}

/// Queries that attention reads rotated are no projections any more.
#[test]
fn what_is_done_to_queries_and_keys_is_said() {
    let tokens = r#"{"tokens": [[3, 1, 4, 1, 5]]}"#;
    for (spec, said) in [
        ("position-rotary", "as attention reads them: rotated by their positions."),
        ("attention-qk_norm", "as attention reads them: rotated by their positions and normalised."),
        ("attention-clip", "as attention reads them: clipped."),
        ("position-learned", "or in cross attention of two.</p>"),
    ] {
        let path = format!("{}/tests/good/{spec}.yaml", env!("CARGO_MANIFEST_DIR"));
        let (_, page) = inspect("steps", &path, tokens, &[]);
        assert!(page.contains(said), "{spec}");
    }
}

/// Characters of East Asian scripts take two columns of a terminal.
#[test]
fn columns_of_wide_words_are_aligned() {
    let labels = ["--labels", "世界 abcd e\u{301}", "--inputs", r#"{"tokens": [[3, 1, 4]]}"#];
    let arguments = [&["inspect", "steps", "@gbt-mulm"], &labels[..]].concat();
    let said = crate::cli::trafoc_in(Path::new("."), &arguments);
    assert_eq!(said.code, 0, "{}", said.err);
    for (word, gap) in [("0 世界", 2), ("1 abcd", 2), ("2 e\u{301}", 5)] {
        let (_, rest) = said.out.split_once(word).unwrap();
        let spaces = rest.chars().take_while(|c| *c == ' ').count();
        assert_eq!(spaces, gap, "{word}: {}", said.out);
    }
}

/// What `trafoc inspect` says where it refuses, with its exit code.
fn refused(what: &str, spec: &str, inputs: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.json");
    std::fs::write(&path, inputs).unwrap();
    let mut command = crate::compiled::program();
    let said = command.args(["inspect", what, spec, "--inputs", path.to_str().unwrap()]).args(more).output();
    let said = said.unwrap();
    (said.status.code(), String::from_utf8(said.stderr).unwrap())
}

/// The charts of a page of layers.
fn charts(html: &str) -> Vec<&str> {
    let figures = html.split("<svg").filter_map(|text| Some(text.split_once("</svg>")?.0));
    figures.filter(|text| text.contains("component 1 (")).collect()
}

/// Points of the encoder are words of the source, those of the decoder words of the target, whatever their
/// numbers are.
#[test]
fn every_stack_has_the_words_of_its_own_sequence() {
    for inputs in [
        r#"{"source": [[15, 16, 17]], "target": [[21, 22, 23]]}"#,
        r#"{"source": [[15, 16, 17, 18]], "target": [[21, 22, 23]]}"#,
        r#"{"source": [[15, 16]], "target": [[21, 22, 23]]}"#,
    ] {
        let (_, html) = inspect("layers", "@d2l-nmt", inputs, &[]);
        let charts = charts(&html);
        assert_eq!(charts.len(), 4, "{inputs}");
        for chart in charts {
            let (own, other) = match chart.contains("encoder layer") {
                true => ("15", "21"),
                false => ("21", "15"),
            };
            let has = |word: &str| chart.contains(&format!(">{word}<"));
            assert!(has(own) && !has(other), "{inputs}: {chart}");
        }
    }
    let words = ["--labels", "je suis la", "--source-labels", "i am right here"];
    let (_, html) = inspect("layers", "@d2l-nmt", TRANSLATION, &words);
    for chart in charts(&html) {
        let is_encoder = chart.contains("encoder layer");
        assert_eq!((chart.contains(">right<"), chart.contains(">suis<")), (is_encoder, !is_encoder));
    }
}

#[test]
fn words_that_do_not_fit_are_refused() {
    let tokens = r#"{"tokens": [[3, 1, 4, 1, 5]]}"#;
    for (what, spec, inputs, more, wanted) in [
        (
            "layers",
            "@gbt-mulm",
            tokens,
            vec!["--labels", "a b c"],
            vec!["`--labels` gives 3 words", "5 positions"],
        ),
        (
            "attention",
            "@gbt-mulm",
            tokens,
            vec!["--labels", "a"],
            vec!["`--labels` gives 1 word,", "5 positions"],
        ),
        ("flow", "@gbt-mulm", tokens, vec!["--labels", "a b c d e f"], vec!["gives 6 words", "5 positions"]),
        (
            "attention",
            "@d2l-nmt",
            TRANSLATION,
            vec!["--source-labels", "a b c"],
            vec!["`--source-labels` gives 3 words", "4 positions"],
        ),
        (
            "layers",
            "@gbt-mulm",
            tokens,
            vec!["--source-labels", "a b c d e"],
            vec!["nothing of a source is shown"],
        ),
        (
            "layers",
            "@d2l-nmt",
            TRANSLATION,
            vec!["--kind", "cross"],
            vec!["`--kind cross` selects no layers"],
        ),
        ("norms", "@gbt-mulm", tokens, vec!["--kind", "cross"], vec!["`--kind cross` selects no layers"]),
        (
            "norms",
            "@gbt-mulm",
            tokens,
            vec!["--layer", "7"],
            vec!["no layer 7: a stack has 4, counted from 0"],
        ),
        ("layers", "@d2l-nmt", TRANSLATION, vec!["--layer", "7"], vec!["no layer 7: a stack has 2, counted"]),
        (
            "layers",
            "@d2l-nmt",
            TRANSLATION,
            vec!["--kind", "encoder", "--labels", "a b c"],
            vec!["nothing of a target is shown"],
        ),
    ] {
        let (code, said) = refused(what, spec, inputs, &more);
        assert_eq!(code, Some(2), "{said}");
        assert!(wanted.iter().all(|words| said.contains(words)), "{said}");
    }
}

#[test]
fn parameters_start_as_the_spec_declares() {
    let (data, _) = inspect("init", "@gbt-mulm", "", &[]);
    let rows = data["parts"][0]["table"]["rows"].as_array().unwrap();
    let mut compared = 0;
    for row in rows {
        let number = |i: usize| row[i].as_str().unwrap().parse::<f64>().unwrap();
        let (declared, drawn) = (number(4), number(5));
        assert!((declared - drawn).abs() <= 0.1 * declared + 1e-6, "{row}");
        compared += usize::from(declared > 0.0);
    }
    assert!(compared > 5 && data["parts"][1]["title"] == "Activations by depth");
}

/// Nothing of an image that does not fit is made before that is said.
#[test]
fn an_image_that_does_not_fit_is_refused_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let spec = "trafo: 1\nname: v\nd_model: 8\nembed: {patches: {image: 1048576, size: 4}}\n\
                encoder: {layers: 1, embed: {patches: {size: 8}}, attention: {heads: 2}, ffn: {expansion: 2}}\n\
                head: {classify: {classes: 3}}\n";
    std::fs::write(folder.path().join("v.yaml"), spec).unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["inspect", "init", "v.yaml"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("an example of the input needs 24.0 TiB of memory"), "{}", said.err);
}
