//! Slips of the fingers, made by a program in every word of every spec and recipe of the repository: the
//! first suggestion is the right word, the place is the word, and nothing else is reported.

use std::collections::BTreeSet;

use trafoc::diag::suggest::{are_neighbours, suggest};
use trafoc::diag::{Diagnostic, Severity, Sink};
use trafoc::field::value::{Field, Shape};
use trafoc::learn::recipe::{self, Recipe};
use trafoc::source::{SourceMap, Span};
use trafoc::spec::explain::{Sort, catalogue};
use trafoc::spec::{load, model};
use trafoc::syntax::tree::{Kind, Node, Style};
use trafoc::syntax::{Notation, parse};

use crate::compiled::specs;
use crate::front::Front;

/// A letter left out, typed twice, two letters exchanged, a neighbouring key: each at every place of the
/// word. A plural, and a capital.
fn slips(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut all = Vec::new();
    let with = |change: &dyn Fn(&mut Vec<char>)| {
        let mut changed = letters.clone();
        change(&mut changed);
        changed.into_iter().collect::<String>()
    };
    for (i, letter) in letters.iter().enumerate() {
        all.push(with(&|w| {
            w.remove(i);
        }));
        all.push(with(&|w| w.insert(i, *letter)));
        if i > 0 {
            all.push(with(&|w| w.swap(i - 1, i)));
        }
        let near = ('a'..='z').filter(|c| are_neighbours(*c, *letter));
        all.extend(near.take(2).map(|c| with(&|w| w[i] = c)));
    }
    all.extend([format!("{word}s"), with(&|w| w[0].make_ascii_uppercase())]);
    all.sort();
    all.dedup();
    all.retain(|slip| slip != word && slip.starts_with(char::is_alphabetic));
    all
}

/// Some slips of a word, always the same ones.
fn some_slips(word: &str, known: &BTreeSet<String>, count: usize) -> Vec<String> {
    let mut all = slips(word);
    all.retain(|slip| !known.contains(slip) && slip.len() > 1);
    // Spread over the kinds by a fixed order that has nothing to do with the alphabet.
    all.sort_by_key(|slip| slip.bytes().fold(7u64, |h, b| h.wrapping_mul(0x100_0000_01b3) ^ u64::from(b)));
    all.truncate(count);
    all
}

/// Every word the language knows.
fn known() -> BTreeSet<String> {
    let mut known: BTreeSet<String> =
        [catalogue(), recipe::catalogue()].concat().into_iter().map(|t| t.name).collect();
    known.extend(["true", "false", "none"].map(str::to_owned));
    known
}

/// The words of a tree that are the language's and not the author's, with their places.
fn words(node: &Node, known: &BTreeSet<String>, out: &mut Vec<(String, Span)>) {
    match &node.kind {
        Kind::Map(entries) => {
            for e in entries {
                // The keys of these maps are names that authors chose.
                let named = ["let", "blocks", "ranges", "sweep"].contains(&e.key.as_str());
                if known.contains(&e.key) {
                    out.push((e.key.clone(), e.key_span));
                }
                match &e.value.kind {
                    // Authors choose what is in these.
                    _ if ["weights", "name", "extends", "files", "decay"].contains(&e.key.as_str()) => {}
                    Kind::Map(inner) if named => inner.iter().for_each(|i| words(&i.value, known, out)),
                    _ => words(&e.value, known, out),
                }
            }
        }
        Kind::List(items) => items.iter().for_each(|item| words(item, known, out)),
        Kind::Scalar(s) if s.style == Style::Plain && known.contains(&s.text) => {
            out.push((s.text.clone(), node.span));
        }
        Kind::Scalar(_) | Kind::Null | Kind::Delete => {}
    }
}

/// What came of many slips.
#[derive(Default)]
struct Tally {
    all: usize,
    first: usize,
    placed: usize,
    alone: usize,
    misses: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &str, (word, slip): (&str, &str), at: (usize, usize), found: &[Diagnostic]) {
        self.all += 1;
        let primary = found.first().map(Diagnostic::span).unwrap_or_default();
        let help = found.first().and_then(|d| d.help.first()).cloned().unwrap_or_default();
        let is_first = help.contains(&format!("`{word}`"));
        self.first += usize::from(is_first);
        self.placed += usize::from(primary.start as usize <= at.0 && at.1 <= primary.end as usize);
        self.alone += usize::from(found.len() == 1);
        if !is_first || found.len() > 1 {
            let messages: Vec<String> =
                found.iter().map(|d| format!("{} ({})", d.message, d.help.join("; "))).collect();
            self.misses.push(format!("{name}: {word} -> {slip}: {}", messages.join(" | ")));
        }
    }

    fn check(&self) {
        let share = |n: usize| n as f64 / self.all as f64;
        let said = format!(
            "{} slips: first {:.4}, placed {:.4}, alone {:.4}\n{}",
            self.all,
            share(self.first),
            share(self.placed),
            share(self.alone),
            self.misses.join("\n")
        );
        if std::env::var_os("TRAFOC_SHOW").is_some() {
            println!("{said}");
        }
        assert!(self.all > 500, "{said}");
        assert!(share(self.first) >= 0.97, "{said}");
        assert!(share(self.placed) >= 0.98, "{said}");
        assert!(share(self.alone) >= 0.97, "{said}");
    }
}

#[test]
fn a_slip_in_a_spec_is_understood() {
    let known = known();
    let mut tally = Tally::default();
    let mut seen = BTreeSet::new();
    for (name, path) in [specs("tests/good"), specs("specs")].concat() {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        if !file.ends_with(".yaml") {
            continue;
        }
        let mut sources = SourceMap::new();
        let id = sources.add(file, text.clone());
        let tree = parse(&sources, id, Notation::Yaml, &mut Sink::new()).unwrap();
        let mut found = Vec::new();
        words(&tree, &known, &mut found);
        for (word, span) in found {
            for slip in some_slips(&word, &known, 4) {
                // One word with one slip is enough for a spec of the same kind.
                if !seen.insert((word.clone(), slip.clone())) {
                    continue;
                }
                let range = span.range();
                let mut broken = text.clone();
                broken.replace_range(range.clone(), &slip);
                let front = Front::of_text(file, &broken, path.parent().unwrap().to_str().unwrap());
                let at = (range.start, range.start + slip.len());
                tally.add(&name, (&word, &slip), at, &front.compilation.diagnostics);
            }
        }
    }
    tally.check();
}

#[test]
fn a_slip_in_a_recipe_is_understood() {
    let known = known();
    let mut tally = Tally::default();
    let mut seen = BTreeSet::new();
    for (name, path) in specs("specs/recipes") {
        let text = std::fs::read_to_string(&path).unwrap();
        let read = |text: &str| {
            let mut sources = load::sources();
            let id = sources.add("recipe.yaml", text);
            let mut sink = Sink::new();
            recipe::read(&sources, id, &[], &mut sink);
            (sources, id, sink.into_sorted())
        };
        let (sources, id, _) = read(&text);
        let tree = parse(&sources, id, Notation::Yaml, &mut Sink::new()).unwrap();
        let mut found = Vec::new();
        words(&tree, &known, &mut found);
        for (word, span) in found {
            for slip in some_slips(&word, &known, 12) {
                if !seen.insert((word.clone(), slip.clone())) {
                    continue;
                }
                let range = span.range();
                let mut broken = text.clone();
                broken.replace_range(range.clone(), &slip);
                let (_, _, diagnostics) = read(&broken);
                tally.add(&name, (&word, &slip), (range.start, range.start + slip.len()), &diagnostics);
            }
        }
    }
    tally.check();
}

/// Every list of names that a field, a part or a word is looked up in.
fn tables(shape: Shape, seen: &mut BTreeSet<String>, out: &mut Vec<Vec<&'static str>>) {
    let mut record = |fields: Vec<Field>, seen: &mut BTreeSet<String>| {
        out.push(fields.iter().map(|f| f.name).collect());
        fields.iter().for_each(|f| tables((f.shape)(), seen, out));
    };
    match shape {
        Shape::Record(title, fields) if seen.insert(format!("record {title}")) => record(fields(), seen),
        Shape::Slot(doc) if seen.insert(format!("slot {}", doc().name)) => {
            for part in doc().parts {
                record((part.fields)(), seen);
            }
            out.push(doc().parts.iter().map(|p| p.name).collect());
        }
        Shape::Choice(words) => out.push(words.iter().map(|w| w.name).collect()),
        Shape::List(inner, _) | Shape::Map(inner) => tables(inner(), seen, out),
        _ => {}
    }
}

#[test]
fn a_slip_is_understood_in_every_table() {
    let mut all: Vec<Vec<&'static str>> = Vec::new();
    for fields in [model::fields(), Recipe::fields()] {
        all.push(fields.iter().map(|f| f.name).collect());
        let mut seen = BTreeSet::new();
        fields.iter().for_each(|f| tables((f.shape)(), &mut seen, &mut all));
    }
    let wirings: Vec<String> =
        catalogue().into_iter().filter(|t| t.sort == Sort::Wiring).map(|t| t.name).collect();
    let command = trafoc::cli::grammar(&[]);
    let commands: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let shipped: Vec<String> = trafoc::cli::shelf::SHELF.iter().map(|s| s.name.to_owned()).collect();
    let mut lists: Vec<Vec<String>> =
        all.into_iter().map(|l| l.into_iter().map(str::to_owned).collect()).collect();
    lists.extend([wirings, commands, shipped, vec!["true".to_owned(), "false".to_owned()]]);
    lists.sort();
    lists.dedup();
    let (mut count, mut right, mut misses) = (0usize, 0usize, Vec::new());
    for list in &lists {
        for word in list {
            for slip in slips(word).into_iter().filter(|s| s.len() > 1 && !list.contains(s)) {
                count += 1;
                match suggest(&slip, list) {
                    Some(near) if near == *word => right += 1,
                    other => misses.push(format!("{word} -> {slip}: {other:?}")),
                }
            }
        }
    }
    let share = right as f64 / count as f64;
    if std::env::var_os("TRAFOC_SHOW").is_some() {
        println!("{count} slips, {share:.4}\n{}", misses.join("\n"));
    }
    assert!(count > 5_000, "{count}");
    assert!(share >= 0.97, "{share:.4} of {count}\n{}", misses.join("\n"));
}

const WIDE: &str = "trafo: 1
name: wide
vocab: 320
context: 32
d_model: 32
embed: {position: {rotary: {fraction: 0.5}}}
norm: {rms_norm: {eps: 1e-5, affine: true}}
decoder:
  layers: 2
  attention: {heads: 4, kv_heads: 2, softcap: 30, sinks: true, mask: causal, bias: {value: true, out: false}}
  ffn: {glu: {hidden: 64, activation: relu}}
  final_norm: true
head: {lm: {tied: true, fixed_bias: true}}
init: {biases: zeros, embeddings: {normal: {std: 0.02}}}
";

const PAIR: &str = "trafo: 1
name: pair
vocab: 320
source_vocab: 320
context: 32
d_model: 32
encoder: {layers: 1, attention: {heads: 4}}
decoder: {layers: 1, attention: {heads: 4}, cross: {heads: 2}, ffn: {moe: {experts: 4, top_k: 2, \
score: sigmoid, correction: true, expert: mlp, shared: {expert: mlp}}}}
head: translate
";

const ATTENTION: &str = "attention: {heads: 4, kv_heads: 2, softcap: 30, sinks: true, mask: causal, bias: {value: true, out: false}}";
const LM: &str = "{lm: {tied: true, fixed_bias: true}}";

/// What people write in place of the words of a spec, each with what the only message says.
const FOREIGN: &[(&str, &str, &str, &str)] = &[
    (WIDE, "vocab:", "n_words:", "`vocab`"),
    (WIDE, "vocab:", "voc_size:", "`vocab`"),
    (WIDE, "context:", "ctx:", "`context`"),
    (WIDE, "context:", "context_size:", "`context`"),
    (WIDE, "context:", "max_context:", "`context`"),
    (WIDE, "context:", "max_position:", "`context`"),
    (WIDE, "context:", "sequence_len:", "`context`"),
    (WIDE, "d_model:", "hidden:", "`d_model`"),
    (WIDE, "d_model:", "hid_dim:", "`d_model`"),
    (WIDE, "d_model:", "hidden_units:", "`d_model`"),
    (WIDE, "embed:", "embedding:", "`embed`"),
    (WIDE, "embed:", "embeddings:", "`embed`"),
    (WIDE, "embed:", "input_embedding:", "`embed`"),
    (WIDE, "fraction:", "partial:", "`fraction`"),
    (WIDE, "affine:", "elementwise_affine:", "`affine`"),
    (WIDE, "affine: true", "zero_centered: true", "`unit_offset`"),
    (WIDE, "  attention:", "  multihead_attention:", "`attention`"),
    (WIDE, "kv_heads:", "n_kv:", "`kv_heads`"),
    (WIDE, "softcap:", "softcapping:", "`softcap`"),
    (WIDE, "sinks:", "attn_sinks:", "`sinks`"),
    (WIDE, "mask:", "attn_mask:", "`mask`"),
    (WIDE, "value:", "v_proj:", "`value`"),
    (WIDE, "out:", "o:", "`out`"),
    (WIDE, "out:", "output:", "`out`"),
    (WIDE, "glu:", "gated_linear:", "`glu`"),
    (WIDE, "hidden:", "Hidden:", "did you mean `hidden`"),
    (WIDE, "embeddings:", "EMBEDDINGS:", "did you mean `embeddings`"),
    (WIDE, "hidden:", "dim_ff:", "`hidden`"),
    (WIDE, "hidden:", "hidden_dims:", "`hidden`"),
    (WIDE, "relu", "identity", "`none`"),
    (WIDE, "final_norm:", "last_norm:", "`final_norm`"),
    (WIDE, "final_norm: true", "final_norm: yes", "`true`"),
    (WIDE, "final_norm: true", "final_norm: no", "`false`"),
    (WIDE, "fixed_bias:", "final_logits_bias:", "`fixed_bias`"),
    (WIDE, "init:", "initialization:", "`init`"),
    (WIDE, "init:", "initializer:", "`init`"),
    (WIDE, "embeddings:", "embedding:", "`embeddings`"),
    (WIDE, "zeros", "zero", "`zeros`"),
    (WIDE, "mask: causal", "mask: roll", "valid parts are"),
    (
        WIDE,
        "norm: {rms_norm: {eps: 1e-5, affine: true}}",
        "norm: rms_norm(eps=1e-5)",
        "`{rms_norm: {eps: 1e-5}}`",
    ),
    (WIDE, "{glu: {hidden: 64, activation: relu}}", "swiglu(hidden=64)", "`{swiglu: {hidden: 64}}`"),
    (WIDE, "{normal: {std: 0.02}}", "normal(0.02)", "`{normal: {std: 0.02}}`"),
    (WIDE, ATTENTION, "attention: {gropued: {heads: 4, kv_heads: 2}}", "valid parts are"),
    (WIDE, ATTENTION, "attention: {linear_one: {heads: 4, feature_map: elu}}", "valid parts are"),
    (
        WIDE,
        ATTENTION,
        "attention: {grouped_query: {heads: 4, kv_heads: 2}}",
        "`kv_heads` is what makes it one",
    ),
    (WIDE, ATTENTION, "attention: {flash: {heads: 4}}", "how attention is computed"),
    // What is known with the slot's name after it, although the spelling is that of another part.
    (WIDE, ATTENTION, "attention: linear", "no linear attention of this name"),
    (WIDE, ATTENTION, "attention: linear(x)", "no linear attention of this name"),
    (WIDE, ATTENTION, "attention: {heads: 4, linear: {}}", "no linear attention of this name"),
    (WIDE, ATTENTION, "attention: {heads: 4, type: linear}", "no linear attention of this name"),
    (WIDE, ATTENTION, "attention: sparse", "no mask with chosen or random keys"),
    (WIDE, ATTENTION, "attention: cosine", "the cosines of angles"),
    (WIDE, ATTENTION, "attention: local", "write `{mask: {window: ...}}`"),
    (WIDE, ATTENTION, "attention: additive", "write `{score: additive}`"),
    (WIDE, ATTENTION, "attention: grouped", "`kv_heads` is what makes it one"),
    (WIDE, ATTENTION, "attention: gated", "`gate` is what makes it one"),
    (WIDE, ATTENTION, "attention: relative", "trafoc calls this `t5`"),
    (WIDE, ATTENTION, "attention: multi_head_latent", "`latent`"),
    (WIDE, ATTENTION, "attention: moe", "`moe` is a part of the slot `ffn`"),
    (WIDE, ATTENTION, "attention: none", "`block: x + ffn(norm(x))`"),
    // The parts of the library for feed-forward layers are none for attention, and the other way around.
    (WIDE, ATTENTION, "attention: swiglo", "valid parts are"),
    (WIDE, "{glu: {hidden: 64, activation: relu}}", "mambo", "valid parts are"),
    (WIDE, "{glu: {hidden: 64, activation: relu}}", "gelu", "write `{activation: gelu}`"),
    (
        WIDE,
        "{glu: {hidden: 64, activation: relu}}",
        "switch_transformer",
        "`trafoc explain switch_transformer`",
    ),
    (WIDE, "{rms_norm: {eps: 1e-5, affine: true}}", "batch", "no norm over a batch"),
    (WIDE, "{rms_norm: {eps: 1e-5, affine: true}}", "bilinaer", "valid parts are"),
    (WIDE, "{rotary: {fraction: 0.5}}", "2d", "no positions in two dimensions"),
    (WIDE, "{rotary: {fraction: 0.5}}", "relative_position", "`t5`"),
    (WIDE, "mask: causal", "mask: sparse", "no mask with chosen or random keys"),
    (WIDE, LM, "classification_head", "`classify`"),
    (WIDE, LM, "contrastive", "`trafoc explain contrastive`"),
    (WIDE, LM, "{classifer: {labels: 3}}", "`classify`"),
    (WIDE, "{rotary: {fraction: 0.5}}", "{alibii: {slopes: 3}}", "`alibi`"),
    (WIDE, "{rotary: {fraction: 0.5}}", "{relative: {num_buckets: 3}}", "`t5`"),
    (WIDE, "{glu: {hidden: 64, activation: relu}}", "{activation: swiglu}", "write `ffn: swiglu`"),
    (WIDE, "{glu: {hidden: 64, activation: relu}}", "swiglu(x)", "write `swiglu`"),
    (WIDE, "layers: 2", "layers: 2\n  block: pre_norm(x)", "write `block: pre_norm`"),
    (WIDE, "layers: 2", "layers: 2\n  block: x + parallel(norm(x))", "write `block: parallel`"),
    // A map that was left out has other keys that must be given.
    (WIDE, "sinks: true", "qk_norm: each_head", "write `{norm: ..., over: each_head}`"),
    // Advice that would lead to another error is not given.
    (PAIR, "{heads: 2}", "{clip: 5}", "`cross` has none of them"),
    (PAIR, "{heads: 2}", "{gate: headwise}", "`cross` has none of them"),
    (PAIR, "{heads: 2}", "{swiglu: {}}", "the fields of attention, such as `heads`"),
    (PAIR, "source_vocab:", "source_vocabulary:", "`source_vocab`"),
    (PAIR, "cross:", "cross_attention:", "`cross`"),
    (PAIR, "cross:", "cross_attn:", "`cross`"),
    (PAIR, "correction:", "e_score_correction_bias:", "`correction`"),
    (PAIR, "shared:", "shared_expert:", "`shared`"),
];

/// A number in the place of a map is suggested for its field only if the field takes it.
#[test]
fn a_number_is_suggested_where_it_fits() {
    let help = |batch: &str| {
        let text = format!(
            "recipe: 1\ndata: {{format: lines, train: a.txt}}\ntokens: characters\nbatch: {batch}\nsteps: 10\n"
        );
        let mut sources = SourceMap::new();
        let id = sources.add("recipe.yaml", &text);
        let mut sink = Sink::new();
        let tree = parse(&sources, id, Notation::Yaml, &mut sink).unwrap();
        recipe::decode(&sources, &tree, &mut sink);
        let found = sink.into_sorted();
        let [only] = found.as_slice() else { panic!("{batch}: {found:?}") };
        only.help.join("; ")
    };
    assert_eq!(help("16"), "write `{size: 16}`");
    for wrong in ["0", "-1", "1.5"] {
        assert_eq!(help(wrong), "write `{size: ...}`, with a whole number of at least 1", "{wrong}");
    }
}

/// A key next to a part of the spec or of the library is not sent to another part in its place.
#[test]
fn a_part_is_not_replaced_for_a_key() {
    for (attention, more) in
        [("mix", "or give the part such a field"), ("mamba", "`trafoc explain mamba` shows its fields")]
    {
        let text = format!(
            "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\nparts:\n  mix: linear(silu(x), d_model)\ndecoder:\n  layers: 1\n  \
             heads: 2\n  attention: {attention}\n  ffn: mix\nhead: lm\n"
        );
        let found = Front::of_text("part.yaml", &text, ".").compilation.diagnostics;
        let [only] = found.as_slice() else { panic!("{attention}: {found:?}") };
        let said =
            format!("remove it: `attention` is the part `{attention}`, which has no key `heads`; {more}");
        assert_eq!(only.help, [said]);
    }
}

/// What `attention` has and `cross` has not is said to be so.
#[test]
fn cross_says_which_keys_only_attention_has() {
    use trafoc::diag::notes::note;
    use trafoc::spec::explain::Topic;

    let of = |part: &str, all: &[Topic]| -> BTreeSet<String> {
        let below = all.iter().filter_map(|t| t.path.strip_prefix(part).map(str::to_owned));
        below.filter(|key| !key.contains('.')).collect()
    };
    let all: Vec<Topic> = catalogue().into_iter().filter(|t| t.sort == Sort::Key).collect();
    let (attention, cross) = (of("decoder.attention.multi_head.", &all), of("decoder.cross.", &all));
    let only: Vec<&String> = attention.difference(&cross).collect();
    assert!(!cross.is_empty() && only.len() == 4, "{only:?}");
    for key in only {
        assert!(note("cross", key).is_some_and(|says| says.contains(&format!("`{key}`"))), "{key}");
    }
}

#[test]
fn a_word_of_another_library_is_one_message() {
    for (spec, ours, theirs, said) in FOREIGN {
        let broken = spec.replacen(ours, theirs, 1);
        assert_ne!(&broken, spec, "{ours}");
        let found = Front::of_text("foreign.yaml", &broken, ".").compilation.diagnostics;
        let [only] = found.as_slice() else { panic!("{theirs}: {found:?}") };
        assert!(only.help.first().is_some_and(|help| help.contains(said)), "{theirs}: {only:?}");
    }
    for spec in [WIDE, PAIR] {
        let found = Front::of_text("foreign.yaml", spec, ".").compilation.diagnostics;
        assert!(found.is_empty(), "{found:?}");
    }
}

/// A misspelled key over one that is there is understood although its value does not fit other keys: fewer layers than the
/// pattern needs.
#[test]
fn a_misspelled_key_may_not_fit_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.yaml");
    let text = "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 6\n  pattern: [a, a, a, a, a, b]\n  \
                blocks: {a: {attention: {mask: {window: 3}}}, b: {}}\n  attention: {heads: 2}\nhead: lm\n";
    std::fs::write(&path, text).unwrap();
    let said = crate::cli::trafoc(&["check", path.to_str().unwrap(), "--set", "decoder.layrs=3"]);
    assert!(said.err.contains("help: did you mean `layers`?"), "{}", said.err);
    let said = crate::cli::trafoc(&["check", path.to_str().unwrap(), "--set", "decoder.layrs=few"]);
    assert!(!said.err.contains("did you mean"), "{}", said.err);
}

/// A setting without effect says which ones have it, as they can be pasted; with these there is no error.
#[test]
fn a_setting_without_effect_says_which_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.yaml");
    let text = "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 2\n  norm1: rms_norm\n  norm2: rms_norm\n  \
                final_norm: rms_norm\n  pattern: [a, b]\n  blocks: {a: {attention: {mask: {window: 3}}}, b: {attention: {mask: causal}}}\n  \
                attention: {heads: 2}\nhead: lm\n";
    std::fs::write(&path, text).unwrap();
    let (own, one) = (folder.path().join("own.yaml"), folder.path().join("one.yaml"));
    let stacks = |encoder: &str, decoder: &str| {
        format!(
            "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\n{decoder}encoder: {{layers: 1, {encoder}attention: {{heads: 2}}}}\n\
             decoder:\n  layers: 1\n  attention: {{heads: 2}}\nhead: translate\n"
        )
    };
    // An encoder with a norm of its own, and a decoder with that of the spec or with one of its own.
    std::fs::write(
        &own,
        stacks("norm: layer_norm, ", "").replace("decoder:\n", "decoder:\n  norm: layer_norm\n"),
    )
    .unwrap();
    std::fs::write(&one, stacks("norm: layer_norm, ", "norm: rms_norm\n")).unwrap();
    for (spec, wrong) in [
        (path.to_str().unwrap(), "decoder.norm=layer_norm"),
        (path.to_str().unwrap(), "norm=layer_norm"),
        (path.to_str().unwrap(), "norm.layer_norm.eps=1e-3"),
        (path.to_str().unwrap(), "decoder.norm.rms_norm.eps=1e-3"),
        (path.to_str().unwrap(), "decoder.norm={rms_norm: {eps: 1e-3}}"),
        (path.to_str().unwrap(), "decoder.attention.mask=bidirectional"),
        ("@gpt2-small", "decoder.norm=rms_norm"),
        ("@gpt2-small", "decoder.norm.layer_norm.eps=1e-3"),
        ("@llama3-8b", "decoder.norm.rms_norm.eps=1e-6"),
        ("@llama3-8b", "decoder.position=alibi"),
        ("@llama3-8b", "decoder.position.rotary.theta=1000"),
        (own.to_str().unwrap(), "norm.layer_norm.eps=1e-3"),
        (one.to_str().unwrap(), "decoder.norm.rms_norm.eps=1e-3"),
    ] {
        let said = crate::cli::trafoc(&["check", spec, "--set", wrong]);
        assert_eq!(said.code, 1, "{wrong}: {}", said.err);
        let help = said.err.lines().filter(|line| line.contains("help:"));
        let settings = help.flat_map(|line| line.split('`')).find_map(|quoted| quoted.strip_prefix("--set "));
        let settings = settings.unwrap_or_else(|| panic!("{wrong}: {}", said.err));
        let mut arguments = vec!["check", spec];
        settings.split(" --set ").for_each(|set| arguments.extend(["--set", set.trim_matches('\'')]));
        let said = crate::cli::trafoc(&arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    }
}

/// Blocks have no positions under those that are added to embeddings, so that `none` says nothing there.
#[test]
fn no_positions_in_blocks_are_only_said_where_they_change_something() {
    let folder = tempfile::tempdir().unwrap();
    let spec = |embed: &str, stack: &str| {
        format!(
            "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\nembed: {{position: {embed}}}\ndecoder:\n  layers: 2\n  \
             {stack}\n  attention: {{heads: 2}}\nhead: lm\n"
        )
    };
    let check = |embed: &str, stack: &str| {
        Front::of_text("spec.yaml", &spec(embed, stack), ".").compilation.diagnostics
    };
    let blocks = "pattern: [a, b]\n  blocks: {a: {position: none}, b: {attention: {clip: 1}}}";
    for (embed, stack) in [("learned", "position: none"), ("sinusoidal", blocks), ("learned", blocks)] {
        let found = check(embed, stack);
        let [only] = found.as_slice() else { panic!("{embed}, {stack}: {found:?}") };
        let said = format!("this `position` has no effect: the `{embed}` positions are added");
        assert!(only.message.starts_with(&said), "{only:?}");
        // Under a base or a variant, nothing else can be written.
        assert_eq!(only.severity, Severity::Warning, "{only:?}");
        // Over a spec that is extended, it is taken away where the positions are given.
        std::fs::write(folder.path().join("base.yaml"), spec("rotary", stack)).unwrap();
        let check = |more: &str, set: &[&str]| {
            let text = format!("extends: base.yaml\n{more}");
            std::fs::write(folder.path().join("spec.yaml"), &text).unwrap();
            let said = crate::cli::trafoc_in(folder.path(), &[&["check", "spec.yaml"], set].concat());
            assert_eq!(said.code, 0, "{text}{set:?}{}", said.err);
            let help = said.err.lines().filter(|line| line.contains("help: "));
            let mut quoted =
                help.flat_map(|line| line.split('`')).filter(|quoted| quoted.contains("!delete"));
            let quoted = quoted.next().map(str::to_owned);
            assert_eq!(quoted.is_some(), said.err.contains("warning"), "{text}{}", said.err);
            quoted
        };
        let extending = format!("embed: {{position: {embed}}}\n");
        let delete = check(&extending, &[]).unwrap();
        assert_eq!(check(&format!("{extending}{delete}\n"), &[]), None);
        let set = format!("embed.position={embed}");
        let delete = check("", &["--set", &set]).unwrap();
        let delete = delete.strip_prefix("--set '").and_then(|set| set.strip_suffix('\'')).unwrap();
        assert_eq!(check("", &["--set", &set, "--set", delete]), None);
    }
    for (embed, stack) in [
        ("none", "position: none"),
        ("rotary", blocks),
        ("learned", "position: rotary\n  pattern: [a, b]\n  blocks: {a: {position: none}, b: {}}"),
        ("learned", "pattern: [a, b]\n  blocks: {a: {position: none}, b: {position: rotary}}"),
    ] {
        let found = check(embed, stack);
        assert!(found.is_empty(), "{embed}, {stack}: {found:?}");
    }
}
