//! Python as data: the expressions and statements that an emitted file consists of.
//!
//! Names of the program are not text yet: a value is a [`Expr::Value`] until the whole body is known and
//! `body` chooses its name, and a number of `Config` is an [`Expr::Constant`] until it is known where it is
//! read. What a file must import or define follows from its finished tree ([`Expr::visit`]).

use crate::emit::program::constants::{ConstantId, TableId};
use crate::ir::ValueId;

/// An expression.
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
    /// A whole number.
    Int(u64),
    /// A real number.
    Float(f64),
    /// A text in quotes.
    Str(String),
    /// `True` or `False`
    Bool(bool),
    /// `None`
    None,
    /// `of.name`
    Attr(Box<Expr>, String),
    /// `function(arguments)`
    Call(Box<Expr>, Vec<Argument>),
    /// `of[items]`
    Index(Box<Expr>, Vec<Expr>),
    /// `from:to`, in an index.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
    /// `left sign right`
    Binary(Sign, Box<Expr>, Box<Expr>),
    /// `-of`
    Minus(Box<Expr>),
    /// `then if test else other`
    Choice {
        /// The condition.
        test: Box<Expr>,
        /// The value if it is true.
        then: Box<Expr>,
        /// The value if it is false.
        other: Box<Expr>,
    },
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `element for target in source`, as the only argument of a call.
    Each {
        /// The value for each element.
        element: Box<Expr>,
        /// The variable.
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
    /// The value.
    pub value: Expr,
}

/// An operator between two expressions, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// `and`
    And,
    /// `is`, `is not`, `<`, `==`, `in`, ..
    Compare(&'static str),
    /// `|`
    Or,
    /// `&`, of masks
    Both,
    /// `+`
    Plus,
    /// `-`
    Less,
    /// `*`
    Times,
    /// `/`
    Over,
    /// `//`
    Quotient,
    /// `%`
    Remainder,
    /// `@`
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

/// How tightly an expression holds together, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// `a, b`, `from:to`, `x for x in y`
    List,
    /// `a if test else b`
    Choice,
    /// `a and b`
    And,
    /// `a < b`
    Compare,
    /// `a | b`
    Or,
    /// `a & b`
    Both,
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`
    Unary,
    /// Names, literals, calls.
    Postfix,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `targets = value  # comment`
    Assign {
        /// What is assigned to; several are unpacked.
        targets: Vec<Target>,
        /// The value.
        value: Expr,
        /// A comment at the end of the line.
        comment: Option<String>,
    },
    /// `target += value`
    Add(Expr, Expr),
    /// `name: ty = value`
    Field {
        /// The name.
        name: String,
        /// The type.
        ty: Expr,
        /// The default.
        value: Option<Expr>,
        /// What it is.
        doc: String,
    },
    /// An expression alone.
    Expr(Expr),
    /// `return value`
    Return(Expr),
    /// `if test: .. elif test: .. else: ..`; the last test may be absent.
    If(Vec<(Option<Expr>, Vec<Stmt>)>),
    /// `for targets in source: ..`
    For {
        /// The variables.
        targets: Vec<String>,
        /// What is iterated over.
        source: Expr,
        /// The statements.
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
        /// What is appended.
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
    /// `_`
    Nothing,
}

/// A function or method.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// `@property`
    pub decorators: Vec<Expr>,
    /// The name.
    pub name: String,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub returns: Expr,
    /// What it says about itself, line by line.
    pub doc: Vec<String>,
    /// What it does.
    pub body: Vec<Stmt>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The type; `self` has none.
    pub ty: Option<Expr>,
    /// The default.
    pub default: Option<Expr>,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// `@dataclass(frozen=True)`
    pub decorators: Vec<Expr>,
    /// The name.
    pub name: String,
    /// The class it extends.
    pub base: Option<Expr>,
    /// What it says about itself, line by line.
    pub doc: Vec<String>,
    /// Its fields.
    pub fields: Vec<Stmt>,
    /// Its methods.
    pub methods: Vec<Def>,
}

/// What is at the top of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A class.
    Class(Class),
    /// A function.
    Def(Def),
    /// A statement.
    Stmt(Stmt),
    /// The text of a file of the runtime, which its own test checks.
    Runtime(String),
}

impl From<&str> for Expr {
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
    /// `self.name`
    pub fn own(name: &str) -> Self {
        Expr::from("self").attr(name)
    }

    /// `torch.name`
    pub fn torch(name: &str) -> Self {
        Expr::Import("torch").attr(name)
    }

    /// `nn.name`
    pub fn nn(name: &str) -> Self {
        Expr::Import("nn").attr(name)
    }

    /// `F.name`
    pub fn functional(name: &str) -> Self {
        Expr::Import("F").attr(name)
    }

    /// `of.name`
    pub fn attr(self, name: &str) -> Self {
        Expr::Attr(Box::new(self), name.to_owned())
    }

    /// `self(arguments)`
    pub fn call(self, arguments: impl IntoIterator<Item = impl Into<Argument>>) -> Self {
        Expr::Call(Box::new(self), arguments.into_iter().map(Into::into).collect())
    }

    /// `self.name(arguments)`
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

    /// `self[items]`
    pub fn index(self, items: impl IntoIterator<Item = Expr>) -> Self {
        Expr::Index(Box::new(self), items.into_iter().collect())
    }

    /// `self sign other`
    pub fn binary(self, sign: Sign, other: Expr) -> Self {
        Expr::Binary(sign, Box::new(self), Box::new(other))
    }

    /// `self + other`
    pub fn plus(self, other: Expr) -> Self {
        self.binary(Sign::Plus, other)
    }

    /// `self * other`
    pub fn times(self, other: Expr) -> Self {
        self.binary(Sign::Times, other)
    }

    /// `self / other`
    pub fn over(self, other: Expr) -> Self {
        self.binary(Sign::Over, other)
    }

    /// `self | None`
    pub fn or_none(self) -> Self {
        self.binary(Sign::Or, Expr::None)
    }

    /// `then if self else other`
    pub fn choose(self, then: Expr, other: Expr) -> Self {
        Expr::Choice { test: Box::new(self), then: Box::new(then), other: Box::new(other) }
    }

    /// How tightly it holds together.
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
    /// `name = value`
    pub fn set(name: &str, value: Expr) -> Self {
        Stmt::Assign { targets: vec![Target::Expr(name.into())], value, comment: None }
    }

    /// `self.name = value`
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
