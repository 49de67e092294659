//! Numbers with names under `let:`, in any order; each is defined once the names that it needs are.

use std::collections::BTreeSet;

use super::used::report_empty;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::value::wrong_kind;
use crate::syntax::expr;
use crate::syntax::tree::{Entry, Node};

/// The most names under `let`: far more than a spec needs, since the time to find those that can be evaluated
/// grows with the square of their number.
const MAX_NAMES: usize = 100;

/// The sizes of a spec that expressions under `let` can use.
const SIZES: &[&str] = &["vocab", "source_vocab", "context", "d_model"];

/// The names of a spec, and which of them are defined so far.
#[derive(Debug, Default)]
pub struct Lets {
    /// All names in the order of the text.
    all: Vec<Entry>,
    /// Those with a valid expression, which are defined once the names that they need are.
    waiting: Vec<Entry>,
}

impl Lets {
    /// The names in a spec's tree. Names in a cycle, and names that need something undefined, are reported
    /// and count as broken.
    pub fn new(spec: &Node, cx: &mut Context<'_>) -> Self {
        let Some(node) = spec.get("let") else { return Self::default() };
        let Some(entries) = node.entries() else {
            wrong_kind(node, "a map from names to numbers", cx);
            return Self::default();
        };
        if entries.is_empty() {
            report_empty("let", node, cx);
        }
        if let Some(beyond) = entries.get(MAX_NAMES) {
            let message = format!("`let` defines more than {MAX_NAMES} names");
            cx.report(Diagnostic::error(Code::TooLarge, beyond.key_span, message));
            // Broken and not unknown, so that expressions that use them report nothing more.
            entries.iter().for_each(|e| cx.bind_broken(&e.key));
            return Self::default();
        }
        let mut lets = Self { all: entries.to_vec(), waiting: entries.to_vec() };
        lets.waiting.retain(|e| {
            // `layers` is a size as well, but one that each stack has for itself.
            let fits = is_name(&e.key) && !SIZES.contains(&e.key.as_str()) && e.key != "layers";
            if !fits {
                let message = format!("`{}` cannot be the name of a number", e.key);
                let help = if is_name(&e.key) {
                    "it is the name of a size of the spec; choose another"
                } else {
                    crate::syntax::text::NAMES
                };
                cx.report(Diagnostic::error(Code::BadKey, e.key_span, message).help(help));
                cx.bind_broken(&e.key);
            }
            fits
        });
        // Each step leaves out the names that it has reported, so that a name is reported once.
        lets.report_unreadable(cx);
        lets.report_cycles(cx);
        lets.report_unknown(spec, cx);
        // Until they are defined, an expression that uses them is refused for this reason.
        for e in &lets.waiting {
            let needs = names(e, cx).join(", ");
            let why =
                format!("`{}` under `let` needs {needs}, which is defined later or inside a stack", e.key);
            cx.bind_waiting(&e.key, why);
        }
        lets
    }

    fn break_off(&mut self, broken: &BTreeSet<String>, cx: &mut Context<'_>) {
        self.waiting.retain(|e| !broken.contains(&e.key));
        broken.iter().for_each(|name| cx.bind_broken(name));
    }

    fn report_unreadable(&mut self, cx: &mut Context<'_>) {
        let mut broken = BTreeSet::new();
        for e in &self.waiting {
            if e.value.text().is_none() {
                wrong_kind(&e.value, "a number", cx);
                broken.insert(e.key.clone());
            } else if let Err(diagnostic) = expr::parse(cx.sources(), &e.value) {
                cx.report(diagnostic);
                broken.insert(e.key.clone());
            }
        }
        self.break_off(&broken, cx);
    }

    /// Reports one diagnostic per cycle.
    fn report_cycles(&mut self, cx: &mut Context<'_>) {
        let mut broken: BTreeSet<String> = BTreeSet::new();
        for start in &self.waiting {
            if broken.contains(&start.key) {
                continue;
            }
            // A name that only leads into a cycle is not on it, and is not reported.
            let Some(cycle) = self.cycle(start, cx) else { continue };
            let words: Vec<String> = cycle.iter().map(|e| format!("`{}`", e.key)).collect();
            let message = match words.as_slice() {
                [one] => format!("{one} needs its own value"),
                [a, b] => format!("the values of {a} and {b} depend on each other"),
                many => format!("the values of {} depend on each other in a cycle", many.join(", ")),
            };
            let first = Diagnostic::error(Code::LetCycle, start.value.span, message);
            let labelled = cycle.iter().skip(1).fold(first, |d, e| d.label(e.value.span, "which needs this"));
            let help = if cycle.len() == 1 { "give it as a number" } else { "give one of them as a number" };
            cx.report(labelled.help(help));
            broken.extend(cycle.iter().map(|e| e.key.clone()));
        }
        self.break_off(&broken, cx);
    }

    /// The entries on a cycle from `start` back to itself, if its value depends on itself.
    fn cycle(&self, start: &Entry, cx: &Context<'_>) -> Option<Vec<&Entry>> {
        let find = |name: &str| self.waiting.iter().find(|e| e.key == name);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        // Depth first, and every name once: at most as many paths as there are names.
        let mut paths: Vec<Vec<&Entry>> = vec![vec![find(&start.key)?]];
        while let Some(path) = paths.pop() {
            for name in names(path.last()?, cx) {
                if name == start.key {
                    return Some(path);
                }
                if let Some(next) = find(&name).filter(|_| seen.insert(name)) {
                    paths.push(path.iter().copied().chain([next]).collect());
                }
            }
        }
        None
    }

    fn report_unknown(&mut self, spec: &Node, cx: &mut Context<'_>) {
        let has_stack = ["encoder", "decoder"].iter().any(|key| spec.get(key).is_some());
        let exists = |name: &str| match name {
            "layers" => has_stack,
            // It must be given, so its absence is an error of its own.
            "d_model" => true,
            name => {
                self.all.iter().any(|e| e.key == name) || SIZES.contains(&name) && spec.get(name).is_some()
            }
        };
        let mut broken = BTreeSet::new();
        for e in &self.waiting {
            let Ok(expression) = expr::parse(cx.sources(), &e.value) else { continue };
            for (name, span) in expression.names() {
                if !exists(name) {
                    let mut known: Vec<&str> = SIZES.iter().copied().chain(["layers"]).collect();
                    // Not its own name, with which it would depend on itself.
                    known.extend(self.all.iter().map(|o| o.key.as_str()).filter(|key| *key != e.key));
                    known.retain(|name| exists(name));
                    let message = format!("nothing is named `{name}` here");
                    let diagnostic = Diagnostic::error(Code::UnknownName, span, message);
                    cx.report(match crate::diag::suggest::suggest(name, &known) {
                        Some(near) => diagnostic.meant(name, &near),
                        None => diagnostic.help(format!("a name can be made of {}", known.join(", "))),
                    });
                    broken.insert(e.key.clone());
                }
            }
        }
        self.break_off(&broken, cx);
    }

    /// Defines every name whose expression can be evaluated now. Names that depend on sizes of a stack are
    /// forgotten after it, and evaluated again in the next one.
    pub fn resolve(&self, cx: &mut Context<'_>) {
        let settled = |e: &Entry, cx: &Context<'_>| cx.is_broken(&e.key) || cx.knows(&e.key);
        // Every round settles one name, so the loop ends.
        loop {
            let ready = self.waiting.iter().find(|e| {
                let able = |name: &String| cx.knows(name) || cx.is_broken(name);
                !settled(e, cx) && names(e, cx).iter().all(able)
            });
            let Some(e) = ready else { return };
            match cx.number(&e.value) {
                Some(number) => cx.bind(&e.key, number, Some(e.value.span)),
                None => cx.bind_broken(&e.key),
            }
        }
    }

    /// The names that nothing has used. It must be called when everything else has been decoded.
    pub fn unused(&self, cx: &Context<'_>) -> impl Iterator<Item = &Entry> {
        self.all.iter().filter(|e| !cx.has_used(e.value.span))
    }
}

/// Whether an expression can use the key as a name: it knows only the letters of ASCII.
fn is_name(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The names that an entry's expression uses.
fn names(e: &Entry, cx: &Context<'_>) -> Vec<String> {
    let parsed = expr::parse(cx.sources(), &e.value);
    parsed.map(|x| x.names().into_iter().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default()
}
