//! Factors above 0, which remember the root that an author or a default gave them as.

use std::ops::Deref;

use super::value::{Shape, Value};
use super::{Context, Positive};
use crate::syntax::expr::{self, Expr, ExprKind, Function, Number, Operator};
use crate::syntax::tree::Node;

/// A factor above 0. If its expression is `sqrt(a)` or `1/sqrt(a + b)`, the names are remembered, so that the
/// graph and emitted code can say what it is. Factors are equal when their numbers are.
#[derive(Clone, Debug)]
pub struct Factor {
    by: Positive,
    root: Option<RootOf>,
}

/// A root of a sum of sizes.
#[derive(Clone, Debug)]
pub struct RootOf {
    /// The names of the sizes.
    pub added: Vec<String>,
    /// Whether one is divided by the root.
    pub is_inverse: bool,
}

impl Factor {
    /// A factor that is only a number.
    pub const fn plain(by: f64) -> Self {
        Self { by: Positive(by), root: None }
    }

    /// The root that the author or the default wrote; `None` if the factor was given as a number.
    pub fn root(&self) -> Option<&RootOf> {
        self.root.as_ref()
    }
}

impl RootOf {
    /// The root that an expression is, if it has the form `sqrt(a + b)` or `1 / sqrt(a + b)`.
    fn read(expr: &Expr) -> Option<Self> {
        if let ExprKind::Call(Function::Sqrt, arguments) = &expr.kind
            && let [sum] = arguments.as_slice()
        {
            return Some(Self { added: added(sum)?, is_inverse: false });
        }
        if let ExprKind::Binary(Operator::Divide, one, root) = &expr.kind
            && one.kind == ExprKind::Number(Number::integer(1))
        {
            // `1/(1/sqrt(a))` has neither of the two forms.
            return Self::read(root)
                .filter(|root| !root.is_inverse)
                .map(|root| Self { is_inverse: true, ..root });
        }
        None
    }
}

/// The names of a sum of names.
fn added(expr: &Expr) -> Option<Vec<String>> {
    if let ExprKind::Name(name) = &expr.kind {
        return Some(vec![name.clone()]);
    }
    // A sum, for attention whose heads have two kinds of features: `sqrt(content_dim + rotary_dim)`.
    if let ExprKind::Binary(Operator::Add, left, right) = &expr.kind {
        return Some([added(left)?, added(right)?].concat());
    }
    None
}

impl PartialEq for Factor {
    fn eq(&self, other: &Self) -> bool {
        // A spec that gives the number of a default instead of its root describes the same model.
        self.by == other.by
    }
}

impl Deref for Factor {
    type Target = f64;

    fn deref(&self) -> &f64 {
        &self.by
    }
}

impl Value for Factor {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let by = Positive::decode(node, cx)?;
        // Parsed once more, because decoding gives only the number.
        let root = expr::parse(cx.sources(), node).ok().and_then(|expr| RootOf::read(&expr));
        Some(Self { by, root })
    }
    fn encode(&self) -> Node {
        self.by.encode()
    }
    fn number(&self) -> Option<Number> {
        self.by.number()
    }
    fn describe() -> Shape {
        Positive::describe()
    }
}
