//! Resolves the names in a block's equation: which are tensors, which are numbers, and which part each call
//! applies.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use indexmap::IndexSet;

use crate::diag::count::counted;
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::Context;
use crate::field::context::Fault;
use crate::field::name_in_slot::{Known, known_word};
use crate::field::words::listed;
use crate::parts::own::mistakes::twins;
use crate::parts::own::plan::MEMORY;
use crate::source::{SourceMap, Span};
use crate::syntax::equation::{self, Equation, Named, Sign, Term, TermKind};
use crate::syntax::expr::Scope;
use crate::syntax::tree::{Kind, Node};

pub use super::kind::PartKind;
pub use super::sites::{Calls, Site, calls};
use super::sites::{callee, names_of, of_numbers, sites, unknown, unused, wiring_name};
use super::spelled::Spelling;

/// The text of the prelude, which defines the named wirings.
pub const PRELUDE: &str = include_str!("prelude.trafo");
/// The file name of the prelude in diagnostics.
pub const PRELUDE_NAME: &str = "<prelude>";

/// A block's equation in which every name is known to be a tensor, a number or a call of a part.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// The name of the residual stream: the first parameter.
    pub stream: String,
    /// The name of the encoder's output: the second parameter, if there is one.
    pub memory: Option<String>,
    /// The assignments in order. The last value of the residual stream is the result of the block.
    pub steps: Vec<Step>,
    /// The call sites in the order in which they are written.
    pub sites: Vec<Site>,
    /// The equation as its author wrote it, without indentation.
    pub text: String,
    /// The equation with the names of numbers replaced by their values. It resolves to an equal wiring.
    pub spelled: String,
    /// The place of the `block` key's value.
    pub span: Span,
}

/// Compares everything except places and texts.
impl PartialEq for Wiring {
    fn eq(&self, other: &Self) -> bool {
        fn names(wiring: &Wiring) -> impl Iterator<Item = (&str, &str)> {
            wiring.sites.iter().map(|site| (site.word.as_str(), site.name.as_str()))
        }
        self.stream == other.stream
            && self.memory == other.memory
            && self.steps == other.steps
            && names(self).eq(names(other))
    }
}

/// One statement, `target = value`.
#[derive(Clone, Debug)]
pub struct Step {
    /// The variable that is assigned.
    pub target: String,
    /// The value that it is given.
    pub value: Flow,
    /// The place of the statement.
    pub span: Span,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && self.value == other.value
    }
}

/// A term of an equation whose value is a tensor of shape `[B, T, D]`, where T is the length of the stack's
/// sequence or, for the memory, of the encoder's.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// The value of a variable.
    Name(String),
    /// A part applied to arguments; the index into [`Wiring::sites`].
    Call(usize, Vec<Flow>),
    /// The sum of two or more tensors.
    Sum(Vec<Flow>),
    /// The elementwise product of two or more tensors.
    Product(Vec<Flow>),
    /// A tensor multiplied by a number.
    Scale(f64, Box<Flow>),
}

/// The wirings of the prelude if it is the first of the sources, otherwise none. They are parsed only once:
/// since the prelude is the first in every map of [`load::sources`](super::load::sources), their places are
/// always the same.
pub fn prelude(sources: &SourceMap) -> &'static [Equation] {
    static EQUATIONS: LazyLock<Vec<Equation>> = LazyLock::new(|| {
        let mut sources = SourceMap::new();
        let id = sources.add(PRELUDE_NAME, PRELUDE);
        equation::parse_prelude(&sources, id, &mut Sink::new())
    });
    let begins = sources.iter().next().is_some_and(|(_, source)| source.name == PRELUDE_NAME);
    if begins { &EQUATIONS } else { &[] }
}

/// Resolves the value of a `block` key: the name of a wiring or an equation. `None` after an error, which is
/// reported.
pub fn resolve(node: &Node, wirings: &[Equation], has_memory: bool, cx: &mut Context<'_>) -> Option<Wiring> {
    let Some(name) = wiring_name(node, wirings) else {
        let diagnostic = crate::field::value::not_of_kind(node, "an equation or the name of a wiring");
        cx.report(match &node.kind {
            Kind::Map(_) => diagnostic
                .help("write `block(x) { ... }` in a `.trafo` file, and the equation as a text in YAML"),
            Kind::List(_) => diagnostic.help(
                "write the lines of an equation as one text: `block: |`, and below it each line, indented, without a dash",
            ),
            Kind::Null | Kind::Scalar(_) | Kind::Delete => diagnostic,
        });
        return None;
    };
    let Ok(text) = name else {
        return match equation::parse(cx.sources(), node) {
            Ok(equation) => Resolver::new(cx, has_memory, node.span).equation(&equation),
            Err(faults) => {
                faults.into_iter().for_each(|fault| cx.report(fault));
                None
            }
        };
    };
    let is_named = wirings.iter().any(|w| w.name.as_deref() == Some(text));
    // The prelude has wirings twice under one name: with a memory for decoders with an encoder, and without.
    let fits = |w: &&Equation| (w.params.len() == 2) == has_memory;
    let fitting = |name: &str| wirings.iter().filter(|w| w.name.as_deref() == Some(name)).find(fits);
    match fitting(text) {
        Some(equation) => Resolver::new(cx, has_memory, node.span).equation(equation),
        None if !is_named => {
            let names = names_of(wirings);
            let near = suggest(text, &names);
            let message = format!("there is no wiring `{text}`");
            let diagnostic = Diagnostic::error(Code::UnknownWiring, node.span, message);
            cx.report(match &near {
                Some(near) => diagnostic.meant(text, near),
                None => {
                    let all = |diagnostic: Diagnostic| {
                        let list = format!("the wirings are {}", listed(&names));
                        diagnostic
                            .help(list)
                            .help("or write the block's equation, such as `x = x + attention(norm(x))`")
                    };
                    match known_word(text, "block", cx) {
                        Some(Known::Said(help)) => diagnostic.help(help),
                        Some(known) => all(diagnostic.help(known.text())),
                        None => all(diagnostic),
                    }
                }
            });
            // What a misspelled wiring calls is checked as well.
            let meant = near.and_then(|near| fitting(&near))?;
            Resolver::new(cx, has_memory, node.span).equation(meant)
        }
        None => {
            let message = if has_memory {
                format!("the wiring `{text}` does not attend to the encoder")
            } else {
                format!("the wiring `{text}` needs an encoder")
            };
            cx.report(
                Diagnostic::error(Code::NoMemory, node.span, message)
                    .help("write the block's equation, with `cross(x, memory)` where the encoder comes in"),
            );
            None
        }
    }
}

struct Resolver<'c, 'a> {
    cx: &'c mut Context<'a>,
    has_memory: bool,
    /// The parameter that is the memory, if the equation has it.
    memory: Option<String>,
    /// The parameters, and then what the statements so far assign.
    variables: IndexSet<String>,
    sites: Vec<Site>,
    /// The number of call sites that have been resolved, which is the index of the next one.
    resolved: usize,
    failed: bool,
    /// Whether a number cannot stand where a term is resolved, so that no number is suggested there.
    is_tensor: bool,
    at: Span,
}

/// The value of a term.
enum Resolved {
    Tensor(Flow),
    Number(f64),
}

impl<'c, 'a> Resolver<'c, 'a> {
    fn new(cx: &'c mut Context<'a>, has_memory: bool, at: Span) -> Self {
        let (memory, variables, sites) = Default::default();
        Self { cx, has_memory, memory, variables, sites, resolved: 0, failed: false, is_tensor: true, at }
    }

    fn fail(&mut self, diagnostic: Diagnostic) {
        self.failed = true;
        self.cx.report(diagnostic);
    }

    fn equation(mut self, equation: &Equation) -> Option<Wiring> {
        let names: Vec<String> = equation.params.iter().map(|(name, _)| name.clone()).collect();
        let (stream, memory) = match names.as_slice() {
            [x] => (x.clone(), None),
            [x, memory] => (x.clone(), Some(memory.clone())),
            _ => {
                let message = "a block takes `x`, or `x` and `memory`";
                self.fail(Diagnostic::error(Code::EquationShape, equation.span, message));
                return None;
            }
        };
        if let (Some((_, span)), false) = (equation.params.get(1), self.has_memory) {
            let message = "this block has no encoder to attend to";
            self.fail(
                Diagnostic::error(Code::NoMemory, *span, message)
                    .help("add `encoder: {...}`, or leave `memory` out"),
            );
            return None;
        }
        self.variables = names.into_iter().collect();
        self.memory.clone_from(&memory);
        self.collect(equation);
        let mut steps = Vec::new();
        for statement in &equation.body {
            let value = self.term(&statement.value);
            let value = match value {
                Some(Resolved::Tensor(flow)) => {
                    if self.reads(&flow).memory && memory.as_ref() != Some(&statement.target) {
                        self.fail(only_for_cross(statement.value.span));
                    }
                    Some(flow)
                }
                Some(Resolved::Number(n)) => {
                    let message = format!("`{}` would be the number {n}, not a tensor", statement.target);
                    self.fail(
                        Diagnostic::error(Code::EquationShape, statement.value.span, message)
                            .help("numbers get names under `let:`"),
                    );
                    None
                }
                None => None,
            };
            // Also after an error, so that later lines that read the variable are not reported for it.
            self.variables.insert(statement.target.clone());
            if memory.as_ref() == Some(&statement.target) {
                let message = "the memory is the encoder's; a block cannot change it";
                self.fail(Diagnostic::error(Code::EquationShape, statement.target_span, message));
            }
            if let Some(value) = value {
                steps.push(Step { target: statement.target.clone(), value, span: statement.span });
            }
        }
        if let Some(fault) = &equation.fault {
            self.fail((**fault).clone());
        } else if !equation.body.iter().any(|s| s.target == stream) {
            let message = format!("the equation never says what becomes of `{stream}`");
            self.fail(
                Diagnostic::error(Code::EquationShape, equation.span, message)
                    .help(format!("end with `{stream} = ...`, or with the new value alone")),
            );
        }
        // What has an error may be what was to read the value.
        if !self.failed {
            for statement in unused(equation, &stream) {
                let message = format!("`{}` is given a value that is never used", statement.target);
                let unused = Diagnostic::error(Code::UnusedValue, statement.target_span, message);
                self.fail(unused.help("use it in a later line, or remove the line"));
            }
        }
        if self.failed {
            return None;
        }
        let text = equation.text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let spelled =
            Spelling { variables: &self.variables, cx: self.cx }.text(equation, &stream, memory.as_deref());
        Some(Wiring { stream, memory, steps, sites: self.sites, text, spelled, span: self.at })
    }

    /// Collects the call sites in the order in which they are written, and reports those with equal names.
    fn collect(&mut self, equation: &Equation) {
        // The names of weights are in lower case.
        let mut first: BTreeMap<String, (String, Span)> = BTreeMap::new();
        for site in sites(equation, &self.cx.definitions().clone()) {
            if let Some((other, twin)) = first.get(&site.name.to_ascii_lowercase()).cloned() {
                let message = twins("call sites", &site.name, &other);
                self.fail(
                    Diagnostic::error(Code::DuplicateInstance, site.span, message)
                        .label(twin, "the other one")
                        .help("every call site has its own parameters, so its own name"),
                );
            } else {
                first.insert(site.name.to_ascii_lowercase(), (site.name.clone(), site.span));
            }
            self.sites.push(site);
        }
    }

    fn term(&mut self, term: &Term) -> Option<Resolved> {
        match &term.kind {
            // A variable hides a number of the same name.
            TermKind::Name(name) if self.variables.contains(name) => {
                Some(Resolved::Tensor(Flow::Name(name.clone())))
            }
            // The error is where the name is given its value.
            TermKind::Name(name) if self.cx.is_broken(name) => {
                self.failed = true;
                None
            }
            TermKind::Name(name) => match self.cx.lookup(name) {
                Some((number, _)) => Some(Resolved::Number(number.to_f64())),
                None => {
                    let numbers = if self.is_tensor { Vec::new() } else { Scope::names(self.cx) };
                    let known: Vec<String> = self.variables.iter().cloned().chain(numbers).collect();
                    let message = format!("`{name}` is neither a variable of this block nor a number");
                    let unknown = Diagnostic::error(Code::UnknownName, term.span, message);
                    let unknown = match suggest(name, &known) {
                        Some(near) => unknown.meant(name, &near),
                        None if self.has_memory && (name == MEMORY || is_near(name, MEMORY)) => {
                            unknown.help("write `block(x, memory)`")
                        }
                        None if self.is_tensor => unknown.help("assign it in an earlier line"),
                        None => unknown.help("give it a value under `let:`, or assign it in an earlier line"),
                    };
                    self.fail(self.hyphenated(term.span).unwrap_or(unknown));
                    None
                }
            },
            TermKind::Number(number) => {
                let sound = of_numbers(number, &self.variables, self.cx.sources());
                match sound.and_then(|()| self.cx.value(number)) {
                    Ok(number) => Some(Resolved::Number(number.to_f64())),
                    Err(Fault::Own(diagnostic)) => {
                        self.fail(*diagnostic);
                        None
                    }
                    Err(Fault::Follows) => {
                        self.failed = true;
                        None
                    }
                }
            }
            TermKind::Text(text) => {
                let message = format!("a text, \"{text}\", is no value of a block");
                self.fail(Diagnostic::error(Code::Equation, term.span, message));
                None
            }
            TermKind::Call { part, args, named, .. } => self.call(part, args, named, term.span),
            TermKind::Sum(terms) => self.sum(terms),
            TermKind::Product(factors) => self.product(factors),
            TermKind::Quotient(over, under) => {
                let (over_value, under_value) = (self.factor(over), self.factor(under));
                match (over_value?, under_value?) {
                    (Resolved::Number(a), Resolved::Number(b)) if b != 0.0 => Some(Resolved::Number(a / b)),
                    (Resolved::Tensor(flow), Resolved::Number(b)) if b != 0.0 => {
                        self.scaled(1.0 / b, flow, under.span)
                    }
                    (_, divisor) => {
                        let message = match divisor {
                            Resolved::Number(_) => "division by zero",
                            Resolved::Tensor(_) => "a tensor cannot be divided by a tensor",
                        };
                        self.fail(Diagnostic::error(Code::EquationShape, under.span, message));
                        None
                    }
                }
            }
        }
    }

    /// A term that may be a number.
    fn factor(&mut self, term: &Term) -> Option<Resolved> {
        let outer = std::mem::replace(&mut self.is_tensor, false);
        let resolved = self.term(term);
        self.is_tensor = outer;
        resolved
    }

    fn sum(&mut self, terms: &[(Sign, Term)]) -> Option<Resolved> {
        let mut flows = Vec::new();
        let mut numbers = Vec::new();
        let mut complete = true;
        // All terms are resolved before an error ends this, so that the errors of each are reported.
        for (sign, term) in terms {
            match (self.term(term), sign) {
                (Some(Resolved::Tensor(flow)), Sign::Plus) => flows.push(flow),
                // There is no op for differences.
                (Some(Resolved::Tensor(flow)), Sign::Minus) => flows.push(Flow::Scale(-1.0, Box::new(flow))),
                (Some(Resolved::Number(n)), Sign::Plus) => numbers.push((n, term.span)),
                (Some(Resolved::Number(n)), Sign::Minus) => numbers.push((-n, term.span)),
                (None, _) => complete = false,
            }
        }
        if !complete {
            return None;
        }
        match (flows.as_slice(), numbers.first()) {
            ([], _) => Some(Resolved::Number(numbers.iter().map(|(n, _)| n).sum())),
            (_, Some((n, span))) => {
                let message = format!("the number {n} is added to a tensor");
                self.fail(
                    Diagnostic::error(Code::EquationShape, *span, message)
                        .help("numbers are factors: `0.5 * ffn(x)`"),
                );
                None
            }
            ([_], None) => flows.pop().map(Resolved::Tensor),
            (_, None) => Some(Resolved::Tensor(Flow::Sum(flows))),
        }
    }

    fn product(&mut self, factors: &[Term]) -> Option<Resolved> {
        let mut flows = Vec::new();
        let mut factor = 1.0;
        let mut complete = true;
        // As in a sum, all are resolved before an error ends this.
        for term in factors {
            match self.factor(term) {
                Some(Resolved::Tensor(flow)) => flows.push(flow),
                Some(Resolved::Number(n)) => factor *= n,
                None => complete = false,
            }
        }
        if !complete {
            return None;
        }
        let flow = match flows.len() {
            0 => return Some(Resolved::Number(factor)),
            1 => flows.pop()?,
            _ => Flow::Product(flows),
        };
        // Without an op, so that `1 * x` is the same wiring as `x`.
        if factor == 1.0 {
            return Some(Resolved::Tensor(flow));
        }
        let span = factors.iter().map(|term| term.span).reduce(Span::to)?;
        self.scaled(factor, flow, span)
    }

    /// A tensor times a number, which may have overflowed while it was computed.
    fn scaled(&mut self, by: f64, flow: Flow, place: Span) -> Option<Resolved> {
        if by.is_finite() {
            return Some(Resolved::Tensor(Flow::Scale(by, Box::new(flow))));
        }
        let message = "a tensor is multiplied by a number that is too large";
        self.fail(
            Diagnostic::error(Code::EquationShape, place, message)
                .help("the largest number is about 1.8e308; check the factors and divisors"),
        );
        None
    }

    /// The diagnostic for a word with hyphens that has a piece at this place.
    fn hyphenated(&self, piece: Span) -> Option<Diagnostic> {
        let own = self.cx.definitions();
        let is_value = |word: &str| self.variables.contains(word) || self.cx.has_name(word);
        self.cx.hyphenated(piece, &|word| is_value(word) || callee(word, own).is_some())
    }

    fn call(&mut self, part: &str, args: &[Term], named: &[Named], span: Span) -> Option<Resolved> {
        let own = Arc::clone(self.cx.definitions());
        let Some(callee) = callee(part, &own) else {
            self.all_of(args.iter());
            let is_wiring = prelude(self.cx.sources()).iter().any(|w| w.name.as_deref() == Some(part));
            let unknown = unknown(part, &own, span);
            let unknown = match is_wiring {
                true => Diagnostic {
                    help: vec![format!("a wiring is all of a block: write `block: {part}`")],
                    fix: None,
                    ..unknown
                },
                false => unknown,
            };
            self.fail(self.hyphenated(span).unwrap_or(unknown));
            return None;
        };
        let word = callee.word.as_str();
        let definition = own.get(word);
        let wanted: Vec<&str> = match (callee.kind, definition) {
            (PartKind::Own, Some(definition)) => {
                definition.inputs.iter().map(|(name, _)| name.as_str()).collect()
            }
            // The definition has an error, which has been reported.
            (PartKind::Own, None) => {
                self.failed = true;
                return None;
            }
            (kind, _) => kind.arguments().to_vec(),
        };
        // Terms are resolved in the order in which their call sites were collected.
        let site = self.resolved;
        self.resolved = self.resolved.saturating_add(1);
        // Every argument is resolved, so that what is wrong with each is reported. A name that means nothing is not wrong by
        // itself where their number is: `attention(q, k, v)` is written for another attention.
        let is_miscounted = named.is_empty() && args.len() != wanted.len();
        let is_left = |arg: &Term| {
            matches!(&arg.kind, TermKind::Name(name)
                if is_miscounted && !self.variables.contains(name) && self.cx.lookup(name).is_none())
        };
        let known: Vec<Option<&Term>> = args.iter().map(|arg| (!is_left(arg)).then_some(arg)).collect();
        let given = known.iter().zip(&wanted).filter_map(|(arg, name)| Some(((*arg)?, name)));
        let flows: Vec<Option<Flow>> =
            given.map(|(arg, name)| self.argument(word, *name == MEMORY, arg)).collect();
        if let Some(first) = named.first() {
            let message = format!("a call in a block has no named arguments, such as `{}`", first.name);
            let key = self.sites.get(site).map_or(word, |site| &site.name);
            let help = format!("give it under the key of the call: `{key}: {{{}: ...}}`", first.name);
            self.fail(Diagnostic::error(Code::WrongArguments, first.span, message).help(help));
            return None;
        }
        self.all_of(known.into_iter().skip(wanted.len()).flatten());
        if args.len() != wanted.len() {
            let given = counted(args.len(), "argument");
            let message = format!("`{word}` takes {}, not {given}", listed(&wanted));
            let diagnostic = Diagnostic::error(Code::WrongArguments, span, message);
            let text = format!("write `{word}({})`", wanted.join(", "));
            self.fail(diagnostic.help(text));
            return None;
        }
        let flows: Option<Vec<Flow>> = flows.into_iter().collect();
        Some(Resolved::Tensor(Flow::Call(site, flows?)))
    }

    /// Reports what is wrong within arguments of which it is not known what they are to be.
    fn all_of<'t>(&mut self, args: impl Iterator<Item = &'t Term>) {
        args.for_each(|arg| _ = self.factor(arg));
    }

    /// The argument of a call, which is the memory or not; `None` if it is none that the part takes, which is
    /// reported.
    fn argument(&mut self, word: &str, is_memory: bool, arg: &Term) -> Option<Flow> {
        let outer = std::mem::replace(&mut self.is_tensor, true);
        let resolved = self.term(arg);
        self.is_tensor = outer;
        match resolved? {
            Resolved::Tensor(flow) => {
                let reads = self.reads(&flow);
                if is_memory && reads.stream {
                    let message = format!("this argument of `{word}` is the memory");
                    let diagnostic = Diagnostic::error(Code::WrongArguments, arg.span, message);
                    self.fail(diagnostic.help(format!("write `{word}(x, memory)`")));
                    return None;
                }
                if !is_memory && reads.memory {
                    self.fail(only_for_cross(arg.span));
                    return None;
                }
                Some(flow)
            }
            Resolved::Number(n) => {
                let message = format!("`{word}` takes a tensor, not the number {n}");
                self.fail(Diagnostic::error(Code::WrongArguments, arg.span, message));
                None
            }
        }
    }

    /// Which of the two sequences a value is computed from, other than by cross attention. They differ in
    /// length, so a value of both has no shape.
    fn reads(&self, flow: &Flow) -> Reads {
        match flow {
            Flow::Name(name) if self.memory.as_ref() == Some(name) => Reads { stream: false, memory: true },
            // The result of a part is as long as its first argument, which is never the memory.
            Flow::Name(_) | Flow::Call(..) => Reads { stream: true, memory: false },
            Flow::Scale(_, inner) => self.reads(inner),
            Flow::Sum(all) | Flow::Product(all) => {
                let all: Vec<Reads> = all.iter().map(|flow| self.reads(flow)).collect();
                Reads { stream: all.iter().any(|r| r.stream), memory: all.iter().any(|r| r.memory) }
            }
        }
    }
}

/// The sequences that a value is computed from.
#[derive(Clone, Copy)]
struct Reads {
    /// The sequence of the block itself.
    stream: bool,
    /// The encoder's output.
    memory: bool,
}

fn only_for_cross(place: Span) -> Diagnostic {
    Diagnostic::error(Code::WrongArguments, place, "the memory is only for cross attention")
        .help("write `cross(x, memory)`; a part of your own takes it as an input named `memory`")
}
