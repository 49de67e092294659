//! Checks names against the model they are for: every row must lead to a parameter, and every formula must
//! have a value.
//!
//! This is for a spec's own `weights`, where a row that leads nowhere is a mistake. The rows of a family
//! are for many models, and in each model some of them lead nowhere.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::formula::{Formula, Scope, eval};
use super::{Module, Names, Pattern, Row};
use crate::diag::count::counted;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Sink};
use crate::ir::Graph;
use crate::ir::paths::{Astray, FoldedParameter, folded, leads};
use crate::source::Span;

/// The values that formulas in a spec's `weights` can use: those of the spec, by path.
#[derive(Clone, Debug, Default)]
pub struct Keys(pub IndexMap<String, Json>);

impl Scope for Keys {
    fn key(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }
    fn table(&self, _: &str) -> Option<&Map<String, Json>> {
        None
    }
}

/// Reports every row whose variables are not those of the parameters that it names, which needs no graph. Rows under a condition
/// are left out, because the model may not use them.
pub fn check_variables(names: &Names, sink: &mut Sink) {
    for row in names.rows.iter().chain(&names.ties).filter(|row| row.when.is_none()) {
        row.parameters.iter().for_each(|pattern| variables(row, pattern, sink));
    }
}

/// Reports every row that names a parameter which the graph does not have, or whose layout is impossible.
pub fn check(names: &Names, graph: &Graph, keys: &Keys, sink: &mut Sink) {
    let parameters = folded(graph);
    let check = Check { graph, parameters: &parameters, keys };
    let (reversed, others): (Vec<&Row>, Vec<&Row>) =
        names.rows.iter().chain(&names.ties).partition(|row| check.is_reversed(row));
    if let Some(diagnostic) = check.reversed(&reversed) {
        sink.push(diagnostic);
    }
    // The outermost first: within one that does not exist there is none.
    let mut wrong: Vec<Span> = Vec::new();
    let is_in = |wrong: &[Span], place: Span| wrong.iter().any(|rows| rows.contains(place));
    for module in &names.modules {
        let has_rows = others.iter().any(|row| module.rows.contains(row.span));
        if has_rows && !is_in(&wrong, module.place) && !check.is_module(&module.path) {
            sink.push(check.unknown_module(module));
            wrong.push(module.rows);
        }
    }
    for row in others.into_iter().filter(|row| !is_in(&wrong, row.span)) {
        check.row(row, sink);
    }
}

struct Check<'a> {
    graph: &'a Graph,
    parameters: &'a [FoldedParameter],
    keys: &'a Keys,
}

impl Check<'_> {
    fn is_parameter(&self, pattern: &Pattern) -> bool {
        self.parameters.iter().any(|p| pattern.fits(&p.path))
    }

    /// The paths of as many words as a pattern has with which those of parameters begin.
    fn modules(&self, pattern: &Pattern) -> BTreeSet<String> {
        let count = pattern.to_string().split('.').count();
        let begin = |path: &str| {
            let words: Vec<&str> = path.split('.').collect();
            // The last word is that of a parameter.
            Some(words.get(..count).filter(|begin| begin.len() < words.len())?.join("."))
        };
        self.parameters.iter().filter_map(|p| begin(&p.path)).collect()
    }

    fn is_module(&self, pattern: &Pattern) -> bool {
        // Without a path it is the model itself.
        pattern.to_string().is_empty() || self.modules(pattern).iter().any(|path| pattern.fits(path))
    }

    /// One error for an `into` that leads nowhere, instead of one for each of its rows.
    fn unknown_module(&self, module: &Module) -> Diagnostic {
        let known = self.modules(&module.path);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message = format!("the model has no module `{}`", module.path);
        Diagnostic::error(Code::UnknownName, module.place, message).help(meant(&module.path, &known))
    }

    /// Whether a row names the parameter where the tensor belongs, and the tensor where the parameter does.
    fn is_reversed(&self, row: &Row) -> bool {
        !row.parameters.iter().any(|pattern| self.is_parameter(pattern)) && self.is_parameter(&row.tensor)
    }

    /// One error for all rows that are written the wrong way round, since whoever writes one writes all so.
    fn reversed(&self, rows: &[&Row]) -> Option<Diagnostic> {
        let (first, rest) = rows.split_first()?;
        let (theirs, parameter) = (first.parameters.first()?, &first.tensor);
        let more = match rest.len() as u64 {
            0 => String::new(),
            more => format!("; {} more {} too", more, if more == 1 { "row is" } else { "rows are" }),
        };
        let message = format!(
            "this row is the wrong way round: `{parameter}` is a parameter of the model, and `{theirs}` is not{more}"
        );
        Some(Diagnostic::error(Code::UnknownName, first.span, message).help(format!(
            "the name in the file comes first, and its name in the model second: `{theirs}: {parameter}`"
        )))
    }

    fn row(&self, row: &Row, sink: &mut Sink) {
        let [groups_at, when_at] = row.formulas;
        if let Some(formula) = &row.when {
            match self.value(formula, when_at, sink) {
                // After an error in its condition the row is checked all the same.
                Some(Json::Bool(true)) | None => {}
                // A row that this model does not use may name parameters that it does not have.
                Some(Json::Bool(false)) => return,
                Some(other) => {
                    let message = format!("expected a condition, found `{other}`");
                    sink.push(Diagnostic::error(Code::WrongKind, when_at, message));
                }
            }
        }
        let groups = row.groups.as_ref().and_then(|formula| self.groups(formula, groups_at, sink));
        for (pattern, place) in row.parameters.iter().zip(&row.places) {
            let found: Vec<&FoldedParameter> =
                self.parameters.iter().filter(|p| pattern.fits(&p.path)).collect();
            if found.is_empty() {
                sink.push(self.unknown(
                    pattern,
                    Diagnostic::error(
                        Code::UnknownName,
                        *place,
                        format!("the model has no parameter `{pattern}`"),
                    ),
                ));
            } else if let Err(why) = leads(self.graph, &pattern.to_string()) {
                sink.push(astray(pattern, *place, why));
            }
            variables(row, pattern, sink);
            let uneven = groups.and_then(|n| {
                let rows = found.iter().filter_map(|p| p.parameter.shape.first());
                rows.copied().find(|rows| !rows.is_multiple_of(n)).map(|rows| (n, rows))
            });
            if let Some((n, rows)) = uneven {
                let message = format!(
                    "{} of `{pattern}` cannot be divided into {}",
                    counted(rows, "row"),
                    counted(n, "group")
                );
                sink.push(Diagnostic::error(Code::NotDivisible, *place, message));
            }
        }
    }

    fn groups(&self, formula: &Formula, place: Span, sink: &mut Sink) -> Option<u64> {
        let value = self.value(formula, place, sink)?;
        let groups = value.as_u64().filter(|n| *n > 0);
        if groups.is_none() {
            let found = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let message = format!("expected a number of groups, found `{found}`");
            let help = "a number, or a formula that begins with `=`, such as `= decoder.attention.heads`";
            sink.push(Diagnostic::error(Code::WrongKind, place, message).help(help));
        }
        groups
    }

    /// The value of a formula, if all names that it uses exist.
    fn value(&self, formula: &Formula, place: Span, sink: &mut Sink) -> Option<Json> {
        // Names are checked first, because `eval` takes an absent key for null.
        let mut is_wrong = false;
        formula.visit(&mut |f| {
            let diagnostic = match f {
                Formula::Key(name) if self.keys.key(name).is_none() => {
                    let message = format!("the spec has no `{name}`");
                    let known: Vec<&String> = self.keys.0.keys().collect();
                    Diagnostic::error(Code::UnknownName, place, message).help(match suggest(name, &known) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "`trafoc expand` shows every key of a spec by its path".to_owned(),
                    })
                }
                // A spec has no tables of words; only families declare them.
                Formula::Entry(name, _) => {
                    let message = format!("there is no table or function `{name}`");
                    Diagnostic::error(Code::UnknownName, place, message)
                }
                _ => return,
            };
            is_wrong = true;
            sink.push(diagnostic);
        });
        if is_wrong {
            return None;
        }
        let value = eval(formula, self.keys);
        value.map_err(|why| sink.push(Diagnostic::error(Code::Expression, place, why.to_string()))).ok()
    }

    fn unknown(&self, pattern: &Pattern, diagnostic: Diagnostic) -> Diagnostic {
        let mut known: BTreeSet<&str> = self.parameters.iter().map(|p| p.path.as_str()).collect();
        for p in self.parameters {
            // A row may leave out the last word of a name.
            known.extend([".weight", ".bias"].iter().filter_map(|last| p.path.strip_suffix(last)));
        }
        let known: Vec<&str> = known.into_iter().collect();
        diagnostic.help(meant(pattern, &known))
    }
}

/// The variables of the tensor's name and of the parameter's path must be the same. Otherwise a tensor
/// would belong to several parameters, or a parameter to several tensors.
fn variables(row: &Row, pattern: &Pattern, sink: &mut Sink) {
    let (left, right) = (row.tensor.variables(), pattern.variables());
    let (stack, join, tensor) = (row.stack.as_deref(), row.join.as_deref(), &row.tensor);
    let message = if let Some(name) = right.iter().find(|n| !left.contains(n) && stack != Some(n)) {
        format!("the variable `{{{name}}}` of `{pattern}` is missing in the tensor's name `{tensor}`")
    } else if let Some(name) = left.iter().find(|n| !right.contains(n) && join != Some(n)) {
        format!("the variable `{{{name}}}` of the tensor's name `{tensor}` is missing in `{pattern}`")
    } else if let Some(name) = join.filter(|n| !left.contains(n) || right.contains(n)) {
        format!(
            "the variable `{{{name}}}`, which is joined, must be in `{tensor}` and not in \
            `{pattern}`"
        )
    } else if let Some(name) = stack.filter(|n| !right.contains(n) || left.contains(n)) {
        format!(
            "the variable `{{{name}}}`, which is stacked, must be in `{pattern}` and not in \
            `{tensor}`"
        )
    } else {
        return;
    };
    sink.push(Diagnostic::error(Code::UnknownName, row.span, message));
}

/// What was probably meant by a path that is none of the known ones.
fn meant(pattern: &Pattern, known: &[&str]) -> String {
    // Numbers and variables are compared as `*`, so that only the other words count.
    let wanted = starred(&pattern.to_string());
    // A word alone may be meant for the one that says that a tensor is no parameter.
    let last = |path: &'_ str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let words: Vec<String> = known.iter().map(|path| last(path)).chain(["none".to_owned()]).collect();
    if suggest(&last(&wanted), &words).as_deref() == Some("none") {
        return "did you mean `none`, for a tensor that is no parameter?".to_owned();
    }
    match shortened(&wanted, known).or_else(|| suggest(&wanted, known)) {
        // Rows have variables where paths have `*`.
        Some(near) => format!("did you mean `{}`?", near.replacen('*', "{i}", 1)),
        None => "`trafoc print graph` lists every parameter".to_owned(),
    }
}

/// The only one of the paths whose words begin as those of a shorter one: `attention.query` for `attention.q`.
fn shortened(wanted: &str, known: &[&str]) -> Option<String> {
    let is_longer = |path: &&&str| {
        let mut pairs = wanted.split('.').zip(path.split('.'));
        let begins = pairs.all(|(word, own)| !word.is_empty() && own.starts_with(word));
        begins && wanted.split('.').count() == path.split('.').count()
    };
    let mut longer = known.iter().filter(is_longer);
    match (longer.next(), longer.next()) {
        (Some(only), None) => Some((*only).to_owned()),
        (_, _) => None,
    }
}

/// The error of a path with the number of a block that the model does not have, or that is of another kind.
fn astray(pattern: &Pattern, place: Span, why: Astray) -> Diagnostic {
    let message = format!("the model has no parameter `{pattern}`");
    let help = match why {
        Astray::Beyond { stack, blocks } => {
            let last = blocks.saturating_sub(1);
            format!("`{stack}` has {}, and the last one is `{stack}.{last}`", counted(blocks, "block"))
        }
        Astray::Other => {
            "other blocks have such a parameter; `trafoc print graph` lists every one".to_owned()
        }
    };
    Diagnostic::error(Code::UnknownName, place, message).help(help)
}

/// Replaces variables and numbers by `*`: `decoder.blocks.{i}.norm` → `decoder.blocks.*.norm`.
fn starred(text: &str) -> String {
    let is_any = |w: &str| w.starts_with('{') || w.bytes().all(|b| b.is_ascii_digit());
    let words = text.split('.').map(|w| if is_any(w) { "*" } else { w });
    words.collect::<Vec<_>>().join(".")
}
