//! Advice in the author's notation: what a diagnostic quotes as YAML is said in the DSL to who writes that.

use crate::diag::{Diagnostic, Severity, Sink};
use crate::source::{SourceId, SourceMap};
use crate::syntax::tree::{Kind, Node};
use crate::syntax::{Notation, parse};

/// The diagnostics about a source in the DSL, with the snippets of their help in it.
pub fn in_dsl(diagnostics: Vec<Diagnostic>, id: SourceId) -> Vec<Diagnostic> {
    let said = |mut d: Diagnostic| {
        if d.span().source == id {
            d.help = d.help.iter().map(|text| converted(text)).collect();
        }
        d
    };
    diagnostics.into_iter().map(said).collect()
}

/// A line of help with every snippet between backticks converted that is YAML.
fn converted(help: &str) -> String {
    let pieces = help.split('`').enumerate();
    let said = pieces.map(|(i, piece)| match i % 2 {
        1 => snippet(piece).unwrap_or_else(|| piece.to_owned()),
        _ => piece.to_owned(),
    });
    said.collect::<Vec<_>>().join("`")
}

/// A map in YAML as the DSL has it; nothing where the text is none.
fn snippet(text: &str) -> Option<String> {
    let begins = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"' || c == '.')).next()?;
    let is_entry = text.get(begins.len()..).is_some_and(|rest| rest.starts_with(": "));
    if !is_entry && !text.starts_with('{') {
        return None;
    }
    let mut sources = SourceMap::new();
    let id = sources.add("", text);
    let mut sink = Sink::new();
    let node = parse(&sources, id, Notation::Yaml, &mut sink)?;
    if sink.iter().any(|d| d.severity == Severity::Error) {
        return None;
    }
    let inner = body(node.entries()?);
    Some(if is_entry { inner } else { format!("{{ {inner} }}") })
}

/// The entries of a map, on one line.
fn body(entries: &[crate::syntax::tree::Entry]) -> String {
    let entry = |e: &crate::syntax::tree::Entry| match &e.value.kind {
        Kind::Map(inner) => match inner.as_slice() {
            [only] if super::is_part(&only.key) => format!("{} = {}", e.key, part(&only.key, &only.value)),
            inner => format!("{} {{ {} }}", e.key, body(inner)),
        },
        Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
            format!("{} = {}", e.key, super::explain::flow(&e.value))
        }
    };
    entries.iter().map(entry).collect::<Vec<_>>().join("  ")
}

/// `rms_norm(eps: 1e-6)`
fn part(name: &str, fields: &Node) -> String {
    match fields.entries() {
        Some([]) | None => name.to_owned(),
        Some(_) => format!("{name}({})", super::explain::flow(fields).trim_matches(['{', '}'])),
    }
}

#[cfg(test)]
mod tests {
    use super::converted;

    #[test]
    fn snippets_become_dsl_and_the_rest_stays() {
        let said = |text: &str| converted(text);
        assert_eq!(said("add `name: ...`, a text"), "add `name = ...`, a text");
        assert_eq!(
            said("add `decoder: {layers: 12, attention: {heads: 12}}`, or `encoder:`"),
            "add `decoder { layers = 12  attention { heads = 12 } }`, or `encoder:`"
        );
        assert_eq!(said("write `norm: {rms_norm: {eps: 1e-6}}`"), "write `norm = rms_norm(eps: 1e-6)`");
        assert_eq!(said("call it as `attention[local](x)`"), "call it as `attention[local](x)`");
        assert_eq!(said("did you mean `heads`?"), "did you mean `heads`?");
    }
}
