//! Lowers a defined part to a module, and checks its shapes by doing so once before the spec is accepted.

use std::collections::BTreeMap;

use super::plan::{Amount, Flow, FlowKind, OwnPart, PartCall, WordCall};
use super::vocabulary::Fields;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::value::MAX_SIZE;
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op, Reduction};
use crate::ir::{Dim, Extent, Init, ModuleId, Part, Role, Slot, Sym, Type, ValueId};
use crate::parts::activation::Activation;
use crate::parts::init::{self, InitPlan};
use crate::parts::norm;
use crate::source::Span;
use crate::syntax::expr::Scope as _;

/// Where a defined part is lowered.
pub struct Site<'a> {
    /// The modules built so far.
    pub arena: &'a Arena,
    /// The initial values of parameters.
    pub init: &'a InitPlan,
    /// The path of the part's parameters: `decoder.blocks.*.ffn`.
    pub path: String,
    /// The name of the module in the graph and in emitted code.
    pub module: String,
    /// The prefix of the modules of parts inside this one.
    pub prefix: &'a str,
    /// The types of the inputs.
    pub inputs: Vec<Type>,
    /// Where the last size of each input comes from, for messages.
    pub origins: Vec<Vec<(Span, String)>>,
}

/// Why a part cannot be lowered.
enum Fault {
    /// Its shapes do not fit.
    Wrong(Box<Diagnostic>),
    /// An op that an author does not write refused its inputs.
    Bug(Mismatch),
}

impl From<Mismatch> for Fault {
    fn from(mismatch: Mismatch) -> Self {
        Fault::Bug(mismatch)
    }
}

type Lowered<T> = Result<T, Fault>;

/// Places that say where a size comes from, each with its words.
type Places = Vec<(Span, String)>;

/// A value, and where its last size comes from.
#[derive(Clone)]
struct Wide {
    id: ValueId,
    from: Places,
}

impl OwnPart {
    /// The module, which takes the inputs and returns the result.
    ///
    /// # Errors
    /// A bug in trafoc: shapes were checked when the part was decoded.
    pub fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        module(self, site).map(|(module, ..)| module).map_err(|fault| match fault {
            Fault::Wrong(diagnostic) => Mismatch(diagnostic.message),
            Fault::Bug(mismatch) => mismatch,
        })
    }

    /// What it is, in a few words.
    pub fn described(&self) -> Part {
        let value = |(name, value): &(String, super::plan::FieldValue)| {
            format!("{name} {}", value.encode().text().unwrap_or(""))
        };
        self.values.iter().map(value).fold(Part::new(Slot::Ffn, self.name()), Part::note)
    }
}

/// Checks the shapes of a part whose inputs are as wide as the stack, and whether its result is as wide, too.
pub fn check(part: &OwnPart, cx: &mut Context<'_>) -> Option<()> {
    // Without a width, which is an error of its own, nothing can be said.
    let (number, place) = cx.lookup("d_model")?;
    let d_model = Extent::new("d_model", number.to_u64().filter(|n| (1..=MAX_SIZE).contains(n))?);
    // In an arena of its own, so that nothing is left of it; initial values have no influence on shapes.
    let plan = InitPlan::new(&init::Init::default());
    let input = Type::float([Dim::sym(Sym::Batch), Dim::sym(Sym::Time), Dim::from(d_model)]);
    let site = Site {
        arena: &Arena::new(),
        init: &plan,
        path: part.name().to_owned(),
        module: part.name().to_owned(),
        prefix: "",
        inputs: vec![input.clone(); part.definition.inputs.len()],
        origins: vec![
            place.into_iter().map(|span| (span, format!("d_model is {number} here"))).collect();
            part.definition.inputs.len()
        ],
    };
    let wrong = match module(part, &site) {
        Ok((_, ty, _)) if ty == input => return Some(()),
        Ok((_, ty, from)) => {
            let message = format!(
                "the result of `{}` is {}, and a part in a block returns {}, as it is given",
                part.name(),
                shape(&ty),
                shape(&input)
            );
            let diagnostic = Diagnostic::error(Code::ShapeMismatch, part.definition.result.span, message);
            let diagnostic = from.into_iter().fold(diagnostic, |d, (span, text)| d.label(span, text));
            let diagnostic = place
                .into_iter()
                .fold(diagnostic, |d, span| d.label(span, format!("d_model is {number} here")));
            diagnostic.help("end with a projection to that width: `linear(.., d_model)`")
        }
        Err(Fault::Wrong(diagnostic)) => *diagnostic,
        Err(Fault::Bug(mismatch)) => Diagnostic::error(Code::ShapeMismatch, part.definition.span, mismatch.0),
    };
    // Without fields, every use of the part has the same fault, and it is reported once.
    cx.report(if part.definition.fields.is_empty() {
        wrong
    } else {
        wrong.label(part.places.whole(), "for this use of the part")
    });
    None
}

/// A type as messages show it: `[B, T, 64]`.
fn shape(ty: &Type) -> String {
    let sizes: Vec<String> = ty.shape.iter().map(Dim::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// The name of a value or member for an author's name: in lower case, with a letter first.
fn variable(name: &str) -> String {
    let plain = name.to_ascii_lowercase();
    if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

/// The name of a module of a part: `gated_unit` becomes `GatedUnit`.
pub fn module_name(part: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    part.split('_').map(capital).collect()
}

/// The module of a part, the type of its result, and where its last size comes from.
fn module(part: &OwnPart, site: &Site<'_>) -> Lowered<(ModuleId, Type, Places)> {
    let mut b = Builder::new(site.arena, site.module.clone(), Role::Ffn);
    b.at(part.places.whole());
    b.part(part.described());
    // The fields have their values here, which the description lists.
    for line in part.definition.lines().iter().skip(part.definition.fields.len()) {
        b.doc(format!("`{line}`"));
    }
    let mut variables = BTreeMap::new();
    let mut origins = site.origins.iter().cloned();
    for ((name, _), ty) in part.definition.inputs.iter().zip(&site.inputs) {
        let id = b.argument(&variable(name), ty.clone());
        variables.insert(name.clone(), Wide { id, from: origins.next().unwrap_or_default() });
    }
    let mut lowering = Lowering { b, site, variables };
    for step in &part.steps {
        let value = lowering.flow(&step.value, &variable(&step.target))?;
        lowering.variables.insert(step.target.clone(), value);
    }
    let result = lowering.flow(&part.result, "y")?;
    let ty = lowering.b.ty(result.id).clone();
    Ok((lowering.b.finish(&[result.id]), ty, result.from))
}

struct Lowering<'s> {
    b: Builder,
    site: &'s Site<'s>,
    variables: BTreeMap<String, Wide>,
}

impl Lowering<'_> {
    /// Adds the nodes of a tensor, which gets this name as a value of the graph.
    fn flow(&mut self, flow: &Flow, name: &str) -> Lowered<Wide> {
        self.b.at(flow.span);
        match &flow.kind {
            FlowKind::Name(variable) => {
                let value = self.variables.get(variable).cloned();
                Ok(value.ok_or_else(|| Mismatch(format!("no variable {variable}")))?)
            }
            FlowKind::Sum(terms) => self.fold(flow, terms, name, || Op::Add),
            FlowKind::Product(factors) => self.fold(flow, factors, name, || Op::Mul),
            FlowKind::Quotient(both) => self.fold(flow, both.as_slice(), name, || Op::Divide),
            FlowKind::Elementary(function, inner) => {
                let inner = self.flow(inner, "h")?;
                self.like(&inner, name, Op::Elementary(*function))
            }
            FlowKind::Scale(by, inner) => {
                let inner = self.flow(inner, "h")?;
                self.like(&inner, name, Op::Scale { by: (*by).into() })
            }
            FlowKind::Shift(by, inner) => {
                let inner = self.flow(inner, "h")?;
                self.like(&inner, name, Op::Shift { by: *by })
            }
            FlowKind::Activate(activation, inner) => {
                let inner = self.flow(inner, "h")?;
                let op = match activation {
                    Activation::Relu => op::Activation::Relu,
                    Activation::Relu2 => op::Activation::Relu2,
                    Activation::Gelu => op::Activation::Gelu,
                    Activation::GeluTanh => op::Activation::GeluTanh,
                    Activation::QuickGelu => op::Activation::QuickGelu,
                    Activation::Silu => op::Activation::Silu,
                    Activation::Tanh => op::Activation::Tanh,
                    Activation::Sigmoid => op::Activation::Sigmoid,
                    Activation::None => return Ok(inner),
                };
                self.like(&inner, name, Op::Activate(op))
            }
            FlowKind::Norm(norm, member, inner) => {
                let (place, inner) = (inner.span, self.flow(inner, "h")?);
                self.b.at(flow.span);
                let (member, width) = (variable(member), self.width(&inner, place)?);
                let site = norm::Site { init: self.site.init, path: self.path(&member), member: &member };
                let id = norm.lower(&mut self.b, &site, name, width, inner.id)?;
                Ok(Wide { id, ..inner })
            }
            FlowKind::Word(call) => self.word(call, flow.span, name),
            FlowKind::Part(call) => self.part(call, flow.span, name),
        }
    }

    /// Adds an op that keeps the shape of its input.
    fn like(&mut self, inner: &Wide, name: &str, op: Op) -> Lowered<Wide> {
        let id = self.b.op(name, op, &[inner.id])?;
        Ok(Wide { id, from: inner.from.clone() })
    }

    /// Sums or multiplies tensors from left to right.
    fn fold(&mut self, whole: &Flow, flows: &[Flow], name: &str, op: fn() -> Op) -> Lowered<Wide> {
        let mut all = Vec::new();
        for flow in flows {
            all.push((self.flow(flow, "h")?, flow.span));
        }
        self.b.at(whole.span);
        let mut values = all.into_iter();
        let (mut folded, mut place) = values.next().ok_or(Mismatch("an empty sum".into()))?;
        for (value, span) in values {
            let id = match self.b.op(name, op(), &[folded.id, value.id]) {
                Ok(id) => id,
                Err(mismatch) => {
                    return Err(self.unfit(whole.span, &mismatch, &[(&folded, place), (&value, span)]));
                }
            };
            // What is broadcast has the size of the other.
            let is_wider = self.b.ty(id).last() == self.b.ty(value.id).last()
                && self.b.ty(id).last() != self.b.ty(folded.id).last();
            folded = Wide { id, from: if is_wider { value.from } else { folded.from } };
            place = place.to(span);
        }
        Ok(folded)
    }

    /// The error that tensors do not fit together.
    fn unfit(&self, at: Span, mismatch: &Mismatch, operands: &[(&Wide, Span)]) -> Fault {
        let shapes: Vec<String> = operands.iter().map(|(value, _)| shape(self.b.ty(value.id))).collect();
        let message = format!("{} do not fit together: {}", shapes.join(" and "), mismatch.0);
        let mut diagnostic = Diagnostic::error(Code::ShapeMismatch, at, message);
        for ((value, span), shape) in operands.iter().zip(&shapes) {
            diagnostic = diagnostic.label(*span, shape.clone());
            let from = value.from.iter();
            diagnostic = from.fold(diagnostic, |d, (span, words)| d.label(*span, words.clone()));
        }
        Fault::Wrong(Box::new(
            diagnostic.help("make the sizes equal, or project one of the two with `linear`"),
        ))
    }

    /// The number of features of a value.
    fn width(&self, value: &Wide, at: Span) -> Lowered<Extent> {
        let ty = self.b.ty(value.id);
        ty.last().and_then(Dim::extent).ok_or_else(|| {
            let message = format!("a tensor with features is needed, and this is {}", shape(ty));
            Fault::Wrong(Box::new(Diagnostic::error(Code::ShapeMismatch, at, message)))
        })
    }

    fn path(&self, member: &str) -> String {
        format!("{}.{member}", self.site.path)
    }

    fn word(&mut self, call: &WordCall, at: Span, name: &str) -> Lowered<Wide> {
        let mut inputs = Vec::new();
        for input in &call.inputs {
            inputs.push((self.flow(input, "h")?, input.span));
        }
        self.b.at(at);
        let member = variable(&call.member);
        let path = self.path(&member);
        let numbers = call.numbers.as_slice();
        let (number, second) = (numbers.first(), numbers.get(1));
        // `param` is the only word without a tensor.
        let Some((x, place)) = inputs.first().cloned() else {
            let Fields::Param(fields) = &call.fields else {
                return Err(Mismatch("a word without a tensor".into()).into());
            };
            let sizes = numbers.iter().map(|amount| size(amount, 1)).collect::<Lowered<Vec<Extent>>>()?;
            let layer = self.site.init.own_param(&path, sizes, fields.init.as_ref());
            let member = self.b.layer(&member, layer);
            let id = self.b.op(name, Op::Layer { member }, &[])?;
            return Ok(Wide { id, from: numbers.last().map(origin).unwrap_or_default() });
        };
        match &call.fields {
            Fields::Linear(fields) => {
                let amount = number.ok_or(Mismatch("a projection without a size".into()))?;
                let (input, output) = (self.width(&x, place)?, size(amount, 1)?);
                let plan = self.site.init;
                // `init.residual` is a factor on the last projection of a residual branch.
                let layer = if call.is_output {
                    plan.branch_output(&path, input, output, fields.bias)
                } else {
                    plan.linear(&path, input, output, fields.bias)
                };
                let member = self.b.layer(&member, layer);
                let id = self.b.op(name, Op::Layer { member }, &[x.id])?;
                Ok(Wide { id, from: origin(amount) })
            }
            Fields::Param(_) => Err(Mismatch("a parameter takes no tensor".into()).into()),
            Fields::Gain(fields) => {
                let width = self.width(&x, place)?;
                let start = Some(Init::Constant(*fields.init));
                let weight = self.b.param(&member, self.site.init.param(&path, vec![width], start))?;
                let id = self.b.op(name, Op::Mul, &[x.id, weight])?;
                Ok(Wide { id, from: x.from })
            }
            Fields::Dropout(fields) => {
                let id = self.b.dropout(*fields.p, x.id)?;
                Ok(Wide { id, from: x.from })
            }
            Fields::Clamp(fields) => {
                let op = Op::Clamp { min: fields.min.map(|m| *m), max: fields.max.map(|m| *m) };
                self.like(&x, name, op)
            }
            Fields::Softcap(_) => {
                let amount = number.ok_or(Mismatch("a softcap without a cap".into()))?;
                let cap = amount.number.to_f64();
                if !(cap > 0.0 && cap.is_finite()) {
                    let message = format!("the cap {} is not above 0", valued(amount));
                    return Err(wrong(Code::OutOfRange, amount.span, message));
                }
                self.like(&x, name, Op::Softcap { cap })
            }
            Fields::Normalize(_) => self.like(&x, name, Op::Normalize),
            Fields::Softmax(_) => self.like(&x, name, Op::Softmax),
            Fields::Sum(_) => self.reduced(&x, place, at, name, Reduction::Sum),
            Fields::Mean(_) => self.reduced(&x, place, at, name, Reduction::Mean),
            Fields::Amax(_) => self.reduced(&x, place, at, name, Reduction::Max),
            Fields::Slice(_) => {
                let (Some(start), Some(len)) = (number, second) else {
                    return Err(Mismatch("a slice without a size".into()).into());
                };
                let op = Op::Slice { axis_from_last: 0, start: size(start, 0)?, len: size(len, 1)? };
                match self.b.op(name, op, &[x.id]) {
                    Ok(id) => Ok(Wide { id, from: origin(len) }),
                    // In the words of the call, which counts features; the op speaks of an axis.
                    Err(_) => {
                        let end = start.number.plus(len.number).unwrap_or(len.number);
                        let (from, x) = (x.from, shape(self.b.ty(x.id)));
                        let message = format!("{x} has no features {} to {end}", start.number);
                        let diagnostic = Diagnostic::error(Code::ShapeMismatch, at, message);
                        let from = from.into_iter().chain(origin(len));
                        let diagnostic = from.fold(diagnostic, |d, (span, words)| d.label(span, words));
                        Err(Fault::Wrong(Box::new(diagnostic)))
                    }
                }
            }
            Fields::Concat(_) => {
                let ids: Vec<ValueId> = inputs.iter().map(|(value, _)| value.id).collect();
                match self.b.op(name, Op::Concat { axis_from_last: 0 }, &ids) {
                    // The sum of several sizes has no place but the call's.
                    Ok(id) => {
                        let words =
                            format!("{} features together", self.width(&Wide { id, from: Vec::new() }, at)?);
                        Ok(Wide { id, from: vec![(at, words)] })
                    }
                    Err(mismatch) => {
                        let all: Vec<(&Wide, Span)> =
                            inputs.iter().map(|(value, span)| (value, *span)).collect();
                        Err(self.unfit(at, &mismatch, &all))
                    }
                }
            }
        }
    }

    /// Adds a reduction of the features of a value to one number.
    fn reduced(
        &mut self,
        x: &Wide,
        place: Span,
        at: Span,
        name: &str,
        reduction: Reduction,
    ) -> Lowered<Wide> {
        self.width(x, place)?;
        let id = self.b.op(name, Op::Reduce(reduction), &[x.id])?;
        Ok(Wide { id, from: vec![(at, format!("`{}` leaves 1 feature", reduction.name()))] })
    }

    fn part(&mut self, call: &PartCall, at: Span, name: &str) -> Lowered<Wide> {
        let (mut ids, mut origins) = (Vec::new(), Vec::new());
        for input in &call.inputs {
            let value = self.flow(input, "h")?;
            ids.push(value.id);
            origins.push(value.from);
        }
        self.b.at(at);
        let member = variable(&call.member);
        let site = Site {
            arena: self.site.arena,
            init: self.site.init,
            path: self.path(&member),
            module: format!("{}{}", self.site.prefix, module_name(call.part.name())),
            prefix: self.site.prefix,
            inputs: ids.iter().map(|id| self.b.ty(*id).clone()).collect(),
            origins,
        };
        let (module, _, from) = module(&call.part, &site).map_err(|fault| match fault {
            // The sizes of the inputs are those of this call.
            Fault::Wrong(diagnostic) => Fault::Wrong(Box::new(diagnostic.label(at, "called here"))),
            Fault::Bug(mismatch) => Fault::Bug(mismatch),
        })?;
        let member = self.b.child(&member, module);
        let id = self.b.op(name, Op::Call { member }, &ids)?;
        Ok(Wide { id, from })
    }
}

/// Where the last size of a tensor comes from that has it from an argument: the argument, and the names in
/// it.
fn origin(amount: &Amount) -> Places {
    let words = if amount.text == amount.number.to_string() {
        format!("{} here", amount.text)
    } else {
        format!("`{}` is {} here", amount.text, amount.number)
    };
    // A name alone is shown where it has its value, and not where it is used.
    let is_name = amount.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let own = (!is_name || amount.names.is_empty()).then_some((amount.span, words));
    own.into_iter().chain(amount.names.iter().cloned()).collect()
}

/// An amount as messages show it: the number, after its text if that is an expression.
fn valued(amount: &Amount) -> String {
    if amount.text == amount.number.to_string() {
        format!("{}", amount.number)
    } else {
        format!("`{}` = {}", amount.text, amount.number)
    }
}

/// An amount as a size of at least this.
fn size(amount: &Amount, least: u64) -> Lowered<Extent> {
    if let Some(size) = amount.size.filter(|size| size.get() >= least) {
        return Ok(size);
    }
    let value = valued(amount);
    let is_whole = amount.number.is_integer();
    let (code, message) = match is_whole {
        true => (Code::OutOfRange, format!("{value} is not between {least} and 2^40")),
        false => (Code::NotWhole, format!("{value} is not a whole number")),
    };
    let diagnostic = Diagnostic::error(code, amount.span, message);
    let names = amount.names.iter();
    let diagnostic = names.fold(diagnostic, |d, (span, words)| d.label(*span, words.clone()));
    let help = "`floor(..)`, `round(..)` and `multiple_of(x, n)` round";
    Err(Fault::Wrong(Box::new(if is_whole { diagnostic } else { diagnostic.help(help) })))
}

fn wrong(code: Code, at: Span, message: String) -> Fault {
    Fault::Wrong(Box::new(Diagnostic::error(code, at, message)))
}
