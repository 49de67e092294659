//! Conditions on costs: `params > 125e6`, `kv_per_token <= 2 * first.kv_per_token`.
//!
//! ```text
//! condition = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum
//! ```
//! Sums are the expressions of specs; their names are those of [`Name`], of the model that is judged, or
//! with `first.` before them of the first one. Numbers are exact where they are whole.

use std::cmp::Ordering;

use serde::Serialize;

use crate::diag::{Code, Diagnostic};
use crate::report::costs::{Costs, Name};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::expr::{self, Expr, Number, Scope};
use crate::syntax::text;
use crate::syntax::tree::Node;

/// Whether an order of two numbers is the one a mark asks for.
type Test = fn(Ordering) -> bool;

/// How two numbers are compared, longest marks first.
const MARKS: [(&str, Test); 6] = [
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

/// A condition that has been read.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    left: Expr,
    right: Expr,
    holds: Test,
}

/// What came of a condition for one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The condition as written.
    pub condition: String,
    /// The model.
    pub model: String,
    /// Whether it holds.
    pub holds: bool,
    /// The number on the left.
    pub left: f64,
    /// The number on the right.
    pub right: f64,
}

impl Condition {
    /// Reads the argument of one `--fail-if`.
    ///
    /// # Errors
    /// It is no condition, or names no cost; with the place in the argument.
    pub fn parse(sources: &mut SourceMap, argument: &str) -> Result<Condition, Diagnostic> {
        let number = 1 + sources.iter().filter(|(_, s)| s.name.starts_with("--fail-if #")).count();
        let id = sources.add(format!("--fail-if #{number}"), argument);
        let mut sink = crate::diag::Sink::new();
        if !text::check(sources, id, &mut sink) {
            let found = sink.into_sorted().into_iter().next();
            return Err(found.unwrap_or_else(|| wrong(id, 0, argument.len(), "this cannot be read as text")));
        }
        let found = MARKS.iter().filter_map(|(mark, holds)| Some((argument.find(mark)?, *mark, *holds)));
        // The first mark, and of those that begin there the longest, which stands first above.
        let Some((at, mark, holds)) = found.min_by_key(|(at, mark, _)| (*at, usize::MAX - mark.len())) else {
            return Err(wrong(id, 0, argument.len(), "a condition compares two numbers"));
        };
        let behind = at + mark.len();
        if let Some(next) = argument.get(behind..).and_then(|rest| rest.find(['<', '>', '=', '!'])) {
            let (start, end) = (behind + next, behind + next + 1);
            return Err(wrong(id, start, end, "a condition compares only two numbers"));
        }
        let left = side(sources, id, argument, 0..at)?;
        let right = side(sources, id, argument, behind..argument.len())?;
        let condition = Condition { text: argument.trim().to_owned(), left, right, holds };
        // Names are looked up once before any model is measured.
        let none = Costs::default();
        let unknown = |expr: &Expr| {
            let names = Named { own: &none, first: &none };
            let bad = expr.names().into_iter().find(|(name, _)| names.lookup(name).is_none());
            bad.and_then(|_| expr::eval(expr, &names).err())
        };
        match unknown(&condition.left).or_else(|| unknown(&condition.right)) {
            Some(diagnostic) => Err(diagnostic),
            None => Ok(condition),
        }
    }

    /// Whether it holds for a model.
    ///
    /// # Errors
    /// A number that is none, such as a quotient by a cost that is 0.
    pub fn judge(&self, model: &str, own: &Costs, first: &Costs) -> Result<Judged, Diagnostic> {
        let names = Named { own, first };
        let (left, right) = (expr::eval(&self.left, &names)?, expr::eval(&self.right, &names)?);
        Ok(Judged {
            condition: self.text.clone(),
            model: model.to_owned(),
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
    let trimmed = whole.trim();
    if trimmed.is_empty() {
        let place = range.start.min(text.len().saturating_sub(1));
        return Err(wrong(id, place, place + 1, "a number is missing on one side"));
    }
    let start = range.start + (whole.len() - whole.trim_start().len());
    let node = Node::plain(trimmed, Span::new(id, start, start + trimmed.len()));
    expr::parse(sources, &node)
}

fn wrong(id: SourceId, start: usize, end: usize, message: &str) -> Diagnostic {
    Diagnostic::error(Code::Expression, Span::new(id, start, end), message)
        .help("write it like `params > 125e6`, with one of <, <=, >, >=, == and !=")
}

/// The names of conditions.
struct Named<'c> {
    own: &'c Costs,
    first: &'c Costs,
}

impl Scope for Named<'_> {
    fn lookup(&self, name: &str) -> Option<(Number, Option<Span>)> {
        let (costs, name) = match name.strip_prefix("first.") {
            Some(rest) => (self.first, rest),
            None => (self.own, name),
        };
        let cost = Name::ALL.iter().find(|n| n.word() == name)?;
        let value = i128::try_from(costs.of(*cost)).unwrap_or(i128::MAX);
        Some((Number::integer(value), None))
    }

    fn names(&self) -> Vec<String> {
        let own = Name::ALL.iter().map(|name| name.word().to_owned());
        own.chain(Name::ALL.iter().map(|name| format!("first.{}", name.word()))).collect()
    }
}
