//! What a picture of a model computes is what its graph computes.
//!
//! Both are read as formulas: the graph with the words of [`Picture`], which says of each op how it is drawn, and
//! the picture by following its arrows backwards from its results. Sums are compared by all of their operands,
//! since a circle may have several.

use std::collections::BTreeMap;

use trafoc::draw::model::outline;
use trafoc::draw::model::outline::{Flow, Form, From, Item, Outline};
use trafoc::ir::op::Op;
use trafoc::ir::op::meaning::{Picture, Site};
use trafoc::ir::{Graph, MemberKind, Module, Node};

use crate::compiled::specs;
use crate::front::Front;

/// Formulas by number; equal ones have the same.
#[derive(Default)]
struct Formulas {
    numbers: BTreeMap<(String, Vec<usize>), usize>,
    /// The operands of each sum.
    sums: BTreeMap<usize, Vec<usize>>,
}

impl Formulas {
    fn of(&mut self, name: impl Into<String>, inputs: Vec<usize>) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry((name.into(), inputs)).or_insert(next)
    }

    fn boxed(&mut self, name: impl Into<String>, inputs: impl IntoIterator<Item = usize>) -> usize {
        let mut once: Vec<usize> = Vec::new();
        for input in inputs {
            if !once.contains(&input) {
                once.push(input);
            }
        }
        self.of(name, once)
    }

    fn sum(&mut self, inputs: &[usize]) -> usize {
        let mut operands: Vec<usize> =
            inputs.iter().flat_map(|i| self.sums.get(i).cloned().unwrap_or_else(|| vec![*i])).collect();
        operands.sort_unstable();
        let sum = self.of("+", operands.clone());
        self.sums.insert(sum, operands);
        sum
    }

    /// A formula as text, for a failed test.
    fn text(&self, number: usize) -> String {
        let Some(((name, inputs), _)) = self.numbers.iter().find(|(_, n)| **n == number) else {
            return "nothing".to_owned();
        };
        let inputs: Vec<String> = inputs.iter().map(|i| self.text(*i)).collect();
        format!("{name}({})", inputs.join(", "))
    }
}

/// A value of a graph: a formula, or one that the picture tells in notes only.
#[derive(Clone, Copy)]
enum Value {
    Formula(usize),
    Side { is_bias: bool },
}

const NOTHING: Value = Value::Side { is_bias: false };

fn formulas(values: &[Value]) -> Vec<usize> {
    let formula = |value: &Value| match value {
        Value::Formula(number) => Some(*number),
        Value::Side { .. } => None,
    };
    values.iter().filter_map(formula).collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The results of a module as formulas.
fn graph(
    all: &mut Formulas,
    graph: &Graph,
    module: &Module,
    given: &[Value],
    path: &str,
    opens: bool,
) -> Vec<Value> {
    let mut values = given.to_vec();
    values.resize(module.values.len(), NOTHING);
    for node in &module.nodes {
        let inputs: Vec<Value> = node.inputs.iter().map(|id| values[id.0]).collect();
        let outputs = self::node(all, graph, module, node, &inputs, path, opens);
        for (i, id) in node.outputs.iter().enumerate() {
            if let Some(value) = outputs.get(i).or(outputs.first()) {
                values[id.0] = *value;
            }
        }
    }
    module.results.iter().map(|id| values[id.0]).collect()
}

fn node(
    all: &mut Formulas,
    whole: &Graph,
    module: &Module,
    node: &Node,
    inputs: &[Value],
    path: &str,
    opens: bool,
) -> Vec<Value> {
    let read = formulas(inputs);
    let only_notes = !inputs.is_empty() && read.is_empty();
    let one = match node.op.meaning().picture(&Site { node, module, measured: &[] }) {
        Picture::Pass => inputs.first().copied().unwrap_or(NOTHING),
        Picture::Notes { is_bias, .. } => Value::Side { is_bias },
        Picture::NotesOfInputs => NOTHING,
        Picture::Step(_) if only_notes => inputs[0],
        Picture::Step(label) => Value::Formula(all.boxed(label, read)),
        Picture::Sum => Value::Formula(all.sum(&read)),
        Picture::Product => Value::Formula(all.of("×", read)),
        Picture::Box { aside, .. } => {
            let drawn = inputs.get(aside..).map(formulas).unwrap_or_default();
            Value::Formula(all.boxed(path, drawn))
        }
        Picture::Member => {
            let member = module.member(node.op.meaning().member().unwrap());
            let path = join(path, &member.name);
            match (&member.kind, &node.op) {
                (MemberKind::Layer(_), _)
                    if matches!(inputs.first(), Some(Value::Side { is_bias: true })) =>
                {
                    inputs[0]
                }
                (MemberKind::Layer(_), _) => Value::Formula(all.boxed(path, read)),
                (MemberKind::Module(id), _) if opens => {
                    return graph(all, whole, whole.module(*id), inputs, &path, true);
                }
                (MemberKind::Module(_), _) => Value::Formula(all.boxed(path, read)),
                (MemberKind::Stack(runs), Op::Scan { args, .. }) => {
                    let start = Value::Formula(all.of("start", Vec::new()));
                    let mut stack = vec![read[0]];
                    for (run, args) in runs.iter().zip(args) {
                        let blocks = run.cycle.iter().zip(args).map(|(block, args)| {
                            let given: Vec<Value> =
                                std::iter::once(start).chain(args.iter().map(|i| inputs[*i])).collect();
                            formulas(&graph(all, whole, whole.module(*block), &given, "", false))[0]
                        });
                        let mut blocks: Vec<usize> = blocks.collect();
                        blocks.dedup();
                        stack.extend(blocks);
                    }
                    Value::Formula(all.of(path, stack))
                }
                (MemberKind::Stack(_), _) => panic!("a stack that is not run: {path}"),
            }
        }
    };
    vec![one; node.outputs.len()]
}

/// What a picture shows of a flow: the formulas of all its items. `block` is the path of the block that it is the
/// content of.
fn picture(all: &mut Formulas, flow: &Flow, memory: Option<usize>, block: &str) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for item in &flow.items {
        let start = all.of("start", Vec::new());
        let inputs = item.inputs.iter().map(|from| match from {
            From::Item(i) => found[*i],
            From::Start => start,
            From::Memory => memory.expect("an encoder's output"),
        });
        let inputs: Vec<usize> = inputs.collect();
        let formula = formula(all, item, inputs, memory, block);
        found.push(formula);
    }
    found
}

fn formula(
    all: &mut Formulas,
    item: &Item,
    mut inputs: Vec<usize>,
    memory: Option<usize>,
    block: &str,
) -> usize {
    let path = item.path.strip_prefix(block).map_or(&*item.path, |rest| rest.trim_start_matches('.'));
    match &item.form {
        Form::Input => all.of(item.label.clone(), inputs),
        Form::Output => all.of("outputs", inputs),
        Form::Box(_) => all.of(path, inputs),
        Form::Step => all.of(item.label.clone(), inputs),
        Form::Sum => all.sum(&inputs),
        Form::Product => all.of("×", inputs),
        Form::Stack(parts) => {
            inputs.truncate(1);
            for part in parts {
                let frames = part.frames.iter().map(|frame| {
                    let found = picture(all, &frame.flow, memory, &frame.path);
                    frame.flow.end.map_or_else(|| all.of("start", Vec::new()), |end| found[end])
                });
                let mut frames: Vec<usize> = frames.collect();
                frames.dedup();
                inputs.extend(frames);
            }
            all.of(path, inputs)
        }
    }
}

/// What differs between a picture and its graph.
fn difference(whole: &Graph, outline: &Outline) -> Option<String> {
    let mut all = Formulas::default();
    let labels: Vec<&Item> = outline
        .columns
        .iter()
        .flat_map(|column| column.flow.items.iter().filter(|item| item.form == Form::Input))
        .collect();
    let root = whole.root();
    let arguments = root.arguments().iter().map(|value| {
        let is_drawn = labels.iter().any(|item| item.path == value.name);
        if is_drawn { Value::Formula(all.of(value.name.clone(), Vec::new())) } else { NOTHING }
    });
    let arguments: Vec<Value> = arguments.collect();
    let results = formulas(&graph(&mut all, whole, root, &arguments, "", true));
    let wanted = all.boxed("outputs", results);
    let mut memory = None;
    for column in &outline.columns {
        let found = picture(&mut all, &column.flow, memory, "");
        memory = column.flow.end.map(|end| found[end]);
    }
    let found = memory.unwrap();
    (found != wanted).then(|| format!("drawn   {}\ncompute {}", all.text(found), all.text(wanted)))
}

/// Models whose sums, tables and heads have been drawn wrongly.
pub fn own() -> Vec<(&'static str, String)> {
    let block = |equations: &str, parts: &str| {
        let equations: String = equations.lines().map(|line| format!("    {line}\n")).collect();
        format!(
            "name: m\nvocab: 8\ncontext: 16\nd_model: 48\n{parts}decoder:\n  layers: 2\n  attention: {{heads: 4}}\n  block: |\n{equations}head: lm\n"
        )
    };
    let scaled = "parts:\n  scaled: |\n    table = param[table](d_model, shared: true)\n    \
                  linear[down](table * x, d_model)\n";
    let translate = format!(
        "name: m\nvocab: 8\ncontext: 16\nd_model: 48\n{scaled}encoder: {{layers: 2, attention: {{heads: 4}}}}\n\
         decoder:\n  layers: 2\n  attention: {{heads: 4}}\n  block: |\n    x = x + cross(norm(x), memory)\n    \
         x = x + scaled(norm(x))\nhead: translate\n"
    );
    vec![
        // A sum is used twice, as an operand of a sum and by something else.
        ("sums", block("c = x + attention(x)\nd = norm(c + ffn(x))\nx = c + d", "")),
        ("reuse", block("y = x + attention(norm(x))\nz = y + ffn(norm(x))\nx = norm(z) + y", "")),
        ("result", block("a = x + attention(x)\nx = a + ffn(a)", "")),
        // The same summand twice, next to each other or not.
        ("twice", block("h = norm(x + attention(x))\nx = h + h", "")),
        ("between", block("h = norm(x + attention(x))\nx = h + x + h", "")),
        ("square", block("h = norm(x + attention(x))\nx = x + h * h", "")),
        // A table that all blocks share.
        ("shared", block("x = x + attention(norm(x))\nx = x + scaled(norm(x)) + scaled[two](x)", scaled)),
        ("translate", translate),
    ]
}

#[test]
fn a_picture_shows_what_the_graph_computes() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut check = |name: &str, front: &Front| {
        let Some(graph) = &front.compilation.graph else { return };
        seen += 1;
        if let Some(text) = difference(graph, &outline(graph, &front.sources)) {
            wrong.push(format!("{name}:\n{text}"));
        }
    };
    for folder in ["specs", "tests/good"] {
        for (name, path) in specs(folder) {
            check(&name, &Front::of_file(&path));
        }
    }
    for (name, text) in own() {
        let front = Front::of_text(&format!("{name}.yaml"), &text, "specs");
        assert!(front.compilation.graph.is_some(), "{name}\n{}", front.rendered());
        check(name, &front);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(seen > 100, "{seen}");
}

/// Two heads that read different positions say which.
#[test]
fn a_step_says_which_positions_go_on() {
    let text = "name: m\nd_model: 16\nembed: {patches: {image: 16, size: 4, channels: 3, distillation_token: true, registers: 4}}\n\
                encoder: {layers: 1, attention: {heads: 4}}\nhead: {classify: {classes: 10, distilled: true}}\n";
    let front = Front::of_text("m.yaml", text, "specs");
    let found = outline(front.compilation.graph.as_ref().unwrap(), &front.sources);
    let items = &found.columns[0].flow.items;
    let steps: Vec<&str> = items.iter().filter(|i| i.form == Form::Step).map(|i| i.label.as_str()).collect();
    let positions: Vec<&str> = steps.into_iter().filter(|label| label.contains("position")).collect();
    assert_eq!(
        positions,
        ["first 2 positions", "without the first 2 positions", "first position", "position 2"]
    );
}
