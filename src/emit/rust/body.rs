//! The statements of a function: decides which values are moved or cloned, and what they are called.
//!
//! Values keep the author's variable name, which later values may take again (`let x = ...`) if the earlier
//! one is no longer needed; otherwise the value's own unique name is used.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Piece, called, named};
use super::name;
use crate::ir::{Module, ValueId};
use crate::lower::Bug;

/// One statement of a body.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `let time = ...;`, a variable that is not a value of the graph.
    Local(String, Code),
    /// `let value = ...;` or `let (a, _) = ...;`
    Let(Vec<Option<ValueId>>, Code),
    /// `let mut value = ...;`, which a loop then assigns to.
    Var(ValueId, Code),
    /// `for .. in .. { .. }`: text and code in order. Values in it are cloned or referred to by name.
    Loop(Code),
    /// The expression that the function returns, which is its last.
    Return(Code),
}

impl Statement {
    /// The code of the statement's value.
    pub fn code(&self) -> &Code {
        match self {
            Statement::Local(_, code)
            | Statement::Let(_, code)
            | Statement::Var(_, code)
            | Statement::Loop(code)
            | Statement::Return(code) => code,
        }
    }

    fn code_mut(&mut self) -> &mut Code {
        match self {
            Statement::Local(_, code)
            | Statement::Let(_, code)
            | Statement::Var(_, code)
            | Statement::Loop(code)
            | Statement::Return(code) => code,
        }
    }

    fn defined(&self) -> Vec<ValueId> {
        match self {
            Statement::Let(values, _) => values.iter().flatten().copied().collect(),
            Statement::Var(value, _) => vec![*value],
            Statement::Local(..) | Statement::Loop(_) | Statement::Return(_) => Vec::new(),
        }
    }
}

/// The statements as Rust without open values. Parameters keep their own names; the body uses the names in
/// `reserved` for other things.
///
/// # Errors
/// A fault of trafoc: a value is used that has no name.
pub fn write(
    module: &Module,
    parameters: &[ValueId],
    mut statements: Vec<Statement>,
    reserved: &BTreeSet<String>,
) -> Result<Code, Bug> {
    let live_after = settle_moves(&mut statements);
    let names = choose_names(module, parameters, &statements, &live_after, reserved);
    let mut lines = Vec::new();
    for (statement, scope) in statements.iter().zip(&names) {
        let code = statement.code();
        // The names are those from before the statement: `let x = f(x)` reads the earlier `x`.
        let code = Code { pieces: named(&code.pieces, &scope.before)?, strength: code.strength };
        let pattern = match statement {
            Statement::Local(name, _) => Some(name.clone()),
            Statement::Let(values, _) => Some(match values.as_slice() {
                [Some(one)] => called(&scope.after, *one)?,
                several => {
                    let name = |value: &Option<ValueId>| match value {
                        Some(value) => called(&scope.after, *value),
                        None => Ok("_".to_owned()),
                    };
                    let names = several.iter().map(name).collect::<Result<Vec<_>, Bug>>()?;
                    format!("({})", names.join(", "))
                }
            }),
            Statement::Var(value, _) => Some(format!("mut {}", called(&scope.after, *value)?)),
            Statement::Loop(_) | Statement::Return(_) => None,
        };
        lines.push(match pattern {
            Some(pattern) => Code::text(format!("let {pattern} = ")).join(code).then(";\n"),
            None => code.then("\n"),
        });
    }
    Ok(Code::all(lines))
}

/// Turns every [`Piece::Take`] into a move or a clone, going backwards from the end. Returns the values
/// that are still needed after each statement.
fn settle_moves(statements: &mut [Statement]) -> Vec<BTreeSet<ValueId>> {
    let mut live = BTreeSet::new();
    let mut after = Vec::new();
    for statement in statements.iter_mut().rev() {
        after.push(live.clone());
        for value in statement.defined() {
            live.remove(&value);
        }
        settle(&mut statement.code_mut().pieces, &mut live);
    }
    after.reverse();
    after
}

fn settle(pieces: &mut [Piece], live: &mut BTreeSet<ValueId>) {
    // Rust evaluates the pieces in order, so only the last use of a value may move it.
    for piece in pieces.iter_mut().rev() {
        match piece {
            Piece::Text(_) | Piece::Item(..) => {}
            // Backwards, the first use that is met is the last one to run.
            Piece::Take(value) => {
                let value = *value;
                *piece = if live.insert(value) { Piece::Move(value) } else { Piece::Copy(value) };
            }
            Piece::Move(value) | Piece::Copy(value) | Piece::Name(value) => {
                live.insert(*value);
            }
            // Only one of the arms runs, so each may move the same value; before them, every value that one
            // of them uses is needed.
            Piece::Arms(arms) => {
                let mut before = live.clone();
                for arm in arms {
                    let mut here = live.clone();
                    settle(arm, &mut here);
                    before.extend(here);
                }
                *live = before;
            }
        }
    }
}

/// The names of values while a statement is evaluated, and after it.
struct Scope {
    before: BTreeMap<ValueId, String>,
    after: BTreeMap<ValueId, String>,
}

fn choose_names(
    module: &Module,
    parameters: &[ValueId],
    statements: &[Statement],
    live_after: &[BTreeSet<ValueId>],
    reserved: &BTreeSet<String>,
) -> Vec<Scope> {
    let mut names: BTreeMap<ValueId, String> = BTreeMap::new();
    for id in parameters {
        names.insert(*id, parameter(&module.value(*id).name, reserved));
    }
    let mut scopes = Vec::new();
    for (statement, live) in statements.iter().zip(live_after) {
        let before = names.clone();
        for id in statement.defined() {
            let value = module.value(id);
            let free = |candidate: &str| {
                !reserved.contains(candidate)
                    && !names.iter().any(|(other, n)| *other != id && live.contains(other) && n == candidate)
            };
            // The author's word if it is free: `let x = ..` again and again is how a person writes a residual
            // stream.
            let mut chosen = name::variable(&value.variable);
            if !free(&chosen) {
                chosen = name::variable(&value.name);
            }
            // The unique name of a value may be one that the body uses for something else.
            while !free(&chosen) {
                chosen.push('_');
            }
            names.insert(id, chosen);
        }
        scopes.push(Scope { before, after: names.clone() });
    }
    scopes
}

/// The name of a parameter, different from the names that the body uses for other things.
pub fn parameter(value: &str, reserved: &BTreeSet<String>) -> String {
    let mut chosen = name::variable(value);
    while reserved.contains(&chosen) {
        chosen.push('_');
    }
    chosen
}
