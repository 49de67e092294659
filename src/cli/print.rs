//! `trafoc print`: the stages of a spec on its way to a model.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::{Command, Printed};
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::subject::SpecArgs;
use super::ui::Ui;
use crate::ir;
use crate::source::SourceMap;
use crate::spec::explain::flow;
use crate::syntax::tree::{Kind, Node};

/// The command line of `print`.
#[derive(Debug, Args)]
pub struct Print {
    /// tree (what is written, and where), spec (what it means) or graph (what is computed)
    #[arg(value_enum, value_name = "STAGE", hide_possible_values = true)]
    stage: Stage,
    #[command(flatten)]
    spec: SpecArgs,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// A stage of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Stage {
    /// What is written, with the place of each value
    Tree,
    /// What it means: every value with its path, including defaults
    Spec,
    /// What is computed: modules, ops, shapes
    Graph,
}

/// The data of `print` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// The values of the tree or of the spec, in order.
    Values(Vec<PrintedValue>),
    /// The text of the graph.
    Graph(Printed),
}

/// A value of a tree or of a spec.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PrintedValue {
    /// The path, in the form that `--set` takes.
    path: String,
    /// The value, as it would be written in one line.
    value: String,
    /// The place where the author wrote it, `file:line:column`; only for the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

impl PrintedValue {
    /// The value in one line: `decoder.layers = 12`.
    fn text(&self) -> String {
        format!("{} = {}", self.path, self.value)
    }
}

impl Command for Print {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the tree, the spec or the graph.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        match self.stage {
            Stage::Tree => {
                // Not compiled: the tree is what one looks at when the values in it are wrong.
                let (sources, tree) = self.spec.tree(ui)?;
                let lines = lines(&tree, Some(&sources));
                // One long list must not push the places of all other values off the screen.
                let width = lines.iter().map(|l| l.text().chars().count()).max().unwrap_or(0).min(60);
                let mut text = String::new();
                for line in &lines {
                    let _ = writeln!(text, "{:width$}  {}", line.text(), line.at.as_deref().unwrap_or(""));
                }
                Ok(Output::new(ui.page(text), Data::Values(lines)))
            }
            Stage::Spec => {
                let subject = self.spec.compile(ui)?;
                // Encoded from the typed values, so that every default is in it, which the author's tree
                // lacks.
                let tree = subject.spec.encode();
                let lines = lines(&tree, None);
                let text = lines.iter().map(|l| l.text() + "\n").collect::<String>();
                Ok(Output::new(ui.page(text), Data::Values(lines)))
            }
            Stage::Graph => {
                let subject = self.spec.compile(ui)?;
                let text = ir::print::print(&subject.graph, Some(&subject.sources));
                let data = Data::Graph(Printed { text: text.clone() });
                Ok(Output::new(text, data))
            }
        }
    }
}

/// Every scalar and list of a tree with its path, in order. Paths are in the form that `--set` takes.
fn lines(tree: &Node, sources: Option<&SourceMap>) -> Vec<PrintedValue> {
    let mut out = Vec::new();
    walk(tree, String::new(), &mut |path, node: &Node| {
        let at = sources.map(|sources| sources.place(node.span));
        out.push(PrintedValue { path, value: flow(node), at });
    });
    out
}

fn walk(node: &Node, path: String, visit: &mut impl FnMut(String, &Node)) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            for e in entries {
                // In a path of `--set` these would end the key.
                let key = if e.key.contains(['.', '=']) { format!("\"{}\"", e.key) } else { e.key.clone() };
                let below = if path.is_empty() { key } else { format!("{path}.{key}") };
                walk(&e.value, below, visit);
            }
        }
        // An empty map has no values to descend to, but says something itself: `global: {}` is a block of
        // defaults.
        Kind::Map(_) | Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) => visit(path, node),
    }
}
