//! Every reader of trafoc under arbitrary bytes, and the laws that hold for whatever it accepts.
//!
//! A [`Reader`] takes bytes as a hostile user would give them and panics where a promise is broken. The
//! fuzzer in `fuzz/` mutates their seeds and feeds them; `tests/regressions/<reader>/` keeps what it found,
//! which an ordinary test runs, together with a short run over the seeds.

use trafoc::compile::compile;
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load;
use trafoc::syntax::text::{self, one_line};
use trafoc::syntax::token::may_be_value;
use trafoc::syntax::tree::{Kind, Node, Style};
use trafoc::syntax::{self, Notation, expr, fmt, set};

/// A reader, and the files that it begins with.
pub struct Reader {
    /// Its name, and that of its folder of finds.
    pub name: &'static str,
    /// Gives it bytes; panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Folders and ends of file names whose files it begins with.
    pub seeds: &'static [(&'static str, &'static str)],
}

/// Files of specs in YAML.
const YAML: &[(&str, &str)] = &[
    ("specs", ".yaml"),
    ("tests/good", ".yaml"),
    ("tests/bad", ".yaml"),
    ("tests/hostile", ".yaml"),
    ("tests/regressions/format-yaml", ".yaml"),
];
/// Files of specs in the DSL.
const DSL: &[(&str, &str)] = &[
    ("specs", ".trafo"),
    ("tests/good", ".trafo"),
    ("tests/bad", ".trafo"),
    ("tests/hostile", ".trafo"),
    ("src/spec", ".trafo"),
    ("tests/regressions/format-dsl", ".trafo"),
];

/// All readers.
pub const READERS: &[Reader] = &[
    Reader { name: "spec-yaml", run: |bytes| spec(bytes, Notation::Yaml), seeds: YAML },
    Reader { name: "spec-dsl", run: |bytes| spec(bytes, Notation::Dsl), seeds: DSL },
    Reader { name: "format-yaml", run: |bytes| format(bytes, Notation::Yaml), seeds: YAML },
    Reader { name: "format-dsl", run: |bytes| format(bytes, Notation::Dsl), seeds: DSL },
    Reader { name: "set", run: setting, seeds: &[("tests/regressions/set", ".txt")] },
    Reader { name: "expression", run: expression, seeds: &[("tests/regressions/expression", ".txt")] },
    Reader { name: "equation", run: equation, seeds: &[("tests/regressions/equation", ".txt")] },
    Reader {
        name: "recipe",
        run: recipe,
        seeds: &[("specs/recipes", ".yaml"), ("tests/bad/recipe", ".yaml")],
    },
    #[cfg(feature = "learn")]
    Reader { name: "config", run: learn::config, seeds: &[("tests/hub", "config.json")] },
    #[cfg(feature = "learn")]
    Reader { name: "family", run: learn::family, seeds: &[("src/hub/families", ".yaml")] },
    Reader { name: "settings", run: settings, seeds: &[("tests/regressions/settings", ".toml")] },
    Reader {
        name: "safetensors",
        run: safetensors,
        seeds: &[("tests/numeric", ".safetensors"), ("tests/weights", ".safetensors")],
    },
    #[cfg(feature = "learn")]
    Reader {
        name: "tokenizer",
        run: learn::tokenizer,
        seeds: &[("tests/regressions/tokenizer", ".json"), ("tests/hub", "tokenizer.json")],
    },
    #[cfg(feature = "learn")]
    Reader { name: "sentencepiece", run: learn::sentencepiece, seeds: &[("tests/sentencepiece", ".model")] },
    #[cfg(feature = "learn")]
    Reader { name: "data", run: learn::data, seeds: &[("data", ""), ("tests/regressions/data", "")] },
    #[cfg(feature = "learn")]
    Reader { name: "prepared", run: learn::prepared, seeds: &[("tests/regressions/prepared", "")] },
    #[cfg(feature = "learn")]
    Reader {
        name: "image",
        run: learn::image,
        seeds: &[("tests/picture", ".png"), ("tests/picture", ".jpg")],
    },
];

/// The longest input that is read.
pub const LONGEST: usize = 1 << 16;

fn source(name: &str, bytes: &[u8]) -> (SourceMap, Option<SourceId>, Sink) {
    let mut sources = load::sources();
    let mut sink = Sink::new();
    let id = text::decode(&mut sources, name, bytes, &mut sink);
    (sources, id, sink)
}

/// Every place of every diagnostic lies inside its text, between characters, and all of it can be shown
/// without a character that steers a terminal.
pub fn shown(found: &[Diagnostic], sources: &SourceMap) {
    for diagnostic in found {
        assert!(!diagnostic.labels.is_empty() && !diagnostic.message.is_empty(), "{diagnostic:?}");
        for label in &diagnostic.labels {
            let source = sources.get(label.span.source).expect("a source");
            assert!(source.text.get(label.span.range()).is_some(), "outside of the text: {diagnostic:?}");
        }
        harmless(&render::short(diagnostic, sources));
    }
    harmless(&render::render(found, sources, false, 80));
}

/// Nothing in a text steers a terminal.
pub fn harmless(text: &str) {
    let steers = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(steers), "{text:?}");
}

/// Reads a file of settings: each has a value, or the file is wrong somewhere.
fn settings(bytes: &[u8]) {
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    let folder = std::path::Path::new("/home/someone");
    let said = trafoc::cli::settings_file::parse("trafoc.toml", bytes, folder, &mut sources, &mut sink);
    for one in said {
        assert!(one.line > 0 && !one.value.is_empty(), "{one:?}");
    }
    shown(&sink.into_sorted(), &sources);
}

/// Compiles a spec: it gives a graph or says why not, and what is expanded is the same spec.
fn spec(bytes: &[u8], notation: Notation) {
    let (mut sources, id, sink) = source("spec", bytes);
    let Some(id) = id else { return shown(&sink.into_sorted(), &sources) };
    let compiled = match compile(&mut sources, id, notation, &[], &mut load::NoFiles) {
        Ok(compiled) => compiled,
        Err(bug) => panic!("{}", bug.0),
    };
    shown(&compiled.diagnostics, &sources);
    let failed = compiled.diagnostics.iter().any(|d| d.severity == trafoc::diag::Severity::Error);
    assert!(compiled.graph.is_some() != failed, "a graph or an error: {:?}", compiled.diagnostics);
    let (Some(spec), false) = (compiled.spec, failed) else { return };
    for notation in [Notation::Yaml, Notation::Dsl] {
        let text = trafoc::spec::expand::expand(&spec, notation);
        let mut sources = load::sources();
        let id = sources.add("expanded", text.as_str());
        let again = compile(&mut sources, id, notation, &[], &mut load::NoFiles)
            .unwrap_or_else(|b| panic!("{}", b.0));
        let errors = render::render(&again.diagnostics, &sources, false, 80);
        assert!(again.spec.as_ref() == Some(&spec), "the expansion says something else\n{text}\n{errors}");
    }
}

/// Formats and converts a text: it still says the same, and a second time changes nothing.
pub fn format(bytes: &[u8], notation: Notation) {
    let (sources, id, mut sink) = source("text", bytes);
    let Some(id) = id else { return };
    let tree = syntax::parse(&sources, id, notation, &mut sink);
    shown(&sink.clone().into_sorted(), &sources);
    let Some(tree) = tree.filter(|_| !sink.has_errors()) else { return };
    let text = sources.get(id).map_or("", |s| s.text.as_str()).to_owned();
    let steps = |from: Notation, to: Notation, text: &str| {
        let mut sources = SourceMap::new();
        let id = sources.add("text", text);
        let mut sink = Sink::new();
        let made = fmt::convert(&sources, id, from, to, &trafoc::spec::is_part, &mut sink);
        made.unwrap_or_else(|| panic!("cannot be read again\n{text}\n{:?}", sink.into_sorted()))
    };
    let said = |notation: Notation, text: &str| {
        let mut sources = SourceMap::new();
        let id = sources.add("text", text);
        let mut sink = Sink::new();
        let tree = syntax::parse(&sources, id, notation, &mut sink).filter(|_| !sink.has_errors());
        tree.unwrap_or_else(|| panic!("cannot be read\n{text}\n{:?}", sink.into_sorted()))
    };
    let usual = notation;
    for to in [usual, other(usual)] {
        let once = steps(usual, to, &text);
        let back = said(to, &once);
        if let Err(why) = same(&tree, &back, "") {
            panic!("{usual:?} as {to:?} says something else: {why}\n--- was\n{text}\n--- is\n{once}");
        }
        let twice = steps(to, to, &once);
        assert!(once == twice, "a second pass differs\n--- once\n{once}\n--- twice\n{twice}");
        let home = steps(to, usual, &once);
        if let Err(why) = same(&tree, &said(usual, &home), "") {
            panic!(
                "{usual:?} by {to:?} and back says something else: {why}\n--- was\n{text}\n--- is\n{home}"
            );
        }
    }
}

fn other(notation: Notation) -> Notation {
    match notation {
        Notation::Yaml => Notation::Dsl,
        Notation::Dsl => Notation::Yaml,
    }
}

/// Whether two trees mean the same to everything that reads them: texts to the letter, and what may be a
/// number or a word is not in quotes where it was not.
pub fn same(a: &Node, b: &Node, at: &str) -> Result<(), String> {
    let differ = || Err(format!("at `{at}` {:?} became {:?}", a.kind, b.kind));
    match (&a.kind, &b.kind) {
        (Kind::Null, Kind::Null) | (Kind::Delete, Kind::Delete) => Ok(()),
        (Kind::Scalar(x), Kind::Scalar(y)) => {
            let value = may_be_value(&x.text) || matches!(x.text.as_str(), "true" | "false" | "none");
            let quoted = |s: Style| s == Style::Quoted;
            // A name is a text, with and without quotes.
            let style = !value || quoted(x.style) == quoted(y.style) || at.ends_with(".name");
            // A comment inside of a number may go.
            let words = x.text == y.text || value && one_line(&x.text) == one_line(&y.text);
            if style && words { Ok(()) } else { differ() }
        }
        (Kind::List(x), Kind::List(y)) if x.len() == y.len() => {
            x.iter().zip(y).try_for_each(|(x, y)| same(x, y, &format!("{at}[]")))
        }
        (Kind::Map(x), Kind::Map(y)) if x.len() == y.len() => x.iter().try_for_each(|entry| {
            let key = &entry.key;
            match y.iter().find(|e| e.key == *key) {
                Some(found) => same(&entry.value, &found.value, &format!("{at}.{key}")),
                None => Err(format!("`{at}.{key}` is gone")),
            }
        }),
        _ => differ(),
    }
}

/// Every line is a `--set` over a small spec.
fn setting(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let base = "name: tiny\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {hidden: 8}}\nhead: lm\n";
    let mut sources = load::sources();
    let id = sources.add("tiny.yaml", base);
    let mut settings = Vec::new();
    for line in text.lines().take(50) {
        match set::parse_set(&mut sources, line) {
            Ok(setting) => settings.push(setting),
            Err(diagnostic) => shown(&[diagnostic], &sources),
        }
    }
    let compiled = compile(&mut sources, id, Notation::Yaml, &settings, &mut load::NoFiles);
    shown(&compiled.unwrap_or_else(|b| panic!("{}", b.0)).diagnostics, &sources);
}

/// A text as an expression, as a `--fail-if` and as a formula over tensors.
fn expression(bytes: &[u8]) {
    use trafoc::report::compare::condition::Condition;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut sources = SourceMap::new();
    if let Err(diagnostic) = Condition::parse(&mut sources, text) {
        shown(&[diagnostic], &sources);
    }
    let id = sources.add("expression", text);
    let node = Node::plain(text, trafoc::source::Span::new(id, 0, text.len()));
    match expr::parse(&sources, &node) {
        Ok(read) => {
            if let Err(diagnostic) = expr::eval(&read, &expr::NoNames) {
                shown(&[diagnostic], &sources);
            }
        }
        Err(diagnostic) => shown(&[diagnostic], &sources),
    }
    match expr::parse_formula(&sources, &node) {
        Ok(read) => {
            let formula = trafoc::names::formula::Formula::from(&read);
            let _ = trafoc::names::formula::eval(&formula, &trafoc::names::check::Keys::default());
        }
        Err(diagnostic) => shown(&[diagnostic], &sources),
    }
}

/// Specs with an equation in the place of `EQUATION`, in each notation: of a block, of one that reads a memory, and of a
/// part.
const AROUND: &[(Notation, &str)] = &[
    (
        Notation::Yaml,
        "name: tiny\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 1\n  block: |\nEQUATION\n  attention: {heads: 2}\n  ffn: {hidden: 8}\nhead: lm\n",
    ),
    (
        Notation::Yaml,
        "name: tiny\nvocab: 8\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2}}\ndecoder:\n  layers: 1\n  block: |\nEQUATION\n  attention: {heads: 2}\nhead: translate\n",
    ),
    (
        Notation::Yaml,
        "name: tiny\nvocab: 8\ncontext: 8\nd_model: 8\nparts:\n  own: |\nEQUATION\ndecoder: {layers: 1, attention: {heads: 2}, ffn: own}\nhead: lm\n",
    ),
    (
        Notation::Dsl,
        "model tiny {\n  vocab = 8\n  context = 8\n  d_model = 8\n  decoder x 1 {\n    attention { heads = 2 }\n    block(x) {\nEQUATION\n    }\n  }\n  head = lm\n}\n",
    ),
    (
        Notation::Dsl,
        "model tiny {\n  vocab = 8\n  context = 8\n  d_model = 8\n  part own(x) {\nEQUATION\n  }\n  decoder x 1 {\n    attention { heads = 2 }\n    ffn = own\n  }\n  head = lm\n}\n",
    ),
];

/// Reads a text as the equation of a block and as that of a part, first by itself and then within specs. Mistakes must be
/// reported in the order of the text, each once, and not too many of them.
fn equation(bytes: &[u8]) {
    use trafoc::syntax::equation;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut sources = SourceMap::new();
    let id = sources.add("equation", text);
    let node = Node::plain(text, trafoc::source::Span::new(id, 0, text.len()));
    let both = [equation::parse(&sources, &node).err(), equation::parse_part(&sources, &node).err()];
    for faults in both.into_iter().flatten() {
        shown(&faults, &sources);
        assert!((1..=8).contains(&faults.len()), "{} mistakes: {faults:#?}", faults.len());
        for pair in faults.windows(2) {
            let [a, b] = pair else { continue };
            assert!(a.span().start <= b.span().start, "not in the order of the text: {a:?} {b:?}");
            assert!(a.span() != b.span() || a.message != b.message, "reported twice: {a:?}");
        }
    }
    let indented: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    for (notation, around) in AROUND {
        spec(around.replace("EQUATION", &indented.join("\n")).as_bytes(), *notation);
    }
}

fn recipe(bytes: &[u8]) {
    let (sources, id, mut sink) = source("recipe.yaml", bytes);
    if let Some(id) = id {
        let _ = trafoc::learn::recipe::read(&sources, id, &[], &mut sink);
    }
    shown(&sink.into_sorted(), &sources);
}

fn safetensors(bytes: &[u8]) {
    let Ok(mut file) = trafoc::tensor_file::TensorFile::from_bytes("weights", bytes.to_vec()) else { return };
    let names: Vec<String> = file.entries().keys().cloned().collect();
    for name in names {
        if let Ok(values) = file.floats(&name) {
            let size: usize = file.entries()[&name].shape.iter().product();
            assert_eq!(values.len(), size, "{name}");
        }
    }
}

#[cfg(feature = "learn")]
mod learn {
    use std::ops::ControlFlow;
    use std::path::PathBuf;
    use std::sync::Mutex;

    use trafoc::compile::compile;
    use trafoc::diag::Sink;
    use trafoc::hub::family::{self, Library};
    use trafoc::hub::import;
    use trafoc::hub::shelf::Families;
    use trafoc::learn::data::file::Named;
    use trafoc::learn::data::picture::{Preparation, picture};
    use trafoc::learn::data::read::{self, Faults};
    use trafoc::learn::data::store::{self, CODEBOOK, FORMAT, MANIFEST};
    use trafoc::learn::data::{Form, Inherited, Refused, prepare};
    use trafoc::learn::recipe::{self, Recipe, Split};
    use trafoc::learn::token::{Subword, vocabulary};
    use trafoc::learn::whole::{FileList, LIST};
    use trafoc::source::{SourceMap, Span};
    use trafoc::spec::{ModelSpec, load};
    use trafoc::syntax::Notation;

    use super::{shown, source};

    pub fn config(bytes: &[u8]) {
        let (mut sources, id, mut sink) = source("config.json", bytes);
        if let Some(id) = id {
            let _ = import(&Families::default(), "model", id, &mut sources, &mut sink);
        }
        shown(&sink.into_sorted(), &sources);
    }

    /// A family by its text, and those that come with trafoc.
    struct Own<'a>(&'a str, Families);

    impl Library for Own<'_> {
        fn text(&self, family: &str) -> Option<(String, String)> {
            match family {
                "own" => Some(("own.yaml".to_owned(), self.0.to_owned())),
                other => self.1.text(other),
            }
        }
    }

    pub fn family(bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let mut sources = load::sources();
        let mut sink = Sink::new();
        let _ = family::read("own", &Own(text, Families::default()), &mut sources, &mut sink);
        shown(&sink.into_sorted(), &sources);
    }

    pub fn tokenizer(bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let Ok(read) = Subword::from_json(text) else { return };
        used(&read);
    }

    /// A model of SentencePiece, as every class reads it.
    pub fn sentencepiece(bytes: &[u8]) {
        const MODELS: &[&str] = &["", "t5", "llama", "xlm-roberta", "albert", "gemma", "pegasus"];
        for model in MODELS {
            let files = vocabulary::Files {
                pieces: Some(bytes.to_vec()),
                model: (*model).to_owned(),
                ..vocabulary::Files::default()
            };
            if let Ok(read) = files.tokenizer() {
                used(&read);
            }
        }
    }

    fn used(read: &Subword) {
        for text in ["", "a b c", "the lowest 12 \u{e9}\u{1f980}\n"] {
            let Ok(pieces) = read.pieces(text) else { continue };
            assert!(pieces.iter().all(|p| (p.id as usize) < read.vocab()), "an id beyond the vocabulary");
            let ids: Vec<u32> = pieces.iter().map(|p| p.id).collect();
            let _ = (read.decode(&ids), read.framed(text));
        }
        let _ = read.decode(&[0, 1, 2, u32::MAX]);
    }

    /// A file of the bytes. Its name is that of the process and of the thread, which reads one at a time.
    fn file(bytes: &[u8], end: &str) -> PathBuf {
        let thread = std::thread::current().id();
        let name = format!("trafoc-read-{}-{thread:?}{end}", std::process::id());
        let path = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The first byte says which format the rest is read as.
    pub fn data(bytes: &[u8]) {
        const FORMATS: &[&str] = &[
            "lines",
            "text",
            "pairs",
            "parallel",
            "tagged",
            "squad",
            "{table: {text: 1, label: 2, header: 0}}",
            "{table: {text: text, label: label}}",
            "{table: {separator: tab, source: 1, target: 2, header: 0}}",
            "{table: {separator: json, text: text, label: label}}",
            "{pixels: {}}",
            "idx",
        ];
        let Some((first, rest)) = bytes.split_first() else { return };
        let form = FORMATS[usize::from(*first) % FORMATS.len()];
        let two = matches!(form, "parallel" | "idx");
        let train = if two { "[a, b]" } else { "a" };
        let text = format!("recipe: 1\ndata: {{format: {form}, train: {train}}}\nsteps: 1\n");
        let mut sources = load::sources();
        let id = sources.add("recipe.yaml", text);
        let mut sink = Sink::new();
        let read_recipe = recipe::read(&sources, id, &[], &mut sink);
        let Some(recipe) = read_recipe else { panic!("{form}: {:?}", sink.into_sorted()) };
        let path = file(rest, ".data");
        let named = Named { path: path.clone(), span: Span::new(id, 0, 6) };
        let files = if two { vec![named.clone(), named] } else { vec![named] };
        let form = Some(Form { channels: 1, side: 2 });
        let mut count = 0usize;
        let mut faults = Faults::new(&mut sink);
        let mut visit = |_: read::Raw, _: read::Place<'_>, _: &mut Faults<'_>| {
            count += 1;
            ControlFlow::Continue(())
        };
        let done = read::read(
            &recipe.data.format,
            &files,
            form.map(|form| (form, None)),
            true,
            None,
            &mut faults,
            &mut visit,
        );
        faults.report();
        if let Err(Refused::File { why, .. }) = done {
            assert!(!why.is_empty());
        }
        assert!(count <= 4 * rest.len() + 1_000_000, "more examples than bytes");
        shown(&sink.into_sorted(), &sources);
        std::fs::remove_file(path).unwrap();
    }

    /// Prepared data of a small spec, whose files are replaced one at a time.
    struct Folder {
        path: PathBuf,
        spec: ModelSpec,
        recipe: Recipe,
        sources: SourceMap,
    }

    impl Folder {
        const FILES: [&str; 5] = [MANIFEST, CODEBOOK, LIST, "train.ids.i32", "train.ids.offsets.i64"];

        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("trafoc-prepared-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            let mut sources = load::sources();
            let mut sink = Sink::new();
            let text = "trafo: 1\nname: small\nvocab: 3\ncontext: 8\nd_model: 8\nembed: {position: learned}\n\
                decoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
            let id = sources.add("spec.yaml", text);
            let compiled = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles);
            let spec = compiled.unwrap_or_else(|bug| panic!("{}", bug.0)).spec.expect("a spec");
            let names = path.join("names.txt");
            std::fs::write(&names, "ab\nba\nabba\nbb\n").unwrap();
            let text = format!(
                "recipe: 1\ndata: {{format: lines, train: {:?}, split: {{validation: 0.25}}}}\n\
                tokens: {{characters: {{boundary: '.'}}}}\nsteps: 1\n",
                names
            );
            let id = sources.add("recipe.yaml", text);
            let recipe = recipe::read(&sources, id, &[], &mut sink).expect("a recipe");
            let data = prepare(&recipe, &spec, &Inherited::default(), &sources, &mut sink);
            let data = data.unwrap_or_else(|e| panic!("{e:?} {:?}", sink.into_sorted()));
            let documents = [(CODEBOOK, data.codebook.to_json().unwrap())];
            store::write(&path, &data, &recipe, &spec, &sources, &documents).unwrap();
            std::fs::remove_file(names).unwrap();
            Self { path, spec, recipe, sources }
        }

        /// Replaces a file, writes the list of all files again, as someone would who changes one on purpose,
        /// and reads the folder.
        fn read(&self, name: &str, bytes: &[u8]) {
            let all = || std::fs::read_dir(&self.path).unwrap().map(|e| e.unwrap().file_name());
            let path = self.path.join(name);
            let before = std::fs::read(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let list = self.path.join(LIST);
            let listed = std::fs::read(&list).unwrap();
            if name != LIST {
                let names = all().map(|name| name.to_string_lossy().into_owned());
                let names: Vec<String> = names.filter(|name| name != LIST).collect();
                std::fs::remove_file(&list).unwrap();
                FileList::of(&self.path, FORMAT, names).unwrap().write(&self.path).unwrap();
            }
            let mut sink = Sink::new();
            match store::open(
                &self.path,
                &self.recipe,
                &self.spec,
                &Inherited::default(),
                &self.sources,
                &mut sink,
            ) {
                Ok(data) => {
                    for index in 0..data.train.len() {
                        let _ = data.collate(Split::Train, &[index], 1);
                    }
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
            shown(&sink.into_sorted(), &self.sources);
            std::fs::write(&list, if name == LIST { &before } else { &listed }).unwrap();
            std::fs::write(&path, before).unwrap();
        }
    }

    /// The first byte says as which file of a folder of prepared data the rest is read.
    pub fn prepared(bytes: &[u8]) {
        static FOLDER: Mutex<Option<Folder>> = Mutex::new(None);
        let Some((first, rest)) = bytes.split_first() else { return };
        let mut folder = FOLDER.lock().unwrap();
        let name = Folder::FILES[usize::from(*first) % Folder::FILES.len()];
        folder.get_or_insert_with(Folder::new).read(name, rest);
    }

    pub fn image(bytes: &[u8]) {
        let path = file(bytes, ".image");
        let form = Form { channels: 3, side: 16 };
        if let Ok(values) = picture(&path, form, &Preparation::plain(form, true)) {
            assert_eq!(values.len(), form.size());
        }
        std::fs::remove_file(path).unwrap();
    }
}
