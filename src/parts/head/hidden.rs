//! Hidden layers before the scores, `norm(activation(W x + b))`, shared by the heads that have them, and the
//! fields of heads that score every token.

use std::ops::Deref;

use super::Site;
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic};
use crate::field::rule::{Is, Rule};
use crate::field::value::{Shape, Value};
use crate::field::{Context, Probability, Size};
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, ValueId};
use crate::parts::activation::Activation;
use crate::parts::norm::Norm;
use crate::syntax::tree::Node;

/// The most hidden layers of a head. A stack has many layers by counting equal ones; these are apart from each other
/// wherever a model is written, counted or drawn.
const MOST: usize = 256;

/// The width of each hidden layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Widths(Vec<Size>);

impl Deref for Widths {
    type Target = [Size];

    fn deref(&self) -> &[Size] {
        &self.0
    }
}

impl Value for Widths {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let widths = Vec::decode(node, cx)?;
        if widths.len() > MOST {
            let count = counted(widths.len(), "hidden layer");
            let message = format!("a head has at most {MOST} hidden layers, but this one has {count}");
            cx.report(Diagnostic::error(Code::TooLarge, node.span, message).help("remove some of them"));
            return None;
        }
        Some(Self(widths))
    }
    fn encode(&self) -> Node {
        self.0.encode()
    }
    fn describe() -> Shape {
        Shape::List(Size::describe, Some(MOST))
    }
}

/// A sequence of hidden layers.
#[derive(Clone, Copy, Debug)]
pub struct Hidden<'a> {
    /// The width of each layer.
    pub widths: &'a [Size],
    /// Whether the layers have a bias.
    pub bias: bool,
    /// The nonlinearity after each projection.
    pub activation: Activation,
    /// The norm after each nonlinearity.
    pub norm: &'a Option<Norm>,
}

impl Hidden<'_> {
    /// Adds the layers, `[.., width]` to the last layer's width, which is returned too.
    pub fn lower(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        x: ValueId,
        width: Extent,
    ) -> Result<(ValueId, Extent), Mismatch> {
        let (mut h, mut width) = (x, width);
        for (at, size) in self.widths.iter().enumerate() {
            let size = Extent::new("hidden", **size);
            // Rules of initialisation match the path, so it must be the one under which the layer is added.
            let numbered = |name: &str| match at {
                0 => name.to_owned(),
                _ => format!("{name}_{}", at.saturating_add(1)),
            };
            let name = numbered("hidden");
            let member = b.layer(&name, site.linear(&name, width, size, self.bias));
            h = b.op("h", Op::Layer { member }, &[h])?;
            h = self.activation.lower(b, h)?;
            width = size;
            if let Some(norm) = self.norm {
                h = norm.lower(b, &site.norm(&numbered("norm")), "h", width, h)?;
            }
        }
        Ok((h, width))
    }

    /// Adds the layers, dropout and the projection to the scores: `[.., width]` to `[.., scores]`.
    pub fn scores(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        (x, width): (ValueId, Extent),
        dropout: Probability,
        (scores, bias): (Extent, bool),
    ) -> Built {
        let (h, width) = self.lower(b, site, x, width)?;
        let h = b.dropout(*dropout, h)?;
        let member = b.layer("output", site.linear("output", width, scores, bias));
        b.op("logits", Op::Layer { member }, &[h])
    }
}

/// A record of a head that scores every token: its own fields, then those of the hidden layers and the
/// projections.
macro_rules! token_head {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident as $title:literal { $($own:tt)* }
    ) => {
        $crate::field::record::record! {
            $(#[doc = $doc])*
            pub struct $name as $title {
                $($own)*
                /// Widths of hidden layers before the scores.
                hidden: $crate::parts::head::hidden::Widths = value(Default::default());
                /// Nonlinearity after each hidden layer.
                activation: $crate::parts::activation::Activation =
                    value($crate::parts::activation::Activation::Tanh);
                /// Norm after each hidden layer's nonlinearity (ModernBERT).
                norm: Option<$crate::parts::norm::Norm> = absent;
                /// Whether the hidden layers have a bias; by default as `bias` says.
                hidden_bias: Option<bool> = absent;
                /// Dropout before the scores.
                dropout: $crate::field::Probability = value($crate::field::Probability(0.0));
                /// Whether the projections have a bias.
                bias: bool = value(true);
            } rules [
                $crate::parts::head::hidden::NONLINEAR,
                $crate::parts::head::hidden::needed_by("norm"),
                $crate::parts::head::hidden::needed_by("hidden_bias"),
            ];
        }
    };
}
pub(crate) use token_head;

/// The nonlinearity of hidden layers, which has no effect without any.
pub const NONLINEAR: Rule = Rule::excludes(
    ("activation", Is::Not("tanh")),
    ("hidden", Is::Empty),
    "the head has no hidden layer, so `activation` would have no effect",
)
.label("no layer here")
.help("add `hidden: [d_model]`, or remove it");

/// A field about hidden layers, which has no effect without any.
pub const fn needed_by(field: &'static str) -> Rule {
    Rule::excludes(
        (field, Is::Given),
        ("hidden", Is::Empty),
        "the head has no hidden layer, so `{field}` would have no effect",
    )
    .label("no layer here")
    .help("add `hidden: [d_model]`, or remove it")
}
