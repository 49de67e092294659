//! Lowers a defined part to a module, and checks its shapes by doing so once before the spec is accepted.

use std::collections::{BTreeMap, BTreeSet};

use super::amount::valued;
pub(super) use super::amount::{origin, size};
pub(super) use super::fault::{Fault, Lowered};
use super::fields::Fields;
use super::plan::{Flow, FlowKind, MEMORY, OwnPart, PartCall, WordCall};
use super::value::{Pairs, Places, Wide};
use crate::diag::{Code, Diagnostic};
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op, Reduction};
use crate::ir::{Dim, Extent, Init, ModuleId, Part, Role, Slot, Sym, Type, ValueId};
use crate::parts::activation::Activation;
use crate::parts::init::InitPlan;
use crate::parts::norm;
use crate::parts::position::Position;
use crate::parts::scope::{self, AmbientId, Scope};
use crate::source::Span;

/// The stack in whose blocks a part is lowered.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    /// Its sequence, masks and other values that blocks share.
    pub scope: &'a Scope,
    /// The positional scheme of the block.
    pub position: &'a Position,
    /// The longest sequence of the model, in positions.
    pub context: u64,
}

/// Where a defined part is lowered.
#[derive(Clone)]
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
    /// The inputs that are numbers for every query and key; empty if there are none.
    pub pairs: Vec<Option<Pairs>>,
    /// For each input whether it may be 0 at padding, see `unless_empty`; no entries if none may be.
    pub emptied: Vec<bool>,
    /// The stack, where the part may look at other positions.
    pub stack: Option<Stack<'a>>,
    /// The place of the part in the model; if absent, that of attention or of a feed-forward part.
    pub slot: Option<Slot>,
}

impl Stack<'_> {
    /// The number of positions of the longest sequence.
    pub fn longest(&self) -> u64 {
        // That of an image is always the same, whatever the context.
        let positions = self.scope.sequence.queries();
        positions.constant().and_then(|n| u64::try_from(n).ok()).unwrap_or(self.context)
    }
}

impl<'a> Site<'a> {
    /// The site of a part that is called by its name in a block.
    pub fn called(part: &OwnPart, name: &str, stack: Stack<'a>) -> Self {
        let scope = stack.scope;
        Self {
            arena: &scope.arena,
            init: &scope.init,
            path: format!("{}.blocks.*.{name}", scope.path),
            module: format!("{}{}", scope.prefix, module_name(part.name())),
            prefix: &scope.prefix,
            inputs: part.definition.inputs.iter().map(|(name, _)| scope.input(name == MEMORY)).collect(),
            origins: Vec::new(),
            pairs: Vec::new(),
            emptied: Vec::new(),
            stack: Some(stack),
            slot: None,
        }
    }
}

/// A module of a part.
pub(super) struct Outcome {
    pub module: ModuleId,
    /// The type of the result, and where its last size comes from.
    pub ty: Type,
    pub from: Places,
    pub pairs: Option<Pairs>,
    /// The values of the stack that it takes after its inputs.
    pub needs: Vec<AmbientId>,
}

impl OwnPart {
    /// The module, which takes the inputs and returns the result.
    ///
    /// # Errors
    /// A bug in trafoc: shapes were checked when the part was decoded.
    pub fn lower(&self, site: &Site<'_>) -> Result<scope::Lowered, Mismatch> {
        let lowered = |outcome: Outcome| scope::Lowered { module: outcome.module, needs: outcome.needs };
        module(self, site).map(lowered).map_err(|fault| match fault {
            Fault::Wrong(diagnostic) => Mismatch(diagnostic.message),
            Fault::Bug(mismatch) => mismatch,
        })
    }

    /// What it is, in a few words.
    pub fn described(&self) -> Part {
        let value = |(name, value): &(String, super::plan::FieldValue)| {
            format!("{name} {}", value.encode().text().unwrap_or(""))
        };
        let slot = if self.of_stack().is_some() { Slot::Attention } else { Slot::Ffn };
        self.values.iter().map(value).fold(Part::new(slot, self.name()), Part::note)
    }
}

/// A type as messages show it: `[B, T, 64]`.
pub(super) fn shape(ty: &Type) -> String {
    let sizes: Vec<String> = ty.shape.iter().map(Dim::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// The name of a value or member for an author's name: in lower case, with a letter first.
pub(super) fn variable(name: &str) -> String {
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

/// The module of a part. The values of the stack that its words need are its last arguments. Which these are
/// follows from the sizes of heads, and arguments come before nodes, so the part is lowered once before that,
/// into an arena that is dropped.
pub(super) fn module(part: &OwnPart, site: &Site<'_>) -> Lowered<Outcome> {
    // What is given numbers for every query and key may need the mask of the stack for them, and so may what divides by
    // zeros of padding.
    let may_need_mask = site.pairs.iter().any(Option::is_some) || site.emptied.contains(&true);
    if part.of_stack().is_none() && !may_need_mask {
        return with_needs(part, site, Some(&[]));
    }
    let Outcome { needs, .. } = with_needs(part, &Site { arena: &Arena::new(), ..site.clone() }, None)?;
    with_needs(part, site, Some(&needs))
}

/// The module of a part with these values of the stack as its last arguments; without them, if they are to be
/// found.
fn with_needs(part: &OwnPart, site: &Site<'_>, needs: Option<&[AmbientId]>) -> Lowered<Outcome> {
    let described = part.described();
    let described = Part { slot: site.slot.unwrap_or(described.slot), ..described };
    let role = match described.slot {
        Slot::Norm => Role::Norm,
        Slot::Attention => Role::Attention,
        Slot::Embed | Slot::Encoder | Slot::Decoder | Slot::Cross | Slot::Ffn | Slot::Head => Role::Ffn,
    };
    let mut b = Builder::new(site.arena, site.module.clone(), role);
    b.at(part.places.whole());
    b.part(described);
    // The fields have their values here, which the description lists.
    for line in part.definition.lines().iter().skip(part.definition.fields.len()) {
        b.doc(format!("`{line}`"));
    }
    let mut variables = BTreeMap::new();
    let mut emptied = BTreeSet::new();
    let mut origins = site.origins.iter().cloned();
    let mut pairs = site.pairs.iter().copied();
    for ((name, _), ty) in part.definition.inputs.iter().zip(&site.inputs) {
        let id = b.argument(&variable(name), ty.clone());
        let from = origins.next().unwrap_or_default();
        if site.emptied.get(variables.len()) == Some(&true) {
            emptied.insert(id);
        }
        variables.insert(name.clone(), Wide { id, from, pairs: pairs.next().flatten() });
    }
    let of_stack = match (needs, site.stack) {
        (Some(needs), Some(stack)) => {
            needs.iter().copied().zip(stack.scope.arguments(&mut b, needs)).collect()
        }
        (_, _) => BTreeMap::new(),
    };
    let of_batch = of_batch(&b, &variables);
    let mut lowering = Lowering {
        b,
        part: part.name().to_owned(),
        of_batch,
        site,
        emptied,
        variables,
        of_stack,
        kept: BTreeMap::new(),
        unpadded: BTreeMap::new(),
        finds: needs.is_none(),
    };
    for step in &part.steps {
        let value = lowering.flow(&step.value, &variable(&step.target))?;
        lowering.variables.insert(step.target.clone(), value);
    }
    let result = lowering.flow(&part.result, "y")?;
    lowering.refuse_what_sees_the_batch(result.id, part.definition.result.span)?;
    let Lowering { b, of_stack, .. } = lowering;
    let ty = b.ty(result.id).clone();
    let needs = of_stack.into_keys().collect();
    let Wide { id, from, pairs } = result;
    Ok(Outcome { module: b.finish(&[id]), ty, from, pairs, needs })
}

/// An input that has every example of the batch.
fn of_batch(b: &Builder, variables: &BTreeMap<String, Wide>) -> Option<ValueId> {
    let has_batch = |id: &ValueId| b.ty(*id).shape.first() == Some(&Dim::sym(Sym::Batch));
    variables.values().map(|value| value.id).find(has_batch)
}

pub(super) struct Lowering<'s> {
    pub b: Builder,
    /// The name of the part.
    pub part: String,
    pub site: &'s Site<'s>,
    /// The inputs that may be 0 at padding.
    pub emptied: BTreeSet<ValueId>,
    variables: BTreeMap<String, Wide>,
    /// An input that has every example of the batch.
    pub of_batch: Option<ValueId>,
    /// The values of the stack that have been used.
    of_stack: BTreeMap<AmbientId, Vec<ValueId>>,
    /// Keys and values as they are in the cache, each once, though several words may read it.
    pub kept: BTreeMap<ValueId, ValueId>,
    /// Values with zeros where there is padding, by those that have something there.
    pub unpadded: BTreeMap<ValueId, ValueId>,
    /// Whether this finds out which values of the stack the part needs.
    finds: bool,
}

impl Lowering<'_> {
    /// Values of the stack, which are arguments of the module.
    pub fn of_stack(&mut self, stack: Stack<'_>, id: AmbientId) -> Vec<ValueId> {
        if let Some(known) = self.of_stack.get(&id) {
            return known.clone();
        }
        let values = stack.scope.ambient_values(id);
        let values: Vec<ValueId> = values.into_iter().map(|(name, ty)| self.b.outside(name, ty)).collect();
        self.of_stack.insert(id, values.clone());
        values
    }

    /// Adds the nodes of a tensor, which gets this name as a value of the graph.
    pub(super) fn flow(&mut self, flow: &Flow, name: &str) -> Lowered<Wide> {
        self.b.at(flow.span);
        match &flow.kind {
            FlowKind::Name(variable) => {
                let value = self.variables.get(variable).cloned();
                Ok(value.ok_or_else(|| Mismatch(format!("no variable {variable}")))?)
            }
            FlowKind::Number(number) => {
                let zero = self.b.op("zero", Op::Range { len: 1.into() }, &[])?;
                let id = self.b.op(name, Op::Shift { by: *number }, &[zero])?;
                Ok(Wide::new(id, Vec::new()))
            }
            FlowKind::Sum(terms) => self.fold(flow, terms, name, || Op::Add),
            FlowKind::Product(factors) => self.fold(flow, factors, name, || Op::Mul),
            FlowKind::Quotient(both) => self.fold(flow, both.as_slice(), name, || Op::Divide),
            FlowKind::Elementary(function, inner) => {
                let inner = self.flow(inner, "h")?;
                let inner = self.fit_for(*function, &inner)?;
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
                self.has_features(norm.part(), &inner, place)?;
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
    pub fn like(&mut self, inner: &Wide, name: &str, op: Op) -> Lowered<Wide> {
        let pairs = inner.pairs.map(|pairs| pairs.after(&op));
        let id = self.b.op(name, op, &[inner.id])?;
        Ok(Wide { id, from: inner.from.clone(), pairs })
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
            let value = if op() == Op::Divide { self.unless_empty(&value)? } else { value };
            let id = match self.b.op(name, op(), &[folded.id, value.id]) {
                Ok(id) => id,
                Err(mismatch) => {
                    return Err(self.unfit(whole.span, &mismatch, &[(&folded, place), (&value, span)]));
                }
            };
            // What is broadcast has the size of the other.
            let is_wider = self.b.ty(id).last() == self.b.ty(value.id).last()
                && self.b.ty(id).last() != self.b.ty(folded.id).last();
            let pairs = match self.joined(&folded, &value, &op()) {
                Ok(pairs) => pairs,
                Err(message) => return Err(wrong(Code::ShapeMismatch, whole.span, message)),
            };
            folded = Wide { id, from: if is_wider { value.from } else { folded.from }, pairs };
            place = place.to(span);
        }
        Ok(folded)
    }

    /// The error that tensors do not fit together.
    pub(super) fn unfit(&self, at: Span, mismatch: &Mismatch, operands: &[(&Wide, Span)]) -> Fault {
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
    pub fn width(&self, value: &Wide, at: Span) -> Lowered<Extent> {
        let ty = self.b.ty(value.id);
        ty.last().and_then(Dim::extent).ok_or_else(|| {
            let message = format!("a tensor with features is needed, but this is {}", shape(ty));
            Fault::Wrong(Box::new(Diagnostic::error(Code::ShapeMismatch, at, message)))
        })
    }

    pub fn path(&self, member: &str) -> String {
        format!("{}.{member}", self.site.path)
    }

    fn word(&mut self, call: &WordCall, at: Span, name: &str) -> Lowered<Wide> {
        // The part is called by each expert, and not here.
        if let Fields::Experts(_) = call.fields {
            return self.experts(call, at, name);
        }
        let mut inputs = Vec::new();
        for input in &call.inputs {
            inputs.push((self.flow(input, "h")?, input.span));
        }
        self.b.at(at);
        self.of_features(&call.fields, &inputs)?;
        let member = variable(&call.member);
        let path = self.path(&member);
        let numbers = call.numbers.as_slice();
        let (number, second) = (numbers.first(), numbers.get(1));
        let Some((x, place)) = inputs.first().cloned() else {
            let sizes = numbers.iter().map(|amount| size(amount, 1)).collect::<Lowered<Vec<Extent>>>()?;
            let id = if let Fields::Param(fields) = &call.fields {
                if fields.shared {
                    self.shared_param(fields, &member, sizes)?
                } else {
                    let layer = self.site.init.own_param(&path, sizes, fields.init.as_ref());
                    let member = self.b.layer(&member, layer);
                    self.b.op(name, Op::Layer { member }, &[])?
                }
            } else if let Fields::Positions(_) = &call.fields {
                let width = sizes.first().copied().ok_or(Mismatch("positions without a size".into()))?;
                self.positions(&member, width, name)?
            } else {
                // `arange` is the other word without a tensor.
                let len = sizes.first().copied().ok_or(Mismatch("a range without a length".into()))?;
                self.b.op(name, Op::Range { len }, &[])?
            };
            return Ok(Wide::new(id, numbers.last().map(origin).unwrap_or_default()));
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
                Ok(Wide::new(id, origin(amount)))
            }
            Fields::Embedding(_) => self.embedding((&x, place), (number, second), &member, name),
            Fields::Param(_) | Fields::Arange(_) | Fields::Positions(_) => {
                Err(Mismatch("a word that takes no tensor has one".into()).into())
            }
            Fields::Gain(fields) => {
                let width = self.width(&x, place)?;
                let start = Some(Init::Constant(*fields.init));
                let weight = self.b.param(&member, self.site.init.param(&path, vec![width], start))?;
                let id = self.b.op(name, Op::Mul, &[x.id, weight])?;
                Ok(Wide::new(id, x.from))
            }
            Fields::Dropout(fields) => {
                let id = self.b.dropout(*fields.p, x.id)?;
                // Zeros stay zeros.
                Ok(Wide { id, ..x })
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
            Fields::Softmax(_) => self.softmax(&x, name),
            Fields::Split(_) => self.split(&x, place, number, name),
            Fields::Merge(_) => self.merge(&x, place, name),
            Fields::Repeat(_) => self.repeat(&x, place, number, name),
            Fields::Rotate(_) => self.rotate(&x, place, at, name),
            Fields::Attend(fields) => self.attend(fields, &inputs, at, name),
            Fields::Shift(_) => self.shift(&x, place, number, name),
            Fields::Conv1d(fields) => self.conv1d(fields, &x, place, number, &member, name),
            Fields::Cumsum(_) => self.cumsum(&x, place, name),
            Fields::Recurrence(_) => self.recurrence(&inputs, at, name),
            Fields::Scores(fields) => self.scores(fields, &inputs, at, name),
            Fields::Relative(fields) => self.relative(fields, &x, place, number, name),
            Fields::OfKeys(_) => self.of_keys(&x, place, name),
            Fields::AtKeys(_) => self.at_keys(&x, place, name),
            Fields::Weigh(_) => self.weigh(&inputs, at, name),
            Fields::Einsum(_) => self.einsum(call.axes.as_ref(), &inputs, at, name),
            Fields::Sum(_) if x.pairs.is_some() => self.sum_of_pairs(&x, at, name),
            Fields::Sum(_) => self.reduced(&x, place, at, name, Reduction::Sum),
            Fields::Mean(_) => self.reduced(&x, place, at, name, Reduction::Mean),
            Fields::Amax(_) if x.pairs.is_some() => {
                let seen = self.lowered(&x)?;
                let id = self.b.op(name, Op::Reduce(Reduction::Max), &[seen])?;
                Ok(Wide::new(id, vec![(at, "`amax` leaves 1 feature".to_owned())]))
            }
            Fields::Amax(_) => self.reduced(&x, place, at, name, Reduction::Max),
            Fields::TopK(_) => self.top_k(&x, place, number, name),
            Fields::Experts(_) => Err(Mismatch("experts without a part".into()).into()),
            Fields::BatchMean(_) => self.batch_mean(&x, place, name),
            Fields::WithLoss(fields) => self.with_loss(fields, &inputs, &member),
            Fields::Slice(_) => {
                let (Some(start), Some(len)) = (number, second) else {
                    return Err(Mismatch("a slice without a size".into()).into());
                };
                let op = Op::Slice { axis_from_last: 0, start: size(start, 0)?, len: size(len, 1)? };
                match self.b.op(name, op, &[x.id]) {
                    Ok(id) => Ok(Wide::new(id, origin(len))),
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
                            format!("{} features together", self.width(&Wide::new(id, Vec::new()), at)?);
                        Ok(Wide::new(id, vec![(at, words)]))
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
        Ok(Wide::new(id, vec![(at, format!("`{}` leaves 1 feature", reduction.name()))]))
    }

    fn part(&mut self, call: &PartCall, at: Span, name: &str) -> Lowered<Wide> {
        let (mut ids, mut origins, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for input in &call.inputs {
            let value = self.flow(input, "h")?;
            ids.push(value.id);
            origins.push(value.from);
            pairs.push(value.pairs);
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
            pairs,
            emptied: ids.iter().map(|id| self.may_be_empty(*id)).collect(),
            stack: self.site.stack,
            slot: self.site.slot,
        };
        let called = if self.finds { with_needs(&call.part, &site, None) } else { module(&call.part, &site) };
        let Outcome { module, from, pairs, needs, .. } = called.map_err(|fault| match fault {
            // The sizes of the inputs are those of this call.
            Fault::Wrong(diagnostic) => Fault::Wrong(Box::new(diagnostic.label(at, "called here"))),
            Fault::Bug(mismatch) => Fault::Bug(mismatch),
        })?;
        // A module that is built to find what it needs does not have it as arguments.
        if let Some(stack) = self.site.stack {
            let given: Vec<ValueId> = needs.iter().flat_map(|id| self.of_stack(stack, *id)).collect();
            ids.extend(given.into_iter().filter(|_| !self.finds));
        }
        let member = self.b.child(&member, module);
        let id = self.b.op(name, Op::Call { member }, &ids)?;
        Ok(Wide { id, from, pairs })
    }
}

pub(super) fn wrong(code: Code, at: Span, message: String) -> Fault {
    Fault::Wrong(Box::new(Diagnostic::error(code, at, message)))
}
