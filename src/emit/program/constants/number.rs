//! Numbers as a program writes them: by themselves, by name, or as a formula of names.

use super::kind::Kind;
use crate::ir::ModuleId;

/// Digits in groups of three from five digits on: `40_000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(c);
    }
    out
}

/// The index of a constant in [`Constants::all`](super::Constants::all).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstantId(pub usize);

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A size or a count.
    Int(u64),
    /// A factor, a probability, a bound.
    Float(f64),
}

/// A whole number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// A number that has no name.
    Number(u64),
    /// The constant that names the number.
    Constant(ConstantId),
    /// A sum of two sizes or more.
    Sum(Vec<Size>),
    /// A product of two sizes or more.
    Product(Vec<Size>),
    /// A quotient without remainder.
    Quotient(Box<Size>, Box<Size>),
}

/// A real number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A number that has no name.
    Number(f64),
    /// The constant that names the number.
    Constant(ConstantId),
    /// The square root of a size.
    Root(Size),
    /// One divided by the square root of a size.
    InverseRoot(Size),
}

impl Size {
    /// The constants in it, each as often as it is there.
    pub fn constants(&self) -> Vec<ConstantId> {
        match self {
            Size::Number(_) => Vec::new(),
            Size::Constant(id) => vec![*id],
            Size::Sum(all) | Size::Product(all) => all.iter().flat_map(Size::constants).collect(),
            Size::Quotient(size, by) => [size, by].into_iter().flat_map(|size| size.constants()).collect(),
        }
    }

    /// Its value; `None` if it is no whole number or refers to a constant that is not there.
    pub fn value(&self, constants: &[Constant]) -> Option<u64> {
        match self {
            Size::Number(n) => Some(*n),
            Size::Constant(id) => match constants.get(id.0)?.value {
                Number::Int(n) => Some(n),
                Number::Float(_) => None,
            },
            Size::Sum(all) => all.iter().try_fold(0u64, |sum, size| sum.checked_add(size.value(constants)?)),
            Size::Product(all) => {
                all.iter().try_fold(1u64, |product, size| product.checked_mul(size.value(constants)?))
            }
            Size::Quotient(size, by) => {
                let (size, by) = (size.value(constants)?, by.value(constants)?);
                // Emitted code divides whole numbers and would drop a remainder without a word.
                size.checked_div(by).filter(|quotient| quotient.checked_mul(by) == Some(size))
            }
        }
    }
}

/// A named number of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name in lower case, `kv_heads`; a target writes it in the style of its language.
    pub name: String,
    /// What it is, as a sentence.
    pub doc: String,
    /// The number that it names.
    pub value: Number,
    /// How it follows from earlier constants; `None` if the author gave it.
    pub formula: Option<Size>,
    pub(super) kind: Kind,
    /// For the length of a stack, the module that owns the stack.
    pub(super) owner: Option<ModuleId>,
}

/// The product of sizes, without an operation if there is only one.
pub(super) fn product(mut factors: Vec<Size>) -> Size {
    if factors.len() == 1 { factors.remove(0) } else { Size::Product(factors) }
}
