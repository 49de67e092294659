//! Ops that work feature by feature.

use super::activation::Activation;
use super::forward::Forward;
use super::meaning::{Given, Meaning, Picture, Site, Types, one_float};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::{broadcast, fail};
use crate::ir::text::{factor, optional};
use crate::ir::work::Work;
use crate::ir::{DType, Factor, Module, Type};

/// What follows from computing each element of a tensor with this number of operations, from the element
/// alone.
// With `drawn` and `kept`: the words of the picture's step, and what the backward pass keeps.
macro_rules! each_element {
    (|$self:ident| $operations:expr, drawn: $words:expr, kept: $entry:expr) => {
        each_element!(|$self| $operations);
        fn picture(&$self, _: &Site<'_>) -> Picture {
            Picture::step($words)
        }
        fn training(&$self, _: &Site<'_>) -> Training {
            $entry.alone()
        }
    };
    (|$self:ident| $operations:expr) => {
        fn infer(&$self, given: &Given<'_>) -> Types {
            one_float(given)
        }
        fn work(&$self, site: &Site<'_>) -> Work {
            site.per_element($operations)
        }
        fn is_by_position(&$self, _: &Site<'_>) -> bool {
            true
        }
    };
}

impl Meaning for Activation {
    fn text(&self, _: &Module) -> String {
        self.name().to_owned()
    }
    fn sentence(&self) -> &'static str {
        "a nonlinearity, feature by feature"
    }
    each_element!(|self| self.operations());
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(self.name())
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // What the implementation of each activation keeps, and how it passes the gradient on.
        let (own, passing) = match self {
            Activation::Relu
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::QuickGelu
            | Activation::Silu
            | Activation::Sigmoid => (0, Passing::InPlace),
            Activation::Tanh => (0, Passing::Fresh),
            // Two operations, so the value between them is kept as well.
            Activation::Relu2 => (1, Passing::Fresh),
        };
        Entry { own, ..Entry::of_input(passing).keeping([Operand::Input(0)]) }.alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // What is squared takes the place of the input, if nothing else needs that.
        matches!(self, Activation::Relu2).then_some(Forward { halves: 2, frees: true, ..Forward::NEW })
    }
}

/// The type of a sum or product of two float tensors, which are broadcast.
fn infer_both(given: &Given<'_>) -> Types {
    let [a, b] = given.inputs else { return fail("two tensors expected") };
    if a.dtype != DType::Float || b.dtype != DType::Float || a.optional || b.optional {
        return fail(format!("{a} and {b} are not two float tensors"));
    }
    Ok(vec![Type { dtype: DType::Float, shape: broadcast(&a.shape, &b.shape)?, optional: false }])
}

/// The elementary functions that are no nonlinearity of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementary {
    /// `e^x`
    Exp,
    /// The natural logarithm
    Log,
    /// The square root
    Sqrt,
    /// `x * x`
    Square,
    /// `|x|`
    Abs,
    /// -1, 0 or 1, without a gradient
    Sign,
    /// The sine
    Sin,
    /// The cosine
    Cos,
    /// `log(1 + e^x)`
    Softplus,
    /// `1 / x`
    Reciprocal,
    /// The next lower whole number, without a gradient
    Floor,
}

impl Elementary {
    /// All of them, in the order in which they are listed.
    pub const ALL: &'static [Elementary] = &[
        Elementary::Exp,
        Elementary::Log,
        Elementary::Sqrt,
        Elementary::Square,
        Elementary::Abs,
        Elementary::Sign,
        Elementary::Sin,
        Elementary::Cos,
        Elementary::Softplus,
        Elementary::Reciprocal,
        Elementary::Floor,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Elementary::Exp => "exp",
            Elementary::Log => "log",
            Elementary::Sqrt => "sqrt",
            Elementary::Square => "square",
            Elementary::Abs => "abs",
            Elementary::Sign => "sign",
            Elementary::Sin => "sin",
            Elementary::Cos => "cos",
            Elementary::Softplus => "softplus",
            Elementary::Reciprocal => "reciprocal",
            Elementary::Floor => "floor",
        }
    }

    /// What it computes, in a few words.
    pub fn doc(self) -> &'static str {
        match self {
            Elementary::Exp => "`e^x`, element by element",
            Elementary::Log => "the natural logarithm, element by element",
            Elementary::Sqrt => "the square root, element by element",
            Elementary::Square => "`x * x`, element by element",
            Elementary::Abs => "`|x|`, element by element",
            Elementary::Sign => "-1, 0 or 1, element by element, without a gradient",
            Elementary::Sin => "the sine, element by element",
            Elementary::Cos => "the cosine, element by element",
            Elementary::Softplus => "`log(1 + e^x)`, element by element",
            Elementary::Reciprocal => "`1 / x`, element by element",
            Elementary::Floor => "the next lower whole number, element by element, without a gradient",
        }
    }
}

impl Meaning for Elementary {
    fn text(&self, _: &Module) -> String {
        self.name().into()
    }
    fn sentence(&self) -> &'static str {
        "an elementary function, feature by feature"
    }
    each_element!(|self| match self {
        Elementary::Exp
        | Elementary::Log
        | Elementary::Sqrt
        | Elementary::Square
        | Elementary::Abs
        | Elementary::Sign
        | Elementary::Sin
        | Elementary::Cos
        | Elementary::Reciprocal
        | Elementary::Floor => 1,
        // exp, + 1, log
        Elementary::Softplus => 3,
    });
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(self.name())
    }
    fn training(&self, _: &Site<'_>) -> Training {
        let of_input = Entry::of_input(Passing::Fresh).keeping([Operand::Input(0)]);
        match self {
            Elementary::Exp
            | Elementary::Log
            | Elementary::Sqrt
            | Elementary::Square
            | Elementary::Abs
            | Elementary::Sin
            | Elementary::Cos
            | Elementary::Reciprocal => of_input,
            Elementary::Sign | Elementary::Floor => Entry::of_input(Passing::Fresh),
            // The inputs of the exponential and of the logarithm and the result are kept, and where x is so large that the
            // result is x itself.
            Elementary::Softplus => Entry { own: 3, flags: 1, ..Entry::of_input(Passing::Fresh) },
        }
        .alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        match self {
            // A product with itself.
            Elementary::Square => Some(Forward::NEW),
            // Where x is so large that the result is x itself.
            Elementary::Softplus => Some(Forward { halves: 1, ..Forward::NEW }),
            Elementary::Exp
            | Elementary::Log
            | Elementary::Sqrt
            | Elementary::Abs
            | Elementary::Sign
            | Elementary::Sin
            | Elementary::Cos
            | Elementary::Reciprocal
            | Elementary::Floor => None,
        }
    }
}

/// What follows from combining two tensors element by element with one operation.
macro_rules! each_pair {
    () => {
        fn infer(&self, given: &Given<'_>) -> Types {
            infer_both(given)
        }
        fn work(&self, site: &Site<'_>) -> Work {
            site.per_element(1)
        }
        fn is_by_position(&self, _: &Site<'_>) -> bool {
            true
        }
    };
}

/// The meaning of [`Op::Add`](super::Op::Add).
pub(super) struct Add;

impl Meaning for Add {
    fn text(&self, _: &Module) -> String {
        "add".into()
    }
    fn sentence(&self) -> &'static str {
        "the sum"
    }
    each_pair!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Sum
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // Each term gets the gradient of the sum as it is.
        Entry::of_inputs(Passing::Shared, 2).alone()
    }
}

/// The meaning of [`Op::Mul`](super::Op::Mul).
pub(super) struct Mul;

impl Meaning for Mul {
    fn text(&self, _: &Module) -> String {
        "mul".into()
    }
    fn sentence(&self) -> &'static str {
        "the product, feature by feature"
    }
    each_pair!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Product
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The gradient of each factor is a multiple of the other one.
        let both = [Operand::Input(0), Operand::Input(1)];
        Entry { for_other: true, ..Entry::of_inputs(Passing::InPlace, 2).keeping(both) }.alone()
    }
}

/// The meaning of [`Op::Gate`](super::Op::Gate).
pub(super) struct Gate {
    pub activation: Activation,
}

impl Meaning for Gate {
    fn text(&self, _: &Module) -> String {
        format!("gate {}", self.activation.name())
    }
    fn sentence(&self) -> &'static str {
        "a nonlinearity of the first input, times the second, feature by feature"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        infer_both(given)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        site.per_element(self.activation.operations().saturating_add(1))
    }
    fn is_by_position(&self, _: &Site<'_>) -> bool {
        true
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Product
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The activation is computed once more. The gradient of the gate overwrites that of the result.
        let both = [Operand::Input(0), Operand::Input(1)];
        Entry { needs_halves: 2, ..Entry::of_inputs(Passing::InPlace, 2).keeping(both) }.alone()
    }
}

/// The meaning of [`Op::Softcap`](super::Op::Softcap).
pub(super) struct Softcap {
    pub cap: f64,
}

impl Meaning for Softcap {
    fn text(&self, _: &Module) -> String {
        format!("softcap {:?}", self.cap)
    }
    fn sentence(&self) -> &'static str {
        "c · tanh(x / c): bounded by ±c, nearly x around 0"
    }
    // x / cap, tanh, * cap
    each_element!(
        |self| 3,
        drawn: format!("softcap {}", factor(self.cap)),
        // The tanh is kept, whose derivative is 1 - tanh².
        kept: Entry { own: 1, ..Entry::of_input(Passing::Fresh) }
    );
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Real(Named::Softcap, self.cap)]
    }
}

/// The meaning of [`Op::Divide`](super::Op::Divide).
pub(super) struct Divide;

impl Meaning for Divide {
    fn text(&self, _: &Module) -> String {
        "divide".into()
    }
    fn sentence(&self) -> &'static str {
        "the quotient, feature by feature"
    }
    each_pair!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("÷")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        let entry = Entry::of_inputs(Passing::Fresh, 2).keeping([Operand::Input(0), Operand::Input(1)]);
        // The gradient of the divisor is made of a square, a quotient and a product.
        Entry { needs_halves: 6, ..entry }.alone()
    }
}

/// The meaning of [`Op::Scale`](super::Op::Scale).
pub(super) struct Scale {
    pub by: Factor,
}

impl Meaning for Scale {
    fn text(&self, _: &Module) -> String {
        format!("scale {:?}", self.by)
    }
    fn sentence(&self) -> &'static str {
        "times a number"
    }
    each_element!(
        |self| 1,
        drawn: format!("× {}", factor(*self.by)),
        // The gradient is multiplied by the same number, so nothing is kept.
        kept: Entry::of_input(Passing::InPlace)
    );
    fn quantities(&self) -> Vec<Quantity> {
        self.by.root().map(|root| Quantity::Size(root.of)).into_iter().collect()
    }
}

/// The meaning of [`Op::Shift`](super::Op::Shift).
pub(super) struct Shift {
    pub by: f64,
}

impl Meaning for Shift {
    fn text(&self, _: &Module) -> String {
        format!("shift {:?}", self.by)
    }
    fn sentence(&self) -> &'static str {
        "plus a number"
    }
    each_element!(
        |self| 1,
        drawn: format!("+ {}", factor(self.by)),
        // The derivative is 1, so nothing is kept.
        kept: Entry::of_input(Passing::InPlace)
    );
}

/// The meaning of [`Op::Clamp`](super::Op::Clamp).
pub(super) struct Clamp {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Clamp {
    /// How many bounds there are.
    fn bounds(&self) -> u64 {
        [self.min, self.max].iter().flatten().count() as u64
    }
}

impl Meaning for Clamp {
    fn text(&self, _: &Module) -> String {
        let bound = |value: Option<f64>| value.map(|v| format!("{v:?}"));
        format!("clamp{}{}", optional("min", bound(self.min)), optional("max", bound(self.max)))
    }
    fn sentence(&self) -> &'static str {
        "kept between two bounds"
    }
    each_element!(
        |self| self.bounds(),
        drawn: "clamp",
        // For each bound a boolean of each element is kept: whether it was cut.
        kept: Entry { flags: self.bounds(), ..Entry::of_input(Passing::InPlace) }
    );
}

/// The meaning of [`Op::Dropout`](super::Op::Dropout).
pub(super) struct Dropout {
    pub p: f64,
}

impl Meaning for Dropout {
    fn text(&self, _: &Module) -> String {
        format!("dropout {:?}", self.p)
    }
    fn sentence(&self) -> &'static str {
        "in training, each feature is set to 0 with that probability, and the others are scaled up to keep the mean"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        one_float(given)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Pass
    }
    fn training(&self, _: &Site<'_>) -> Training {
        if self.p > 0.0 {
            // The factor of each element is kept.
            Entry { own: 1, needs_halves: 4, ..Entry::of_input(Passing::InPlace) }.alone()
        } else {
            // The kernel returns its input then.
            Training::View(Passing::Shared)
        }
    }
    fn is_view(&self) -> bool {
        // Outside of training it changes nothing.
        true
    }
    fn is_by_position(&self, _: &Site<'_>) -> bool {
        true
    }
    fn is_random(&self) -> bool {
        true
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Real(Named::Dropout, self.p)]
    }
}

/// The meaning of [`Op::Normalize`](super::Op::Normalize).
pub(super) struct Normalize;

impl Meaning for Normalize {
    fn text(&self, _: &Module) -> String {
        "normalize".into()
    }
    fn sentence(&self) -> &'static str {
        "divided by its length"
    }
    // square, sum, quotient
    each_element!(|self| 3);
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("unit length")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // Several operations of burn, so this number was measured; see [`super::training`].
        let entry = Entry::of_input(Passing::Fresh).keeping([Operand::Input(0)]);
        Entry { needs_halves: 4, ..entry }.alone()
    }
}
