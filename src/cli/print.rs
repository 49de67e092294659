//! `trafoc print`: the stages of a spec on its way to a model.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value as Json, json};

use super::subject::SpecArgs;
use super::ui::{Failure, FormatArg, Output, Ui};
use crate::ir;
use crate::source::SourceMap;
use crate::spec::explain::flow;
use crate::syntax::tree::{Kind, Node};

/// The arguments of `print`.
#[derive(Debug, Args)]
pub struct Print {
    /// tree (what is written, and where), spec (what it means) or graph (what is computed)
    #[arg(value_enum, value_name = "STAGE", hide_possible_values = true)]
    stage: Stage,
    #[command(flatten)]
    spec: SpecArgs,
    /// The output format.
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

impl Print {
    /// Prints a stage.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        match self.stage {
            Stage::Tree => {
                let (sources, tree) = self.spec.tree(ui)?;
                let lines = lines(&tree);
                let width = lines.iter().map(|l| l.text().chars().count()).max().unwrap_or(0).min(60);
                let mut text = String::new();
                for line in &lines {
                    let _ = writeln!(text, "{:width$}  {}", line.text(), sources.place(line.node.span));
                }
                Output::new(text, lines.iter().map(|l| l.data(Some(&sources))).collect::<Vec<_>>())
            }
            Stage::Spec => {
                let subject = self.spec.compile(ui)?;
                let tree = subject.spec.encode();
                let lines = lines(&tree);
                let text = lines.iter().map(|l| l.text() + "\n").collect::<String>();
                Output::new(text, lines.iter().map(|l| l.data(None)).collect::<Vec<_>>())
            }
            Stage::Graph => {
                let subject = self.spec.compile(ui)?;
                let text = ir::print::print(&subject.graph, Some(&subject.sources));
                let data = json!({ "text": text });
                Output::new(text, data)
            }
        }
    }
}

/// A value with its path.
struct Line<'n> {
    path: String,
    node: &'n Node,
}

impl Line<'_> {
    /// `decoder.layers = 12`
    fn text(&self) -> String {
        format!("{} = {}", self.path, flow(self.node))
    }

    fn data(&self, sources: Option<&SourceMap>) -> Json {
        match sources {
            Some(sources) => {
                json!({ "path": self.path, "value": flow(self.node), "at": sources.place(self.node.span) })
            }
            None => json!({ "path": self.path, "value": flow(self.node) }),
        }
    }
}

/// Every scalar and list of a tree with its path, in order. Paths are in the form that `--set` takes.
fn lines(tree: &Node) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    walk(tree, String::new(), &mut out);
    out
}

fn walk<'n>(node: &'n Node, path: String, out: &mut Vec<Line<'n>>) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            for e in entries {
                let key = if e.key.contains(['.', '=']) { format!("\"{}\"", e.key) } else { e.key.clone() };
                let below = if path.is_empty() { key } else { format!("{path}.{key}") };
                walk(&e.value, below, out);
            }
        }
        Kind::Map(_) | Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) => {
            out.push(Line { path, node });
        }
    }
}
