//! The specs with which every target is tested: those of `tests/good`, reduced versions of those in `specs`, the
//! models of `tests/hub`, random specs, and those with hostile names.

use std::path::{Path, PathBuf};

use trafoc::compile::compile;
use trafoc::diag::Sink;
use trafoc::hub;
use trafoc::hub::shelf::Families;
use trafoc::ir::{MemberKind, Op, Verified, paths};
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load::{self, Files};
use trafoc::syntax::Notation;
use trafoc::syntax::set::parse_set;

/// Models with more parameters than this are too slow for a test.
const LARGE: u128 = 2_000_000;
/// Models with more blocks than this are too slow for a test.
const DEEP: u64 = 64;

/// A spec with settings laid over it.
pub struct Listed {
    /// Its path, relative to the repository; absolute if it is generated.
    pub spec: String,
    /// The settings, such as `decoder.layers=2`.
    pub settings: Vec<String>,
}

struct Folder(PathBuf);

impl Files for Folder {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let text = std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())?;
        Ok((sources.add(path, text), Notation::from_path(path).unwrap_or(Notation::Yaml)))
    }
}

impl Listed {
    fn of(spec: String) -> Self {
        Self { spec, settings: Vec::new() }
    }

    /// A name for files that no other has.
    pub fn name(&self) -> String {
        let file = || self.spec.rsplit('/').next().unwrap_or_default();
        let short = if Path::new(&self.spec).is_absolute() { file() } else { &self.spec };
        let short = short.trim_end_matches(".yaml").trim_end_matches(".trafo").replace("tests/", "");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        short.chars().map(|c| if plain(c) { c } else { '_' }).collect()
    }

    /// Compiles it; a spec with an error fails the test with its diagnostics.
    pub fn compiled(&self, root: &Path) -> (Verified, SourceMap) {
        let path = root.join(&self.spec);
        let mut folder = Folder(path.parent().expect("specs are in a folder").to_owned());
        let mut sources = load::sources();
        let name = path.file_name().and_then(|n| n.to_str()).expect("a spec has a name");
        let (id, notation) = folder.open(&mut sources, SourceId::default(), name).expect("a spec");
        let settings = self.settings.iter();
        let settings: Vec<_> = settings.map(|s| parse_set(&mut sources, s).expect("a setting")).collect();
        let compiled =
            compile(&mut sources, id, notation, &settings, &mut folder).expect("no fault of trafoc");
        let graph = compiled.graph.unwrap_or_else(|| panic!("{}: {:#?}", self.spec, compiled.diagnostics));
        (graph, sources)
    }
}

/// All of them; those that have no file of their own in the repository are written to `out`. `names` are the files
/// with names that a target needs for something else.
pub fn all(root: &Path, out: &Path, random: u64, names: &[&str]) -> Vec<Listed> {
    let mut specs: Vec<Listed> = Vec::new();
    let small = std::fs::read_to_string(root.join("tests/emitted/small.txt")).expect("small.txt");
    for line in small.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace().map(str::to_owned);
        if let Some(spec) = words.next() {
            specs.push(Listed { spec: format!("specs/{spec}.yaml"), settings: words.collect() });
        }
    }
    for path in files(&root.join("specs"), &[".yaml"]) {
        let spec = format!("specs/{path}");
        let is_known = specs.iter().any(|known| known.spec == spec);
        assert!(is_known, "tests/emitted/small.txt has no line for {spec}");
    }
    specs.extend(
        files(&root.join("tests/good"), &[".yaml", ".trafo"])
            .map(|file| Listed::of(format!("tests/good/{file}"))),
    );
    let mut write = |name: String, text: String| {
        let path = out.join(name);
        std::fs::write(&path, text).expect("a spec can be written");
        specs.push(Listed::of(path.display().to_string()));
    };
    for name in folders(&root.join("tests/hub")) {
        let text = imported(&name, &root.join("tests/hub").join(&name).join("config.json"));
        write(format!("hub_{name}.yaml"), text);
    }
    for n in 0..random {
        write(format!("random_{n:02}.yaml"), crate::random::spec(&tape(n)));
    }
    let read = |file: &&str| std::fs::read_to_string(root.join(file)).expect("a file of names");
    let names: Vec<String> = names.iter().map(read).collect();
    let lines = names.iter().flat_map(|names| names.lines());
    for (n, name) in lines.filter(|line| !line.starts_with('#')).enumerate() {
        write(format!("named_{n:02}.yaml"), named(name));
    }
    specs
}

/// Whether a model is too large or too deep to be run in a test.
pub fn is_large(graph: &Verified) -> bool {
    let elements: u128 = paths::folded(graph).iter().map(|p| p.elements()).sum();
    let nodes = graph.modules.iter().flat_map(|module| &module.nodes);
    let each = nodes.filter_map(|node| if let Op::Scan { each, .. } = &node.op { Some(*each) } else { None });
    let members = graph.modules.iter().flat_map(|module| &module.members);
    let runs = members.filter_map(|m| if let MemberKind::Stack(runs) = &m.kind { Some(runs) } else { None });
    let deepest = runs.flatten().map(|run| run.count).chain(each).max();
    elements > LARGE || deepest > Some(DEEP)
}

/// A spec of that name, in which all has it that may.
fn named(name: &str) -> String {
    let is_word = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    // Keys of a block, which name nothing else in it.
    let is_key = matches!(name, "attention" | "block");
    let word = if is_word && !is_key { name } else { "other" };
    // Words that mean something in every equation, so that no part may be called by them.
    let is_taken = matches!(word, "param" | "linear" | "embedding" | "none" | "layers" | "blocks");
    let own = if is_taken || word.starts_with('_') { "other" } else { word };
    format!(
        "trafo: 1\nname: {name:?}\nvocab: 16\ncontext: 8\nd_model: 8\nlet: {{{own}: 12}}\n\
         parts: {{{own}: 'linear[{own}](x, d_model)'}}\ndecoder:\n  layers: 3\n  \
         attention: {{heads: 2}}\n  ffn: {{hidden: {own}}}\n  pattern: [{word}, plain]\n  blocks:\n    \
         {word}:\n      block: |\n        ({word}_x):\n        {word} = norm[{word}]({word}_x)\n        \
         {word}_x + attention[own_{word}]({word}) + ffn[{word}_ffn]({word})\n    \
         plain: {{block: 'x = x + {own}(norm(x))'}}\nhead: lm\n"
    )
}

/// The numbers that determine a random spec (Knuth's linear congruential generator, MMIX).
fn tape(seed: u64) -> Vec<u16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 48) as u16
    };
    (0..160).map(|_| next()).collect()
}

fn files(folder: &Path, endings: &[&str]) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).expect("a folder of specs");
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| endings.iter().any(|ending| name.ends_with(ending)));
    names.sort();
    names.into_iter()
}

fn folders(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).expect("a folder of models").flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names.into_iter()
}

/// The spec of a Hugging Face config.
fn imported(name: &str, config: &Path) -> String {
    let mut sources = load::sources();
    let mut sink = Sink::new();
    let text = std::fs::read_to_string(config).expect("every model has a config");
    let id = sources.add(config.display().to_string(), text);
    let found = hub::import(&Families::default(), name, id, &mut sources, &mut sink);
    found.unwrap_or_else(|| panic!("{name}: {:#?}", sink.into_sorted())).text
}
