//! Functions an emitted file brings along: the interpreter's kernels, word for word, and a few pieces
//! of its own.
//!
//! A text is split into items; an item comes with the items of the same or other texts it calls and
//! with the imports it names. What nobody calls stays out.

use std::collections::{BTreeMap, BTreeSet};

macro_rules! texts {
    ($($path:literal),* $(,)?) => { &[$(($path, include_str!($path))),*] };
}

const TEXTS: &[(&str, &str)] = texts![
    "../interp/kernels/alibi.rs",
    "../interp/kernels/append.rs",
    "../interp/kernels/attention.rs",
    "../interp/kernels/attention_weights.rs",
    "../interp/kernels/experts.rs",
    "../interp/kernels/gelu.rs",
    "../interp/kernels/heads.rs",
    "../interp/kernels/linear.rs",
    "../interp/kernels/masks.rs",
    "../interp/kernels/norms.rs",
    "../interp/kernels/pool.rs",
    "../interp/kernels/positions.rs",
    "../interp/kernels/relative_buckets.rs",
    "../interp/kernels/rotary.rs",
    "../interp/kernels/route.rs",
    "../interp/kernels/sinusoid.rs",
    "../interp/kernels/unembed.rs",
    "pieces/activations.rs",
    "pieces/attend.rs",
    "pieces/fresh.rs",
    "pieces/frequencies.rs",
    "pieces/heap.rs",
    "pieces/normal.rs",
    "pieces/offset_norms.rs",
    "pieces/prepend.rs",
    "pieces/project.rs",
];

/// Functions whose names are those of values in most models.
const RENAMED: &[(&str, &str)] = &[("mask", "mask_by"), ("positions", "position_ids")];

/// Items by name, in the order of the texts.
#[derive(Clone, Debug, Default)]
pub struct Library {
    items: Vec<Item>,
}

#[derive(Clone, Debug)]
struct Item {
    /// What it defines; an `impl` has the name of its type.
    name: String,
    text: String,
    /// Words of its code, comments aside; those followed by `(` apart.
    words: BTreeSet<String>,
    calls: BTreeSet<String>,
    /// Imports of its file: the name used and the path.
    imports: BTreeMap<String, String>,
}

impl Library {
    /// Reads the texts.
    pub fn read() -> Self {
        let mut items = Vec::new();
        for (_, text) in TEXTS {
            items.extend(split(text));
        }
        Self { items }
    }

    /// Whether there is an item of that name.
    pub fn has(&self, name: &str) -> bool {
        self.items.iter().any(|item| item.name == name)
    }

    /// The wanted items and all they need, in the order of the texts, with their imports
    /// (`path` or `path as name`).
    pub fn select(&self, wanted: &BTreeSet<String>) -> (Vec<String>, BTreeSet<String>) {
        let mut names = wanted.clone();
        loop {
            let before = names.len();
            for item in &self.items {
                if names.contains(&item.name) {
                    let needed = self.items.iter().filter(|other| item.needs(other));
                    names.extend(needed.map(|other| other.name.clone()).collect::<Vec<_>>());
                }
            }
            if names.len() == before {
                break;
            }
        }
        let chosen = || self.items.iter().filter(|item| names.contains(&item.name));
        let imports = chosen().flat_map(Item::used_imports).collect();
        (chosen().map(|item| item.text.clone()).collect(), imports)
    }
}

impl Item {
    fn needs(&self, other: &Item) -> bool {
        let is_type = other.name.starts_with(|c: char| c.is_ascii_uppercase());
        let found = if is_type { &self.words } else { &self.calls };
        found.contains(&other.name) && !self.imports.contains_key(&other.name)
    }

    fn used_imports(&self) -> Vec<String> {
        let used = self.imports.iter().filter(|(name, _)| self.words.contains(*name));
        used.map(|(name, path)| {
            if path.rsplit("::").next() == Some(name) { path.clone() } else { format!("{path} as {name}") }
        })
        .collect()
    }
}

/// The items of a file: each begins at its documentation and ends with a `}` in the first column.
fn split(text: &str) -> Vec<Item> {
    let mut imports = BTreeMap::new();
    let mut items = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.starts_with("//!") || (lines.is_empty() && line.is_empty()) {
            continue;
        }
        lines.push(line);
        let is_use = lines.first().is_some_and(|first| first.starts_with("use "));
        if is_use && line.ends_with(';') {
            read_imports(&lines.join(" "), &mut imports);
            lines.clear();
        } else if line == "}" || is_whole(&lines, line) {
            items.extend(item(&lines, &imports));
            lines.clear();
        }
    }
    items
}

/// `struct Heap<M>(Box<M>);`, `impl<M> A for B<M> {}`
fn is_whole(lines: &[&str], line: &str) -> bool {
    let is_head = |l: &&&str| !l.starts_with("//") && !l.starts_with("#[");
    lines.iter().find(is_head) == Some(&line) && (line.ends_with(';') || line.ends_with("{}"))
}

fn item(lines: &[&str], imports: &BTreeMap<String, String>) -> Option<Item> {
    let head = lines.iter().find(|line| !line.starts_with("//") && !line.starts_with('#'))?;
    let public = head.strip_prefix("pub ").unwrap_or(head);
    let name = match public.split_once(' ')? {
        ("fn" | "struct", rest) => word(rest),
        // `impl Cache {`, `impl<const D: usize> Appended<D> {`, `impl<M> Deref for Heap<M> {`
        (start, rest) if start.starts_with("impl") => {
            let target = rest.split_once(" for ").map_or(rest, |(_, target)| target);
            let generic = start.starts_with("impl<") && !start.ends_with('>') && target == rest;
            word(if generic { rest.split_once("> ")?.1 } else { target })
        }
        _ => return None,
    };
    let code: Vec<&str> = lines.iter().map(|line| line.split("//").next().unwrap_or("")).collect();
    let (words, calls) = words(&code.join("\n"));
    let text = lines.join("\n").replacen("\npub fn ", "\nfn ", 1);
    let (name, text) = match RENAMED.iter().find(|(old, _)| *old == name) {
        Some((old, new)) => {
            ((*new).to_owned(), text.replacen(&format!("fn {old}("), &format!("fn {new}("), 1))
        }
        None => (name, text),
    };
    Some(Item { name, text, words, calls, imports: imports.clone() })
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// The words of some code, and those among them that are called as functions.
pub fn words(code: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut words, mut calls) = (BTreeSet::new(), BTreeSet::new());
    let mut rest = code;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let is_method = rest.get(..at).is_some_and(|before| before.ends_with('.') && !before.ends_with(".."));
        rest = rest.get(at..).unwrap_or("");
        let found = word(rest);
        rest = rest.get(found.len()..).unwrap_or("");
        if rest.starts_with('(') && !is_method {
            calls.insert(found.clone());
        }
        words.insert(found);
    }
    (words, calls)
}

/// `use a::{b, c as d};` as `b → a::b`, `d → a::c`. Globs stand for the prelude, which every file has.
fn read_imports(line: &str, imports: &mut BTreeMap<String, String>) {
    if let Ok(item) = syn::parse_str::<syn::ItemUse>(line) {
        walk(&item.tree, String::new(), imports);
    }
}

fn walk(tree: &syn::UseTree, path: String, imports: &mut BTreeMap<String, String>) {
    let under = |name: &syn::Ident| {
        if path.is_empty() { name.to_string() } else { format!("{path}::{name}") }
    };
    match tree {
        syn::UseTree::Path(at) => walk(&at.tree, under(&at.ident), imports),
        syn::UseTree::Name(at) => {
            imports.insert(at.ident.to_string(), under(&at.ident));
        }
        syn::UseTree::Rename(at) => {
            imports.insert(at.rename.to_string(), under(&at.ident));
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                walk(tree, path.clone(), imports);
            }
        }
        syn::UseTree::Glob(_) => {}
    }
}
