//! Writes the names of a directory's tensors as the `weights` of a spec, so that its files can be read with
//! the spec alone.
//!
//! The rows of a family are for many models. Here they are reduced to one model: conditions are evaluated,
//! numbers of groups are inserted, and rows are left out that lead to no parameter of the model or to no
//! tensor of its files. Rows of one layer are collected below an `into`, as an author would write them.

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::imported::Imported;
use crate::field::real_text::decimal_text;
use crate::field::record::entry;
use crate::field::value::plain;
use crate::ir::Graph;
use crate::ir::paths::folded;
use crate::names::formula::eval;
use crate::names::{Names, Pattern, Row};
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// The value of a spec's `weights` for files with these tensors or, if the tensors are not known, for the
/// files that an export as this family writes.
pub fn weights(imported: &Imported, tensors: Option<&[&str]>, graph: &Graph) -> Node {
    let names = match tensors {
        Some(tensors) => imported.names(tensors.iter().copied()),
        None => {
            let bare = imported.family.heads.get(&imported.head).is_some_and(|head| head.bare);
            imported.family.tensor_names(&imported.head, !bare)
        }
    };
    let parameters: Vec<String> = folded(graph).into_iter().map(|p| p.path).collect();
    let holds = |row: &&Row| {
        let when = row.when.as_ref().map(|formula| eval(formula, imported));
        let leads = |pattern: &Pattern| parameters.iter().any(|path| pattern.fits(path));
        !matches!(when, Some(Err(_)) | Some(Ok(Json::Bool(false)))) && row.parameters.iter().all(leads)
    };
    let is_there =
        // Without a list of tensors all rows are written, because any of them may be there.
        |pattern: &Pattern| tensors.is_none_or(|all| all.iter().any(|name| pattern.matches(name).is_some()));
    let mut written = Written::default();
    for row in names.rows.iter().filter(holds) {
        let groups = row.groups.as_ref().and_then(|formula| eval(formula, imported).ok());
        // A row for a tensor that may be absent is kept: it says with which number the parameter is filled.
        if is_there(&row.tensor) || row.absent.is_some() {
            written.row(&row.tensor.to_string(), row, "", groups.as_ref());
        }
        // A spec has no list of older suffixes, so each tensor with such a name gets a row.
        for (tensor, last) in older(row, &names, tensors.unwrap_or_default()) {
            written.row(&tensor, row, last, groups.as_ref());
        }
    }
    // Files that name tensors by the paths of parameters need no rows, unless a prefix precedes the paths.
    if let Some(prefix) = names.paths.as_deref().filter(|prefix| !prefix.is_empty()) {
        for path in &parameters {
            let path = Pattern::of_folded(path).to_string();
            written.put(&format!("{prefix}{path}"), &[path], &|paths| plain(paths.concat()));
        }
    }
    let rows: Vec<&Row> = names.rows.iter().filter(holds).collect();
    for row in names.ties.iter().filter(holds).filter(|row| is_there(&row.tensor)) {
        let name = row.tensor.to_string();
        // It is no copy where it has a parameter of its own.
        if rows.iter().any(|own| own.tensor.matches(&name).is_some()) {
            continue;
        }
        // What the library ignores may have other numbers, and counts only where the parameter's own tensor is not there.
        let is_read = |own: &Row| {
            let (Some(path), Some(parameter)) = (row.parameters.first(), own.parameters.first()) else {
                return false;
            };
            let path = path.to_string();
            let Some((_, last)) = parameter.matches(&path) else { return false };
            let mut all = tensors.unwrap_or_default().iter().filter(|tensor| **tensor != name);
            all.any(|tensor| own.tensor.matches(tensor).is_some_and(|(_, end)| end == last))
        };
        let is_ignored = names.ignore.iter().any(|own| own.matches(&name).is_some());
        if is_ignored && rows.iter().any(|own| is_read(own)) {
            continue;
        }
        let path = row.parameters.first().map(ToString::to_string).unwrap_or_default();
        let copy = |path: &str| Node::map(vec![entry("copy", plain(path))], Span::default());
        written.put(&row.tensor.to_string(), &[path], &|paths| copy(&paths.concat()));
    }
    let constants = names.constants.iter().map(|own| &own.tensor);
    for pattern in names.ignore.iter().chain(constants).filter(|pattern| is_there(pattern)) {
        written.put(&pattern.to_string(), &[], &|_| plain("none"));
    }
    written.node()
}

/// The names of a row's tensors in files with older last words, such as `gamma`, each with the last word of
/// the parameter: `.weight` or `.bias`.
fn older(row: &Row, names: &Names, tensors: &[&str]) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for (end, older) in &names.older {
        for tensor in tensors {
            // Rows have the newer names alone.
            let Some(newer) = tensor.strip_suffix(older.as_str()).map(|name| format!("{name}{end}")) else {
                continue;
            };
            let last = match row.tensor.matches(&newer) {
                Some((_, ".weight")) => ".weight",
                Some((_, ".bias")) => ".bias",
                Some(_) | None => continue,
            };
            let whole = format!("{}{last}", row.tensor);
            let Some(name) = whole.strip_suffix(end.as_str()).map(|name| format!("{name}{older}")) else {
                continue;
            };
            if !found.contains(&(name.clone(), last)) {
                found.push((name, last));
            }
        }
    }
    found
}

/// The rows of `weights` to be written, grouped by layer.
#[derive(Default)]
struct Written {
    /// Maps from names to values, by the prefix that the names share and the prefix of the paths (`into`).
    /// Rows that share neither are below `("", "")`.
    groups: IndexMap<(String, String), IndexMap<String, Node>>,
}

impl Written {
    fn row(&mut self, tensor: &str, row: &Row, last: &str, groups: Option<&Json>) {
        let paths: Vec<String> = row.parameters.iter().map(|path| format!("{path}{last}")).collect();
        self.put(tensor, &paths, &|paths| laid_out(row, paths, groups));
    }

    /// Adds a tensor. `value` is called with the paths as they are written in the row, without the prefix of
    /// `into`.
    fn put(&mut self, tensor: &str, paths: &[String], value: &dyn Fn(&[String]) -> Node) {
        let whole = || (("", ""), tensor, paths.to_vec());
        let (group, key, paths) = shared(tensor, paths).unwrap_or_else(whole);
        // A name can have only one `into`.
        let is_taken = |(name, into): &(String, String)| name == group.0 && into != group.1;
        let of_name = self.groups.keys().find(|key| is_taken(key)).cloned();
        let (group, key, paths) = match of_name {
            // Ignored tensors have no paths, so any `into` suits them.
            Some(known) if paths.is_empty() => (known, key.to_owned(), paths),
            // Another row has given this name an `into`, so this one is written in full.
            Some(_) => {
                let (_, key, paths) = whole();
                ((String::new(), String::new()), key.to_owned(), paths)
            }
            None => ((group.0.to_owned(), group.1.to_owned()), key.to_owned(), paths),
        };
        self.groups.entry(group).or_default().entry(key).or_insert_with(|| value(&paths));
    }

    fn node(self) -> Node {
        let map = |rows: IndexMap<String, Node>| rows.into_iter().map(|(name, value)| entry(&name, value));
        let mut all: Vec<Entry> = Vec::new();
        for ((name, into), rows) in self.groups {
            if name.is_empty() {
                all.extend(map(rows));
            } else if into.is_empty() {
                // All rows of the group are ignored tensors, which have no paths.
                all.extend(map(rows).map(|e| entry(&format!("{name}.{}", e.key), e.value)));
            } else {
                // First, where a reader needs it: the paths after it are relative to it.
                let first = entry("into", plain(into));
                let rows = std::iter::once(first).chain(map(rows)).collect();
                all.push(entry(&name, Node::map(rows, Span::default())));
            }
        }
        Node::map(all, Span::default())
    }
}

type Shared<'t> = ((&'t str, &'t str), &'t str, Vec<String>);

/// Splits a tensor's name and the paths of its parameters after their first variable: the two prefixes, the
/// rest of the name, and the rests of the paths. `None` if one has no variable, if the prefixes of the paths
/// differ, or if they do not end in the same variable as that of the name.
fn shared<'t>(tensor: &'t str, paths: &'t [String]) -> Option<Shared<'t>> {
    let split = |text: &'t str| {
        let (begin, rest) = text.split_once('}')?;
        Some((text.get(..begin.len().checked_add(1)?)?, rest.strip_prefix('.')?))
    };
    let (name, key) = split(tensor)?;
    let parts = paths.iter().map(|path| split(path)).collect::<Option<Vec<_>>>()?;
    let into = parts.first().map_or("", |(into, _)| *into);
    let variable = |text: &'t str| text.rsplit('{').next();
    let fits = parts.iter().all(|(other, _)| *other == into && variable(other) == variable(name));
    fits.then(|| ((name, into), key, parts.iter().map(|(_, rest)| (*rest).to_owned()).collect()))
}

/// The value of a row in `weights`: a path, or a map if there is more to say.
fn laid_out(row: &Row, paths: &[String], groups: Option<&Json>) -> Node {
    let mut entries = Vec::new();
    let is_fused = paths.len() > 1;
    match paths {
        [one] => entries.push(entry("to", plain(one.as_str()))),
        several => {
            let items = several.iter().map(|path| plain(path.as_str())).collect();
            entries.push(entry("fuse", Node { kind: Kind::List(items), span: Span::default() }));
        }
    }
    let mut add = |key: &str, value: Option<String>| {
        entries.extend(value.map(|value| entry(key, plain(value))));
    };
    add("groups", groups.map(Json::to_string));
    add("transpose", row.transpose.then(|| "true".to_owned()));
    add("stack", row.stack.clone());
    add("join", row.join.clone());
    add("lead", (row.lead > 0).then(|| row.lead.to_string()));
    add("flat", row.flat.then(|| "true".to_owned()));
    add("absent", row.absent.map(|value| decimal_text(f64::from(value))));
    match (entries.as_slice(), paths) {
        ([_], [one]) if !is_fused => plain(one.as_str()),
        _ => Node::map(entries, Span::default()),
    }
}
