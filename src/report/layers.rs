//! The layer table: every module and layer by its path, with shape, parameters and operations.
//!
//! Blocks of a stack that are the same module share a row (`blocks.0..12 ×12`) with the sum of their
//! numbers. The rows below a module therefore add up to no more than its own row. The difference is what
//! the module does itself: attention between its projections, a tied output table.

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::cost;
use super::parameters::{self, Count, Parameters, active_experts};
use super::table::{Column, Table};
use super::work::{self, Work, callees, of_node};
use super::{number, serialize_count};
use crate::diag::count::counted;
use crate::ir::op::Runs;
use crate::ir::{Graph, Layer, Lengths, Member, MemberId, MemberKind, Module, ModuleId, Node, Op, Verified};

/// The layer table of a model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Layers {
    /// The `name` of the spec.
    pub model: String,
    /// The lengths for which operations are counted.
    pub at: At,
    /// Modules and layers in order of their paths, parents before children.
    pub rows: Vec<Row>,
    /// The row of the whole model, which includes what no other row has.
    pub total: Row,
    /// Elements of tensors that training does not change. They are not among the parameters, but files of
    /// weights contain them.
    #[serde(serialize_with = "serialize_count")]
    pub buffers: u128,
}

/// Lengths of one forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct At {
    /// `B`: the batch size.
    pub batch: u64,
    /// `T`: the length of the sequence.
    pub time: u64,
    /// `S`: the length of the source.
    pub source: u64,
    /// `P`: the number of cached positions.
    pub past: u64,
}

impl From<Lengths> for At {
    fn from(lengths: Lengths) -> Self {
        let Lengths { batch, time, source, past, rows: _ } = lengths;
        Self { batch, time, source, past }
    }
}

/// A module or a layer, or several equal ones.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The path from the root, `decoder.blocks.0..12.attention`; empty for the whole model.
    pub path: String,
    /// The number of modules that contain it.
    pub depth: usize,
    /// How many equal ones the row summarizes, counting copies of the modules around it.
    #[serde(serialize_with = "serialize_count")]
    pub copies: u128,
    /// The type of the module or layer: `DecoderBlock`, `Linear`.
    pub r#type: String,
    /// The shape of its first result: `[B,T,768]`.
    pub shape: Option<String>,
    /// Parameters without buffers; tied ones count once.
    #[serde(serialize_with = "serialize_count")]
    pub parameters: u128,
    /// The parameters that a token uses.
    #[serde(serialize_with = "serialize_count")]
    pub active: u128,
    /// The share of the model's parameters, from 0 to 1.
    pub share: f64,
    /// Operations of a forward pass, as a formula.
    pub formula: String,
    /// Operations at the lengths of the table.
    #[serde(serialize_with = "serialize_count")]
    pub operations: u128,
    /// The path's last segment and the number of copies, for the tree.
    #[serde(skip)]
    label: String,
}

/// The table of a model to a depth (1 for the members of the model), with operations counted at the given
/// lengths.
pub fn layers(graph: &Verified, depth: usize, lengths: &Lengths) -> Layers {
    let walk = Walk {
        graph,
        parameters: parameters::of_modules(graph),
        work: work::of_modules(graph),
        lengths: *lengths,
        whole: cost(graph).parameters.all().total,
        depth,
    };
    let root = graph.root();
    let mut rows = Vec::new();
    walk.members(root, &Position::default(), &mut rows);
    let shape = root.results.first().map(|id| shape_text(&root.value(*id).ty));
    let total = walk.row(
        &Position::default(),
        root.name.clone(),
        shape,
        count_of(walk.parameters.get(graph.root.0)),
        &walk.work.get(graph.root.0).cloned().unwrap_or_default(),
    );
    let buffers = cost(graph).parameters.buffers;
    Layers { model: graph.name.clone(), at: (*lengths).into(), rows, total, buffers }
}

fn count_of(parameters: Option<&Parameters>) -> Count {
    parameters.map(Parameters::all).unwrap_or_default()
}

/// Where the walk is: a path, and how often the code there runs in one forward pass.
#[derive(Clone)]
struct Position {
    path: String,
    label: String,
    depth: usize,
    copies: u128,
    /// The fraction of `copies` that a token uses.
    active: (u128, u128),
    /// The calls on the path, outermost first; several nodes may call a member.
    calls: Vec<Vec<Runs>>,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            path: String::new(),
            label: String::new(),
            depth: 0,
            copies: 1,
            active: (1, 1),
            calls: Vec::new(),
        }
    }
}

impl Position {
    fn member(&self, name: &str) -> Position {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Position { path, label: name.to_owned(), depth: self.depth.saturating_add(1), ..self.clone() }
    }

    /// The work of all copies, from that of one run.
    fn total(&self, once: &Work) -> Work {
        // From the innermost call outwards, as every call repeats all that is inside of it.
        self.calls.iter().rev().fold(once.clone(), |work, calls| {
            let mut sum = Work::default();
            for runs in calls {
                sum.add(&runs.of(&work));
            }
            sum
        })
    }
}

struct Walk<'a> {
    graph: &'a Graph,
    parameters: Vec<Parameters>,
    work: Vec<Work>,
    lengths: Lengths,
    whole: u128,
    depth: usize,
}

impl Walk<'_> {
    fn members(&self, module: &Module, place: &Position, rows: &mut Vec<Row>) {
        if place.depth >= self.depth {
            return;
        }
        for (i, member) in module.members.iter().enumerate() {
            let id = MemberId(i);
            match &member.kind {
                MemberKind::Layer(layer) => self.layer(module, id, layer, &place.member(&member.name), rows),
                MemberKind::Module(child) => {
                    let mut at = place.member(&member.name);
                    // A module that several ops call has its parameters once, but its operations with each
                    // call.
                    let nodes: Vec<&Node> = uses(module, id).collect();
                    at.calls.push(vec![Runs::Whole(nodes.len() as u128)]);
                    self.module(*child, result_shape(module, &nodes), &at, rows);
                }
                MemberKind::Stack(_) => self.stack(module, id, member, place, rows),
            }
        }
    }

    fn stack(&self, module: &Module, id: MemberId, member: &Member, place: &Position, rows: &mut Vec<Row>) {
        let MemberKind::Stack(runs) = &member.kind else { return };
        let nodes: Vec<&Node> = uses(module, id).collect();
        let experts = active_experts(module, id.0);
        let all = crate::ir::stack_len(runs);
        let mut first = 0u64;
        let mut position = 0;
        for run in runs {
            for (i, child) in run.cycle.iter().enumerate() {
                let blocks = run.blocks(i);
                // `callees` lists the modules of runs and cycles in the order of these two loops.
                let calls: Vec<Runs> = nodes
                    .iter()
                    .filter_map(|node| {
                        callees(node, module).into_iter().nth(position).map(|callee| callee.runs)
                    })
                    .collect();
                position = position.saturating_add(1);
                // A cycle may be longer than its run.
                if blocks == 0 {
                    continue;
                }
                let indices = indices(first.saturating_add(i as u64), run.cycle.len() as u64, blocks);
                let mut at = place.member(&format!("{}.{indices}", member.name));
                if blocks > 1 {
                    at.label += &format!(" ×{blocks}");
                }
                if let Some(active) = experts {
                    at.label += &format!(", {active} active");
                    // A fraction, not a quotient, so that parameters are divided once, after all products.
                    let (n, of) = at.active;
                    at.active = (n.saturating_mul(u128::from(active)), of.saturating_mul(u128::from(all)));
                } else if let Some(each) = nodes.iter().find_map(|node| applied(node)) {
                    at.label += &format!(", run {}", counted(each, "time"));
                }
                at.copies = at.copies.saturating_mul(u128::from(blocks));
                at.calls.push(calls);
                // The result of the node is the sum of the experts; the row is about a single one.
                let shape = match experts {
                    Some(_) => self.graph.module(*child).results.first().map(|id| {
                        let expert = self.graph.module(*child);
                        shape_text(&expert.value(*id).ty)
                    }),
                    None => result_shape(module, &nodes),
                };
                self.module(*child, shape, &at, rows);
            }
            first = first.saturating_add(run.count);
        }
    }

    fn module(&self, id: ModuleId, shape: Option<String>, at: &Position, rows: &mut Vec<Row>) {
        let module = self.graph.module(id);
        let once = self.work.get(id.0).cloned().unwrap_or_default();
        let one = count_of(self.parameters.get(id.0));
        rows.push(self.row(at, module.name.clone(), shape, one, &at.total(&once)));
        self.members(module, at, rows);
    }

    fn layer(&self, module: &Module, id: MemberId, layer: &Layer, at: &Position, rows: &mut Vec<Row>) {
        let nodes: Vec<&Node> = uses(module, id).collect();
        let mut once = Work::default();
        // A layer may be applied more than once.
        for node in &nodes {
            once.add(&of_node(node, module, &self.work));
        }
        // Buffers are counted in a line of their own below the table.
        let trained = layer.parameters().into_iter().filter(|p| p.trained);
        let n = trained.fold(0u128, |n, p| n.saturating_add(crate::ir::paths::elements(&p.shape)));
        let one = Count { total: n, active: n };
        rows.push(self.row(
            at,
            layer_name(layer).into(),
            result_shape(module, &nodes),
            one,
            &at.total(&once),
        ));
    }

    fn row(&self, at: &Position, r#type: String, shape: Option<String>, one: Count, work: &Work) -> Row {
        let parameters = one.total.saturating_mul(at.copies);
        let (active, of) = at.active;
        Row {
            path: at.path.clone(),
            depth: at.depth,
            copies: at.copies,
            r#type,
            shape,
            parameters,
            // Only stacks with at least one block have a row, so the divisor is never 0.
            active: one.active.saturating_mul(at.copies).saturating_mul(active).checked_div(of).unwrap_or(0),
            share: if self.whole == 0 { 0.0 } else { parameters as f64 / self.whole as f64 },
            formula: work.operations().to_string(),
            operations: work.operations().eval(&self.lengths),
            label: at.label.clone(),
        }
    }
}

/// The nodes of a body that run a member.
fn uses(module: &Module, id: MemberId) -> impl Iterator<Item = &Node> {
    module.nodes.iter().filter(move |node| node.op.meaning().member() == Some(id))
}

/// How often in a row a scan applies each block, if more than once.
fn applied(node: &Node) -> Option<u64> {
    if let Op::Scan { each, .. } = &node.op
        && *each > 1
    {
        return Some(*each);
    }
    None
}

/// The shape of the first result; `None` for a member that no op uses.
fn result_shape(module: &Module, nodes: &[&Node]) -> Option<String> {
    // All calls of a module have results of the same type; of a layer that is applied twice, the first is
    // shown.
    let id = nodes.first()?.outputs.first()?;
    Some(shape_text(&module.value(*id).ty))
}

/// A shape as tables show it: `[B,T,768]`.
pub fn shape_text(ty: &crate::ir::Type) -> String {
    let sizes: Vec<String> = ty.shape.iter().map(ToString::to_string).collect();
    format!("[{}]", sizes.join(","))
}

/// Blocks `first, first + step, ...` as `3`, `0..12`, `4,7,10` or `0,2,..,10`. The end of a range is not in it, as in the key
/// `ranges`.
fn indices(first: u64, step: u64, count: u64) -> String {
    let at = |i: u64| first.saturating_add(step.saturating_mul(i));
    let last = at(count.saturating_sub(1));
    match (count, step) {
        (1, _) => first.to_string(),
        (_, 1) => format!("{first}..{}", last.saturating_add(1)),
        (2, _) => format!("{first},{last}"),
        (3, _) => format!("{first},{},{last}", at(1)),
        // Commas on both sides, because `7..10` are three neighbours.
        _ => format!("{first},{},..,{last}", at(1)),
    }
}

fn layer_name(layer: &Layer) -> &'static str {
    match layer {
        Layer::Linear { .. } => "Linear",
        Layer::Embedding { .. } => "Embedding",
        Layer::LayerNorm { .. } => "LayerNorm",
        Layer::RmsNorm { .. } => "RmsNorm",
        Layer::Patches { .. } => "Patches",
        Layer::Param { trained: true, .. } => "Param",
        Layer::Param { trained: false, .. } => "Buffer",
    }
}

impl Layers {
    /// Aligned text of at most `width` columns: exact numbers if they fit, otherwise short ones, and
    /// without the share of operations if even these do not fit.
    pub fn text(&self, width: usize) -> String {
        let exact = Layout { n: number::exact, operations: number::exact, both_shares: true };
        let short = Layout { n: number::count, operations: number::operations, both_shares: true };
        let narrow = Layout { both_shares: false, ..short };
        let fitting = [&exact, &short].into_iter().map(|layout| self.readable(layout));
        let fitting = fitting.into_iter().find(|table| table.width() <= width);
        let table = fitting.unwrap_or_else(|| self.readable(&narrow));
        format!("{}{}", table.text(width), self.footnote())
    }

    /// The lengths for which operations are counted, and how to read a folded row.
    fn footnote(&self) -> String {
        let At { batch, time, source, past } = self.at;
        // A formula has no letters but those of lengths, so it shows which of them matter.
        let has = |letter: char| self.total.formula.contains(letter);
        let lengths = [('B', batch), ('T', time), ('S', source), ('P', past)]
            .into_iter()
            // Without a cache `P` says nothing.
            .filter(|(letter, n)| has(*letter) && !(*letter == 'P' && *n == 0))
            .map(|(letter, n)| format!("{letter}={}", number::exact(u128::from(n))))
            .collect::<Vec<_>>();
        let mut out = String::from("FLOPs of one forward pass");
        if !lengths.is_empty() {
            out += &format!(" at {}", lengths.join(", "));
        }
        out += ", attention over all pairs\n";
        if self.rows.iter().any(|row| row.copies > 1) {
            out += "a row with × is the sum of all its copies\n";
        }
        if self.buffers > 0 {
            let buffers = number::exact(self.buffers);
            out +=
                &format!("buffers, which are not trained and in no row: {buffers}; weights have them too\n");
        }
        out
    }

    /// One row per line with plain numbers, the total first.
    pub fn plain(&self) -> Table {
        let columns =
            ["path", "type", "shape", "copies", "parameters", "active", "share", "flops", "formula"];
        let rows = std::iter::once(&self.total).chain(&self.rows);
        let rows = rows.map(|row| {
            vec![
                row.path.clone(),
                row.r#type.clone(),
                row.shape.clone().unwrap_or_default(),
                row.copies.to_string(),
                row.parameters.to_string(),
                row.active.to_string(),
                format!("{:.6}", row.share),
                row.operations.to_string(),
                row.formula.clone(),
            ]
        });
        // Alignment and least widths do not matter in csv.
        let columns = columns.into_iter().map(|title| Column::text(title, 0)).collect();
        Table { columns, rows: rows.collect(), total: Vec::new() }
    }

    /// [`plain`](Self::plain) as comma-separated values.
    pub fn csv(&self) -> String {
        self.plain().csv()
    }

    /// A pipe table with full paths and exact numbers.
    pub fn markdown(&self) -> String {
        let exact = Layout { n: number::exact, operations: number::exact, both_shares: true };
        let mut table = self.readable(&exact);
        for (cells, row) in table.rows.iter_mut().zip(&self.rows) {
            // A label of the tree is a last segment and the number of copies; here the whole path is shown.
            let copies = row.label.split_once(' ').map(|(_, copies)| format!(" {copies}"));
            if let Some(cell) = cells.first_mut() {
                *cell = format!("`{}`{}", row.path, copies.unwrap_or_default());
            }
        }
        format!("{}\n{}", table.markdown(), self.footnote())
    }

    fn readable(&self, layout: &Layout) -> Table {
        // Numbers are never cut. Of a path, 20 characters still show where in the tree a row is.
        let mut columns = vec![
            Column::text("module", 20),
            Column::text("type", 10),
            Column::text("output", 10),
            Column::number("params"),
            Column::number("share"),
            Column::number("FLOPs"),
        ];
        if layout.both_shares {
            columns.push(Column::number("share"));
        }
        let cells = |row: &Row, label: String| {
            let mut cells = vec![
                label,
                row.r#type.clone(),
                row.shape.clone().unwrap_or_default(),
                (layout.n)(row.parameters),
                number::share(row.parameters, self.total.parameters),
                (layout.operations)(row.operations),
            ];
            if layout.both_shares {
                cells.push(number::share(row.operations, self.total.operations));
            }
            cells
        };
        let label = |row: &Row| format!("{}{}", "  ".repeat(row.depth.saturating_sub(1)), row.label);
        let rows = self.rows.iter().map(|row| cells(row, label(row))).collect();
        Table { columns, rows, total: cells(&self.total, "total".into()) }
    }
}

/// How numbers are written, and whether operations have a column of shares.
struct Layout {
    n: fn(u128) -> String,
    operations: fn(u128) -> String,
    both_shares: bool,
}
