//! Advice is given in the notation of the author.

use trafoc::diag::{Code, Diagnostic};
use trafoc::source::{SourceMap, Span};
use trafoc::spec::advice::in_dsl;

/// A line of help as someone reads it who wrote `source`, a text in the DSL, and at all of it has an error.
fn said(source: &str, code: Code, help: &str) -> String {
    let mut sources = SourceMap::new();
    let id = sources.add("m.trafo", source);
    let diagnostic = Diagnostic::error(code, Span::new(id, 0, source.len()), "wrong").help(help);
    let mut told = in_dsl(vec![diagnostic], &sources, id);
    told.remove(0).help.remove(0)
}

#[test]
fn snippets_become_dsl_and_the_rest_stays() {
    let said = |help: &str| said("decoder", Code::UnknownKey, help);
    assert_eq!(said("add `name: ...`, a text"), "add `name = ...`, a text");
    assert_eq!(
        said("add `decoder: {layers: 12, attention: {heads: 12}}`, or `encoder:`"),
        "add `decoder { layers = 12  attention { heads = 12 } }`, or `encoder:`"
    );
    assert_eq!(said("write `norm: {rms_norm: {eps: 1e-6}}`"), "write `norm = rms_norm(eps: 1e-6)`");
    assert_eq!(said("call it as `attention[local](x)`"), "call it as `attention[local](x)`");
    assert_eq!(said("did you mean `heads`?"), "did you mean `heads`?");
    assert_eq!(said("`mask: [{window: 512}, {prefix: 1}]`"), "`mask = [window(512), prefix(1)]`");
    assert_eq!(said("`freeze: [...]` in the recipe"), "`freeze: [...]` in the recipe");
    assert_eq!(said("under `blocks: {a: {...}}`"), "under `blocks { a { ... } }`");
}

/// Fields in parentheses are written as in YAML.
#[test]
fn a_missing_field_of_a_call_is_advised_as_it_is_written_there() {
    assert_eq!(said("window(sinks: 4)", Code::MissingKey, "add `size: ...`"), "add `size: ...`");
    assert_eq!(said("decoder", Code::MissingKey, "add `layers: ...`"), "add `layers = ...`");
}

/// What the parser of the DSL says is about the DSL already.
#[test]
fn errors_of_syntax_are_left_alone() {
    assert_eq!(said("decoder", Code::Syntax, "write `layers: 1`"), "write `layers: 1`");
}
