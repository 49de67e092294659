//! Gives a Python file of a project its settings, and removes imports that it does not need.

use std::collections::BTreeSet;

use super::super::region::spaced;
use super::Value;

/// The text with these values for the fields of its first class.
///
/// # Errors
/// A field has no value.
pub fn with_fields(text: &str, fields: &[(&'static str, Value)]) -> Result<String, String> {
    let mut out: Vec<String> = Vec::new();
    let mut is_within = false;
    for line in text.lines() {
        is_within = match line {
            _ if line.starts_with("class Settings") => true,
            // An empty line does not end a class.
            _ if !line.starts_with(' ') && !line.is_empty() => false,
            _ => is_within,
        };
        let field = line.trim_start().split_once(": ").filter(|_| is_within);
        let field = field.and_then(|(name, rest)| Some((name, rest.split_once(" = ")?.0)));
        // Lines of documentation and comments may contain a colon, too.
        let Some((name, ty)) = field.filter(|(name, _)| !name.contains([' ', '#', '"'])) else {
            out.push(line.to_owned());
            continue;
        };
        let value = fields.iter().find(|(known, _)| *known == name);
        // A default in the Python file would be a second one next to the recipe's, so there are no defaults.
        let (_, value) = value.ok_or_else(|| format!("the setting `{name}` has no value"))?;
        out.push(value.after(&format!("{name}: {ty} = "), 4));
    }
    Ok(out.join("\n") + "\n")
}

/// The text with this value for a name that it assigns to.
///
/// # Errors
/// It does not.
pub fn with_constant(text: &str, name: &str, value: &Value) -> Result<String, String> {
    let mut is_found = false;
    let set = |line: &str| {
        let before = line.split_once(" = ").map(|(before, _)| before);
        match before.filter(|before| before.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))) {
            Some(before) => {
                is_found = true;
                value.after(&format!("{before} = "), 0)
            }
            None => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.lines().map(set).collect();
    if is_found { Ok(lines.join("\n") + "\n") } else { Err(format!("`{name}` is not set")) }
}

/// An import at the beginning of a text: its lines, and what it imports.
struct Import<'t> {
    lines: Vec<&'t str>,
    names: Vec<&'t str>,
}

impl<'t> Import<'t> {
    /// The name by which a text uses what is imported.
    fn bound(name: &'t str) -> &'t str {
        name.rsplit(" as ").next().unwrap_or(name).trim()
    }

    /// The lines that import only what is used.
    fn pruned(&self, is_used: &dyn Fn(&str) -> bool) -> Vec<String> {
        let names: Vec<&str> = self.names.iter().copied().filter(|n| is_used(Self::bound(n))).collect();
        let Some((from, _)) = self.lines.first().and_then(|line| line.split_once(" import ")) else {
            let is_kept = !names.is_empty();
            return self.lines.iter().filter(|_| is_kept).map(|line| (*line).to_owned()).collect();
        };
        let line = format!("{from} import {}", names.join(", "));
        if names.is_empty() {
            Vec::new()
        // ruff leaves names on lines of their own if a comma follows the last.
        } else if self.lines.len() > 1 && names.len() > 1 {
            let names = names.iter().map(|name| format!("    {name},"));
            [format!("{from} import (")].into_iter().chain(names).chain([")".to_owned()]).collect()
        } else {
            vec![line]
        }
    }
}

/// The text without imports that nothing uses. They are all at its beginning.
pub fn without_unused_imports(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_import = |line: &str| line.starts_with("import ") || line.starts_with("from ");
    let first = lines.iter().position(|line| is_import(line)).unwrap_or(lines.len());
    let mut head: Vec<String> = Vec::new();
    let mut imports: Vec<Result<Import<'_>, &str>> = Vec::new();
    let mut at = first;
    while let Some(line) = lines.get(at).filter(|line| is_import(line) || line.is_empty()) {
        at += 1;
        if line.is_empty() {
            imports.push(Err(line));
            continue;
        }
        let names = line.split_once("import ").map_or("", |(_, names)| names);
        let mut import = Import { lines: vec![line], names: names.split(", ").collect() };
        if names == "(" {
            import.names.clear();
            for line in lines.iter().skip(at) {
                at += 1;
                import.lines.push(line);
                if *line == ")" {
                    break;
                }
                import.names.push(line.trim().trim_end_matches(','));
            }
        }
        imports.push(Ok(import));
    }
    let rest = lines.get(at..).unwrap_or_default();
    // Words in strings count as uses: an import too many is harmless, one too few is not.
    let used: BTreeSet<&str> = rest
        .iter()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    // The import from `__future__` changes how Python reads types; no name in the text refers to it.
    let is_used = |name: &str| name == "annotations" || used.contains(name);
    for import in &imports {
        match import {
            Ok(import) => head.extend(import.pruned(&is_used)),
            Err(empty) => head.push((*empty).to_owned()),
        }
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let between = "\n".repeat(imports.iter().rev().take_while(|import| import.is_err()).count());
    let before = spaced(lines.get(..first).unwrap_or_default(), 2);
    format!("{before}\n{}{between}{}", spaced(&head, 1), spaced(rest, 2))
}
