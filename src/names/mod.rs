//! Relates the names and layouts of a file's tensors to the parameters of a graph.
//!
//! ```text
//! weights:
//!   wte: embed.tokens                    # wte.weight is embed.tokens.weight, and likewise .bias
//!   h.{i}:
//!     into: decoder.blocks.{i}           # the prefix of the paths that follow, as h.{i} is of the names
//!     ln_1: norm1
//!     attn.c_attn: {fuse: [attention.query, attention.key, attention.value], transpose: true}
//!     attn.bias: none                    # a buffer, which is ignored
//!     heads.{h}.query: {to: attention.query, join: h}       # one tensor for each head, concatenated
//!   lm_head: {copy: embed.tokens}        # a second copy, which must have the same numbers
//! ```
//! Rows are read from families, which may give copies under `ties` and ignored tensors under `ignore`, and
//! from a spec's own `weights` ([`crate::spec::weights`]). They serve for import and for export.

pub mod check;
pub mod constant;
pub mod formula;
pub mod json;
pub mod layout;
mod pattern;

use std::borrow::Cow;

use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::field::mend::mended;
use crate::field::value::{DefaultDoc, Field, Shape, wrong_kind};
use crate::field::{Context, Count, Real, Value as _};
use crate::source::{SourceMap, Span};
use crate::syntax::expr;
use crate::syntax::tree::{Entry, Kind, Node, Style};
use constant::Constant;
use formula::Formula;
pub use pattern::{Bindings, Pattern};

/// The names of a file's tensors.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The tensors that contain parameters.
    pub rows: Vec<Row>,
    /// The tensors that are copies of a parameter.
    pub ties: Vec<Row>,
    /// The tensors that are not parameters of the model, such as buffers.
    pub ignore: Vec<Pattern>,
    /// The buffers that always hold the same number.
    pub constants: Vec<Constant>,
    /// If no row leads to a tensor of the file, a parameter is looked for under its own path after this
    /// prefix.
    pub paths: Option<String>,
    /// Ends of names, each with the one that older files have instead.
    pub older: Vec<(String, String)>,
    /// The modules that `into` names.
    pub modules: Vec<Module>,
}

/// The module under whose path the rows of a map are.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its whole path, with those of the maps around.
    pub path: Pattern,
    /// The place of `into`.
    pub place: Span,
    /// The place of the map.
    pub rows: Span,
}

/// A tensor of the file, or several that differ in their numbers, and the parameters in it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The tensor's name, with or without its last word (`weight`, `bias`).
    pub tensor: Pattern,
    /// The paths of the parameters; several are concatenated along the first axis.
    pub parameters: Vec<Pattern>,
    /// The number of groups of rows in which they alternate: with 1 they follow one another as a whole, with
    /// the number of heads they alternate head by head.
    pub groups: Option<Formula>,
    /// Whether the two axes are swapped in the file.
    pub transpose: bool,
    /// The variable of the path whose values are indices along an additional first axis of the tensor.
    pub stack: Option<String>,
    /// The variable of the tensor's name that numbers the tensors from which a parameter is concatenated.
    pub join: Option<String>,
    /// The number of axes of length 1 that the tensor has before the parameter's own.
    pub lead: usize,
    /// Whether the tensor lacks the axes of length 1 after the parameter's first. If tensors are joined, each
    /// of them is then one row.
    pub flat: bool,
    /// The number that fills the parameter if the file does not have the tensor.
    pub absent: Option<f32>,
    /// The condition under which the row is used.
    pub when: Option<Formula>,
    /// The place of the row's value, to which errors about the whole row point.
    pub span: Span,
    /// The places of `parameters`, one for each.
    pub places: Vec<Span>,
    /// The places of `groups` and `when`.
    pub formulas: [Span; 2],
}

impl Names {
    /// The same rows with a prefix before the name of every tensor.
    pub fn with_prefix(&self, prefix: &str) -> Self {
        let row = |row: &Row| Row { tensor: row.tensor.with_prefix(prefix), ..row.clone() };
        let constant = |own: &Constant| Constant { tensor: own.tensor.with_prefix(prefix), ..own.clone() };
        Self {
            rows: self.rows.iter().map(row).collect(),
            ties: self.ties.iter().map(row).collect(),
            ignore: self.ignore.iter().map(|p| p.with_prefix(prefix)).collect(),
            constants: self.constants.iter().map(constant).collect(),
            paths: self.paths.as_ref().map(|own| format!("{prefix}{own}")),
            older: self.older.clone(),
            modules: self.modules.clone(),
        }
    }

    /// The rows whose tensors' names begin with a prefix, without it.
    pub fn without(&self, prefix: &str) -> Self {
        let row = |row: &Row| Some(Row { tensor: row.tensor.without(prefix)?, ..row.clone() });
        Self { rows: self.rows.iter().filter_map(row).collect(), ..Self::default() }
    }

    /// These rows followed by those of `other`. `paths` and `older` are those of `self`.
    pub fn and(mut self, other: &Names) -> Self {
        self.rows.extend(other.rows.iter().cloned());
        self.ties.extend(other.ties.iter().cloned());
        self.ignore.extend(other.ignore.iter().cloned());
        self.constants.extend(other.constants.iter().cloned());
        self
    }
}

/// Reads `weights`, `ties`, `constants` and `ignore` of a family or a head.
pub fn read(node: &Node, cx: &mut Context<'_>) -> Names {
    let mut names = node.get("weights").map(|tree| read_rows(tree, cx)).unwrap_or_default();
    if let Some(tree) = node.get("ties") {
        names.ties.extend(read_rows(tree, cx).rows);
    }
    if let Some(tree) = node.get("constants") {
        read_constants(tree, cx, &mut names);
    }
    match node.get("ignore").map(|n| (&n.kind, n)) {
        Some((Kind::List(items), _)) => {
            names.ignore.extend(items.iter().filter_map(|item| pattern(item.span, item.text()?, cx)));
        }
        Some((_, other)) => wrong_kind(other, "a list of names", cx),
        None => {}
    }
    names
}

/// Reads `constants` of a family or a head.
fn read_constants(node: &Node, cx: &mut Context<'_>, names: &mut Names) {
    let Some(entries) = node.entries() else {
        return wrong_kind(node, "a map from names of buffers to their numbers", cx);
    };
    for e in entries {
        let node = &*mended(&e.value, "constant", &["value", "with"].map(field), &[], cx);
        let value = node.get("value").and_then(|n| Real::decode(n, cx));
        let with = node.get("with").and_then(|n| pattern(n.span, n.text()?, cx));
        let (Some(value), Some(with)) = (value, with) else {
            let message = format!("the buffer `{}` needs `value` and `with`", e.key);
            let help = "`value: 0.5`, and `with: path of the parameter` next to which files have it";
            cx.report(Diagnostic::error(Code::MissingKey, e.key_span, message).help(help));
            continue;
        };
        let tensor = pattern(e.key_span, &e.key, cx);
        names.constants.extend(tensor.map(|tensor| Constant { tensor, with, value: *value as f32 }));
    }
}

/// Reads the rows of a map from names of tensors to paths of parameters; errors are reported.
pub fn read_rows(node: &Node, cx: &mut Context<'_>) -> Names {
    let mut names = Names::default();
    match node.get("into") {
        // It applies to all paths of the map; the names of tensors have no prefix.
        Some(base) => module(base, node, "", "", cx, &mut names),
        None => rows(node, "", "", cx, &mut names),
    }
    names
}

/// Reads the rows of a map that has `into`, which is `base`: their paths begin with that of a module.
fn module(base: &Node, map: &Node, tensors: &str, into: &str, cx: &mut Context<'_>, out: &mut Names) {
    let Some(text) = base.text() else {
        wrong_kind(base, "the path of a module", cx);
        return;
    };
    let whole = joined(into, text);
    // A wrong path is reported with the rows.
    let path = Pattern::parse(&whole).ok();
    out.modules.extend(path.map(|path| Module { path, place: base.span, rows: map.span }));
    rows(map, tensors, &whole, cx, out);
}

fn joined(base: &str, name: &str) -> String {
    crate::ir::paths::join(base, name)
}

fn rows(node: &Node, tensors: &str, into: &str, cx: &mut Context<'_>, out: &mut Names) {
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map from names of tensors to paths of parameters", cx);
        return;
    };
    for e in entries.iter().filter(|e| e.key != "into") {
        let name = joined(tensors, &e.key);
        // The names that begin with this one are below it.
        if let Some(base) = e.value.get("into") {
            module(base, &e.value, &name, into, cx, out);
            continue;
        }
        let Some(tensor) = pattern(e.key_span, &name, cx) else { continue };
        let one = |path: &str| joined(into, path);
        let mut row = Row::new(tensor, e.value.span);
        match &e.value.kind {
            // In quotes it is the path of a parameter that is called so.
            Kind::Scalar(s) if s.text == "none" && s.style == Style::Plain => out.ignore.push(row.tensor),
            Kind::Scalar(_) => {
                row.add(&e.value, &one, cx);
                out.rows.extend(row.sound());
            }
            Kind::List(items) => {
                items.iter().for_each(|item| row.add(item, &one, cx));
                out.rows.extend(row.sound());
            }
            Kind::Map(_) if is_copy(&e.value) => {
                let node = &*mended(&e.value, "tensor", &[field("copy")], &[], cx);
                node.get("copy").into_iter().for_each(|n| row.add(n, &one, cx));
                out.ties.extend(row.sound());
            }
            Kind::Map(_) => {
                laid_out(e, &one, &mut row, cx);
                out.rows.extend(row.sound());
            }
            Kind::Null | Kind::Delete => wrong_kind(&e.value, "the path of a parameter, or `none`", cx),
        }
    }
}

/// Whether a row is a second copy: it has the key `copy`, or nothing but a key that was meant for it.
fn is_copy(row: &Node) -> bool {
    let keys: Vec<&str> = layout::KEYS.iter().map(|key| key.name).collect();
    let is_slip = |only: &Entry| {
        let is_path = only.value.text().is_some() && !keys.contains(&only.key.as_str());
        is_path && suggest(&only.key, &keys).as_deref() == Some("copy")
    };
    row.get("copy").is_some() || matches!(row.entries(), Some([only]) if is_slip(only))
}

impl Row {
    fn new(tensor: Pattern, span: Span) -> Self {
        Self {
            tensor,
            parameters: Vec::new(),
            groups: None,
            transpose: false,
            stack: None,
            join: None,
            lead: 0,
            flat: false,
            absent: None,
            when: None,
            span,
            places: Vec::new(),
            formulas: [span; 2],
        }
    }

    /// Reads the path of a parameter and adds it to the row. `whole` puts the enclosing `into` before it.
    fn add(&mut self, node: &Node, whole: &dyn Fn(&str) -> String, cx: &mut Context<'_>) {
        let Some(text) = node.text() else { return wrong_kind(node, "the path of a parameter", cx) };
        if let Some(path) = pattern(node.span, &whole(text), cx) {
            self.parameters.push(path);
            self.places.push(node.span);
        }
    }

    /// The row, unless every path in it had an error.
    fn sound(self) -> Option<Self> {
        (!self.parameters.is_empty()).then_some(self)
    }
}

fn field(name: &'static str) -> Field {
    Field::new(name, "", || Shape::Any, DefaultDoc::Absent)
}

/// A row with its layout: `{fuse: [...], groups: 4, transpose: true}`.
fn laid_out(entry: &Entry, one: &dyn Fn(&str) -> String, row: &mut Row, cx: &mut Context<'_>) {
    let fields: Vec<Field> = layout::keys(layout::Form::Layout).map(|key| field(key.name)).collect();
    let node = &entry.value;
    // No name that goes on has a list, so a key that has one and is nearly a key of a tensor is that key.
    let keys: Vec<&str> = fields.iter().map(|f| f.name).collect();
    let is_slip = |e: &Entry| {
        matches!(e.value.kind, Kind::List(_))
            && !keys.contains(&e.key.as_str())
            && suggest(&e.key, &keys).is_some()
    };
    let has_slip = node.entries().unwrap_or(&[]).iter().any(is_slip);
    let node = &*if has_slip { mended(node, "tensor", &fields, &[], cx) } else { Cow::Borrowed(node) };
    if node.get("to").is_none() && node.get("fuse").is_none() {
        let of_a_tensor = |e: &Entry| fields.iter().any(|f| f.name == e.key);
        // A map without any key of a tensor contains further names, so only its `into` is missing.
        let goes_on = !node.entries().unwrap_or(&[]).iter().any(of_a_tensor);
        let diagnostic = if goes_on {
            let message = format!("`{}` needs `into`, because it has longer names below it", entry.key);
            // Variables of the enclosing names are used in their own `into`.
            let own = Pattern::parse(&entry.key).ok();
            let variables = own.as_ref().map(Pattern::variables).unwrap_or_default();
            let numbers: String = variables.iter().map(|v| format!(".{{{v}}}")).collect();
            let blocks = if numbers.is_empty() { "" } else { "blocks" };
            // Below an `into` that names the stack, paths are relative to it.
            let whole = one("");
            let stacks: Vec<&str> = match cx.stacks() {
                _ if ["encoder", "decoder"].iter().any(|stack| whole.starts_with(stack)) => vec![""],
                [] => vec!["decoder"],
                // The tensor's own name may say which stack it belongs to, often as `enc` or `dec`.
                stacks => {
                    match stacks.iter().find(|s| row.tensor.to_string().contains(s.get(..3).unwrap_or(s))) {
                        Some(stack) => vec![stack],
                        None => stacks.to_vec(),
                    }
                }
            };
            let paths = stacks.iter().map(|stack| joined(stack, blocks) + &numbers);
            let texts: Vec<String> =
                paths.filter(|p| !p.is_empty()).map(|p| format!("`into: {p}`")).collect();
            let help = match texts.as_slice() {
                [] => format!("add `into: ...`, the module below `{whole}` whose parameters they are"),
                texts => format!("add {}, the module whose parameters they are", texts.join(" or ")),
            };
            Diagnostic::error(Code::MissingKey, entry.key_span, message).help(help)
        } else {
            let message = format!("the tensor `{}` needs `to` or `fuse`", entry.key);
            Diagnostic::error(Code::MissingKey, entry.key_span, message)
                .help("`to: path of a parameter`, or `fuse: [paths of several]`")
        };
        cx.report(diagnostic);
        return;
    }
    let node = &*mended(node, "tensor", &fields, &[], cx);
    // Either may have one path or a list of them: what matters is how many there are.
    for key in ["to", "fuse"] {
        match node.get(key).map(|n| (&n.kind, n)) {
            Some((Kind::List(items), _)) => items.iter().for_each(|item| row.add(item, one, cx)),
            Some((_, alone)) => row.add(alone, one, cx),
            None => {}
        }
    }
    let mut formula = |key: &str| {
        let node = node.get(key)?;
        match formula_in(cx.sources(), node) {
            Some(Ok(formula)) => Some(formula),
            Some(Err(diagnostic)) => {
                cx.report(*diagnostic);
                None
            }
            // A number or a word without `=` is its own value.
            None => Some(Formula::Literal(json::of(node))),
        }
    };
    row.groups = formula("groups");
    row.when = formula("when");
    row.formulas = ["groups", "when"].map(|key| node.get(key).map_or(node.span, |n| n.span));
    let flag = node.get("transpose").and_then(|n| bool::decode(n, cx));
    row.transpose = flag.unwrap_or(false);
    row.flat = node.get("flat").and_then(|n| bool::decode(n, cx)).unwrap_or(false);
    row.stack = node.get("stack").and_then(|n| String::decode(n, cx));
    row.join = node.get("join").and_then(|n| String::decode(n, cx));
    if let Some(n) =
        node.get("join").filter(|_| row.parameters.len() > 1 || row.stack.is_some() || row.lead > 0)
    {
        let message = "`join` combines several tensors, but `fuse` and `stack` split one";
        cx.report(Diagnostic::error(Code::KeysExclude, n.span, message).help("remove one of them"));
    }
    row.lead = node.get("lead").and_then(|n| lead(n, cx)).unwrap_or(0);
    row.absent = node.get("absent").and_then(|n| Real::decode(n, cx)).map(|n| *n as f32);
}

/// The number of axes of length 1 before the others.
fn lead(node: &Node, cx: &mut Context<'_>) -> Option<usize> {
    // Real files have one or two such axes, and a number from a spec must not decide how much memory is
    // taken.
    const MOST: u64 = 4;
    let given = Count::decode(node, cx)?;
    if *given > MOST {
        let message = format!("a tensor with {} leading axes of length 1 has no use", *given);
        cx.report(Diagnostic::error(Code::OutOfRange, node.span, message).help(format!("at most {MOST}")));
        return None;
    }
    usize::try_from(*given).ok()
}

/// The formula of a scalar that begins with `=`; `None` if it does not. If `sources` lacks the node's source,
/// an error has the place of the whole node.
pub fn formula_in(sources: &SourceMap, node: &Node) -> Option<Result<Formula, Box<Diagnostic>>> {
    let Kind::Scalar(scalar) = &node.kind else { return None };
    if scalar.style == Style::Block || !scalar.text.starts_with('=') {
        return None;
    }
    let read = expr::parse_formula(sources, node);
    Some(read.map(|expr| Formula::from(&expr)).map_err(Box::new))
}

/// [`formula_in`] for a tree whose formulas have been checked.
pub fn formula_of(node: &Node) -> Option<Formula> {
    formula_in(&SourceMap::new(), node)?.ok()
}

fn pattern(span: Span, text: &str, cx: &mut Context<'_>) -> Option<Pattern> {
    match Pattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            cx.report(Diagnostic::error(Code::Expression, span, why));
            None
        }
    }
}
