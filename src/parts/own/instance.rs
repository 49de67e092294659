//! Gives the fields of a defined part their values where it is used, and computes its sizes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::axes::axes;
use super::calls::members;
use super::fields::Fields;
use super::plan::{Amount, FieldValue, Flow, FlowKind, OwnPart, PartCall, Step, WordCall};
use super::vocabulary::{self, Word};
use crate::diag::{Code, Diagnostic};
use crate::field::context::Fault;
use crate::field::definition::{Definition, OwnDefault};
use crate::field::mend::mended;
use crate::field::value::{MAX_SIZE, Value, wrong_kind};
use crate::field::{Context, Places};
use crate::ir::Extent;
use crate::ir::extent::FIELDS;
use crate::ir::op::Elementary;
use crate::parts::Norm;
use crate::parts::activation::Activation;
use crate::source::Span;
use crate::syntax::equation::{Named, Sign, Term, TermKind};
use crate::syntax::expr::{Expr, ExprKind, Number, Operator};
use crate::syntax::tree::{Entry, Kind, Node, Style};

impl OwnPart {
    /// The part of that name with the fields of a map, or none given. Shapes are checked for inputs as wide
    /// as the stack. `None` after an error.
    pub fn decode(name: &str, node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        cx.note_part(name);
        let definition = cx.definitions().fields_of(name).cloned()?;
        let is_sound = cx.definitions().get(name).is_some();
        if !matches!(node.kind, Kind::Map(_) | Kind::Null) {
            wrong_kind(node, &format!("a map with the fields of `{name}`"), cx);
            return None;
        }
        let names: Vec<String> = definition.fields.iter().map(|field| field.name.clone()).collect();
        let node = mended(node, name, &[], &names, cx);
        let mut instance = Instance::of(&definition, node.span, cx);
        if is_sound {
            return instance.given(&node);
        }
        // What is wrong with the fields here is wrong whatever the equation computes from them.
        let mark = instance.cx.mark();
        instance.decode_fields(&node);
        instance.cx.forget_since(mark);
        None
    }
}

/// A use of a part while its fields get their values.
struct Instance<'d, 'c, 'a> {
    cx: &'c mut Context<'a>,
    definition: &'d Arc<Definition>,
    /// The place of the use.
    at: Span,
    values: Vec<(String, FieldValue)>,
    places: Vec<(String, Span)>,
    follows: Vec<String>,
    tensors: BTreeSet<String>,
    /// The names of the calls with parameters, in reverse order, of those that have not been reached.
    members: Vec<String>,
}

impl<'d, 'c, 'a> Instance<'d, 'c, 'a> {
    fn of(definition: &'d Arc<Definition>, at: Span, cx: &'c mut Context<'a>) -> Self {
        let is_own = |part: &str| cx.definitions().has(part);
        let members = members(&definition.body, &definition.result, &is_own);
        let members = members.into_iter().rev().map(|(name, _)| name).collect();
        let tensors = definition.inputs.iter().map(|(name, _)| name.clone()).collect();
        Self {
            cx,
            definition,
            at,
            values: Vec::new(),
            places: Vec::new(),
            follows: Vec::new(),
            tensors,
            members,
        }
    }

    /// With the fields of a map, whose expressions may use the fields above theirs.
    fn given(mut self, node: &Node) -> Option<OwnPart> {
        let mark = self.cx.mark();
        let sound = self.decode_fields(node);
        let part = if sound { self.plan() } else { None };
        // Fields are names of the part alone.
        self.cx.forget_since(mark);
        Some(self.part(part?))
    }

    /// Gives the fields of a map their values, or their defaults; whether each has one.
    fn decode_fields(&mut self, node: &Node) -> bool {
        let mut sound = true;
        for field in &self.definition.fields {
            let value = match node.get(&field.name) {
                Some(node) => {
                    self.places.push((field.name.clone(), node.span));
                    self.decoded(&field.default, node).map(|value| (value, Some(node.span)))
                }
                None => self.default(&field.name, &field.default),
            };
            if value.is_some_and(|(value, _)| self.is_default(&field.default, value)) {
                self.follows.push(field.name.clone());
            }
            sound &= self.bind(&field.name, value);
        }
        sound
    }

    /// With the arguments of a call, which have their values already.
    fn called(mut self, given: &[(String, FieldValue, Span)]) -> Option<OwnPart> {
        let mark = self.cx.mark();
        let mut sound = true;
        for field in &self.definition.fields {
            let value = match given.iter().find(|(name, ..)| *name == field.name) {
                Some((_, value, span)) => Some((*value, Some(*span))),
                None => self.default(&field.name, &field.default),
            };
            sound &= self.bind(&field.name, value);
        }
        let part = if sound { self.plan() } else { None };
        self.cx.forget_since(mark);
        Some(self.part(part?))
    }

    fn part(self, (steps, result): (Vec<Step>, Flow)) -> OwnPart {
        let places = Places::of_names(self.at, self.places);
        OwnPart {
            definition: Arc::clone(self.definition),
            values: self.values,
            follows: self.follows,
            places,
            steps,
            result,
        }
    }

    /// Defines a field for the expressions after it; whether it has a value.
    fn bind(&mut self, name: &str, value: Option<(FieldValue, Option<Span>)>) -> bool {
        let Some((value, place)) = value else {
            self.cx.bind_broken(name);
            return false;
        };
        if let FieldValue::Number(number) = value {
            self.cx.bind(name, number, place);
        }
        self.values.push((name.to_owned(), value));
        true
    }

    fn decoded(&mut self, default: &OwnDefault, node: &Node) -> Option<FieldValue> {
        match default {
            OwnDefault::Required | OwnDefault::Number(_) => {
                if !matches!(&node.kind, Kind::Scalar(s) if s.style != Style::Quoted) {
                    wrong_kind(node, "a number", self.cx);
                    return None;
                }
                self.cx.number(node).map(FieldValue::Number)
            }
            OwnDefault::Truth(_) => bool::decode(node, self.cx).map(FieldValue::Truth),
            OwnDefault::Word(..) => Activation::decode(node, self.cx).map(FieldValue::Activation),
        }
    }

    fn default(&mut self, name: &str, default: &OwnDefault) -> Option<(FieldValue, Option<Span>)> {
        match default {
            OwnDefault::Required => {
                let part = &self.definition.name;
                let message = format!("`{part}` needs `{name}`");
                let field = self.definition.fields.iter().find(|field| field.name == name);
                let diagnostic = Diagnostic::error(Code::MissingKey, self.at, message);
                let diagnostic =
                    field.into_iter().fold(diagnostic, |d, field| d.label(field.span, "required here"));
                self.cx.report(diagnostic.help(format!("add `{name}: ...`, a number")));
                None
            }
            OwnDefault::Number(expression) => {
                let number = self.number(expression)?;
                Some((FieldValue::Number(number), Some(expression.span)))
            }
            OwnDefault::Truth(truth) => Some((FieldValue::Truth(*truth), None)),
            OwnDefault::Word(word, _) => {
                vocabulary::activation(word).map(|a| (FieldValue::Activation(a), None))
            }
        }
    }

    /// Whether a value is the one that the field would have if it were not given.
    fn is_default(&self, default: &OwnDefault, value: FieldValue) -> bool {
        let usual = match default {
            OwnDefault::Required => None,
            OwnDefault::Number(expression) => self.cx.value(expression).ok().map(FieldValue::Number),
            OwnDefault::Truth(truth) => Some(FieldValue::Truth(*truth)),
            OwnDefault::Word(word, _) => vocabulary::activation(word).map(FieldValue::Activation),
        };
        usual == Some(value)
    }

    fn number(&mut self, expression: &Expr) -> Option<Number> {
        match self.cx.value(expression) {
            Ok(number) => Some(number),
            Err(Fault::Own(diagnostic)) => {
                self.cx.report(diagnostic.label(self.at, "for this use of the part"));
                None
            }
            Err(Fault::Follows) => None,
        }
    }

    fn field(&self, name: &str) -> Option<FieldValue> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The equation with the sizes that follow from the fields.
    fn plan(&mut self) -> Option<(Vec<Step>, Flow)> {
        let mut steps: Vec<Step> = Vec::new();
        let mut sound = true;
        for statement in &self.definition.body {
            match self.flow(&statement.value) {
                Some(value) => steps.push(Step { target: statement.target.clone(), value }),
                None => sound = false,
            }
            self.tensors.insert(statement.target.clone());
        }
        let mut result = self.flow(&self.definition.result)?;
        if !sound {
            return None;
        }
        // The projection whose output the result is, through names, factors and dropout: `init.residual`
        // scales it as the last of a residual branch. A name means its last value before the line that reads
        // it.
        let mut before = steps.as_mut_slice();
        let mut at = &mut result;
        loop {
            match &mut at.kind {
                FlowKind::Name(name) => {
                    let Some(i) = before.iter().rposition(|step| step.target == *name) else { break };
                    let Some((step, earlier)) = before.get_mut(..=i).and_then(<[Step]>::split_last_mut)
                    else {
                        break;
                    };
                    (at, before) = (&mut step.value, earlier);
                }
                FlowKind::Scale(_, inner) | FlowKind::Shift(_, inner) => at = inner,
                FlowKind::Word(call) => {
                    call.is_output = true;
                    match (&call.fields, call.inputs.first_mut()) {
                        (Fields::Dropout(_) | Fields::WithLoss(_), Some(inner)) => at = inner,
                        _ => break,
                    }
                }
                FlowKind::Number(_)
                | FlowKind::Sum(_)
                | FlowKind::Product(_)
                | FlowKind::Quotient(_)
                | FlowKind::Elementary(..)
                | FlowKind::Activate(..)
                | FlowKind::Norm(..)
                | FlowKind::Part(_) => break,
            }
        }
        Some((steps, result))
    }

    /// Whether a term is a number.
    fn is_number(&self, term: &Term) -> bool {
        term.as_expression().is_some_and(|e| !e.names().iter().any(|(name, _)| self.tensors.contains(*name)))
    }

    /// The value of a term that is a number, which must be finite.
    fn real(&mut self, term: &Term) -> Option<f64> {
        let number = self.number(&term.as_expression()?)?.to_f64();
        if number.is_finite() {
            return Some(number);
        }
        let message = "a tensor is combined with a number that is too large";
        self.cx.report(Diagnostic::error(Code::EquationShape, term.span, message));
        None
    }

    fn flow(&mut self, term: &Term) -> Option<Flow> {
        let span = term.span;
        let kind = match &term.kind {
            TermKind::Name(name) => FlowKind::Name(name.clone()),
            // Checked: a tensor is never a function of numbers.
            TermKind::Number(_) | TermKind::Text(_) => return None,
            TermKind::Call { part, args, named, .. } => self.call(span, part, args, named)?,
            TermKind::Sum(terms) => {
                let mut flows = Vec::new();
                let mut shift = 0.0;
                let mut sound = true;
                for (sign, term) in terms {
                    let minus = *sign == Sign::Minus;
                    if self.is_number(term) {
                        match self.real(term) {
                            Some(number) => shift += if minus { -number } else { number },
                            None => sound = false,
                        }
                        continue;
                    }
                    match self.flow(term) {
                        Some(flow) if minus => {
                            let span = flow.span;
                            flows.push(Flow { kind: FlowKind::Scale(-1.0, Box::new(flow)), span });
                        }
                        Some(flow) => flows.push(flow),
                        None => sound = false,
                    }
                }
                let sum = joined(flows, FlowKind::Sum, span).filter(|_| sound)?;
                if shift == 0.0 { sum.kind } else { FlowKind::Shift(shift, Box::new(sum)) }
            }
            TermKind::Product(factors) => {
                let mut flows = Vec::new();
                let mut by = 1.0;
                let mut sound = true;
                for term in factors {
                    if self.is_number(term) {
                        match self.real(term) {
                            Some(number) => by *= number,
                            None => sound = false,
                        }
                    } else {
                        match self.flow(term) {
                            Some(flow) => flows.push(flow),
                            None => sound = false,
                        }
                    }
                }
                let product = joined(flows, FlowKind::Product, span).filter(|_| sound)?;
                self.scaled(by, product)?
            }
            TermKind::Quotient(over, under) if self.is_number(over) => {
                let (number, under) = (self.real(over), self.flow(under));
                let inner = Box::new(under?);
                let reciprocal = Flow { kind: FlowKind::Elementary(Elementary::Reciprocal, inner), span };
                self.scaled(number?, reciprocal)?
            }
            TermKind::Quotient(over, under) if !self.is_number(under) => {
                let (over, under) = (self.flow(over), self.flow(under));
                FlowKind::Quotient(Box::new([over?, under?]))
            }
            TermKind::Quotient(over, under) => {
                // Both before either ends this, so that the errors of both are reported.
                let flow = self.flow(over);
                let number = self.real(under)?;
                if number == 0.0 {
                    let diagnostic = Diagnostic::error(Code::DivisionByZero, under.span, "division by zero");
                    self.cx.report(diagnostic.label(self.at, "for this use of the part"));
                    return None;
                }
                self.scaled(1.0 / number, flow?)?
            }
        };
        Some(Flow { kind, span })
    }

    fn scaled(&mut self, by: f64, flow: Flow) -> Option<FlowKind> {
        if !by.is_finite() {
            let message = "a tensor is multiplied by a number that is too large";
            self.cx.report(Diagnostic::error(Code::EquationShape, flow.span, message));
            return None;
        }
        Some(if by == 1.0 { flow.kind } else { FlowKind::Scale(by, Box::new(flow)) })
    }

    fn call(&mut self, span: Span, part: &str, args: &[Term], named: &[Named]) -> Option<FlowKind> {
        if let Some(FieldValue::Activation(activation)) = self.field(part) {
            return self.activation(activation, args);
        }
        let word = vocabulary::word(part);
        let has_member = word.is_none_or(|word| word.has_parameters);
        // The names are in the order in which the calls are reached: a call before those in its arguments.
        let member = if has_member { self.members.pop().unwrap_or_default() } else { String::new() };
        let Some(word) = word else { return self.part_call(span, part, member, args, named) };
        let (activation, function) = (vocabulary::activation(word.name), vocabulary::elementary(word.name));
        // Of a word without fields, too, whose record has no name of its own.
        if activation.is_some() || function.is_some() || (word.fields)().is_empty() {
            if let Some(first) = named.first() {
                let message = format!("`{part}` has no `{}`", first.name);
                self.cx.report(
                    Diagnostic::error(Code::UnknownKey, first.span, message)
                        .help(format!("write `{}`", word.usage())),
                );
                return None;
            }
            if let Some(activation) = activation {
                return self.activation(activation, args);
            }
            if let Some(function) = function {
                let flow = Box::new(self.flow(args.first()?)?);
                return Some(FlowKind::Elementary(function, flow));
            }
        }
        let fields = self.fields(&word, span, named);
        if Norm::PARTS.contains(&word.name) {
            let norm = Norm::decode(&fields, self.cx);
            let flow = self.flow(args.first()?);
            // Not before the argument is read, so that its errors are reported, too.
            return Some(FlowKind::Norm(Box::new(norm?), member, Box::new(flow?)));
        }
        let fields = Fields::decode(&fields, self.cx);
        let (axes, args) = match args.split_first() {
            // Checked where the part is defined.
            Some((Term { kind: TermKind::Text(text), span }, rest)) => {
                (axes(text).ok().map(|a| (a, *span)), rest)
            }
            Some(_) | None => (None, args),
        };
        let (tensors, numbers) = args.split_at_checked(args.len().min(word.tensors.most))?;
        let inputs: Vec<Option<Flow>> = tensors.iter().map(|term| self.argument(term)).collect();
        let inputs: Option<Vec<Flow>> = inputs.into_iter().collect();
        let numbers: Vec<Option<Amount>> = numbers.iter().map(|term| self.amount(term)).collect();
        let numbers = numbers.into_iter().collect::<Option<Vec<Amount>>>()?;
        let (fields, inputs) = (fields?, inputs?);
        Some(FlowKind::Word(Box::new(WordCall { fields, member, inputs, numbers, axes, is_output: false })))
    }

    fn activation(&mut self, activation: Activation, args: &[Term]) -> Option<FlowKind> {
        let flow = self.flow(args.first()?)?;
        Some(if activation == Activation::None {
            flow.kind
        } else {
            FlowKind::Activate(activation, Box::new(flow))
        })
    }

    /// The tensor that is an argument, or the number where a word takes one as well.
    fn argument(&mut self, term: &Term) -> Option<Flow> {
        if self.is_number(term) {
            return Some(Flow { kind: FlowKind::Number(self.real(term)?), span: term.span });
        }
        self.flow(term)
    }

    fn flows(&mut self, terms: &[Term]) -> Option<Vec<Flow>> {
        // All are computed before an error ends this, so that every error is reported.
        let all: Vec<Option<Flow>> = terms.iter().map(|term| self.flow(term)).collect();
        all.into_iter().collect()
    }

    fn part_call(
        &mut self,
        span: Span,
        part: &str,
        member: String,
        args: &[Term],
        named: &[Named],
    ) -> Option<FlowKind> {
        self.cx.note_part(part);
        let inputs = self.flows(args);
        let definition = self.cx.definitions().get(part).cloned()?;
        let mut given = Vec::new();
        let mut sound = true;
        for named in named {
            let Some(field) = definition.fields.iter().find(|field| field.name == named.name) else {
                let node = Node::map(vec![self.entry(named)], span);
                let names: Vec<String> = definition.fields.iter().map(|field| field.name.clone()).collect();
                mended(&node, part, &[], &names, self.cx);
                sound = false;
                continue;
            };
            let node = self.node(&named.value);
            match self.decoded(&field.default, &node) {
                Some(value) => given.push((named.name.clone(), value, named.value.span)),
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let part = Instance::of(&definition, span, self.cx).called(&given)?;
        Some(FlowKind::Part(Box::new(PartCall { part, member, inputs: inputs? })))
    }

    /// A word with its fields, from its named arguments, as a spec has a part.
    fn fields(&self, word: &Word, span: Span, named: &[Named]) -> Node {
        let entries: Vec<Entry> = named.iter().map(|named| self.entry(named)).collect();
        let fields = Node::map(entries, span);
        let entry = Entry { key: word.name.to_owned(), key_span: span, value: fields };
        Node::map(vec![entry], span)
    }

    fn entry(&self, named: &Named) -> Entry {
        Entry { key: named.name.clone(), key_span: named.span, value: self.node(&named.value) }
    }

    /// A term as a value of a spec, in which a field that is no number is replaced by its value.
    fn node(&self, term: &Term) -> Node {
        match &term.kind {
            TermKind::Name(name) => match self.field(name) {
                Some(FieldValue::Number(_)) | None => Node::plain(name.clone(), term.span),
                Some(value) => Node { span: term.span, ..value.encode() },
            },
            TermKind::Call { part, args, named, .. } if args.is_empty() => {
                let fields = Node::map(named.iter().map(|named| self.entry(named)).collect(), term.span);
                let entry = Entry { key: part.clone(), key_span: term.span, value: fields };
                Node::map(vec![entry], term.span)
            }
            TermKind::Number(_)
            | TermKind::Text(_)
            | TermKind::Call { .. }
            | TermKind::Sum(_)
            | TermKind::Product(_)
            | TermKind::Quotient(..) => Node::plain(term.to_string(), term.span),
        }
    }

    fn amount(&mut self, term: &Term) -> Option<Amount> {
        let expression = term.as_expression()?;
        let number = self.number(&expression)?;
        let n = number.to_u64().filter(|n| *n <= MAX_SIZE);
        let size = n.map(|n| worded(&expression, n, self.cx));
        let text = term.to_string();
        let names = self.cx.places_of(&text);
        Some(Amount { number, size, text, names, span: term.span })
    }
}

/// One tensor, or several that are joined.
fn joined(mut flows: Vec<Flow>, join: fn(Vec<Flow>) -> FlowKind, span: Span) -> Option<Flow> {
    match flows.len() {
        0 => None,
        1 => flows.pop(),
        _ => Some(Flow { kind: join(flows), span }),
    }
}

/// The sizes of the language that mean the same as a field of an author's part with that name. What such a part calls
/// `channels` or `classes` has nothing to do with an image or with the head, as whom the emitted code would document it.
const ALIKE: &[&str] = &[
    "vocab",
    "source_vocab",
    "context",
    "d_model",
    "heads",
    "kv_heads",
    "head_dim",
    "value_dim",
    "query_rank",
    "kv_rank",
    "hidden",
    "experts",
    "top_k",
    "groups",
];

/// A size with the names in its expression that are sizes of the language.
fn worded(expression: &Expr, n: u64, cx: &Context<'_>) -> Extent {
    fn extent(expression: &Expr, cx: &Context<'_>) -> Option<Extent> {
        let number = cx.value(expression).ok()?.to_u64().filter(|n| *n <= MAX_SIZE)?;
        if let ExprKind::Name(name) = &expression.kind {
            let word = FIELDS.iter().find(|field| *field == name && ALIKE.contains(field));
            return Some(word.map_or(Extent::from(number), |word| Extent::new(word, number)));
        }
        if let ExprKind::Binary(Operator::Multiply, left, right) = &expression.kind {
            return Some(extent(left, cx)? * extent(right, cx)?);
        }
        if let ExprKind::Binary(Operator::Add, left, right) = &expression.kind {
            return Some(extent(left, cx)? + extent(right, cx)?);
        }
        Some(Extent::from(number))
    }
    // A product of a fraction and a size has a whole value without having whole factors.
    extent(expression, cx).filter(|extent| *extent == n).unwrap_or(Extent::from(n))
}
