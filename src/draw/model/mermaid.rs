//! The outline as a Mermaid flowchart, for Markdown.

use std::fmt::Write as _;

use super::facts::words;
use super::outline::{Flow, Form, From, Outline, Part};
use crate::diag::render::visible;
use crate::draw::mark::PICTURE;

/// A flowchart with a subgraph for every block.
pub fn mermaid(outline: &Outline) -> String {
    // Mermaid reads the lines between dashes as YAML, where the quotes keep a colon from being a key.
    let title = quoted(&format!("{}: {}", outline.name, outline.summary.join(", ")));
    let mut writer = Writer {
        out: format!("---\ntitle: {title}\n---\nflowchart BT\n  %% {PICTURE}\n"),
        next: 0,
        memory: None,
    };
    for column in &outline.columns {
        // The encoder's column comes first, so the decoder can refer to its last node.
        writer.memory = writer.flow(&column.flow, None, 1);
    }
    writer.out
}

struct Writer {
    out: String,
    next: usize,
    /// The node with the encoder's output, once the encoder's column is written.
    memory: Option<usize>,
}

impl Writer {
    /// Writes a flow and returns its last node.
    fn flow(&mut self, flow: &Flow, start: Option<usize>, depth: usize) -> Option<usize> {
        let pad = "  ".repeat(depth);
        let mut ids: Vec<Option<usize>> = Vec::new();
        for item in &flow.items {
            if let Form::Stack(parts) = &item.form {
                // The memory is an input of attentions inside of the blocks, where its arrows are drawn.
                let from = item.inputs.iter().find_map(|f| source(*f, &ids, start));
                let last = self.stack(parts, from, depth);
                ids.push(last);
                continue;
            }
            let id = self.next;
            self.next += 1;
            let mut label = item.label.clone();
            item.notes.iter().for_each(|note| label += &format!("\n{note}"));
            let label = quoted(&label);
            let shape = match item.form {
                Form::Input | Form::Output => format!("([{label}])"),
                Form::Box(_) | Form::Stack(_) => format!("[{label}]"),
                // In Mermaid the brackets around a label decide the shape.
                Form::Step => format!("({label})"),
                Form::Sum | Form::Product => format!("(({label}))"),
            };
            let _ = writeln!(self.out, "{pad}n{id}{shape}");
            ids.push(Some(id));
        }
        // After all nodes of the flow, so that they and the arrows can be told apart.
        for (item, id) in flow.items.iter().zip(&ids) {
            // The blocks of a stack have drawn their own arrows.
            if matches!(item.form, Form::Stack(_)) {
                continue;
            }
            for from in &item.inputs {
                let (source, arrow) = match from {
                    From::Memory => (self.memory, "-.->"),
                    From::Item(_) | From::Start => (source(*from, &ids, start), "-->"),
                };
                if let (Some(source), Some(to)) = (source, id) {
                    let _ = writeln!(self.out, "{pad}n{source} {arrow} n{to}");
                }
            }
        }
        let last = flow.end.and_then(|i| ids.get(i));
        last.map_or(start, |last| *last)
    }

    fn stack(&mut self, parts: &[Part], mut from: Option<usize>, depth: usize) -> Option<usize> {
        let pad = "  ".repeat(depth);
        for part in parts {
            for frame in &part.frames {
                // Subgraphs and nodes share one counter, so that no name occurs twice.
                let id = self.next;
                self.next += 1;
                let times = if part.frames.len() > 1 { &frame.times } else { &part.times };
                let mut label = format!("{} {times}", words(&frame.title)).trim_end().to_owned();
                if !frame.layers.is_empty() {
                    label += &format!("\n{}", frame.layers);
                }
                if part.frames.len() > 1 {
                    label += &format!("\nin turn, {}", part.times);
                }
                frame.equations.iter().for_each(|line| label += &format!("\n{line}"));
                let _ = writeln!(self.out, "{pad}subgraph s{id}[{}]", quoted(&label));
                from = self.flow(&frame.flow, from, depth + 1);
                let _ = writeln!(self.out, "{pad}end");
            }
        }
        from
    }
}

fn source(from: From, ids: &[Option<usize>], start: Option<usize>) -> Option<usize> {
    match from {
        From::Item(i) => ids.get(i).copied().flatten(),
        From::Start => start,
        From::Memory => None,
    }
}

/// Mermaid interprets entities in quoted labels, so every character that could end a label becomes an
/// entity.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in visible(text).chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '"' | '<' | '>' | '&' | '#' | '`' | '\\' | ';' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
