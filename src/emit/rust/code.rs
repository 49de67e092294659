//! Fragments of Rust whose uses of values are still open, and which know what they refer to.
//!
//! An op becomes a [`Code`]: text with holes where values go. Whether a hole is filled by `x` or by
//! `x.clone()`, and what `x` is called there, is known only when the whole body is written; [`super::body`]
//! decides it. A name that the file must define or import is a separate piece, so what a file needs follows
//! from its finished text ([`Code::items`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::emit::program::constants::{ConstantId, TableId};
use crate::ir::ValueId;
use crate::lower::Bug;

/// Something outside of a fragment that it refers to by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A named number of the program.
    Constant(ConstantId),
    /// A table of the program.
    Table(TableId),
    /// A path to import.
    Import(&'static str),
    /// A function or type of the crate of kernels.
    Kernel(&'static str),
    /// A helper at the end of the file.
    Helper(Helper),
    /// A module that is a function.
    Function(String),
}

/// A helper that creates a projection, at the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helper {
    /// With a bias of zeros.
    Linear,
    /// Without a bias: the layer has only a weight.
    LinearNoBias,
}

/// A part of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Rust as it is.
    Text(String),
    /// The name of an item.
    Item(Item, String),
    /// Takes a value: moves it if it is used for the last time, otherwise clones it.
    Take(ValueId),
    /// Moves a value that is not used again.
    Move(ValueId),
    /// Clones a value that is needed again (in a loop, for example).
    Copy(ValueId),
    /// The name of a value that is borrowed or assigned.
    Name(ValueId),
    /// Alternatives of which one runs; each carries the syntax around it.
    Arms(Vec<Vec<Piece>>),
}

/// How tightly a fragment binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// A sum, `a + b`.
    Sum,
    /// A product or a quotient, `a * b`.
    Product,
    /// A sign, a reference: `-a`, `&a`.
    Unary,
    /// Names, calls, literals, blocks that end a statement.
    Postfix,
}

/// A fragment of Rust.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// Its parts in order, which is also the order they are evaluated in.
    pub pieces: Vec<Piece>,
    /// How tightly it binds, which decides where it needs parentheses.
    pub strength: Strength,
}

impl From<&str> for Code {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Code {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&Code> for Code {
    fn from(code: &Code) -> Self {
        code.clone()
    }
}

/// Fragments one after the other: `code!["normal(", shape, ", device)"]`.
macro_rules! code {
    ($($part:expr),* $(,)?) => {
        $crate::emit::rust::code::Code::all([$($crate::emit::rust::code::Code::from($part)),*])
    };
}
pub(super) use code;

impl Code {
    /// Text that binds like a name or a call.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Piece::Text(text.into()))
    }

    fn of(piece: Piece) -> Self {
        Self { pieces: vec![piece], strength: Strength::Postfix }
    }

    /// Fragments one after the other.
    pub fn all(parts: impl IntoIterator<Item = Code>) -> Self {
        let pieces = parts.into_iter().flat_map(|part| part.pieces).collect();
        Self { pieces, strength: Strength::Postfix }
    }

    /// The name of an item.
    pub fn item(item: Item, name: impl Into<String>) -> Self {
        Self::of(Piece::Item(item, name.into()))
    }

    /// A function or type of the crate of kernels.
    pub fn kernel(name: &'static str) -> Self {
        Self::item(Item::Kernel(name), name)
    }

    /// The last word of a path, which the file imports.
    pub fn import(path: &'static str) -> Self {
        Self::item(Item::Import(path), path.rsplit("::").next().unwrap_or(path))
    }

    /// A value, moved at its last use and cloned before.
    pub fn take(value: ValueId) -> Self {
        Self::of(Piece::Take(value))
    }

    /// A value that is cloned even at its last use, as in a loop.
    pub fn copy(value: ValueId) -> Self {
        Self::of(Piece::Copy(value))
    }

    /// The name of a value, which is neither moved nor cloned.
    pub fn name(value: ValueId) -> Self {
        Self::of(Piece::Name(value))
    }

    /// `callee(arguments)`: a function or a constructor
    pub fn call(callee: impl Into<Code>, arguments: impl IntoIterator<Item = Code>) -> Self {
        callee.into().arguments(arguments)
    }

    /// `of.method(arguments)`, where `of` is this fragment
    pub fn method(self, method: &str, arguments: impl IntoIterator<Item = Code>) -> Self {
        self.at_least(Strength::Postfix).then(format!(".{method}")).arguments(arguments)
    }

    /// `left + other`, where `left` is this fragment
    pub fn plus(self, other: Code) -> Self {
        self.infix(" + ", other, Strength::Sum, Strength::Product)
    }

    /// `left * other`, where `left` is this fragment
    pub fn times(self, other: Code) -> Self {
        self.infix(" * ", other, Strength::Product, Strength::Unary)
    }

    /// `left / other`, where `left` is this fragment
    pub fn over(self, other: Code) -> Self {
        self.infix(" / ", other, Strength::Product, Strength::Unary)
    }

    /// `[a, b]`, `(a, b)`: fragments in brackets.
    pub fn list(open: &str, items: impl IntoIterator<Item = Code>, close: &str) -> Self {
        Self::text(open).join(Self::separated(items, ", ")).then(close)
    }

    /// `a, b` for the separator `, `
    pub fn separated(items: impl IntoIterator<Item = Code>, separator: &str) -> Self {
        let mut list = Self { pieces: Vec::new(), strength: Strength::Postfix };
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                list = list.then(separator);
            }
            // Nothing binds across a separator, so an item needs no parentheses.
            list.pieces.extend(item.pieces);
        }
        list
    }

    /// The fragment followed by text that does not change how tightly it binds.
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// The fragment followed by another.
    pub fn join(mut self, other: Code) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// In parentheses if it binds less tightly than that.
    pub fn at_least(self, wanted: Strength) -> Self {
        if self.strength >= wanted { self } else { Self::text("(").join(self).then(")") }
    }

    /// About how many characters it will take.
    pub fn width(&self) -> usize {
        width(&self.pieces)
    }

    /// Everything that it refers to.
    pub fn items(&self) -> BTreeSet<&Item> {
        let mut items = BTreeSet::new();
        gather(&self.pieces, &mut items);
        items
    }

    fn arguments(self, arguments: impl IntoIterator<Item = Code>) -> Self {
        let list = Self::list("(", arguments, ")");
        let mut call = self.join(list);
        call.strength = Strength::Postfix;
        call
    }

    fn infix(self, sign: &str, other: Code, here: Strength, right: Strength) -> Self {
        // Operators group from the left, so the right side must bind more tightly.
        let mut code = self.at_least(here).then(sign).join(other.at_least(right));
        code.strength = here;
        code
    }
}

/// What the texts of an item refer to. `codegen` writes items and takes strings, so the references of
/// fragments are put aside while it does.
#[derive(Clone, Debug, Default)]
pub struct References(BTreeSet<Item>);

impl References {
    /// The text of a fragment; what it refers to is remembered.
    ///
    /// # Errors
    /// A fault of trafoc: a value in the fragment is open.
    pub fn text(&mut self, code: &Code) -> Result<String, Bug> {
        self.0.extend(code.items().into_iter().cloned());
        text(code)
    }

    /// The finished text, which refers to all that its parts did.
    pub fn finished(self, text: String) -> Code {
        // With empty names, so that the text stays as it is and the file still imports what it refers to.
        let references = self.0.into_iter().map(|item| Piece::Item(item, String::new()));
        let pieces = std::iter::once(Piece::Text(text)).chain(references).collect();
        Code { pieces, strength: Strength::Postfix }
    }
}

fn width(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) | Piece::Item(_, text) => text.len(),
        // Names are chosen later; four characters are typical, and `.clone()` adds eight.
        Piece::Take(_) | Piece::Move(_) | Piece::Name(_) => 4,
        Piece::Copy(_) => 12,
        Piece::Arms(arms) => arms.iter().map(|arm| width(arm)).sum(),
    };
    pieces.iter().map(of).sum()
}

fn gather<'a>(pieces: &'a [Piece], items: &mut BTreeSet<&'a Item>) {
    for piece in pieces {
        match piece {
            Piece::Item(item, _) => {
                items.insert(item);
            }
            Piece::Arms(arms) => arms.iter().for_each(|arm| gather(arm, items)),
            Piece::Text(_) | Piece::Take(_) | Piece::Move(_) | Piece::Copy(_) | Piece::Name(_) => {}
        }
    }
}

/// The name of a value.
///
/// # Errors
/// A fault of trafoc: it has none.
pub fn called(names: &BTreeMap<ValueId, String>, id: ValueId) -> Result<String, Bug> {
    names.get(&id).cloned().ok_or_else(|| Bug(format!("value {} has no name in the emitted code", id.0)))
}

/// The pieces with the names of values in place of the values.
///
/// # Errors
/// A fault of trafoc: a value has no name.
pub fn named(pieces: &[Piece], names: &BTreeMap<ValueId, String>) -> Result<Vec<Piece>, Bug> {
    let mut out = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(_) | Piece::Item(..) => out.push(piece.clone()),
            Piece::Take(value) | Piece::Move(value) | Piece::Name(value) => {
                let name = called(names, *value)?;
                // A field whose value has its name is written once: `Inputs { mask, cos: cos_2 }`.
                let is_whole = match pieces.get(i.saturating_add(1)) {
                    Some(Piece::Text(next)) => next.starts_with(',') || next.starts_with(" }"),
                    _ => false,
                };
                if is_whole && out.last() == Some(&Piece::Text(format!("{name}: "))) {
                    out.pop();
                }
                out.push(Piece::Text(name));
            }
            Piece::Copy(value) => out.push(Piece::Text(format!("{}.clone()", called(names, *value)?))),
            Piece::Arms(arms) => {
                for arm in arms {
                    out.extend(named(arm, names)?);
                }
            }
        }
    }
    Ok(out)
}

/// The text of code without open values.
///
/// # Errors
/// A fault of trafoc: a value is open.
pub fn text(code: &Code) -> Result<String, Bug> {
    let mut out = String::new();
    // Without any names, a value that is still open is an error.
    for piece in named(&code.pieces, &BTreeMap::new())? {
        if let Piece::Text(text) | Piece::Item(_, text) = piece {
            out.push_str(&text);
        }
    }
    Ok(out)
}
