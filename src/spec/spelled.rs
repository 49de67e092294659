//! A block's equation as an expanded spec has it, in which no number has a name.

use indexmap::IndexSet;

use crate::field::Context;
use crate::parts::own::plan::MEMORY;
use crate::syntax::equation::{Equation, Sign, Statement, Term, TermKind};
use crate::syntax::expr::{Expr, ExprKind, Number, Scope as _};

/// What the names of an equation mean.
pub(super) struct Spelling<'s, 'a> {
    /// Those of tensors, which hide numbers of the same name.
    pub variables: &'s IndexSet<String>,
    /// The numbers that have names.
    pub cx: &'s Context<'a>,
}

impl Spelling<'_, '_> {
    /// The text, which reads back as an equal wiring. It begins with the parameters unless these have the usual names.
    pub fn text(&self, equation: &Equation, stream: &str, memory: Option<&str>) -> String {
        let usual = stream == "x" && memory.is_none_or(|memory| memory == MEMORY);
        let params: Vec<&str> = [stream].into_iter().chain(memory).collect();
        let header = if usual { String::new() } else { format!("({}):\n", params.join(", ")) };
        // An expanded spec has no `let`, so the names of numbers are replaced by their values.
        let line = |s: &Statement| format!("{} = {}", s.target, self.with_numbers(&s.value));
        let lines: Vec<String> = equation.body.iter().map(line).collect();
        format!("{header}{}", lines.join("\n"))
    }

    fn with_numbers(&self, term: &Term) -> Term {
        let number = |value: Number| {
            let (value, span) = (value.to_f64(), term.span);
            // As a float it prints as one literal; a ratio may print as `1/3`. No literal has a sign.
            let kind = TermKind::Number(Expr { kind: ExprKind::Number(Number::Float(value.abs())), span });
            match value.is_sign_negative() {
                true => TermKind::Sum(vec![(Sign::Minus, Term { kind, span })]),
                false => kind,
            }
        };
        let all = |terms: &[Term]| terms.iter().map(|t| self.with_numbers(t)).collect::<Vec<Term>>();
        let kind = match &term.kind {
            TermKind::Name(name) if self.variables.contains(name) => term.kind.clone(),
            TermKind::Name(name) => {
                self.cx.lookup(name).map_or_else(|| term.kind.clone(), |(value, _)| number(value))
            }
            TermKind::Number(expression) => {
                self.cx.value(expression).map_or_else(|_| term.kind.clone(), number)
            }
            TermKind::Text(_) => term.kind.clone(),
            TermKind::Call { part, label, args, named } => TermKind::Call {
                part: part.clone(),
                label: label.clone(),
                args: all(args),
                named: named.clone(),
            },
            TermKind::Sum(terms) => {
                TermKind::Sum(terms.iter().map(|(sign, t)| (*sign, self.with_numbers(t))).collect())
            }
            TermKind::Product(factors) => TermKind::Product(all(factors)),
            TermKind::Quotient(over, under) => {
                TermKind::Quotient(Box::new(self.with_numbers(over)), Box::new(self.with_numbers(under)))
            }
        };
        Term { kind, span: term.span }
    }
}
