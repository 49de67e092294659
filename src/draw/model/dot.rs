//! The outline in the language of Graphviz.

use std::fmt::Write as _;

use super::facts::words;
use super::outline::{Flow, Form, From, Outline, Part};
use crate::diag::render::visible;
use crate::draw::mark::PICTURE;

/// A directed graph with a cluster for every block.
pub fn dot(outline: &Outline) -> String {
    let mut out = format!("// {PICTURE}\ndigraph {} {{\n", quoted(&outline.name));
    let _ = writeln!(
        out,
        // Upwards, as in our own pictures and in papers.
        "  rankdir=BT; fontname=\"Helvetica\";\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, \
         fontname=\"Helvetica\"];"
    );
    let label = format!("{}\n{}", outline.name, outline.summary.join(" · "));
    let _ = writeln!(out, "  label={}; labelloc=t;", quoted(&label));
    let mut writer = Writer { out, next: 0, memory: None };
    for column in &outline.columns {
        let ends = writer.flow(&column.flow, None, 1);
        // The encoder's column is written first, so its last node is known when the decoder refers to it.
        writer.memory = ends.last;
    }
    writer.out.push_str("}\n");
    writer.out
}

struct Writer {
    out: String,
    next: usize,
    /// The node with the encoder's output, once the encoder's column is written.
    memory: Option<usize>,
}

/// The first and the last node of something.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<usize>,
    last: Option<usize>,
}

impl Writer {
    fn flow(&mut self, flow: &Flow, start: Option<usize>, depth: usize) -> Ends {
        let pad = "  ".repeat(depth);
        let mut ids: Vec<Ends> = Vec::new();
        for item in &flow.items {
            if let Form::Stack(parts) = &item.form {
                // The memory is an input of attentions inside of the blocks, where its arrows are drawn.
                let from = item.inputs.iter().find_map(|f| source(*f, &ids, start));
                let ends = self.stack(parts, from, depth);
                ids.push(ends);
                continue;
            }
            let id = self.next;
            self.next += 1;
            let (shape, color) = match item.form {
                Form::Input | Form::Output => ("plaintext", "white"),
                Form::Box(tint) => ("box", color(tint.class())),
                Form::Step => ("box", "#e9ecef"),
                Form::Sum | Form::Product => ("circle", "white"),
                Form::Stack(_) => ("box", "white"),
            };
            let mut label = item.label.clone();
            item.notes.iter().for_each(|note| label += &format!("\n{note}"));
            let _ = writeln!(
                self.out,
                "{pad}n{id} [label={}, shape={shape}, fillcolor=\"{color}\", tooltip={}];",
                quoted(&label),
                quoted(&item.details.join("\n"))
            );
            ids.push(Ends { first: Some(id), last: Some(id) });
        }
        // After all nodes of the flow, so that they and the arrows can be told apart.
        for (item, ends) in flow.items.iter().zip(ids.clone()) {
            // The blocks of a stack have drawn their own arrows.
            if matches!(item.form, Form::Stack(_)) {
                continue;
            }
            for from in &item.inputs {
                let (source, style) = match from {
                    From::Memory => (self.memory, " [style=dashed]"),
                    From::Item(_) | From::Start => (source(*from, &ids, start), ""),
                };
                if let (Some(source), Some(to)) = (source, ends.first) {
                    let _ = writeln!(self.out, "{pad}n{source} -> n{to}{style};");
                }
            }
        }
        let last = flow.end.and_then(|i| ids.get(i));
        Ends { first: ids.first().and_then(|e| e.first), last: last.map_or(start, |e| e.last) }
    }

    fn stack(&mut self, parts: &[Part], mut from: Option<usize>, depth: usize) -> Ends {
        let pad = "  ".repeat(depth);
        let mut first = None;
        for part in parts {
            for frame in &part.frames {
                let id = self.next;
                self.next += 1;
                let times = if part.frames.len() > 1 { &frame.times } else { &part.times };
                let mut label = format!("{} {times}", words(&frame.title)).trim_end().to_owned();
                if !frame.layers.is_empty() {
                    label += &format!("\n{}", frame.layers);
                }
                frame.equations.iter().for_each(|line| label += &format!("\n{line}"));
                if part.frames.len() > 1 {
                    label += &format!("\nin turn, {}", part.times);
                }
                let _ = writeln!(self.out, "{pad}subgraph cluster_{id} {{");
                let _ = writeln!(self.out, "{pad}  label={}; labeljust=r;", quoted(&label));
                let ends = self.flow(&frame.flow, from, depth + 1);
                let _ = writeln!(self.out, "{pad}}}");
                first = first.or(ends.first);
                from = ends.last;
            }
        }
        Ends { first, last: from }
    }
}

fn source(from: From, ids: &[Ends], start: Option<usize>) -> Option<usize> {
    match from {
        From::Item(i) => ids.get(i).and_then(|ends| ends.last),
        From::Start => start,
        From::Memory => None,
    }
}

fn color(ink: &str) -> &'static str {
    // Graphviz has no style sheets that follow the reader's theme, so the colours are the light ones.
    let found = crate::draw::theme::INKS.iter().find(|(name, _, _)| *name == ink);
    found.map_or("#ffffff", |(_, light, _)| light)
}

fn quoted(text: &str) -> String {
    // Backslashes first, because the other replacements add some.
    let text = visible(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}
