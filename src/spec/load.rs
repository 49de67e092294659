//! Turns texts into a spec: parses them, merges what they extend, applies `--set`, and decodes the result.
//!
//! The caller reads the files, through [`Files`]; nothing here accesses the file system.

use super::ModelSpec;
use super::elsewhere::elsewhere;
pub use super::library::sources;
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic, Fix, Sink};
use crate::field::context::Trial;
use crate::field::definition::unread_file;
use crate::field::elsewhere::Other;
use crate::field::{Context, unread};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::merge::{merge, settle};
use crate::syntax::set::{self, Setting};
use crate::syntax::tree::{Entry, Kind, Node};
use crate::syntax::{self, Notation};

/// The key that names the spec to extend.
const EXTENDS: &str = "extends";

/// The key that defines parts.
const PARTS: &str = "parts";

/// The key that names the files whose parts the spec may call.
const USES: &str = "uses";

/// The most specs in a chain in which each extends the next, not counting the first.
pub const MAX_EXTENDS: usize = 16;

/// The most files that one spec uses, not counting those of the specs that it extends.
pub const MAX_USES: usize = 16;

/// Reads the files that a spec extends or uses.
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
    "recompute",
    "masking",
    "adapt",
    "freeze",
    "checkpoint",
    "average",
    "evaluate",
    "stop",
    "seed",
];
/// The words below them that no spec has.
pub const BELOW_RECIPES: &[&str] = &[
    "accumulate",
    "adam",
    "adamw",
    "adjust",
    "betas",
    "boundary",
    "bpe",
    "bucket",
    "bytes",
    "characters",
    "cosine",
    "dampening",
    "decay",
    "every",
    "except",
    "file",
    "floor",
    "format",
    "from",
    "header",
    "hide",
    "idx",
    "images",
    "inverse_sqrt",
    "iterations",
    "label",
    "language",
    "learning_rate",
    "lines",
    "longest",
    "lora",
    "lower",
    "merges",
    "metric",
    "metrics",
    "min_frequency",
    "momentum",
    "muon",
    "nesterov",
    "noam",
    "on",
    "order",
    "others",
    "pairs",
    "parallel",
    "path",
    "patience",
    "pixels",
    "rank",
    "rates",
    "replace",
    "resize",
    "second",
    "separator",
    "sgd",
    "source",
    "split",
    "squad",
    "table",
    "tagged",
    "target",
    "test",
    "text",
    "too_long",
    "train",
    "validation",
    "warmup",
    "weight_decay",
    "white",
    "wordpiece",
    "words",
];
/// The keys of a spec.
pub const OF_SPECS: &[&str] = &[
    "trafo",
    "name",
    "extends",
    "let",
    "parts",
    "uses",
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

/// The error for a recipe in the place of a spec.
pub fn recipe_for_spec(tree: &Node) -> Option<Diagnostic> {
    let message = "this is a recipe, and a spec belongs here";
    let place = tree.entries().and_then(|e| e.first()).map_or(tree.span, |e| e.key_span);
    let help = "a recipe says how a spec is trained: `trafoc train SPEC --recipe FILE`";
    is_recipe(tree).then(|| Diagnostic::error(Code::WrongDocument, place, message).help(help))
}

/// Whether a document is a spec: it has `trafo` or two other keys of specs, and no key of recipes.
pub fn is_spec(tree: &Node) -> bool {
    let count = |keys: &[&str]| keys.iter().filter(|key| tree.get(key).is_some()).count();
    count(OF_RECIPES) == 0 && (tree.get("trafo").is_some() || count(OF_SPECS) >= 2)
}

/// The key by which a document is recognised as the config of a Hugging Face model, if it has no key of specs.
fn config_key(tree: &Node) -> Option<&Entry> {
    let is_spec = OF_SPECS.iter().any(|key| tree.get(key).is_some());
    ["model_type", "architectures"].iter().find_map(|key| tree.entry(key)).filter(|_| !is_spec)
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
    if let Some(wrong) = recipe_for_spec(&tree) {
        sink.push(wrong);
        return None;
    }
    if let Some(entry) = config_key(&tree) {
        let message = "this is the config of a Hugging Face model, and a spec belongs here";
        let diagnostic = Diagnostic::error(Code::WrongDocument, entry.key_span, message);
        sink.push(
            diagnostic
                .help("`trafoc import DIR` makes a spec of the folder with this file as its `config.json`"),
        );
        return None;
    }
    if let Some(only) = tree.entries().and_then(|e| if let [only] = e { Some(only) } else { None })
        && only.key == PARTS
    {
        let message = "this file has only parts, and a spec belongs here";
        let diagnostic = Diagnostic::error(Code::WrongDocument, only.key_span, message);
        sink.push(diagnostic.help("a spec uses the parts of a file: `uses: [FILE]`"));
        return None;
    }
    chain.push(sources.get(id).map(|s| s.name.clone()).unwrap_or_default());
    let tree = with_used(sources, id, tree, files, sink);
    // A misspelled `extends` is followed too. Otherwise everything in that file would be reported as missing.
    let entries = tree.entries().unwrap_or(&[]);
    let slip = || entries.iter().find(|e| is_slip(&e.key, EXTENDS));
    let base = tree.entry(EXTENDS).or_else(slip).cloned();
    // Without a spec below it, `!delete` has nothing to remove, which `settle` reports.
    let Some(base) = base else { return Some(settle(&tree, sink)) };
    // A misspelled `extends` stays in the tree, where decoding reports it.
    let own: Vec<Entry> =
        tree.entries().unwrap_or(&[]).iter().filter(|e| e.key != EXTENDS).cloned().collect();
    let own = Node::map(own, tree.span);
    // Without the spec below it, the spec keeps `extends`, by which decoding knows that it is not whole.
    let Some(below) = extends(sources, id, &base, files, sink, chain) else {
        return Some(settle(&tree, &mut Sink::new()));
    };
    // What a file defines that this spec uses takes the place of what the spec below it defines.
    let below = match own.get(USES) {
        Some(used) => without_parts(below, used),
        None => below,
    };
    Some(merge(&below, &own, &super::Parts::of(&[&below, &own]), sink))
}

/// Whether a key of a spec is none, and was meant for this one.
fn is_slip(key: &str, meant: &str) -> bool {
    let is_meant = || {
        let fields = super::model::fields();
        let keys: Vec<&str> = fields.iter().map(|f| f.name).collect();
        !keys.contains(&key) && suggest(key, &keys).as_deref() == Some(meant)
    };
    is_near(key, meant) && is_meant()
}

/// The tree without the definitions of parts that have the names of a map's keys.
fn without_parts(tree: Node, names: &Node) -> Node {
    let Kind::Map(mut entries) = tree.kind else { return tree };
    if let Some(Kind::Map(parts)) = entries.iter_mut().find(|e| e.key == PARTS).map(|e| &mut e.value.kind) {
        parts.retain(|part| names.get(&part.key).is_none());
    }
    Node::map(entries, tree.span)
}

/// The tree with the parts of the files under `uses` in the place of the files' names: a map from names to the
/// texts of parts. A file that cannot be used is among them; see [`unread_file`].
fn with_used(
    sources: &mut SourceMap,
    id: SourceId,
    mut tree: Node,
    files: &mut dyn Files,
    sink: &mut Sink,
) -> Node {
    let Kind::Map(entries) = &mut tree.kind else { return tree };
    // Under a misspelled `uses` the files are read too. Otherwise every call of what they define would be an error.
    if entries.iter().all(|e| e.key != USES)
        && let Some(slip) = entries.iter_mut().find(|e| is_slip(&e.key, USES))
    {
        let message = format!("the spec has no key `{}`", slip.key);
        sink.push(Diagnostic::error(Code::UnknownKey, slip.key_span, message).meant(&slip.key, USES));
        slip.key = USES.to_owned();
    }
    let Some(uses) = entries.iter_mut().find(|e| e.key == USES) else { return tree };
    let span = uses.value.span;
    let paths: Vec<Node> = match &uses.value.kind {
        // What an extended spec uses is removed with it.
        Kind::Delete => return tree,
        Kind::List(items) => items.clone(),
        Kind::Scalar(_) | Kind::Null | Kind::Map(_) => vec![uses.value.clone()],
    };
    let mut found: Vec<Entry> = Vec::new();
    if let Some(beyond) = paths.get(MAX_USES) {
        let message = format!("a spec uses at most {MAX_USES} files");
        sink.push(Diagnostic::error(Code::TooLarge, beyond.span, message).help("put parts into one file"));
        found.push(unread_file(beyond));
    }
    for path in paths.iter().take(MAX_USES) {
        let Some(parts) = used(sources, id, path, files, sink) else {
            found.push(unread_file(path));
            continue;
        };
        for part in parts {
            match found.iter().find(|known| known.key == part.key) {
                None => found.push(part),
                Some(first) => {
                    let message = format!("two of the files define the part `{}`", part.key);
                    let diagnostic = Diagnostic::error(Code::DuplicateKey, path.span, message);
                    let diagnostic = diagnostic.label(first.key_span, "first here");
                    let diagnostic = diagnostic.label(part.key_span, "and here");
                    sink.push(diagnostic.help("use one of the two, or give one of the parts another name"));
                }
            }
        }
    }
    uses.value = Node::map(found, span);
    tree
}

/// The parts of one file.
fn used(
    sources: &mut SourceMap,
    id: SourceId,
    path: &Node,
    files: &mut dyn Files,
    sink: &mut Sink,
) -> Option<Vec<Entry>> {
    let Some(text) = path.text() else {
        let message = format!("expected the path of a file with parts, found {}", path.describe());
        sink.push(Diagnostic::error(Code::WrongKind, path.span, message).help("write `uses: [parts.trafo]`"));
        return None;
    };
    let (id, notation) = match files.open(sources, id, text) {
        Ok(opened) => opened,
        Err(why) => {
            let message = format!("cannot use `{text}`: {why}");
            let diagnostic = Diagnostic::error(Code::ExtendsMissing, path.span, message);
            sink.push(diagnostic.help("a path is relative to the folder of the file that has it"));
            return None;
        }
    };
    let tree = syntax::parse(sources, id, notation, sink)?;
    let other = tree.entries().and_then(|entries| entries.iter().find(|e| e.key != PARTS));
    let parts = tree.get(PARTS).and_then(Node::entries).filter(|_| other.is_none());
    if parts.is_none() {
        let place = other.map_or(tree.span, |e| e.key_span);
        let message = format!("`{text}` is used for its parts, but a file of parts has nothing else");
        let diagnostic = Diagnostic::error(Code::WrongDocument, place, message);
        let diagnostic = diagnostic.label(path.span, "used here");
        sink.push(diagnostic.help("write `parts: {NAME: EQUATION}`, or `part NAME(x) { ... }` in the DSL"));
    }
    parts.map(<[Entry]>::to_vec)
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

/// Whether what is wrong in a spec is wrong over any spec that it may extend: a slip, or a value that no key of its kind has.
/// Keys and names may be missing because the spec below it has them.
fn is_wrong_by_itself(found: &Diagnostic) -> bool {
    let is_word = matches!(found.code, Code::UnknownKey | Code::UnknownPart | Code::UnknownWord);
    let is_slip = is_word && matches!(found.fix.as_deref(), Some(Fix::Rename { .. }));
    // With another place it is about two values, of which one may be given below.
    let is_alone = found.labels.len() == 1;
    is_slip || is_alone && matches!(found.code, Code::OutOfRange | Code::WrongKind)
}

/// Decodes a merged tree. `None` if the sink has any error, even an earlier one.
pub fn decode(sources: &SourceMap, tree: &Node, sink: &mut Sink) -> Option<ModelSpec> {
    decode_as_far(sources, tree, sink).filter(|_| !sink.has_errors())
}

/// Decodes a merged tree. A spec with errors, which are in the sink, may be there all the same, and then lacks something.
pub fn decode_as_far(sources: &SourceMap, tree: &Node, sink: &mut Sink) -> Option<ModelSpec> {
    let decode = |tree: &Node, sink: &mut Sink| {
        let again = |tree: &Node, cx: &mut Context<'_>| drop(ModelSpec::decode(tree, cx));
        let parts = super::Parts::of(&[tree]);
        // Help about a misplaced key is tried on the whole spec before it is given, so that it leads to no new
        // error.
        let trial = Trial { tree, parts: &parts, decode: &again };
        let mut cx = Context::new(sources, sink).with_trial(trial).with_words(elsewhere).with_other(Other {
            keys: OF_RECIPES,
            has_below: |key| BELOW_RECIPES.contains(&key),
            help: "it belongs in a recipe, which says how a spec is trained: `trafoc train SPEC --recipe FILE`",
        });
        let spec = ModelSpec::decode(tree, &mut cx);
        (spec, cx.into_unread())
    };
    if tree.get(EXTENDS).is_some() && sink.has_errors() {
        let mut found = Sink::new();
        drop(decode(tree, &mut found));
        let is_base = |d: &Diagnostic| tree.get(EXTENDS).is_some_and(|base| base.span == d.span());
        let own = found.into_sorted().into_iter().filter(|d| is_wrong_by_itself(d) && !is_base(d));
        own.for_each(|d| sink.push(d));
        return None;
    }
    let (spec, unread) = decode(tree, sink);
    unread::behind(tree, &unread, sink, &|tree, sink| drop(decode(tree, sink)));
    spec
}

/// The same for a variant of a decoded tree, of which only two things count: whether it means the same, and where it has
/// a fault. Takes a fraction of the time, because nothing is suggested, and because shapes are not checked: where the
/// spec is the same, these are right.
pub fn again(sources: &SourceMap, tree: &Node, sink: &mut Sink) -> Option<ModelSpec> {
    let spec = ModelSpec::decode(tree, &mut Context::new(sources, sink).again());
    spec.filter(|_| !sink.has_errors())
}
