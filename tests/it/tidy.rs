//! Rules about the code itself: which folder may use which others, how every file begins and how long it
//! may be, and that every part and every code has a test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use trafoc::diag::Code;
use trafoc::field::value::SlotDoc;
use trafoc::parts::ffn::mixture::Expert;
use trafoc::parts::init::Distribution;
use trafoc::parts::mask::MaskPart;
use trafoc::parts::position::scaling::Scaling;
use trafoc::parts::{Activation, Attention, Ffn, Head, Norm, Position};
use trafoc::spec::load;
use trafoc::spec::wiring;

use crate::bad::code_of;
use crate::compiled::{repository, specs};

/// The folders of `src`; each uses only itself and those before it.
const ORDER: &[&[&str]] = &[
    &["followed"],
    &["read", "source", "write"],
    &["disk", "kind", "memory"],
    &["tensor_file"],
    &["diag"],
    &["syntax"],
    &["field"],
    &["ir"],
    &["names", "parts"],
    &["spec"],
    &["lower"],
    &["compile"],
    &["emit", "report"],
    &["interp"],
    &["draw"],
    &["hub", "learn", "inspect"],
    &["cli"],
];

/// The most lines of a file.
const LINES: usize = 600;

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
}

fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    folders.iter().for_each(|f| files(&repository(f), &mut found));
    let name = |p: &Path| p.strip_prefix(repository("")).unwrap().to_string_lossy().into_owned();
    found.iter().map(|p| (name(p), std::fs::read_to_string(p).unwrap())).collect()
}

fn rank(folder: &str) -> Option<usize> {
    ORDER.iter().position(|level| level.contains(&folder))
}

#[test]
fn dependencies_run_one_way() {
    let mut wrong = Vec::new();
    for (name, text) in sources(&["src"]) {
        let folder = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_owned();
        if matches!(folder.as_str(), "lib" | "main") {
            continue;
        }
        let Some(own) = rank(&folder) else {
            wrong.push(format!("{name}: `{folder}` has no place in `ORDER`"));
            continue;
        };
        let code = text.lines().map(|l| l.split("//").next().unwrap_or(""));
        for (number, line) in code.enumerate() {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
                let allowed = rank(used).is_some_and(|r| r < own) || used == folder || rank(used).is_none();
                if !allowed {
                    wrong.push(format!("{name}:{}: `{folder}` uses `{used}`", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls that open a file. Those that read are in `src/read.rs`, which refuses pipes and devices and bounds
/// what is read; those that write are in `src/write.rs`, which replaces files as a whole.
const OPENING: &[&str] = &[
    "File::open(",
    "File::create(",
    "File::options(",
    "OpenOptions",
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
];

#[test]
fn files_are_opened_in_two_places() {
    let mut wrong = Vec::new();
    for (name, text) in sources(&["src"]) {
        if matches!(name.as_str(), "src/read.rs" | "src/write.rs") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            // `TensorFile::open` opens its file with `src/read.rs`.
            let code = line.split("//").next().unwrap_or("").replace("TensorFile::open(", "");
            if let Some(call) = OPENING.iter().find(|call| code.contains(**call)) {
                wrong.push(format!("{name}:{}: calls `{call}..`", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_start_the_program_in_one_place() {
    let named = concat!("CARGO_BIN_EXE_", "trafoc");
    let files = sources(&["tests/it"]);
    let wrong: Vec<&str> =
        files.iter().filter(|(_, text)| text.contains(named)).map(|(n, _)| n.as_str()).collect();
    assert_eq!(
        wrong,
        ["tests/it/compiled.rs"],
        "`compiled::program` starts it without the files of a developer"
    );
}

/// Where an op is executed, and the list of what follows from each: a new op needs an arm there. What follows
/// from it is said in a file of `src/ir/op/`.
const ARMS: &[&str] =
    &["src/emit/pytorch/op.rs", "src/emit/rust/op.rs", "src/interp/eval.rs", "src/ir/op/mod.rs"];

/// Programs of single steps have kernels for some ops. A plan with another one has no program, so a new op needs nothing
/// there.
const PARTIAL: &str = "src/interp/step/compile.rs";

/// How many different ops another file may name, to ask for just these.
const NAMED: usize = 7;

#[test]
fn a_new_op_needs_an_arm_in_four_files() {
    let list = std::fs::read_to_string(repository("src/ir/op/mod.rs")).unwrap();
    let ops: BTreeSet<String> = syn::parse_file(&list)
        .unwrap()
        .items
        .into_iter()
        .filter_map(|item| match item {
            syn::Item::Enum(item) if item.ident == "Op" => Some(item.variants),
            _ => None,
        })
        .flatten()
        .map(|variant| variant.ident.to_string())
        .collect();
    assert!(ops.len() > 30);
    let mut arms = Vec::new();
    for (name, text) in sources(&["src"]) {
        // Parts and lowering build a graph of ops.
        if name.starts_with("src/parts/") || name.starts_with("src/lower/") {
            continue;
        }
        let code = text.lines().map(|line| line.split("//").next().unwrap_or(""));
        let code: String = code.collect::<Vec<_>>().join("\n");
        let after = code.split("Op::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
        let named: BTreeSet<&str> = after.flatten().filter(|word| ops.contains(*word)).collect();
        if named.len() == ops.len() {
            arms.push(name);
        } else if name != PARTIAL {
            assert!(named.len() <= NAMED, "{name} names {named:?}: that is for a method of `Meaning`");
        }
    }
    assert_eq!(arms, ARMS);
}

/// A norm is a file and a row of its slot, whether it is a layer or made of ops: elsewhere at most one is
/// named, which is a default or the absent one.
#[test]
fn a_new_norm_needs_a_file_and_a_row() {
    const SLOT: &str = "src/parts/norm/mod.rs";
    let slot = std::fs::read_to_string(repository(SLOT)).unwrap();
    let row = |line: &str| {
        Some(line.trim().strip_prefix('"')?.split_once("\" => ")?.1.split_once('(')?.0.to_owned())
    };
    let norms: BTreeSet<String> = slot.lines().filter_map(row).collect();
    assert!(norms.len() > 3 && norms.contains("DynamicTanh"), "{norms:?}");
    for (name, text) in sources(&["src"]) {
        let after = text.split("Norm::").skip(1);
        let words = after.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
        let named: BTreeSet<&str> = words.filter(|word| norms.contains(*word)).collect();
        assert!(name == SLOT || named.len() <= 1, "{name} names {named:?}: that is for a method of the slot");
        assert!(name == SLOT || !named.contains("DynamicTanh"), "{name} names a norm that is made of ops");
    }
}

/// What a program is not to know: the languages and libraries of targets, and the crates that write one.
const LANGUAGES: &[&str] = &["rust", "burn", "python", "torch", "codegen", "syn::", "prettyplease"];

/// Syntax of Rust that would be in the texts of a program if it wrote any.
const SYNTAX: &[&str] = &[
    "::", "=>", "&", ";", "fn ", "let ", "mut ", "impl ", "usize", "f64", "Option", "Tensor", ".clone",
    "self.",
];

#[test]
fn a_program_is_of_no_language() {
    struct Texts(Vec<String>);
    impl<'ast> syn::visit::Visit<'ast> for Texts {
        fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
            self.0.push(text.value());
        }
        // A comment of documentation is an attribute with a text.
        fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
        fn visit_macro(&mut self, call: &'ast syn::Macro) {
            let tokens = call.tokens.to_string();
            self.0.extend(tokens.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    let mut wrong = Vec::new();
    let files = sources(&["src/emit/program"]);
    assert!(files.len() > 5);
    for (name, text) in files {
        let lower = text.to_lowercase();
        let known = LANGUAGES.iter().filter(|word| lower.contains(**word));
        wrong.extend(known.map(|word| format!("{name}: says {word}")));
        let used = text.split("emit::").skip(1).filter(|rest| !rest.starts_with("program"));
        wrong.extend(used.map(|rest| format!("{name}: uses emit::{}", &rest[..rest.len().min(12)])));
        if text.contains("super::super") {
            wrong.push(format!("{name}: uses what is above it"));
        }
        let mut texts = Texts(Vec::new());
        syn::visit::Visit::visit_file(&mut texts, &syn::parse_file(&text).unwrap());
        for text in texts.0 {
            let syntax = SYNTAX.iter().filter(|word| text.contains(**word));
            wrong.extend(syntax.map(|word| format!("{name}: {word:?} in {text:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_say_what_they_are_and_stay_short() {
    let mut wrong = Vec::new();
    for (name, text) in sources(&["src", "tests/it", "benches"]) {
        if !text.starts_with("//!") {
            wrong.push(format!("{name}: does not begin with `//!`"));
        }
        if text.lines().count() > LINES {
            wrong.push(format!("{name}: {} lines", text.lines().count()));
        }
        let stem = Path::new(&name).file_stem().unwrap().to_string_lossy().into_owned();
        if matches!(stem.as_str(), "utils" | "util" | "helpers" | "common" | "misc") {
            wrong.push(format!("{name}: no file is called so"));
        }
        // Written with escapes, so that this file does not contain them.
        let notes = ["TO\x44O", "FI\x58ME", "XX\x58"];
        if let Some(note) = notes.iter().find(|note| text.contains(**note)) {
            wrong.push(format!("{name}: says {note}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_bad_spec() {
    let shown: BTreeSet<&str> = ["tests/bad", "tests/bad/recipe"]
        .iter()
        .flat_map(|f| specs(f))
        .filter_map(|(name, _)| code_of(&name))
        .map(Code::slug)
        .collect();
    let missing: Vec<&str> = Code::ALL.iter().map(|c| c.slug()).filter(|c| !shown.contains(c)).collect();
    assert!(missing.is_empty(), "tests/bad has none of {missing:?}");
}

#[test]
fn every_part_has_a_good_spec() {
    let slots: Vec<SlotDoc> = vec![
        Norm::documentation(),
        Position::documentation(),
        Scaling::documentation(),
        Attention::documentation(),
        Ffn::documentation(),
        Expert::documentation(),
        MaskPart::documentation(),
        Head::documentation(),
        Distribution::documentation(),
    ];
    let parts = slots.iter().flat_map(|slot| slot.parts.iter().map(|p| format!("{}-{}", slot.name, p.name)));
    let activations = Activation::WORDS.iter().map(|w| format!("activation-{}", w.name));
    let wirings = wiring::prelude(&load::sources());
    let wirings = wirings.iter().filter_map(|w| w.name.as_ref()).map(|name| format!("wiring-{name}"));
    let there: BTreeSet<String> = specs("tests/good").into_iter().map(|(name, _)| name).collect();
    let missing: BTreeSet<String> =
        parts.chain(activations).chain(wirings).filter(|name| !there.contains(name)).collect();
    assert!(missing.is_empty(), "tests/good has none of {missing:?}");
}

#[test]
fn every_snapshot_has_a_spec() {
    for (kind, folder) in [("bad", "tests/bad"), ("good", "tests/good"), ("recipe", "tests/bad/recipe")] {
        let there: BTreeSet<String> = specs(folder).into_iter().map(|(name, _)| name).collect();
        let folder = std::fs::read_dir(repository(&format!("tests/snap/{kind}"))).unwrap();
        for path in folder.map(|e| e.unwrap().path()) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(there.contains(&name), "tests/snap/{kind}/{name}.snap is of no spec");
        }
    }
}

/// Comparisons with a text that are no guess: they read something that is a text by its nature.
const TEXTS: &[(&str, &str)] = &[
    ("src/draw/page.rs", "cell.class == \"code\""),
    ("src/inspect/data.rs", "l.part == \"train\""),
    ("src/inspect/mod.rs", "*cell != \"–\""),
    ("src/inspect/norms.rs", "text == \"-0.00\""),
    ("src/inspect/training.rs", "m.name != \"loss\""),
    ("src/inspect/training.rs", "m.name == \"loss\""),
    ("src/interp/device.rs", "chosen.name == \"flex\""),
    ("src/interp/device.rs", "lower == \"auto\""),
    ("src/interp/plan/captures.rs", "wanted == \"*\""),
    ("src/parts/attention/core.rs", "e.key != \"qkv\""),
    ("src/report/compare/condition.rs", "starts_with(\"--fail-if #\")"),
    ("src/report/compare/condition.rs", "strip_prefix(\"first.\")"),
    ("src/report/compare/knob.rs", "knob.path != \"name\""),
    ("src/report/compare/nearest.rs", "only == \"name\""),
];

#[test]
fn nothing_after_the_spec_decides_by_a_name() {
    let folders = ["draw", "inspect", "interp", "ir", "lower", "parts", "report"].map(|f| format!("src/{f}"));
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let tests = ["== \"", "!= \"", "contains(\"", "starts_with(\"", "ends_with(\"", "prefix(\"", "suffix(\""];
    let mut wrong = Vec::new();
    let mut met = BTreeSet::new();
    for (name, text) in sources(&folders) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().starts_with("//")) {
            if !tests.iter().any(|test| line.contains(test)) {
                continue;
            }
            match TEXTS.iter().position(|(file, text)| *file == name && line.contains(text)) {
                Some(known) => drop(met.insert(known)),
                None => wrong.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "ask the graph (`Part`, `Rows`, `Op`), not a name:\n{}", wrong.join("\n"));
    let idle: Vec<_> = (0..TEXTS.len()).filter(|i| !met.contains(i)).map(|i| TEXTS[i]).collect();
    assert!(idle.is_empty(), "no longer there: {idle:?}");
}

/// The modules that neither index nor calculate with numbers that may overflow; `src/lib.rs` has clippy check
/// them.
const CAREFUL: &[&str] = &[
    "diag",
    "field",
    "hub",
    "ir",
    "kind",
    "lower",
    "memory",
    "names",
    "parts",
    "read",
    "report",
    "source",
    "spec",
    "syntax",
    "tensor_file",
    "write",
];

#[test]
fn what_reads_a_text_neither_indexes_nor_overflows() {
    let library = std::fs::read_to_string(repository("src/lib.rs")).unwrap();
    let lines: Vec<&str> = library.lines().collect();
    for module in CAREFUL {
        let at = lines.iter().position(|line| *line == format!("pub mod {module};")).unwrap();
        let attribute = lines[at - 1];
        for lint in ["clippy::indexing_slicing", "clippy::arithmetic_side_effects"] {
            assert!(attribute.contains(lint), "`{module}` is without {lint}: {attribute}");
        }
        let inside = format!("src/{module}");
        let own = sources(&["src"]).into_iter().filter(|(path, _)| path.starts_with(&inside));
        for (path, text) in own {
            for lint in ["(clippy::indexing_slicing", "(clippy::arithmetic_side_effects"] {
                // `src/ir/mod.rs` indexes by ids, which only the graph itself gives out.
                let most = if path == "src/ir/mod.rs" { 3 } else { 0 };
                assert!(text.matches(lint).count() <= most, "{path} switches a lint off");
            }
        }
    }
}

/// The filters of tests that a page names: what follows `--` of `cargo test`, and names in backticks that begin with
/// a module of the tests.
fn filters(page: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let of_commands = page.split("cargo test").skip(1).filter_map(|rest| {
        let line = rest.split(['`', '\n']).next()?;
        let named = line.split_once(" -- ")?.1;
        Some(named.split_whitespace().filter(|word| !word.starts_with('-') && *word != "NAME"))
    });
    let quoted = page.split('`').skip(1).step_by(2);
    let of_names = quoted.filter(|word| {
        word.split_once("::").is_some_and(|(module, _)| modules.contains(module))
            && !word.contains([' ', '(', '<'])
    });
    of_commands.flatten().chain(of_names).map(str::to_owned).collect()
}

#[test]
fn every_test_that_a_page_names_exists() {
    let mut tests = BTreeSet::new();
    let mut modules = BTreeSet::new();
    let mut all = Vec::new();
    files(&repository("tests/it"), &mut all);
    for path in all {
        let inner = path.strip_prefix(repository("tests/it")).unwrap().with_extension("");
        let module = inner.to_str().unwrap().replace(['/', '\\'], "::");
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("fn ") {
            let name: String =
                text[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            tests.insert(format!("{module}::{name}"));
        }
        modules.insert(module.split("::").next().unwrap().to_owned());
    }
    let (mut missing, mut count) = (Vec::new(), 0);
    let pages = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/conventions.md",
        "docs/reliability.md",
        "docs/pytorch.md",
    ];
    for page in pages {
        let text = std::fs::read_to_string(repository(page)).unwrap();
        let named = filters(&text, &modules);
        count += named.len();
        missing.extend(
            named
                .iter()
                .filter(|name| !tests.iter().any(|t| t.contains(name.as_str())))
                .map(|name| format!("{page}: {name}")),
        );
    }
    assert!(count > 60, "{count}");
    assert!(missing.is_empty(), "no test has these names:\n{}", missing.join("\n"));
}
