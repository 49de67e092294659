//! A model explained: every module as annotated equations, from the whole to its parts.
//!
//! The steps are those of the graph, so the page shows what is actually computed. Each module is explained
//! once, at its first use; ops that only move numbers are explained in a list at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::layers::shape_text;
use super::parameters::{self, Parameters};
use super::{number, serialize_count};
use crate::diag::count::counted;
use crate::ir::paths::elements;
use crate::ir::print::{layer_text, op_text};
use crate::ir::{Graph, Layer, Member, MemberKind, Module, ModuleId, Node, ValueId, Verified, stack_len};
use crate::spec::explain::wrapped;

/// The content of the page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Lesson {
    /// The name of the model.
    pub model: String,
    /// The model first, then its modules, parents before children.
    pub sections: Vec<Section>,
    /// The ops that occur in the steps, with their descriptions, by name.
    pub words: BTreeMap<String, &'static str>,
}

/// One module of the model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Section {
    /// The path of its first use; empty for the model itself.
    pub path: String,
    /// The name of its type.
    pub r#type: String,
    /// What it computes, one formula or sentence per line.
    pub doc: Vec<String>,
    /// Its arguments with their shapes.
    pub takes: Vec<String>,
    /// The parameters of one instance.
    #[serde(serialize_with = "serialize_count")]
    pub parameters: u128,
    /// The number of instances at the place of its first use.
    #[serde(serialize_with = "serialize_count")]
    pub copies: u128,
    /// The equations of the module, in the order in which they are computed.
    pub steps: Vec<Step>,
}

/// One equation of a module: `q = query(x)`, with the shape of `q` and the weights of `query`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// The name of the result.
    pub value: String,
    /// The op and its inputs.
    pub is: String,
    /// The shape of the result.
    pub shape: String,
    /// The layer whose weights it uses: `linear 768 -> 3072 bias`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<String>,
    /// The number of parameters of that layer.
    #[serde(serialize_with = "serialize_count")]
    pub parameters: u128,
}

/// Explains a model. The length of the page depends on the number of different modules, not on the number
/// of layers.
pub fn lesson(graph: &Verified) -> Lesson {
    let mut course = Course {
        graph,
        parameters: parameters::of_modules(graph),
        met: BTreeSet::new(),
        sections: Vec::new(),
        words: BTreeMap::new(),
    };
    course.module(graph.root, "", 1);
    Lesson { model: graph.name.clone(), sections: course.sections, words: course.words }
}

struct Course<'a> {
    graph: &'a Graph,
    parameters: Vec<Parameters>,
    met: BTreeSet<ModuleId>,
    sections: Vec<Section>,
    words: BTreeMap<String, &'static str>,
}

impl Course<'_> {
    fn module(&mut self, id: ModuleId, path: &str, copies: u128) {
        // A module that is used in several places is explained only at the first.
        if !self.met.insert(id) {
            return;
        }
        let module = self.graph.module(id);
        let steps = module.nodes.iter().map(|node| self.step(module, node)).collect();
        self.sections.push(Section {
            path: path.to_owned(),
            r#type: module.name.clone(),
            doc: module.doc.clone(),
            takes: module
                .arguments()
                .iter()
                .map(|v| {
                    let absent = if v.ty.optional { ", may be absent" } else { "" };
                    format!("{} {}{absent}", v.variable, shape_text(&v.ty))
                })
                .collect(),
            parameters: self.count(id),
            copies,
            steps,
        });
        for member in &module.members {
            let below = if path.is_empty() { member.name.clone() } else { format!("{path}.{}", member.name) };
            match &member.kind {
                MemberKind::Layer(_) => {}
                MemberKind::Module(child) => self.module(*child, &below, 1),
                MemberKind::Stack(runs) => {
                    // Blocks of the same kind are counted in the whole stack, in all its runs: the page
                    // explains each kind once.
                    for (i, run) in runs.iter().enumerate() {
                        for child in &run.cycle {
                            let count = |id: ModuleId| -> u128 {
                                // A kind that an earlier run has is already explained.
                                let all = runs
                                    .iter()
                                    .skip(i)
                                    .flat_map(|r| r.cycle.iter().enumerate().map(move |c| (r, c)));
                                all.filter(|(_, (_, c))| **c == id)
                                    .map(|(r, (j, _))| u128::from(r.blocks(j)))
                                    .sum()
                            };
                            self.module(*child, &format!("{below}.*"), count(*child));
                        }
                    }
                }
            }
        }
    }

    fn count(&self, id: ModuleId) -> u128 {
        self.parameters.get(id.0).map_or(0, |p| p.all().total)
    }

    fn step(&mut self, module: &Module, node: &Node) -> Step {
        // The names that authors and parts give; those of the graph may have numbers.
        let name = |id: &ValueId| module.value(*id).variable.clone();
        let names = |ids: &[ValueId]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
        let (is, uses, parameters) = match node.op.meaning().member() {
            Some(id) => {
                let member = module.member(id);
                let (uses, parameters) = self.member(member);
                (format!("{}({})", member.name, names(&node.inputs)), Some(uses), parameters)
            }
            None => {
                let text = op_text(&node.op, module);
                let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
                self.words.insert(word.to_owned(), node.op.meaning().sentence());
                let mut arguments = names(&node.inputs);
                if !rest.is_empty() {
                    // A semicolon, because what follows are settings of the op and no values.
                    arguments =
                        if arguments.is_empty() { rest.to_owned() } else { format!("{arguments}; {rest}") };
                }
                (format!("{word}({arguments})"), None, 0)
            }
        };
        let shape = node.outputs.first().map(|id| shape_text(&module.value(*id).ty)).unwrap_or_default();
        Step { value: names(&node.outputs), is, shape, uses, parameters }
    }

    /// The description of a member, and its number of parameters.
    fn member(&self, member: &Member) -> (String, u128) {
        match &member.kind {
            MemberKind::Layer(layer) => (layer_text(layer), trained(layer)),
            MemberKind::Module(id) => (self.graph.module(*id).name.clone(), self.count(*id)),
            MemberKind::Stack(runs) => {
                let parameters =
                    runs.iter().flat_map(|run| run.cycle.iter().enumerate().map(move |c| (run, c)));
                let parameters = parameters.fold(0u128, |sum, (run, (i, id))| {
                    sum.saturating_add(self.count(*id).saturating_mul(u128::from(run.blocks(i))))
                });
                (format!("{} in a row", crate::diag::count::counted(stack_len(runs), "block")), parameters)
            }
        }
    }
}

fn trained(layer: &Layer) -> u128 {
    let parameters = layer.parameters().into_iter().filter(|p| p.trained);
    parameters.fold(0, |sum, p| sum.saturating_add(elements(&p.shape)))
}

/// The width of the page in columns.
const WIDTH: usize = 80;

/// Shows the page, with shapes and parameters to the right of the equations.
/// Shows the lesson as a page of at most 80 columns, or as many as `{:width$}` gives.
impl fmt::Display for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = f.width().unwrap_or(WIDTH);
        for (i, section) in self.sections.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            section.fmt(f)?;
        }
        if !self.words.is_empty() {
            writeln!(f, "\nWords")?;
            let widest = self.words.keys().map(|w| w.chars().count()).max().unwrap_or(0);
            for (word, meaning) in &self.words {
                // The four columns are the indent and the gap.
                let mut lines = wrapped(meaning, most.saturating_sub(widest).saturating_sub(4)).into_iter();
                writeln!(f, "  {word:widest$}  {}", lines.next().unwrap_or_default())?;
                for line in lines {
                    writeln!(f, "  {:widest$}  {line}", "")?;
                }
            }
        }
        writeln!(f, "\nB sequences, T tokens of each, P tokens before them in the cache, S tokens of a")?;
        writeln!(f, "source, N rows sent to an expert. A linear layer is y = x Wᵀ + b.")
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = f.width().unwrap_or(WIDTH);
        let title = if self.path.is_empty() {
            self.r#type.clone()
        } else {
            format!("{}: {}", self.path, self.r#type)
        };
        let each = counted(number::exact(self.parameters), "parameter");
        let parameters = match self.copies {
            1 => each,
            n => format!(
                "{each} × {} = {}",
                number::exact(n),
                number::exact(self.parameters.saturating_mul(n))
            ),
        };
        let gap =
            WIDTH.saturating_sub(title.chars().count()).saturating_sub(parameters.chars().count()).max(2);
        let line = format!("{title}{}{parameters}", " ".repeat(gap));
        if line.chars().count() > most {
            // Without room beside the title, the number of parameters is below it.
            writeln!(f, "{title}\n{parameters:>WIDTH$}")?;
        } else {
            writeln!(f, "{line}")?;
        }
        for line in self.doc.iter().flat_map(|line| wrapped(line, most.saturating_sub(2))) {
            // Formulas are marked as code for emitted documentation, which a terminal would show as
            // backticks.
            writeln!(f, "  {}", line.trim_matches('`'))?;
        }
        let takes = if self.takes.is_empty() { "nothing".into() } else { self.takes.join("; ") };
        write_folded(f, "  ", &format!("given {takes}"))?;
        let left = |s: &Step| format!("{} = {}", s.value, s.is);
        // A single long equation must not move all shapes to the right.
        let first =
            self.steps.iter().map(|s| left(s).chars().count()).filter(|n| *n <= 44).max().unwrap_or(0);
        let second = self.steps.iter().map(|s| s.shape.chars().count()).max().unwrap_or(0);
        for step in &self.steps {
            let mut uses = step.uses.clone().unwrap_or_default();
            if step.parameters > 0 {
                uses += &format!(": {}", number::exact(step.parameters));
            }
            let (equation, is_wide) = (left(step), |line: &str| line.trim_end().chars().count() > most);
            let line = format!("    {equation:first$}  {:second$}", step.shape);
            let whole = format!("{line}  {uses}");
            if !is_wide(&whole) {
                writeln!(f, "{}", whole.trim_end())?;
                continue;
            }
            // What has no room in the line goes below it: first the layer, then the shape as well.
            if is_wide(&line) {
                write_folded(f, "    ", &equation)?;
                writeln!(f, "    {:first$}  {}", "", step.shape)?;
            } else {
                writeln!(f, "{}", line.trim_end())?;
            }
            if !uses.is_empty() {
                write_folded(f, "        ", &uses)?;
            }
        }
        Ok(())
    }
}

/// Writes a text in lines of at most as many columns as the page has, each after an indent; those after the first are indented
/// further.
fn write_folded(f: &mut fmt::Formatter<'_>, indent: &str, text: &str) -> fmt::Result {
    for (i, line) in wrapped(text, f.width().unwrap_or(WIDTH).saturating_sub(indent.len()).saturating_sub(4))
        .into_iter()
        .enumerate()
    {
        writeln!(f, "{indent}{}{line}", if i == 0 { "" } else { "    " })?;
    }
    Ok(())
}
