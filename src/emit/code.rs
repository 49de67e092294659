//! Fragments of Rust whose uses of values are still open.
//!
//! An op becomes a [`Code`]: text with holes where values go. Whether a hole is filled by `x` or by
//! `x.clone()`, and what `x` is called there, is known only once the whole body stands;
//! [`super::body`] decides it.

use std::collections::BTreeSet;

use crate::ir::ValueId;

/// A part of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Rust as it is.
    Text(String),
    /// Takes a value: a move where it is used for the last time, else a clone.
    Take(ValueId),
    /// A value taken for the last time.
    Move(ValueId),
    /// Takes a value that is needed again (in a loop, say).
    Copy(ValueId),
    /// The name of a value that is looked at or assigned, not taken.
    Name(ValueId),
    /// Alternatives, of which one runs; each carries the syntax around it.
    Arms(Vec<Vec<Piece>>),
}

/// How tightly a fragment holds together, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`, `&a`
    Unary,
    /// Names, calls, literals, blocks that end a statement.
    Postfix,
}

/// A fragment of Rust.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// Its parts in order, which is also the order they are evaluated in.
    pub pieces: Vec<Piece>,
    /// What it may stand next to without parentheses.
    pub strength: Strength,
}

impl Code {
    /// Text that holds together like a name or a call.
    pub fn text(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Text(text.into())], strength: Strength::Postfix }
    }

    /// The number, if this is one written out.
    pub fn integer(&self) -> Option<u64> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => text.replace('_', "").parse().ok(),
            _ => None,
        }
    }

    /// A value, moved or cloned.
    pub fn take(value: ValueId) -> Self {
        Self { pieces: vec![Piece::Take(value)], strength: Strength::Postfix }
    }

    /// A value that must be cloned.
    pub fn copy(value: ValueId) -> Self {
        Self { pieces: vec![Piece::Copy(value)], strength: Strength::Postfix }
    }

    /// A value's name.
    pub fn name(value: ValueId) -> Self {
        Self { pieces: vec![Piece::Name(value)], strength: Strength::Postfix }
    }

    /// `callee(args)`
    pub fn call(callee: &str, args: impl IntoIterator<Item = Code>) -> Self {
        Self::text(callee).arguments(args)
    }

    /// `self.method(args)`
    pub fn method(self, method: &str, args: impl IntoIterator<Item = Code>) -> Self {
        self.at_least(Strength::Postfix).then(format!(".{method}")).arguments(args)
    }

    /// `self + other`
    pub fn plus(self, other: Code) -> Self {
        self.infix(" + ", other, Strength::Sum, Strength::Product)
    }

    /// `self * other`
    pub fn times(self, other: Code) -> Self {
        self.infix(" * ", other, Strength::Product, Strength::Unary)
    }

    /// `self / other`
    pub fn over(self, other: Code) -> Self {
        self.infix(" / ", other, Strength::Product, Strength::Unary)
    }

    /// `[a, b]`, `(a, b)`: fragments in brackets.
    pub fn list(open: &str, items: impl IntoIterator<Item = Code>, close: &str) -> Self {
        let mut list = Self::text(open);
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                list = list.then(", ");
            }
            list.pieces.extend(item.pieces);
        }
        list.then(close)
    }

    /// The fragment followed by text that does not change how it holds together.
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// The fragment followed by another.
    pub fn join(mut self, other: Code) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// About how many characters it will take.
    pub fn width(&self) -> usize {
        width(&self.pieces)
    }

    fn arguments(self, args: impl IntoIterator<Item = Code>) -> Self {
        let list = Self::list("(", args, ")");
        let mut call = self.join(list);
        call.strength = Strength::Postfix;
        call
    }

    fn infix(self, sign: &str, other: Code, here: Strength, right: Strength) -> Self {
        let mut code = self.at_least(here).then(sign).join(other.at_least(right));
        code.strength = here;
        code
    }

    fn at_least(self, wanted: Strength) -> Self {
        if self.strength >= wanted { self } else { Self::text("(").join(self).then(")") }
    }
}

fn width(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::Take(_) | Piece::Move(_) | Piece::Name(_) => 4,
        Piece::Copy(_) => 12,
        Piece::Arms(arms) => arms.iter().map(|arm| width(arm)).sum(),
    };
    pieces.iter().map(of).sum()
}

/// The functions that some Rust calls by their plain names.
pub fn calls(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = code;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let is_method = rest.get(..at).is_some_and(|before| before.ends_with('.') && !before.ends_with(".."));
        rest = rest.get(at..).unwrap_or("");
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        rest = rest.get(name.len()..).unwrap_or("");
        if rest.starts_with('(') && !is_method {
            names.insert(name);
        }
    }
    names
}
