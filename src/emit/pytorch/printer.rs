//! Prints Python as `ruff format` leaves it: 88 columns, and brackets that are opened only where a line is
//! too long.
//!
//! What is too long is broken in the order of ruff's rules: the arguments of a call go to a line of their
//! own, then to one line each with a comma at the end; operators go to the beginning of lines in parentheses.

use super::number::{float, quoted};
use super::syntax::{Argument, Class, Def, Expr, Item, Parameter, Sign, Stmt, Strength, Target};
use crate::emit::program::constants::grouped;

/// The longest line, in characters, as ruff has it by default.
pub const WIDTH: usize = 88;

/// The columns of one step of indentation.
const INDENT: usize = 4;

/// Chooses the text of an expression that is not text yet; `None` for all others.
pub type Naming<'a> = &'a dyn Fn(&Expr) -> Option<String>;

/// A printer of one file.
pub struct Printer<'a> {
    name: Naming<'a>,
    out: String,
}

impl<'a> Printer<'a> {
    /// An empty file. `name` gives numbers of `Config` and values their text.
    pub fn new(name: Naming<'a>) -> Self {
        Self { name, out: String::new() }
    }

    /// The text of everything that was printed.
    pub fn finish(self) -> String {
        self.out
    }

    /// The items of a file, with two empty lines before classes and functions.
    pub fn items(&mut self, items: &[Item]) {
        for item in items {
            if !self.out.is_empty() {
                self.out.push_str("\n\n");
            }
            match item {
                Item::Class(class) => self.class(class),
                Item::Def(def) => self.def(def, 0),
                Item::Stmt(stmt) => self.stmt(stmt, 0),
                Item::Runtime(text) => self.out.push_str(text),
            }
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    fn class(&mut self, class: &Class) {
        for decorator in &class.decorators {
            let text = self.flat(decorator);
            self.line(0, &format!("@{text}"));
        }
        let base = class.base.as_ref().map_or_else(String::new, |base| format!("({})", self.flat(base)));
        self.line(0, &format!("class {}{base}:", class.name));
        self.doc(&class.doc, INDENT);
        if !class.fields.is_empty() {
            self.line(0, "");
            self.body(&class.fields, INDENT);
        }
        for method in &class.methods {
            self.line(0, "");
            self.def(method, INDENT);
        }
    }

    fn doc(&mut self, lines: &[String], indent: usize) {
        let (first, rest) = match lines {
            [] => return,
            [one] => return self.line(indent, &format!("\"\"\"{one}\"\"\"")),
            [first, rest @ ..] => (first, rest),
        };
        self.line(indent, &format!("\"\"\"{first}"));
        rest.iter().for_each(|line| self.line(indent, line));
        self.line(indent, "\"\"\"");
    }

    fn def(&mut self, def: &Def, indent: usize) {
        for decorator in &def.decorators {
            let text = self.flat(decorator);
            self.line(indent, &format!("@{text}"));
        }
        let parameters: Vec<String> = def.parameters.iter().map(|p| self.parameter(p)).collect();
        let returns = self.flat(&def.returns);
        let (open, close) = (format!("def {}(", def.name), format!(") -> {returns}:"));
        let all = parameters.join(", ");
        let fits = |used: usize, text: &str| used + text.chars().count() <= WIDTH;
        if fits(indent, &format!("{open}{all}{close}")) {
            self.line(indent, &format!("{open}{all}{close}"));
        } else {
            self.line(indent, &open);
            if fits(indent + INDENT, &all) {
                self.line(indent + INDENT, &all);
            } else {
                parameters.iter().for_each(|one| self.line(indent + INDENT, &format!("{one},")));
            }
            self.line(indent, &close);
        }
        self.doc(&def.doc, indent + INDENT);
        self.body(&def.body, indent + INDENT);
    }

    fn parameter(&self, parameter: &Parameter) -> String {
        let mut text = parameter.name.clone();
        if let Some(ty) = &parameter.ty {
            text.push_str(": ");
            text.push_str(&self.flat(ty));
        }
        if let Some(default) = &parameter.default {
            text.push_str(if parameter.ty.is_some() { " = " } else { "=" });
            text.push_str(&self.flat(default));
        }
        text
    }

    fn body(&mut self, body: &[Stmt], indent: usize) {
        body.iter().for_each(|stmt| self.stmt(stmt, indent));
    }

    fn stmt(&mut self, stmt: &Stmt, indent: usize) {
        match stmt {
            Stmt::Assign { targets, value, comment } => {
                let names: Vec<String> = targets.iter().map(|target| self.target(target)).collect();
                let names = names.join(", ");
                // A value that keeps its name is not assigned to itself.
                if targets.len() == 1 && self.flat(value) == names {
                    return;
                }
                self.value(&format!("{names} = "), value, "", comment.as_deref(), indent);
            }
            Stmt::Add(target, value) => {
                let head = format!("{} += ", self.flat(target));
                self.value(&head, value, "", None, indent);
            }
            Stmt::Field { name, ty, value, doc } => {
                let mut text = format!("{name}: {}", self.flat(ty));
                if let Some(value) = value {
                    text.push_str(&format!(" = {}", self.flat(value)));
                }
                let whole = format!("{text}  # {doc}");
                if doc.is_empty() {
                    self.line(indent, &text);
                } else if indent + whole.chars().count() <= WIDTH {
                    self.line(indent, &whole);
                } else {
                    self.comment(indent, doc);
                    self.line(indent, &text);
                }
            }
            Stmt::Expr(value) => self.value("", value, "", None, indent),
            Stmt::Return(value) => self.value("return ", value, "", None, indent),
            Stmt::If(branches) => {
                for (at, (test, body)) in branches.iter().enumerate() {
                    match (test, at) {
                        (Some(test), 0) => self.value("if ", test, ":", None, indent),
                        (Some(test), _) => self.value("elif ", test, ":", None, indent),
                        (None, _) => self.line(indent, "else:"),
                    }
                    self.body(body, indent + INDENT);
                }
            }
            Stmt::For { targets, source, body } => {
                let head = format!("for {} in ", targets.join(", "));
                self.value(&head, source, ":", None, indent);
                self.body(body, indent + INDENT);
            }
            Stmt::Append { targets, caches, cache, inputs } => {
                let names: Vec<String> = targets.iter().map(|target| self.target(target)).collect();
                // What has the name already needs no other.
                let others = names.iter().zip(inputs).filter(|(name, value)| **name != self.flat(value));
                let (given, values): (Vec<String>, Vec<Expr>) =
                    others.map(|(name, value)| (name.clone(), value.clone())).unzip();
                let head = format!("{} = ", given.join(", "));
                match values.as_slice() {
                    [] => {}
                    [one] => self.value(&head, one, "", None, indent),
                    _ => self.value(&head, &Expr::Tuple(values), "", None, indent),
                }
                // `append` returns a tuple, even of one tensor.
                let names = if let [one] = names.as_slice() { vec![format!("({one},)")] } else { names };
                let head = format!("{} = ", names.join(", "));
                let test = caches.clone().binary(Sign::Compare("is not"), Expr::None);
                self.value("if ", &test, ":", None, indent);
                let appended = cache.clone().method("append", inputs.clone());
                self.value(&head, &appended, "", None, indent + INDENT);
            }
        }
    }

    fn target(&self, target: &Target) -> String {
        match target {
            Target::Value(id) => self.flat(&Expr::Value(*id)),
            Target::Expr(expr) => self.flat(expr),
            Target::Nothing => "_".to_owned(),
        }
    }

    /// A comment on lines of its own, as many as it needs.
    fn comment(&mut self, indent: usize, text: &str) {
        let mut line = "#".to_owned();
        for word in text.split(' ') {
            if line.len() > 1 && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(indent, &line);
                line.truncate(1);
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(indent, &line);
    }

    /// A line that consists of `head`, an expression and `tail`, or several if it is too long for one.
    fn value(&mut self, head: &str, value: &Expr, tail: &str, comment: Option<&str>, indent: usize) {
        // Without parentheses, as a person would write it.
        let flat = if let Expr::Tuple(items) = value { self.bare(items) } else { self.flat(value) };
        let line = format!("{head}{flat}{tail}");
        let width = |text: &str| indent + text.chars().count();
        if let Some(comment) = comment {
            let whole = format!("{line}  # {comment}");
            if width(&whole) <= WIDTH {
                return self.line(indent, &whole);
            }
        }
        // A comment that does not fit is left out, as it only helps readers.
        if width(&line) <= WIDTH {
            return self.line(indent, &line);
        }
        // ruff breaks within parentheses that an operand has already, and adds new ones around the whole only
        // where that does not fit.
        let broken = if matches!(value, Expr::Binary(..) | Expr::Choice { .. }) {
            let within = || self.right_broken(head, value, tail, indent);
            within().or_else(|| self.left_broken(head, value, tail, indent)).unwrap_or_else(|| {
                let mut lines = vec![format!("{head}(")];
                lines.extend(self.broken("", value, "", INDENT, indent));
                lines.push(format!("){tail}"));
                lines
            })
        } else {
            self.broken(head, value, tail, 0, indent)
        };
        broken.iter().for_each(|text| self.line(indent, text));
    }

    /// One operator whose right operand is broken between its own parentheses, so that none are needed around
    /// both operands.
    fn right_broken(&self, head: &str, value: &Expr, tail: &str, indent: usize) -> Option<Vec<String>> {
        let Expr::Binary(sign, left, right) = value else { return None };
        let strength = sign.strength();
        // A chain of operators of one strength is broken before each of them instead.
        if left.strength() == strength {
            return None;
        }
        let head = format!("{head}{} {} ", self.at_least(left, strength), sign.text());
        let lines = if is_call_with_arguments(right) {
            self.broken(&head, right, tail, 0, indent)
        } else if right.strength() <= strength {
            let mut lines = vec![format!("{head}(")];
            lines.extend(self.broken("", right, "", INDENT, indent));
            lines.push(format!("){tail}"));
            lines
        } else {
            return None;
        };
        let fits = |text: &String| indent + text.chars().count() <= WIDTH;
        lines.iter().all(fits).then_some(lines)
    }

    /// One operator between two calls, of which the left is broken between its parentheses, and the right too
    /// if the rest of the line is too long for it.
    fn left_broken(&self, head: &str, value: &Expr, tail: &str, indent: usize) -> Option<Vec<String>> {
        let Expr::Binary(sign, left, right) = value else { return None };
        let Expr::Call(function, arguments) = &**left else { return None };
        if arguments.is_empty() || !is_call_with_arguments(right) {
            return None;
        }
        let mut lines = self.call(head, function, arguments, "", 0, indent);
        let head = format!("{} {} ", lines.pop()?, sign.text());
        lines.extend(self.broken(&head, right, tail, 0, indent));
        lines.iter().all(|text| indent + text.chars().count() <= WIDTH).then_some(lines)
    }

    /// A call with its arguments on lines of their own.
    fn call(
        &self,
        head: &str,
        function: &Expr,
        arguments: &[Argument],
        tail: &str,
        inner: usize,
        indent: usize,
    ) -> Vec<String> {
        let pad = " ".repeat(inner);
        let parts: Vec<(String, &Expr)> =
            arguments.iter().map(|argument| (self.label(argument), &argument.value)).collect();
        let close = format!("{pad}){tail}");
        let open = format!("{pad}{head}{}(", self.at_least(function, Strength::Postfix));
        let fits = |text: &str| indent + text.chars().count() <= WIDTH;
        // A method of a call that is too long for a line by itself: the arguments of that call are broken.
        if let Expr::Attr(receiver, name) = function
            && let Expr::Call(before, given) = &**receiver
            && !given.is_empty()
            && !fits(&open)
        {
            let mut lines = self.call(head, before, given, "", inner, indent);
            let open = format!("{}.{name}(", lines.pop().unwrap_or_default());
            let all = parts.iter().map(|(label, value)| format!("{label}{}", self.flat(value)));
            let flat = format!("{open}{}){tail}", all.collect::<Vec<_>>().join(", "));
            lines.extend(if fits(&flat) {
                vec![flat]
            } else {
                self.list(open, &parts, close, true, inner, indent)
            });
            return lines;
        }
        self.list(open, &parts, close, true, inner, indent)
    }

    /// An expression over several lines. `inner` is the indentation of the first, in addition to `indent`,
    /// from which lines are not indented here.
    fn broken<'e>(
        &self,
        head: &str,
        value: &'e Expr,
        tail: &str,
        inner: usize,
        indent: usize,
    ) -> Vec<String> {
        let pad = " ".repeat(inner);
        let flat = self.flat(value);
        if indent + inner + format!("{head}{flat}{tail}").chars().count() <= WIDTH {
            return vec![format!("{pad}{head}{flat}{tail}")];
        }
        let items = |items: &'e [Expr]| items.iter().map(|item| (String::new(), item)).collect::<Vec<_>>();
        if let Expr::Call(function, arguments) = value
            && !arguments.is_empty()
        {
            self.call(head, function, arguments, tail, inner, indent)
        } else if let Expr::List(list) = value
            && !list.is_empty()
        {
            self.list(format!("{pad}{head}["), &items(list), format!("{pad}]{tail}"), false, inner, indent)
        } else if let Expr::Tuple(list) = value
            && list.len() > 1
        {
            self.list(format!("{pad}{head}("), &items(list), format!("{pad}){tail}"), false, inner, indent)
        } else if let Expr::Binary(sign, ..) = value {
            let of = sign.strength();
            let mut operands = Vec::new();
            gather(value, of, None, &mut operands);
            let last = operands.len().saturating_sub(1);
            let mut lines = Vec::new();
            for (at, (sign, operand)) in operands.iter().enumerate() {
                let sign = sign.map_or_else(String::new, |sign| format!("{} ", sign.text()));
                let head = if at == 0 { format!("{head}{sign}") } else { sign };
                let tail = if at == last { tail } else { "" };
                if is_call_with_arguments(operand) {
                    lines.extend(self.broken(&head, operand, tail, inner, indent));
                } else {
                    // Operators group from the left, so only the first operand may bind as loosely as they
                    // do.
                    let least = if at == 0 { self.at_least(operand, of) } else { self.above(operand, of) };
                    lines.push(format!("{pad}{head}{least}{tail}"));
                }
            }
            lines
        } else if let Expr::Choice { .. } = value {
            self.alternatives(head, value, tail, inner, indent)
        } else if let Expr::Each { element, target, source } = value {
            let mut lines = self.broken(head, element, "", inner, indent);
            let source = self.at_least(source, Strength::And);
            lines.push(format!("{pad}for {target} in {source}{tail}"));
            lines
        } else {
            vec![format!("{pad}{head}{flat}{tail}")]
        }
    }

    /// A choice, and those after its `else`, with a line for each part.
    fn alternatives(&self, head: &str, value: &Expr, tail: &str, inner: usize, indent: usize) -> Vec<String> {
        let pad = " ".repeat(inner);
        let Expr::Choice { test, then, other } = value else {
            return self.broken(head, value, tail, inner, indent);
        };
        // A choice before `if` is in parentheses, which are not broken.
        let mut lines = if matches!(**then, Expr::Choice { .. }) {
            vec![format!("{pad}{head}{}", self.at_least(then, Strength::And))]
        } else {
            self.broken(head, then, "", inner, indent)
        };
        lines.push(format!("{pad}if {}", self.at_least(test, Strength::And)));
        lines.extend(self.alternatives("else ", other, tail, inner, indent));
        lines
    }

    /// What is in brackets: on one line of its own where that is usual and it fits, otherwise a line each.
    fn list(
        &self,
        open: String,
        parts: &[(String, &Expr)],
        close: String,
        may_join: bool,
        inner: usize,
        indent: usize,
    ) -> Vec<String> {
        let pad = " ".repeat(inner + INDENT);
        let flat: Vec<String> =
            parts.iter().map(|(label, value)| format!("{label}{}", self.flat(value))).collect();
        let joined = format!("{pad}{}", flat.join(", "));
        if may_join && indent + joined.chars().count() <= WIDTH {
            return vec![open, joined, close];
        }
        // A generator has no comma after it.
        let comma = if matches!(parts, [(_, Expr::Each { .. })]) { "" } else { "," };
        let mut lines = vec![open];
        for (label, value) in parts {
            lines.extend(self.broken(label, value, comma, inner + INDENT, indent));
        }
        lines.push(close);
        lines
    }

    fn label(&self, argument: &Argument) -> String {
        argument.name.as_ref().map_or_else(String::new, |name| format!("{name}="))
    }

    /// `a, b`, or `(a,)` for one.
    fn bare(&self, items: &[Expr]) -> String {
        let all: Vec<String> = items.iter().map(|item| self.flat(item)).collect();
        match all.as_slice() {
            [one] => format!("({one},)"),
            several => several.join(", "),
        }
    }

    /// An expression on one line.
    pub fn flat(&self, expr: &Expr) -> String {
        if let Some(name) = (self.name)(expr) {
            return name;
        }
        match expr {
            Expr::Value(id) => format!("value_{}", id.0),
            Expr::Constant(id) => format!("constant_{}", id.0),
            Expr::Table(id) => format!("TABLE_{}", id.0),
            Expr::Own(constant) => format!("self.{}", self.flat(constant)),
            Expr::Runtime(name) | Expr::Import(name) => (*name).to_owned(),
            Expr::Name(name) => name.clone(),
            Expr::Int(n) => grouped(*n),
            Expr::Float(x) => float(*x),
            Expr::Str(text) => quoted(text),
            Expr::Bool(true) => "True".to_owned(),
            Expr::Bool(false) => "False".to_owned(),
            Expr::None => "None".to_owned(),
            Expr::Attr(of, name) => format!("{}.{name}", self.at_least(of, Strength::Postfix)),
            Expr::Call(function, arguments) => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|argument| format!("{}{}", self.label(argument), self.flat(&argument.value)))
                    .collect();
                format!("{}({})", self.at_least(function, Strength::Postfix), arguments.join(", "))
            }
            Expr::Index(of, items) => {
                let items: Vec<String> = items.iter().map(|item| self.flat(item)).collect();
                format!("{}[{}]", self.at_least(of, Strength::Postfix), items.join(", "))
            }
            Expr::Slice(from, to) => {
                let ends = [from, to];
                // Ends that are more than a name are set apart.
                let is_simple = |end: &Expr| matches!(end, Expr::Int(_) | Expr::Name(_) | Expr::Value(_));
                let wide = !ends.iter().filter_map(|end| end.as_deref()).all(is_simple);
                let [from, to] = ends.map(|end| end.as_ref().map(|end| self.flat(end)));
                match (from, to, wide) {
                    (Some(from), Some(to), true) => format!("{from} : {to}"),
                    (Some(from), None, true) => format!("{from} :"),
                    (None, Some(to), true) => format!(": {to}"),
                    (from, to, _) => format!("{}:{}", from.unwrap_or_default(), to.unwrap_or_default()),
                }
            }
            Expr::Binary(sign, left, right) => {
                let strength = sign.strength();
                format!("{} {} {}", self.at_least(left, strength), sign.text(), self.above(right, strength))
            }
            Expr::Minus(of) => format!("-{}", self.at_least(of, Strength::Unary)),
            Expr::Choice { test, then, other } => format!(
                "{} if {} else {}",
                self.at_least(then, Strength::And),
                self.at_least(test, Strength::And),
                self.at_least(other, Strength::Choice)
            ),
            Expr::Tuple(items) => match items.as_slice() {
                [_] => self.bare(items),
                several => format!("({})", self.bare(several)),
            },
            Expr::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flat(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Expr::Each { element, target, source } => {
                format!("{} for {target} in {}", self.flat(element), self.at_least(source, Strength::And))
            }
        }
    }

    fn at_least(&self, expr: &Expr, wanted: Strength) -> String {
        let text = self.flat(expr);
        // Python reads `1.real` as the float `1.` followed by a name.
        let is_number = matches!(expr, Expr::Int(_)) && wanted == Strength::Postfix;
        if expr.strength() >= wanted && !is_number { text } else { format!("({text})") }
    }

    /// An expression in parentheses, unless it binds more tightly than this.
    fn above(&self, expr: &Expr, than: Strength) -> String {
        let text = self.flat(expr);
        if expr.strength() > than { text } else { format!("({text})") }
    }
}

/// Whether a line can be broken between the parentheses of a call.
fn is_call_with_arguments(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(_, arguments) if !arguments.is_empty())
}

/// The operands of operators of one strength, each with the operator before it.
fn gather<'e>(value: &'e Expr, of: Strength, before: Option<Sign>, out: &mut Vec<(Option<Sign>, &'e Expr)>) {
    if let Expr::Binary(sign, left, right) = value
        && sign.strength() == of
    {
        gather(left, of, before, out);
        out.push((Some(*sign), right));
    } else {
        out.push((before, value));
    }
}
