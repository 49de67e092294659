//! Training as users see it: the same bytes every time, whatever interrupts it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value as Json;
use tempfile::TempDir;

mod changed;
mod folder;
mod foreign;
mod killed;
mod numbers;
mod prepared;
mod recompute;
mod reproduced;
mod shown;
#[cfg(unix)]
mod signals;
mod threads;
mod words;
mod written;

/// A small language model of place names, with dropout.
const SPEC: &str = "
trafo: 1
name: small
vocab: 30
context: 31
d_model: 16
embed: {position: learned, dropout: 0.1}
decoder:
  layers: 2
  attention: {heads: 2, dropout: {weights: 0.1, out: 0.1}}
  ffn: {dropout: 0.1}
head: lm
";

const RECIPE: &str = "
recipe: 1
data: {format: lines, train: DATA, limit: 3000, split: {validation: 0.05}}
tokens: {characters: {boundary: '.'}}
optimizer: {adamw: {learning_rate: 5e-3, weight_decay: 0.01, decay: {'*.bias': 0}}}
schedule: {cosine: {warmup: 4}}
batch: {size: 4, accumulate: 2}
clip: 1
steps: 12
checkpoint: {every: 3}
evaluate: {every: 4, limit: 40, metrics: [loss, accuracy]}
seed: 7
";

/// A folder with the small spec and its recipe.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("spec.yaml"), SPEC).unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/isimler.txt");
        let recipe = RECIPE.replace("DATA", data.to_str().unwrap());
        std::fs::write(folder.path().join("recipe.yaml"), recipe).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::compiled::program();
        command.current_dir(self.0.path()).args(arguments);
        for variable in ["NO_COLOR", "CLICOLOR_FORCE", "TRAFOC_COLOR", "TERM", "TRAFOC_DEVICE"] {
            command.env_remove(variable);
        }
        command
    }

    /// Trains into a folder.
    pub fn train(&self, run: &str, more: &[&str]) -> Command {
        let mut command = self.command(&["train", "spec.yaml", "--recipe", "recipe.yaml", "--out", run]);
        command.args(more);
        command
    }

    pub fn trained(&self, run: &str, more: &[&str]) -> Printed {
        let said = said(self.train(run, more).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said
    }

    /// The files of a checkpoint by name, and the metrics without their times.
    pub fn bytes(&self, run: &str, step: u64) -> Vec<(String, Vec<u8>)> {
        let folder = self.path(run).join(format!("checkpoints/step-{step:09}"));
        let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
            .collect();
        all.sort();
        let lines = self.lines(run).iter().map(|l| format!("{l}\n")).collect::<String>();
        all.push(("metrics.jsonl".into(), lines.into_bytes()));
        all
    }

    /// The metrics of a run without their times.
    fn lines(&self, run: &str) -> Vec<Json> {
        let text = std::fs::read_to_string(self.path(run).join("metrics.jsonl")).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Json = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("seconds");
            line
        });
        lines.collect()
    }
}

pub struct Printed {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn said(output: Output) -> Printed {
    let output = crate::cli::kept(output);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Printed { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn same(a: &[(String, Vec<u8>)], b: &[(String, Vec<u8>)]) {
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    assert_eq!(names(a), names(b));
    for ((name, a), (_, b)) in a.iter().zip(b) {
        if let (true, Ok(a), Ok(b)) = (name.ends_with("jsonl"), str::from_utf8(a), str::from_utf8(b)) {
            let differ = a.lines().zip(b.lines()).find(|(a, b)| a != b);
            assert!(differ.is_none(), "{name} differs: {differ:#?}");
        }
        assert!(a == b, "{name} differs");
    }
}

#[test]
fn the_same_run_twice_is_the_same_bytes() {
    let place = Folder::new();
    place.trained("a", &[]);
    place.trained("b", &[]);
    same(&place.bytes("a", 12), &place.bytes("b", 12));
    let lines = place.lines("a");
    assert_eq!(lines.len(), 12 + 3, "{lines:?}");
    let other = place.trained("c", &["--with", "seed=8"]);
    assert_eq!(other.out, "c\n");
    let model = |run| place.bytes(run, 12).into_iter().find(|(n, _)| n == "model.safetensors").unwrap();
    assert_ne!(model("a"), model("c"));
}

/// A run is exported with everything needed to use it, and generates the same texts from there.
#[test]
fn an_exported_run_writes_what_the_run_writes() {
    let place = Folder::new();
    place.trained("run", &[]);
    let told = |arguments: &[&str]| {
        let said = said(place.command(arguments).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out
    };
    told(&["export", "run", "--to", "out", "--quiet"]);
    for more in [&["--temperature", "0", "--prompt", "ank"][..], &["-n", "8", "--seed", "5"]] {
        let written = |model| told(&[&["generate", model], more].concat());
        assert_eq!(written("run"), written("out"), "{more:?}");
    }
    // `trafoc run` also takes the weights of either.
    std::fs::write(place.path("in.json"), r#"{"tokens": [[1, 2, 3]]}"#).unwrap();
    let run = |model| told(&["run", model, "--inputs", "in.json"]);
    let (of_run, of_export) = (run("run"), run("out"));
    let logits = |text: &str| text.lines().find(|l| l.starts_with("logits")).map(str::to_owned);
    assert!(logits(&of_run).is_some() && logits(&of_run) == logits(&of_export), "{of_run}\n{of_export}");
    let seed = said(place.command(&["run", "run", "--inputs", "in.json", "--seed", "3"]).output().unwrap());
    assert!(seed.code == Some(2) && seed.err.contains("weights of its own"), "{}", seed.err);
    // The best token is always the same one.
    let thrice = said(place.command(&["generate", "run", "-n", "3", "--temperature", "0"]).output().unwrap());
    assert_eq!(thrice.code, Some(2));
    assert!(thrice.err.contains("`--count 3` would give the same"), "{}", thrice.err);
    assert!(thrice.err.contains("`--beam 3` finds 3 different ones"), "{}", thrice.err);
    assert_eq!(told(&["export", "out", "--to", "again", "--quiet"]).lines().count(), 1);
    for name in ["model.safetensors", "tokenizer.json", "generation_config.json"] {
        let bytes = |folder: &str| std::fs::read(place.path(folder).join(name)).unwrap();
        assert!(bytes("out") == bytes("again"), "{name}");
    }
}

/// An exported model has the same metrics as its run, with a recipe whose tokens are its own tokenizer's.
#[test]
fn an_exported_run_has_the_figures_of_the_run() {
    let place = Folder::new();
    place.trained("run", &["--set", "vocab=40", "--with", "tokens=characters"]);
    let told = |arguments: &[&str]| {
        let said = said(place.command(arguments).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out
    };
    told(&["export", "run", "--to", "out", "--quiet"]);
    let tokens = ["--recipe", "recipe.yaml", "--with", "tokens={file: {path: out/tokenizer.json}}"];
    let metrics = ["--with", "evaluate.metrics=[loss, accuracy]"];
    let out = told(&[&["eval", "out"][..], &tokens, &metrics].concat());
    assert_eq!(told(&[&["eval", "run"][..], &metrics].concat()), out);
    assert!(out.starts_with("loss"), "{out}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let place = Folder::new();
    place.trained("run", &[]);
    let good = place.bytes("run", 12);
    let file = place.path("run/checkpoints/step-000000012/optimizer.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let resumed = place.trained("run", &["--resume"]);
    assert!(
        resumed.err.contains("step-000000012 cannot be used, so step-000000009 is used"),
        "{}",
        resumed.err
    );
    assert!(resumed.err.contains("optimizer.safetensors is damaged"), "{}", resumed.err);
    same(&good, &place.bytes("run", 12));
}

/// The averaged checkpoint is preferred, then the best one, then the newest one.
#[test]
fn a_run_with_a_damaged_checkpoint_is_used_with_the_next_best() {
    let place = Folder::new();
    place.trained("run", &["--with", "average=2"]);
    let damage = |name: &str| {
        let file = place.path("run/checkpoints").join(name).join("model.safetensors");
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 4;
        std::fs::write(&file, bytes).unwrap();
    };
    let eval = |more: &[&str]| said(place.command(&[&["eval", "run"], more].concat()).output().unwrap());
    assert!(!eval(&[]).err.contains("warning"));
    damage("averaged");
    let said = eval(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("warning: the checkpoint averaged cannot be used, so step-0000000"),
        "{}",
        said.err
    );
    assert_eq!(eval(&["--checkpoint", "averaged"]).code, Some(4));
    damage("step-000000012");
    let said = eval(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("checkpoint step-000000012 cannot be used, so step-000000009 is"),
        "{}",
        said.err
    );
    damage("step-000000009");
    let said = eval(&[]);
    assert_eq!(said.code, Some(4), "{}", said.err);
}

#[test]
fn a_run_that_died_before_its_first_checkpoint_begins_anew() {
    let place = Folder::new();
    place.trained("run", &[]);
    let good = place.bytes("run", 12);
    for entry in std::fs::read_dir(place.path("run/checkpoints")).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    place.trained("run", &["--resume"]);
    same(&good, &place.bytes("run", 12));
}

#[test]
fn a_finished_run_is_left_as_it_is_and_another_recipe_is_refused() {
    let place = Folder::new();
    place.trained("run", &[]);
    let good = place.bytes("run", 12);
    place.trained("run", &["--resume"]);
    same(&good, &place.bytes("run", 12));
    let other = said(place.train("run", &["--resume", "--with", "seed=9"]).output().unwrap());
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("the recipe is not the one the run began with"), "{}", other.err);
    let again = said(place.train("run", &[]).output().unwrap());
    assert_eq!(again.code, Some(3));
    assert!(again.err.contains("is already the folder of a run"), "{}", again.err);
}

/// A run that was ended before its first checkpoint begins again, with what it was given then or is given
/// now.
#[test]
fn a_run_without_a_checkpoint_begins_again() {
    let place = Folder::new();
    place.trained("good", &[]);
    place.trained("tuned", &["--weights", "good/checkpoints/step-000000012/model.safetensors"]);
    for (good, run) in [("good", "a"), ("good", "b"), ("tuned", "c")] {
        let wanted = place.bytes(good, 12);
        let copy = Command::new("cp").args(["-r", good, run]).current_dir(place.path("")).status();
        assert!(copy.unwrap().success());
        for entry in std::fs::read_dir(place.path(run).join("checkpoints")).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        match run {
            // Spec and recipe are given again, without `--resume`.
            "b" => drop(place.trained(run, &[])),
            _ => {
                let said = said(place.command(&["train", "--resume", "--out", run]).output().unwrap());
                assert_eq!(said.code, Some(0), "{run}: {}", said.err);
            }
        }
        let model = |all: &[(String, Vec<u8>)]| {
            all.iter().find(|(name, _)| name == "model.safetensors").unwrap().1.clone()
        };
        assert!(model(&wanted) == model(&place.bytes(run, 12)), "{run} ends with other weights");
    }
}

#[test]
fn a_run_is_trained_by_one_process() {
    let place = Folder::new();
    place.trained("run", &[]);
    let held = trafoc::learn::run_dir::RunDir::open(&place.path("run")).unwrap();
    let second = said(place.train("run", &["--resume"]).output().unwrap());
    assert_eq!(second.code, Some(4));
    assert!(second.err.contains(&format!("process {} is training", std::process::id())), "{}", second.err);
    drop(held);
    place.trained("run", &["--resume"]);
}

#[test]
fn a_run_ends_when_it_becomes_no_better_and_averages() {
    let place = Folder::new();
    // A learning rate so high that the second evaluation is worse than the first.
    let more = [
        "--with",
        "steps=200",
        "--with",
        "stop={patience: 2}",
        "--with",
        "optimizer.adamw.learning_rate=0.5",
        "--with",
        "checkpoint.keep=3",
        "--with",
        "average=2",
    ];
    let said_so = place.trained("run", &[&more[..], &["--format", "json"]].concat());
    let json: Json = serde_json::from_str(&said_so.out).unwrap();
    assert_eq!(json["data"]["ending"], "stopped", "{}", said_so.out);
    let last = json["data"]["step"].as_u64().unwrap();
    assert!(last < 200);
    let best = json["data"]["best"]["step"].as_u64().unwrap();
    assert!(best < last);
    let folder = place.path("run/checkpoints");
    let mut names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.contains(&"averaged".to_owned()), "{names:?}");
    assert!(names.contains(&format!("step-{best:09}")), "{names:?}");
    // The last three, the best one and the mean.
    assert!(names.len() <= 5, "{names:?}");
    let read = |name: &str| {
        let path = folder.join(name).join("model.safetensors");
        trafoc::interp::tensor_file::TensorFile::open(&path).unwrap().floats("head.output.weight").unwrap()
    };
    let steps: Vec<&String> = names.iter().rev().filter(|n| n.starts_with("step")).take(2).collect();
    let (a, b, mean) = (read(steps[0]), read(steps[1]), read("averaged"));
    for ((a, b), mean) in a.iter().zip(&b).zip(&mean) {
        assert!(((a + b) / 2.0 - mean).abs() <= 1e-6, "{a} {b} {mean}");
    }
}

#[test]
fn an_infinite_metric_is_never_the_best_and_leaves_checkpoints_readable() {
    let place = Folder::new();
    // Logits are so far apart that `exp(loss)` overflows, and the state of a checkpoint is JSON, which has no
    // infinity.
    let more = [
        "--set",
        "init={normal: {std: 400}}",
        "--with",
        "evaluate.metrics=[perplexity]",
        "--with",
        "steps=4",
    ];
    let printed = place.trained("run", &more);
    assert!(printed.err.contains("perplexity inf"), "{}", printed.err);
    let newest = trafoc::learn::run_dir::newest(&place.path("run")).unwrap();
    assert_eq!((newest.state.step, newest.state.best, newest.damaged), (4, None, Vec::new()));
}

#[test]
fn a_forecast_trains_nothing() {
    let place = Folder::new();
    let output =
        place.command(&["train", "spec.yaml", "--recipe", "recipe.yaml", "--dry-run", "--format", "json"]);
    let forecast = said({ output }.output().unwrap());
    assert_eq!(forecast.code, Some(0), "{}", forecast.err);
    let json: Json = serde_json::from_str(&forecast.out).unwrap();
    assert_eq!(json["data"]["steps"], 12);
    // After steps 4, 8 and 12; the time of a run is that of preparing its data, its steps and its evaluations.
    assert_eq!(json["data"]["evaluations"], 3);
    let seconds = |name: &str| json["data"][name].as_f64().unwrap();
    let own = 12.0 * seconds("seconds_a_step") + 3.0 * seconds("seconds_an_evaluation");
    let all = seconds("seconds_preparing") + own;
    assert!(seconds("seconds_preparing") > 0.0);
    assert!(seconds("seconds_an_evaluation") > 0.0 && (seconds("seconds") - all).abs() <= 1e-9 * all);
    assert!(json["data"]["memory_bytes"].as_u64().unwrap() > 1 << 20);
    let names = std::fs::read_dir(place.0.path()).unwrap().count();
    assert_eq!(names, 2, "the spec and the recipe");
    let large = [
        "train",
        "spec.yaml",
        "--recipe",
        "recipe.yaml",
        "--dry-run",
        "--set",
        "d_model=65536",
        "--set",
        "decoder.layers=48",
        "--set",
        "decoder.attention.heads=512",
    ];
    let large = said(place.command(&large).output().unwrap());
    assert_eq!(large.code, Some(3), "{}", large.err);
    assert!(large.err.contains("of memory, but"), "{}", large.err);
    // No batch is small enough.
    assert!(large.err.contains("the state of the optimizer alone take"), "{}", large.err);
}

/// What is left of a run is made of steps and evaluations, each as long as they have been.
#[test]
fn evaluations_are_no_training_time() {
    use trafoc::learn::session::Clock;
    let place = Folder::new();
    let recipe = std::fs::read_to_string(place.path("recipe.yaml")).unwrap();
    let (mut sources, mut sink) = (trafoc::spec::load::sources(), trafoc::diag::Sink::new());
    let id = sources.add("recipe.yaml", recipe);
    let recipe = trafoc::learn::recipe::read(&sources, id, &[], &mut sink).unwrap();
    let state = |step: u64| -> trafoc::learn::run_dir::State {
        let text = format!(
            r#"{{"step": {step}, "steps": 12, "seed": 7, "targets": 0, "best": null, "stop": null, "stale": 0, "finished": false}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let clock = Clock { steps: Duration::from_secs(10), evaluations: (Duration::from_secs(6), 1) };
    // 5 steps of 2 s; 7 more steps, and the evaluations after steps 8 and 12.
    assert_eq!(clock.left(5, &state(5), &recipe), 7.0 * 2.0 + 2.0 * 6.0);
    let none = Clock { steps: Duration::from_secs(4), ..Clock::default() };
    assert_eq!(none.left(2, &state(2), &recipe), 20.0);
    let until = |step, steps| recipe.evaluate.made_until(step, steps);
    assert_eq!([until(3, 12), until(4, 12), until(11, 12), until(12, 12)], [0, 1, 2, 3]);
    assert_eq!([until(9, 10), until(10, 10), until(20, 10)], [2, 3, 3]);
}

/// A translation has at most as many tokens as the longest one of its data, unless another number is asked for.
#[test]
fn a_translation_ends_at_the_limit_of_its_data() {
    let place = Folder::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/numbers-en-fr.txt");
    let stack = "{layers: 1, attention: {heads: 2}, ffn: {expansion: 2}}";
    let spec = format!(
        "trafo: 1\nname: small\nvocab: 203\ncontext: 64\nd_model: 16\nencoder: {stack}\ndecoder: {stack}\n\
         head: translate\n"
    );
    std::fs::write(place.path("spec.yaml"), spec).unwrap();
    let recipe = format!(
        "recipe: 1\ndata: {{format: pairs, train: {}, longest: 6, too_long: cut, limit: 200}}\ntokens: words\n\
         optimizer: {{adam: {{}}}}\nbatch: {{size: 8}}\nsteps: 1\nevaluate: {{limit: 8, split: train}}\nseed: 1\n",
        data.display()
    );
    std::fs::write(place.path("recipe.yaml"), recipe).unwrap();
    place.trained("run", &[]);
    // Without a limit of the recipe it is the longest target.
    let recipe = std::fs::read_to_string(place.path("recipe.yaml")).unwrap();
    std::fs::write(place.path("free.yaml"), recipe.replace(", longest: 6", "").replace("200", "175"))
        .unwrap();
    let free = ["train", "spec.yaml", "--recipe", "free.yaml", "--out", "free"];
    let told = said(place.command(&free).output().unwrap()).err;
    // What the data has is suggested, and what it lacks is named.
    assert!(told.contains("next: trafoc generate free --prompt zero"), "{told}");
    let unknown = ["generate", "free", "--format", "json", "-p", "two", "-p", "hello two world hello"];
    let json: Json = serde_json::from_str(&said(place.command(&unknown).output().unwrap()).out).unwrap();
    let most = json["data"]["max_tokens"].as_u64().unwrap();
    assert!((3..10).contains(&most), "{json}");
    let told =
        said(place.command(&["generate", "free", "-p", "hello two world hello"]).output().unwrap()).err;
    assert!(told.contains("the vocabulary has no `hello`, `world`; the model reads `<unk>` there"), "{told}");
    let written = |more: &[&str]| {
        let arguments =
            [&["generate", "run", "--format", "json", "-p", "two", "-p", "ninety one"], more].concat();
        let said = said(place.command(&arguments).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        (serde_json::from_str::<Json>(&said.out).unwrap(), said.err)
    };
    let texts = |json: &Json| json["data"]["texts"].as_array().unwrap().clone();
    let (json, told) = written(&[]);
    // Cut to six positions, no target of these numbers has more than four words, and then its end.
    assert_eq!(json["data"]["max_tokens"], 5);
    let cut = texts(&json).iter().filter(|t| t["ended"] == false).count();
    assert!(texts(&json).iter().all(|t| t["tokens"].as_u64().unwrap() <= 5), "{json}");
    // Notes are for people.
    assert_eq!(told, "");
    let asked = ["generate", "run", "-p", "two", "-p", "ninety one"];
    let told = said(place.command(&asked).output().unwrap()).err;
    assert_eq!(told.contains("did not end within 5 tokens"), cut > 0, "{told}");
    let (json, _) = written(&["--max-tokens", "20"]);
    assert_eq!(json["data"]["max_tokens"], 20);
    assert!(texts(&json).iter().all(|t| t["ended"] == true || t["tokens"] == 20), "{json}");
    let told = said(place.command(&[&asked[..], &["--max-tokens", "20"]].concat()).output().unwrap()).err;
    assert!(!told.contains("did not end"), "{told}");
    // No text at all is not one token.
    let none = said(place.command(&[&asked[..], &["--max-tokens", "0"]].concat()).output().unwrap());
    assert_eq!(none.code, Some(2), "{}", none.err);
    // The advice for a part that the data lack gives that part.
    let lacking = said(place.command(&["eval", "run", "--split", "test"]).output().unwrap());
    assert!(lacking.err.contains("`--with 'data.split={test: 0.1}'`"), "{}", lacking.err);
    let split = ["eval", "run", "--split", "test", "--with", "data.split={test: 0.1}"];
    let followed = said(place.command(&split).output().unwrap());
    assert!(!followed.err.contains("no part"), "{}", followed.err);
}

#[test]
fn a_trained_model_is_measured_and_writes() {
    let place = Folder::new();
    place.trained("run", &["--with", "steps=40"]);
    let measured =
        said(place.command(&["eval", "run", "--format", "json", "--checkpoint", "last"]).output().unwrap());
    assert_eq!(measured.code, Some(0), "{}", measured.err);
    let json: Json = serde_json::from_str(&measured.out).unwrap();
    let told = place.lines("run").into_iter().rfind(|l| l["split"] == "validation").unwrap();
    assert_eq!(json["data"]["figures"][0]["value"], told["loss"]);
    assert_eq!(json["data"]["figures"][1]["value"], told["accuracy"]);
    let written = |more: &[&str]| {
        let said = said(place.command(&[&["generate", "run"], more].concat()).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out
    };
    // With weights in fewer bits, the metrics in f32 are the same, and the others are the nearer to them the
    // more bits a weight has.
    let off = ["bf16", "int8", "int4"].map(|of| {
        let arguments = ["eval", "run", "--format", "json", "--checkpoint", "last", "--weights-dtype", of];
        let fewer = said(place.command(&arguments).output().unwrap());
        assert_eq!(fewer.code, Some(0), "{}", fewer.err);
        let fewer: Json = serde_json::from_str(&fewer.out).unwrap();
        assert_eq!(fewer["data"]["weights_dtype"], of);
        assert_eq!(fewer["data"]["in_f32"], json["data"]["figures"]);
        let loss = |json: &Json| json["figures"][0]["value"].as_f64().unwrap();
        (loss(&fewer["data"]) - loss(&json["data"])).abs()
    });
    // The type of all tensors is another thing; the loss is in single precision either way.
    for of in ["bf16", "f16"] {
        let arguments = ["eval", "run", "--format", "json", "--checkpoint", "last", "--dtype", of];
        let other = said(place.command(&arguments).output().unwrap());
        assert_eq!(other.code, Some(0), "{}", other.err);
        let other: Json = serde_json::from_str(&other.out).unwrap();
        let off = other["data"]["figures"][0]["value"].as_f64().unwrap()
            - json["data"]["figures"][0]["value"].as_f64().unwrap();
        assert!(off != 0.0 && off.abs() < 0.1, "{of}: {off}");
    }
    assert!(off.iter().all(|off| *off > 0.0 && *off < 0.1), "{off:?}");
    assert!(off[1] < off[2], "{off:?}");
    let text = said(place.command(&["eval", "run", "--weights-dtype", "int8"]).output().unwrap());
    assert!(
        text.out.lines().all(|line| line.contains("in int8, ") && line.ends_with(" in f32")),
        "{}",
        text.out
    );
    assert!(text.err.contains("matrices in int8 take"), "{}", text.err);
    let other =
        place.command(&["eval", "run", "--weights-dtype", "int8", "--dtype", "bf16"]).output().unwrap();
    assert_eq!(said(other).code, Some(5));
    let names = written(&["-n", "70", "--seed", "3", "--known"]);
    assert_eq!(names.lines().count(), 70, "{names}");
    assert!(names.lines().all(|l| ["train", "validation", "new"].contains(&l.rsplit('\t').next().unwrap())));
    assert_eq!(names, written(&["-n", "70", "--seed", "3", "--known"]));
    assert_ne!(names, written(&["-n", "70", "--seed", "4", "--known"]));
    let greedy = written(&["--temperature", "0", "--prompt", "kara"]);
    assert!(greedy.starts_with("kara"), "{greedy}");
    // A single hypothesis is greedy decoding.
    assert_eq!(greedy, written(&["--beam", "1", "--length-penalty", "0", "--prompt", "kara"]));
    assert_eq!(written(&["--beam", "4", "-n", "3", "--prompt", "kara"]).lines().count(), 3);
    // A text does not depend on the other texts in its batch.
    let among = written(&["--temperature", "0", "--prompt", "kara", "--prompt", "bey", "--prompt", "köyü"]);
    assert_eq!(among.lines().next(), greedy.lines().next());
}
