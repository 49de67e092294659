//! The names of values in a body.
//!
//! Values keep the author's variable name, which later values may take again (`x = ...`) if the earlier one
//! is no longer needed; otherwise the value's own unique name is used.

use std::collections::{BTreeMap, BTreeSet};

use super::name;
use super::syntax::{Expr, Stmt, Target};
use crate::ir::{Module, ValueId};
use crate::lower::Bug;

/// Gives every value of a body its name. `names` are those of its parameters; the body uses the names in
/// `reserved` for other things.
///
/// # Errors
/// A fault of trafoc: a value is used that has no name.
pub fn name(
    module: &Module,
    mut names: BTreeMap<ValueId, String>,
    statements: &mut [Stmt],
    reserved: &BTreeSet<String>,
) -> Result<(), Bug> {
    // A name is free again when the value that had it is not read any more.
    let live_after = live_after(statements);
    for (statement, live) in statements.iter().zip(&live_after) {
        for id in statement.defined() {
            if names.contains_key(&id) {
                continue;
            }
            let value = module.value(id);
            let free = |candidate: &str| {
                !reserved.contains(candidate)
                    && !names.iter().any(|(other, n)| *other != id && live.contains(other) && n == candidate)
            };
            // The author's word if it is free, as people write `x = ...` again and again.
            let mut chosen = name::variable(&value.variable);
            if !free(&chosen) {
                chosen = name::variable(&value.name);
            }
            // Even the unique name may be one that the body uses for something else.
            while !free(&chosen) {
                chosen.push('_');
            }
            names.insert(id, chosen);
        }
    }
    let mut unknown = None;
    for statement in statements {
        statement.change(&mut |expr| {
            if let Expr::Value(id) = expr {
                match names.get(id) {
                    Some(name) => *expr = Expr::Name(name.clone()),
                    None => unknown = Some(id.0),
                }
            }
        });
    }
    match unknown {
        Some(id) => Err(Bug(format!("value {id} has no name in the emitted code"))),
        None => Ok(()),
    }
}

/// The values that are still needed after each statement.
fn live_after(statements: &[Stmt]) -> Vec<BTreeSet<ValueId>> {
    let mut live = BTreeSet::new();
    let mut after = Vec::new();
    // A value is needed from its definition to its last use, so the walk goes from the last use back.
    for statement in statements.iter().rev() {
        after.push(live.clone());
        for id in statement.defined() {
            live.remove(&id);
        }
        live.extend(used(statement));
    }
    after.reverse();
    after
}

/// The values that a statement uses, without those it only assigns to.
fn used(statement: &Stmt) -> BTreeSet<ValueId> {
    let mut used = BTreeSet::new();
    let mut add = |expr: &Expr| {
        if let Expr::Value(id) = expr {
            used.insert(*id);
        }
    };
    match statement {
        Stmt::Assign { targets, value, .. } => {
            value.visit(&mut add);
            for target in targets {
                if let Target::Expr(expr) = target {
                    expr.visit(&mut add);
                }
            }
        }
        Stmt::Append { inputs, .. } => inputs.iter().for_each(|input| input.visit(&mut add)),
        // Here what is assigned to counts as used, too: a loop reads in its next round what its body has set.
        Stmt::Add(..)
        | Stmt::Field { .. }
        | Stmt::Expr(_)
        | Stmt::Return(_)
        | Stmt::If(_)
        | Stmt::For { .. } => statement.visit(&mut add),
    }
    used
}
