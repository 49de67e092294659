//! Visits and changes all expressions of a syntax tree.

use super::syntax::{Def, Expr, Item, Stmt, Target};

/// The expressions directly in an expression, borrowed or to be changed.
// A macro, so that what is visited and what is changed cannot differ.
macro_rules! parts {
    ($expr:expr, $iter:ident $(, $mut:ident)?) => {
        match $expr {
            Expr::Value(_)
            | Expr::Constant(_)
            | Expr::Table(_)
            | Expr::Runtime(_)
            | Expr::Import(_)
            | Expr::Name(_)
            | Expr::Int(_)
            | Expr::Float(_)
            | Expr::Str(_)
            | Expr::Bool(_)
            | Expr::None => Vec::new(),
            Expr::Attr(of, _) | Expr::Minus(of) | Expr::Own(of) => vec![&$($mut)? **of],
            Expr::Call(function, arguments) => {
                let values = arguments.$iter().map(|argument| &$($mut)? argument.value);
                std::iter::once(&$($mut)? **function).chain(values).collect()
            }
            Expr::Index(of, items) => std::iter::once(&$($mut)? **of).chain(items).collect(),
            Expr::Slice(from, to) => [from, to].into_iter().flatten().map(|end| &$($mut)? **end).collect(),
            Expr::Binary(_, left, right) => vec![&$($mut)? **left, &$($mut)? **right],
            Expr::Choice { test, then, other } => {
                vec![&$($mut)? **test, &$($mut)? **then, &$($mut)? **other]
            }
            Expr::Tuple(items) | Expr::List(items) => items.$iter().collect(),
            Expr::Each { element, source, .. } => vec![&$($mut)? **element, &$($mut)? **source],
        }
    };
}

/// Walks the expressions of a statement with a method of theirs, and those of the statements in it.
macro_rules! walk {
    ($stmt:expr, $f:ident, $method:ident, $iter:ident, $target:expr) => {
        match $stmt {
            Stmt::Assign { targets, value, .. } => {
                value.$method($f);
                targets.$iter().for_each(|one| $target(one, $f));
            }
            Stmt::Add(target, value) => [target, value].into_iter().for_each(|one| one.$method($f)),
            Stmt::Field { ty, value, .. } => {
                ty.$method($f);
                value.$iter().for_each(|value| value.$method($f));
            }
            Stmt::Expr(value) | Stmt::Return(value) => value.$method($f),
            Stmt::If(branches) => {
                for (test, body) in branches {
                    test.$iter().for_each(|test| test.$method($f));
                    body.$iter().for_each(|stmt| stmt.$method($f));
                }
            }
            Stmt::For { source, body, .. } => {
                source.$method($f);
                body.$iter().for_each(|stmt| stmt.$method($f));
            }
            Stmt::Append { targets, caches, cache, inputs } => {
                targets.$iter().for_each(|one| $target(one, $f));
                [caches, cache].into_iter().for_each(|one| one.$method($f));
                inputs.$iter().for_each(|input| input.$method($f));
            }
        }
    };
}

impl Expr {
    /// Calls `f` with the expression and everything in it.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        let parts: Vec<&Expr> = parts!(self, iter);
        parts.into_iter().for_each(|part| part.visit(f));
    }

    /// Calls `f` with everything in the expression, then with itself, so that what `f` puts in its place is
    /// not changed again.
    pub fn change(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let parts: Vec<&mut Expr> = parts!(self, iter_mut, mut);
        parts.into_iter().for_each(|part| part.change(f));
        f(self);
    }
}

impl Stmt {
    /// Calls `f` with every expression in it.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        let target = |target: &Target, f: &mut dyn FnMut(&Expr)| match target {
            Target::Expr(expr) => expr.visit(f),
            Target::Value(id) => f(&Expr::Value(*id)),
            Target::Nothing => {}
        };
        walk!(self, f, visit, iter, target);
    }

    /// Calls `f` with every expression in it, inner ones first, and turns values that are assigned to into
    /// expressions.
    pub fn change(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let target = |target: &mut Target, f: &mut dyn FnMut(&mut Expr)| {
            if let Target::Value(id) = target {
                *target = Target::Expr(Expr::Value(*id));
            }
            if let Target::Expr(expr) = target {
                expr.change(f);
            }
        };
        walk!(self, f, change, iter_mut, target);
    }
}

impl Def {
    /// Every expression in it.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        let types = self.parameters.iter().flat_map(|p| p.ty.iter().chain(&p.default));
        self.decorators.iter().chain(types).chain([&self.returns]).for_each(|expr| expr.visit(f));
        self.body.iter().for_each(|stmt| stmt.visit(f));
    }
}

impl Item {
    /// Every expression in it.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            Item::Class(class) => {
                class.decorators.iter().chain(&class.base).for_each(|expr| expr.visit(f));
                class.fields.iter().for_each(|stmt| stmt.visit(f));
                class.methods.iter().for_each(|def| def.visit(f));
            }
            Item::Def(def) => def.visit(f),
            Item::Stmt(stmt) => stmt.visit(f),
            // A definition of the runtime says itself what it imports.
            Item::Runtime(_) => {}
        }
    }
}
