//! Reads a `config.json` with its family: every key has a value, or concerns only how a model is run, or is
//! an error with its place.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::family::{Default, Family};
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::words::listed;
use crate::names::formula::{Scope, eval, same};
use crate::names::json;
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// The values of a family's keys in one config.
#[derive(Clone, Debug)]
pub struct Config<'f> {
    /// The family the model belongs to.
    pub family: &'f Family,
    /// The library's class of the model, such as `LlamaForCausalLM`.
    pub architecture: String,
    /// The head of that class.
    pub head: String,
    /// A value for every key; it may be `null`.
    pub values: IndexMap<String, Json>,
    /// The places of the keys that are given.
    pub places: IndexMap<String, Span>,
    /// Keys that were ignored because they do not change what the library computes.
    pub passed: Vec<String>,
}

impl Scope for Config<'_> {
    fn key(&self, name: &str) -> Option<&Json> {
        self.values.get(name)
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.family.tables.get(name)
    }
}

/// The word by which a config names its family, such as `llama`; `None` if it is no model's config.
pub fn model_type(node: &Node) -> Option<&str> {
    node.get("model_type").and_then(Node::text)
}

/// Keys that select the family and the head, which therefore are not keys of a family.
const OWN: &[&str] = &["model_type", "architectures"];

/// The key that names classes of code which comes along with a model.
const CODE: &str = "auto_map";

impl<'f> Config<'f> {
    /// Reads a config. Returns `None` after reporting the errors.
    pub fn read(family: &'f Family, node: &Node, sink: &mut Sink) -> Option<Self> {
        let (architecture, head) = head_of(family, node, sink)?;
        let mut config = Self {
            family,
            architecture,
            head,
            values: IndexMap::new(),
            places: IndexMap::new(),
            passed: Vec::new(),
        };
        // The library takes its own class where it has it, and code that comes along only for those it lacks.
        let has_class = class_of(node).is_some_and(|class| family.architectures.contains_key(&class));
        let mut strangers = 0_usize;
        let mut given = Vec::new();
        flatten(family, "", node, &mut given);
        let mut from: IndexMap<String, (String, Json, Span)> = IndexMap::new();
        for (name, value, span) in given {
            let is_own = OWN.contains(&name.as_str());
            // A key that is neither known nor ignored may change the model, so it is an error.
            let Some(key) = canonical(family, &name) else {
                let is_passed = family.running.iter().any(|r| covers(r, &name)) || has_class && name == CODE;
                match is_own || is_passed {
                    true => config.passed.extend((!is_own).then_some(name)),
                    false => {
                        strangers = strangers.saturating_add(1);
                        sink.push(unknown(family, &name, span, strangers <= MOST_GUESSES));
                    }
                }
                continue;
            };
            match from.get(key) {
                Some((other, known, place))
                    if !same(known, &value) && !known.is_null() && !value.is_null() =>
                {
                    let message = format!(
                        "`{other}` and `{name}` are two names of one setting and have \
                        different values"
                    );
                    let diagnostic = Diagnostic::error(Code::KeysExclude, span, message);
                    sink.push(diagnostic.label(*place, "the other one").help("keep one of them"));
                }
                // A `null` does not contradict a value under the other name.
                Some((_, known, _)) if !known.is_null() => {}
                Some(_) | None => {
                    from.insert(key.to_owned(), (name, value, span));
                }
            }
        }
        // A config of defaults alone shows of which type each value has to be.
        let usual = Self::of(family, &config.architecture, IndexMap::new(), &mut Sink::new());
        for (key, (name, value, span)) in from {
            // Also of a value with an error, so that what follows from it is reported here.
            config.places.insert(key.clone(), span);
            match usual.as_ref().and_then(|usual| expected(usual, &key, &value)) {
                // The default is used instead, so that the mistake causes no further errors.
                Some(expected) => {
                    let message = format!("`{name}` is {value}, but must be {expected}");
                    sink.push(Diagnostic::error(Code::WrongKind, span, message));
                }
                None => drop(config.values.insert(key, value)),
            }
        }
        config.settle(sink)?;
        Some(config)
    }

    /// A config with these values, for an export.
    pub fn of(
        family: &'f Family,
        architecture: &str,
        values: IndexMap<String, Json>,
        sink: &mut Sink,
    ) -> Option<Self> {
        let mut config = Self {
            family,
            architecture: architecture.to_owned(),
            head: family.architectures.get(architecture)?.clone(),
            values,
            places: IndexMap::new(),
            passed: Vec::new(),
        };
        config.settle(sink)?;
        Some(config)
    }

    /// Computes the values of keys that are not given, and checks those that the family fixes.
    fn settle(&mut self, sink: &mut Sink) -> Option<()> {
        // As in Hugging Face's library, a given `null` counts as `null`, unless the default is computed.
        let null = |config: &Self, name: &str| config.values.get(name).is_none_or(Json::is_null);
        let mut open: Vec<&str> = Vec::new();
        for (name, key) in &self.family.keys {
            match &key.default {
                Default::Value(value) if !self.values.contains_key(name) => {
                    self.values.insert(name.clone(), value.clone());
                }
                Default::Formula(_) if null(self, name) => {
                    self.values.shift_remove(name);
                    open.push(name);
                }
                Default::Value(_) | Default::Formula(_) => {}
            }
        }
        // A formula may depend on keys that are formulas themselves, so this is repeated until all are
        // computed.
        while !open.is_empty() {
            let before = open.len();
            let mut later = Vec::new();
            for name in open {
                let Some((Default::Formula(formula), span)) =
                    self.family.keys.get(name).map(|k| (&k.default, k.span))
                else {
                    continue;
                };
                if formula
                    .keys()
                    .iter()
                    .any(|k| !self.values.contains_key(*k) && self.family.keys.contains_key(*k))
                {
                    later.push(name);
                    continue;
                }
                match eval(formula, self) {
                    Ok(value) => {
                        self.values.insert(name.to_owned(), value);
                    }
                    Err(fault) => {
                        // A formula is in the family's file, but what is wrong is usually a number of the
                        // config.
                        let place = formula.keys().iter().find_map(|k| self.places.get(*k)).copied();
                        let message = format!("`{name}` cannot be computed: {fault}");
                        sink.push(Diagnostic::error(Code::WrongKind, place.unwrap_or(span), message));
                        self.values.insert(name.to_owned(), Json::Null);
                    }
                }
            }
            if later.len() == before {
                let message = format!("{} depend on each other in a cycle", listed(&later));
                let span =
                    later.first().and_then(|n| self.family.keys.get(*n)).map_or(Span::default(), |k| k.span);
                sink.push(Diagnostic::error(Code::UnknownName, span, message));
                return None;
            }
            open = later;
        }
        for (name, key) in &self.family.keys {
            let (Some(only), Some(value)) = (&key.only, self.values.get(name)) else { continue };
            // The library treats `null` as false in its conditions.
            let unset = value.is_null() && only.contains(&Json::Bool(false));
            if !unset && !only.iter().any(|o| same(o, value)) {
                let known: Vec<String> = only.iter().map(Json::to_string).collect();
                let message = format!(
                    "`{name}` is {value}, which is not supported for the family {}",
                    self.family.name
                );
                let place = self.places.get(name).copied().unwrap_or(key.span);
                let diagnostic = Diagnostic::error(Code::OutOfRange, place, message);
                sink.push(diagnostic.help(format!("it can be {}", known.join(", "))));
            }
        }
        for (name, formula, span) in self.family.heads.get(&self.head).map_or(&[][..], |head| &head.only) {
            let wanted = eval(formula, self).unwrap_or(Json::Null);
            let Some(value) = self.values.get(name).filter(|value| !same(value, &wanted)) else { continue };
            let message = format!("`{name}` is {value}, which is not supported with {}", self.architecture);
            let place = self.places.get(name).copied().unwrap_or(*span);
            sink.push(
                Diagnostic::error(Code::OutOfRange, place, message).help(format!("it must be {wanted}")),
            );
        }
        Some(())
    }
}

/// The type that a key's value must have, if it differs from the type the family uses.
fn expected(usual: &Config<'_>, key: &str, value: &Json) -> Option<&'static str> {
    let is_fixed = usual.family.keys.get(key).is_some_and(|key| key.only.is_some());
    match (usual.values.get(key)?, value) {
        (_, Json::Null) => None,
        // `settle` compares the value with the supported ones.
        _ if is_fixed => None,
        (Json::Bool(_), value) if !value.is_boolean() => Some("true or false"),
        (Json::Number(_), value) if !value.is_number() => Some("a number"),
        (Json::String(_), value) if !value.is_string() => Some("a word"),
        (Json::Array(_), value) if !value.is_array() => Some("a list"),
        (Json::Object(_), value) if !value.is_object() => Some("a map"),
        // A default of `null` says nothing of the type.
        (_, _) => None,
    }
}

/// The first class that a config names.
fn class_of(node: &Node) -> Option<String> {
    match node.get("architectures").map(json::of)? {
        Json::Array(all) => all.first().and_then(Json::as_str).map(str::to_owned),
        _ => None,
    }
}

/// The class of a config and its head. The family's first class is used if the config names none, and, after
/// reporting it, if the family does not have the named one.
fn head_of(family: &Family, node: &Node, sink: &mut Sink) -> Option<(String, String)> {
    let first = || family.architectures.first().map(|(class, head)| (class.clone(), head.clone()));
    let Some(class) = class_of(node) else { return first() };
    if let Some(head) = family.architectures.get(&class) {
        return Some((class, head.clone()));
    }
    let known: Vec<&str> = family.architectures.keys().map(String::as_str).collect();
    let message = format!("the family {} has no class `{class}`", family.name);
    let named = node.get("architectures").map(|all| match &all.kind {
        Kind::List(items) => items.first().unwrap_or(all).span,
        _ => all.span,
    });
    let span = named.unwrap_or(node.span);
    sink.push(Diagnostic::error(Code::UnknownPart, span, message).help(format!("it has {}", listed(&known))));
    first()
}

/// The key that a name is an alias of.
fn canonical<'f>(family: &'f Family, name: &str) -> Option<&'f str> {
    let found = family.keys.get_key_value(name);
    let alias = || family.keys.iter().find(|(_, key)| key.also.iter().any(|a| a == name));
    found.or_else(alias).map(|(canonical, _)| canonical.as_str())
}

/// Whether a name is one of the ignored keys or inside of one.
fn covers(passed: &str, name: &str) -> bool {
    name.strip_prefix(passed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Lists every value with its name; maps are flattened if the family declares keys inside of them.
fn flatten(family: &Family, base: &str, node: &Node, out: &mut Vec<(String, Json, Span)>) {
    for e in node.entries().unwrap_or(&[]) {
        let name = crate::ir::paths::join(base, &e.key);
        let below = format!("{name}.");
        let is_group = |key: &str| key.starts_with(&below);
        // A map without declared keys, such as `id2label`, is one value.
        let opens = family.keys.iter().any(|(k, key)| is_group(k) || key.also.iter().any(|a| is_group(a)));
        match &e.value.kind {
            Kind::Map(_) if opens => {
                // A map that is declared as a key is kept too: it shows whether it is present.
                if canonical(family, &name).is_some() {
                    out.push((name.clone(), Json::Bool(true), e.key_span));
                }
                flatten(family, &name, &e.value, out);
            }
            // `rope_scaling: null` is how a config says that there is no such map.
            Kind::Null if opens => {}
            _ => out.push((name, json::of(&e.value), e.key_span)),
        }
    }
}

/// For how many unknown keys the one that was meant is looked for among all that are known, which takes longer
/// than reading them.
const MOST_GUESSES: usize = 20;

/// The diagnostic for a key that the family does not have.
fn unknown(family: &Family, name: &str, span: Span, guesses: bool) -> Diagnostic {
    // A name before a dot is no key itself, but others are inside of it.
    let inside: Vec<&str> =
        family.keys.keys().filter_map(|key| key.strip_prefix(name)?.strip_prefix('.')).collect();
    if !inside.is_empty() {
        let message = format!("`{name}` must be a map");
        return Diagnostic::error(Code::WrongKind, span, message)
            .help(format!("it holds {}", listed(&inside)));
    }
    let message = format!("the family {} has no key `{name}`", family.name);
    let diagnostic = Diagnostic::error(Code::UnknownKey, span, message);
    // Its numbers have other types and scales, so that even a fitting name would give wrong weights.
    if name.starts_with("quantization") {
        return diagnostic.help("quantised weights cannot be read; use a copy in float16 or bfloat16");
    }
    if name == CODE {
        return diagnostic.help("the model needs its own code, which trafoc never runs");
    }
    let known: Vec<&str> = family.keys.keys().map(String::as_str).collect();
    match guesses.then(|| suggest(name, &known)).flatten() {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(
            "trafoc does not know whether it changes the model; you can declare it in a family file \
                (`--families`)",
        ),
    }
}
