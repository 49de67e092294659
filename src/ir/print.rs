//! The graph as text: one line an op, with shape and origin. Snapshots and bug reports are this.

use std::fmt::{self, Write as _};

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

/// `float[B,T,768]`, with `?` after it when it may be absent.
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

/// The whole graph, the root last. With `sources`, each node that has an origin names its line.
pub fn print(graph: &Graph, sources: Option<&SourceMap>) -> String {
    let mut out = String::new();
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

/// A layer in a line: `linear 768 → 3072 bias`.
pub fn layer_text(layer: &Layer) -> String {
    let flag = |on: bool, text: &'static str| if on { text } else { "" };
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
            let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
            format!("{} [{}]", if *trained { "param" } else { "buffer" }, shape.join(","))
        }
    }
}

/// An op in a line, its attributes in words: `attention scale=0.125 causal`.
pub fn op_text(op: &Op, module: &Module) -> String {
    let member = |id: &super::MemberId| module.members.get(id.0).map_or("?", |m| m.name.as_str());
    let optional =
        |name: &str, value: Option<String>| value.map(|v| format!(" {name}={v}")).unwrap_or_default();
    match op {
        Op::Layer { member: id } => format!("self.{}", member(id)),
        Op::Weight { path } => format!("weight {} level(s) down", path.len()),
        Op::Call { member: id } => format!("call self.{}", member(id)),
        Op::Scan { member: id, each, args } => {
            let each = if *each == 1 { String::new() } else { format!(" each={each}") };
            format!("scan self.{}{each} args={args:?}", member(id))
        }
        Op::Experts { member: id, active } => format!("experts self.{} active={active}", member(id)),
        Op::Positions { along, offset } => format!("positions {along:?} offset={offset}"),
        Op::Sinusoid { dim, base, layout } => format!("sinusoid dim={dim} base={base:?} {layout:?}"),
        Op::RotaryTable { along, rotary } => {
            let long = rotary.long.as_ref().map(|l| format!("{}", l.from));
            format!(
                "rotary_table {along:?} pairs={} first={:?} last={:?} magnitude={:?}{}",
                rotary.pairs(),
                rotary.inverse_frequency(0),
                rotary.inverse_frequency(rotary.pairs().saturating_sub(1)),
                rotary.magnitude,
                optional("long_from", long)
            )
        }
        Op::Mask { queries, keys, rule } => format!(
            "mask {queries:?} {keys:?}{}{}{}{}",
            if rule.causal { " causal" } else { "" },
            optional("window", rule.window.map(|w| format!("{},{}", w.left, w.right))),
            optional("chunk", rule.chunk.map(|n| n.to_string())),
            optional("prefix", rule.prefix.map(|n| n.to_string())),
        ),
        Op::PaddingMask => "padding_mask".into(),
        Op::EitherMask => "either_mask".into(),
        Op::AlibiBias { queries, keys, slopes } => {
            let (first, last) = (slopes.slope(0), slopes.slope(slopes.heads.saturating_sub(1)));
            format!("alibi_bias {queries:?} {keys:?} heads={} first={first:?} last={last:?}", slopes.heads)
        }
        Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => format!(
            "relative_buckets {queries:?} {keys:?} buckets={buckets} max_distance={max_distance} bidirectional={bidirectional}"
        ),
        Op::SplitHeads { heads } => format!("split_heads {heads}"),
        Op::MergeHeads => "merge_heads".into(),
        Op::RepeatHeads { times } => format!("repeat_heads {times}"),
        Op::Rotate { pairing } => format!("rotate {pairing:?}"),
        Op::Cache => "cache".into(),
        Op::Attention(a) => format!(
            "attention scale={:?}{}{}{}{}{}{}",
            a.scale,
            optional("softcap", a.softcap.map(|c| format!("{c:?}"))),
            if a.causal { " causal" } else { "" },
            if a.dropout > 0.0 { format!(" dropout={:?}", a.dropout) } else { String::new() },
            if a.has_mask { " mask" } else { "" },
            if a.has_bias { " bias" } else { "" },
            if a.has_sinks { " sinks" } else { "" },
        ),
        Op::Activate(a) => format!("{a:?}").to_lowercase(),
        Op::Add => "add".into(),
        Op::Mul => "mul".into(),
        Op::Scale { by } => format!("scale {by:?}"),
        Op::Shift { by } => format!("shift {by:?}"),
        Op::Clamp { min, max } => format!(
            "clamp{}{}",
            optional("min", min.map(|v| format!("{v:?}"))),
            optional("max", max.map(|v| format!("{v:?}")))
        ),
        Op::Softcap { cap } => format!("softcap {cap:?}"),
        Op::Dropout { p } => format!("dropout {p:?}"),
        Op::Slice { axis_from_last, start, len } => {
            format!("slice axis=-{} {start}..{}", axis_from_last + 1, start + len)
        }
        Op::Concat { axis_from_last } => format!("concat axis=-{}", axis_from_last + 1),
        Op::Prepend => "prepend".into(),
        Op::Unsqueeze => "unsqueeze".into(),
        Op::Squeeze => "squeeze".into(),
        Op::Lookup => "lookup".into(),
        Op::BiasFromTable => "bias_from_table".into(),
        Op::OrZeros => "or_zeros".into(),
        Op::Unembed => "unembed".into(),
        Op::Route(r) => format!(
            "route top_k={} {:?}{}{}{}{}",
            r.top_k,
            r.score,
            if r.normalize { " normalize" } else { "" },
            if r.scale == 1.0 { String::new() } else { format!(" scale={:?}", r.scale) },
            optional("groups", r.groups.map(|g| format!("{}/{} by {}", g.keep, g.groups, g.score_of))),
            if r.has_correction { " correction" } else { "" },
        ),
        Op::Pool(pool) => format!("pool {pool:?}").to_lowercase(),
        Op::Normalize => "normalize".into(),
    }
}
