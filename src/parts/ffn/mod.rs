//! Feed-forward parts. To add one, add a file here and a row below.

pub mod glu;
pub mod mixture;
pub mod mlp;

pub use glu::Glu;
pub use mixture::Mixture;
pub use mlp::Mlp;

use super::own::{self, OwnPart};
use super::scope::Scope;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{Reader, slot};
use crate::field::{Context, Positive};
use crate::ir::infer::Mismatch;
use crate::ir::text::thousands;
use crate::ir::{Dim, Extent, ModuleId, Part, Slot, Sym, Type};
use crate::syntax::expr::Scope as _;

slot! {
    /// What is applied to every position separately.
    pub enum Ffn as "ffn" implied "mlp" own OwnPart {
        /// `down(activation(up(x)))` (Vaswani et al. 2017)
        "mlp" => Mlp(Mlp),
        /// `down(activation(gate(x)) * up(x))` (Shazeer 2020)
        "glu" => Glu(Glu),
        /// A few of many experts, chosen for each token
        "moe" => Mixture(Mixture),
    }
}

/// Where a feed-forward part is lowered.
pub struct Site<'a> {
    /// The stack that contains it.
    pub scope: &'a Scope,
    /// The path of the instance below the stack: `blocks.*.ffn`.
    pub path: String,
    /// The name of the module in the graph and in emitted code: `DecoderFfn`.
    pub module: String,
    /// Whether the input is `[N, D]`, the rows sent to an expert, instead of `[B, T, D]`.
    pub is_expert: bool,
}

impl Site<'_> {
    /// The type of the input.
    pub fn input(&self) -> Type {
        if self.is_expert {
            return Type::float([Dim::sym(Sym::Rows), Dim::from(self.scope.d_model)]);
        }
        self.scope.activations(self.scope.d_model)
    }

    /// The module of a part that the spec defines, which takes nothing but its input here.
    fn own(&self, part: &OwnPart) -> Result<ModuleId, Mismatch> {
        let site = own::lower::Site {
            pairs: Vec::new(),
            emptied: Vec::new(),
            arena: &self.scope.arena,
            init: &self.scope.init,
            path: format!("{}.{}", self.scope.path, self.path),
            module: self.module.clone(),
            prefix: &self.scope.prefix,
            inputs: vec![self.input()],
            origins: Vec::new(),
            stack: None,
            slot: Some(Slot::Ffn),
        };
        part.lower(&site).map(|lowered| lowered.module)
    }

    /// The site of a part inside this one.
    pub fn child(&self, name: &str, module: &str, is_expert: bool) -> Site<'_> {
        Site {
            scope: self.scope,
            path: format!("{}.{name}", self.path),
            module: format!("{}{module}", self.scope.prefix),
            is_expert,
        }
    }
}

impl Ffn {
    /// The module: `x [B, T, D] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        match self {
            Ffn::Mlp(f) => f.lower(site),
            Ffn::Glu(f) => f.lower(site),
            Ffn::Mixture(f) => f.lower(site),
            Ffn::Own(f) => site.own(f),
        }
    }
}

/// A feed-forward part in a few words: its activation and its widths.
fn sizes(title: &str, activation: Option<String>, d_model: Extent, hidden: u64) -> Part {
    let widths = format!("{} → {}", thousands(d_model.into()), thousands(hidden.into()));
    let words: Vec<String> = activation.into_iter().chain([widths]).collect();
    Part::new(Slot::Ffn, title).note(words.join(" · "))
}

/// The inner width as a multiple of `d_model`; `None` if `d_model` is not known.
fn expansion(hidden: u64, cx: &Context<'_>) -> Option<Positive> {
    // Not known after an error in `d_model`.
    let (d_model, _) = cx.lookup("d_model")?;
    Some(Positive(hidden as f64 / d_model.to_f64()))
}

/// Reports a width that is given twice with different values.
fn widths(reader: &mut Reader<'_>, cx: &mut Context<'_>) -> Option<()> {
    let known = |name: &str| cx.lookup(name).map(|(n, _)| n);
    let (Some(expansion), Some(d_model)) = (known("expansion"), known("d_model")) else { return Some(()) };
    let Some((hidden, place)) = reader.number("hidden", cx) else { return Some(()) };
    // A size whose product with another one is no number is refused elsewhere.
    let Some(said) = expansion.times(d_model) else { return Some(()) };
    // A quotient without a short decimal form is rounded when it is written, so equality is tested with a
    // tolerance.
    let agree = (said.to_f64() - hidden as f64).abs() <= hidden as f64 * 1e-12;
    // Only values that the author gave can contradict each other.
    if !reader.has("expansion") || !reader.has("hidden") || agree {
        return Some(());
    }
    let message = format!("`expansion` gives an inner width of {said}, but `hidden` one of {hidden}");
    cx.report(
        Diagnostic::error(Code::KeysExclude, place, message)
            .label(reader.place("expansion"), format!("{expansion} times d_model, which is {d_model}"))
            .help("keep one of them; without `hidden` it follows from `d_model`"),
    );
    None
}
