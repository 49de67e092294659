//! A graph as boxes and arrows: what a reader wants to see of it, without positions.
//!
//! Modules of the model itself are opened, so that embeddings and heads show their steps; modules inside of
//! a block remain boxes. Values that only control a computation (masks, rotary tables, biases, positions)
//! are not drawn as arrows; they become notes of the box that uses them. Dropout, slices and changes of
//! shape are not drawn.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::facts;
use super::outline::{Column, Flow, Form, Frame, From, Item, Outline, Part, SpecLine};
use super::sums;
use crate::diag::count::counted;
use crate::ir::op::Op;
use crate::ir::op::meaning::{Note, Picture, Site};
use crate::ir::paths::{elements, join};
use crate::ir::{
    DType, Graph, MemberId, MemberKind, ModelKind, Module, ModuleId, Node, Run, Slot, Value, Verified,
};
use crate::report::cost::cost;
use crate::report::layers::shape_text;
use crate::report::number;
use crate::report::parameters::{self, Parameters};
use crate::source::{SourceId, SourceMap, Span};
use crate::spec::library::LIBRARY_NAME;
use crate::spec::wiring::PRELUDE_NAME;

/// How a value appears in the picture.
#[derive(Clone, Debug)]
enum Drawn {
    /// As the result of an item: the index of its column, and its own index in that column.
    Item(usize, usize),
    /// The argument of the block.
    Start,
    /// The encoder's output, inside a block.
    Memory,
    /// As a box beside each item that uses it: a learned table, which depends on no input. The blocks of a stack
    /// may share one with each other.
    Aside(Arc<Item>),
    /// Only as notes of the items that use it.
    Side { notes: Vec<Note>, is_bias: bool },
}

impl Drawn {
    /// A value that the picture does not show: no item, and no note.
    const NOTHING: Drawn = Drawn::Side { notes: Vec::new(), is_bias: false };
}

/// The outline of a graph. `sources` are the texts to which its spans refer.
pub fn outline(graph: &Verified, sources: &SourceMap) -> Outline {
    let cost = cost(graph);
    let both = cost.kind == ModelKind::EncoderDecoder;
    let titles: &[&str] = if both { &["Encoder", "Decoder"] } else { &[""] };
    let model = Model { graph, parameters: parameters::of_modules(graph), lines: Lines::new(sources) };
    let mut build = Build {
        model: &model,
        columns: titles.iter().map(|t| Column { title: (*t).to_owned(), flow: Flow::default() }).collect(),
        current: 0,
        memory: None,
    };
    let root = graph.root();
    let to_encoder = if both { leads_to_encoder(graph, root) } else { vec![false; root.values.len()] };
    let inputs = root.arguments().iter().zip(to_encoder);
    let arguments = inputs.map(|(value, to_encoder)| build.input(value, to_encoder)).collect();
    let results = build.body(root, arguments, "", true);
    build.outputs(root, &results);
    let memory = build.memory;
    let last = build.columns.len().saturating_sub(1);
    for (i, column) in build.columns.iter_mut().enumerate() {
        // The decoder's column ends with the outputs, the encoder's with what the decoder reads of it.
        let output = column.flow.items.len().checked_sub(1);
        column.flow.end = if i == last { output } else { memory.or(output) };
        sums::merge(&mut column.flow);
    }
    let all = cost.parameters.all();
    let mut summary = vec![cost.kind.words().to_owned(), counted(number::count(all.total), "parameter")];
    if all.active < all.total {
        summary.push(format!("{} active", number::count(all.active)));
    }
    if cost.has_time {
        summary.push(format!("context {}", number::exact(u128::from(cost.context))));
    }
    if let Some(vocab) = graph.vocab {
        summary.push(format!("vocab {}", number::exact(u128::from(vocab))));
    }
    Outline { name: graph.name.clone(), summary, columns: build.columns }
}

/// Whether each value of the root module belongs to the encoder.
fn leads_to_encoder(graph: &Graph, root: &Module) -> Vec<bool> {
    let mut leads = vec![false; root.values.len()];
    // Nodes are in the order of computation, so one pass from the results finds all that lead to the encoder.
    for node in root.nodes.iter().rev() {
        let is_encoder = called(graph, root, node)
            .and_then(|module| module.part.as_ref())
            .is_some_and(|part| part.slot == Slot::Encoder);
        if is_encoder || node.outputs.iter().any(|id| leads.get(id.0) == Some(&true)) {
            for id in &node.inputs {
                leads.get_mut(id.0).into_iter().for_each(|slot| *slot = true);
            }
        }
    }
    leads
}

/// The module that a node calls.
fn called<'a>(graph: &'a Graph, module: &Module, node: &Node) -> Option<&'a Module> {
    let Op::Call { member } = &node.op else { return None };
    match &module.member(*member).kind {
        MemberKind::Module(id) => Some(graph.module(*id)),
        MemberKind::Layer(_) | MemberKind::Stack(_) => None,
    }
}

/// What all flows of a model are made from.
struct Model<'a> {
    graph: &'a Graph,
    /// The parameters of each module.
    parameters: Vec<Parameters>,
    lines: Lines<'a>,
}

/// The lines of the spec that items come from.
struct Lines<'a> {
    sources: &'a SourceMap,
    /// The names of the sources, by their index.
    names: Vec<Arc<str>>,
    /// The lines that have been asked for. A cell, because the builders of blocks share the model with the
    /// builder that contains them.
    texts: RefCell<BTreeMap<(SourceId, usize), Arc<str>>>,
}

/// The most characters of a line that an item shows: a spec may be written in one line of any length.
const LINE: usize = 200;

impl<'a> Lines<'a> {
    fn new(sources: &'a SourceMap) -> Self {
        let names = sources.iter().map(|(_, source)| source.name.as_str().into()).collect();
        Self { sources, names, texts: RefCell::default() }
    }

    fn of(&self, span: Span) -> Option<SpecLine> {
        let source = self.sources.get(span.source)?;
        let name = self.names.get(span.source.0 as usize)?.clone();
        let line = source.line_at(span.start as usize);
        let mut texts = self.texts.borrow_mut();
        let text = match texts.get(&(span.source, line)) {
            Some(text) => text.clone(),
            None => {
                // One character more than is shown tells whether there are more.
                let mut text: String = source.line(line)?.trim().chars().take(LINE + 1).collect();
                if text.chars().count() > LINE {
                    text.pop();
                    text.push('…');
                }
                let text: Arc<str> = text.into();
                texts.insert((span.source, line), text.clone());
                text
            }
        };
        // What belongs to trafoc is no file that a reader could open.
        let is_own = ![PRELUDE_NAME, LIBRARY_NAME].contains(&source.name.as_str());
        Some(SpecLine { source: is_own.then_some(name), line, text })
    }
}

struct Build<'a> {
    model: &'a Model<'a>,
    columns: Vec<Column>,
    /// The column of the module that was called last, to which items without inputs are added.
    current: usize,
    /// The item of the encoder's column that the decoder reads, once it has.
    memory: Option<usize>,
}

impl Build<'_> {
    /// An argument of the root: an item if the model reads it, notes if it only controls a computation.
    fn input(&mut self, value: &Value, to_encoder: bool) -> Drawn {
        // What a model reads is an image, `[B, C, H, W]`, or token ids, `[B, T]`. Masks and token types are
        // optional, and the language of an example, `[B]`, only selects a vector.
        let is_read = !value.ty.optional
            && (value.ty.dtype == DType::Float || value.ty.dtype == DType::Int && value.ty.shape.len() == 2);
        if !is_read {
            return Drawn::NOTHING;
        }
        let column = if to_encoder { 0 } else { self.columns.len().saturating_sub(1) };
        let shape = shape_text(&value.ty);
        self.add(
            column,
            Item {
                form: Form::Input,
                inputs: Vec::new(),
                is_aside: false,
                path: value.name.clone(),
                label: value.name.clone(),
                notes: vec![shape.clone()],
                details: vec![format!("input {}", value.name), shape],
                place: None,
            },
        )
    }

    fn outputs(&mut self, root: &Module, results: &[Drawn]) {
        // One item names all outputs; it follows the first of them that is drawn.
        let Some(Drawn::Item(column, index)) = results.iter().find(|v| matches!(v, Drawn::Item(..))) else {
            return;
        };
        let values: Vec<&Value> = root.results.iter().map(|id| root.value(*id)).collect();
        let names: Vec<&str> = values.iter().map(|v| v.name.as_str()).collect();
        let shape = values.first().map(|v| shape_text(&v.ty)).unwrap_or_default();
        let item = Item {
            form: Form::Output,
            inputs: vec![From::Item(*index)],
            is_aside: false,
            path: names.join(","),
            label: names.join(", "),
            notes: vec![shape.clone()],
            details: vec![format!("output {}", names.join(", ")), shape],
            place: None,
        };
        self.add(*column, item);
    }

    fn add(&mut self, column: usize, item: Item) -> Drawn {
        let Some(at) = self.columns.get_mut(column) else { return Drawn::NOTHING };
        at.flow.items.push(item);
        Drawn::Item(column, at.flow.items.len() - 1)
    }

    /// Walks the body of a module; with `opens`, called modules are walked too.
    fn body(&mut self, module: &Module, arguments: Vec<Drawn>, path: &str, opens: bool) -> Vec<Drawn> {
        let mut values: Vec<Drawn> = arguments;
        values.resize_with(module.values.len(), || Drawn::NOTHING);
        for node in &module.nodes {
            let inputs: Vec<Drawn> = node.inputs.iter().filter_map(|id| values.get(id.0).cloned()).collect();
            // A node with several outputs and one item is represented by that item for all of them.
            let outputs = self.node(module, node, &inputs, path, opens);
            for (i, id) in node.outputs.iter().enumerate() {
                if let (Some(slot), Some(value)) = (values.get_mut(id.0), outputs.get(i).or(outputs.first()))
                {
                    *slot = value.clone();
                }
            }
        }
        module.results.iter().filter_map(|id| values.get(id.0).cloned()).collect()
    }

    fn node(
        &mut self,
        module: &Module,
        node: &Node,
        inputs: &[Drawn],
        path: &str,
        opens: bool,
    ) -> Vec<Drawn> {
        let one = |value: Drawn| vec![value];
        match node.op.meaning().picture(&Site { node, module, measured: &[] }) {
            Picture::Member => self.member(module, node, inputs, path, opens),
            Picture::Pass => one(inputs.first().cloned().unwrap_or(Drawn::NOTHING)),
            Picture::Notes { notes, is_bias } => one(Drawn::Side { notes, is_bias }),
            Picture::NotesOfInputs => {
                let notes = inputs.iter().flat_map(notes_of).cloned().collect();
                one(Drawn::Side { notes, is_bias: false })
            }
            Picture::Step(label) => one(self.step(node, &label, inputs, path)),
            Picture::Sum => one(self.circle(Form::Sum, node, inputs, path)),
            Picture::Product => one(self.circle(Form::Product, node, inputs, path)),
            Picture::Box { role, label, notes, aside } => {
                let mut item = self.plain(node, Form::Box(facts::tint(role)), label, path);
                item.notes = notes;
                let Some(flow) = inputs.get(aside..) else { return one(beside(item)) };
                item.notes.extend(flow.iter().flat_map(notes_of).map(Note::to_string));
                one(self.add_with(flow, item))
            }
        }
    }

    /// A node that runs a member is drawn as that member.
    fn member(
        &mut self,
        module: &Module,
        node: &Node,
        inputs: &[Drawn],
        path: &str,
        opens: bool,
    ) -> Vec<Drawn> {
        if let Op::Scan { member, each, args } = &node.op {
            return vec![self.stack(module, node, *member, *each, args, inputs, path)];
        }
        let Some(id) = node.op.meaning().member() else { return Vec::new() };
        match &module.member(id).kind {
            MemberKind::Layer(_) => vec![self.layer(module, node, id, inputs, path)],
            MemberKind::Module(_) => self.call(module, node, id, inputs, path, opens),
            MemberKind::Stack(_) => Vec::new(),
        }
    }

    fn layer(&mut self, module: &Module, node: &Node, id: MemberId, inputs: &[Drawn], path: &str) -> Drawn {
        let member = module.member(id);
        let MemberKind::Layer(layer) = &member.kind else { return Drawn::NOTHING };
        // A layer that only computes a bias stays a note of the attention that adds the bias.
        if let Some(Drawn::Side { is_bias: true, notes }) = inputs.first() {
            return Drawn::Side { notes: notes.clone(), is_bias: true };
        }
        let tint = facts::tint(module.role_of(layer));
        let (label, notes) = facts::layer(layer, &member.name);
        let path = join(path, &member.name);
        let mut item = self.plain(node, Form::Box(tint), &label, &path);
        item.notes = notes;
        let n: u128 = layer.parameters().iter().map(|p| elements(&p.shape)).sum();
        item.details = vec![path.clone(), facts::layer_line(layer)];
        item.details.extend(shapes(module, node));
        item.details.push(counted(number::exact(n), "parameter"));
        // A layer that reads no item, such as a learned table, is drawn next to the item that it feeds.
        let is_source = inputs.iter().all(|v| matches!(v, Drawn::Side { .. }));
        if is_source {
            return beside(item);
        }
        self.add_with(inputs, item)
    }

    fn call(
        &mut self,
        module: &Module,
        node: &Node,
        id: MemberId,
        inputs: &[Drawn],
        path: &str,
        opens: bool,
    ) -> Vec<Drawn> {
        let member = module.member(id);
        let MemberKind::Module(child) = &member.kind else { return Vec::new() };
        let path = join(path, &member.name);
        let inner = self.model.graph.module(*child);
        // What this call adds without inputs of its own, such as a learned table, belongs to its column.
        if let Some(column) = inputs.iter().find_map(column_of) {
            self.current = column;
        }
        if opens {
            return self.body(inner, inputs.to_vec(), &path, true);
        }
        // Masks and tables that go into a box are not drawn as arrows; the box says in words what they do.
        let steering: Vec<Note> = inputs.iter().flat_map(notes_of).cloned().collect();
        let (label, notes) = facts::module(inner, &steering);
        let mut item = self.plain(node, Form::Box(facts::tint(inner.role)), &label, &path);
        item.notes = notes;
        item.place = inner.span.and_then(|span| self.model.lines.of(span)).or(item.place);
        let count = self.model.parameters.get(child.0).map(|p| p.all().total).unwrap_or_default();
        item.details = vec![path];
        // Backticks mark code in emitted documentation; here they would be shown.
        item.details.extend(inner.doc.iter().map(|line| line.replace('`', "")));
        item.details.extend(shapes(module, node));
        item.details.push(counted(number::exact(count), "parameter"));
        item.details.extend(facts::members(self.model.graph, inner));
        let value = self.add_with(inputs, item);
        vec![value; node.outputs.len()]
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one op")]
    fn stack(
        &mut self,
        module: &Module,
        node: &Node,
        id: MemberId,
        each: u64,
        args: &[Vec<Vec<usize>>],
        inputs: &[Drawn],
        path: &str,
    ) -> Drawn {
        let member = module.member(id);
        let MemberKind::Stack(runs) = &member.kind else { return Drawn::NOTHING };
        let path = join(path, &member.name);
        let mut first = 0u64;
        let mut parts: Vec<Part> = Vec::new();
        for (run, args) in runs.iter().zip(args) {
            parts.push(self.part(run, args, each, first, inputs, &path));
            first = first.saturating_add(run.count);
        }
        if let [Part { frames, .. }] = parts.as_mut_slice()
            && let [frame] = frames.as_mut_slice()
        {
            frame.layers.clear();
        }
        let mut item = self.plain(node, Form::Stack(parts), "", &path);
        item.details = vec![path];
        // A table that the blocks share is drawn inside of them.
        let drawn: Vec<Drawn> = inputs.iter().filter(|v| !matches!(v, Drawn::Aside(_))).cloned().collect();
        self.add_with(&drawn, item)
    }

    /// The blocks of one run; equal neighbours in its cycle share a frame.
    fn part(
        &mut self,
        run: &Run,
        args: &[Vec<usize>],
        each: u64,
        first: u64,
        inputs: &[Drawn],
        path: &str,
    ) -> Part {
        let of = run.cycle.len().max(1) as u64;
        // Each with how many blocks of the cycle it represents, and the place of the first of them.
        let mut frames: Vec<(Frame, u64, u64)> = Vec::new();
        let mut last = None;
        for (i, block) in run.cycle.iter().enumerate() {
            let given = args.get(i).cloned().unwrap_or_default();
            // The same block with other masks or positions is not the same to a reader.
            let key = (*block, given.clone());
            if let (Some((_, times, _)), true) = (frames.last_mut(), last.as_ref() == Some(&key)) {
                *times += 1;
                continue;
            }
            last = Some(key);
            let index = first.saturating_add(i as u64);
            // `3` for a single block, `0..12` for equal ones, and `{0,…}` for one of a cycle, which comes back
            // later. In brackets, because more of the path follows.
            let path = match (run.count, of) {
                (1, _) => format!("{path}.{index}"),
                (n, 1) => format!("{path}.{index}..{}", first.saturating_add(n)),
                (_, _) => format!("{path}.{{{index},…}}"),
            };
            let steering = given.iter().filter_map(|i| inputs.get(*i).cloned());
            let frame = self.frame(*block, std::iter::once(Drawn::Start).chain(steering), &path);
            frames.push((frame, 1, i as u64));
        }
        let is_cycle = frames.len() > 1;
        let shared =
            if each > 1 { format!(", each run {} in a row", counted(each, "time")) } else { String::new() };
        let all = if is_cycle {
            // A cycle that ends in its middle is not repeated a whole number of times.
            match run.count % of {
                0 => times(run.count / of),
                _ => counted(run.count, "layer") + " in turn",
            }
        } else {
            times(run.count)
        };
        let all = if all.is_empty() && each > 1 { times(each) + ", shared" } else { all + &shared };
        let frames = frames.into_iter().map(|(frame, n, at)| {
            let own = if is_cycle { times(n) } else { String::new() };
            let layers = facts::layers(first, run.count, of, at..at.saturating_add(n));
            Frame { times: own, layers, ..frame }
        });
        Part { times: all, frames: frames.collect() }
    }

    fn frame(&mut self, id: ModuleId, arguments: impl Iterator<Item = Drawn>, path: &str) -> Frame {
        let block = self.model.graph.module(id);
        let arguments = arguments.map(|value| match value {
            // The only item of the model that blocks read is the encoder's output.
            Drawn::Item(..) => Drawn::Memory,
            Drawn::Aside(table) => {
                let mut table = Arc::unwrap_or_clone(table);
                table.notes.push("shared by the blocks".into());
                beside(table)
            }
            other @ (Drawn::Start | Drawn::Memory | Drawn::Side { .. }) => other,
        });
        // The items of a block are counted from 0, as they are a flow of their own.
        let columns = vec![Column::default()];
        let mut inside = Build { model: self.model, columns, current: 0, memory: None };
        let results = inside.body(block, arguments.collect(), path, false);
        let mut flow = inside.columns.pop().unwrap_or_default().flow;
        flow.end = results.iter().find_map(|value| match value {
            Drawn::Item(_, index) => Some(*index),
            Drawn::Start | Drawn::Memory | Drawn::Aside(_) | Drawn::Side { .. } => None,
        });
        sums::merge(&mut flow);
        Frame {
            title: block.name.clone(),
            times: String::new(),
            equations: block.doc.iter().map(|line| line.replace('`', "")).collect(),
            parameters: self.model.parameters.get(id.0).map(|p| p.all().total).unwrap_or_default(),
            path: path.to_owned(),
            layers: String::new(),
            flow,
        }
    }

    fn circle(&mut self, form: Form, node: &Node, inputs: &[Drawn], path: &str) -> Drawn {
        let label = if form == Form::Sum { "+" } else { "×" };
        let item = self.plain(node, form, label, path);
        self.add_with(inputs, item)
    }

    fn step(&mut self, node: &Node, label: &str, inputs: &[Drawn], path: &str) -> Drawn {
        // A step between masks or tables changes nothing that is drawn.
        if inputs.iter().all(|v| matches!(v, Drawn::Side { .. })) && !inputs.is_empty() {
            return inputs.first().cloned().unwrap_or(Drawn::NOTHING);
        }
        let item = self.plain(node, Form::Step, label, path);
        self.add_with(inputs, item)
    }

    fn plain(&self, node: &Node, form: Form, label: &str, path: &str) -> Item {
        Item {
            form,
            inputs: Vec::new(),
            is_aside: false,
            path: path.to_owned(),
            label: label.to_owned(),
            notes: Vec::new(),
            details: vec![label.to_owned()],
            place: node.span.and_then(|span| self.model.lines.of(span)),
        }
    }

    /// Adds an item to the column of its first input.
    fn add_with(&mut self, inputs: &[Drawn], mut item: Item) -> Drawn {
        // The first input is the residual stream; the encoder's output, from another column, comes after it.
        let column = inputs.iter().find_map(column_of).unwrap_or(self.current);
        let is_box = !matches!(item.form, Form::Sum | Form::Product);
        for value in inputs {
            let Some(from) = self.from(column, value) else { continue };
            // A box that reads a value twice gets one arrow; twice the same summand is not the same as once.
            if !(is_box && item.inputs.contains(&from)) {
                item.inputs.push(from);
            }
        }
        self.add(column, item)
    }

    fn from(&mut self, column: usize, value: &Drawn) -> Option<From> {
        match value {
            Drawn::Item(of, index) if *of == column => Some(From::Item(*index)),
            // The only item of another column that is used is the encoder's output.
            Drawn::Item(_, index) => {
                self.memory = Some(*index);
                Some(From::Memory)
            }
            Drawn::Memory => Some(From::Memory),
            Drawn::Start => Some(From::Start),
            Drawn::Aside(table) => {
                let Drawn::Item(_, index) = self.add(column, table.as_ref().clone()) else { return None };
                Some(From::Item(index))
            }
            Drawn::Side { .. } => None,
        }
    }
}

/// The value of an item that depends on no input of the flow.
fn beside(item: Item) -> Drawn {
    Drawn::Aside(Arc::new(Item { is_aside: true, ..item }))
}

fn column_of(value: &Drawn) -> Option<usize> {
    match value {
        Drawn::Item(column, _) => Some(*column),
        Drawn::Start | Drawn::Memory | Drawn::Aside(_) | Drawn::Side { .. } => None,
    }
}

fn notes_of(value: &Drawn) -> &[Note] {
    match value {
        Drawn::Side { notes, .. } => notes,
        Drawn::Item(..) | Drawn::Start | Drawn::Memory | Drawn::Aside(_) => &[],
    }
}

/// The shapes of inputs and outputs: `[B,T,768] → [B,T,768]`.
fn shapes(module: &Module, node: &Node) -> Option<String> {
    let output = node.outputs.first().map(|id| shape_text(&module.value(*id).ty))?;
    let input = node.inputs.first().map(|id| shape_text(&module.value(*id).ty));
    Some(input.map_or(output.clone(), |input| format!("{input} → {output}")))
}

fn times(n: u64) -> String {
    if n == 1 { String::new() } else { format!("× {}", number::exact(u128::from(n))) }
}
