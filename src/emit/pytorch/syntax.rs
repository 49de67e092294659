//! Python as data: the expressions and statements that an emitted file consists of.
//!
//! Names of the program are not text yet: a value is a [`Expr::Value`] until the whole body is known and
//! `body` chooses its name, and a number of `Config` is an [`Expr::Constant`] until it is known where it is
//! read. What a file must import or define follows from its finished tree ([`Expr::visit`]).

use crate::emit::program::constants::{ConstantId, TableId};
use crate::ir::ValueId;

/// An expression of Python that is not text yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value of the graph, whose name is chosen later.
    Value(ValueId),
    /// A number of `Config`.
    Constant(ConstantId),
    /// The same, read from `self.config`.
    Own(Box<Expr>),
    /// A table of numbers of the program.
    Table(TableId),
    /// A function or class of the runtime, which the file defines if it is used.
    Runtime(&'static str),
    /// A name that the file imports: `math`, `torch`, `F`.
    Import(&'static str),
    /// Any other name: a variable, a class.
    Name(String),
    /// A whole number; long ones are written with groups of digits, `40_000`.
    Int(u64),
    /// A real number, which Python must read back as the same float.
    Float(f64),
    /// A text in quotes.
    Str(String),
    /// `True` or `False`, the truth values of Python
    Bool(bool),
    /// `None`, the value of what is absent
    None,
    /// `of.name`: an attribute, or a name in a module
    Attr(Box<Expr>, String),
    /// `function(arguments)`, also of a class or a method
    Call(Box<Expr>, Vec<Argument>),
    /// `of[items]`: an item, or an index for each axis of a tensor
    Index(Box<Expr>, Vec<Expr>),
    /// `from:to`, in an index.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
    /// `left sign right`, with parentheses around operands that bind less tightly
    Binary(Sign, Box<Expr>, Box<Expr>),
    /// `-of`, with parentheses around what binds less tightly
    Minus(Box<Expr>),
    /// `then if test else other`
    Choice {
        /// The condition that decides between the two values.
        test: Box<Expr>,
        /// The value if it is true.
        then: Box<Expr>,
        /// The value if it is false.
        other: Box<Expr>,
    },
    /// `(a, b)`, or `(a,)` for a single item
    Tuple(Vec<Expr>),
    /// `[a, b]`, a list that may be empty
    List(Vec<Expr>),
    /// `element for target in source`, as the only argument of a call.
    Each {
        /// The value for each element.
        element: Box<Expr>,
        /// The variable that takes each element in turn.
        target: String,
        /// What is iterated over.
        source: Box<Expr>,
    },
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The parameter, if it is named.
    pub name: Option<String>,
    /// The expression that is passed.
    pub value: Expr,
}

/// An operator between two expressions, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// `and`, of truth values
    And,
    /// `is`, `is not`, `<`, `==`, `in`, ..
    Compare(&'static str),
    /// `|`, of masks, and of types as in `Tensor | None`
    Or,
    /// `&`, of masks: true where both are
    Both,
    /// `+`, of numbers or tensors
    Plus,
    /// `-`, between two operands; a sign is [`Expr::Minus`]
    Less,
    /// `*`, of numbers, or of tensors element by element
    Times,
    /// `/`, whose result is a float
    Over,
    /// `//`, a quotient of whole numbers
    Quotient,
    /// `%`, the remainder of whole numbers
    Remainder,
    /// `@`, the product of matrices
    Product,
}

impl Sign {
    /// The operator as text.
    pub fn text(self) -> &'static str {
        match self {
            Sign::And => "and",
            Sign::Compare(text) => text,
            Sign::Or => "|",
            Sign::Both => "&",
            Sign::Plus => "+",
            Sign::Less => "-",
            Sign::Times => "*",
            Sign::Over => "/",
            Sign::Quotient => "//",
            Sign::Remainder => "%",
            Sign::Product => "@",
        }
    }

    /// How tightly it binds.
    pub fn strength(self) -> Strength {
        match self {
            Sign::And => Strength::And,
            Sign::Compare(_) => Strength::Compare,
            Sign::Or => Strength::Or,
            Sign::Both => Strength::Both,
            Sign::Plus | Sign::Less => Strength::Sum,
            Sign::Times | Sign::Over | Sign::Quotient | Sign::Remainder | Sign::Product => Strength::Product,
        }
    }
}

/// How tightly an expression binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// `a, b`, `from:to`, `x for x in y`
    List,
    /// `a if test else b`
    Choice,
    /// `a and b`
    And,
    /// A comparison, `a < b` or `a is None`.
    Compare,
    /// `a | b`, which binds more tightly than a comparison, so compared masks need parentheses
    Or,
    /// `a & b`, as tight as in Python: between `|` and a sum
    Both,
    /// A sum or a difference, `a + b`.
    Sum,
    /// A product or a quotient, `a * b`.
    Product,
    /// `-a`, tighter than a product
    Unary,
    /// A name, a literal, a call, an index: it needs no parentheses.
    Postfix,
}

/// A statement, or with [`Stmt::Append`] several that belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `targets = value  # comment`
    Assign {
        /// What is assigned to; several are unpacked.
        targets: Vec<Target>,
        /// The expression whose value is assigned.
        value: Expr,
        /// A comment at the end of the line.
        comment: Option<String>,
    },
    /// `target += value`, which changes a tensor in place
    Add(Expr, Expr),
    /// `name: ty = value`
    Field {
        /// The name of the field, before the colon.
        name: String,
        /// The type of the field, after the colon.
        ty: Expr,
        /// The default; without one, the field must be given.
        value: Option<Expr>,
        /// What it is: a comment after it, or above it if the line would be too long.
        doc: String,
    },
    /// An expression whose value is not used, such as a call.
    Expr(Expr),
    /// `return value`; several results are a tuple
    Return(Expr),
    /// `if test: .. elif test: .. else: ..`; the last test may be absent.
    If(Vec<(Option<Expr>, Vec<Stmt>)>),
    /// `for targets in source: ..`
    For {
        /// The variables that each element is unpacked into.
        targets: Vec<String>,
        /// What is iterated over.
        source: Expr,
        /// The statements of the loop.
        body: Vec<Stmt>,
    },
    /// What a cache keeps: `if cache is not None: k, v = cache.append(k, v)`.
    Append {
        /// The values after it.
        targets: Vec<Target>,
        /// What may be absent: the caches.
        caches: Expr,
        /// The one that is appended to.
        cache: Expr,
        /// The values that are appended, usually `k` and `v`.
        inputs: Vec<Expr>,
    },
}

/// What a statement assigns to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A value of the graph.
    Value(ValueId),
    /// A variable, an attribute, an item.
    Expr(Expr),
    /// `_`, for a result that nothing uses
    Nothing,
}

/// A function or method.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// The decorators from top to bottom, without `@`: `property`.
    pub decorators: Vec<Expr>,
    /// The name in the file, which Python accepts.
    pub name: String,
    /// The parameters in order; `self` is the first one of a method.
    pub parameters: Vec<Parameter>,
    /// The type that it returns.
    pub returns: Expr,
    /// What it says about itself, line by line.
    pub doc: Vec<String>,
    /// The statements of the body, after the documentation.
    pub body: Vec<Stmt>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name, with which callers may pass it.
    pub name: String,
    /// The type; `self` has none.
    pub ty: Option<Expr>,
    /// The default; without one, the parameter must be given.
    pub default: Option<Expr>,
}

/// A class: a module of the model, or a record of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The decorators from top to bottom, without `@`: `dataclass(frozen=True)`.
    pub decorators: Vec<Expr>,
    /// The name in the file, which Python accepts.
    pub name: String,
    /// The class it extends.
    pub base: Option<Expr>,
    /// What it says about itself, line by line.
    pub doc: Vec<String>,
    /// The statements before the methods: the fields of a dataclass.
    pub fields: Vec<Stmt>,
    /// The methods in the order of the file.
    pub methods: Vec<Def>,
}

/// What is at the top of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A class, with its methods.
    Class(Class),
    /// A function that is not a method.
    Def(Def),
    /// A statement outside of functions, such as a table of numbers.
    Stmt(Stmt),
    /// The text of a file of the runtime, which its own test checks.
    Runtime(String),
}

impl From<&str> for Expr {
    // A text in the code of this target is nearly always a name; texts of Python are [`Expr::Str`].
    fn from(name: &str) -> Self {
        Expr::Name(name.to_owned())
    }
}

impl From<Expr> for Argument {
    fn from(value: Expr) -> Self {
        Argument { name: None, value }
    }
}

impl Expr {
    /// `self.name`, where `self` is that of Python
    pub fn own(name: &str) -> Self {
        Expr::from("self").attr(name)
    }

    /// `torch.name`, for which the file imports `torch`
    pub fn torch(name: &str) -> Self {
        Expr::Import("torch").attr(name)
    }

    /// `nn.name`, for which the file imports `nn`
    pub fn nn(name: &str) -> Self {
        Expr::Import("nn").attr(name)
    }

    /// `F.name`, for which the file imports `F`
    pub fn functional(name: &str) -> Self {
        Expr::Import("F").attr(name)
    }

    /// `of.name`, where `of` is this expression
    pub fn attr(self, name: &str) -> Self {
        Expr::Attr(Box::new(self), name.to_owned())
    }

    /// `of(arguments)`, where `of` is this expression
    pub fn call(self, arguments: impl IntoIterator<Item = impl Into<Argument>>) -> Self {
        Expr::Call(Box::new(self), arguments.into_iter().map(Into::into).collect())
    }

    /// `of.name(arguments)`, where `of` is this expression
    pub fn method(self, name: &str, arguments: impl IntoIterator<Item = Expr>) -> Self {
        self.attr(name).call(arguments)
    }

    /// A call with one more argument, by its name. Anything but a call stays as it is.
    pub fn with(mut self, name: &str, value: Expr) -> Self {
        if let Expr::Call(_, arguments) = &mut self {
            arguments.push(Argument { name: Some(name.to_owned()), value });
        }
        self
    }

    /// `of[items]`, where `of` is this expression
    pub fn index(self, items: impl IntoIterator<Item = Expr>) -> Self {
        Expr::Index(Box::new(self), items.into_iter().collect())
    }

    /// `left sign other`, where `left` is this expression
    pub fn binary(self, sign: Sign, other: Expr) -> Self {
        Expr::Binary(sign, Box::new(self), Box::new(other))
    }

    /// `left + other`, where `left` is this expression
    pub fn plus(self, other: Expr) -> Self {
        self.binary(Sign::Plus, other)
    }

    /// `left * other`, where `left` is this expression
    pub fn times(self, other: Expr) -> Self {
        self.binary(Sign::Times, other)
    }

    /// `left / other`, where `left` is this expression
    pub fn over(self, other: Expr) -> Self {
        self.binary(Sign::Over, other)
    }

    /// `left | None`, the type of what may be absent
    pub fn or_none(self) -> Self {
        self.binary(Sign::Or, Expr::None)
    }

    /// `then if self else other`
    pub fn choose(self, then: Expr, other: Expr) -> Self {
        Expr::Choice { test: Box::new(self), then: Box::new(then), other: Box::new(other) }
    }

    /// How tightly it binds.
    pub fn strength(&self) -> Strength {
        match self {
            Expr::Value(_)
            | Expr::Constant(_)
            | Expr::Table(_)
            | Expr::Runtime(_)
            | Expr::Import(_)
            | Expr::Name(_)
            | Expr::Int(_)
            | Expr::Str(_)
            | Expr::Bool(_)
            | Expr::None
            | Expr::Own(_)
            | Expr::Attr(..)
            | Expr::Call(..)
            | Expr::Index(..)
            | Expr::Tuple(_)
            | Expr::List(_) => Strength::Postfix,
            // Printed with its sign, it binds as a negation does: `-1.0 ** 2` is not `(-1.0) ** 2`.
            Expr::Float(x) => {
                if x.is_sign_negative() {
                    Strength::Unary
                } else {
                    Strength::Postfix
                }
            }
            Expr::Minus(_) => Strength::Unary,
            Expr::Binary(sign, ..) => sign.strength(),
            Expr::Choice { .. } => Strength::Choice,
            Expr::Slice(..) | Expr::Each { .. } => Strength::List,
        }
    }
}

impl Stmt {
    /// `name = value`, which assigns to a variable
    pub fn set(name: &str, value: Expr) -> Self {
        Stmt::Assign { targets: vec![Target::Expr(name.into())], value, comment: None }
    }

    /// `target = value`, which assigns to an attribute such as `self.name`
    pub fn own(target: Expr, value: Expr) -> Self {
        Stmt::Assign { targets: vec![Target::Expr(target)], value, comment: None }
    }

    /// The values that it assigns to.
    pub fn defined(&self) -> Vec<ValueId> {
        let values = |targets: &[Target]| {
            let value = |target: &Target| if let Target::Value(id) = target { Some(*id) } else { None };
            targets.iter().filter_map(value).collect()
        };
        match self {
            Stmt::Assign { targets, .. } | Stmt::Append { targets, .. } => values(targets),
            Stmt::Add(..)
            | Stmt::Field { .. }
            | Stmt::Expr(_)
            | Stmt::Return(_)
            | Stmt::If(_)
            | Stmt::For { .. } => Vec::new(),
        }
    }
}

impl Def {
    /// A method without decorators; `self` is its first parameter.
    pub fn method(name: &str, parameters: Vec<Parameter>, returns: Expr) -> Self {
        let first = Parameter { name: "self".to_owned(), ty: None, default: None };
        Self {
            decorators: Vec::new(),
            name: name.to_owned(),
            parameters: std::iter::once(first).chain(parameters).collect(),
            returns,
            doc: Vec::new(),
            body: Vec::new(),
        }
    }
}

/// A parameter with a type and no default.
pub fn parameter(name: &str, ty: Expr) -> Parameter {
    Parameter { name: name.to_owned(), ty: Some(ty), default: None }
}
