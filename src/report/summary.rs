//! The page that `build` and `check` print: what a model is, what it consists of and what it costs.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::{Cost, Formulas, Operations, cost};
use super::layers::At;
use super::parameters::{Count, word};
use super::{number, serialize_count};
use crate::diag::count::counted;
use crate::ir::{Dim, MemberKind, ModelKind, Op, Role, Sym, ValueId, Verified};

/// The facts on the page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The `name` of the spec.
    pub name: String,
    /// Whether it is a decoder, an encoder, or both.
    pub kind: ModelKind,
    /// The longest sequence it is meant for; `None` for images.
    pub context: Option<u64>,
    /// The number of token ids in its vocabulary; `None` for models that read no tokens.
    pub vocab: Option<u64>,
    /// Whether a source has a length of its own.
    #[serde(skip)]
    pub has_source: bool,
    /// The parameters of all roles; a tied one counts once.
    pub parameters: Count,
    /// Parameters by role, every role in the same order.
    pub roles: Vec<RoleCount>,
    /// Whether the head uses an embedding table, which is counted under `embedding`.
    pub tied: bool,
    /// Elements of tensors that training does not change.
    #[serde(serialize_with = "serialize_count")]
    pub buffers: u128,
    /// Bytes of all parameters and buffers.
    pub bytes: Bytes,
    /// The operations of a forward pass, as formulas in `B, T, S, P`.
    pub formulas: Formulas,
    /// The operations on one sequence as long as the context.
    pub whole: Point,
    /// The operations on one token at the end of the context; only for models that decode token by token.
    pub decoding: Option<Point>,
    /// What decoding caches; `None` for models that do not decode.
    pub cache: Option<Cache>,
    /// The inputs of the model, in the order of its arguments.
    pub inputs: Vec<Port>,
    /// The outputs of the model.
    pub outputs: Vec<Port>,
}

/// The number of parameters in one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoleCount {
    /// `embedding`, `attention`, `ffn`, `norm`, `head`.
    pub role: &'static str,
    /// The number of parameters.
    #[serde(flatten)]
    pub count: Count,
}

/// The size of the same elements in two element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bytes {
    /// The bytes at 4 bytes for each element.
    #[serde(serialize_with = "serialize_count")]
    pub f32: u128,
    /// The bytes at 2 bytes for each element.
    #[serde(serialize_with = "serialize_count")]
    pub bf16: u128,
}

impl Bytes {
    fn of(elements: u128) -> Self {
        Self { f32: elements.saturating_mul(4), bf16: elements.saturating_mul(2) }
    }
}

/// The operations at given lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Point {
    /// The lengths of the pass.
    pub at: At,
    /// The operations of the pass.
    pub operations: Operations,
}

/// The size of the cache of keys and values of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cache {
    /// The elements that a token adds.
    #[serde(serialize_with = "serialize_count")]
    pub per_token: u128,
    /// The bytes that a token adds.
    pub bytes_per_token: Bytes,
    /// The elements that are still seen at the end of the context: windows and chunks limit them.
    #[serde(serialize_with = "serialize_count")]
    pub at_context: u128,
    /// The elements of states, which do not grow: those of recurrences, shifts and convolutions, and sums over a source.
    #[serde(serialize_with = "serialize_count")]
    pub state: u128,
    /// The elements that cross attention, or a part that reads `memory`, caches for each token of the source.
    #[serde(serialize_with = "serialize_count")]
    pub per_source_token: u128,
    /// The elements that these cache for an image.
    #[serde(serialize_with = "serialize_count")]
    pub per_image: u128,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Port {
    /// The name in files and on the command line.
    pub name: String,
    /// The element type and shape: `int[B,T]`.
    pub r#type: String,
    /// Whether an input may be left out.
    pub optional: bool,
}

/// Collects the facts about a model.
pub fn summary(graph: &Verified) -> Summary {
    let cost = cost(graph);
    let root = graph.root();
    let port = |value: &crate::ir::Value| {
        // The page says in words whether an input may be left out, so its type has no `?`.
        let ty = crate::ir::Type { optional: false, ..value.ty.clone() };
        Port { name: value.name.clone(), r#type: ty.to_string(), optional: value.ty.optional }
    };
    let roles = [Role::Embedding, Role::Attention, Role::Ffn, Role::Norm, Role::Head];
    let point = |lengths| Point { at: At::from(lengths), operations: cost.forward(&lengths) };
    Summary {
        name: graph.name.clone(),
        kind: cost.kind,
        context: cost.has_time.then_some(graph.context),
        vocab: graph.vocab,
        has_source: cost.has_source,
        parameters: cost.parameters.all(),
        roles: roles.map(|role| RoleCount { role: word(role), count: cost.parameters.of(role) }).into(),
        tied: is_tied(graph),
        buffers: cost.parameters.buffers,
        bytes: Bytes { f32: cost.parameters.bytes(4), bf16: cost.parameters.bytes(2) },
        formulas: cost.formulas(),
        whole: point(cost.whole_context()),
        decoding: graph.decodes.then(|| {
            let lengths = cost.last_token();
            Point { at: At::from(lengths), operations: cost.decoding(&lengths) }
        }),
        cache: graph.decodes.then(|| cache(&cost)),
        inputs: root.arguments().iter().map(port).collect(),
        outputs: root.results.iter().map(|id| port(root.value(*id))).collect(),
    }
}

/// Whether a module with the role of a head is given an embedding's weight.
fn is_tied(graph: &Verified) -> bool {
    let root = graph.root();
    let tables = root.nodes.iter().filter(|node| matches!(node.op, Op::Weight { .. }));
    // A second stack's embedding may share the table of the first one; that alone does not tie the head.
    let tables: Vec<&ValueId> = tables.flat_map(|node| &node.outputs).collect();
    root.nodes.iter().any(|node| {
        let Op::Call { member } = &node.op else { return false };
        let MemberKind::Module(id) = root.member(*member).kind else { return false };
        graph.module(id).role == Role::Head && node.inputs.iter().any(|id| tables.contains(&id))
    })
}

fn cache(cost: &Cost) -> Cache {
    Cache {
        per_token: cost.cache_per_token(),
        bytes_per_token: Bytes::of(cost.cache_per_token()),
        at_context: cost.cache_at(cost.context),
        state: cost.attended.states,
        per_source_token: cost.attended.per_source_token,
        per_image: cost.attended.per_image,
    }
}

/// The width of the first column of the page.
const LABEL: usize = 13;

/// The page as text, at most 80 columns wide unless a name is longer.
/// Shows the page in at most 80 columns, or as many as `{:width$}` gives.
impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut page = Page { out: String::new() };
        self.title(&mut page);
        self.parameters(&mut page);
        self.operations(&mut page, f.width().unwrap_or(80));
        self.cache(&mut page);
        ports(&mut page, "inputs", &self.inputs);
        ports(&mut page, "outputs", &self.outputs);
        f.write_str(&page.out)
    }
}

/// Lines with a label and a text.
struct Page {
    out: String,
}

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        let line = format!("{label:LABEL$}{text}");
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.out, "{}", line.trim_end());
    }
}

impl Summary {
    fn title(&self, page: &mut Page) {
        let mut title = format!("{}: {}", self.name, self.kind.words());
        if let Some(context) = self.context {
            let _ = write!(title, ", context {}", number::exact(u128::from(context)));
        }
        if let Some(vocab) = self.vocab {
            let _ = write!(title, ", vocab {}", number::exact(u128::from(vocab)));
        }
        let _ = writeln!(page.out, "{title}\n");
    }

    fn parameters(&self, page: &mut Page) {
        let all = self.parameters;
        page.line("parameters", &number::count_with_short(all.total));
        if all.active != all.total {
            page.line("  active", &format!("{} for a token", number::count_with_short(all.active)));
        }
        // No part has more digits than the whole, so all numbers are aligned in its width.
        let width = number::exact(all.total).len();
        for RoleCount { role, count } in &self.roles {
            let share = number::share(count.total, all.total);
            let mut text = format!("{:>width$}  {share:>7}", number::exact(count.total));
            if count.active != count.total {
                let _ = write!(text, "  {} active", number::exact(count.active));
            }
            // Its table is counted under `embedding`.
            if self.tied && *role == word(Role::Head) {
                text += "  tied to the embedding";
            }
            page.line(&format!("  {role}"), &text);
        }
        if self.buffers > 0 {
            page.line("  buffers", &format!("{:>width$}  not trained", number::exact(self.buffers)));
        }
        let (f32, bf16) = (number::bytes(self.bytes.f32), number::bytes(self.bytes.bf16));
        page.line("weights", &format!("{f32} in f32, {bf16} in bf16"));
        page.line("", "");
    }

    fn operations(&self, page: &mut Page, width: usize) {
        let Point { at, operations } = self.whole;
        let sum = &self.formulas.matmul + &self.formulas.attention;
        // The page is about whole sequences, for which nothing is cached.
        let at_start = sum.substitute(Sym::Past, &Dim::default());
        for (i, line) in wrapped(&number::formula(&at_start), width).iter().enumerate() {
            page.line(if i == 0 { "FLOPs" } else { "" }, line);
        }
        let mut each = format!("{} ", number::operations(operations.full));
        // With a source, "per token" would be ambiguous: of the source, of the target, or of both.
        match (self.context, self.has_source) {
            (None, _) => each += "an image",
            (Some(_), true) => {
                let _ = write!(each, "at B=1, S=T={}", number::exact(u128::from(at.time)));
            }
            (Some(_), false) => {
                let _ = write!(each, "at B=1, T={}", number::exact(u128::from(at.time)));
                if let Some(token) = operations.full.checked_div(u128::from(at.time)) {
                    let _ = write!(each, ", {} per token", number::operations(token));
                }
            }
        }
        page.line("", &each);
        // Without masks the two are equal, and the line would say nothing new.
        if operations.visible != operations.full {
            let visible = number::operations(operations.visible);
            page.line("  visible", &format!("{visible} with only the pairs that masks leave"));
        }
        page.line("  training", &format!("{} (3 × forward)", number::operations(operations.training)));
        if let Some(Point { at, operations }) = self.decoding {
            let (next, past) = (number::operations(operations.visible), number::exact(u128::from(at.past)));
            // A cache has only the positions that a later token can see.
            let text = match operations.visible == operations.full {
                true => format!("{next} for the next token, {past} cached"),
                false => format!("{next} for the next token after {past}, with what masks leave"),
            };
            page.line("  decoding", &text);
            if self.kind == ModelKind::EncoderDecoder {
                page.line("", "without what depends on the source alone, which is computed once");
            }
        }
    }

    fn cache(&self, page: &mut Page) {
        if let Some(cache) = self.cache {
            let Bytes { f32, bf16 } = cache.bytes_per_token;
            let text = format!(
                "{} per token: {} in f32, {} in bf16",
                counted(number::exact(cache.per_token), "value"),
                number::bytes(f32),
                number::bytes(bf16)
            );
            if cache.per_token > 0 || cache.state == 0 {
                page.line("KV cache", &text);
            }
            if cache.state > 0 {
                let Bytes { f32, bf16 } = Bytes::of(cache.state);
                let (f32, bf16) = (number::bytes(f32), number::bytes(bf16));
                let values = counted(number::exact(cache.state), "value");
                page.line("State", &format!("{values} at any length: {f32} in f32, {bf16} in bf16"));
            }
            let of_cross = [(cache.per_source_token, "token of the source"), (cache.per_image, "image")];
            for (values, of) in of_cross.iter().filter(|(values, _)| *values > 0) {
                page.line("  cross", &format!("{} per {of}", counted(number::exact(*values), "value")));
            }
            if let Some(context) = self.context.filter(|_| cache.per_token > 0) {
                let (at, whole) = (Bytes::of(cache.at_context), number::exact(u128::from(context)));
                let text = format!("{} in bf16 at {}", number::bytes(at.bf16), counted(whole, "token"));
                page.line("", &text);
            }
        }
        page.line("", "");
    }
}

impl Summary {
    /// The costs that differ from those of an earlier version of the model, one on each line; empty if none does.
    pub fn changes(&self, before: &Self) -> String {
        let mut out = String::new();
        let mut line = |title: &str, shown: fn(u128) -> String, of: &dyn Fn(&Self) -> Option<u128>| {
            let (from, to) = (of(before), of(self));
            if from == to {
                return;
            }
            let words = |n: Option<u128>| n.map_or_else(|| "none".to_owned(), shown);
            let _ = write!(out, "{title:LABEL$}{} → {}", words(from), words(to));
            let percent = from.zip(to).map_or(String::new(), |(from, to)| number::percent(from, to));
            out += &if percent.is_empty() { "\n".to_owned() } else { format!(" ({percent})\n") };
        };
        line("parameters", number::count, &|of| Some(of.parameters.total));
        // Without experts the two are equal, and the line would say nothing new.
        if [before, self].iter().any(|of| of.parameters.active != of.parameters.total) {
            line("  active", number::count, &|of| Some(of.parameters.active));
        }
        line("FLOPs", number::operations, &|of| Some(of.whole.operations.full));
        line("  decoding", number::operations, &|of| of.decoding.map(|point| point.operations.visible));
        line("KV cache", number::bytes, &|of| of.cache.map(|cache| Bytes::of(cache.at_context).bf16));
        out
    }
}

fn ports(page: &mut Page, label: &str, ports: &[Port]) {
    let width = ports.iter().map(|port| port.name.len()).max().unwrap_or(0);
    for (i, port) in ports.iter().enumerate() {
        let absent = if port.optional { "  may be left out" } else { "" };
        let text = format!("{:width$}  {}{absent}", port.name, port.r#type);
        page.line(if i == 0 { label } else { "" }, &text);
    }
}

/// A formula in lines that leave room for the label, broken before a `+`.
fn wrapped(formula: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (i, term) in formula.split(" + ").enumerate() {
        let term = if i == 0 { term.to_owned() } else { format!("+ {term}") };
        match lines.last_mut() {
            // One column is left for the space before the term.
            Some(line) if line.chars().chain(term.chars()).count() < width.saturating_sub(LABEL) => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(&term);
            }
            _ => lines.push(term),
        }
    }
    lines
}
