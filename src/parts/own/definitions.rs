//! Reads and checks the definitions under `parts`: every name in them is known, and every call has its
//! arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::axes::axes;
use super::calls::{fitting, members};
use super::mistakes::{self, amount_of, default_of, of_numbers, twins, unknown_function, unknown_name};
use super::text;
use super::vocabulary::{activation, exactly, word, words};
use crate::diag::count::counted;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::definition::{Definition, Definitions, OwnDefault, OwnField, is_unread_file};
use crate::field::value::wrong_kind;
use crate::source::Span;
use crate::syntax::equation::{Named, PartText, Statement, Term, TermKind};
use crate::syntax::expr::Function;
use crate::syntax::tree::{Entry, Node};

/// The sizes of a spec that a part can use. What is under `let` it does not see, so that a part says all of
/// its numbers itself and can be moved to another spec.
pub const SIZES: &[&str] = &["d_model", "vocab", "source_vocab", "context", "layers"];

/// The words that are values, so that nothing can be called by them.
const VALUES: &[&str] = &["true", "false", "none", "null", "required"];

/// The word whose first argument is what each of several parts computes.
const EXPERTS: &str = "experts";

/// The most parts that a spec defines.
const MAX_PARTS: usize = 256;
/// The most bytes of the equations of all parts together. A part that does much has less than 2000.
const MAX_TEXT: usize = 1 << 18;

/// Where the parts of a spec come from.
#[derive(Clone, Copy, Debug)]
pub struct Given<'n> {
    /// What is under `parts`.
    pub own: Option<&'n Node>,
    /// The parts of the files that the spec uses, as a map; those of the same names under `parts` replace them.
    pub used: Option<&'n Node>,
    /// The parts of the library, which those of both replace.
    pub library: &'n [Arc<Definition>],
}

/// The definitions of a spec. Errors are reported, and the definitions that have one are broken. `is_taken` says
/// which names the language has already.
pub fn read(given: Given<'_>, is_taken: &dyn Fn(&str) -> bool, cx: &mut Context<'_>) -> Definitions {
    let mut found = Definitions::default();
    let mut entries: Vec<&Entry> = Vec::new();
    if let Some(node) = given.own {
        match node.entries() {
            Some(own) => entries.extend(own),
            None => wrong_kind(node, "a map from names to the equations of parts", cx),
        }
    }
    let own: BTreeSet<&str> = entries.iter().map(|e| e.key.as_str()).collect();
    for e in given.used.and_then(Node::entries).unwrap_or(&[]) {
        if is_unread_file(e) {
            found.may_be_more = true;
            cx.define(found.clone());
        } else if !own.contains(e.key.as_str()) {
            found.shared.insert(e.key.clone());
            entries.push(e);
        }
    }
    let library = given.library.iter().filter(|d| entries.iter().all(|e| e.key != d.name));
    let library: Vec<Arc<Definition>> = library.cloned().collect();
    found.shared.extend(library.iter().map(|d| d.name.clone()));
    // All, until the sound ones are known, so that uses report nothing if this ends early.
    // With a name that has the inputs in it, the part is called by what is before them.
    let names = |e: &&Entry| [e.key.clone(), e.key.split('(').next().unwrap_or_default().to_owned()];
    found.broken = entries.iter().flat_map(names).collect();
    if let Some(beyond) = entries.get(MAX_PARTS) {
        let message = format!("a spec defines at most {MAX_PARTS} parts");
        cx.report(Diagnostic::error(Code::TooLarge, beyond.key_span, message).help("remove some of them"));
        return found;
    }
    let mut length = 0_usize;
    if let Some(beyond) = entries.iter().find(|e| {
        length = length.saturating_add(e.value.text().map_or(0, str::len));
        length > MAX_TEXT
    }) {
        let message = format!("the equations of all parts have at most {MAX_TEXT} bytes together");
        cx.report(Diagnostic::error(Code::TooLarge, beyond.key_span, message).help("remove some of them"));
        return found;
    }
    let is_taken = |name: &str| is_taken(name) || VALUES.contains(&name) || SIZES.contains(&name);
    let texts: Vec<Option<PartText>> = entries.iter().map(|e| text::parse(e, &is_taken, cx)).collect();
    let texts_of = entries.iter().zip(&texts);
    let inputs: BTreeMap<&str, Option<Inputs>> = texts_of
        .map(|(e, text)| (e.key.as_str(), text.as_ref().map(|text| text.params.clone())))
        .chain(library.iter().map(|d| (d.name.as_str(), Some(d.inputs.clone()))))
        .collect();
    let mut sound: Vec<Definition> = Vec::new();
    let mut others: Vec<Definition> = Vec::new();
    for (e, text) in entries.iter().zip(&texts) {
        match text.as_ref().map(|text| Checker::new(&e.key, &inputs, cx).definition(e, text)) {
            Some(Checked::Sound(definition)) => sound.push(definition),
            Some(Checked::Fields(definition)) => others.push(definition),
            Some(Checked::Nothing) | None => {}
        }
    }
    let fit = fitting(&sound, cx);
    let (all, unfit): (Vec<_>, Vec<_>) = sound.into_iter().partition(|d| fit.contains(&d.name));
    found.all = all.into_iter().map(Arc::new).collect();
    found.with_fields = others.into_iter().chain(unfit).map(Arc::new).collect();
    found.broken.retain(|name| found.all.iter().all(|d| d.name != *name));
    found.all.extend(library);
    found
}

/// What is known of a definition once it has been checked.
enum Checked {
    /// It has no error.
    Sound(Definition),
    /// It has an error, but none that leaves open which fields it has.
    Fields(Definition),
    Nothing,
}

/// The inputs of a part with their places.
type Inputs = Vec<(String, Span)>;

/// What a name in a part means.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Tensor,
    Number,
    Truth,
    Activation,
}

/// Checks one definition.
struct Checker<'t, 'c, 'a> {
    cx: &'c mut Context<'a>,
    name: &'t str,
    /// All parts; `None` for those whose text has an error.
    parts: &'t BTreeMap<&'t str, Option<Inputs>>,
    meanings: BTreeMap<String, Meaning>,
    /// The names that something has read since they got their values.
    read: BTreeSet<String>,
    failed: bool,
}

impl<'t, 'c, 'a> Checker<'t, 'c, 'a> {
    fn new(name: &'t str, parts: &'t BTreeMap<&'t str, Option<Inputs>>, cx: &'c mut Context<'a>) -> Self {
        let read = BTreeSet::new();
        let meanings = SIZES.iter().map(|size| ((*size).to_owned(), Meaning::Number)).collect();
        Self { cx, name, parts, meanings, read, failed: false }
    }

    fn fail(&mut self, diagnostic: Diagnostic) {
        self.failed = true;
        self.cx.report(diagnostic);
    }

    fn definition(mut self, e: &Entry, text: &PartText) -> Checked {
        let mut are_fields_known = true;
        for (name, span) in &text.params {
            self.target(name, *span);
            self.meanings.insert(name.clone(), Meaning::Tensor);
        }
        let mut fields: Vec<OwnField> = Vec::new();
        let mut body: Vec<Statement> = Vec::new();
        for statement in &text.body {
            let (name, span) = (&statement.target, statement.target_span);
            self.target(name, span);
            if self.is_tensor(&statement.value) {
                self.tensor(&statement.value);
                if let Some(field) = fields.iter().find(|field| field.name == *name) {
                    let message = format!("`{name}` is already a field of this part");
                    let diagnostic = Diagnostic::error(Code::DuplicateKey, span, message);
                    let diagnostic = diagnostic.label(field.span, "the field");
                    self.fail(diagnostic.help("give the tensor another name"));
                }
                // After the value, which may read the old one: `x = silu(x)`.
                self.overwritten(name, &body);
                self.meanings.insert(name.clone(), Meaning::Tensor);
                self.read.remove(name);
                body.push(statement.clone());
                continue;
            }
            let default = self.default(&statement.value);
            // `target` has reported the name of a size.
            let known = self.meanings.contains_key(name) && !SIZES.contains(&name.as_str());
            if known {
                let message = format!("`{name}` already has a value, and a field can be set only once");
                self.fail(Diagnostic::error(Code::DuplicateKey, span, message).help("choose another name"));
            }
            let meaning = match &default {
                Some(OwnDefault::Truth(_)) => Meaning::Truth,
                Some(OwnDefault::Word(..)) => Meaning::Activation,
                Some(OwnDefault::Required | OwnDefault::Number(_)) | None => Meaning::Number,
            };
            self.meanings.insert(name.clone(), meaning);
            are_fields_known &= default.is_some();
            fields.extend(default.map(|default| OwnField { name: name.clone(), span, default }));
        }
        if self.is_tensor(&text.result) {
            self.tensor(&text.result);
        } else {
            let message = "the result of a part must be a tensor, but this is a number";
            let help =
                format!("end with what is computed from `{}`", text.params.first().map_or("x", |p| &p.0));
            self.fail(Diagnostic::error(Code::EquationShape, text.result.span, message).help(help));
        }
        self.report_twins(&body, &text.result);
        self.report_unread(text, &fields, &body);
        let (inputs, result) = (text.params.clone(), text.result.clone());
        let (name, span) = (e.key.clone(), e.key_span);
        let definition = Definition { name, span, inputs, fields, body, result, slot: None };
        match self.failed {
            false => Checked::Sound(definition),
            true if are_fields_known => Checked::Fields(definition),
            true => Checked::Nothing,
        }
    }

    /// Reports calls with parameters of their own whose name no weight can have, or that have the same name.
    fn report_twins(&mut self, body: &[Statement], result: &Term) {
        // The names of weights are in lower case.
        let mut first: BTreeMap<String, (String, Span)> = BTreeMap::new();
        for (name, span) in members(body, result, &|part| self.parts.contains_key(part)) {
            // A dot separates the segments of a weight's path.
            if name.contains('.') {
                let message = format!("`{name}` cannot be the name of a call");
                let help = crate::syntax::text::NAMES;
                self.fail(Diagnostic::error(Code::BadKey, span, message).help(help));
                continue;
            }
            let known = first.insert(name.to_ascii_lowercase(), (name.clone(), span));
            if let Some((other, twin)) = known {
                let message = twins("calls", &name, &other);
                self.fail(
                    Diagnostic::error(Code::DuplicateInstance, span, message)
                        .label(twin, "the other one")
                        .help("every call has its own parameters, so its own name"),
                );
            }
        }
    }

    /// Reports a name that nothing can be called.
    fn target(&mut self, name: &str, span: Span) {
        // An activation is also a value. Any other word is followed by a bracket, and a name is not.
        if SIZES.contains(&name) || VALUES.contains(&name) || activation(name).is_some() {
            let message = format!("`{name}` cannot be a name in a part");
            let help = if SIZES.contains(&name) {
                "it is the name of a size of the spec; choose another"
            } else {
                "it already has a meaning in equations; choose another"
            };
            self.fail(Diagnostic::error(Code::BadKey, span, message).help(help));
        }
    }

    /// Reports the value of a name that gets another before anything has read it.
    fn overwritten(&mut self, name: &str, body: &[Statement]) {
        let before = body.iter().rev().find(|s| s.target == name).map(|s| s.target_span);
        if let Some(span) = before.filter(|_| !self.read.contains(name)) {
            self.unread(name, span);
        }
    }

    fn unread(&mut self, name: &str, span: Span) {
        let message = format!("`{name}` is given a value that is never used");
        self.fail(
            Diagnostic::error(Code::UnusedValue, span, message)
                .help("use it in a later line, or remove the line"),
        );
    }

    fn report_unread(&mut self, text: &PartText, fields: &[OwnField], body: &[Statement]) {
        // What an error has hidden may be what reads a name.
        if self.failed {
            return;
        }
        for (name, span) in &text.params {
            let is_replaced = body.iter().any(|s| s.target == *name);
            if !self.read.contains(name) && !is_replaced {
                let message = format!("the part `{}` does nothing with its input `{name}`", self.name);
                self.fail(Diagnostic::error(Code::UnusedValue, *span, message).help("use it, or remove it"));
            }
        }
        for field in fields.iter().filter(|field| !self.read.contains(&field.name)).collect::<Vec<_>>() {
            let message = format!("nothing in the part `{}` uses its field `{}`", self.name, field.name);
            self.fail(
                Diagnostic::error(Code::UnusedKey, field.span, message)
                    .help("use it as a size or a factor, or remove the line"),
            );
        }
        // The last value of each name; the earlier ones were checked where they were replaced.
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let last: Vec<&Statement> = body.iter().rev().filter(|s| seen.insert(s.target.as_str())).collect();
        for statement in last.into_iter().rev() {
            if !self.read.contains(&statement.target) {
                self.unread(&statement.target, statement.target_span);
            }
        }
    }

    /// Whether a term is computed from tensors or parameters.
    fn is_tensor(&self, term: &Term) -> bool {
        let is_tensor = |name: &str| self.meanings.get(name) == Some(&Meaning::Tensor);
        match &term.kind {
            TermKind::Name(name) => is_tensor(name),
            TermKind::Text(_) => false,
            TermKind::Number(number) => number.names().iter().any(|(name, _)| is_tensor(name)),
            TermKind::Call { part, .. } if !self.is_of_numbers(part) => true,
            TermKind::Call { .. } | TermKind::Sum(_) | TermKind::Product(_) | TermKind::Quotient(..) => {
                term.operands().any(|operand| self.is_tensor(operand))
            }
        }
    }

    /// The default that a term is, which is no tensor; `None` after an error.
    fn default(&mut self, term: &Term) -> Option<OwnDefault> {
        if let TermKind::Name(name) = &term.kind {
            let word = mistakes::default_meant(name, &self.meanings.keys().collect::<Vec<_>>());
            if let Some(default) = word.as_deref().and_then(|word| default_of(word, term.span)) {
                if let Some(near) = word.filter(|word| word != name) {
                    self.fail(mistakes::unnamed(name, term.span, self.name).meant(name, &near));
                }
                return Some(default);
            }
        }
        self.number(term).then(|| term.as_expression().map(OwnDefault::Number))?
    }

    /// Checks a number; whether it has no error.
    fn number(&mut self, term: &Term) -> bool {
        let Some(expression) = term.as_expression() else {
            if let Some((part, span)) = unknown_function(term) {
                self.unknown_call(part, span);
                return false;
            }
            let message = format!("expected a number, found `{term}`");
            self.fail(Diagnostic::error(Code::WrongArguments, term.span, message));
            return false;
        };
        let names: Vec<(String, Span)> =
            expression.names().into_iter().map(|(name, span)| (name.to_owned(), span)).collect();
        names.iter().fold(true, |sound, (name, span)| self.name(name, *span, Meaning::Number) && sound)
    }

    /// Checks a name that should mean this; whether it does.
    fn name(&mut self, name: &str, span: Span, wanted: Meaning) -> bool {
        self.read.insert(name.to_owned());
        let words = |meaning: Meaning| match meaning {
            Meaning::Tensor => "a tensor",
            Meaning::Number => "a number",
            Meaning::Truth => "`true` or `false`",
            Meaning::Activation => "an activation",
        };
        match self.meanings.get(name).copied() {
            Some(meaning) if meaning == wanted => return true,
            Some(meaning) => {
                let message = format!("`{name}` is {}, where {} is needed", words(meaning), words(wanted));
                self.fail(Diagnostic::error(Code::WrongArguments, span, message));
            }
            None => {
                let known: Vec<(&str, bool)> =
                    self.meanings.iter().map(|(known, is)| (known.as_str(), *is == wanted)).collect();
                let diagnostic =
                    unknown_name(name, span, self.name, (&known, SIZES), wanted == Meaning::Tensor);
                self.fail(self.hyphenated(span).unwrap_or(diagnostic));
            }
        }
        false
    }

    /// Checks a term that is a tensor, or a number that it is combined with.
    fn tensor(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Name(name) => {
                // A number as a summand or a factor.
                let is_number = self.meanings.get(name) == Some(&Meaning::Number);
                self.name(name, term.span, if is_number { Meaning::Number } else { Meaning::Tensor });
            }
            TermKind::Text(_) => drop(self.number(term)),
            TermKind::Number(number) => {
                let names = number.names();
                let of_tensor =
                    names.iter().find(|(name, _)| self.meanings.get(*name) == Some(&Meaning::Tensor));
                if let Some((name, span)) = of_tensor {
                    self.fail(of_numbers(term, *span, name));
                } else {
                    self.number(term);
                }
            }
            TermKind::Call { .. } if !self.is_tensor(term) => {
                self.number(term);
            }
            TermKind::Call { part, args, .. }
                if Function::of_numbers(part).is_some() && word(part).is_none() =>
            {
                let tensor = args.iter().find(|arg| self.is_tensor(arg));
                let place = tensor.map_or(term.span, |arg| arg.span);
                let shown = tensor.map_or_else(|| term.to_string(), Term::to_string);
                self.fail(of_numbers(term, place, &shown));
            }
            TermKind::Call { part, label, args, named } => {
                self.call(term.span, part, label.as_deref(), args, named);
            }
            TermKind::Quotient(over, under) => {
                self.tensor(over);
                self.tensor(under);
            }
            TermKind::Sum(_) | TermKind::Product(_) => {
                let all: Vec<&Term> = term.operands().collect();
                all.into_iter().for_each(|operand| self.tensor(operand));
            }
        }
    }

    fn call(&mut self, span: Span, part: &str, label: Option<&str>, args: &[Term], named: &[Named]) {
        let (tensors, numbers, has_parameters, usage) = match (self.meanings.get(part), word(part)) {
            (Some(Meaning::Activation), _) => {
                self.read.insert(part.to_owned());
                (exactly(1), exactly(0), false, format!("{part}(x)"))
            }
            (_, Some(word)) => (word.tensors, word.numbers, word.has_parameters, word.usage()),
            (_, None) => match self.parts.get(part) {
                Some(Some(inputs)) => {
                    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
                    (exactly(names.len()), exactly(0), true, format!("{part}({})", names.join(", ")))
                }
                // Its own error has been reported.
                Some(None) => {
                    self.failed = true;
                    return;
                }
                None => {
                    self.unknown_call(part, span);
                    return args.iter().for_each(|arg| self.any(arg));
                }
            },
        };
        if let Some(label) = label.filter(|_| !has_parameters) {
            let message = format!("`{part}` has no parameters, so a call of it has no name");
            let help = format!("write `{usage}` without `[{label}]`");
            self.fail(Diagnostic::error(Code::WrongArguments, span, message).help(help));
        }
        let args = match (word(part).filter(|word| word.has_axes), args.split_first()) {
            (Some(_), Some((Term { kind: TermKind::Text(text), span }, rest))) => {
                if let Err(message) = axes(text) {
                    let diagnostic = Diagnostic::error(Code::WrongArguments, *span, message);
                    self.fail(diagnostic.help(format!("write `{usage}`: a letter for every axis")));
                }
                rest
            }
            (Some(_), _) => {
                let message = format!("`{part}` is given no axes");
                let diagnostic = Diagnostic::error(Code::WrongArguments, span, message);
                self.fail(diagnostic.help(format!("write `{usage}`, with the axes in quotes")));
                return;
            }
            (None, _) => args,
        };
        let given = args.len();
        let (least, most) =
            (tensors.least.saturating_add(numbers.least), tensors.most.saturating_add(numbers.most));
        if given < least || given > most {
            let message = format!(
                "`{part}` is given {}, but takes {}",
                counted(given, "argument"),
                amount_of(least, most)
            );
            let help = format!("write `{usage}`");
            self.fail(Diagnostic::error(Code::WrongArguments, span, message).help(help));
            return;
        }
        // No word takes a variable number of tensors and numbers as well, so the position says what is
        // wanted.
        let or_number = word(part).map_or(usize::MAX, |word| word.or_number);
        for (i, arg) in args.iter().enumerate() {
            let is_unknown = matches!(&arg.kind, TermKind::Name(name) if !self.meanings.contains_key(name));
            match (i < tensors.most, self.is_tensor(arg)) {
                (true, _) if is_unknown && i < or_number => self.tensor(arg),
                _ if is_unknown => drop(self.number(arg)),
                (true, true) => self.tensor(arg),
                (false, false) => drop(self.number(arg)),
                (true, false) if i >= or_number && !matches!(arg.kind, TermKind::Text(_)) => {
                    self.number(arg);
                }
                (wants_tensor, _) => {
                    let (wanted, other) =
                        if wants_tensor { ("a tensor", "a number") } else { ("a number", "a tensor") };
                    let found = if let TermKind::Text(_) = arg.kind { "a text" } else { other };
                    let message = format!("`{part}` takes {wanted} here, but `{arg}` is {found}");
                    let help = format!("write `{usage}`");
                    self.fail(Diagnostic::error(Code::WrongArguments, arg.span, message).help(help));
                }
            }
        }
        if part == EXPERTS {
            self.expert(args.first());
        }
        // Which fields there are, and which values they take, is checked where they are decoded.
        named.iter().for_each(|named| self.field(&named.value));
    }

    /// Checks an argument of a call that is not known, and so may be a tensor or a number.
    fn any(&mut self, arg: &Term) {
        let is_call = matches!(arg.kind, TermKind::Call { .. }) && arg.as_expression().is_none();
        if is_call || self.is_tensor(arg) {
            self.tensor(arg);
        } else if !matches!(arg.kind, TermKind::Text(_)) {
            self.number(arg);
        }
    }

    /// Checks that what each expert computes is a part of one input.
    fn expert(&mut self, term: Option<&Term>) {
        let Some(term) = term else { return };
        let is_part = match &term.kind {
            TermKind::Call { part, args, .. } => self.parts.contains_key(part.as_str()) && args.len() == 1,
            TermKind::Name(_)
            | TermKind::Number(_)
            | TermKind::Text(_)
            | TermKind::Sum(_)
            | TermKind::Product(_)
            | TermKind::Quotient(..) => false,
        };
        if !is_part {
            self.fail(mistakes::no_expert(EXPERTS, term));
        }
    }

    /// Notes the names that the value of a field reads, which may also be words.
    fn field(&mut self, value: &Term) {
        match &value.kind {
            TermKind::Name(name) => {
                if self.meanings.get(name) == Some(&Meaning::Tensor) {
                    self.name(name, value.span, Meaning::Number);
                }
                self.read.insert(name.clone());
                // That nothing has this name is reported where the field is decoded, and what is meant is no less used.
                if !self.meanings.contains_key(name) {
                    self.read.extend(suggest(name, &self.meanings.keys().collect::<Vec<_>>()));
                }
            }
            TermKind::Call { .. } if value.as_expression().is_some() => drop(self.number(value)),
            TermKind::Call { named, .. } => named.iter().for_each(|named| self.field(&named.value)),
            TermKind::Number(_)
            | TermKind::Text(_)
            | TermKind::Sum(_)
            | TermKind::Product(_)
            | TermKind::Quotient(..) => {
                self.number(value);
            }
        }
    }

    /// The diagnostic for a word with hyphens that has a piece at this place.
    fn hyphenated(&self, piece: Span) -> Option<Diagnostic> {
        let is_value = |name: &str| self.meanings.contains_key(name) || self.parts.contains_key(name);
        self.cx.hyphenated(piece, &|name| is_value(name) || word(name).is_some())
    }

    /// All that this part can call.
    fn callable(&self) -> Vec<&str> {
        // Not itself, which would be a circle.
        let own = self.parts.keys().copied().filter(|name| *name != self.name);
        let fields = self.meanings.iter().filter(|(_, m)| **m == Meaning::Activation);
        let fields = fields.map(|(name, _)| name.as_str());
        let functions = Function::NUMBERS.iter().map(|function| function.name());
        words().map(|word| word.name).chain(own).chain(fields).chain(functions).collect()
    }

    /// Whether a call is one of a function of numbers, or of a word that is not known and was meant for one.
    fn is_of_numbers(&self, part: &str) -> bool {
        let is_known = self.callable().contains(&part) || part == self.name;
        let meant = || suggest(part, &self.callable()).is_some_and(|n| Function::of_numbers(&n).is_some());
        Function::of_numbers(part).is_some() || !is_known && !self.cx.is_full() && meant()
    }

    fn unknown_call(&mut self, part: &str, span: Span) {
        // The help compares it with every known name, and nobody would read it.
        if self.cx.is_full() {
            self.failed = true;
            return;
        }
        let known = self.callable();
        if let Some(diagnostic) = self.hyphenated(span) {
            return self.fail(diagnostic);
        }
        let diagnostic = mistakes::unknown_call(part, span, &known);
        self.fail(diagnostic);
    }
}
