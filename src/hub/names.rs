//! How the tensors of a file are named and laid out, against the paths of a graph's parameters.
//!
//! ```text
//! weights:
//!   wte: embed.tokens                    # wte.weight is embed.tokens.weight, and likewise .bias
//!   h.{i}:
//!     into: decoder.blocks.{i}           # what follows is below both
//!     ln_1: norm1
//!     attn.c_attn: {fuse: [attention.query, attention.key, attention.value], transpose: true}
//! ties: {lm_head: embed.tokens}          # a second copy, which must say the same
//! ignore: [h.{i}.attn.bias]              # buffers
//! ```
//! Rows are read from families and from a spec's own `weights`. They work both ways.

use super::family::formula_of;
use super::formula::Formula;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::record::mended;
use crate::field::value::{DefaultDoc, Field, Shape, wrong_kind};
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// The names of a file's tensors.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Which tensor holds which parameters.
    pub rows: Vec<Row>,
    /// Tensors that repeat a parameter.
    pub ties: Vec<Row>,
    /// Tensors without a meaning for the model.
    pub ignore: Vec<Pattern>,
}

/// One tensor of the file and the parameters in it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The tensor's name, with or without its last word (`weight`, `bias`).
    pub tensor: Pattern,
    /// The parameters, one above the other along the first axis where there are several.
    pub parameters: Vec<Pattern>,
    /// In how many groups they alternate: 1 is one after the other, the number of heads head by head.
    pub groups: Option<Formula>,
    /// Whether the file has its axes the other way round.
    pub transpose: bool,
    /// The variable of the path that is the tensor's first axis.
    pub stack: Option<String>,
    /// Axes of length 1 before the parameter's own.
    pub lead: usize,
    /// What the parameter is filled with where the file does not have the tensor.
    pub absent: Option<f32>,
    /// Only where this holds.
    pub when: Option<Formula>,
    /// Where it stands.
    pub span: Span,
}

/// A name with variables, `h.{i}.attn`, each of which stands for a whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// What the variables of a pattern stand for.
pub type Bindings = Vec<(String, usize)>;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A brace is not closed, or holds no name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, left) = after.split_once('}').ok_or(format!("a brace of `{text}` is not closed"))?;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase()) {
                return Err(format!("`{{{name}}}` is no variable; write `{{i}}`"));
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Variable(name.to_owned()));
            rest = left;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }

    /// The name for given values of its variables.
    pub fn fill(&self, bindings: &Bindings) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(name) => bindings
                .iter()
                .find(|(n, _)| n == name)
                .map_or_else(|| format!("{{{name}}}"), |(_, value)| value.to_string()),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// What the variables are where the pattern begins a name, and what of the name is left.
    pub fn begins<'n>(&self, name: &'n str) -> Option<(Bindings, &'n str)> {
        let mut bindings = Bindings::new();
        let mut rest = name;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Variable(variable) => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    let (digits, left) = rest.split_at_checked(end)?;
                    let value: usize = digits.parse().ok().filter(|n: &usize| n.to_string() == digits)?;
                    match bindings.iter().find(|(n, _)| n == variable) {
                        Some((_, known)) if *known != value => return None,
                        Some(_) => {}
                        None => bindings.push((variable.clone(), value)),
                    }
                    rest = left;
                }
            }
        }
        Some((bindings, rest))
    }

    /// What the variables are where the pattern is a name without its last word, and that word with its dot.
    pub fn matches<'n>(&self, name: &'n str) -> Option<(Bindings, &'n str)> {
        let (bindings, rest) = self.begins(name)?;
        matches!(rest, "" | ".weight" | ".bias").then_some((bindings, rest))
    }

    /// The pattern with a text before it.
    pub fn behind(&self, prefix: &str) -> Self {
        let mut pieces = vec![Piece::Text(prefix.to_owned())];
        pieces.extend(self.pieces.iter().cloned());
        Self { pieces }
    }
}

impl Names {
    /// The names with a prefix before each tensor's.
    pub fn behind(&self, prefix: &str) -> Self {
        let row = |row: &Row| Row { tensor: row.tensor.behind(prefix), ..row.clone() };
        Self {
            rows: self.rows.iter().map(row).collect(),
            ties: self.ties.iter().map(row).collect(),
            ignore: self.ignore.iter().map(|p| p.behind(prefix)).collect(),
        }
    }

    /// These and others after them.
    pub fn and(mut self, other: &Names) -> Self {
        self.rows.extend(other.rows.iter().cloned());
        self.ties.extend(other.ties.iter().cloned());
        self.ignore.extend(other.ignore.iter().cloned());
        self
    }
}

/// Reads `weights`, `ties` and `ignore` of a map.
pub fn read(node: &Node, cx: &mut Context<'_>) -> Names {
    let mut names = Names::default();
    if let Some(tree) = node.get("weights") {
        rows(tree, "", "", cx, &mut names.rows);
    }
    if let Some(tree) = node.get("ties") {
        rows(tree, "", "", cx, &mut names.ties);
    }
    match node.get("ignore").map(|n| (&n.kind, n)) {
        Some((Kind::List(items), _)) => {
            names.ignore.extend(items.iter().filter_map(|item| pattern(item, item.text()?, cx)));
        }
        Some((_, other)) => wrong_kind(other, "a list of names", cx),
        None => {}
    }
    names
}

fn joined(base: &str, name: &str) -> String {
    crate::ir::paths::join(base, name)
}

fn rows(node: &Node, tensors: &str, into: &str, cx: &mut Context<'_>, out: &mut Vec<Row>) {
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map from names of tensors to paths of parameters", cx);
        return;
    };
    for e in entries.iter().filter(|e| e.key != "into") {
        let tensor = joined(tensors, &e.key);
        if let Some(base) = e.value.get("into").and_then(Node::text) {
            rows(&e.value, &tensor, &joined(into, base), cx, out);
            continue;
        }
        let Some(tensor) = pattern(&e.value, &tensor, cx) else { continue };
        let one = |path: &str| joined(into, path);
        let mut row = Row {
            tensor,
            parameters: Vec::new(),
            groups: None,
            transpose: false,
            stack: None,
            lead: 0,
            absent: None,
            when: None,
            span: e.value.span,
        };
        match &e.value.kind {
            Kind::Scalar(s) => row.parameters.extend(pattern(&e.value, &one(&s.text), cx)),
            Kind::List(items) => {
                row.parameters
                    .extend(items.iter().filter_map(|i| pattern(i, &one(i.text().unwrap_or("")), cx)));
            }
            Kind::Map(_) => laid_out(&e.value, &one, &mut row, cx),
            Kind::Null | Kind::Delete => wrong_kind(&e.value, "the path of a parameter", cx),
        }
        if !row.parameters.is_empty() {
            out.push(row);
        }
    }
}

/// A row with its layout: `{fuse: [...], groups: 4, transpose: true}`.
fn laid_out(node: &Node, one: &dyn Fn(&str) -> String, row: &mut Row, cx: &mut Context<'_>) {
    let field = |name| Field { name, doc: "", shape: || Shape::Any, default: DefaultDoc::Absent };
    let fields = ["to", "fuse", "groups", "transpose", "stack", "lead", "absent", "when"].map(field);
    let node = &*mended(node, "tensor", &fields, &[], cx);
    for key in ["to", "fuse"] {
        let given = match node.get(key).map(|n| (&n.kind, n)) {
            Some((Kind::List(items), _)) => items.iter().collect(),
            Some((_, one)) => vec![one],
            None => Vec::new(),
        };
        row.parameters.extend(given.iter().filter_map(|n| pattern(n, &one(n.text().unwrap_or("")), cx)));
    }
    if row.parameters.is_empty() {
        let message = "the tensor needs `to` or `fuse`";
        cx.report(Diagnostic::error(Code::MissingKey, node.span, message).help("`to: path of a parameter`"));
    }
    let mut formula = |key: &str| {
        let node = node.get(key)?;
        match formula_of(node) {
            Some(Ok(formula)) => Some(formula),
            Some(Err(why)) => {
                cx.report(Diagnostic::error(Code::Expression, node.span, why));
                None
            }
            None => Some(Formula::Literal(super::json::of(node))),
        }
    };
    row.groups = formula("groups");
    row.when = formula("when");
    row.transpose = node.get("transpose").and_then(Node::text) == Some("true");
    row.stack = node.get("stack").and_then(Node::text).map(str::to_owned);
    row.lead =
        node.get("lead").and_then(Node::text).and_then(|t| t.parse().ok()).filter(|n| *n <= 4).unwrap_or(0);
    row.absent = node.get("absent").and_then(Node::text).and_then(|t| t.parse().ok());
}

fn pattern(node: &Node, text: &str, cx: &mut Context<'_>) -> Option<Pattern> {
    match Pattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            cx.report(Diagnostic::error(Code::Expression, node.span, why));
            None
        }
    }
}
