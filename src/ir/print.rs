//! The graph as text: one line per op, with shape and origin. It is used in snapshots and bug reports.

use std::fmt::{self, Write as _};

use super::text::flag;
use super::{DType, Graph, Layer, MemberKind, Module, Op, Type};
use crate::source::SourceMap;

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Float => "float",
            DType::Int => "int",
            DType::Bool => "bool",
        })
    }
}

/// `float[B,T,768]`, followed by `?` if the value may be absent.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, dim) in self.shape.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str(if self.optional { "]?" } else { "]" })
    }
}

/// The whole graph, with the root last. With `sources`, each node that has an origin shows its line.
pub fn print(graph: &Graph, sources: Option<&SourceMap>) -> String {
    let mut out = String::new();
    // Writing to a `String` cannot fail, here and below.
    let _ = writeln!(
        out,
        "graph {} context={}{}",
        graph.name,
        graph.context,
        if graph.decodes { " decodes" } else { "" }
    );
    for module in &graph.modules {
        out.push('\n');
        print_module(&mut out, graph, module, sources);
    }
    out
}

fn print_module(out: &mut String, graph: &Graph, module: &Module, sources: Option<&SourceMap>) {
    let args: Vec<String> = module.arguments().iter().map(|v| format!("{}: {}", v.name, v.ty)).collect();
    let _ = writeln!(out, "module {}({})", module.name, args.join(", "));
    for line in &module.doc {
        let _ = writeln!(out, "  # {line}");
    }
    for member in &module.members {
        let kind = match &member.kind {
            MemberKind::Layer(layer) => layer_text(layer),
            MemberKind::Module(id) => graph.module(*id).name.clone(),
            MemberKind::Stack(runs) => {
                let runs: Vec<String> = runs
                    .iter()
                    .map(|run| {
                        let cycle: Vec<&str> =
                            run.cycle.iter().map(|id| graph.module(*id).name.as_str()).collect();
                        format!("{} x {}", run.count, cycle.join(", "))
                    })
                    .collect();
                format!("[{}]", runs.join("; "))
            }
        };
        let _ = writeln!(out, "  let {}: {kind}", member.name);
    }
    for node in &module.nodes {
        let outputs: Vec<String> =
            node.outputs.iter().map(|id| format!("%{}", module.value(*id).name)).collect();
        let types: Vec<String> = node.outputs.iter().map(|id| module.value(*id).ty.to_string()).collect();
        // Values are marked by `%` and members by `self.`, since both may have one name.
        let inputs: String = node.inputs.iter().map(|id| format!(" %{}", module.value(*id).name)).collect();
        let mut line = format!(
            "  {} = {}{inputs} : {}",
            outputs.join(", "),
            op_text(&node.op, module),
            types.join(", ")
        );
        if let (Some(span), Some(sources)) = (node.span, sources) {
            let _ = write!(line, "  // {}", sources.place(span));
        }
        let _ = writeln!(out, "{line}");
    }
    let results: Vec<String> =
        module.results.iter().map(|id| format!("%{}", module.value(*id).name)).collect();
    let _ = writeln!(out, "  return {}", results.join(", "));
}

/// A layer on one line: `linear 768 -> 3072 bias`.
pub fn layer_text(layer: &Layer) -> String {
    match layer {
        Layer::Linear { input, output, bias, .. } => {
            format!("linear {input} -> {output}{}", flag(*bias, " bias"))
        }
        Layer::Embedding { rows, dim, padding, .. } => {
            let padding = padding.map(|p| format!(" padding={p}")).unwrap_or_default();
            format!("embedding {rows} x {dim}{padding}")
        }
        Layer::LayerNorm { dim, eps, affine, bias, unit_offset } => format!(
            "layer_norm {dim} eps={eps:?}{}{}{}",
            flag(*affine, " weight"),
            flag(*bias, " bias"),
            flag(*unit_offset, " unit_offset")
        ),
        Layer::RmsNorm { dim, eps, affine, unit_offset } => {
            format!(
                "rms_norm {dim} eps={eps:?}{}{}",
                flag(*affine, " weight"),
                flag(*unit_offset, " unit_offset")
            )
        }
        Layer::Patches { channels, dim, size, bias, .. } => {
            format!("patches {channels}x{size}x{size} -> {dim}{}", flag(*bias, " bias"))
        }
        Layer::Param { shape, trained, .. } => {
            let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
            format!("{} [{}]", if *trained { "param" } else { "buffer" }, shape.join(","))
        }
    }
}

/// An op on one line, followed by its attributes: `attention scale=0.125 causal`.
pub fn op_text(op: &Op, module: &Module) -> String {
    op.meaning().text(module)
}
