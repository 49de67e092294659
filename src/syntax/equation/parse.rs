//! The parser of equations, whose grammar is in the module above.

use std::ops::Range;

use super::term::{Equation, Named, PART_PARAMS, PartText, Sign, Statement, Term, TermKind};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::expr::{self, Expr, ExprKind, Function, Operator};
use crate::syntax::token::{Cursor, Token, TokenKind};

pub(super) type Parsed<T> = Result<T, Box<Diagnostic>>;

pub(super) struct Parser<'t, 'a> {
    pub(super) words: Cursor<'t, 'a>,
    /// Whether functions of numbers may also be given tensors, as in parts.
    pub(super) of_tensors: bool,
    /// The mistakes after which reading went on. With any, what is read means nothing.
    pub(super) faults: Vec<Diagnostic>,
}

impl<'t, 'a> Parser<'t, 'a> {
    pub(super) fn new(words: Cursor<'t, 'a>, of_tensors: bool, faults: Vec<Diagnostic>) -> Self {
        Self { words, of_tensors, faults }
    }
}

impl<'a> Parser<'_, 'a> {
    pub(super) fn span(&self, range: &Range<usize>) -> Span {
        self.words.text.span(range)
    }

    /// `block name(x, memory) { ... }`; also returns the place of the name.
    pub(super) fn definition(&mut self) -> Parsed<(Equation, Span)> {
        let block = self.words.take();
        if block.text != "block" {
            return Err(self.unexpected(&block, "`block name(x) { ... }`"));
        }
        let name = self.name("the block's name")?;
        let name_span = self.span(&name.range);
        let params = self.params()?;
        let open = self.mark("{", "the block's equation in braces")?;
        let span = self.span(&(block.range.start..open.range.end));
        let equation = self.equation(Some(name.text.to_owned()), Some((params, open)), span)?;
        Ok((equation, name_span))
    }

    /// Skips a definition with an error: continues at the next `block` that begins a definition.
    pub(super) fn skip_definition(&mut self) {
        while self.words.peek().kind != TokenKind::End {
            // `block` can also be a name in an equation, so the word alone begins nothing.
            let begins = self.words.peek().text == "block" && self.words.ahead(1).kind == TokenKind::Name;
            if begins && self.words.ahead(2).text == "(" {
                return;
            }
            self.words.at = self.words.at.saturating_add(1);
        }
    }

    /// The parameters in parentheses, `(x, memory)`, with their places.
    fn params(&mut self) -> Parsed<Vec<(String, Span)>> {
        self.mark("(", "the parameters, `(x)` or `(x, memory)`")?;
        let mut params: Vec<(String, Span)> = Vec::new();
        loop {
            let name = self.name("a parameter's name")?;
            let span = self.span(&name.range);
            if let Some((_, first)) = params.iter().find(|(n, _)| n == name.text) {
                let message = format!("the parameter `{}` is named twice", name.text);
                let diagnostic = Diagnostic::error(Code::Equation, span, message);
                return Err(Box::new(diagnostic.label(*first, "first named here")));
            }
            params.push((name.text.to_owned(), span));
            if self.words.take_mark(&[","]).is_none() {
                self.mark(")", "`)` after the parameters")?;
                return Ok(params);
            }
        }
    }

    /// Whether a header `(x, memory):` begins here.
    fn has_header(&self) -> bool {
        // An equation may begin with `(x + y) * ...` as well: only the `:` after the parentheses tells.
        let mut n: usize = 1;
        while self.words.ahead(n).kind == TokenKind::Name && self.words.ahead(n.saturating_add(1)).text == ","
        {
            n = n.saturating_add(2);
        }
        self.words.peek().text == "("
            && self.words.ahead(n).kind == TokenKind::Name
            && self.words.ahead(n.saturating_add(1)).text == ")"
            && self.words.ahead(n.saturating_add(2)).text == ":"
    }

    /// The statements up to the end, or up to the brace that closes `braces`.
    pub(super) fn equation(
        &mut self,
        name: Option<String>,
        braces: Option<(Vec<(String, Span)>, Token<'a>)>,
        span: Span,
    ) -> Parsed<Equation> {
        let mut params = Vec::new();
        let mut open = None;
        if let Some((given, brace)) = braces {
            params = given;
            open = Some(brace);
        } else if self.has_header() {
            params = self.params()?;
            self.mark(":", "`:` after the parameters")?;
        } else {
            params.push(("x".to_owned(), span));
            let memory = self.words.tokens.iter().find(|t| t.kind == TokenKind::Name && t.text == "memory");
            params.extend(memory.map(|t| ("memory".to_owned(), self.span(&t.range))));
        }
        let first = params.first().map_or("x".to_owned(), |p| p.0.clone());
        let text_start = open.as_ref().map_or(self.words.peek().range.start, |o| o.range.end);
        let mut body: Vec<Statement> = Vec::new();
        // Whether the last statement has no name, and whether only spaces are between it and the one before it.
        let (mut is_last, mut is_beside) = (false, false);
        let end = loop {
            while self.words.take_mark(&[";"]).is_some() {}
            let next = self.words.peek();
            match (&open, next.kind, next.text) {
                (Some(_), TokenKind::Mark, "}") => break self.words.take(),
                (None, TokenKind::End, _) => break next,
                (Some(open), TokenKind::End, _) => {
                    let message = "the block's `{` is never closed";
                    return Err(Box::new(Diagnostic::error(Code::Equation, self.span(&open.range), message)));
                }
                (_, _, _) => {
                    // A value without a name is the result, so nothing may follow it.
                    let is_sound = self.faults.is_empty();
                    if let Some(before) = body.last().filter(|_| is_sound && is_last && is_beside) {
                        let message = "there is no operator between this value and the one before it";
                        let help = "write `+` or `*` between them, or brackets around what a call takes: `ffn(norm(x))`";
                        return Err(Box::new(
                            Diagnostic::error(Code::Equation, before.span, message).help(help),
                        ));
                    }
                    if let Some(before) = body.last().filter(|_| is_sound && is_last) {
                        let message = "this value is not used: only the last one may be unnamed";
                        let diagnostic = Diagnostic::error(Code::Equation, before.span, message);
                        let help = no_statement(&before.value)
                            .unwrap_or_else(|| format!("write `{first} = {}`", before.value));
                        return Err(Box::new(diagnostic.help(help)));
                    }
                    is_last = !(next.kind == TokenKind::Name && self.words.ahead(1).text == "=");
                    is_beside = !body.is_empty() && self.is_beside(&next);
                    body.extend(self.recovered(|parser| parser.statement(&first))?);
                }
            }
        };
        let written = self.words.text.text.get(text_start..end.range.start).unwrap_or("");
        let whole = match open {
            Some(_) => span.to(self.span(&end.range)),
            None => span,
        };
        let fault = if self.faults.is_empty() { self.wrong_end(&body, &first, whole)? } else { None };
        Ok(Equation { name, params, body, span: whole, text: written.trim().to_owned(), fault })
    }

    /// Whether nothing but spaces is between a word and the one before it.
    fn is_beside(&self, next: &Token<'a>) -> bool {
        let before = self.words.at.checked_sub(1).and_then(|at| self.words.tokens.get(at));
        let Some(before) = before.filter(|before| before.text != ";") else { return false };
        let between = self.words.text.text.get(before.range.end..next.range.start);
        between.is_some_and(|text| text.chars().all(|c| c == ' '))
    }

    /// The text of a part: statements with a name, and then the result.
    pub(super) fn part(&mut self, span: Span) -> Parsed<PartText> {
        let params = if self.has_header() {
            let params = self.params()?;
            self.mark(":", "`:` after the inputs")?;
            params
        } else {
            PART_PARAMS.iter().map(|name| ((*name).to_owned(), span)).collect()
        };
        let mut body: Vec<Statement> = Vec::new();
        let mut result: Option<Term> = None;
        loop {
            while self.words.take_mark(&[";"]).is_some() {}
            let next = self.words.peek();
            if next.kind == TokenKind::End {
                break;
            }
            if let Some(before) = result.as_ref().filter(|_| self.faults.is_empty()) {
                let message = "this value is not used: only the last one, the result, may be unnamed";
                let diagnostic = Diagnostic::error(Code::Equation, before.span, message);
                let help = no_statement(before).unwrap_or_else(|| format!("write `h = {before}`"));
                return Err(Box::new(diagnostic.help(help)));
            }
            if let Some(several) = self.several().filter(|_| self.faults.is_empty()) {
                let message = "a part has one result, so a line assigns one name";
                return Err(Box::new(Diagnostic::error(Code::Equation, several, message).help(
                    "write a part for each result; or return `concat(a, b)`, of which `slice(y, 0, size)` takes some features",
                )));
            }
            if next.kind == TokenKind::Name && self.words.ahead(1).text == "=" {
                body.extend(self.recovered(|parser| parser.statement(""))?);
            } else {
                result = self.recovered(Self::sum)?;
            }
        }
        if let Some(result) = result {
            return Ok(PartText { params, body, result });
        }
        if let Some(fault) = self.faults.pop() {
            return Err(Box::new(fault));
        }
        Err(Box::new(match body.last() {
            Some(last) => {
                let message = format!("the part ends with `{}` and has no result", last.target);
                let diagnostic = Diagnostic::error(Code::Equation, last.target_span, message);
                self.continued(last, diagnostic)
                    .help("the last value is the result, and has no name: leave out the name and the `=`")
            }
            None => Diagnostic::error(Code::Equation, span, "the part is empty")
                .help("write its result, such as `linear(silu(x), d_model)`"),
        }))
    }

    /// Several names with commas between them, in brackets or not, where a line begins.
    fn several(&self) -> Option<Span> {
        let start = usize::from(self.words.peek().text == "(");
        let mut n = start;
        while self.words.ahead(n).kind == TokenKind::Name && self.words.ahead(n.saturating_add(1)).text == ","
        {
            n = n.saturating_add(2);
        }
        let last = self.words.ahead(n);
        let is_list = n > start && last.kind == TokenKind::Name;
        is_list.then(|| self.span(&self.words.peek().range).to(self.span(&last.range)))
    }

    /// That the statements at this place do not end with a new value for the first parameter, if so.
    ///
    /// # Errors
    /// The last statement has taken in a line that was meant as another one, so that what is in it may not be meant.
    fn wrong_end(&self, body: &[Statement], first: &str, span: Span) -> Parsed<Option<Box<Diagnostic>>> {
        let Some(last) = body.last() else {
            let help = format!("write what happens to `{first}`, as in `{first} + ffn(norm({first}))`");
            let empty = Diagnostic::error(Code::Equation, span, "the equation is empty").help(help);
            return Ok(Some(Box::new(empty)));
        };
        if last.target == first {
            return Ok(None);
        }
        let message =
            format!("the equation ends with `{}` and gives no value to `{first}` after it", last.target);
        let diagnostic = self.continued(last, Diagnostic::error(Code::Equation, last.target_span, message));
        let is_continued = !diagnostic.help.is_empty();
        let help = format!("call the last value `{first}`, or write it without a name");
        let diagnostic = Box::new(diagnostic.help(help));
        if is_continued { Err(diagnostic) } else { Ok(Some(diagnostic)) }
    }

    fn statement(&mut self, first: &str) -> Parsed<Statement> {
        let name = self.words.peek();
        if name.kind == TokenKind::Name && self.words.ahead(1).text == "=" {
            self.words.at = self.words.at.saturating_add(1);
            let equals = self.words.take();
            let value = self.right_of(&equals, Self::sum)?;
            let target_span = self.span(&name.range);
            // Values are captured by paths, which have dots between their names. A number has been reported already.
            let is_known = self.faults.iter().any(|fault| fault.span() == target_span);
            if name.text.contains('.') && !is_known {
                let message = format!("`{}` cannot be the name of a value", name.text);
                let help = crate::syntax::text::NAMES;
                self.note(Diagnostic::error(Code::BadKey, target_span, message).help(help))?;
            }
            let span = target_span.to(value.span);
            return Ok(Statement { target: name.text.to_owned(), target_span, value, span });
        }
        let value = self.sum()?;
        Ok(Statement { target: first.to_owned(), target_span: value.span, span: value.span, value })
    }

    pub(super) fn sum(&mut self) -> Parsed<Term> {
        let first = self.words.peek();
        let minus = self.words.take_mark(&["-"]).is_some();
        let term = self.product()?;
        let begin = if minus { self.span(&first.range) } else { term.span };
        let mut span = begin.to(term.span);
        let mut terms = vec![(if minus { Sign::Minus } else { Sign::Plus }, term)];
        while let Some(mark) = self.words.take_mark(&["+", "-"]) {
            let term = self.right_of(&mark, Self::product)?;
            span = span.to(term.span);
            terms.push((if mark.text == "+" { Sign::Plus } else { Sign::Minus }, term));
        }
        match terms.pop() {
            // A single value without a minus is no sum.
            Some((Sign::Plus, only)) if terms.is_empty() => Ok(only),
            Some(last) => {
                terms.push(last);
                Ok(Term { kind: TermKind::Sum(terms), span })
            }
            None => Err(self.unexpected(&first, "a value")),
        }
    }

    fn product(&mut self) -> Parsed<Term> {
        let mut left = self.factor()?;
        while let Some(mark) = self.operator() {
            if self.pass_over_comment(&mark)? {
                continue;
            }
            let next = self.words.peek();
            if mark.text == "*" && next.text == "*" {
                let span = self.span(&mark.range).to(self.span(&next.range));
                let diagnostic = Diagnostic::error(Code::Equation, span, "`**` has no meaning here");
                self.note(diagnostic.help(POWERS))?;
                self.words.at = self.words.at.saturating_add(1);
            }
            let right = self.right_of(&mark, Self::factor)?;
            let span = left.span.to(right.span);
            let kind = match (mark.text, left.kind) {
                ("*", TermKind::Product(mut factors)) => {
                    factors.push(right);
                    TermKind::Product(factors)
                }
                ("*", kind) => TermKind::Product(vec![Term { kind, span: left.span }, right]),
                (_, kind) => TermKind::Quotient(Box::new(Term { kind, span: left.span }), Box::new(right)),
            };
            left = Term { kind, span };
        }
        Ok(left)
    }

    /// A value, or a power of numbers: `2^0.5`, `n^2`, `(d_model / heads)^-0.5`.
    pub(super) fn factor(&mut self) -> Parsed<Term> {
        // The sign is that of the power: `-n^2` is `-(n^2)`.
        let is_signed = self.words.peek().text == "-";
        let base = self.atom()?;
        let Some(mark) = (!is_signed).then(|| self.words.take_mark(&["^"])).flatten() else {
            return Ok(base);
        };
        self.words.deeper(&mark)?;
        // Powers bind to the right: `2^3^2` is `2^(3^2)`.
        let exponent = self.right_of(&mark, Self::factor)?;
        self.words.shallower();
        let span = base.span.to(exponent.span);
        match (base.as_expression(), exponent.as_expression()) {
            (Some(under), Some(over)) => {
                let kind = ExprKind::Binary(Operator::Power, Box::new(under), Box::new(over));
                Ok(Term { kind: TermKind::Number(Expr { kind, span }), span })
            }
            (under, _) => {
                let other = if under.is_none() { base } else { exponent };
                let message = format!("a power is one of numbers, and `{other}` is none");
                self.note(Diagnostic::error(Code::Equation, other.span, message).help(POWERS))?;
                Ok(Term { kind: other.kind, span })
            }
        }
    }

    fn atom(&mut self) -> Parsed<Term> {
        let token = self.words.peek();
        let next = self.words.ahead(1);
        // A call has no space before its bracket: statements need no separator, so after `h = x` a next line
        // `(h + x)` must not make it `h = x(h + x)`.
        let adjacent = next.range.start == token.range.end;
        match (token.kind, token.text) {
            (TokenKind::Number, _) => self.number(),
            (TokenKind::Name, name)
                if adjacent && next.text == "(" && Function::of_numbers(name).is_some() =>
            {
                if self.of_tensors { self.function(name) } else { self.number() }
            }
            (TokenKind::Name, _) if adjacent && (next.text == "(" || next.text == "[") => self.call(),
            (TokenKind::Name, name) => {
                self.words.at = self.words.at.saturating_add(1);
                Ok(Term { kind: TermKind::Name(name.to_owned()), span: self.span(&token.range) })
            }
            (TokenKind::Mark, "(") => {
                self.words.at = self.words.at.saturating_add(1);
                self.words.deeper(&token)?;
                let inner = self.sum()?;
                self.words.shallower();
                let close = self.close(")", &token)?;
                Ok(Term { kind: inner.kind, span: self.span(&token.range).to(self.span(&close.range)) })
            }
            (TokenKind::Mark, "-") => {
                self.words.at = self.words.at.saturating_add(1);
                self.words.deeper(&token)?;
                let inner = self.factor()?;
                self.words.shallower();
                let span = self.span(&token.range).to(inner.span);
                Ok(Term { kind: TermKind::Sum(vec![(Sign::Minus, inner)]), span })
            }
            (TokenKind::Mark | TokenKind::Text | TokenKind::End, _) => self.no_value(&token),
        }
    }

    /// A literal, or in a block a function of numbers: `0.5`, `sqrt(2)`.
    fn number(&mut self) -> Parsed<Term> {
        let start = self.words.at;
        let mut end = start.saturating_add(1);
        // The parser for expressions would also take the product and the sum that follow, so it is given
        // only these words.
        if self.words.peek().kind == TokenKind::Name {
            end = self.after_bracket(end);
        }
        let words = self.words.tokens.get(start..end.min(self.words.tokens.len())).unwrap_or(&[]);
        let (expr, used) = match expr::parse_tokens(self.words.text, words) {
            Ok(found) => found,
            Err(fault) => {
                self.note(*fault)?;
                let at = self.words.at.saturating_add(words.len()).min(self.end());
                let begin = self.words.peek();
                self.words.at = at;
                return Ok(self.missing(&begin));
            }
        };
        self.words.at = self.words.at.saturating_add(used);
        let span = expr.span;
        let literal = !matches!(expr.kind, ExprKind::Name(_));
        debug_assert!(literal, "a factor that begins with a number is not a name");
        Ok(Term { kind: TermKind::Number(expr), span })
    }

    /// The index of the word after the bracket that closes the one at `open`.
    fn after_bracket(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.words.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" => depth = depth.saturating_add(1),
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return i.saturating_add(1);
            }
        }
        self.words.tokens.len()
    }

    fn call(&mut self) -> Parsed<Term> {
        let name = self.words.take();
        let mut label = None;
        if let Some(open) = self.words.take_mark(&["["]) {
            let word = self.name("a name for this instance")?;
            label = Some(word.text.to_owned());
            self.close("]", &open)?;
        }
        let open = self.mark("(", "what the part is given, in parentheses")?;
        self.words.deeper(&open)?;
        let (mut args, mut named) = (Vec::new(), Vec::new());
        // Whether a part takes no argument is decided where parts are known.
        if self.words.peek().text != ")" {
            self.argument(&mut args, &mut named)?;
            while self.words.take_mark(&[","]).is_some() {
                self.argument(&mut args, &mut named)?;
            }
        }
        self.words.shallower();
        let close = self.close(")", &open)?;
        let span = self.span(&(name.range.start..close.range.end));
        Ok(Term { kind: TermKind::Call { part: name.text.to_owned(), label, args, named }, span })
    }

    /// A function of numbers, whose arguments may also be tensors.
    fn function(&mut self, name: &str) -> Parsed<Term> {
        let term = self.call()?;
        let (TermKind::Call { args, named, .. }, Some(function)) = (&term.kind, Function::of_numbers(name))
        else {
            return Ok(term);
        };
        let (least, most) = function.arity();
        if named.is_empty() && (least..=most).contains(&args.len()) {
            return Ok(term);
        }
        let wanted = match (least, most) {
            (1, 1) => "one argument".to_owned(),
            (a, b) if a == b => format!("{a} arguments"),
            (a, b) => format!("{a} to {b} arguments"),
        };
        let message = match named.first() {
            Some(named) => format!("`{name}` has no `{}`", named.name),
            None => format!("`{name}` takes {wanted}, not {}", args.len()),
        };
        self.note(Diagnostic::error(Code::WrongArguments, term.span, message))?;
        Ok(term)
    }

    /// One argument of a call, which may have a name.
    fn argument(&mut self, args: &mut Vec<Term>, named: &mut Vec<Named>) -> Parsed<()> {
        let name = self.words.peek();
        if self.of_tensors && name.kind == TokenKind::Text && args.is_empty() && named.is_empty() {
            self.words.at = self.words.at.saturating_add(1);
            let text = name.text.trim_matches('"').to_owned();
            args.push(Term { kind: TermKind::Text(text), span: self.span(&name.range) });
            return Ok(());
        }
        if let Some((written, span, words)) = self.hyphenated() {
            let (message, meant) =
                (format!("no field is named `{written}`: `-` subtracts"), written.replace('-', "_"));
            self.note(Diagnostic::error(Code::Equation, span, message).meant(written, &meant))?;
            self.words.at = self.words.at.saturating_add(words).saturating_add(1);
            let value = self.sum()?;
            named.push(Named { name: meant, span, value });
            return Ok(());
        }
        if name.kind != TokenKind::Name || self.words.ahead(1).text != ":" {
            let value = self.sum()?;
            if let Some(before) = named.last() {
                let message = "arguments without a name come before those with one";
                let diagnostic = Diagnostic::error(Code::Equation, value.span, message);
                self.note(diagnostic.label(before.span, "this one has a name"))?;
            }
            args.push(value);
            return Ok(());
        }
        let span = self.span(&name.range);
        if let Some(first) = named.iter().find(|n| n.name == name.text) {
            let message = format!("`{}` is given twice", name.text);
            let diagnostic = Diagnostic::error(Code::Equation, span, message);
            self.note(diagnostic.label(first.span, "first given here"))?;
        }
        self.words.at = self.words.at.saturating_add(2);
        let value = self.sum()?;
        named.push(Named { name: name.text.to_owned(), span, value });
        Ok(())
    }

    fn name(&mut self, what: &str) -> Parsed<Token<'a>> {
        let token = self.words.take();
        if token.kind == TokenKind::Name { Ok(token) } else { Err(self.unexpected(&token, what)) }
    }

    fn mark(&mut self, mark: &str, what: &str) -> Parsed<Token<'a>> {
        let token = self.words.take();
        if token.text == mark { Ok(token) } else { Err(self.unexpected(&token, what)) }
    }

    fn close(&mut self, mark: &str, open: &Token<'a>) -> Parsed<Token<'a>> {
        let token = self.words.peek();
        match self.words.take_mark(&[mark]) {
            Some(close) => Ok(close),
            None => {
                let between = self.words.text.text.get(open.range.end..token.range.start).unwrap_or("");
                let help = format!("close it with `{mark}`");
                // The next line is a statement of its own, and nothing is wrong with it.
                if token.kind == TokenKind::End || between.contains('\n') {
                    let message = format!("`{}` is never closed", open.text);
                    let span = self.span(&open.range);
                    return Err(Box::new(Diagnostic::error(Code::Equation, span, message).help(help)));
                }
                let help = match token.text {
                    "=" if mark == ")" => "a field is given with `:`, as in `attend(q, k, v, scale: 1)`",
                    "^" => POWERS,
                    _ => &help,
                };
                let diagnostic = self.found(&token, &format!("`{mark}`"));
                let diagnostic = diagnostic.label(self.span(&open.range), "opened here").help(help);
                self.closed_later(mark, open, diagnostic)
            }
        }
    }

    pub(super) fn unexpected(&self, token: &Token<'a>, wanted: &str) -> Box<Diagnostic> {
        let diagnostic = self.found(token, wanted);
        // What is easily written twice, or once too often.
        Box::new(match token.text {
            ")" | "]" | "}" => diagnostic
                .help("remove it, or add the opening bracket or the value that is missing before it"),
            "=" => diagnostic.help("a value is given with one `=`, as in `x = x + ffn(x)`"),
            "^" => diagnostic.help(POWERS),
            _ => diagnostic,
        })
    }

    /// The error for a token in the place of another one, without a help.
    fn found(&self, token: &Token<'a>, wanted: &str) -> Diagnostic {
        let found = match token.kind {
            TokenKind::End => "the end of the equation".to_owned(),
            TokenKind::Number | TokenKind::Name | TokenKind::Text | TokenKind::Mark => {
                format!("`{}`", token.text)
            }
        };
        let message = format!("found {found}, expected {wanted}");
        Diagnostic::error(Code::Equation, self.span(&token.range), message)
    }
}

/// What an equation has in the place of a keyword of programming languages, which was read as a value.
fn no_statement(value: &Term) -> Option<String> {
    let TermKind::Name(word) = &value.kind else { return None };
    Some(match word.as_str() {
        "return" => "an equation has no `return`: the last line is the result".to_owned(),
        "for" | "while" | "if" | "def" => {
            format!("an equation has no `{word}`: write every step on its own line, or call another part")
        }
        _ => return None,
    })
}

/// How powers are written.
const POWERS: &str = "a power of a number is `2^3` or `n^2`, and the square of a tensor `square(x)`";
