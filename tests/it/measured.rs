//! `compare` with models that run: durations, training, and the folders of runs.

use std::process::{Command, Stdio};

use serde_json::Value as Json;

fn compare(arguments: &[&str]) -> Json {
    let mut command = crate::compiled::program();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("compare").args(arguments);
    let said =
        crate::cli::kept(command.args(["--format", "json"]).env_remove("TRAFOC_DEVICE").output().unwrap());
    serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"))
}

#[test]
fn models_are_timed_in_turns() {
    let small = ["--set", "d_model=16", "--set", "decoder.layers=1", "--tokens", "8"];
    let data = compare(&[&["@gbt-mulm", "@gbt-mulm", "--measure"], small.as_slice()].concat());
    assert_eq!(data["status"], "ok", "{data}");
    let timing = &data["data"]["timing"];
    assert_eq!(timing["tokens"], 8);
    for model in timing["models"].as_array().unwrap() {
        for what in ["forward", "step"] {
            let spread = &model[what];
            assert!(spread["runs"].as_u64().unwrap() >= 10, "{model}");
            let number = |v: &Json| v.as_f64().unwrap();
            let median = number(&spread["median"]);
            assert!(number(&spread["interval"][0]) <= median && median <= number(&spread["interval"][1]));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_number() {
    let data = compare(&["@llama3-8b", "@mixtral-8x7b", "--measure", "--set", "decoder.layers=4000"]);
    assert_eq!(data["status"], "refused");
    assert!(data["error"].as_str().unwrap().contains("TiB"), "{}", data["error"]);
    assert_eq!(compare(&["@gpt1", "@gpt2-small", "--device", "flex"])["status"], "usage");
}

#[test]
fn models_are_trained_alike_and_runs_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (runs, page) = (at("runs"), at("page.html"));
    let small = ["--set", "d_model=16", "--set", "decoder.layers=1", "--set", "decoder.attention.heads=2"];
    let train = ["--train", "specs/recipes/gbt-mulm.yaml", "--with", "data.limit=500", "--with", "steps=6"];
    let base = ["@gbt-mulm", "@gbt-mulm"];
    let named = ["--out", runs.as_str(), "--html", page.as_str(), "--seeds", "2"];
    let arguments = [base.as_slice(), &small, &train, &named].concat();
    let first = compare(&arguments);
    assert_eq!(first["status"], "ok", "{first}");
    let learning = &first["data"]["learning"];
    assert_eq!(learning["seeds"].as_array().unwrap().len(), 2);
    assert_eq!(learning["models"][0]["curve"].as_array().unwrap().len(), 6);
    // A model compared with itself has the same losses, bit for bit, and no difference.
    assert_eq!(learning["models"][0]["losses"], learning["models"][1]["losses"]);
    assert_eq!(learning["differences"][0]["noise"], true);
    assert!(std::fs::read_to_string(&page).unwrap().contains("Training loss"));
    // Every run is the same as one of `trafoc train`; a finished run is not trained again.
    let run = format!("{runs}/1--gbt-mulm/seed-3407");
    let record = std::path::Path::new(&run).join("metrics.jsonl");
    let before = std::fs::read(&record).unwrap();
    let mut again = arguments.clone();
    *again.last_mut().unwrap() = "3";
    let more = compare(&again);
    assert_eq!(more["data"]["learning"]["seeds"].as_array().unwrap().len(), 3, "{more}");
    assert_eq!(more["data"]["learning"]["models"][0]["losses"][0], learning["models"][0]["losses"][0]);
    assert!(std::fs::read(&record).unwrap() == before);
    // A model with another context would be trained on other examples.
    let other = [&["@gbt-mulm", "@d2l-nmt"], train.as_slice()].concat();
    assert_eq!(compare(&other)["status"], "failed");
}

/// A model whose scores overflow fails at its first step; the others are still trained and compared.
#[test]
fn a_model_that_fails_leaves_the_others_their_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let spec = std::fs::read_to_string(root.join("specs/gbt-mulm.yaml")).unwrap();
    let (start, burst) = (spec.find("\ninit:").unwrap(), at("burst.yaml"));
    std::fs::write(&burst, spec[..start].to_owned() + "\ninit: {weights: {normal: {std: 1e38}}}\n").unwrap();
    let small = ["--set", "d_model=16", "--set", "decoder.layers=1", "--set", "decoder.attention.heads=2"];
    let train = ["--train", "specs/recipes/gbt-mulm.yaml", "--with", "data.limit=500", "--with", "steps=6"];
    let models = [burst.as_str(), "@gbt-mulm", "@gbt-mulm", "--seeds", "2"];
    let data = compare(&[models.as_slice(), &small, &train].concat());
    assert_eq!(data["status"], "failed", "{data}");
    let learning = &data["data"]["learning"];
    let failed = &learning["models"][0]["failed"];
    assert_eq!((&failed["steps"], &failed["seed"]), (&Json::from(0), &Json::from(3407)), "{data}");
    assert!(failed["why"].as_str().unwrap().contains("not a number at step 1"), "{failed}");
    assert_eq!(
        (learning["complete"].as_bool(), learning["seeds"].as_array().unwrap().len()),
        (Some(true), 2)
    );
    assert_eq!(learning["differences"][0]["than"], "@gbt-mulm", "{learning}");
}

/// Ctrl-C during the first seed: the next step is the last one; the results so far are shown and kept, and
/// the same command continues from there.
#[test]
fn what_was_trained_until_an_interruption_is_shown_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs").to_str().unwrap().to_owned();
    let small = ["--set", "d_model=16", "--set", "decoder.layers=1", "--set", "decoder.attention.heads=2"];
    let named = ["@gbt-mulm", "@gbt-mulm", "--seeds", "1", "--out", &runs, "--train"];
    let data = ["specs/recipes/gbt-mulm.yaml", "--with", "data.limit=500", "--with"];
    let arguments = [named.as_slice(), &data, &["steps=400"], &small].concat();
    let mut command = crate::compiled::program();
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("compare")
        .args(&arguments)
        .args(["--format", "json"]);
    let child = command.env_remove("TRAFOC_DEVICE").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let record = std::path::Path::new(&runs).join("1--gbt-mulm/seed-3407/metrics.jsonl");
    while std::fs::read_to_string(&record).map_or(0, |text| text.lines().count()) < 5 {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended before it could be interrupted: {:?}", child.wait_with_output());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let child_id = child.id().to_string();
    // `timeout` sends a signal to a process and to its group; both are one wish to end.
    Command::new("kill").arg("-INT").args([&child_id, &child_id]).status().unwrap();
    let said = crate::cli::kept(child.wait_with_output().unwrap());
    assert_eq!(said.status.code(), Some(130), "{said:?}");
    let data: Json = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(data["data"]["runs"], runs.as_str());
    let learning = &data["data"]["learning"];
    assert_eq!(
        (&learning["complete"], &learning["seeds"]),
        (&Json::from(false), &Json::from([0u64; 0].to_vec()))
    );
    let models = &learning["stopped"]["models"];
    let (made, loss) = (models[0]["steps"].as_u64().unwrap(), models[0]["training_loss"].as_f64().unwrap());
    assert!((5..400).contains(&made) && loss > 1.0, "{models}");
    assert_eq!(models[1]["steps"], 0);
    let again = compare(&arguments);
    let learning = &again["data"]["learning"];
    assert_eq!(learning["complete"], true, "{again}");
    assert_eq!(learning["models"][0]["losses"], learning["models"][1]["losses"]);
}

/// The translator of the book's figures: trained for a few steps, inspected with an example of its own data
/// and with a text, compared by its folder.
#[test]
fn a_trained_translator_shows_its_three_kinds_of_attention() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let pairs = "Go.\tVa !\nI'm home.\tJe suis chez moi.\nHe's calm.\tIl est calme.\n".repeat(20);
    std::fs::write(at("fra.txt"), pairs).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = crate::compiled::program();
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).env_remove("TRAFOC_DEVICE");
        let said = crate::cli::kept(command.args(["--format", "json"]).output().unwrap());
        let data: Json = serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"));
        assert_eq!(data["status"], "ok", "{data}");
        data["data"].clone()
    };
    let (data, trained) = (format!("data.train={}", at("fra.txt")), at("run"));
    let recipe = ["--recipe", "specs/recipes/d2l-nmt.yaml", "--with", &data, "--with", "epochs=2"];
    run(&[&["train", "@d2l-nmt", "--out", &trained], recipe.as_slice()].concat());
    for more in [&[][..], &["--text", "go ."]] {
        let page = at("attention.html");
        let shown = run(&[&["inspect", "attention", &trained, "--out", &page], more].concat());
        let parts: Vec<&str> =
            shown["parts"].as_array().unwrap().iter().map(|p| p["title"].as_str().unwrap()).collect();
        for kind in ["encoder", "decoder", "cross"] {
            assert!(parts.iter().any(|title| title.contains(kind)), "{kind} in {parts:?}");
        }
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains(">go<"), "tokens are labelled");
    }
    let layers = run(&["inspect", "layers", &trained]);
    assert!(!layers["parts"].as_array().unwrap().is_empty());
    let compared = compare(&[&trained, "@gbt-mulm"]);
    assert_eq!(compared["status"], "ok", "{compared}");
    assert_eq!(compared["data"]["models"][0]["name"], "d2l-nmt");
}

#[test]
fn a_model_directory_is_compared() {
    let data = compare(&["tests/hub/gpt2", "tests/hub/bert-mlm"]);
    assert_eq!(data["status"], "ok", "{data}");
    assert!(data["data"]["knobs"].as_array().unwrap().len() > 3);
}
