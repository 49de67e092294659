//! Names in emitted Rust: whatever an author calls things, the crate is one that Cargo takes and no name
//! hides another. `tests/emitted` compiles what is only read here.

use std::collections::BTreeSet;
use std::process::Command;

use syn::visit::Visit;
use trafoc::emit::rust::{self, Form, name};
use trafoc::ir::extent::Word;
use trafoc::ir::{Dim, Extent, Sym};
use trafoc::source::SourceMap;
use trafoc_kernels::source::FILES;

use crate::compiled::{graph, repository, specs};

/// The names of `tests/emitted/names.txt`.
fn hostile() -> Vec<String> {
    let text = std::fs::read_to_string(repository("tests/emitted/names.txt")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// What a file defines, and the types and traits it names as the first word of a path.
#[derive(Default)]
struct Words {
    defined: BTreeSet<String>,
    named: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Words {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.defined.insert(item.ident.to_string());
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.defined.insert(item.ident.to_string());
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let first = path.segments.first().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let is_type = first.starts_with(|c: char| c.is_ascii_uppercase());
        // A word in capitals only is a constant.
        if is_type && first.chars().any(|c| c.is_ascii_lowercase()) {
            self.named.insert(first);
        }
        syn::visit::visit_path(self, path);
    }
}

#[test]
fn what_emitted_files_name_no_module_is_called() {
    for folder in ["tests/good", "specs"] {
        for (spec, path) in specs(folder) {
            let text = rust::source(&graph(&path), &SourceMap::new(), &spec, Form::Kernels).unwrap();
            let mut words = Words::default();
            words.visit_file(&syn::parse_file(&text).unwrap());
            let open = words.named.difference(&words.defined).filter(|name| !name::is_reserved_type(name));
            assert_eq!(open.collect::<Vec<_>>(), Vec::<&String>::new(), "{spec}");
        }
    }
}

/// Sizes are named by the author's words: no width of a layer, no border of a slice, no number of an op and
/// no side of a shape is a bare number.
#[test]
fn every_size_of_a_shipped_model_is_named() {
    for (spec, path) in specs("specs") {
        let text = rust::source(&graph(&path), &SourceMap::new(), &spec, Form::Kernels).unwrap();
        let calls = [
            "linear(",
            "linear_no_bias(",
            "normal([",
            "NormConfig::new(",
            ".narrow(",
            "split_heads(",
            "repeat_heads(",
            "relative_buckets(",
            "position_ids(",
            "sinusoid_interleaved(",
            "softcap: Some(",
            "scale: Some(",
            "|query, key| ",
            "image [B, ",
            "cos [T, ",
        ];
        let flat = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        for call in calls {
            for found in flat.split(call).skip(1) {
                let end = found.find([')', ']']).unwrap_or(found.len());
                let arguments = &found[..end];
                let is_bare = |word: &str| {
                    let is_number = word.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '.'));
                    word.len() > 1 && is_number && word != "1.0"
                };
                let mut words = arguments.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
                assert!(!words.any(is_bare), "{spec}: {call}{arguments}");
            }
        }
    }
}

#[test]
fn sizes_keep_the_words_of_the_spec() {
    let (heads, content, rotary) =
        (Extent::new("heads", 4), Extent::new("content_dim", 16), Extent::new("rotary_dim", 8));
    let words = |size: Extent| -> Vec<(u64, Vec<&str>)> {
        let names = |(times, words): (u64, Vec<Word>)| (times, words.iter().map(|word| word.name).collect());
        size.terms().into_iter().map(names).collect()
    };
    let width = heads * (content + rotary);
    assert_eq!(width.get(), 96);
    assert_eq!(words(width), [(1, vec!["heads", "content_dim"]), (1, vec!["heads", "rotary_dim"])]);
    assert_eq!(words(width.divide(heads).unwrap()), words(content + rotary));
    assert_eq!(words(rotary + rotary), [(2, vec!["rotary_dim"])]);
    assert_eq!(width.divide(5.into()), None);
    // Sizes are equal when their numbers are, whatever they are called.
    assert_eq!(content, Extent::from(16));
    assert_eq!(Dim::from(width), Dim::of(96u64));
    assert_eq!((Dim::from(heads) * Dim::from(rotary)).extent().map(words), Some(words(heads * rotary)));
    assert_eq!((Dim::from(heads) + Dim::sym(Sym::Time)).extent(), None);
    // A quotient keeps what it is divided by, until it is multiplied again.
    let few = Extent::new("kv_heads", 2);
    let shared = heads.divide(few).unwrap();
    assert_eq!((shared.get(), words(shared)), (2, vec![(1, vec!["heads"])]));
    assert_eq!(shared.divisor(), (1, vec![Word { name: "kv_heads", n: 2, is_by_rule: false }]));
    assert_eq!((words(shared * few), (shared * few).divisor()), (vec![(1, vec!["heads"])], (1, vec![])));
    let half = rotary.divide(2.into()).unwrap();
    assert_eq!((half.get(), words(half), half.divisor()), (4, vec![(1, vec!["rotary_dim"])], (2, vec![])));
    assert_eq!((words(half + half), (half + half).divisor()), (vec![(1, vec!["rotary_dim"])], (1, vec![])));
    // What cannot be remembered is a number.
    assert_eq!(words((content + rotary).divide(2.into()).unwrap()), [(12, vec![])]);
    let far = heads * content * rotary * heads;
    assert_eq!(words(far), [(far.get(), vec![])]);
}

#[test]
fn types_of_the_kernels_are_reserved() {
    let mut types = BTreeSet::new();
    for (path, text) in FILES.iter().filter(|(path, _)| path.starts_with("src/kernel/")) {
        let mut words = Words::default();
        words.visit_file(&syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}")));
        types.extend(words.defined);
        for item in syn::parse_file(text).unwrap().items {
            if let syn::Item::Trait(item) = item {
                types.insert(item.ident.to_string());
            }
        }
    }
    assert!(types.contains("KvCache"));
    let open: Vec<&String> = types.iter().filter(|name| !name::is_reserved_type(name)).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_text_of_the_kernels_is_complete() {
    let mut there = BTreeSet::from(["Cargo.toml".to_owned()]);
    for folder in ["src", "src/backend", "src/cpu", "src/kernel", "src/reference"] {
        for entry in std::fs::read_dir(repository("kernels").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".rs") {
                there.insert(format!("{folder}/{name}"));
            }
        }
    }
    assert_eq!(FILES.iter().map(|(path, _)| (*path).to_owned()).collect::<BTreeSet<_>>(), there);
}

#[test]
fn a_name_of_a_file_can_be_written_and_is_its_own() {
    let names = hostile();
    let files: BTreeSet<String> = names.iter().map(|name| name::file(name)).collect();
    for file in &files {
        assert!(file.len() <= 64, "{file}");
        assert!(file.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{file}");
    }
    let long = ["a".repeat(300), format!("{}b", "a".repeat(299))];
    assert_ne!(name::file(&long[0]), name::file(&long[1]));
    // Names of crates, words of Rust, and names that Windows has for devices.
    for taken in ["nn", "lib", "main", "std", "burn", "trafoc_kernels", "fn", "f32", "con", "com1"] {
        assert_ne!(name::file(taken), taken);
    }
    // A file of Python hides the module of its name from everything that is imported in its folder.
    for taken in ["code", "copy", "json", "random", "re", "os", "torch", "numpy", "regex", "con", "class"] {
        assert_eq!(trafoc::emit::pytorch::name::file(taken), format!("model_{taken}"));
    }
}

/// Cargo reads the manifests of crates with hostile names; it knows which names a package cannot have.
#[test]
fn crates_of_hostile_names_are_packages() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for name in hostile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spec.yaml");
        let text = format!(
            "trafo: 1\nname: {name:?}\nvocab: 16\ncontext: 8\nd_model: 8\n\
             decoder: {{layers: 1, attention: {{heads: 2}}, ffn: {{hidden: 12}}}}\nhead: lm\n"
        );
        std::fs::write(&path, text).unwrap();
        let graph = graph(&path);
        for form in [Form::Kernels, Form::Standalone] {
            let root = folder.path().join(format!("{form:?}"));
            for (file, text) in rust::krate(&graph, &SourceMap::new(), "spec.yaml", form).unwrap() {
                let file = root.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            let said = Command::new(&cargo)
                .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
                .arg(root.join("Cargo.toml"))
                .output()
                .unwrap();
            assert!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr));
            assert_eq!(root.join("kernels").exists(), form == Form::Kernels);
        }
    }
}

/// burn's count has the buffers, which trafoc does not call parameters.
#[test]
fn the_program_of_a_crate_calls_what_it_counts_by_its_name() {
    for (spec, counted) in [("deepseek-v3-tiny", "{} parameters and buffers"), ("gpt1", "{} parameters")] {
        let graph = graph(&repository(&format!("specs/{spec}.yaml")));
        let files = rust::krate(&graph, &SourceMap::new(), spec, Form::Standalone).unwrap();
        let (_, main) = files.iter().find(|(path, _)| path == "src/main.rs").unwrap();
        assert!(main.contains(&format!("\"{counted}\", model.num_params()")), "{main}");
    }
}
