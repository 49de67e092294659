//! Short forms of maps, over which fields of the map are merged and the reverse.

use trafoc::diag::Sink;
use trafoc::ir::print::print;
use trafoc::spec::Parts;
use trafoc::syntax::Notation;
use trafoc::syntax::merge::merge;

use crate::front::Front;
use crate::syntax::tree;

#[test]
fn a_short_form_is_the_map_that_it_stands_for() {
    let cases = [
        ("bias: false", "bias: {query: true}", "bias: {query: true, key: false, value: false, out: false}"),
        ("bias: true", "bias: {qkv: false}", "bias: {qkv: false, out: true}"),
        ("bias: {query: true}", "bias: false", "bias: false"),
        ("bias: {query: true}", "bias: {out: false}", "bias: {query: true, out: false}"),
        ("dropout: 0.1", "dropout: {weights: 0.3}", "dropout: {weights: 0.3, out: 0.1}"),
        ("dropout: 0.1", "dropout: !delete", "{}"),
        ("init: xavier_uniform", "init: {residual: 0.5}", "init: {weights: xavier_uniform, residual: 0.5}"),
        (
            "init: {normal: {std: 0.1}}",
            "init: {biases: ones}",
            "init: {weights: {normal: {std: 0.1}}, biases: ones}",
        ),
        ("init: {residual: 0.5}", "init: {normal: {std: 0.1}}", "init: {normal: {std: 0.1}}"),
        ("init: {normal: {std: 0.1}}", "init: {uniform: {bound: 1}}", "init: {uniform: {bound: 1}}"),
        ("init: {normal: {std: 0.1}}", "init: {std: 0.2}", "init: {normal: {std: 0.2}}"),
        // Where the key has no map, nothing stands for one.
        ("bias: false", "bias: {other: 1}", "bias: {other: 1}"),
        // A part with fields replaces the one whose fields have no name, whoever defines it.
        (
            "attention: {heads: 4, bias: false}",
            "attention: {mamba: {inner: 8}}",
            "attention: {mamba: {inner: 8}}",
        ),
        ("ffn: {expansion: 4}", "ffn: {mamba: {inner: 8}}", "ffn: {mamba: {inner: 8}}"),
    ];
    for (base, over, want) in cases {
        let mut sink = Sink::new();
        let merged =
            merge(&tree(base, Notation::Yaml), &tree(over, Notation::Yaml), &Parts::default(), &mut sink);
        assert_eq!(merged, tree(want, Notation::Yaml), "{over} over {base}");
        assert!(sink.into_sorted().is_empty());
    }
}

/// Within one spec, too: `cross` takes from `attention` what it does not give itself.
#[test]
fn a_short_form_and_its_map_give_the_same_model() {
    let spec = |attention: &str| {
        let text = format!(
            "trafo: 1\nname: short\nd_model: 32\nvocab: 50\ncontext: 16\n\
             encoder: {{layers: 1, attention: {{heads: 4}}}}\n\
             decoder:\n  layers: 1\n  attention: {{heads: 4, {attention}}}\n  \
             cross: {{bias: {{out: true}}, dropout: {{weights: 0.3}}}}\nhead: {{translate: {{}}}}\n"
        );
        let front = Front::of_text("short.yaml", &text, "");
        let graph = front.compilation.graph.unwrap_or_else(|| panic!("{text}"));
        print(&graph, None)
    };
    let whole =
        "bias: {query: false, key: false, value: false, out: false}, dropout: {weights: 0.1, out: 0.1}";
    assert_eq!(spec("bias: false, dropout: 0.1"), spec(whole));
}
