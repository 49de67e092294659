//! Runs the examples of every code: the wrong one reports the code first, the right one passes.
//!
//! An example is a file `spec.yaml` alone in its folder. One that begins with `--set` is an argument for
//! the right example of `missing-key`, and in the example of `encoding`, `\xNN` represents a byte.

use std::collections::BTreeSet;

use trafoc::diag::Code;
use trafoc::report::lesson::lesson;
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::explain::{catalogue, find};
use trafoc::spec::load::Files;
use trafoc::syntax::Notation;

use crate::front::Front;
use crate::learn::Pair;

/// An example alone in its folder.
struct Alone(String);

impl Files for Alone {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        match path {
            "spec.yaml" => Ok((sources.add("spec.yaml", self.0.clone()), Notation::Yaml)),
            _ => Err("there is no such file".to_owned()),
        }
    }
}

/// The bytes of a text in which `\xNN` represents a byte that is not valid UTF-8.
fn bytes(example: &str) -> Vec<u8> {
    let mut parts = example.split("\\x");
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

fn run(example: &str) -> Front {
    let text = match example.starts_with("--set ") {
        true => format!("# {}\n{}", example.replace("--set ", "set: "), Code::MissingKey.explanation().right),
        false => example.to_owned(),
    };
    Front::of_bytes("spec.yaml", &bytes(&text), Notation::Yaml, &mut Alone(text.clone()))
}

/// What is wrong with the examples of a code about recipes, which are for the right spec of `missing-key`.
fn recipe_fault(code: Code) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.yaml");
    std::fs::write(&spec, Code::MissingKey.explanation().right).unwrap();
    let explanation = code.explanation();
    let wrong = Pair::of_text("recipe.yaml", explanation.wrong, &spec, None, &[]);
    let right = Pair::of_text("recipe.yaml", explanation.right, &spec, None, &[]);
    let holds = wrong.found().iter().map(|d| d.code).eq([code]) && right.found().is_empty();
    (!holds).then(|| format!("{code}:\n{}{}", wrong.rendered(), right.rendered()))
}

#[test]
fn every_code_has_examples_that_hold() {
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let explanation = code.explanation();
        if explanation.wrong.starts_with("recipe:") {
            wrong.extend(recipe_fault(*code));
            continue;
        }
        // The examples of this code are lines of data, which are tested elsewhere.
        if *code == Code::BadData {
            continue;
        }
        let front = run(explanation.wrong);
        if front.codes() != [code.slug()] {
            wrong.push(format!("{code}: its wrong example finds {:?}\n{}", front.codes(), front.rendered()));
        }
        let front = run(explanation.right);
        if front.compilation.graph.is_none() || !front.codes().is_empty() {
            wrong.push(format!("{code}: its right example does not pass\n{}", front.rendered()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn explanations_are_sentences() {
    for code in Code::ALL {
        let explanation = code.explanation();
        assert!(explanation.why.ends_with('.'), "{code}");
        assert!(code.slug().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{code}");
        assert_eq!(Code::from_slug(code.slug()), Some(*code));
    }
}

/// What a page calls "below" follows it, and what it calls "above" came before; what both stacks have is
/// explained for both.
#[test]
fn pages_list_what_they_refer_to() {
    let names: BTreeSet<String> = catalogue().into_iter().map(|t| t.name).collect();
    for name in names {
        let found = find(&name);
        let mut listed = false;
        for topic in &found {
            let takes = topic.takes.as_deref().unwrap_or_default();
            assert!(!takes.contains(" below") || !topic.items.is_empty(), "{name}: {}: {takes}", topic.path);
            assert!(!takes.contains(" above") || listed, "{name}: {}: {takes}", topic.path);
            listed |= !topic.items.is_empty();
        }
    }
    let page: String = find("attention").iter().map(ToString::to_string).collect();
    assert!(page.contains("also in    encoder.attention\n"), "{page}");
    let page: String = find("cross").iter().map(ToString::to_string).collect();
    assert!(!page.contains("encoder.cross"), "{page}");
}

/// Each row leads to a word of trafoc, and a word of trafoc is in none as another library's, except for those that
/// mean something else there.
#[test]
fn foreign_words_lead_to_words_that_exist() {
    use trafoc::diag::foreign::rows;

    let topics = [catalogue(), trafoc::learn::recipe::catalogue()].concat();
    let is_known = |word: &str| topics.iter().any(|t| t.name == word);
    let both =
        ["base", "dim", "geglu", "grid", "iterations", "reglu", "relative", "sin", "swiglu", "truncate"];
    let both = [
        &both[..],
        &["average", "embedding", "embeddings", "full", "hidden", "mlp", "none", "validation", "wiring"],
    ]
    .concat();
    let mut faults = Vec::new();
    let mut met = BTreeSet::new();
    for (theirs, ours) in rows() {
        if !is_known(ours.rsplit('.').next().unwrap()) {
            faults.push(format!("`{ours}`, for `{theirs}`, is not a word of the language"));
        }
        if is_known(theirs) && !both.contains(&theirs) {
            faults.push(format!("`{theirs}` is a word of the language, and also `{ours}`"));
        }
        if theirs == ours || !met.insert((theirs, ours)) {
            faults.push(format!("`{theirs}` says nothing new about `{ours}`"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every word of a term is a word that nothing else explains, and what its text names exists: commands with
/// their options, and keys, parts and words of the language.
#[test]
fn terms_name_what_exists() {
    use clap::CommandFactory as _;
    use trafoc::diag::{foreign, ideas, terms};

    let program = trafoc::cli::Cli::command();
    let topics = [catalogue(), trafoc::learn::recipe::catalogue()].concat();
    let is_known = |word: &str| topics.iter().any(|t| t.name == word || t.path == word);
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for term in terms::TERMS {
        for name in term.names.split_ascii_whitespace() {
            let is_found = is_known(name) || foreign::foreign(name).is_some() || ideas::idea(name).is_some();
            if is_found || !seen.insert(name) {
                faults.push(format!("`{name}` has another explanation"));
            }
        }
        assert!(term.means.ends_with('.') && term.here.ends_with('.'), "{term:?}");
        let mut command = None;
        for quoted in term.here.split('`').skip(1).step_by(2) {
            if let Some(call) = quoted.strip_prefix("trafoc ") {
                let name = call.split_whitespace().next().unwrap();
                command = Some(program.find_subcommand(name).unwrap_or_else(|| panic!("no command {name}")));
            }
            for option in quoted.split_whitespace().filter_map(|w| w.strip_prefix("--")) {
                let command = command.unwrap_or_else(|| panic!("--{option} of which command?"));
                if !command.get_arguments().any(|a| a.get_long() == Some(option)) {
                    faults.push(format!("{} has no --{option}", command.get_name()));
                }
            }
            let is_word = !quoted.contains("--") && !quoted.starts_with("trafoc ");
            if is_word && !quoted.contains(['=', ':']) && !is_known(quoted) {
                faults.push(format!("`{quoted}` is not a word of the language"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn words_are_explained_however_they_are_written() {
    for (asked, answer) in [
        ("layer norm", "layer_norm"),
        ("Layer-Norm", "layer_norm"),
        ("label smoothing", "label_smoothing"),
        ("grouped query attention", "trafoc calls this `kv_heads`"),
        ("rope theta", "trafoc calls this `theta`"),
        ("tokenizer", "trafoc calls this `tokens`"),
        ("kv cache", "a term"),
        ("mixture of experts", "trafoc calls this `moe`"),
        ("gradient clipping", "trafoc calls this `clip`"),
        ("Masked language modelling", "trafoc calls this `mlm`"),
        ("ntk-aware", "trafoc calls this `dynamic`"),
        ("attention sinks", "trafoc calls this `sinks`"),
        ("peri-ln", "trafoc calls this `sandwich`"),
        ("qk_layernorm", "trafoc calls this `qk_norm`"),
        ("xavier", "trafoc calls this `xavier_uniform`"),
        ("universal transformer", "trafoc calls this `share`"),
        ("NoPE", "trafoc calls this `position.none`"),
        ("short conv", "trafoc calls this `short_convolution`"),
        ("aux-loss-free load balancing", "trafoc calls this `correction`"),
        ("pre-training", "a term"),
        ("part_cycle", "part-cycle"),
        ("hiddencharacter", "hidden-character"),
        ("Beam search", "--beam"),
        ("switch transformer", "`top_k`"),
        ("cross-encoder", "`second`"),
        ("siamese", "`pairs`"),
        ("datasets", "trafoc calls this `data`"),
        ("variant", "trafoc calls this `sweep`"),
        ("functions", "`trafoc explain expressions`"),
        ("slots", "a term"),
        ("sweep.grid", "grid  (a subject)"),
        ("sweep.wide", "sweep  (a key)"),
        ("sweep.wide.decoder.layers", "decoder.layers  (a key)"),
        ("decoder.ranges.0", "decoder.ranges  (a key)"),
        ("parts.mine", "parts  (a key)"),
        ("ffn.swiglu", "swiglu  (a part)"),
        ("encoder.ffn.swiglu", "swiglu  (a part)"),
        ("swiglu.hidden", "swiglu  (a part)"),
        ("decoder.attention.mamba.inner", "mamba  (a part)"),
        ("decoder.norm.rms_norm.eps", "Added to the mean square"),
        ("batches", "recipe.batch  (a key)"),
        ("losses", "loss  (a word)"),
        ("activations", "one of the words above"),
        ("conditions", "--fail-if"),
        ("fit", "Usage: trafoc fit"),
        ("trafoc fit", "Usage: trafoc fit"),
        ("inspect flow", "Usage: trafoc inspect flow"),
    ] {
        let said = crate::cli::trafoc(&["explain", asked]);
        assert_eq!(said.code, 0, "{asked}: {}", said.err);
        assert!(said.out.contains(answer), "{asked}: {}", said.out);
    }
}

/// A path is suggested as a whole, with all of its words; where only its last one is none, what is there is listed.
#[test]
fn a_path_is_suggested_as_a_whole() {
    for (asked, answer) in [
        ("decoder.atention.heads", "did you mean `decoder.attention.heads`?"),
        ("encoder.atention.hedas", "did you mean `encoder.attention.heads`?"),
        ("decodr.attention.heads", "did you mean `decoder.attention.heads`?"),
        ("decoder.attention.haeds", "did you mean `decoder.attention.heads`?"),
        ("position.rope.theta", "did you mean `position.rotary.theta`?"),
        ("decoder.norm.rms_norm.epsilon", "did you mean `decoder.norm.rms_norm.eps`?"),
        ("heads.lm", "did you mean `head.lm`?"),
        ("optimizer.adwam", "did you mean `optimizer.adamw`?"),
        ("optimizer.adamw.bates", "did you mean `optimizer.adamw.betas`?"),
        ("optimizer.adamww", "did you mean `optimizer.adamw`?"),
        ("atention.roep", "did you mean `rotary`?"),
        ("atention.bar", "`trafoc explain attention` shows what it has"),
        ("trafoc.foo", "`trafoc explain` lists the codes, `trafoc schema` has every key"),
        ("decodr.atention.bar", "`trafoc explain decoder.attention` shows what it has"),
        ("decoder.attention.mamba.heads", "`decoder.attention.mamba` has `inner`, `state`"),
        ("embed.tokens", "help: `embed` has `position`"),
        ("embed.tokens", "`trafoc explain tokens` says what `tokens` is elsewhere"),
        ("rezero", "help: this goes into `block`: a factor that starts at 0 is `gain`"),
    ] {
        let said = crate::cli::trafoc(&["explain", asked]);
        assert_eq!(said.code, 2, "{asked}: {}", said.out);
        assert!(said.err.contains(answer), "{asked}: {}", said.err);
    }
}

/// Ideas outside of the language are called so, and no similar word is suggested in their place.
#[test]
fn ideas_outside_of_the_language_are_no_slips() {
    for (asked, answer) in [
        ("rag", "`head: embed`"),
        ("FIM", "the middle of a text"),
        ("fill in the middle", "the middle of a text"),
        ("quantisation", "`--weights-dtype int8`"),
        ("cosformer", "`gated_linear_attention`"),
        ("reward", "by preferences"),
        ("ul2", "`masking`"),
        ("next sentence prediction", "`second`"),
        ("sop", "`second`"),
        ("rtd", "ELECTRA"),
        ("pruning", "remove weights"),
        ("curriculum learning", "`start: {from: RUN}`"),
        ("sequence packing", "`batch: {bucket: 8}`"),
        ("continuous batching", "`trafoc export`"),
        ("hash layers", "by the position's vector"),
        ("vq", "`head: lm`"),
        ("crf", "`head: tag`"),
        ("rnn-t", "`head: translate`"),
        ("graph transformer", "edges"),
        ("ia3", "`adapter` of the library"),
        ("rwkv", "it is a model: `trafoc import DIR`"),
    ] {
        let said = crate::cli::trafoc(&["explain", asked]);
        assert_eq!(said.code, 2, "{asked}: {}", said.out);
        assert!(said.err.contains("trafoc has no ") && said.err.contains(answer), "{asked}: {}", said.err);
        assert!(!said.err.contains("did you mean"), "{asked}: {}", said.err);
    }
    // In a spec, the same letters are rather a slip of `tag`.
    let slip = "name: x\nvocab: 8\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2}, ffn: mlp}\nhead: {rag: {labels: 2}}\n";
    let front = crate::front::Front::of_text("slip.yaml", slip, "tests");
    assert!(front.rendered().contains("valid parts are `lm`"), "{}", front.rendered());
}

#[test]
fn explanations_of_shipped_specs_fit_in_eighty_columns() {
    for (name, path) in crate::compiled::specs("specs") {
        let lesson = lesson(&crate::compiled::graph(&path));
        let page = lesson.to_string();
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        // Nothing is cut to make it fit.
        let steps = lesson.sections.iter().flat_map(|section| &section.steps);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for uses in steps.filter_map(|step| step.uses.as_ref()) {
            assert!(words.contains(uses.as_str()), "{name}: {uses}");
        }
    }
}

/// What the page of a model says of each operation.
#[test]
fn operations_are_described_as_before() {
    let pages = crate::compiled::specs("tests/good").into_iter();
    let words = pages.flat_map(|(_, path)| lesson(&crate::compiled::graph(&path)).words);
    let said: BTreeSet<String> = words.map(|(word, sentence)| format!("{word}: {sentence}\n")).collect();
    insta::with_settings!({
        snapshot_path => "../snap/report", prepend_module_to_snapshot => false, omit_expression => true
    }, { insta::assert_snapshot!("operations", said.into_iter().collect::<String>()) });
}
