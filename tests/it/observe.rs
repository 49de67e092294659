//! `inspect` for commands that run a model: the pictures and numbers of models with random weights.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

/// Runs `trafoc inspect` and returns its data and the file it writes.
fn inspect(what: &str, spec: &str, inputs: &str, more: &[&str]) -> (Json, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("in.json"), inputs).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trafoc"));
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

/// What `trafoc inspect` says where it refuses, with its exit code.
fn refused(what: &str, spec: &str, inputs: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.json");
    std::fs::write(&path, inputs).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trafoc"));
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
