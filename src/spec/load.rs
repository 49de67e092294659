//! Turns texts into a spec: parses them, merges what they extend, applies `--set`, and decodes the result.
//!
//! The caller reads the files, through [`Files`]; nothing here accesses the file system.

use super::ModelSpec;
use super::wiring::{PRELUDE, PRELUDE_NAME};
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::Context;
use crate::field::context::{Other, Trial};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::merge::{merge, settle};
use crate::syntax::set::{self, Setting};
use crate::syntax::tree::{Entry, Kind, Node};
use crate::syntax::{self, Notation};

/// The key that names the spec to extend.
const EXTENDS: &str = "extends";

/// The most specs in a chain in which each extends the next, not counting the first.
pub const MAX_EXTENDS: usize = 16;

/// Reads the files that a spec extends.
pub trait Files {
    /// Adds the file at `path`, which is relative to the file of `from`, to the sources. Returns its id and
    /// its notation.
    ///
    /// # Errors
    /// The file cannot be read, for the reason that the text gives.
    fn open(
        &mut self,
        sources: &mut SourceMap,
        from: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String>;
}

/// Refuses every file, for a spec that does not come from a file itself.
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&mut self, _: &mut SourceMap, _: SourceId, _: &str) -> Result<(SourceId, Notation), String> {
        Err("this spec does not come from a file, so it has no folder in which to look for other files"
            .to_owned())
    }
}

/// A map of sources that contains only the prelude.
pub fn sources() -> SourceMap {
    let mut sources = SourceMap::new();
    sources.add(PRELUDE_NAME, PRELUDE);
    sources
}

/// The merged tree of a spec: the file is merged over what it extends, and then the settings are applied.
/// `None` if a file cannot be read or parsed.
pub fn tree(
    sources: &mut SourceMap,
    id: SourceId,
    notation: Notation,
    settings: &[Setting],
    files: &mut dyn Files,
    sink: &mut Sink,
) -> Option<Node> {
    let mut chain = Vec::new();
    let tree = extended(sources, id, notation, files, sink, &mut chain)?;
    let parts = super::Parts::of(&[&tree]);
    Some(set::apply(tree, settings, &parts, sink))
}

// The keys of both documents, none of which the other one has. A document with keys of both is not taken for
// either.

/// The keys of a recipe.
pub const OF_RECIPES: &[&str] = &[
    "recipe",
    "data",
    "tokens",
    "start",
    "optimizer",
    "schedule",
    "batch",
    "steps",
    "epochs",
    "clip",
    "reduction",
    "label_smoothing",
    "masking",
    "adapt",
    "freeze",
    "checkpoint",
    "average",
    "evaluate",
    "stop",
    "seed",
];
/// The keys of a spec.
pub const OF_SPECS: &[&str] = &[
    "trafo",
    "name",
    "extends",
    "let",
    "parts",
    "vocab",
    "source_vocab",
    "context",
    "d_model",
    "embed",
    "norm",
    "encoder",
    "decoder",
    "head",
    "init",
    "weights",
    "sweep",
];

/// Whether a document is a recipe: it has `recipe` or two other keys of recipes, and no key of specs.
fn is_recipe(tree: &Node) -> bool {
    let count = |keys: &[&str]| keys.iter().filter(|key| tree.get(key).is_some()).count();
    count(OF_SPECS) == 0 && (tree.get("recipe").is_some() || count(OF_RECIPES) >= 2)
}

/// Whether a document is a spec: it has `trafo` or two other keys of specs, and no key of recipes.
pub fn is_spec(tree: &Node) -> bool {
    let count = |keys: &[&str]| keys.iter().filter(|key| tree.get(key).is_some()).count();
    count(OF_RECIPES) == 0 && (tree.get("trafo").is_some() || count(OF_SPECS) >= 2)
}

fn extended(
    sources: &mut SourceMap,
    id: SourceId,
    notation: Notation,
    files: &mut dyn Files,
    sink: &mut Sink,
    chain: &mut Vec<String>,
) -> Option<Node> {
    let tree = syntax::parse(sources, id, notation, sink)?;
    if matches!(tree.kind, Kind::Null) {
        let diagnostic = Diagnostic::error(Code::MissingKey, tree.span, "the text contains no spec");
        sink.push(diagnostic.help("`trafoc new` writes one to begin with"));
        return None;
    }
    if is_recipe(&tree) {
        let message = "this is a recipe, and a spec belongs here";
        let place = tree.entries().and_then(|e| e.first()).map_or(tree.span, |e| e.key_span);
        let diagnostic = Diagnostic::error(Code::WrongDocument, place, message);
        sink.push(diagnostic.help("a recipe says how a spec is trained: `trafoc train SPEC --recipe FILE`"));
        return None;
    }
    chain.push(sources.get(id).map(|s| s.name.clone()).unwrap_or_default());
    // A misspelled `extends` is followed too. Otherwise everything in that file would be reported as missing.
    let fields = super::model::fields();
    let keys: Vec<&str> = fields.iter().map(|f| f.name).collect();
    let slip = |e: &&Entry| {
        is_near(&e.key, EXTENDS)
            && !keys.contains(&e.key.as_str())
            && suggest(&e.key, &keys).as_deref() == Some(EXTENDS)
    };
    let entries = tree.entries().unwrap_or(&[]);
    let base = tree.entry(EXTENDS).or_else(|| entries.iter().find(slip)).cloned();
    // Without a spec below it, `!delete` has nothing to remove, which `settle` reports.
    let Some(base) = base else { return Some(settle(&tree, sink)) };
    // A misspelled `extends` stays in the tree, where decoding reports it.
    let own: Vec<Entry> =
        tree.entries().unwrap_or(&[]).iter().filter(|e| e.key != EXTENDS).cloned().collect();
    let own = Node::map(own, tree.span);
    let below = extends(sources, id, &base, files, sink, chain);
    below.map(|below| merge(&below, &own, &super::Parts::of(&[&below, &own]), sink))
}

fn extends(
    sources: &mut SourceMap,
    id: SourceId,
    base: &Entry,
    files: &mut dyn Files,
    sink: &mut Sink,
    chain: &mut Vec<String>,
) -> Option<Node> {
    let span: Span = base.value.span;
    let Some(path) = base.value.text() else {
        let message = format!("expected the path of a spec, found {}", base.value.describe());
        sink.push(Diagnostic::error(Code::WrongKind, span, message));
        return None;
    };
    // Files of different names may contain each other without end, as through links.
    if chain.len() > MAX_EXTENDS {
        let message = format!("specs extend one another more than {MAX_EXTENDS} deep");
        sink.push(Diagnostic::error(Code::ExtendsCycle, span, message));
        return None;
    }
    match files.open(sources, id, path) {
        Ok((id, notation)) => {
            let name = sources.get(id).map(|s| s.name.clone()).unwrap_or_default();
            if chain.contains(&name) {
                let message = format!("`{path}` is extended by itself");
                sink.push(
                    Diagnostic::error(Code::ExtendsCycle, span, message).help("a spec extends another one"),
                );
                return None;
            }
            extended(sources, id, notation, files, sink, chain)
        }
        Err(why) => {
            sink.push(
                Diagnostic::error(Code::ExtendsMissing, span, format!("cannot extend `{path}`: {why}"))
                    .help("a path is relative to the folder of the file that has it; `@gpt1` is the shipped spec of that name"),
            );
            None
        }
    }
}

/// Decodes a merged tree. `None` if the sink has any error, even an earlier one.
pub fn decode(sources: &SourceMap, tree: &Node, sink: &mut Sink) -> Option<ModelSpec> {
    let decode = |tree: &Node, cx: &mut Context<'_>| drop(ModelSpec::decode(tree, cx));
    let parts = super::Parts::of(&[tree]);
    // Help about a misplaced key is tried on the whole spec before it is given, so that it leads to no new
    // error.
    let trial = Trial { tree, parts: &parts, decode };
    let spec = ModelSpec::decode(tree, &mut Context::new(sources, sink).with_trial(trial).with_other(Other {
        keys: OF_RECIPES,
        help: "it belongs in a recipe, which says how a spec is trained: `trafoc train SPEC --recipe FILE`",
    }));
    // Decoding goes on after errors and may then give a spec that lacks something.
    spec.filter(|_| !sink.has_errors())
}
