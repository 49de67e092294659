//! The target for burn: a program as a Rust file that reads like one written by hand.
//!
//! One struct a module, its fields named like the module's members, so that weights are found by their
//! paths; stacks are `Vec`s, whatever their length. The code makes the same calls in the same order as
//! the interpreter, of burn and of the same crate of kernels, so both compute the same bits.
//!
//! Bodies are `Code`: text that knows which constants, imports and kernels it names, so the head of the file
//! follows from its finished body. Items are made with the `codegen` crate; the text must parse with `syn`
//! and is laid out by `prettyplease`. Nothing but the program, the spec's name and the lines of the spec goes
//! into it: no date, no version, no folder of this machine.

mod attention;
mod body;
mod choice;
mod code;
mod file;
mod function;
mod kernel;
mod krate;
mod layer;
mod linear_init;
mod module;
pub mod name;
mod number;
mod op;
mod pointwise;
mod root;
mod statement;

use std::collections::{BTreeMap, BTreeSet};

pub use krate::{BURN, KERNELS, KERNELS_AT, krate};

use super::MARK;
use super::program::constants::{ConstantId, Number, TableId, grouped};
use super::program::name::shown;
use super::program::{Program, program};
use crate::ir::{ModuleId, Verified};
use crate::lower::Bug;
use crate::source::SourceMap;
use code::{Code, Helper, Item, code};
use kernel::Library;
use number::float;

/// Where a file has its kernels from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From the crate of kernels, which the interpreter calls too.
    Kernels,
    /// From a module at its end, so that it needs burn alone. There the kernels have a form that is the same
    /// on every backend and computes the same numbers up to rounding.
    Standalone,
}

/// The model as one Rust file. `spec` is the spec's path as the header names it.
///
/// # Errors
/// A fault of trafoc: the program breaks a rule, or the text is not Rust.
pub fn source(graph: &Verified, sources: &SourceMap, spec: &str, form: Form) -> Result<String, Bug> {
    Ok(model(graph, sources, spec, form)?.text)
}

/// A model as a file.
struct Model {
    /// The text of the whole file.
    text: String,
    /// The struct of the model itself.
    name: String,
}

fn model(graph: &Verified, sources: &SourceMap, spec: &str, form: Form) -> Result<Model, Bug> {
    let program = program(&graph.fused(), sources)?;
    let library = Library::read()?;
    let file = file::File::new(&program, &library);
    let mut items = Vec::new();
    for id in (0..program.modules.len()).map(ModuleId) {
        let is_model = id == program.graph.root;
        items.push(if is_model { root::write(&file)? } else { module::write(&file, id)? });
    }
    let mut items = Code::all(items);
    // Only those that are called, because a function that nothing calls is a warning.
    let wanted: Vec<Helper> = [Helper::Linear, Helper::LinearNoBias]
        .into_iter()
        .filter(|helper| items.items().contains(&Item::Helper(*helper)))
        .collect();
    for helper in &wanted {
        items = items.join(layer::definition(*helper, wanted.len() > 1, &file));
    }
    // After the helpers, which refer to kernels and numbers of their own.
    let needs = Needs::of(&items);
    if let Some(unknown) = needs.kernels.iter().find(|name| !library.has(name)) {
        return Err(Bug(format!("the emitted code calls {unknown}, which is not a kernel")));
    }
    let from = match form {
        Form::Kernels => kernel::CRATE,
        Form::Standalone => "self::kernels",
    };
    let text = code![
        format!("//! {}\n", introduction(&program, form)),
        uses(&needs.imports(from)),
        constants(&program, &needs, &file),
        items
    ];
    let tree = parse(&code::text(&text)?, spec)?;
    let mut out = header(spec);
    out.push_str(&spaced(&prettyplease::unparse(&tree)));
    // As text, because neither `syn` nor prettyplease keeps the comments of the kernels.
    if form == Form::Standalone {
        out.push('\n');
        out.push_str(&library.module(&needs.kernels));
    }
    // Once more, as the header and the kernels were added as text.
    parse(&out, spec)?;
    Ok(Model { text: out, name: file.type_of(program.graph.root)?.to_owned() })
}

/// What a text refers to that the file must define or import.
#[derive(Default)]
struct Needs {
    constants: BTreeSet<ConstantId>,
    tables: BTreeSet<TableId>,
    imports: BTreeSet<&'static str>,
    kernels: BTreeSet<&'static str>,
}

impl Needs {
    fn of(code: &Code) -> Self {
        let mut needs = Self::default();
        for item in code.items() {
            match item {
                Item::Constant(id) => needs.constants.insert(*id),
                Item::Table(id) => needs.tables.insert(*id),
                Item::Import(path) => needs.imports.insert(path),
                Item::Kernel(name) => needs.kernels.insert(name),
                Item::Helper(_) | Item::Function(_) => false,
            };
        }
        needs
    }

    /// Every path to import; kernels are those of `from`.
    fn imports(&self, from: &str) -> BTreeSet<String> {
        let kernels = self.kernels.iter().map(|name| format!("{from}::{name}"));
        kernels.chain(self.imports.iter().map(|path| (*path).to_owned())).collect()
    }
}

/// The definitions of the numbers that a text refers to.
fn constants(program: &Program, needs: &Needs, file: &file::File<'_>) -> Code {
    let all = &program.constants;
    let mut definitions = Vec::new();
    // A formula refers to other constants, which need a definition too.
    for id in all.with_formulas(&needs.constants) {
        let Some(constant) = all.all.get(id.0) else { continue };
        let (ty, number) = match constant.value {
            // The type of burn's shapes and indices.
            Number::Int(n) => ("usize", grouped(n)),
            Number::Float(x) => ("f64", float(x)),
        };
        let value = constant.formula.as_ref().map_or_else(|| Code::text(number), |size| file.size(size));
        let head = format!("/// {}\npub const {}: {ty} = ", constant.doc, name::constant(&constant.name));
        definitions.push(code![head, value, ";\n"]);
    }
    for id in &needs.tables {
        let Some(table) = all.tables.get(id.0) else { continue };
        let list: Vec<String> = table.values.iter().map(|x| float(*x)).collect();
        definitions.push(Code::text(format!(
            "/// {}\npub const {}: [f64; {}] = [{}];\n",
            table.doc,
            name::constant(&table.name),
            list.len(),
            list.join(", ")
        )));
    }
    Code::all(definitions)
}

fn parse(text: &str, spec: &str) -> Result<syn::File, Bug> {
    syn::parse_file(text).map_err(|error| Bug(format!("the Rust emitted for {spec} does not parse: {error}")))
}

/// Lays out a short text of ours.
fn format(text: &str, spec: &str) -> Result<String, Bug> {
    Ok(spaced(&prettyplease::unparse(&parse(text, spec)?)))
}

/// The first line: which program wrote the file, and how to change it.
fn header(spec: &str) -> String {
    let spec = shown(spec);
    format!("// @generated{MARK}{spec} — edit the spec and build again.\n")
}

fn introduction(program: &Program, form: Form) -> String {
    let lines = program.model().map_or_else(Vec::new, |model| model.doc.clone());
    let letters = "Shapes: `B` sequences, `T` tokens";
    let more = match (program.graph.decodes, program.reads_source()) {
        (true, true) => ", `S` tokens of the source, `P` tokens in the cache.",
        (true, false) => ", `P` tokens in the cache.",
        (false, true) => ", `S` tokens of the source.",
        (false, false) => ".",
    };
    let needs = match form {
        Form::Kernels => format!("It needs `burn` {BURN} and `trafoc-kernels` {KERNELS}."),
        Form::Standalone => format!(
            "It needs `burn` {BURN} alone. The module `kernels` at the end has the ops that are more than one call\n\
             //! of burn, in their simplest form; they compute the same numbers as trafoc up to rounding."
        ),
    };
    let mut text = format!("{}\n//! {needs}\n//! {letters}{more}", lines.join("\n//! "));
    if program.graph.root().arguments().iter().any(|value| value.name.ends_with("mask")) {
        text += "\n//! Masks have 1 for tokens and 0 for padding; those of `Bool` are true where a key is hidden.";
    }
    text
}

/// The imports, those of one module together.
fn uses(imports: &BTreeSet<String>) -> String {
    // The prelude has `Tensor`, `Device`, `Module` and `nn`, which every file names.
    let mut by_parent: BTreeMap<&str, Vec<&str>> = BTreeMap::from([("burn::prelude", vec!["*"])]);
    for path in imports {
        let (parent, name) = path.rsplit_once("::").unwrap_or(("", path));
        by_parent.entry(parent).or_default().push(name);
    }
    let line = |(parent, names): (&str, Vec<&str>)| match names.as_slice() {
        [one] => format!("use {parent}::{one};\n"),
        several => format!("use {parent}::{{{}}};\n", several.join(", ")),
    };
    by_parent.into_iter().map(line).collect()
}

/// Puts an empty line, which prettyplease does not write, between methods and before every item, except
/// between constants and between imports.
fn spaced(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_attached = |line: &str| line.starts_with("///") || line.starts_with("#[");
    let mut out = String::new();
    let mut before = "";
    let mut kind_before = "";
    for (i, line) in lines.iter().enumerate() {
        let top = !line.is_empty() && !line.starts_with([' ', '}', ')', ']']) && !line.starts_with("//!");
        let begins = top && !is_attached(before);
        // Documentation and attributes belong to the item below them, which says of what kind it is.
        let head = lines.iter().skip(i).find(|l| !is_attached(l)).copied().unwrap_or("");
        let kind = head.split_whitespace().find(|w| *w != "pub").unwrap_or("");
        let is_dense = kind == kind_before && (kind == "const" || kind == "use");
        let is_method = before == "    }" && !line.is_empty() && *line != "}";
        if !before.is_empty() && ((begins && !is_dense) || is_method) {
            out.push('\n');
        }
        if begins {
            kind_before = kind;
        }
        out.push_str(line);
        out.push('\n');
        before = line;
    }
    out
}
