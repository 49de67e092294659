//! What `inspect` and `eval` show of a run: its course, its data, a head, a batch, its translations.

use super::*;

/// A folder with the data that a command gives as JSON.
fn data(said: &Printed) -> Json {
    assert_eq!(said.code, Some(0), "{}", said.err);
    let envelope: Json = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.out));
    envelope["data"].clone()
}

impl Folder {
    fn say(&self, arguments: &[&str]) -> Printed {
        said(self.command(arguments).output().unwrap())
    }

    fn inspected(&self, arguments: &[&str]) -> Json {
        data(&self.say(&[&["inspect"], arguments, &["--format", "json"]].concat()))
    }
}

fn number(text: &Json) -> f64 {
    text.as_str().unwrap().replace('−', "-").parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_run_shows_how_it_learned() {
    let place = Folder::new();
    place.trained("run", &["--page", "live.html"]);
    let page = std::fs::read_to_string(place.path("live.html")).unwrap();
    assert!(page.contains("run: training") && page.contains("12 steps"), "the last page is of the whole run");
    assert!(!page.contains("http-equiv=\"refresh\""), "a page of a finished run is not loaded again");
    let found = place.inspected(&["training", "run", "--out", "curve.html"]);
    // The same record gives the same page, whoever reads it.
    assert_eq!(std::fs::read_to_string(place.path("curve.html")).unwrap(), page);
    let facts = found["parts"][0]["facts"].as_object().unwrap();
    let lines = place.lines("run");
    let first = lines[0]["loss"].as_f64().unwrap();
    assert_eq!(facts["loss of the first step"], format!("{first:.4}"));
    let evaluations = lines.iter().filter(|l| l["split"].is_string());
    let best = evaluations.filter_map(|l| l["loss"].as_f64()).fold(f64::INFINITY, f64::min);
    assert!(
        facts["best loss on validation"].as_str().unwrap().starts_with(&format!("{best:.4}")),
        "{facts:?}"
    );
    let started = facts["started"].as_str().unwrap();
    for part in [env!("CARGO_PKG_VERSION"), "on flex", "trafoc train", "--out run"] {
        assert!(started.contains(part), "{part}: {started}");
    }
    // Half a line is one that is still being written; anything else is damage.
    let record = place.path("run/metrics.jsonl");
    let whole = std::fs::read(&record).unwrap();
    std::fs::write(&record, [&whole[..], b"{\"step\": 13, \"lo"].concat()).unwrap();
    assert_eq!(place.inspected(&["training", "run"])["parts"], found["parts"]);
    std::fs::write(&record, [&whole[..], b"{\"step\": 13}\n{}\n"].concat()).unwrap();
    let said = place.say(&["inspect", "training", "run"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(said.err.contains("line 16"), "{}", said.err);
    let said = place.say(&["inspect", "training", "spec.yaml"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // Before the first checkpoint, the recipe says how many steps are planned.
    let three: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').take(3).collect();
    std::fs::write(&record, three.concat()).unwrap();
    std::fs::remove_dir_all(place.path("run/checkpoints")).unwrap();
    let said = place.say(&["inspect", "training", "run"]);
    assert!(said.out.contains("step 3 of 12"), "{}{}", said.out, said.err);
}

/// What is shown while it trains is no loss of a step, and says so.
#[test]
fn the_loss_that_training_shows_is_smoothed() {
    let place = Folder::new();
    let said = said_of(place.train("run", &[]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let losses: Vec<f64> = place
        .lines("run")
        .iter()
        .filter(|l| l["split"].is_null())
        .filter_map(|l| l["loss"].as_f64())
        .collect();
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let last = said
        .err
        .lines()
        .rfind(|line| line.starts_with("step 12/12"))
        .unwrap_or_else(|| panic!("{}", said.err));
    assert!(last.starts_with(&format!("step 12/12  smoothed loss {mean:.4}  ")), "{mean} {last}");
}

#[test]
fn a_page_that_cannot_be_written_is_found_before_training() {
    let place = Folder::new();
    std::fs::create_dir(place.path("folder.html")).unwrap();
    let said =
        place.say(&["train", "spec.yaml", "--recipe", "recipe.yaml", "--out", "r", "--page", "page.txt"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(!place.path("r").exists());
    let said = said_of(place.train("r", &["--page", "folder.html"]));
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(!place.path("r/metrics.jsonl").exists(), "{}", said.err);
}

fn said_of(mut command: Command) -> Printed {
    said(command.output().unwrap())
}

#[test]
fn the_data_of_a_recipe_is_told() {
    let place = Folder::new();
    let told =
        |more: &[&str]| place.inspected(&[&["data", "spec.yaml", "--recipe", "recipe.yaml"], more].concat());
    let found =
        told(&["--with", "data.limit=100", "--with", "data.split={validation: 0.2}", "--example", "3"]);
    let rows = found["parts"][0]["table"]["rows"].as_array().unwrap();
    assert_eq!((&rows[0][2], &rows[1][2]), (&"80".into(), &"20".into()), "{rows:?}");
    let part = |title: &str| {
        let parts = found["parts"].as_array().unwrap();
        parts.iter().find(|p| p["title"] == title).unwrap_or_else(|| panic!("{title}: {parts:?}")).clone()
    };
    // An example's ids are those of its letters: the alphabet in the order of Unicode, 0 the boundary.
    let example = part("Example 3");
    let text: String =
        example["table"]["rows"].as_array().unwrap().iter().map(|r| r[1].as_str().unwrap()).collect();
    assert_eq!(example["facts"]["text"], text);
    // The counts of the vocabulary are those of the tokens.
    let total: f64 = number(&rows[0][3]);
    let vocabulary = part("Vocabulary of the text");
    let most = number(&vocabulary["table"]["rows"][0][2]);
    let share =
        vocabulary["table"]["rows"][0][3].as_str().unwrap().trim_end_matches(" %").parse::<f64>().unwrap();
    assert!((100.0 * most / total - share).abs() < 0.01, "{most} of {total} is {share} %");
    let batch = part("The first batch of training");
    assert_eq!(batch["table"]["rows"][0][0], "tokens");
    assert!(batch["table"]["rows"][0][1].as_str().unwrap().starts_with("[4, "), "{batch}");
    let said = place.say(&["inspect", "data", "spec.yaml", "--recipe", "recipe.yaml", "--example", "99999"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let said = place.say(&["inspect", "data", "spec.yaml"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

/// What a head is shown to compute is what the run computed, with a mask, grouped keys and a bias.
#[test]
fn a_head_and_a_batch_of_a_run_are_shown() {
    let place = Folder::new();
    place.trained("run", &[]);
    let found = place.inspected(&["steps", "run", "--text", "ankara", "--layer", "1", "--head", "1"]);
    let facts = &found["parts"][4]["facts"];
    for (name, value) in facts.as_object().unwrap() {
        assert!(number(value) < 1e-5, "{name}: {value}");
    }
    let rows = found["parts"][3]["table"]["rows"].as_array().unwrap();
    let sum: f64 = rows.iter().map(|row| number(row.as_array().unwrap().last().unwrap())).sum();
    assert!((sum - 1.0).abs() < 1e-3, "{rows:?}");
    let said = place.say(&["inspect", "steps", "run", "--text", "ankara", "--head", "2"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let one = place.inspected(&["attention", "run", "--text", "ankara", "--head", "1", "--layer", "0"]);
    assert_eq!(one["parts"].as_array().unwrap().len(), 1);

    let norms = place.inspected(&["norms", "run", "--layer", "1"]);
    assert_eq!(norms["parts"][0]["facts"]["norm"], "decoder.blocks.1.norm1");
    let rows = norms["parts"][1]["table"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "a batch of the recipe: {rows:?}");
    assert!(rows.iter().all(|row| number(&row[2]) == 0.0), "LayerNorm looks at no other example: {rows:?}");
    assert!(rows.iter().all(|row| number(&row[3]) > 0.01), "BatchNorm does: {rows:?}");

    // A spec with weights and a codebook is looked at as the run is.
    let checkpoint = "run/checkpoints/step-000000012";
    let (weights, codebook) =
        (format!("{checkpoint}/model.safetensors"), format!("{checkpoint}/codebook.json"));
    let own = ["--weights", weights.as_str(), "--codebook", codebook.as_str(), "--text", "ankara"];
    let of_spec = place.inspected(&[&["layers", "spec.yaml"][..], &own].concat());
    let of_run = place.inspected(&["layers", "run", "--text", "ankara"]);
    assert_eq!(of_spec["parts"], of_run["parts"]);
    for bias in ["alibi", "{t5: {buckets: 8, max_distance: 16}}"] {
        let spec = SPEC
            .replace("position: learned", &format!("position: {bias}"))
            .replace("attention: {heads: 2,", "attention: {heads: 4, kv_heads: 2, softcap: 5,");
        std::fs::write(place.path("biased.yaml"), spec).unwrap();
        std::fs::write(place.path("in.json"), r#"{"tokens": [[3, 1, 4, 1, 5]]}"#).unwrap();
        let biased = place.inspected(&["steps", "biased.yaml", "--inputs", "in.json", "--head", "3"]);
        for (name, value) in biased["parts"][4]["facts"].as_object().unwrap() {
            assert!(number(value) < 1e-5, "{bias}, {name}: {value}");
        }
    }
}

const TRANSLATOR: &str = "
name: little
vocab: 200
source_vocab: 200
context: 24
d_model: 16
encoder: {layers: 1, attention: {heads: 2}}
decoder: {layers: 1, attention: {heads: 2}}
head: translate
";

#[test]
fn translations_are_listed_with_their_bleu() {
    let place = Folder::new();
    std::fs::write(place.path("spec.yaml"), TRANSLATOR).unwrap();
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/numbers-en-fr.txt");
    let recipe = format!(
        "recipe: 1\ndata: {{format: pairs, train: {}, limit: 200}}\ntokens: words\nsteps: 30\nbatch: {{size: 8}}\n\
         evaluate: {{metrics: [bleu, word_bleu, sentence_bleu], limit: 6}}\n",
        pairs.display()
    );
    std::fs::write(place.path("recipe.yaml"), recipe).unwrap();
    place.trained("run", &[]);
    let found = data(&place.say(&["eval", "run", "--each", "--format", "json"]));
    let all = found["translations"].as_array().unwrap();
    assert_eq!(all.len(), 6);
    let of = |name: &str| all.iter().map(|t| t[name].as_f64().unwrap()).collect::<Vec<f64>>();
    let figure = |name: &str| {
        let found = found["figures"].as_array().unwrap().iter().find(|f| f["metric"] == name).unwrap();
        found["value"].as_f64().unwrap()
    };
    let mean = of("sentence_bleu").iter().sum::<f64>() / 6.0;
    assert!((mean - figure("sentence_bleu")).abs() < 1e-12, "{mean}");
    assert!(of("bleu").is_sorted_by(|a, b| a >= b), "{all:?}");
    let pairs: Vec<(&str, &str)> =
        all.iter().map(|t| (t["written"].as_str().unwrap(), t["reference"].as_str().unwrap())).collect();
    let corpus = trafoc::learn::metric::bleu::corpus_of_words(&pairs);
    assert!((corpus - figure("word_bleu")).abs() < 1e-9, "{corpus}");
    let text = place.say(&["eval", "run", "--each"]).out;
    assert!(text.contains("source     ") && text.contains("reference  ") && text.ends_with('\n'), "{text}");
    // The example of the run is another text for a model with other tokens; a text is the same for both.
    place.trained("few", &["--with", "steps=1", "--with", "data.limit=20"]);
    let both = ["inspect", "attention", "run", "--against", "few"];
    let said = place.say(&both);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("mean other tokens in `few`") && said.err.contains("--text"), "{}", said.err);
    let said = place.say(&[&both[..], &["--text", "one"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    // Only translations are listed.
    let other = Folder::new();
    other.trained("run", &["--with", "steps=1"]);
    let said = other.say(&["eval", "run", "--each"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

/// BLEU compares runs of four words, of which a translation of one word has none.
#[test]
fn a_bleu_of_zero_for_short_translations_is_explained() {
    let place = Folder::new();
    std::fs::write(place.path("spec.yaml"), TRANSLATOR).unwrap();
    let pairs = "one\tun\ntwo\tdeux\nsix\tsix\nten\tdix\n";
    std::fs::write(place.path("pairs.txt"), pairs.repeat(8)).unwrap();
    let recipe = "recipe: 1\ndata: {format: pairs, train: pairs.txt}\ntokens: words\nsteps: 2\nbatch: {size: 8}\n\
                  evaluate: {metrics: [bleu, word_bleu, exact_match]}\n";
    std::fs::write(place.path("recipe.yaml"), recipe).unwrap();
    place.trained("run", &[]);
    let said = place.say(&["eval", "run"]);
    assert!(said.out.starts_with("bleu         0.0000\nword_bleu    0.0000\n"), "{}", said.out);
    assert!(
        said.err.contains("note: `bleu` and `word_bleu` would be 0 whatever the translations say"),
        "{}",
        said.err
    );
    let other = place.say(&["eval", "run", "--with", "evaluate.metrics=[exact_match]"]);
    assert!(!other.err.contains("would be 0"), "{}", other.err);
}

/// Not as its tokens are decoded, which are in lower case and have spaces between them.
#[test]
fn a_question_and_its_paragraph_are_shown_as_they_are_written() {
    let place = Folder::new();
    let write = |name: &str, text: &str| std::fs::write(place.path(name), text).unwrap();
    let spec = "trafo: 1\nname: qa\nvocab: 13\ncontext: 16\nd_model: 8\nhead: span\n\
                encoder: {layers: 1, attention: {heads: 2}}\n";
    write("qa.yaml", spec);
    write("ask.yaml", "recipe: 1\ndata: {format: squad, train: squad.json}\ntokens: words\nsteps: 1\n");
    let asked = r#"{"data": [{"paragraphs": [{"context": "Ada lived in London.", "qas": [{"id": "1",
        "question": "Where  did Ada live?", "answers": [{"text": "London", "answer_start": 13}]}]}]}]}"#;
    write("squad.json", asked);
    let found = place.inspected(&["data", "qa.yaml", "--recipe", "ask.yaml"]);
    let parts = found["parts"].as_array().unwrap();
    let facts = &parts.iter().find(|part| part["title"] == "Example 0").unwrap()["facts"];
    assert_eq!(facts["question"], "Where  did Ada live?");
    assert_eq!(facts["paragraph"], "Ada lived in London.");
}
