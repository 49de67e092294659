//! The text on boxes: what a layer or a module is, in the few words that fit into a picture.

use super::outline::Tint;
use crate::ir::op::Op;
use crate::ir::print::factor;
use crate::ir::{Graph, Layer, MemberKind, Module, Role, Run, stack_len};
use crate::report::number::exact;

/// The colour for a role.
pub fn tint(role: Role) -> Tint {
    match role {
        Role::Embedding => Tint::Embedding,
        Role::Attention => Tint::Attention,
        Role::Ffn => Tint::Ffn,
        Role::Norm => Tint::Norm,
        Role::Head => Tint::Head,
    }
}

fn size(n: u64) -> String {
    exact(u128::from(n))
}

/// The name of a layer for its box, and a note with its sizes.
pub fn layer(layer: &Layer, name: &str) -> (String, Vec<String>) {
    match layer {
        Layer::Linear { input, output, .. } => {
            ("Linear".into(), vec![format!("{} → {}", size(input.get()), size(output.get()))])
        }
        Layer::Embedding { rows, dim, .. } => {
            let label = match name {
                "tokens" => "Token embedding".to_owned(),
                "positions" => "Learned positions".to_owned(),
                "segments" => "Segment embedding".to_owned(),
                "languages" => "Language embedding".to_owned(),
                other => format!("Embedding of {}", other.replace('_', " ")),
            };
            (label, vec![format!("{} × {}", size(rows.get()), size(dim.get()))])
        }
        Layer::LayerNorm { .. } => ("LayerNorm".into(), Vec::new()),
        Layer::RmsNorm { .. } => ("RMSNorm".into(), Vec::new()),
        Layer::Patches { channels, size: side, .. } => {
            let note = format!("{channels} channels, {side} × {side} pixels");
            ("Patch embedding".into(), vec![note])
        }
        Layer::Param { shape, .. } => {
            let sizes: Vec<String> = shape.iter().map(|n| size(n.get())).collect();
            (sentence(name), vec![format!("[{}]", sizes.join(", "))])
        }
    }
}

/// A layer on one line, as in the graph's text form.
pub fn layer_line(layer: &Layer) -> String {
    match layer {
        Layer::Linear { input, output, bias, .. } => {
            format!(
                "linear {} → {}{}",
                size(input.get()),
                size(output.get()),
                if *bias { ", bias" } else { "" }
            )
        }
        Layer::Embedding { rows, dim, .. } => format!("embedding {} × {}", size(rows.get()), size(dim.get())),
        Layer::LayerNorm { dim, eps, .. } => format!("layer_norm {}, eps {eps:e}", size(dim.get())),
        Layer::RmsNorm { dim, eps, unit_offset, .. } => {
            let offset = if *unit_offset { ", factor 1 + w" } else { "" };
            format!("rms_norm {}, eps {eps:e}{offset}", size(dim.get()))
        }
        Layer::Patches { channels, dim, size: side, .. } => {
            format!("patches {channels} × {side} × {side} → {}", size(dim.get()))
        }
        Layer::Param { shape, trained, .. } => {
            format!("{} {shape:?}", if *trained { "parameter" } else { "buffer" })
        }
    }
}

/// The layers of a module, one per line, including those of its children.
pub fn members(graph: &Graph, module: &Module) -> Vec<String> {
    let line = |name: &str, kind: &MemberKind| match kind {
        MemberKind::Layer(layer) => format!("  {name}: {}", layer_line(layer)),
        MemberKind::Module(id) => format!("  {name}: {}", graph.module(*id).name),
        MemberKind::Stack(runs) => format!("  {name}: {} blocks", size(stack_len(runs))),
    };
    module.members.iter().map(|m| line(&m.name, &m.kind)).collect()
}

/// The name for a module's box, and the lines below it. `steering` holds the notes of masks, tables and
/// biases among its inputs.
pub fn module(
    graph: &Graph,
    module: &Module,
    has_memory: bool,
    steering: &[String],
) -> (String, Vec<String>) {
    let attends = module.nodes.iter().any(|n| matches!(n.op, Op::Attention(_)));
    let mixes = module.nodes.iter().any(|n| matches!(n.op, Op::Experts { .. }));
    match (attends, mixes, module.role) {
        (true, _, _) => attention(module, has_memory, steering),
        (_, true, _) => mixture(graph, module),
        (_, _, Role::Ffn) => feed_forward(module),
        (_, _, Role::Embedding | Role::Attention | Role::Norm | Role::Head) => {
            (words(&module.name), Vec::new())
        }
    }
}

fn attention(module: &Module, has_memory: bool, steering: &[String]) -> (String, Vec<String>) {
    let mut sizes = Vec::new();
    let mut rules: Vec<String> = Vec::new();
    let repeated = module.nodes.iter().find_map(|node| match_repeat(&node.op)).unwrap_or(1);
    let is_latent = module.name.contains("Latent");
    let mut groups = (1, 1);
    for node in &module.nodes {
        let Op::Attention(op) = &node.op else { continue };
        let shape = node.inputs.first().map(|id| module.value(*id).ty.shape.clone()).unwrap_or_default();
        let dim = |i: usize| shape.get(i).and_then(|d| d.constant()).and_then(|n| u64::try_from(n).ok());
        if let (Some(heads), Some(width)) = (dim(1), dim(3)) {
            sizes.push(format!("{} heads × {}", size(heads), size(width)));
            groups = (heads, heads / repeated.max(1));
        }
        if op.causal {
            rules.push("causal".into());
        }
        if let Some(cap) = op.softcap {
            rules.push(format!("softcap {}", factor(cap)));
        }
        if op.has_sinks {
            rules.push("sinks".into());
        }
    }
    let (heads, kv_heads) = groups;
    if kv_heads < heads && !is_latent {
        sizes.push(format!("{} kv", size(kv_heads)));
    }
    let width = sizes.first().and_then(|s| s.rsplit(' ').next()).unwrap_or_default().replace(',', "");
    rules.extend(steering.iter().map(|rule| match rule.strip_prefix("rotary ") {
        Some(features) if features == width => "rotary".to_owned(),
        Some(features) => format!("rotary on {features}"),
        None => rule.clone(),
    }));
    let mut unique: Vec<String> = Vec::new();
    for rule in rules {
        if !unique.contains(&rule) {
            unique.push(rule);
        }
    }
    let label = match (has_memory, is_latent, kv_heads) {
        (true, _, _) => "Cross attention",
        (false, true, _) => "Latent attention",
        (false, false, 1) if heads > 1 => "Multi-query attention",
        (false, false, kv) if kv < heads => "Grouped-query attention",
        (false, false, _) => "Multi-head attention",
    };
    let mut notes = vec![sizes.join(", ")];
    if !unique.is_empty() {
        notes.push(unique.join(" · "));
    }
    (label.to_owned(), notes)
}

fn match_repeat(op: &Op) -> Option<u64> {
    if let Op::RepeatHeads { times } = op { Some(times.get()) } else { None }
}

fn feed_forward(module: &Module) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    for node in &module.nodes {
        if let Op::Activate(a) = node.op {
            notes.push(a.name().to_owned());
        }
    }
    let is_gated = module.nodes.iter().any(|n| matches!(n.op, Op::Mul));
    if let Some((input, output)) = module.members.iter().find_map(|m| linear_sizes(&m.kind)) {
        notes.push(format!("{} → {}", size(input), size(output)));
    }
    let label = if is_gated { "Gated feed-forward" } else { "Feed-forward" };
    (label.to_owned(), vec![notes.join(" · ")])
}

fn linear_sizes(kind: &MemberKind) -> Option<(u64, u64)> {
    if let MemberKind::Layer(Layer::Linear { input, output, .. }) = kind {
        return Some((input.get(), output.get()));
    }
    None
}

fn mixture(graph: &Graph, module: &Module) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    for node in &module.nodes {
        let Op::Experts { member, active } = &node.op else { continue };
        let MemberKind::Stack(runs) = &module.member(*member).kind else { continue };
        notes.push(format!("{} experts, {} per token", size(stack_len(runs)), size(*active)));
        notes.extend(expert(graph, runs));
    }
    let shared = module.members.iter().filter(|m| matches!(m.kind, MemberKind::Module(_))).count();
    if shared > 0 {
        notes.push(format!("and {shared} for every token"));
    }
    ("Mixture of experts".to_owned(), notes)
}

fn expert(graph: &Graph, runs: &[Run]) -> Option<String> {
    let id = runs.first()?.cycle.first()?;
    feed_forward(graph.module(*id)).1.into_iter().next()
}

/// Separates words: `DecoderBlock` → `Decoder block`.
pub fn words(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && c.is_uppercase() {
            out.push(' ');
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
    }
    out
}

/// Separates words: `class_token` → `Class token`.
fn sentence(name: &str) -> String {
    let text = name.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
