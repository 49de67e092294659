//! Large specs that are valid: the memory that checking one takes grows with its text and stays small, and
//! what many call sites share is decoded and lowered once.
//!
//! The heap is that of a process, so every text is compiled in one of its own: this test program starts
//! itself again, with a variable that names the text. Without the variable, [`one_text`] does nothing.

use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;

use trafoc::report::summary::summary;

use crate::front::Front;

const TEXT: &str = "TRAFOC_TEST_LARGE";

const HEAD: &str = "name: large\nvocab: 16\ncontext: 8\nd_model: 8\nhead: lm\ndecoder:\n";

/// The texts, each as long as the bound on call sites allows.
const TEXTS: [(&str, usize); 3] = [("ranges", 1000), ("calls", 9), ("rules", 9)];

/// The most bytes of heap for checking any of them.
const MOST: usize = 16 << 20;

/// A spec of that kind, of a length in proportion to `n`.
fn text(kind: &str, n: usize) -> String {
    let mut text = HEAD.to_owned();
    match kind {
        // As many different layers, each written in one line.
        "ranges" => {
            let layers = 2 * n;
            let _ = writeln!(text, "  layers: {layers}\n  attention: {{heads: 2}}\n  ranges:");
            for i in 0..n {
                let _ = writeln!(text, "    \"{}\": {{ffn: {{mlp: {{dropout: 0.{:05}}}}}}}", 2 * i, i + 1);
            }
        }
        // As many different blocks, each of which calls parts of one description some 400 times.
        "calls" | "rules" => {
            let _ = writeln!(
                text,
                "  layers: {n}\n  attention: {{heads: 2}}\n  ffn: {{hidden: 16}}\n  norm: layer_norm\n  blocks:"
            );
            for i in 0..n {
                let _ = writeln!(text, "    b{i}:\n      block: |\n        x=x+{}*attention(norm(x))", i + 2);
                text += &"        x=x+ffn(norm(x))\n".repeat(212);
            }
            let names: Vec<String> = (0..n).map(|i| format!("b{i}")).collect();
            let _ = writeln!(text, "  pattern: [{}]", names.join(", "));
            if kind == "rules" {
                text += "init: {rules: {\"*.ffn7.up.weight\": {normal: {std: 0.5}}}}\n";
            }
        }
        other => panic!("no text is called {other}"),
    }
    text
}

fn compiled(kind: &str, n: usize) -> Front {
    let front = Front::of_text("large.yaml", &text(kind, n), "tests/good");
    assert!(front.compilation.graph.is_some(), "{kind}: {:?}", front.compilation.diagnostics.first());
    front
}

#[test]
fn one_text() {
    let Ok(wanted) = std::env::var(TEXT) else { return };
    let (kind, n) = wanted.split_once(' ').unwrap();
    let front = compiled(kind, n.parse().unwrap());
    let summary = summary(front.compilation.graph.as_ref().unwrap());
    assert!(summary.parameters.total > 0);
    println!("peak {}", crate::HEAP.peak_usage());
}

/// The largest heap while a text is checked.
fn peak(kind: &str, n: usize) -> usize {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "large::one_text", "--nocapture"]).env(TEXT, format!("{kind} {n}"));
    let said = command.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = text.lines().find_map(|l| l.split_once("peak ")).unwrap_or_else(|| panic!("{said:?}"));
    line.1.trim().parse().unwrap()
}

/// A long spec is checked in little memory, in proportion to its length.
#[test]
fn a_long_spec_is_checked_in_little_memory() {
    for (kind, n) in TEXTS {
        let (whole, half) = (peak(kind, n), peak(kind, n / 2));
        println!("{kind}: {} bytes of text, {whole} of heap, {half} for half of it", text(kind, n).len());
        assert!(whole <= MOST, "{kind}: {whole} bytes");
        assert!(whole <= half * 9 / 4, "{kind}: {whole} bytes, and {half} for half of the text");
    }
}

/// Call sites that one text describes have one part, and one module in the graph, in all blocks.
#[test]
fn what_call_sites_share_is_there_once() {
    let n = 3;
    let front = compiled("calls", n);
    let stack = front.compilation.spec.unwrap().decoder.unwrap();
    assert_eq!(stack.blocks.len(), n);
    let instances: Vec<_> = stack.blocks.iter().flat_map(|block| &block.instances).collect();
    for word in ["norm", "attention", "ffn"] {
        let parts: Vec<_> = instances.iter().filter(|i| i.name.starts_with(word)).map(|i| &i.part).collect();
        assert!(parts.len() >= n, "{word}");
        assert!(parts.iter().all(|part| Arc::ptr_eq(part, parts[0])), "{word}");
    }
    let graph = front.compilation.graph.unwrap();
    // The model, the stack, its blocks, and an embedding, a head, an attention and a feed-forward part.
    assert_eq!(graph.modules.len(), n + 6);
}
