//! The Python that emitted models call, as files that Python's own tools check: the names each defines, what
//! it needs of the others, and the text of those that a model uses.

use std::collections::{BTreeMap, BTreeSet};

use super::region;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The files of `runtime/` without `.py`, in the order in which they are written into a model's file.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("runtime/", $name, ".py")))),*];
    };
}

files![
    "member",
    "kaiming_uniform",
    "kaiming_normal",
    "truncated_normal",
    "orthogonal",
    "logarithms",
    "linear",
    "table",
    "padded_table",
    "patches",
    "offset_rms_norm",
    "offset_layer_norm",
    "cache",
    "positions",
    "padding_mask",
    "causal_mask",
    "both_masks",
    "sinusoid",
    "rotary",
    "dynamic_frequencies",
    "ramp_frequencies",
    "divided_frequencies",
    "wavelength_frequencies",
    "rotate_half",
    "rotate_interleaved",
    "alibi",
    "relative_buckets",
    "heads",
    "attention",
    "grouped_attention",
    "score_weights",
    "attention_weights",
    "additive_weights",
    "quick_gelu",
    "limit_groups",
    "keep_best",
    "softmax_of_best",
    "mix_experts",
    "prepend",
    "earlier",
    "causal_conv",
    "cumulative_sum",
    "hide_scores",
    "hide_scores_if_any",
    "hide_weights",
    "hide_padding",
    "one_at_padding",
    "by_distance",
    "by_key",
    "largest",
    "recurrence",
    "head_recurrence",
    "delta_recurrence",
    "pool_last",
    "pool_mean",
    "pool_max",
];

/// The names of the files of `runtime/`, without `.py`.
pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// What a file imports: `math`, or `from torch` with names.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// A function or class of the runtime, with its documentation.
#[derive(Clone, Debug)]
struct Definition {
    name: &'static str,
    text: &'static str,
    /// What the file imports, and what it uses of its neighbours.
    imports: Vec<(&'static str, &'static str)>,
    /// The file that contains it, whose definitions may use one another.
    file: &'static str,
}

/// The functions and classes of the runtime.
#[derive(Clone, Debug)]
pub struct Runtime(Vec<Definition>);

/// What a model's file needs of the runtime.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// The definitions in order.
    pub texts: Vec<String>,
    /// The modules and names that they import.
    pub imports: Imports,
}

impl Runtime {
    /// Splits the files, whose texts are part of this program, into definitions.
    pub fn read() -> Self {
        let mut all = Vec::new();
        for (file, text) in FILES {
            let imports: Vec<(&str, &str)> = text.lines().flat_map(imported).collect();
            // ruff leaves two empty lines between definitions and nowhere else.
            for definition in text.split("\n\n\n").filter(|part| is_definition(part)) {
                // The first word after decorators is `def` or `class`.
                let line = undecorated(definition).unwrap_or_default();
                let name = line.split(|c: char| !c.is_alphanumeric() && c != '_').nth(1).unwrap_or_default();
                all.push(Definition { name, text: definition.trim_end(), imports: imports.clone(), file });
            }
        }
        Self(all)
    }

    /// Whether it defines a function or class of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|definition| definition.name == name)
    }

    /// The definitions of these names and of what they use, in the order of the runtime. Each has the regions
    /// of the arguments that it is given by name, or that those who use it are given.
    ///
    /// # Errors
    /// A region of a file does not begin or does not end, or no file defines one of the names.
    pub fn choose(
        &self,
        wanted: &BTreeSet<&str>,
        keywords: &BTreeSet<(&str, String)>,
    ) -> Result<Chosen, String> {
        if let Some(name) = wanted.iter().find(|name| !self.has(name)) {
            return Err(format!("the runtime does not define `{name}`"));
        }
        // What a definition may use, with every region, and so which regions each may need.
        let mut given: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, keyword) in keywords {
            given.entry(name).or_default().insert(keyword);
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&Definition> = self.0.iter().filter(|d| wanted.contains(d.name)).collect();
        while let Some(definition) = open.pop() {
            if seen.insert(definition.name) {
                // A function of the runtime passes its arguments on by name, so what it calls needs their
                // regions.
                let passed_on = given.get(definition.name).cloned().unwrap_or_default();
                for other in self.used(definition, definition.text) {
                    given.entry(other.name).or_default().extend(passed_on.iter().copied());
                    open.push(other);
                }
            }
        }
        let text_of = |definition: &Definition| {
            let of_it = given.get(definition.name);
            region::chosen(definition.text, &|word| of_it.is_some_and(|words| words.contains(word)))
        };
        // A region that is left out needs nothing.
        let mut needed: BTreeMap<&str, String> = BTreeMap::new();
        open.extend(self.0.iter().filter(|d| wanted.contains(d.name)));
        while let Some(definition) = open.pop() {
            if !needed.contains_key(definition.name) {
                let text = text_of(definition)?;
                open.extend(self.used(definition, &text));
                needed.insert(definition.name, text);
            }
        }
        let mut chosen = Chosen::default();
        for definition in &self.0 {
            let Some(text) = needed.remove(definition.name) else { continue };
            for (from, name) in &definition.imports {
                let used = if name.is_empty() { from } else { name };
                // `functional as F` is used under the name `F`.
                let used = used.rsplit(' ').next().unwrap_or(used);
                if !from.starts_with('.') && names(&text).any(|word| word == used) {
                    let entry = if name.is_empty() { (*from).to_owned() } else { format!("from {from}") };
                    let names = chosen.imports.entry(entry).or_default();
                    if !name.is_empty() {
                        names.insert((*name).to_owned());
                    }
                }
            }
            chosen.texts.push(text);
        }
        Ok(chosen)
    }

    /// The definitions of the same file, and of those it imports, that a definition's text names.
    fn used<'r>(&'r self, by: &Definition, text: &str) -> Vec<&'r Definition> {
        let imports = |name| by.imports.iter().any(|(from, what)| from.starts_with('.') && *what == name);
        // A word of the text may happen to be the name of a definition in a file that this one does not
        // import.
        let is_near = |other: &&Definition| other.file == by.file || imports(other.name);
        let is_named = |other: &&Definition| names(text).any(|name| name == other.name);
        self.0.iter().filter(is_near).filter(is_named).collect()
    }
}

/// The first line of a definition below its decorators.
fn undecorated(part: &str) -> Option<&str> {
    part.lines().find(|line| !line.starts_with('@'))
}

fn is_definition(part: &str) -> bool {
    undecorated(part).is_some_and(|line| ["def ", "class "].iter().any(|keyword| line.starts_with(keyword)))
}

/// The words of a text outside of its documentation.
fn names(text: &str) -> impl Iterator<Item = &str> {
    // Every second part is documentation.
    let code = text.split("\"\"\"").step_by(2);
    code.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// `from torch import Tensor, nn` → `(torch, Tensor)`, `(torch, nn)`; `import math` → `(math, "")`.
fn imported(line: &'static str) -> Vec<(&'static str, &'static str)> {
    if let Some(module) = line.strip_prefix("import ") {
        return vec![(module, "")];
    }
    let Some((module, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    else {
        return Vec::new();
    };
    match module {
        "__future__" => Vec::new(),
        _ => names.split(", ").map(|name| (module, name)).collect(),
    }
}
