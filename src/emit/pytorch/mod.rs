//! The target for PyTorch: a program as a Python file that needs torch alone and reads like one written by
//! hand.
//!
//! One class a module, its members named like the module's, so that `load_state_dict` takes the weights of
//! trafoc's files by their names; stacks are `nn.ModuleList`s, whatever their length. What PyTorch has no
//! call for is in `runtime/`, Python files that Python's own tools check, of which a model's file has those
//! that it uses.
//!
//! Bodies are data (`syntax`) and only `printer` makes text of them, as `ruff format` leaves it; the text is
//! read token by token before it is returned (`check`). Nothing but the program, the spec's name and the
//! lines of the spec goes into it: no date, no version, no folder of this machine.

mod attention;
mod body;
mod causal;
pub mod check;
mod choice;
mod config;
mod file;
mod frequencies;
mod function;
mod grouped;
mod layer;
mod lengths;
mod module;
pub mod name;
mod number;
mod op;
mod printer;
pub mod project;
mod region;
mod root;
pub mod runtime;
mod statement;
mod syntax;
mod walk;

use std::collections::BTreeSet;

use super::MARK;
use super::program::constants::{ConstantId, Number, TableId};
use super::program::name::shown;
use super::program::program;
use crate::ir::{MemberId, ModuleId, Verified};
use crate::lower::Bug;
use crate::source::SourceMap;
use file::File;
use printer::Printer;
use runtime::{Imports, Runtime};
use syntax::{Expr, Item, Stmt};

/// Why a graph cannot be emitted for PyTorch, with its place in the spec; one sentence without a full stop.
pub fn refusal(graph: &Verified, sources: &SourceMap) -> Option<String> {
    graph.modules.iter().find_map(|module| {
        let at = module.members.iter().position(|member| name::is_unusable(&member.name))?;
        let applied = module.nodes.iter().find(|node| node.op.meaning().uses() == Some(MemberId(at)));
        let span = applied.and_then(|node| node.span).or(module.span);
        let place = span.map_or_else(String::new, |span| format!(" ({})", sources.place(span)));
        Some(format!(
            "an instance is called `{}`{place}, which PyTorch sets on every module, so the target `pytorch` cannot \
             keep the names of its weights; another name for it would do",
            module.members.get(at)?.name
        ))
    })
}

/// A model as a Python file, and what files around it must know.
#[derive(Clone, Debug)]
pub struct Model {
    /// The text of the file.
    pub text: String,
    /// The fields of its `Config` with their values, in order.
    pub sizes: Vec<(String, Number)>,
}

/// The model as one Python file. `spec` is the spec's path as the header names it.
///
/// # Errors
/// A fault of trafoc: the program breaks a rule, or the text is not Python.
pub fn source(graph: &Verified, sources: &SourceMap, spec: &str) -> Result<String, Bug> {
    model(graph, sources, spec).map(|model| model.text)
}

/// [`source`], with what files around it must know.
///
/// # Errors
/// A fault of trafoc: the program breaks a rule, or the text is not Python.
pub fn model(graph: &Verified, sources: &SourceMap, spec: &str) -> Result<Model, Bug> {
    let program = program(graph, sources)?;
    let runtime = Runtime::read();
    let file = File::new(&program, &runtime);
    let mut items = Vec::new();
    for id in (0..program.modules.len()).map(ModuleId) {
        if id == program.graph.root {
            items.extend(root::write(&file)?);
        } else {
            items.push(module::write(&file, id)?);
        }
    }
    let class = file.class_of(program.graph.root)?.to_owned();
    // A second name, by which programs import the model whatever its spec is called.
    items.push(Item::Stmt(Stmt::set("Model", class.as_str().into())));
    let mut needs = Needs::of(&items);
    if file.has_fast_rows() {
        // No call has this argument: the word asks for a region of the class.
        needs.keywords.insert(("Linear", "fast_rows".to_owned()));
    }
    // Only what is used: a whole runtime would be most of a small model's file, and linters report unused
    // code.
    let mut chosen = runtime.choose(&needs.runtime, &needs.keywords).map_err(Bug)?;
    let used = needs.constants.union(&file.mentioned()).copied().collect();
    let sizes = config::sizes(&file, &used);
    let mut head = vec![config::class(&file, &used)];
    head.extend(needs.tables.iter().filter_map(|id| config::table(&file, *id)));
    head.extend(chosen.texts.drain(..).map(Item::Runtime));
    head.append(&mut items);
    // `Config` and the definitions before the model refer to imports as well.
    let mut imports = chosen.imports;
    needs.imports.iter().chain(Needs::of(&head).imports.iter()).for_each(|name| import(name, &mut imports));
    let name = |expr: &Expr| {
        if let Expr::Constant(id) = expr {
            Some(format!("config.{}", file.constant(*id)))
        } else if let Expr::Table(id) = expr {
            Some(config::table_name(&file, *id))
        } else {
            None
        }
    };
    let mut printer = Printer::new(&name);
    printer.items(&head);
    let doc = root::introduction(&file).join("\n");
    let text =
        format!("{}\"\"\"{doc}\n\"\"\"\n\n{}\n\n{}", header(spec), written(&imports), printer.finish());
    check::check(&text)
        .map_err(|why| Bug(format!("the Python emitted for {} is wrong: {why}", shown(spec))))?;
    Ok(Model { text, sizes })
}

/// What a file refers to that it must define or import.
#[derive(Default)]
struct Needs {
    constants: BTreeSet<ConstantId>,
    tables: BTreeSet<TableId>,
    imports: BTreeSet<&'static str>,
    runtime: BTreeSet<&'static str>,
    /// What of the runtime is called with which arguments by name.
    keywords: BTreeSet<(&'static str, String)>,
}

impl Needs {
    fn of(items: &[Item]) -> Self {
        let mut needs = Self::default();
        for item in items {
            item.visit(&mut |expr| {
                if let Expr::Call(function, arguments) = expr
                    && let Expr::Runtime(name) = &**function
                {
                    let keywords = arguments.iter().filter_map(|argument| argument.name.clone());
                    needs.keywords.extend(keywords.map(|keyword| (*name, keyword)));
                }
                if let Expr::Constant(id) = expr {
                    needs.constants.insert(*id);
                } else if let Expr::Table(id) = expr {
                    needs.tables.insert(*id);
                } else if let Expr::Import(name) = expr {
                    needs.imports.insert(name);
                } else if let Expr::Runtime(name) = expr {
                    needs.runtime.insert(name);
                // Python has no literal for these: they are printed as names of `math`.
                } else if matches!(expr, Expr::Float(x) if !x.is_finite()) {
                    needs.imports.insert("math");
                }
            });
        }
        needs
    }
}

/// Adds the module that a name is imported from.
fn import(name: &str, imports: &mut Imports) {
    let (module, name) = match name {
        "math" | "torch" => (name, ""),
        "Tensor" | "nn" => ("torch", name),
        "F" => ("torch.nn", "functional as F"),
        "dataclass" => ("dataclasses", name),
        "partial" => ("functools", name),
        other => ("typing", other),
    };
    let entry = if name.is_empty() { module.to_owned() } else { format!("from {module}") };
    let names = imports.entry(entry).or_default();
    if !name.is_empty() {
        names.insert(name.to_owned());
    }
}

/// The imports: those of Python, then those of PyTorch.
fn written(imports: &Imports) -> String {
    let mut own = Vec::new();
    let mut torch = Vec::new();
    let mut all: Vec<(&String, &BTreeSet<String>)> = imports.iter().collect();
    // Whole modules come before names of modules.
    all.sort_by_key(|(entry, _)| (entry.starts_with("from "), entry.as_str().to_owned()));
    for (entry, names) in all {
        let line = match entry.strip_prefix("from ") {
            Some(module) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("from {module} import {}", names.join(", "))
            }
            None => format!("import {entry}"),
        };
        if entry.trim_start_matches("from ").starts_with("torch") { torch.push(line) } else { own.push(line) }
    }
    // With `annotations` Python does not evaluate types, so one may name a class that is defined below.
    let groups = [vec!["from __future__ import annotations".to_owned()], own, torch];
    let groups: Vec<String> =
        groups.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    format!("{}\n", groups.join("\n\n"))
}

/// The first line: which program wrote the file, and how to change it.
fn header(spec: &str) -> String {
    format!("# @generated{MARK}{} — edit the spec and build again.\n", number::harmless(&shown(spec)))
}
