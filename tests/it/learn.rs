//! Recipes: decoded, checked against a spec, and the data they name.

use std::path::Path;

use trafoc::compile::{Compilation, compile_tree};
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::field::seek::names_below;
use trafoc::field::{Context, Size, Value};
#[cfg(feature = "learn")]
use trafoc::learn::data::Inherited;
use trafoc::learn::recipe::{self, Recipe, agree};
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load::{self, Files};
use trafoc::spec::sweep;
use trafoc::syntax::print;
use trafoc::syntax::set::parse_set;

use crate::bad::code_of;
use crate::compiled::{Folder, repository, specs};

/// A recipe with the spec it is for.
pub struct Pair {
    pub sources: SourceMap,
    #[cfg(feature = "learn")]
    pub spec: trafoc::spec::ModelSpec,
    pub recipe: Option<Recipe>,
    pub sink: Sink,
}

impl Pair {
    /// A recipe's text and a spec's file, with settings applied to the recipe.
    pub fn of_text(name: &str, text: &str, spec: &Path, variant: Option<&str>, over: &[&str]) -> Pair {
        let mut sources = load::sources();
        let mut sink = Sink::new();
        let mut folder = Folder(spec.parent().unwrap().to_owned());
        let file = spec.file_name().unwrap().to_str().unwrap();
        let (id, notation) = folder.open(&mut sources, SourceId::default(), file).unwrap();
        let over: Vec<_> = over.iter().map(|s| parse_set(&mut sources, s).unwrap()).collect();
        let tree = load::tree(&mut sources, id, notation, &[], &mut folder, &mut sink).unwrap();
        let variants = sweep::variants(&tree, &mut Context::new(&sources, &mut sink));
        let tree = match variant {
            Some(name) => variants.iter().find(|v| v.name == name).unwrap().tree.clone(),
            None => tree,
        };
        let Compilation { diagnostics, spec, graph, .. } = compile_tree(&sources, Some(tree), sink).unwrap();
        let (Some(spec), Some(graph)) = (spec, graph) else { panic!("{diagnostics:#?}") };
        let mut sink = Sink::new();
        let id = sources.add(name, text);
        let recipe = recipe::read(&sources, id, &over, &mut sink);
        if let Some(recipe) = &recipe {
            // A recipe for any trained body takes its tokenizer and its weights.
            let has_tokenizer = text.contains("trafoc train DIR ");
            let start = if has_tokenizer { agree::Weights::Checkpoint } else { agree::Weights::Fresh };
            let body = agree::Body { has_tokenizer, start };
            agree::check(recipe, &spec, &graph, body, &mut sink);
        }
        Pair {
            sources,
            #[cfg(feature = "learn")]
            spec,
            recipe,
            sink,
        }
    }

    /// A shipped recipe with the spec and the variant that its first lines name.
    pub fn shipped(name: &str, over: &[&str]) -> Pair {
        Pair::shipped_as(name, over, None)
    }

    /// A shipped recipe, or `other` in its place.
    fn shipped_as(name: &str, over: &[&str], other: Option<&str>) -> Pair {
        let path = repository(&format!("specs/recipes/{name}.yaml"));
        let text = std::fs::read_to_string(&path).unwrap();
        let command = text.lines().find_map(|l| l.strip_prefix("#   trafoc train ")).unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        let after = |flag: &str| words.iter().position(|w| *w == flag).map(|i| words[i + 1]);
        assert_eq!(after("--recipe"), Some(format!("specs/recipes/{name}.yaml").as_str()));
        let spec = match (words[0], after("--head")) {
            ("DIR", Some("span")) => "specs/bert-qa.yaml",
            ("DIR", Some("tag")) => "tests/good/head-tag.yaml",
            ("DIR", _) => "specs/bert-classify.yaml",
            (spec, _) => spec,
        };
        let text = other.unwrap_or(&text);
        Pair::of_text(path.to_str().unwrap(), text, &repository(spec), after("--variant"), over)
    }

    /// Reads the data, which may report more errors.
    #[cfg(feature = "learn")]
    pub fn read(&mut self) {
        let recipe = self.recipe.clone().unwrap();
        let read = trafoc::learn::data::prepare(
            &recipe,
            &self.spec,
            &Inherited::default(),
            &self.sources,
            &mut self.sink,
        );
        assert_eq!(read.err(), Some(trafoc::learn::data::Refused::Data));
    }

    /// Without the feature, no data is read.
    #[cfg(not(feature = "learn"))]
    pub fn read(&mut self) {}

    /// The diagnostics in order.
    pub fn found(&self) -> Vec<Diagnostic> {
        self.sink.clone().into_sorted()
    }

    /// The diagnostics as a terminal without colours shows them.
    pub fn rendered(&self) -> String {
        render::render(&self.found(), &self.sources, false, render::DEFAULT_WIDTH)
    }
}

#[cfg(feature = "interp")]
mod choose;
#[cfg(feature = "learn")]
mod data;
#[cfg(feature = "learn")]
mod faulty;
mod made;
#[cfg(feature = "learn")]
mod merges;
#[cfg(feature = "learn")]
mod metric;
#[cfg(feature = "learn")]
mod order;
mod random;
#[cfg(feature = "learn")]
mod real;
#[cfg(feature = "learn")]
mod sentencepiece;
#[cfg(feature = "interp")]
mod span;
#[cfg(feature = "learn")]
mod store;
#[cfg(feature = "learn")]
mod token;
#[cfg(feature = "learn")]
mod words;

/// Every shipped recipe agrees with its spec, and is the same after being written in full.
#[test]
fn shipped_recipes_agree_with_their_specs() {
    for entry in std::fs::read_dir(repository("specs/recipes")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let pair = Pair::shipped(&name, &[]);
        assert!(pair.found().is_empty(), "{name}:\n{}", pair.rendered());
        let recipe = pair.recipe.unwrap();
        let mut sink = Sink::new();
        let again = Recipe::decode(&recipe.encode(), &mut Context::new(&pair.sources, &mut sink));
        assert_eq!(again, Some(recipe), "{name}");
    }
}

/// A run and a project have the recipe with all its values. What the author did not write does not cause a warning
/// there, however short the training is.
#[test]
fn defaults_that_are_written_out_cause_no_warnings() {
    for entry in std::fs::read_dir(repository("specs/recipes")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let is_end = |line: &str| line.starts_with("steps:") || line.starts_with("epochs:");
        let text: Vec<&str> =
            text.lines().map(|line| if is_end(line) { "steps: 10" } else { line }).collect();
        let short = Pair::shipped_as(&name, &[], Some(&text.join("\n")));
        let messages = |pair: &Pair| pair.found().into_iter().map(|d| d.message).collect::<Vec<_>>();
        // The comments say which model the recipe is for.
        let comments = text.iter().copied().take_while(|line| line.starts_with('#')).collect::<Vec<_>>();
        let whole = print::yaml(&short.recipe.as_ref().unwrap().encode());
        let whole = Pair::shipped_as(&name, &[], Some(&format!("{}\n{whole}", comments.join("\n"))));
        let own = messages(&short);
        let new: Vec<String> =
            messages(&whole).into_iter().filter(|message| !own.contains(message)).collect();
        assert!(new.is_empty(), "{name}: {new:?}");
    }
}

/// How many checkpoints exist at a time follows from how many a run writes.
#[test]
fn checkpoints_of_a_run_are_counted() {
    let short = Pair::shipped("gbt-mulm", &["checkpoint.every=7"]).recipe.unwrap();
    for (every, keep, steps) in
        [(4, 3, 0), (4, 3, 3), (4, 3, 4), (6, 8, 20), (7, 9, 30), (7, 1, 30), (14, 9, 28)]
    {
        for evaluates in [true, false] {
            let mut recipe = short.clone();
            recipe.evaluate.every = evaluates.then_some(Size(every));
            recipe.checkpoint.keep = Size(keep);
            let is_due = |step: &u64| {
                step.is_multiple_of(7) || (evaluates && step.is_multiple_of(every)) || *step == steps
            };
            let made = (1..=steps).filter(is_due).count() as u64;
            let most = recipe.checkpoint.most(&recipe.evaluate, steps);
            // Those that are kept, the best one, and the one that is being written.
            assert_eq!(most, made.min(keep + 2), "every {every} of {steps}, {evaluates}");
        }
    }
}

/// `tests/bad/recipe`: recipes with an error, each for the shipped spec that its first line names. The
/// file's name begins with the code that must be reported first; the rendered diagnostics are a snapshot.
/// The lists by which a spec and a recipe are told apart are those of their keys.
#[test]
fn keys_of_specs_and_recipes_are_told_apart() {
    let names = |fields: Vec<trafoc::field::value::Field>| fields.iter().map(|f| f.name).collect::<Vec<_>>();
    let sorted = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(names(Recipe::fields())), sorted(load::OF_RECIPES.to_vec()));
    assert_eq!(sorted(names(trafoc::spec::model::fields())), sorted(load::OF_SPECS.to_vec()));
    // Below them, the words that are in recipes alone.
    let of_specs = names_below(&trafoc::spec::model::fields());
    let of_recipes = names_below(&Recipe::fields());
    let is_own = |name: &&&str| !of_specs.contains(**name) && !load::OF_RECIPES.contains(*name);
    let own: Vec<&str> = of_recipes.iter().filter(is_own).copied().collect();
    assert_eq!(own, sorted(load::BELOW_RECIPES.to_vec()));
}

#[test]
fn faults_of_recipes_are_found_and_shown() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/recipe"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut wrong = Vec::new();
    for (name, path) in specs("tests/bad/recipe") {
        let text = std::fs::read_to_string(&path).unwrap();
        let spec = text.lines().next().and_then(|l| l.strip_prefix("# spec: ")).unwrap();
        let spec = repository(&format!("specs/{spec}.yaml"));
        let mut pair = Pair::of_text(path.to_str().unwrap(), &text, &spec, None, &[]);
        // The errors of these are in their data files.
        let in_files = ["bad-data", "data-mismatch-class", "vocab-mismatch-few"];
        if in_files.iter().any(|start| name.starts_with(start)) {
            assert!(pair.found().is_empty(), "{}", pair.rendered());
            pair.read();
            if cfg!(not(feature = "learn")) {
                continue;
            }
        }
        // The path of the repository differs between machines.
        let shown = pair.rendered().replace(repository("").to_str().unwrap(), "");
        if pair.found().first().map(|d| d.code) != code_of(&name) {
            wrong.push(format!("{name}:\n{shown}"));
            continue;
        }
        settings.set_description(text);
        settings.bind(|| insta::assert_snapshot!(name, shown));
    }
    assert!(wrong.is_empty(), "these report something else:\n{}", wrong.join("\n"));
}
