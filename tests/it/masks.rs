//! What a mask leaves is the same everywhere: the pairs that are counted, the pairs that are drawn, what
//! emitted code hides, and the attention weights that are not zero.

use std::collections::BTreeMap;

use proptest::prelude::*;
use syn::{BinOp, Expr, Item, Lit, Stmt};
use trafoc::emit::rust::{self, Form};
use trafoc::inspect::sites::sites;
use trafoc::ir::{Lengths, Verified};
use trafoc::report::cost::cost;

use crate::cli::{TINY, trafoc_in};
use crate::front::Front;
use crate::laws::config;

/// A combination of rules in a stack of one layer.
#[derive(Clone, Debug)]
struct Composition {
    is_decoder: bool,
    rules: Vec<String>,
    sinks: bool,
    length: u64,
}

impl Composition {
    fn spec(&self) -> String {
        let Composition { is_decoder, rules, sinks, .. } = self;
        // For another head than that of next tokens, a decoder may see the token after a position.
        let sees_next = rules.iter().any(|rule| rule == "bidirectional");
        let (stack, head) = match (is_decoder, sees_next) {
            (true, true) => ("decoder", "{classify: {classes: 2, pool: mean}}"),
            (true, false) => ("decoder", "lm"),
            (false, _) => ("encoder", "mlm"),
        };
        let mask = if rules.is_empty() { String::new() } else { format!(", mask: [{}]", rules.join(", ")) };
        format!(
            "trafo: 1\nname: tiny\nvocab: 11\ncontext: 16\nd_model: 8\n{stack}:\n  layers: 1\n  \
             attention: {{heads: 2, sinks: {sinks}{mask}}}\n  ffn: {{hidden: 8}}\nhead: {head}\n"
        )
    }
}

fn composition() -> impl Strategy<Value = Composition> {
    let direction = prop_oneof![
        Just(None),
        Just(Some("causal".to_owned())),
        Just(Some("bidirectional".to_owned())),
        (1u64..9).prop_map(|n| Some(format!("{{prefix: {n}}}"))),
    ];
    // A window that looks both ways must be odd.
    let window = prop::option::of((0u64..4).prop_map(|n| format!("{{window: {}}}", 2 * n + 1)));
    let chunk = prop::option::of((1u64..6).prop_map(|n| format!("{{chunk: {n}}}")));
    let rules = (direction, window, chunk)
        .prop_map(|(a, b, c)| [a, b, c].into_iter().flatten().collect::<Vec<String>>())
        .prop_shuffle();
    (any::<bool>(), rules, any::<bool>(), 1u64..12)
        .prop_map(|(is_decoder, rules, sinks, length)| Composition { is_decoder, rules, sinks, length })
}

/// The number of pairs whose operations `check` counts.
fn counted(graph: &Verified, length: u64) -> u128 {
    let lengths = Lengths { batch: 1, time: length, source: length, past: 0, rows: 0 };
    let scores = cost(graph).attended.scores;
    assert_eq!(scores.len(), 1);
    scores[0].visible(&lengths) / scores[0].per_pair.eval(&lengths)
}

/// The pairs that pictures show.
fn drawn(graph: &Verified, length: u64) -> Vec<(u64, u64)> {
    let site = &sites(graph).attention[0];
    pairs(length).filter(|(query, key)| !site.hides(*query, *key)).collect()
}

fn pairs(length: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length).flat_map(move |query| (0..length).map(move |key| (query, key)))
}

/// The pairs that emitted code leaves: the closure of its mask and the `is_causal` of its attention,
/// evaluated.
fn emitted(text: &str, length: u64) -> Vec<(u64, u64)> {
    let file = syn::parse_file(text).unwrap();
    let constants = file.items.iter().filter_map(|item| match item {
        Item::Const(item) => Some((item.ident.to_string(), number(&item.expr)?)),
        _ => None,
    });
    let mut names: BTreeMap<String, u64> = constants.collect();
    let closure = text.split_once("|query, key|").map(|(_, rest)| {
        let mut depth = 0;
        let end = rest.find(|c: char| {
            depth += i32::from("({[".contains(c)) - i32::from(")}]".contains(c));
            depth < 0 || depth == 0 && c == ','
        });
        syn::parse_str::<Expr>(&rest[..end.unwrap()]).unwrap()
    });
    let is_causal = text.contains("is_causal: true");
    assert!(is_causal != text.contains("is_causal: false"));
    let mut left = Vec::new();
    for (query, key) in pairs(length) {
        names.extend([("query".to_owned(), query), ("key".to_owned(), key)]);
        let hidden = closure.as_ref().is_some_and(|closure| holds(closure, &names));
        if !(hidden || is_causal && key > query) {
            left.push((query, key));
        }
    }
    left
}

fn number(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn holds(expression: &Expr, names: &BTreeMap<String, u64>) -> bool {
    match expression {
        Expr::Paren(inner) => holds(&inner.expr, names),
        Expr::Block(block) => match &block.block.stmts[..] {
            [Stmt::Expr(inner, None)] => holds(inner, names),
            other => panic!("{} statements", other.len()),
        },
        Expr::Binary(binary) => {
            let of = |expression| value(expression, names);
            match binary.op {
                BinOp::And(_) => holds(&binary.left, names) && holds(&binary.right, names),
                BinOp::Or(_) => holds(&binary.left, names) || holds(&binary.right, names),
                BinOp::Lt(_) => of(&binary.left) < of(&binary.right),
                BinOp::Le(_) => of(&binary.left) <= of(&binary.right),
                BinOp::Gt(_) => of(&binary.left) > of(&binary.right),
                BinOp::Ge(_) => of(&binary.left) >= of(&binary.right),
                BinOp::Ne(_) => of(&binary.left) != of(&binary.right),
                _ => panic!("a condition with another operator"),
            }
        }
        _ => panic!("a condition of another kind"),
    }
}

fn value(expression: &Expr, names: &BTreeMap<String, u64>) -> u64 {
    match expression {
        Expr::Paren(inner) => value(&inner.expr, names),
        Expr::Path(path) => names[&path.path.segments.last().unwrap().ident.to_string()],
        Expr::Binary(binary) => {
            let (left, right) = (value(&binary.left, names), value(&binary.right, names));
            match binary.op {
                BinOp::Add(_) => left + right,
                BinOp::Div(_) => left / right,
                _ => panic!("a sum with another operator"),
            }
        }
        other => number(other).expect("a number"),
    }
}

/// The graph of a spec, and its emitted text.
fn built(spec: &str) -> (Verified, String) {
    let front = Front::of_text("tiny.yaml", spec, "specs");
    assert!(front.codes().is_empty(), "{spec}\n{}", front.rendered());
    let graph = front.compilation.graph.unwrap();
    let text = rust::source(&graph, &front.sources, "tiny.yaml", Form::Kernels).unwrap();
    (graph, text)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mask_leaves_the_same_pairs_everywhere(composition in composition()) {
        let (graph, text) = built(&composition.spec());
        let drawn = drawn(&graph, composition.length);
        prop_assert_eq!(counted(&graph, composition.length), drawn.len() as u128);
        prop_assert_eq!(&emitted(&text, composition.length), &drawn);
        #[cfg(feature = "interp")]
        prop_assert_eq!(&computed::weights(&graph, composition.length), &drawn);
        #[cfg(feature = "interp")]
        computed::check_cached(&graph, composition.length);
    }
}

#[test]
fn a_prefix_lifts_causality_and_no_window() {
    let rules = ["{prefix: 2}", "{window: 3}"].map(str::to_owned).to_vec();
    let composition = Composition { is_decoder: true, rules, sinks: false, length: 8 };
    let (graph, _) = built(&composition.spec());
    // Two queries see 1 and 2 keys, six of them 3; the first one also sees the second key.
    assert_eq!(counted(&graph, 8), 1 + 2 + 6 * 3 + 1);
    // In a prefix longer than the window, the window also hides what is after the query: four queries see the next key.
    let rules = ["{prefix: 5}", "{window: 2}"].map(str::to_owned).to_vec();
    let composition = Composition { is_decoder: true, rules, sinks: false, length: 8 };
    let (graph, _) = built(&composition.spec());
    assert_eq!(counted(&graph, 8), 1 + 7 * 2 + 4);
}

/// Tests with the interpreter.
#[cfg(feature = "interp")]
mod computed {
    use burn::prelude::*;
    use trafoc::inspect::sites::sites;
    use trafoc::interp::{Captures, Inputs, Model, Options, Weights};
    use trafoc::ir::Verified;

    use crate::backend::{bounds, device};

    fn model(graph: &Verified) -> Model {
        let weights = Weights::init(graph, &device(), 1).unwrap();
        Model::new(graph.clone(), weights).unwrap()
    }

    fn tokens(range: std::ops::Range<u64>) -> Inputs {
        let length = (range.end - range.start) as usize;
        let ids: Vec<i64> = range.map(|i| (i * 7 % 11) as i64).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, length]), &device());
        Inputs::new().with("tokens", ids)
    }

    /// The pairs of the first head whose weight is not zero.
    pub fn weights(graph: &Verified, length: u64) -> Vec<(u64, u64)> {
        let path = sites(graph).attention[0].weights.clone();
        let options = Options { captures: Captures::of(vec![path.clone()]), ..Options::default() };
        let outputs = model(graph).forward(&tokens(0..length), &options).unwrap();
        let weights = outputs[&path].to_floats().unwrap();
        super::pairs(length).zip(weights).filter(|(_, weight)| *weight != 0.0).map(|(pair, _)| pair).collect()
    }

    /// Decoding step by step gives the same results as the whole sequence.
    pub fn check_cached(graph: &Verified, length: u64) {
        if !graph.decodes {
            return;
        }
        let model = model(graph);
        let whole = model.forward(&tokens(0..length), &Options::default()).unwrap();
        let whole = whole["logits"].to_floats().unwrap();
        let mut cache = model.cache();
        let mut steps = Vec::new();
        let prompt = length.min(3);
        for step in std::iter::once(0..prompt).chain((prompt..length).map(|at| at..at + 1)) {
            let outputs = model.forward_cached(&tokens(step), &mut cache).unwrap();
            steps.extend(outputs["logits"].to_floats().unwrap());
        }
        assert_eq!(whole.len(), steps.len());
        let worst = whole.iter().zip(&steps).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
        let scale = whole.iter().fold(1.0f32, |m, x| m.max(x.abs()));
        assert!(worst <= bounds().ways * scale, "off by {worst}");
    }
}

/// A rule of a mask that is as long as the context hides nothing, unless the context was made smaller elsewhere.
#[test]
fn a_mask_beyond_the_context_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let check = |mask: &str, more: &[&str]| {
        let text = TINY.replace("attention: {heads: 2}", &format!("attention: {{heads: 2, mask: {mask}}}"));
        std::fs::write(folder.path().join("spec.yaml"), text).unwrap();
        let said = trafoc_in(folder.path(), &[&["check", "spec.yaml"], more].concat());
        (said.code, said.err)
    };
    for (mask, what) in [("{window: 100}", "window"), ("{chunk: 100}", "chunk"), ("{prefix: 100}", "prefix")]
    {
        let (code, said) = check(mask, &[]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("beyond-end") && said.contains(&format!("a {what} of 100")), "{said}");
        assert_eq!(check(mask, &["--strict"]).0, 1);
    }
    // As long as the context is long enough to hide nothing.
    for (mask, what) in [("{window: 8}", "window"), ("{chunk: 8}", "chunk"), ("{prefix: 8}", "prefix")] {
        let (_, said) = check(mask, &[]);
        assert!(said.contains(&format!("a {what} of 8 hides nothing in a context of 8")), "{said}");
    }
    let (_, said) = check("[bidirectional, {window: 15}]", &[]);
    assert!(said.contains("a window of 15") && said.contains("a number below 15"), "{said}");
    // In the middle of its window a query sees half of it on each side.
    let (_, said) = check("[bidirectional, {window: 17}]", &[]);
    assert!(said.contains("a window of 17 hides nothing in a context of 8"), "{said}");
    for (mask, more) in [
        ("{window: 4}", [].as_slice()),
        ("{window: 4}", &["--set", "context=2"]),
        ("{window: 7}", &[]),
        ("[bidirectional, {window: 13}]", &[]),
    ] {
        let (code, said) = check(mask, more);
        assert!(code == 0 && !said.contains("beyond-end"), "{said}");
    }
}

/// A decoder that sees what its head predicts learns to read the answer, in one layer as in all.
#[test]
fn a_decoder_that_sees_the_next_token_is_a_warning() {
    let said = |decoder: &str, head: &str| {
        let spec = format!("name: a\nvocab: 8\ncontext: 8\nd_model: 8\ndecoder: {decoder}\nhead: {head}\n");
        let front = Front::of_text("answer.yaml", &spec, ".");
        assert!(front.compilation.graph.is_some(), "{}", front.rendered());
        front.codes()
    };
    let classify = "{classify: {classes: 2, pool: mean}}";
    let all = "{layers: 3, attention: {heads: 2, mask: bidirectional}}";
    let one = "{layers: 3, attention: {heads: 2}, ranges: {'1': {attention: {mask: [bidirectional, {window: 3}]}}}}";
    let prefix = "{layers: 3, attention: {heads: 2, mask: {prefix: 2}}}";
    assert_eq!(said(all, "lm"), ["head-mismatch"]);
    assert_eq!(said(one, "lm"), ["head-mismatch"]);
    assert_eq!(said(prefix, "lm"), [""; 0]);
    assert_eq!(said(all, classify), [""; 0]);
}
