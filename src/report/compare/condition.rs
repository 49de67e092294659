//! Conditions on costs: `params > 125M`, `kv_per_token <= 2 * first.kv_per_token`.
//!
//! ```text
//! condition = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum
//! ```
//! Sums are the expressions of specs, whose numbers may have units here: `350M`, `24 GiB`. Their names are
//! those of [`Name`]: a cost of the model that is checked, or with the prefix `first.` a cost of the first
//! model. Whole numbers are exact.

use std::cmp::{Ordering, Reverse};

use schemars::JsonSchema;
use serde::Serialize;

use crate::diag::{Code, Diagnostic};
use crate::report::costs::{Costs, Name, Unit};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::expr::{self, Expr, Number, Scope};
use crate::syntax::text;
use crate::syntax::token::bytes_in;
use crate::syntax::tree::Node;

/// Whether the order of two numbers satisfies a comparison operator.
type Test = fn(Ordering) -> bool;

/// The comparison operators, longest first.
const MARKS: [(&str, Test); 6] = [
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

/// A condition that has been parsed, and whose names are known to be those of costs.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    left: Expr,
    right: Expr,
    holds: Test,
}

/// The result of a condition for one model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The condition as the author wrote it, without blanks around it.
    pub condition: String,
    /// The name of the model.
    pub model: String,
    /// Whether the condition holds.
    pub holds: bool,
    /// The value of the left side, rounded to a float; the condition itself is judged exactly.
    pub left: f64,
    /// The value of the right side, rounded likewise.
    pub right: f64,
}

impl Condition {
    /// Parses the argument of one `--fail-if`.
    ///
    /// # Errors
    /// The argument is not a condition, or names an unknown cost; the diagnostic shows the place in the
    /// argument.
    pub fn parse(sources: &mut SourceMap, argument: &str) -> Result<Condition, Diagnostic> {
        // Conditions are numbered, so that a message shows which of several it is about.
        let before = sources.iter().filter(|(_, s)| s.name.starts_with("--fail-if #")).count();
        let id = sources.add(format!("--fail-if #{}", before.saturating_add(1)), argument);
        let mut sink = crate::diag::Sink::new();
        if !text::check(sources, id, &mut sink) {
            let found = sink.into_sorted().into_iter().next();
            return Err(found.unwrap_or_else(|| wrong(id, 0, argument.len(), "this value is not valid text")));
        }
        let found = MARKS.iter().filter_map(|(mark, holds)| Some((argument.find(mark)?, *mark, *holds)));
        // The first operator; of several that begin there, the longest, which comes first in the table.
        let Some((at, mark, holds)) = found.min_by_key(|(at, mark, _)| (*at, Reverse(mark.len()))) else {
            return Err(wrong(id, 0, argument.len(), "a condition must compare two numbers"));
        };
        let after = at.saturating_add(mark.len());
        if let Some(next) = argument.get(after..).and_then(|rest| rest.find(['<', '>', '=', '!'])) {
            let start = after.saturating_add(next);
            return Err(wrong(
                id,
                start,
                start.saturating_add(1),
                "a condition can compare only two numbers",
            ));
        }
        let left = side(sources, id, argument, 0..at)?;
        let right = side(sources, id, argument, after..argument.len())?;
        let condition = Condition { text: argument.trim().to_owned(), left, right, holds };
        // Names are looked up once before any model is measured, so that a misspelt one is reported early.
        let none = Costs::default();
        let unknown = |expr: &Expr| {
            let names = Named { own: &none, first: &none };
            let bad = expr.names().into_iter().find(|(name, _)| names.lookup(name).is_none());
            // Evaluated only for the message about an unknown name: no cost is known yet, so a quotient would
            // divide by zero.
            bad.and_then(|_| expr::eval(expr, &names).err())
        };
        match unknown(&condition.left).or_else(|| unknown(&condition.right)) {
            Some(diagnostic) => Err(diagnostic),
            None => condition.refuse_bytes(id, argument).map_or(Ok(condition), Err),
        }
    }

    /// The error of a unit of bytes where no cost is a number of bytes.
    fn refuse_bytes(&self, id: SourceId, argument: &str) -> Option<Diagnostic> {
        let none = Costs::default();
        let named = [self.left.names(), self.right.names()].concat();
        let costs = named.iter().filter_map(|(name, _)| Named { own: &none, first: &none }.of(name).2);
        // Without any cost nothing says what the numbers are.
        let all: Vec<Name> = costs.collect();
        let cost = all.first().filter(|_| all.iter().all(|cost| cost.unit() != Unit::Bytes))?;
        no_bytes(*cost, argument, id)
    }

    /// Evaluates the condition for a model.
    ///
    /// # Errors
    /// A side has no value, as when it divides by a cost that is 0.
    pub fn judge(&self, model: &str, own: &Costs, first: &Costs) -> Result<Verdict, Diagnostic> {
        let names = Named { own, first };
        for (name, place) in [self.left.names(), self.right.names()].concat() {
            let (costs, is_first, cost) = names.of(name);
            if cost.is_some_and(|cost| costs.get(cost).is_none()) {
                let who = if is_first { "the first spec".to_owned() } else { format!("`{model}`") };
                let message = format!("{who} has no `{name}`");
                return Err(Diagnostic::error(Code::UnknownName, place, message).help(
                    "leave the condition out for it; a model of images has no tokens, and an encoder no cache",
                ));
            }
        }
        let (left, right) = (expr::eval(&self.left, &names)?, expr::eval(&self.right, &names)?);
        Ok(Verdict {
            condition: self.text.clone(),
            model: model.to_owned(),
            // Exactly, not as floats: two parameter counts may differ in their last digit only.
            holds: (self.holds)(left.compare(right)),
            left: left.to_f64(),
            right: right.to_f64(),
        })
    }
}

fn side(
    sources: &SourceMap,
    id: SourceId,
    text: &str,
    range: std::ops::Range<usize>,
) -> Result<Expr, Diagnostic> {
    let whole = text.get(range.clone()).unwrap_or("");
    // The place of a message must not include the blanks around the operator.
    let trimmed = whole.trim();
    if trimmed.is_empty() {
        // An empty side has no place of its own, so the nearest character is shown.
        let place = range.start.min(text.len().saturating_sub(1));
        let place = sources.inside(Span::new(id, place, place.saturating_add(1))).range();
        return Err(wrong(id, place.start, place.end, "one side of the comparison is empty"));
    }
    let blank = whole.len().saturating_sub(whole.trim_start().len());
    let start = range.start.saturating_add(blank);
    let node = Node::plain(trimmed, Span::new(id, start, start.saturating_add(trimmed.len())));
    expr::parse_amount(sources, &node)
}

fn wrong(id: SourceId, start: usize, end: usize, message: &str) -> Diagnostic {
    Diagnostic::error(Code::Expression, Span::new(id, start, end), message)
        .help("write it like `params > 125M`, with one of <, <=, >, >=, == and !=")
}

/// The error of an amount for a cost that is no number of bytes, if it has a unit of these.
pub fn no_bytes(cost: Name, text: &str, id: SourceId) -> Option<Diagnostic> {
    if cost.unit() == Unit::Bytes {
        return None;
    }
    let (place, count) = bytes_in(text)?;
    let written = text.get(place.clone()).unwrap_or(text);
    let message = format!("`{written}` is a number of bytes, which `{}` is not", cost.word());
    let span = Span::new(id, place.start, place.end);
    Some(Diagnostic::error(Code::Expression, span, message).help(format!("write {count}")))
}

/// Looks up the names in conditions.
struct Named<'c> {
    own: &'c Costs,
    first: &'c Costs,
}

impl Named<'_> {
    /// The costs that a name is looked up in, whether they are those of the first model, and which one it is.
    fn of(&self, name: &str) -> (&Costs, bool, Option<Name>) {
        let (costs, is_first, own) = match name.strip_prefix("first.") {
            Some(rest) => (self.first, true, rest),
            None => (self.own, false, name),
        };
        (costs, is_first, Name::ALL.iter().copied().find(|n| n.word() == own))
    }
}

impl Scope for Named<'_> {
    fn lookup(&self, name: &str) -> Option<(Number, Option<Span>)> {
        let (costs, _, cost) = self.of(name);
        // A misspelt name is no error here: the evaluation reports it together with similar names.
        let cost = cost?;
        // Numbers of expressions are signed, so a cost beyond 2^127 counts as that.
        let value = i128::try_from(costs.of(cost)).unwrap_or(i128::MAX);
        Some((Number::integer(value), None))
    }

    fn names(&self) -> Vec<String> {
        let own = Name::ALL.iter().map(|name| name.word().to_owned());
        own.chain(Name::ALL.iter().map(|name| format!("first.{}", name.word()))).collect()
    }
}
