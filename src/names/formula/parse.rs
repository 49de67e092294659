//! Text → [`Formula`].
//!
//! ```text
//! or      = and ("or" and)*
//! and     = not ("and" not)*
//! not     = "not" not | compare
//! compare = else (("==" | "!=" | "<" | ">" | "in") else)?
//! else    = sum ("??" sum)*
//! sum     = product (("+" | "-") product)*
//! product = sign (("*" | "/") sign)*
//! sign    = "-" sign | power
//! power   = atom ("^" sign)?
//! atom    = number | 'text' | true | false | null | key | (function | table) "(" or ("," or)* ")"
//!         | "[" or ("," or)* "]" | "(" or ")"
//! ```

use serde_json::Value as Json;

use super::{Formula, Function, Operator, number};
use crate::syntax::expr::MAX_WORDS;
use crate::syntax::text::MAX_DEPTH;

/// Reads a formula.
///
/// # Errors
/// A sentence on what is wrong with it.
pub fn parse(text: &str) -> Result<Formula, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let formula = parser.or()?;
    match parser.peek() {
        None => Ok(formula),
        Some(token) => Err(format!("`{token}` follows a complete formula")),
    }
}

fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let two = ["==", "!=", "??"].iter().any(|mark| rest.starts_with(mark));
        let len = match first {
            '\'' => {
                let inner = rest.get(1..).unwrap_or("");
                2 + inner.find('\'').ok_or("a text is not closed")?
            }
            '0'..='9' => number_length(rest),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if two => 2,
            '(' | ')' | '[' | ']' | ',' | '+' | '-' | '*' | '/' | '^' | '<' | '>' => 1,
            other => return Err(format!("`{other}` has no meaning in a formula")),
        };
        if found.len() >= MAX_WORDS {
            return Err(format!("it has more than {MAX_WORDS} words"));
        }
        let (token, left) = rest.split_at_checked(len).ok_or("a text is not closed")?;
        found.push(token);
        rest = left.trim_start();
    }
    Ok(found)
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |i: usize, b: u8| match b {
        b'0'..=b'9' | b'.' | b'e' | b'E' => true,
        b'-' | b'+' => matches!(i.checked_sub(1).and_then(|j| bytes.get(j)), Some(b'e' | b'E')),
        _ => false,
    };
    bytes.iter().enumerate().find(|(i, b)| !is_part(*i, **b)).map_or(bytes.len(), |(i, _)| i)
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, words: &[&str]) -> Option<&'a str> {
        let token = self.peek().filter(|token| words.contains(token))?;
        self.at += 1;
        Some(token)
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.take(&[word]) {
            Some(_) => Ok(()),
            None => Err(format!("`{word}` belongs where {} stands", self.found())),
        }
    }

    fn found(&self) -> String {
        self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{token}`"))
    }

    fn chain(
        &mut self,
        words: &[&str],
        operator: fn(&str) -> Operator,
        next: fn(&mut Self) -> Result<Formula, String>,
    ) -> Result<Formula, String> {
        let mut left = next(self)?;
        while let Some(word) = self.take(words) {
            let right = next(self)?;
            left = Formula::Binary(operator(word), Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Formula, String> {
        self.deeper()?;
        let formula = self.chain(&["or"], |_| Operator::Or, Self::and);
        self.depth -= 1;
        formula
    }

    /// One level deeper, refused beyond [`MAX_DEPTH`].
    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(format!("it nests more than {MAX_DEPTH} deep")) } else { Ok(()) }
    }

    fn and(&mut self) -> Result<Formula, String> {
        self.chain(&["and"], |_| Operator::And, Self::not)
    }

    fn not(&mut self) -> Result<Formula, String> {
        let mut negations = 0;
        while self.take(&["not"]).is_some() {
            self.deeper()?;
            negations += 1;
        }
        let mut formula = self.compare()?;
        self.depth -= negations;
        for _ in 0..negations {
            formula = Formula::Not(Box::new(formula));
        }
        Ok(formula)
    }

    fn compare(&mut self) -> Result<Formula, String> {
        let left = self.otherwise()?;
        let Some(word) = self.take(&["==", "!=", "<", ">", "in"]) else { return Ok(left) };
        let operator = match word {
            "==" => Operator::Equal,
            "!=" => Operator::Differ,
            "<" => Operator::Less,
            ">" => Operator::Greater,
            _ => Operator::In,
        };
        let right = self.otherwise()?;
        Ok(Formula::Binary(operator, Box::new(left), Box::new(right)))
    }

    fn otherwise(&mut self) -> Result<Formula, String> {
        self.chain(&["??"], |_| Operator::Else, Self::sum)
    }

    fn sum(&mut self) -> Result<Formula, String> {
        let operator = |word: &str| if word == "+" { Operator::Add } else { Operator::Subtract };
        self.chain(&["+", "-"], operator, Self::product)
    }

    fn product(&mut self) -> Result<Formula, String> {
        let operator = |word: &str| if word == "*" { Operator::Multiply } else { Operator::Divide };
        self.chain(&["*", "/"], operator, Self::sign)
    }

    fn sign(&mut self) -> Result<Formula, String> {
        let mut signs = 0;
        while self.take(&["-"]).is_some() {
            self.deeper()?;
            signs += 1;
        }
        let mut formula = self.power()?;
        self.depth -= signs;
        for _ in 0..signs {
            formula = Formula::Negate(Box::new(formula));
        }
        Ok(formula)
    }

    fn power(&mut self) -> Result<Formula, String> {
        let base = self.atom()?;
        if self.take(&["^"]).is_none() {
            return Ok(base);
        }
        let is_negative = self.take(&["-"]).is_some();
        let exponent = self.atom()?;
        let exponent = if is_negative { Formula::Negate(Box::new(exponent)) } else { exponent };
        Ok(Formula::Binary(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    fn list(&mut self, close: &str) -> Result<Vec<Formula>, String> {
        let mut all = Vec::new();
        if self.take(&[close]).is_some() {
            return Ok(all);
        }
        loop {
            all.push(self.or()?);
            if self.take(&[","]).is_none() {
                self.expect(close)?;
                return Ok(all);
            }
        }
    }

    fn atom(&mut self) -> Result<Formula, String> {
        let Some(token) = self.peek() else { return Err("it ends where a value belongs".into()) };
        self.at += 1;
        let literal = |value: Json| Ok(Formula::Literal(value));
        match token {
            "true" => literal(Json::Bool(true)),
            "false" => literal(Json::Bool(false)),
            "null" => literal(Json::Null),
            "(" => {
                let inner = self.or()?;
                self.expect(")")?;
                Ok(inner)
            }
            "[" => self.list("]").map(Formula::List),
            _ if token.starts_with('\'') => literal(Json::from(token.trim_matches('\''))),
            _ if token.starts_with(|c: char| c.is_ascii_digit()) => {
                let value: f64 = token.parse().map_err(|_| format!("`{token}` is no number"))?;
                literal(number(value))
            }
            _ if token.starts_with(|c: char| c.is_alphabetic() || c == '_') => self.named(token),
            _ => Err(format!("`{token}` stands where a value belongs")),
        }
    }

    fn named(&mut self, name: &str) -> Result<Formula, String> {
        if self.take(&["("]).is_none() {
            return Ok(Formula::Key(name.to_owned()));
        }
        let mut args = self.list(")")?;
        let Some(function) = Function::ALL.iter().copied().find(|f| f.name() == name) else {
            let names: Vec<&str> = Function::ALL.iter().map(|f| f.name()).collect();
            return match (args.pop(), args.is_empty()) {
                (Some(key), true) => Ok(Formula::Entry(name.to_owned(), Box::new(key))),
                _ => Err(format!("there is no function `{name}`; there are {}", names.join(", "))),
            };
        };
        let (least, most) = function.arity();
        if !(least..=most).contains(&args.len()) {
            return Err(format!("`{name}` takes {least} arguments and is given {}", args.len()));
        }
        Ok(Formula::Call(function, args))
    }
}
