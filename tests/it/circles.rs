//! Modules depend on each other in one direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::compiled::repository;

/// A path such as `crate::field::Size`, word by word.
type Path = Vec<String>;

/// The words and marks of a text, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with("r\"") {
            rest.match_indices('"').nth(1).map_or(rest.len(), |(at, _)| at + 1)
        } else if first == '"' {
            let mut is_escaped = true;
            let end = rest.find(|c: char| {
                // The first mark opens the string.
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            end.map_or(rest.len(), |at| at + 1)
        } else if first == '\'' {
            // A character, or a lifetime, of which only the mark is skipped.
            let mut inside = rest.chars().skip(1);
            match (inside.next(), inside.next()) {
                (Some('\\'), Some(escaped)) => {
                    let from = 2 + escaped.len_utf8();
                    rest[from..].find('\'').map_or(rest.len(), |at| from + at + 1)
                }
                (Some(one), Some('\'')) => 2 + one.len_utf8(),
                _ => 1,
            }
        } else if first.is_alphanumeric() || first == '_' {
            let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let len = word.len();
            found.push(word);
            len
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() && first != '$' {
                found.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[skipped..];
    }
    found
}

fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// The paths of `use` followed by these tokens.
fn imported(tree: &[String], before: &[String], out: &mut Vec<Path>) {
    let mut depth = 0usize;
    for part in tree.split(|token| {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && token == ","
    }) {
        let own: Vec<String> =
            part.iter().take_while(|token| *token != "{" && *token != "as").cloned().collect();
        let path: Path =
            before.iter().cloned().chain(own.iter().filter(|token| is_word(token)).cloned()).collect();
        match part.get(own.len()).map(String::as_str) {
            Some("{") => imported(&part[own.len() + 1..part.len() - 1], &path, out),
            _ if !path.is_empty() => out.push(path),
            _ => {}
        }
    }
}

/// What a module says of others.
#[derive(Default)]
struct Paths {
    /// What it offers under its own path.
    exports: Vec<Path>,
    /// What it uses.
    uses: Vec<Path>,
}

fn paths_in(text: &str) -> Paths {
    let tokens = tokens(text);
    let mut found = Paths::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let previous = at.checked_sub(1).and_then(|at| tokens.get(at)).map_or("", String::as_str);
        let next = tokens.get(at + 1).map_or("", String::as_str);
        // `pub(in crate::cli)` says who may see an item; it uses nothing of that module.
        let is_visibility = at >= 2 && tokens[at - 2] == "(" && previous == "in";
        if token == "use" && (is_word(next) || next == "{") {
            let end = tokens[at..].iter().position(|token| token == ";").map_or(tokens.len(), |n| at + n);
            let is_export = previous == "pub" || previous == ")";
            imported(&tokens[at + 1..end], &[], if is_export { &mut found.exports } else { &mut found.uses });
            at = end;
        } else if is_word(token) && previous != "::" && next == "::" && !is_visibility {
            let path = tokens[at..].chunks(2).take_while(|pair| is_word(&pair[0]));
            let mut words: Path = Vec::new();
            for pair in path {
                words.push(pair[0].clone());
                if pair.get(1).is_none_or(|mark| mark != "::") {
                    break;
                }
            }
            found.uses.push(words);
            at += 1;
        } else {
            at += 1;
        }
    }
    found
}

struct Modules(BTreeMap<Path, Paths>);

impl Modules {
    /// Reads the modules of a crate. The file `lib.rs` is the module with an empty path.
    fn read(folder: &str) -> Self {
        let root = repository(folder);
        let mut all = BTreeMap::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let name = path.strip_prefix(&root).unwrap().with_extension("");
                    let mut name: Path = name.iter().map(|word| word.to_str().unwrap().to_owned()).collect();
                    if name.last().is_some_and(|word| word == "mod") || name == ["lib"] {
                        name.pop();
                    }
                    all.insert(name, paths_in(&std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        Self(all)
    }

    /// A path as seen from a module, from the root of the crate; `None` for other crates and local names.
    fn absolute(&self, module: &Path, path: &[String]) -> Option<Path> {
        let up = path.iter().take_while(|word| *word == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module.as_slice(), &path[1..]].concat()),
            "super" => Some([&module[..module.len().checked_sub(up)?], &path[up..]].concat()),
            _ => {
                let child = [module.as_slice(), &path[..1]].concat();
                self.0.contains_key(&child).then(|| [module.as_slice(), path].concat())
            }
        }
    }

    /// The module that defines what a path leads to, through re-exports.
    fn home(&self, path: &[String], depth: usize) -> Option<Path> {
        let length = (0..=path.len()).rev().find(|n| self.0.contains_key(&path[..*n]))?;
        let (module, item) = (path[..length].to_vec(), path.get(length));
        let exported = item.and_then(|item| {
            let exports = &self.0[&module].exports;
            exports
                .iter()
                .filter(|path| path.last() == Some(item))
                .find_map(|path| self.absolute(&module, path))
        });
        // Two modules that offer each other's items would be followed without end.
        match exported.filter(|path| depth < 8 && path[..] != module[..]) {
            Some(mut real) => {
                real.extend(path[length + 1..].iter().cloned());
                self.home(&real, depth + 1)
            }
            None => Some(module),
        }
    }

    fn used_by(&self, module: &Path) -> BTreeSet<Path> {
        let uses = self.0[module].uses.iter().filter_map(|path| self.absolute(module, path));
        uses.filter_map(|path| self.home(&path, 0)).filter(|home| home != module).collect()
    }
}

/// What several modules share is in one that uses none of them. A module may offer again (`pub use`) what
/// modules below it define.
#[test]
fn modules_form_no_circle() {
    for (folder, least, least_uses) in [("src", 300, 2_000), ("kernels/src", 30, 5)] {
        let modules = Modules::read(folder);
        let mut left: Vec<(Path, BTreeSet<Path>)> =
            modules.0.keys().map(|module| (module.clone(), modules.used_by(module))).collect();
        let uses = left.iter().map(|(_, used)| used.len()).sum::<usize>();
        // Fewer would mean that modules or uses are no longer found in the files.
        assert!(left.len() > least && uses > least_uses, "{folder}: {} modules, {uses} uses", left.len());
        loop {
            let before = left.len();
            let open: BTreeSet<Path> = left.iter().map(|(module, _)| module.clone()).collect();
            let used: BTreeSet<Path> = left.iter().flat_map(|(_, used)| used.iter().cloned()).collect();
            left.retain(|(module, uses)| {
                uses.iter().any(|module| open.contains(module)) && used.contains(module)
            });
            if left.len() == before {
                break;
            }
        }
        let open: BTreeSet<&Path> = left.iter().map(|(module, _)| module).collect();
        let lines = left.iter().map(|(module, used)| {
            let used: Vec<String> = used.iter().filter(|m| open.contains(m)).map(|m| m.join("::")).collect();
            format!("{} uses {}", module.join("::"), used.join(", "))
        });
        let lines: Vec<String> = lines.collect();
        assert!(lines.is_empty(), "{folder}: these are part of a circle:\n{}", lines.join("\n"));
    }
}
