//! A family of models, read from its file: which models belong to it, what the keys of their `config.json`
//! mean, the spec they become, and the names of their tensors.
//!
//! Family files are data ([`super::shelf`]); `families/README.md` describes them. They are checked as
//! strictly as specs: an unknown key, a formula with an undeclared key, and a pattern that cannot be
//! matched are diagnostics with a place.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use crate::diag::{Code, Diagnostic, Sink};
use crate::field::Context;
use crate::field::mend::mended;
use crate::field::value::{DefaultDoc, Field, Shape};
use crate::field::words::listed;
use crate::names::formula::Formula;
use crate::names::json;
use crate::names::{self, Names, formula_in};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node};
use crate::syntax::{Notation, parse};

/// A family of models, whose configs have the same keys.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name of the family and of its file.
    pub name: String,
    /// The `model_type`s that it reads; exports write the first one.
    pub models: Vec<String>,
    /// Keys of a config that describe the model.
    pub keys: IndexMap<String, Key>,
    /// Keys that concern only running, saving or generating.
    pub running: Vec<String>,
    /// Tables that translate Hugging Face's words into trafoc's.
    pub tables: IndexMap<String, Map<String, Json>>,
    /// The spec, with formulas where it depends on the config.
    pub spec: Node,
    /// The head for each class of model.
    pub architectures: IndexMap<String, String>,
    /// What each head adds to the spec and to the names.
    pub heads: IndexMap<String, Head>,
    /// The prefix of the body's tensor names in files that also contain a head.
    pub prefix: String,
    /// The names of the body's tensors.
    pub names: Names,
    /// Suffixes of names, each with the suffix that older files use instead.
    pub older: Vec<(String, String)>,
    /// The image processor of models that have no file that names one.
    pub processor: Option<String>,
}

/// What a family declares about one key of its configs.
#[derive(Clone, Debug)]
pub struct Key {
    /// The value if a config does not have the key.
    pub default: Default,
    /// Other names of the key, which older or newer versions of the library write.
    pub also: Vec<String>,
    /// The only values that the family supports.
    pub only: Option<Vec<Json>>,
    /// What an export writes if the spec does not determine it.
    pub write: Option<Formula>,
    /// Whether Hugging Face's library needs a float, `4.0` and not `4`; true if the default is one.
    pub real: bool,
    /// Whether Hugging Face's library refuses `null`, so that an export never writes it.
    pub needed: bool,
    /// The place in the family file.
    pub span: Span,
}

/// The value of a key that a config does not have.
#[derive(Clone, Debug)]
pub enum Default {
    /// A constant; `null` means no value.
    Value(Json),
    /// A formula over other keys.
    Formula(Formula),
}

/// The head of a class of models.
#[derive(Clone, Debug)]
pub struct Head {
    /// The tree that is merged into the family's spec.
    pub spec: Node,
    /// The head's tensors, with full names.
    pub names: Names,
    /// Whether the body's tensors are saved without the prefix.
    pub bare: bool,
    /// The values that keys must have with this head, with the place in the family file.
    pub only: Vec<(String, Formula, Span)>,
    /// How Hugging Face's library derives a target from the source if none is given.
    pub target: Option<TargetRule>,
}

/// How a family describes [`super::target::Target`].
#[derive(Clone, Debug)]
pub struct TargetRule {
    /// The key of the first token and its usual value; `None` if it is the source's last token.
    pub begins: Option<(String, i64)>,
    /// The key and the usual value of the token at whose position the result is read.
    pub ends: (String, i64),
}

/// The name of the file that all families share.
pub const SHARED: &str = "shared";

/// Finds the text of a family file by its name.
pub trait Library {
    /// The name of the file, for messages, and its text.
    fn text(&self, family: &str) -> Option<(String, String)>;
}

/// Reads a family. Returns `None` after reporting the errors.
pub fn read(name: &str, library: &dyn Library, sources: &mut SourceMap, sink: &mut Sink) -> Option<Family> {
    let tree = extended(name, library, sources, sink, 0)?;
    let (_, shared) = open(SHARED, library, sources, sink)?;
    let mut cx = Context::new(sources, sink);
    let family = Reading { shared: &shared, cx: &mut cx, fragments: 0 }.family(name, &tree);
    family.filter(|_| !sink.has_errors())
}

fn open(
    name: &str,
    library: &dyn Library,
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> Option<(SourceId, Node)> {
    let (file, text) = library.text(name)?;
    // An export reads every family; without this the shared file would be added to the sources for each.
    let known = sources.iter().find(|(_, s)| s.name == file).map(|(id, _)| id);
    let id = known.unwrap_or_else(|| sources.add(file, text));
    parse(sources, id, Notation::Yaml, sink).map(|tree| (id, tree))
}

/// The tree of a family, merged with the families that it extends.
fn extended(
    name: &str,
    library: &dyn Library,
    sources: &mut SourceMap,
    sink: &mut Sink,
    depth: usize,
) -> Option<Node> {
    let (_, tree) = open(name, library, sources, sink)?;
    let Some(base) = tree.entry("extends") else { return Some(tree) };
    // The bound ends circles of families that extend each other.
    let other = base.value.text().filter(|_| depth < 4);
    let below = other.and_then(|other| extended(other, library, sources, sink, depth.saturating_add(1)));
    let Some(below) = below else {
        let message = format!("there is no family {} that could be extended", base.value.describe());
        sink.push(Diagnostic::error(Code::ExtendsMissing, base.value.span, message));
        return None;
    };
    // Each family file names its own models and classes; these are not inherited.
    let named = ["models", "architectures", "extends"];
    let kept = below.entries().unwrap_or(&[]).iter().filter(|e| !named.contains(&e.key.as_str()));
    let below = Node::map(kept.cloned().collect(), below.span);
    let own = tree.entries().unwrap_or(&[]).iter().filter(|e| e.key != "extends").cloned().collect();
    Some(merge(&below, &Node::map(own, tree.span), &crate::spec::Parts::default(), sink))
}

fn field(name: &'static str, shape: fn() -> Shape) -> Field {
    Field::new(name, "", shape, DefaultDoc::Absent)
}

fn any() -> Shape {
    Shape::Any
}

struct Reading<'a, 'b> {
    shared: &'a Node,
    cx: &'a mut Context<'b>,
    /// The number of fragments that have been put into specs so far.
    fragments: usize,
}

/// The most fragments that a family may use. The bound ends circles of fragments that use each other.
const MAX_FRAGMENTS: usize = 200;

impl Reading<'_, '_> {
    fn family(&mut self, name: &str, node: &Node) -> Option<Family> {
        let known = [
            "models",
            "config",
            "running",
            "tables",
            "spec",
            "architectures",
            "heads",
            "prefix",
            "weights",
            "ties",
            "constants",
            "ignore",
            "processor",
        ];
        let fields = known.map(|name| field(name, any));
        let node = &*mended(node, "family", &fields, &[], self.cx);
        let shared = self.shared;
        let mut tables = self.tables(shared.get("tables"));
        tables.extend(self.tables(node.get("tables")));
        let mut keys = IndexMap::new();
        let mut spec = node.get("spec").cloned().unwrap_or_else(|| Node::map(Vec::new(), node.span));
        let mut heads = IndexMap::new();
        let mut trees: Vec<(String, Head)> = Vec::new();
        for e in node.get("heads").and_then(Node::entries).unwrap_or(&[]) {
            let known = ["spec", "weights", "ties", "constants", "ignore", "bare", "only", "target"];
            let known = known.map(|name| field(name, any));
            let head = &*mended(&e.value, "head", &known, &[], self.cx);
            let names = names::read(head, self.cx);
            let spec = head.get("spec").cloned().unwrap_or_else(|| Node::map(Vec::new(), e.value.span));
            let bare = head.get("bare").and_then(Node::text) == Some("true");
            let mut only = Vec::new();
            for e in head.get("only").and_then(Node::entries).unwrap_or(&[]) {
                only.extend(self.formula(&e.value).map(|formula| (e.key.clone(), formula, e.key_span)));
            }
            let target = head.get("target").and_then(|node| self.target(node));
            trees.push((e.key.clone(), Head { spec, names, bare, only, target }));
        }
        for (_, head) in &mut trees {
            self.with_shared(head);
            head.spec = self.with_fragments(&head.spec, &mut keys);
        }
        spec = self.with_fragments(&spec, &mut keys);
        // The family's own keys come last, so that they replace those of fragments with the same name.
        keys.extend(self.keys(node.get("config")));
        heads.extend(trees);
        let models = self.words(node.get("models"));
        let mut running = self.words(shared.get("running"));
        running.extend(self.words(node.get("running")));
        let mut architectures = IndexMap::new();
        for e in node.get("architectures").and_then(Node::entries).unwrap_or(&[]) {
            let head = e.value.text().unwrap_or_default();
            if !heads.contains_key(head) {
                let known: Vec<&str> = heads.keys().map(String::as_str).collect();
                let message = format!("the family has no head `{head}`");
                let diagnostic = Diagnostic::error(Code::UnknownName, e.value.span, message);
                self.cx.report(diagnostic.help(format!("it has {}", listed(&known))));
            }
            // Also after the error, so that a config of this class is not reported as unknown too.
            architectures.insert(e.key.clone(), head.to_owned());
        }
        for (key, what) in [("models", models.is_empty()), ("architectures", architectures.is_empty())] {
            if what {
                let message = format!("the family needs `{key}`");
                self.cx.report(Diagnostic::error(Code::MissingKey, node.span, message));
            }
        }
        let names = names::read(node, self.cx);
        let prefix = node.get("prefix").and_then(Node::text).unwrap_or_default().to_owned();
        let processor = node.get("processor").and_then(Node::text).map(str::to_owned);
        let name = name.to_owned();
        let older = shared.get("older").and_then(Node::entries).unwrap_or(&[]).iter();
        let older = older.filter_map(|e| Some((e.key.clone(), e.value.text()?.to_owned()))).collect();
        let family = Family {
            name,
            models,
            keys,
            running,
            tables,
            spec,
            architectures,
            heads,
            prefix,
            names,
            older,
            processor,
        };
        self.check_names(&family);
        Some(family)
    }

    /// `{begins: {key: usual}, ends: {key: usual}}`, or `begins: last`.
    fn target(&mut self, node: &Node) -> Option<TargetRule> {
        let node = &*mended(node, "target", &["begins", "ends"].map(|name| field(name, any)), &[], self.cx);
        let token = |node: &Node| {
            let e = node.entries()?.first()?;
            Some((e.key.clone(), json::of(&e.value).as_i64()?))
        };
        Some(TargetRule {
            // `last` is no map, so it gives `None`.
            begins: node.get("begins").and_then(token),
            ends: node.get("ends").and_then(token)?,
        })
    }

    /// Checks that every formula uses only keys and tables that exist.
    fn check_names(&mut self, family: &Family) {
        // When the file is read, and not when a config first needs the formula, which may be a rare one.
        let mut used: Vec<(Formula, Span)> = Vec::new();
        for key in family.keys.values() {
            if let Default::Formula(formula) = &key.default {
                used.push((formula.clone(), key.span));
            }
            used.extend(key.write.iter().map(|f| (f.clone(), key.span)));
        }
        let mut trees = vec![&family.spec];
        trees.extend(family.heads.values().map(|h| &h.spec));
        for tree in trees {
            collect(tree, &mut used, self.cx);
        }
        let heads = family.heads.values().map(|h| &h.names);
        for row in std::iter::once(&family.names).chain(heads).flat_map(|n| n.rows.iter().chain(&n.ties)) {
            if row.join.is_some() && !row.flat {
                let message = "joined tensors can be written again only if each is a row (`flat: true`)";
                self.cx.report(Diagnostic::error(Code::UnusedKey, row.span, message));
            }
            used.extend(row.groups.iter().chain(&row.when).map(|f| (f.clone(), row.span)));
        }
        for (key, formula, span) in family.heads.values().flat_map(|head| &head.only) {
            used.extend([(Formula::Key(key.clone()), *span), (formula.clone(), *span)]);
        }
        for (formula, span) in used {
            formula.visit(&mut |f| {
                let (kind, name, is_known) = match f {
                    Formula::Key(name) => {
                        let known = family.keys.contains_key(name) || family.tables.contains_key(name);
                        ("key", name, known)
                    }
                    Formula::Entry(name, _) => ("table or function", name, family.tables.contains_key(name)),
                    // Only these two refer to something outside of the formula; `visit` gets to their
                    // operands itself.
                    _ => return,
                };
                if !is_known {
                    let message = format!("the family declares no {kind} `{name}`");
                    self.cx.report(Diagnostic::error(Code::UnknownName, span, message));
                }
            });
        }
    }

    fn tables(&mut self, node: Option<&Node>) -> IndexMap<String, Map<String, Json>> {
        let entries = node.and_then(Node::entries).unwrap_or(&[]);
        let table = |node: &Node| match json::of(node) {
            Json::Object(map) => map,
            _ => Map::new(),
        };
        entries.iter().map(|e| (e.key.clone(), table(&e.value))).collect()
    }

    fn words(&mut self, node: Option<&Node>) -> Vec<String> {
        let Some(node) = node else { return Vec::new() };
        match &node.kind {
            Kind::List(items) => items.iter().filter_map(|i| i.text().map(str::to_owned)).collect(),
            Kind::Scalar(s) => vec![s.text.clone()],
            Kind::Null | Kind::Map(_) | Kind::Delete => {
                crate::field::value::wrong_kind(node, "a list of words", self.cx);
                Vec::new()
            }
        }
    }

    /// Replaces `use: name` in a spec with a fragment of the shared file, and adds the keys that the
    /// fragment needs.
    fn with_fragments(&mut self, node: &Node, keys: &mut IndexMap<String, Key>) -> Node {
        match &node.kind {
            Kind::Map(entries) => {
                if let Some(used) = node.entry("use") {
                    let name = used.value.text().unwrap_or_default();
                    let Some(fragment) = self.shared.get("fragments").and_then(|f| f.get(name)).cloned()
                    else {
                        let message = format!("there is no fragment `{name}`");
                        self.cx.report(Diagnostic::error(Code::UnknownName, used.value.span, message));
                        return node.clone();
                    };
                    self.fragments = self.fragments.saturating_add(1);
                    if self.fragments > MAX_FRAGMENTS {
                        let message =
                            format!("more than {MAX_FRAGMENTS} fragments are used, perhaps in a cycle");
                        self.cx.report(Diagnostic::error(Code::OutOfRange, used.value.span, message));
                        return node.clone();
                    }
                    keys.extend(self.keys(fragment.get("config")));
                    // Other entries of the same map are merged into the fragment.
                    let rest = entries.iter().filter(|e| e.key != "use").cloned().collect();
                    let empty = Node::map(Vec::new(), node.span);
                    let spec = fragment.get("spec").unwrap_or(&empty);
                    let whole = merge(
                        spec,
                        &Node::map(rest, node.span),
                        &crate::spec::Parts::default(),
                        self.cx.sink(),
                    );
                    return self.with_fragments(&whole, keys);
                }
                let mut entries = entries.clone();
                for e in &mut entries {
                    e.value = self.with_fragments(&e.value, keys);
                }
                Node::map(entries, node.span)
            }
            Kind::List(items) => {
                let items = items.iter().map(|i| self.with_fragments(i, keys)).collect();
                Node { kind: Kind::List(items), span: node.span }
            }
            Kind::Null | Kind::Scalar(_) | Kind::Delete => node.clone(),
        }
    }

    /// Puts `use: classify` into a head `classify` if there is a fragment of this name: what all families share of
    /// the head.
    fn with_shared(&self, head: &mut Head) {
        let fragments = self.shared.get("fragments");
        let Kind::Map(spec) = &mut head.spec.kind else { return };
        let Some(Kind::Map(parts)) = spec.iter_mut().find(|e| e.key == "head").map(|e| &mut e.value.kind)
        else {
            return;
        };
        for part in parts.iter_mut().filter(|e| fragments.is_some_and(|all| all.get(&e.key).is_some())) {
            if let Kind::Map(fields) = &mut part.value.kind {
                let value = Node::plain(&part.key, part.key_span);
                fields.push(Entry { key: "use".to_owned(), key_span: part.key_span, value });
            }
        }
    }

    fn keys(&mut self, node: Option<&Node>) -> IndexMap<String, Key> {
        let entries = node.and_then(Node::entries).unwrap_or(&[]);
        entries.iter().map(|e| (e.key.clone(), self.key(&e.value))).collect()
    }

    fn key(&mut self, node: &Node) -> Key {
        let default = |reading: &mut Self, node: &Node| match reading.formula(node) {
            Some(formula) => Default::Formula(formula),
            None => Default::Value(json::of(node)),
        };
        let plain = |default: Default| Key {
            real: matches!(&default, Default::Value(Json::Number(n)) if n.is_f64()),
            default,
            also: Vec::new(),
            only: None,
            write: None,
            needed: false,
            span: node.span,
        };
        // A value alone is the default, the usual case: `hidden_size: 768`.
        let Kind::Map(_) = &node.kind else { return plain(default(self, node)) };
        let fields = ["default", "also", "only", "write", "real", "needed"].map(|name| field(name, any));
        let node = &*mended(node, "config key", &fields, &[], self.cx);
        let null = Node { kind: Kind::Null, span: node.span };
        let mut key = plain(default(self, node.get("default").unwrap_or(&null)));
        key.also = self.words(node.get("also"));
        key.only = node.get("only").map(json::of).map(|only| match only {
            Json::Array(all) => all,
            // A single value needs no list around it.
            one => vec![one],
        });
        // Also where the default is `null` or a formula, which has no type to go by.
        key.real |= node.get("real").and_then(Node::text) == Some("true");
        key.needed = node.get("needed").and_then(Node::text) == Some("true");
        key.write = node.get("write").and_then(|w| self.formula(w));
        key
    }

    /// The formula of a scalar that begins with `=`; its errors are reported.
    fn formula(&mut self, node: &Node) -> Option<Formula> {
        match formula_in(self.cx.sources(), node)? {
            Ok(formula) => Some(formula),
            Err(diagnostic) => {
                self.cx.report(*diagnostic);
                // A value in its place, so that the mistake causes no further errors.
                Some(Formula::Literal(Json::Null))
            }
        }
    }
}

/// Collects every formula in a spec's tree.
fn collect(node: &Node, out: &mut Vec<(Formula, Span)>, cx: &mut Context<'_>) {
    match (formula_in(cx.sources(), node), &node.kind) {
        (Some(Ok(formula)), _) => out.push((formula, node.span)),
        (Some(Err(diagnostic)), _) => cx.report(*diagnostic),
        (None, Kind::Map(entries)) => entries.iter().for_each(|e| collect(&e.value, out, cx)),
        (None, Kind::List(items)) => items.iter().for_each(|i| collect(i, out, cx)),
        (None, Kind::Null | Kind::Scalar(_) | Kind::Delete) => {}
    }
}
