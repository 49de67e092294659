//! The text on boxes: what a layer or a module is, in the few words that fit into a picture.

use std::ops::Range;

use super::outline::Tint;
use crate::diag::count::counted;
use crate::ir::op::meaning::Note;
use crate::ir::op::{Op, Score};
use crate::ir::text::factor;
use crate::ir::{Dim, Graph, Layer, MemberKind, Module, Role, Slot, Type, stack_len};
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
        Layer::Embedding { of, rows, dim, .. } => {
            (of.title().into(), vec![format!("{} × {}", size(rows.get()), size(dim.get()))])
        }
        Layer::LayerNorm { .. } => ("LayerNorm".into(), Vec::new()),
        Layer::RmsNorm { .. } => ("RMSNorm".into(), Vec::new()),
        Layer::Patches { channels, size: side, .. } => {
            let note = format!("{}, {side} × {side} pixels", counted(channels, "channel"));
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

/// The members of a module, one per line: layers with their sizes, modules by name, stacks by their length.
pub fn members(graph: &Graph, module: &Module) -> Vec<String> {
    let line = |name: &str, kind: &MemberKind| match kind {
        MemberKind::Layer(layer) => format!("  {name}: {}", layer_line(layer)),
        MemberKind::Module(id) => format!("  {name}: {}", graph.module(*id).name),
        MemberKind::Stack(runs) => {
            format!("  {name}: {}", crate::diag::count::counted(size(stack_len(runs)), "block"))
        }
    };
    module.members.iter().map(|m| line(&m.name, &m.kind)).collect()
}

/// The name for a module's box, and the lines below it. `steering` has the notes of masks, tables and
/// biases among its inputs.
pub fn module(module: &Module, steering: &[Note]) -> (String, Vec<String>) {
    let Some(part) = &module.part else { return (words(&module.name), Vec::new()) };
    let mut notes = part.notes.clone();
    match part.slot {
        // Masks and positions are shown where they take effect.
        Slot::Attention | Slot::Cross => {
            let rules = rules(module, steering);
            notes.extend((!rules.is_empty()).then(|| rules.join(" · ")));
        }
        Slot::Embed | Slot::Encoder | Slot::Decoder | Slot::Ffn | Slot::Norm | Slot::Head => {}
    }
    (part.title.clone(), notes)
}

/// What changes or hides the scores of an attention, each once.
fn rules(module: &Module, steering: &[Note]) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    // The features of a head, known once the attention has been seen; notes about positions are written
    // after.
    let mut width = None;
    for node in &module.nodes {
        let Op::Attention(op) = &node.op else { continue };
        let queries = node.inputs.first().map(|id| &module.value(*id).ty);
        width = queries.and_then(Type::last).and_then(Dim::constant);
        rules.extend((op.score == Score::Additive).then(|| "additive scores".into()));
        rules.extend(op.causal.then(|| "causal".into()));
        rules.extend(op.softcap.map(|cap| format!("softcap {}", factor(cap))));
        rules.extend(op.has_sinks.then(|| "sinks".into()));
    }
    rules.extend(steering.iter().map(|note| match note {
        // The usual case, all features of a head, needs no number.
        Note::Rotary(features) if Some(u128::from(*features)) == width => "rotary".to_owned(),
        Note::Rotary(features) => format!("rotary on {}", size(features.get())),
        Note::Words(words) => words.clone(),
    }));
    // A table of rotary positions is two inputs, cosines and sines, with the same note.
    let mut unique: Vec<String> = Vec::new();
    for rule in rules {
        if !unique.contains(&rule) {
            unique.push(rule);
        }
    }
    unique
}

/// The layers of one frame in words: `layer 3`, `layers 0–4, 6–10, .. 54–58`. The run begins at layer `first` and
/// has `count` layers in cycles of `cycle`, of which the frame has those at `places`.
pub fn layers(first: u64, count: u64, cycle: u64, places: Range<u64>) -> String {
    // A run of equal layers is one range, however its cycle is written.
    let (length, step) = match places.end.saturating_sub(places.start) {
        n if n >= cycle => (count, count.max(1)),
        n => (n, cycle),
    };
    let range = |i: u64| {
        let start = places.start.saturating_add(step.saturating_mul(i));
        // The last cycle may end in its middle.
        let last = start.saturating_add(length).min(count).saturating_sub(1);
        let (start, last) = (first.saturating_add(start), first.saturating_add(last));
        if start == last { start.to_string() } else { format!("{start}–{last}") }
    };
    let ranges = count.saturating_sub(places.start).div_ceil(step);
    let words: Vec<String> = match ranges {
        0..=3 => (0..ranges).map(range).collect(),
        n => vec![range(0), range(1), format!(".. {}", range(n.saturating_sub(1)))],
    };
    let is_one = words.len() == 1 && length == 1;
    format!("{} {}", if is_one { "layer" } else { "layers" }, words.join(", "))
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
