//! Suggestions are followed by a program: what `help:` says to rename or to move is renamed or moved, and the
//! checker must accept it there.

use std::collections::BTreeSet;

use trafoc::compile::compile_tree;
use trafoc::diag::{Code, Diagnostic, Sink};
use trafoc::field::value::Field;
use trafoc::learn::recipe::{self, Recipe};
use trafoc::source::{SourceMap, Span};
use trafoc::spec::{self, load, model};
use trafoc::syntax::merge::{merge, settle};
use trafoc::syntax::tree::{Entry, Kind, Node, Scalar, Style};
use trafoc::syntax::{Notation, parse};

use crate::compiled::{Folder, specs};

/// A document of one kind: its keys, and what the checker says about a tree.
struct Kinded {
    fields: fn() -> Vec<Field>,
    check: fn(&SourceMap, &Node) -> Vec<Diagnostic>,
    is_part: fn(&str) -> bool,
}

const SPEC: Kinded = Kinded {
    fields: model::fields,
    check: |sources, tree| compile_tree(sources, Some(tree.clone()), Sink::new()).unwrap().diagnostics,
    is_part: spec::is_part,
};

const RECIPE: Kinded = Kinded {
    fields: Recipe::fields,
    check: |sources, tree| {
        let mut sink = Sink::new();
        recipe::decode(sources, tree, &mut sink);
        sink.into_sorted()
    },
    is_part: recipe::is_part,
};

/// What a line of help says to do with the value at the place of its diagnostic.
#[derive(Debug)]
enum Advice {
    Rename(String),
    /// From the map that has the key now, or from the root.
    Move {
        path: Vec<String>,
        from_root: bool,
    },
    Choose {
        part: String,
        path: Vec<String>,
    },
}

fn advice(help: &str) -> Option<Advice> {
    // What was between backticks is every second piece.
    let quoted: Vec<String> = help.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<String>>();
    match quoted.as_slice() {
        [name] if help.starts_with("did you mean") => Some(Advice::Rename(name.clone())),
        [_, at] if help.starts_with("did you mean") && help.contains("`, at `") => {
            Some(Advice::Move { path: path(at), from_root: false })
        }
        [part, at] if help.starts_with("did you mean") && help.contains("as the value of") => {
            Some(Advice::Choose { part: part.clone(), path: path(at) })
        }
        [name] if help.starts_with("trafoc calls this") && help.ends_with('`') => {
            Some(Advice::Move { path: path(name), from_root: false })
        }
        [name] if help.starts_with("it belongs at") => {
            Some(Advice::Move { path: path(name), from_root: false })
        }
        [key, beside] if help.contains("next to `") => {
            let above = beside.rsplit_once('.').map_or(String::new(), |(above, _)| format!("{above}."));
            Some(Advice::Move { path: path(&format!("{above}{key}")), from_root: true })
        }
        [key, under] if help.starts_with("put `") && help.contains("under") => {
            Some(Advice::Move { path: path(&format!("{under}.{key}")), from_root: true })
        }
        [part, at] if help.ends_with(&format!("as the value of `{at}`")) => {
            Some(Advice::Choose { part: part.clone(), path: path(at) })
        }
        _ => None,
    }
}

/// The tree after following an advice; `None` if the tree has nothing at the place.
fn followed(tree: &Node, at: Span, advice: &Advice, of: &Kinded) -> Option<Node> {
    let nested = |path: &[String], value: Node, span: Span| {
        path.iter().rev().fold(value, |value, key| {
            Node::map(vec![Entry { key: key.clone(), key_span: span, value }], span)
        })
    };
    // A formula is more than the word that is wrong in it.
    let is_word = tree.text().is_some_and(|text| !text.starts_with('='));
    if let (true, Advice::Rename(name), true) = (is_word, advice, tree.span == at) {
        let scalar = Scalar { text: name.clone(), style: Style::Plain };
        return Some(Node { kind: Kind::Scalar(scalar), span: tree.span });
    }
    let rest = match &tree.kind {
        Kind::Map(entries) => entries,
        Kind::List(items) => {
            return items.iter().enumerate().find_map(|(i, item)| {
                let mut items = items.clone();
                items[i] = followed(item, at, advice, of)?;
                Some(Node { kind: Kind::List(items), span: tree.span })
            });
        }
        _ => return None,
    };
    for (i, e) in rest.iter().enumerate() {
        if e.key_span == at || e.value.span == at && !matches!(advice, Advice::Rename(_)) {
            let mut entries = rest.clone();
            let e = entries.remove(i);
            let (path, value) = match advice {
                Advice::Rename(name) => {
                    // Of a path in a sweep, the last key is renamed.
                    let above =
                        e.key.rsplit_once('.').map_or(String::new(), |(above, _)| format!("{above}."));
                    entries.insert(i, Entry { key: above + name, ..e });
                    return Some(Node::map(entries, tree.span));
                }
                Advice::Move { path, .. } => (path, e.value.clone()),
                Advice::Choose { part, path } => (path, Node::plain(part.clone(), e.value.span)),
            };
            let over = nested(path, value, e.key_span);
            let without = Node::map(entries, tree.span);
            return Some(merge(&without, &over, &of.is_part, &mut Sink::new()));
        }
        if let Some(value) = followed(&e.value, at, advice, of) {
            let mut entries = rest.clone();
            entries[i].value = value;
            return Some(Node::map(entries, tree.span));
        }
    }
    None
}

/// What only a misplaced or misspelled word is told.
const ABOUT_WORDS: &[Code] = &[
    Code::UnknownKey,
    Code::UnknownPart,
    Code::UnknownWord,
    Code::SeveralParts,
    Code::WrongPlace,
    Code::UnusedKey,
    Code::WrongKind,
];

/// What is wrong after following each suggestion about a document, and how many were followed.
fn wrong_advice(name: &str, sources: &SourceMap, tree: &Node, of: &Kinded) -> (usize, Vec<String>) {
    let before = (of.check)(sources, tree);
    let said: BTreeSet<String> = before.iter().map(|d| d.message.clone()).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for d in &before {
        let Some((help, advice)) = d.help.iter().find_map(|help| Some((help, advice(help)?))) else {
            continue;
        };
        // Such a path is from the root, and `followed` starts at the map that has the key.
        if matches!(advice, Advice::Move { from_root: true, .. }) {
            continue;
        }
        let Some(after) = followed(tree, d.span(), &advice, of) else { continue };
        count += 1;
        let left = (of.check)(sources, &after);
        let remains = left.iter().any(|l| l.message == d.message && l.span() == d.span());
        // What a misspelled key has as its value was not judged before, and may be wrong as well.
        let is_renamed = matches!(advice, Advice::Rename(_));
        let new: Vec<&str> = left
            .iter()
            .filter(|l| !(is_renamed && l.code == Code::WrongKind))
            .filter(|l| ABOUT_WORDS.contains(&l.code) && !said.contains(&l.message))
            .map(|l| l.message.as_str())
            .collect();
        if remains || !new.is_empty() {
            wrong.push(format!(
                "{name}: {} ({help}): {}",
                d.message,
                if remains { "remains" } else { &new[0] }
            ));
        }
    }
    (count, wrong)
}

/// The merged tree of a file, if it can be read at all.
fn tree_of(path: &std::path::Path, is_recipe: bool) -> Option<(SourceMap, Node)> {
    let mut sources = load::sources();
    let id = sources.add(path.file_name()?.to_str()?, std::fs::read_to_string(path).ok()?);
    let mut sink = Sink::new();
    let tree = if is_recipe {
        settle(&parse(&sources, id, Notation::Yaml, &mut sink)?, &mut sink)
    } else {
        let mut folder = Folder(path.parent()?.to_owned());
        load::tree(&mut sources, id, Notation::Yaml, &[], &mut folder, &mut sink)?
    };
    (!sink.has_errors()).then_some((sources, tree))
}

fn is_yaml(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|e| e == "yaml")
}

/// What help quotes as YAML is quoted in the DSL to those who write that.
#[test]
fn snippets_become_dsl_and_the_rest_stays() {
    let mut sources = load::sources();
    let text = "window(sinks: 4)";
    let id = sources.add("a.trafo", text);
    let said = |code: Code, help: &str| {
        let d = Diagnostic::error(code, Span::new(id, 0, text.len()), "").help(help);
        spec::advice::in_dsl(vec![d], &sources, id)[0].help.concat()
    };
    for (yaml, dsl) in [
        ("add `name: ...`, a text", "add `name = ...`, a text"),
        (
            "add `decoder: {layers: 12, attention: {heads: 12}}`, or `encoder:`",
            "add `decoder { layers = 12  attention { heads = 12 } }`, or `encoder:`",
        ),
        ("write `norm: {rms_norm: {eps: 1e-6}}`", "write `norm = rms_norm(eps: 1e-6)`"),
        ("call it as `attention[local](x)`", "call it as `attention[local](x)`"),
        ("did you mean `heads`?", "did you mean `heads`?"),
        ("`mask: [{window: 512}, {prefix: 1}]`", "`mask = [window(512), prefix(1)]`"),
        ("`freeze: [...]` in the recipe", "`freeze: [...]` in the recipe"),
        ("under `blocks: {a: {...}}`", "under `blocks { a { ... } }`"),
    ] {
        assert_eq!(said(Code::UnknownKey, yaml), dsl);
    }
    // Fields in parentheses are written as in YAML.
    assert_eq!(said(Code::MissingKey, "add `size: ...`"), "add `size: ...`");
}

#[test]
fn every_suggestion_for_a_broken_file_is_accepted() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (folder, of) in [("tests/bad", SPEC), ("tests/bad/recipe", RECIPE)] {
        for (name, path) in specs(folder).into_iter().filter(|(_, path)| is_yaml(path)) {
            let Some((sources, tree)) = tree_of(&path, folder.ends_with("recipe")) else { continue };
            let (more, found) = wrong_advice(&name, &sources, &tree, &of);
            count += more;
            wrong.extend(found);
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 40, "{count}");
}

/// Every path of keys in a tree, but not of names that authors choose.
fn paths(tree: &Node, above: &[String], out: &mut Vec<Vec<String>>) {
    for e in tree.entries().unwrap_or(&[]) {
        let path = [above, std::slice::from_ref(&e.key)].concat();
        out.push(path.clone());
        if !["let", "weights", "sweep", "blocks", "ranges", "files", "decay", "rules"]
            .contains(&e.key.as_str())
        {
            paths(&e.value, &path, out);
        }
    }
}

/// The tree without the entry at a path, and the entry.
fn without(tree: &Node, path: &[String]) -> Option<(Node, Entry)> {
    let (key, rest) = path.split_first()?;
    let mut entries = tree.entries()?.to_vec();
    let i = entries.iter().position(|e| e.key == *key)?;
    if rest.is_empty() {
        let e = entries.remove(i);
        return Some((Node::map(entries, tree.span), e));
    }
    let (value, e) = without(&entries[i].value, rest)?;
    entries[i].value = value;
    Some((Node::map(entries, tree.span), e))
}

/// Every key of every valid file, written at the top of the file instead of in its place: the suggestion
/// leads to a place where it is accepted.
#[test]
fn a_key_at_the_top_is_led_to_a_place_that_takes_it() {
    let (mut count, mut all, mut wrong) = (0, 0, Vec::new());
    let mut seen = BTreeSet::new();
    for (folder, of) in [("tests/good", SPEC), ("specs", SPEC), ("specs/recipes", RECIPE)] {
        for (name, path) in specs(folder).into_iter().filter(|(_, path)| is_yaml(path)) {
            let Some((sources, tree)) = tree_of(&path, folder.ends_with("recipes")) else { continue };
            let mut keys = Vec::new();
            paths(&tree, &[], &mut keys);
            let fields: Vec<&str> = (of.fields)().iter().map(|f| f.name).collect();
            // The names of parts are the author's, and no other place takes them, nor what is given to such a part.
            let own: Vec<&str> = ["parts", "uses"]
                .iter()
                .filter_map(|key| tree.get(key)?.entries())
                .flat_map(|parts| parts.iter().map(|e| e.key.as_str()))
                .collect();
            let is_own = |path: &[String]| path.iter().any(|key| own.contains(&key.as_str()));
            for path in keys.into_iter().filter(|path| path.len() > 1 && !is_own(path)) {
                let Some((mut less, e)) = without(&tree, &path) else { continue };
                // Many files write the same in the same place, which is tried once.
                let is_new = seen.insert((path.clone(), format!("{:?}", e.value.text())));
                if fields.contains(&e.key.as_str()) || less.get(&e.key).is_some() || !is_new {
                    continue;
                }
                let Kind::Map(entries) = &mut less.kind else { continue };
                entries.push(e.clone());
                all += 1;
                let found = (of.check)(&sources, &less);
                let Some(d) = found.iter().find(|d| d.code == Code::UnknownKey && d.span() == e.key_span)
                else {
                    wrong.push(format!("{name}: {}: no unknown key", path.join(".")));
                    continue;
                };
                let Some(advice) = d.help.iter().find_map(|help| advice(help)) else { continue };
                count += 1;
                let Some(after) = followed(&less, d.span(), &advice, &of) else {
                    wrong.push(format!("{name}: {}: {:?} cannot be followed", path.join("."), d.help));
                    continue;
                };
                let left = (of.check)(&sources, &after);
                let said: BTreeSet<&str> = found.iter().map(|d| d.message.as_str()).collect();
                let is_new = |l: &&Diagnostic| !said.contains(l.message.as_str());
                if let Some(bad) = left.iter().filter(is_new).find(|l| ABOUT_WORDS.contains(&l.code)) {
                    wrong.push(format!("{name}: {}: {:?}: {}", path.join("."), d.help, bad.message));
                }
            }
        }
    }
    let share = wrong.len() as f64 / count as f64;
    assert!(share <= 0.0, "{} of {count} (of {all} keys):\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 300, "{count} of {all}");
}

/// A setting that belongs elsewhere is given as it can be pasted, also where it replaces a value.
#[test]
fn a_setting_is_given_with_its_whole_path() {
    for (wrong, right) in [
        ("heads=8", "decoder.attention.heads=8"),
        ("layers=3", "decoder.layers=3"),
        ("tied=true", "head.lm.tied=true"),
        // The dots of a range are none between keys.
        ("decoder.ranges.0..1.heads=4", "decoder.ranges.0..1.attention.heads=4"),
    ] {
        let said = crate::cli::trafoc(&["check", "@gpt1", "--set", wrong]);
        assert!(said.err.contains(&format!("help: write `--set {right}`")), "{}", said.err);
        assert_eq!(crate::cli::trafoc(&["check", "@gpt1", "--set", right]).code, 0, "{right}");
    }
    // What help shows as YAML for a file is a setting, too; `...` is left to the author.
    for (wrong, right) in [
        ("decoder.ffn.activation=swiglu", "decoder.ffn=swiglu"),
        ("decoder.attention.rope=true", "decoder.position=rotary"),
        ("decoder.attention=window", "decoder.attention.mask.window=..."),
        ("decoder.norm1=simple_rms_norm", "decoder.norm1.rms_norm.affine=false"),
        ("norm=rms_norm(eps=1e-6)", "norm.rms_norm.eps=1e-6"),
        ("decoder={ffn.hidden: 64}", "decoder.ffn.hidden=64"),
        ("use_swiglu=true", "decoder.ffn.glu.activation=silu"),
        ("init=lecun", "init.kaiming_normal.gain=1"),
        ("decoder.ffn=none", "'decoder.block=x + attention(norm(x))'"),
        (
            "decoder.attention={type: latent, kv_rank: 4}",
            "'decoder.attention.latent={heads: 12, bias: ..., dropout: ..., kv_rank: 4}'",
        ),
        ("decoder.dropout=0.1", "'decoder.attention.dropout={weights: ..., out: ...}'"),
        ("decoder[0].layers=2", "decoder.layers=2"),
        ("decoder.layers[1].ffn.hidden=64", "decoder.ranges.1.ffn.hidden=64"),
        ("heads=4 * 2", "'decoder.attention.heads=4 * 2'"),
    ] {
        let said = crate::cli::trafoc(&["check", "@gpt1", "--set", wrong]);
        assert!(said.err.contains(&format!("`--set {right}`")), "{right}\n{}", said.err);
    }
    // A setting is laid over the part that the spec has, about which nothing more is wrong.
    for (wrong, right) in [
        ("norm={type: layer_norm, eps: 1}", "norm.layer_norm.eps=1"),
        ("norm={type: rms_norm, eps: 1}", "norm.rms_norm.eps=1"),
        ("decoder.ffn={type: moe, experts: 4}", "decoder.ffn.moe.experts=4"),
        ("decoder.ffn.num_experts=4", "decoder.ffn.moe.experts=4"),
    ] {
        let said = crate::cli::trafoc(&["check", "@mixtral-8x7b", "--set", wrong]);
        assert!(said.err.contains(&format!("write `--set {right}`")), "{right}\n{}", said.err);
        assert_eq!(said.err.matches("error[").count(), 1, "{}", said.err);
        assert_eq!(crate::cli::trafoc(&["check", "@mixtral-8x7b", "--set", right]).code, 0, "{right}");
    }
    let warmup = ["check", "@gpt1", "--recipe", "@gpt1", "--with", "schedule.warmup_steps=4"];
    let said = crate::cli::trafoc(&warmup);
    assert!(said.err.contains("write `--with schedule.cosine.warmup=4`"), "{}", said.err);
    let recipe = ["check", "@gpt1", "--recipe", "@gpt1", "--with", "optimizer=adamw(lr=1)"];
    let said = crate::cli::trafoc(&recipe);
    assert!(said.err.contains("write `--with optimizer.adamw.learning_rate=1`"), "{}", said.err);
    let said = crate::cli::trafoc(&["check", "@gpt1", "--set", "extends=@x"]);
    assert!(said.err.contains("help: write `extends` into the spec itself"), "{}", said.err);
}

/// A file of a later version is not checked further.
#[test]
fn a_later_version_is_said_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("later.yaml"), "trafo: 2\nnew_key: 3\n").unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["check", "later.yaml"]);
    assert!(said.err.starts_with("error[unknown-version]"), "{}", said.err);
    assert_eq!(said.err.matches("error[").count(), 1, "{}", said.err);
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    let id = sources.add("later.yaml", "recipe: 2\nnew_key: 3\n");
    assert!(recipe::read(&sources, id, &[], &mut sink).is_none());
    let found = sink.into_sorted();
    assert!(matches!(found.as_slice(), [only] if only.code == Code::UnknownVersion), "{found:?}");
}

/// Where the place of a key is taken, the help says by what.
#[test]
fn a_taken_place_is_said_with_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let text = "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nn_ctx: 8\nn_positions: 9\nd_model: 8\nheads: 4\ndecoder:\n  layers: 2\n  \
                attention: {heads: 2, mask: causal, window: 4}\nhead: lm\n";
    std::fs::write(folder.path().join("spec.yaml"), text).unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["check", "spec.yaml"]);
    for help in [
        "trafoc calls this `context`, which is `8` already: remove this one",
        "trafoc calls this `context`, which is `8` already: keep one of the two",
        "it belongs at `decoder.attention.heads`, which is `2` already: keep one of the two",
        "it belongs at `mask.window`, but `mask` is `causal` already: keep one of the two",
    ] {
        assert!(said.err.contains(help), "{help}\n{}", said.err);
    }
    crate::cli::trafoc_in(folder.path(), &["check", "spec.yaml", "--fix", "--unsafe-fixes"]);
    let fixed = std::fs::read_to_string(folder.path().join("spec.yaml")).unwrap();
    assert_eq!(fixed, text.replace("n_ctx: 8\n", ""));
}

/// Settings as the DSL has them are one text for YAML where they have lines of their own.
#[test]
fn settings_in_lines_are_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "    heads = 2\n    kv_heads=1\n";
    let text = format!(
        "trafo: 1\nname: m\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 2\n  attention:\n{lines}head: lm\n"
    );
    let path = folder.path().join("spec.yaml");
    std::fs::write(&path, &text).unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["check", "spec.yaml"]);
    assert!(said.err.contains("help: write `{heads: 2, kv_heads: 1}`"), "{}", said.err);
    std::fs::write(&path, text.replace(lines, "    {heads: 2, kv_heads: 1}\n")).unwrap();
    assert_eq!(crate::cli::trafoc_in(folder.path(), &["check", "spec.yaml"]).code, 0);
}
