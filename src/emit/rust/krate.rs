//! A whole crate around an emitted file, with a program that runs the model.

use trafoc_kernels::source;

use super::{Form, name};
use crate::emit::MARK;
use crate::emit::program::name::{one_line, shown};
use crate::ir::{DType, Layer, Member, MemberKind, Rows, Value, Verified};
use crate::lower::Bug;
use crate::source::SourceMap;

/// The version of burn that emitted code is written for.
pub const BURN: &str = "0.22.1";

/// The version of the crate of kernels.
pub const KERNELS: &str = "0.1.0";

/// The folder of the crate of kernels in an emitted crate.
pub const KERNELS_AT: &str = "kernels";

/// The files of the crate by path: `Cargo.toml`, `README.md`, `src/lib.rs`, `src/main.rs`, the model, and in
/// `kernels` the crate of kernels, unless the model is [`Form::Standalone`].
///
/// # Errors
/// A fault of trafoc: the text is not Rust.
pub fn krate(
    graph: &Verified,
    sources: &SourceMap,
    spec: &str,
    form: Form,
) -> Result<Vec<(String, String)>, Bug> {
    let module = name::file(&graph.name);
    let model = super::model(graph, sources, spec, form)?;
    let spec = shown(spec);
    let mut files = vec![
        ("Cargo.toml".to_owned(), manifest(&module, &spec, form)),
        ("README.md".to_owned(), readme(graph, &module, &spec, form)),
        ("src/lib.rs".to_owned(), library(graph, &module)),
        ("src/main.rs".to_owned(), program(graph, &module, &model.name)?),
        (format!("src/{module}.rs"), model.text),
    ];
    // A copy of their source: the kernels are on no registry, and a path on this machine means nothing on
    // another.
    if form == Form::Kernels {
        let copy = |(path, text): &(&str, &str)| (format!("{KERNELS_AT}/{path}"), (*text).to_owned());
        files.extend(source::FILES.iter().map(copy));
    }
    Ok(files)
}

fn manifest(module: &str, spec: &str, form: Form) -> String {
    let (kernels, members) = match form {
        Form::Kernels => (
            "[dependencies.trafoc-kernels]\n\
             path = \"kernels\"\n\
             features = [\"autodiff\", \"flex\", \"safetensors\"]\n\n",
            "members = [\"kernels\"]\n",
        ),
        Form::Standalone => ("", ""),
    };
    // `x86-v4` only adds kernels that are chosen at run time: the program also runs on processors without
    // AVX-512.
    format!(
        "# Emitted{MARK}{spec}.\n\
         [package]\n\
         name = \"{module}\"\n\
         version = \"0.1.0\"\n\
         edition = \"2024\"\n\
         rust-version = \"1.95\"\n\
         publish = false\n\
         \n\
         [dependencies.burn]\n\
         version = \"={BURN}\"\n\
         default-features = false\n\
         features = [\"std\", \"flex\", \"simd\", \"rayon\", \"x86-v4\", \"autodiff\", \"safetensors\"]\n\
         \n\
         {kernels}\
         # A workspace of its own, wherever it is put.\n\
         [workspace]\n\
         {members}"
    )
}

fn readme(graph: &Verified, module: &str, spec: &str, form: Form) -> String {
    let needs = match form {
        Form::Kernels => {
            "`kernels/` is the crate of the ops it calls, the same that trafoc itself calls. They depend on \
             [burn](https://burn.dev) and on crates that burn depends on itself."
        }
        Form::Standalone => "It depends on [burn](https://burn.dev) alone.",
    };
    let doc: Vec<String> = graph.root().doc.iter().map(|line| one_line(line)).collect();
    format!(
        "# {module}\n\n{}\n\n\
         Emitted by trafoc from `{spec}`. `src/{module}.rs` is the model. {needs}\n\n    \
         cargo run --release                        # fresh weights\n    \
         cargo run --release -- model.safetensors   # weights by the paths of fields, linear weights \
         `[out, in]`\n\n\
         Both run the model once on a sample and print its outputs.\n",
        doc.join("\n")
    )
}

fn library(graph: &Verified, module: &str) -> String {
    let doc: Vec<String> = graph.root().doc.iter().map(|line| format!("//! {}", one_line(line))).collect();
    format!("{}\n\npub mod {module};\n", doc.join("\n"))
}

/// The crate's program: it creates the model, loads weights if a file is given, runs it on a sample and
/// prints the outputs.
fn program(graph: &Verified, module: &str, model: &str) -> Result<String, Bug> {
    let root = graph.root();
    let length = sample_length(graph);
    let mut inputs = Vec::new();
    let mut given = Vec::new();
    for value in root.arguments() {
        given.push(match sample(value, length) {
            Some(tensor) => {
                inputs.push(format!("let {} = {tensor};", name::variable(&value.name)));
                name::variable(&value.name)
            }
            None => "None".to_owned(),
        });
    }
    let outputs: Vec<String> =
        root.results.iter().map(|id| name::variable(&root.value(*id).variable)).collect();
    let pattern =
        if let [one] = outputs.as_slice() { one.clone() } else { format!("({})", outputs.join(", ")) };
    let prints: Vec<String> =
        outputs.iter().map(|name| format!("show(\"{name}\", &{name}.dims(), {name}.to_data());")).collect();
    // Burn counts every tensor of the model, and trafoc none that training does not change.
    let is_buffer =
        |member: &Member| matches!(&member.kind, MemberKind::Layer(Layer::Param { trained: false, .. }));
    let has_buffers = graph.modules.iter().flat_map(|module| &module.members).any(is_buffer);
    let counted = if has_buffers { "parameters and buffers" } else { "parameters" };
    let text = format!(
        "//! Runs the model once on a sample, `cargo run --release`, or with weights,\n\
         //! `cargo run --release -- model.safetensors`.\n\
         use burn::prelude::*;\n\
         use {module}::{module}::{model};\n\
         fn main() -> Result<(), String> {{\n\
         let device = Device::flex();\n\
         device.seed(0);\n\
         let model = match std::env::args().nth(1) {{\n\
         Some(file) => {model}::load(file, &device)?,\n\
         None => {model}::new(&device),\n\
         }};\n\
         println!(\"{{}} {counted}\", model.num_params());\n\
         {}\n\
         let {pattern} = model.forward({});\n\
         {}\n\
         Ok(())\n\
         }}\n\
         /// Prints a tensor's shape and its first numbers.\n\
         fn show(name: &str, shape: &[usize], data: TensorData) {{\n\
         let first: Vec<f32> = data.iter::<f32>().take(6).collect();\n\
         println!(\"{{name}} {{shape:?}} {{first:?}} ...\");\n\
         }}\n",
        inputs.join("\n"),
        given.join(", "),
        prints.join("\n")
    );
    super::format(&text, &graph.name)
}

/// A few tokens, within the context and the vocabulary.
fn sample_length(graph: &Verified) -> u64 {
    let tables = graph.modules.iter().flat_map(|m| &m.members).filter_map(|member| match &member.kind {
        MemberKind::Layer(Layer::Embedding { of: Rows::Tokens, rows, .. }) => Some(rows.get()),
        MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => None,
    });
    // The ids are 0, 1, 2 and so on, so there may be no more of them than the smallest table has rows.
    // Eight positions are enough to see that the model runs.
    tables.chain([graph.context, 8]).min().unwrap_or(1).max(1)
}

/// A sample of an input; `None` for one that may be absent.
fn sample(value: &Value, length: u64) -> Option<String> {
    if value.ty.optional {
        return None;
    }
    let rank = value.ty.shape.len();
    let sizes: Vec<String> = value
        .ty
        .shape
        .iter()
        .enumerate()
        .map(|(i, dim)| match dim.constant() {
            Some(n) => n.to_string(),
            None if i == 0 => "1".to_owned(),
            None => length.to_string(),
        })
        .collect();
    // Of all integers only token ids have a position axis and cannot be absent.
    let is_ids = rank == 2;
    Some(match (value.ty.dtype, is_ids) {
        (DType::Int, true) => {
            format!("Tensor::<1, Int>::arange(0..{length}, &device).unsqueeze::<{rank}>()")
        }
        (DType::Int, false) => format!("Tensor::<{rank}, Int>::zeros([{}], &device)", sizes.join(", ")),
        (DType::Float, _) => format!("Tensor::<{rank}>::ones([{}], &device)", sizes.join(", ")),
        (DType::Bool, _) => format!("Tensor::<{rank}, Int>::zeros([{}], &device).bool()", sizes.join(", ")),
    })
}
