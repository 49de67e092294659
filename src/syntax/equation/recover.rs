//! How reading an equation goes on after a mistake, so that the next one is shown as well.
//!
//! Each rule is for a mistake after which it is clear how the author goes on: a value that is missing, a word
//! too many, a bracket that is closed later. After any other the rest of the statement is passed over, since
//! what is read there may only follow from the mistake.

use super::MAX_FAULTS;
use super::parse::{Parsed, Parser};
use super::term::{Statement, Term, TermKind};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::text::{COMMENTS, NO_COMMENT};
use crate::syntax::token::{Token, TokenKind};

impl<'a> Parser<'_, 'a> {
    /// The name of an argument that has dashes in it, `class-token: true`, with its place and the number of its tokens.
    pub(super) fn hyphenated(&self) -> Option<(&'a str, Span, usize)> {
        let is = |n: usize, mark: &str| self.words.ahead(n).text == mark;
        let is_name = |n: &usize| self.words.ahead(*n).kind == TokenKind::Name;
        let last = (0..).step_by(2).take_while(is_name).find(|n| !is(n.saturating_add(1), "-"))?;
        let end = last.saturating_add(1);
        let range = self.words.ahead(0).range.start..self.words.ahead(last).range.end;
        let written = self.words.text.text.get(range.clone())?;
        let is_one = last > 0 && is(end, ":") && !written.contains(char::is_whitespace);
        is_one.then(|| (written, self.span(&range), end))
    }

    /// Notes a mistake after which reading can go on; fails if there have been too many.
    pub(super) fn note(&mut self, fault: Diagnostic) -> Parsed<()> {
        if self.faults.len().saturating_add(1) >= MAX_FAULTS {
            return Err(Box::new(fault));
        }
        self.faults.push(fault);
        Ok(())
    }

    /// A statement, or nothing after a mistake, which is noted; then the rest of the statement is passed over.
    pub(super) fn recovered<T>(
        &mut self,
        statement: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        let (start, depth, known) = (self.words.at, self.words.depth(), self.faults.len());
        let found = statement(self).and_then(|found| {
            self.pass_over_strays(start, known)?;
            Ok(found)
        });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(fault) => {
                self.note(*fault)?;
                let next = self.next_statement(start.saturating_add(1));
                self.words.go_on(next, depth);
                Ok(None)
            }
        }
    }

    /// The operator of a product, or a character without meaning, which has been reported and stands where an
    /// operator may.
    pub(super) fn operator(&mut self) -> Option<Token<'a>> {
        while self.is_foreign(&self.words.peek()) {
            let mark = self.words.take();
            if begins_value(&self.words.peek()) {
                return Some(Token { text: "*", ..mark });
            }
        }
        self.words.take_mark(&["*", "/"])
    }

    /// What is to the right of an operator or a `=`. Where the equation, the statement or the line ends after it, and the
    /// next line begins a statement, the mark is reported, and what follows is read as if there were a value.
    pub(super) fn right_of(
        &mut self,
        mark: &Token<'a>,
        read: impl FnOnce(&mut Self) -> Parsed<Term>,
    ) -> Parsed<Term> {
        let next = self.words.peek();
        let between = self.words.text.text.get(mark.range.end..next.range.start).unwrap_or("");
        let begins_statement =
            next.kind == TokenKind::Name && self.words.ahead(1).text == "=" && between.contains('\n');
        if next.kind != TokenKind::End && !matches!(next.text, "}" | ";") && !begins_statement {
            return read(self);
        }
        let message = format!("`{}` has no value to its right", mark.text);
        let or = if mark.text == "=" { "" } else { ", or remove it" };
        let help = format!("write a value after the `{}`{or}", mark.text);
        self.note(Diagnostic::error(Code::Equation, self.span(&mark.range), message).help(help))?;
        Ok(self.missing(mark))
    }

    /// Reports that there is no value where one must be, and reads on as if there were one.
    pub(super) fn no_value(&mut self, token: &Token<'a>) -> Parsed<Term> {
        let is_foreign = self.is_foreign(token);
        if !is_foreign {
            let fault = *self.unexpected(token, "a value, such as `x` or `ffn(x)`");
            self.note(fault)?;
        }
        // What cannot follow a value either is passed over.
        if is_foreign || token.kind == TokenKind::Text || matches!(token.text, "=" | ":") {
            self.words.at = self.words.at.saturating_add(1);
            // Only before a value, which does not come here again.
            if begins_value(&self.words.peek()) {
                return self.factor();
            }
        }
        Ok(self.missing(token))
    }

    /// Reports `/* ... */`, which is no comment, and passes over it; whether it begins with this mark.
    pub(super) fn pass_over_comment(&mut self, mark: &Token<'a>) -> Parsed<bool> {
        let next = self.words.peek();
        if mark.text != "/" || next.text != "*" || next.range.start != mark.range.end {
            return Ok(false);
        }
        let span = self.span(&mark.range).to(self.span(&next.range));
        self.note(Diagnostic::error(Code::Equation, span, NO_COMMENT).help(COMMENTS))?;
        self.words.take();
        while self.words.peek().kind != TokenKind::End {
            if self.words.take().text == "*" && self.words.take_mark(&["/"]).is_some() {
                break;
            }
        }
        Ok(true)
    }

    /// Stands for a value that is missing.
    pub(super) fn missing(&self, token: &Token<'a>) -> Term {
        Term { kind: TermKind::Name(token.text.to_owned()), span: self.span(&token.range) }
    }

    /// Reports a word in front of the mark that closes a bracket, unless it follows from a mistake after the
    /// bracket, and goes on after the mark.
    pub(super) fn closed_later(
        &mut self,
        mark: &str,
        open: &Token<'a>,
        fault: Diagnostic,
    ) -> Parsed<Token<'a>> {
        let begin = self.span(&open.range).start;
        let earlier = self.faults.pop_if(|earlier| earlier.span().start >= begin);
        let fault = earlier.unwrap_or(fault);
        let end = self.next_statement(self.words.at);
        let mut depth = 0usize;
        for at in self.words.at..end {
            let Some(token) = self.words.tokens.get(at) else { break };
            match token.text {
                text if depth == 0 && text == mark => {
                    self.note(fault)?;
                    self.words.at = at.saturating_add(1);
                    return Ok(token.clone());
                }
                "(" | "[" => depth = depth.saturating_add(1),
                ")" | "]" if depth == 0 => break,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Err(Box::new(fault))
    }

    /// Says where the last statement goes on in a line that begins with a minus, which may have been meant as the result.
    pub(super) fn continued(&self, last: &Statement, diagnostic: Diagnostic) -> Diagnostic {
        let (text, mut depth, mut line_end) = (self.words.text, 0usize, 0usize);
        for token in self.words.tokens {
            let place = self.span(&token.range);
            let begins_line = text.text.get(line_end..token.range.start).is_some_and(|t| t.contains('\n'));
            line_end = token.range.end;
            match token.text {
                "(" | "[" => depth = depth.saturating_add(1),
                ")" | "]" => depth = depth.saturating_sub(1),
                "-" if depth == 0
                    && begins_line
                    && token.kind == TokenKind::Mark
                    && (last.span.start..last.span.end).contains(&place.start) =>
                {
                    let help = "a line that begins with `-` continues the one before it: put the result in brackets, `(-x + h)`";
                    return diagnostic.label(place, "subtracted from the line before").help(help);
                }
                _ => {}
            }
        }
        diagnostic
    }

    /// The number of tokens without the one that marks the end.
    pub(super) fn end(&self) -> usize {
        self.words.tokens.len().saturating_sub(1)
    }

    /// Reports what can neither belong to the statement before it nor begin one, unless it only follows from a
    /// mistake in that statement, which began at `start` after `known` mistakes; and passes over what else
    /// belongs to that line.
    fn pass_over_strays(&mut self, start: usize, known: usize) -> Parsed<()> {
        loop {
            let next = self.words.peek();
            let is_stray = matches!(next.text, ")" | "]" | "," | ":" | "=" | "*" | "/" | "+" | "^" | "[");
            if !is_stray && self.words.at > start {
                return Ok(());
            }
            if self.faults.len() == known {
                self.no_value(&next)?;
            }
            self.words.at = self.words.at.saturating_add(1);
            let begin = self.words.at;
            if begins_value(&self.words.peek()) && self.next_statement(begin) > begin {
                self.sum()?;
            }
        }
    }

    /// The place of the first statement at `from` or after it: after a `;`, or a name and a `=` that begin a
    /// line; or that of the brace or the end after which there is none.
    fn next_statement(&self, from: usize) -> usize {
        for at in from..self.end() {
            let Some(token) = self.words.tokens.get(at) else { break };
            let before = at.checked_sub(1).and_then(|before| self.words.tokens.get(before));
            let text = |before: &Token<'a>| self.words.text.text.get(before.range.end..token.range.start);
            let begins_line = before.is_none_or(|before| text(before).is_some_and(|t| t.contains('\n')));
            let is_named = token.kind == TokenKind::Name
                && self.words.tokens.get(at.saturating_add(1)).is_some_and(|next| next.text == "=");
            if token.text == "}" || before.is_some_and(|b| b.text == ";") || (begins_line && is_named) {
                return at;
            }
        }
        self.end()
    }

    /// Whether this is a character without meaning, which was reported when it was read.
    fn is_foreign(&self, token: &Token<'_>) -> bool {
        token.kind == TokenKind::Mark && !"+-*/^()[],;=:{}".contains(token.text)
    }
}

/// Whether a value can begin with this word.
fn begins_value(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Number | TokenKind::Name) || matches!(token.text, "(" | "-")
}
