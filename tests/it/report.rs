//! Costs against values worked out by hand and against an unfolded count, and the format of the tables.

use std::collections::BTreeMap;

use trafoc::ir::build::{Arena, Builder};
use trafoc::ir::op::{self, Activation, MaskRule, Router, RouterScore, Sequence, Window, visible_pairs};
use trafoc::ir::paths::{elements, expanded};
use trafoc::ir::verify::verify;
use trafoc::ir::{
    Dim, Graph, Init, Layer, Lengths, MemberKind, ModelKind, Module, ModuleId, Op, Role, Rows, Run, Sym,
    Type, Verified,
};
use trafoc::report::cost::cost;
use trafoc::report::layers::layers;
use trafoc::report::number;
use trafoc::report::summary::summary;

use crate::compiled;

fn linear(input: u64, output: u64) -> Layer {
    Layer::Linear {
        input: input.into(),
        output: output.into(),
        bias: true,
        init: Init::Normal { std: 0.02 },
        bias_init: Init::Zeros,
    }
}

fn norm() -> Layer {
    Layer::LayerNorm { dim: 4.into(), eps: 1e-5, affine: true, bias: true, unit_offset: false }
}

fn hidden() -> Type {
    Type::float([Sym::Batch.into(), Sym::Time.into(), Dim::of(4u64)])
}

/// Two heads of width 2 for `d_model` 4; keys and values have one head, which is cached and repeated.
fn attention(arena: &Arena) -> ModuleId {
    let mut b = Builder::new(arena, "Attention", Role::Attention);
    let x = b.argument("x", hidden());
    let keys = Dim::sym(Sym::Past) + Dim::sym(Sym::Time);
    let mask = b.argument("mask", Type::bool([Dim::of(1u64), Dim::of(1u64), Sym::Time.into(), keys]));
    let q = b.apply("query", linear(4, 4), x).unwrap();
    let k = b.apply("key", linear(4, 2), x).unwrap();
    let v = b.apply("value", linear(4, 2), x).unwrap();
    let q = b.op("q", Op::SplitHeads { heads: 2.into() }, &[q]).unwrap();
    let kv = [k, v].map(|x| {
        let x = b.op("kv", Op::SplitHeads { heads: 1.into() }, &[x]).unwrap();
        let x = b.op("kv", Op::Cache, &[x]).unwrap();
        b.op("kv", Op::RepeatHeads { times: 2.into() }, &[x]).unwrap()
    });
    let scaled = op::Attention {
        score: op::Score::Dot,
        scale: 0.5.into(),
        softcap: None,
        causal: false,
        dropout: 0.0,
        has_mask: true,
        has_bias: false,
        has_sinks: false,
    };
    let inputs = [q, kv[0], kv[1], mask];
    let y = b.ops(&["y", "weights"], Op::Attention(scaled), &inputs).unwrap()[0];
    let y = b.op("merged", Op::MergeHeads, &[y]).unwrap();
    let y = b.apply("out", linear(4, 4), y).unwrap();
    b.finish(&[y])
}

fn ffn(arena: &Arena) -> ModuleId {
    let mut b = Builder::new(arena, "Ffn", Role::Ffn);
    let x = b.argument("x", hidden());
    let h = b.apply("up", linear(4, 16), x).unwrap();
    let h = b.op("h", Op::Activate(Activation::Relu), &[h]).unwrap();
    let y = b.apply("down", linear(16, 4), h).unwrap();
    b.finish(&[y])
}

/// Four experts of width 8, of which a token uses two.
fn mixture(arena: &Arena) -> ModuleId {
    let mut e = Builder::new(arena, "Expert", Role::Ffn);
    let x = e.argument("x", Type::float([Sym::Rows.into(), Dim::of(4u64)]));
    let h = e.apply("up", linear(4, 8), x).unwrap();
    let y = e.apply("down", linear(8, 4), h).unwrap();
    let expert = e.finish(&[y]);
    let mut b = Builder::new(arena, "Mixture", Role::Ffn);
    let x = b.argument("x", hidden());
    let scores = b.apply("router", linear(4, 4), x).unwrap();
    let router = Router {
        top_k: 2.into(),
        score: RouterScore::Softmax,
        normalize: false,
        scale: 1.0,
        groups: None,
        has_correction: false,
    };
    let weights = b.op("routes", Op::Route(router), &[scores]).unwrap();
    let member = b.stack("experts", vec![Run { count: 4, cycle: vec![expert] }]);
    let y = b.op("y", Op::Experts { member, active: 2 }, &[x, weights]).unwrap();
    b.finish(&[y])
}

fn block(arena: &Arena, name: &str, ffn: ModuleId) -> ModuleId {
    let attention = attention(arena);
    let mut b = Builder::new(arena, name, Role::Attention);
    let x = b.argument("x", hidden());
    let keys = Dim::sym(Sym::Past) + Dim::sym(Sym::Time);
    let mask = b.argument("mask", Type::bool([Dim::of(1u64), Dim::of(1u64), Sym::Time.into(), keys]));
    let h = b.apply("norm1", norm(), x).unwrap();
    let a = b.call("attention", attention, &[h, mask]).unwrap();
    let x = b.op("x", Op::Add, &[x, a]).unwrap();
    let h = b.apply("norm2", norm(), x).unwrap();
    let f = b.call("ffn", ffn, &[h]).unwrap();
    let x = b.op("x", Op::Add, &[x, f]).unwrap();
    b.finish(&[x])
}

/// A decoder with `d_model` 4, vocab 11 and context 8: blocks alternate between a window of 3 and full
/// attention; with `mixed`, the second of each pair is a mixture; the head is tied.
fn decoder(blocks: u64, mixed: bool) -> Verified {
    let arena = Arena::new();
    let dense = ffn(&arena);
    let local = block(&arena, "Local", dense);
    let global = if mixed { block(&arena, "Global", mixture(&arena)) } else { local };
    let mut b = Builder::new(&arena, "Decoder", Role::Embedding);
    let tokens = b.argument("tokens", Type::int([Sym::Batch.into(), Sym::Time.into()]));
    let x = embedding(&mut b, "tokens", 11, tokens);
    let at = b.op("at", Op::Positions { along: Sequence::Cached, offset: 0 }, &[]).unwrap();
    let p = embedding(&mut b, "positions", 8, at);
    let x = b.op("x", Op::Add, &[x, p]).unwrap();
    let (queries, keys) = (Sequence::Cached, Sequence::Cached);
    let causal = MaskRule::CAUSAL;
    let near = MaskRule { window: Some(Window { size: 3, centred: false }), ..causal };
    let mask = b.op("causal", Op::Mask { queries, keys, rule: causal }, &[]).unwrap();
    let window = b.op("near", Op::Mask { queries, keys, rule: near }, &[]).unwrap();
    let member = b.stack("blocks", vec![Run { count: blocks, cycle: vec![local, global] }]);
    let args = vec![vec![vec![1], vec![2]]];
    let x = b.op("x", Op::Scan { member, each: 1, args }, &[x, window, mask]).unwrap();
    let x = b.apply("final_norm", norm(), x).unwrap();
    let table = b.op("table", Op::Weight { path: vec![trafoc::ir::MemberId(0)] }, &[]).unwrap();
    let logits = b.op("logits", Op::Unembed, &[x, table]).unwrap();
    let root = b.finish(&[logits]);
    let graph = Graph {
        name: "small".into(),
        modules: arena.into_modules(),
        root,
        context: 8,
        vocab: Some(11),
        decodes: true,
        kind: ModelKind::Decoder,
    };
    verify(graph).unwrap()
}

fn embedding(b: &mut Builder, name: &str, rows: u64, indices: trafoc::ir::ValueId) -> trafoc::ir::ValueId {
    let layer = Layer::Embedding {
        of: Rows::Tokens,
        rows: rows.into(),
        dim: 4.into(),
        padding: None,
        init: Init::Normal { std: 0.02 },
    };
    b.apply(name, layer, indices).unwrap()
}

fn at(batch: u64, time: u64, past: u64) -> Lengths {
    Lengths { batch, time, source: 0, past, rows: 0 }
}

#[test]
fn parameters_by_hand() {
    let cost = cost(&decoder(6, false));
    let p = &cost.parameters;
    // tokens 11*4 + positions 8*4
    assert_eq!(p.of(Role::Embedding).total, 44 + 32);
    // query and out 4*4 + 4, key and value 4*2 + 2, in 6 blocks
    assert_eq!(p.of(Role::Attention).total, 6 * (20 + 10 + 10 + 20));
    // up 4*16 + 16, down 16*4 + 4
    assert_eq!(p.of(Role::Ffn).total, 6 * (80 + 68));
    // two norms of 4 + 4 a block, and the last one
    assert_eq!(p.of(Role::Norm).total, 6 * 16 + 8);
    // the head has the table of tokens, which is counted above
    assert_eq!(p.of(Role::Head).total, 0);
    assert_eq!(p.all().total, p.all().active);
    assert_eq!(p.all().total, 76 + 360 + 888 + 104);
    assert_eq!(p.bytes(4), 4 * 1428);
    assert_eq!(cost.kind, ModelKind::Decoder);
}

/// A model is called what its author wrote, whatever its masks, its head and its positions let it do.
#[test]
fn a_model_is_what_its_author_wrote() {
    let stacks = [
        ("decoder: {layers: 1, attention: {heads: 2, mask: {prefix: 2}}}\nhead: lm", "decoder"),
        ("decoder: {layers: 1, attention: {heads: 2, mask: bidirectional}}\nhead: lm", "decoder"),
        ("decoder: {layers: 1, attention: {heads: 2}}\nhead: {classify: {classes: 2}}", "decoder"),
        (
            "decoder: {layers: 1, position: {rotary: {scaling: {dynamic: {factor: 2}}}}, attention: {heads: 2}}\nhead: lm",
            "decoder",
        ),
        (
            "encoder: {layers: 1, attention: {heads: 2, mask: causal}}\nhead: {classify: {classes: 2}}",
            "encoder",
        ),
        (
            "encoder: {layers: 1, attention: {heads: 2}}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: translate",
            "encoder-decoder",
        ),
        (
            "encoder: {layers: 1, embed: {patches: {image: 8, size: 4}}, attention: {heads: 2}}\n\
             decoder: {layers: 1, attention: {heads: 2, mask: {prefix: 2}}}\nhead: translate",
            "encoder-decoder",
        ),
    ];
    for (stacks, words) in stacks {
        let text = format!("trafo: 1\nname: m\nvocab: 16\ncontext: 8\nd_model: 8\n{stacks}\n");
        let front = crate::front::Front::of_text("m.yaml", &text, "specs");
        let graph = front.compilation.graph.as_ref().unwrap_or_else(|| panic!("{}", front.rendered()));
        assert_eq!(graph.kind.words(), words, "{text}");
        let page = trafoc::report::summary::summary(graph).to_string();
        assert!(page.starts_with(&format!("m: {words}, ")), "{page}");
        let outline = trafoc::draw::model::outline(graph, &front.sources);
        assert_eq!(outline.summary[0], words, "{text}");
        for site in trafoc::inspect::sites::sites(graph).attention {
            assert!(site.path.starts_with(site.kind.word()) || words == "encoder-decoder", "{site:?}");
        }
    }
}

#[test]
fn operations_by_hand() {
    let cost = cost(&decoder(6, false));
    // A token in a block: query and out 2*4*4, key and value 2*4*2, up and down 2*4*16.
    // The tied table: 2*4*11.
    let per_token = 6 * (32 + 32 + 16 + 16 + 128 + 128) + 88;
    assert_eq!(cost.work.matmul.to_string(), format!("{per_token}*B*T"));
    // A pair: 2 heads, 2*2 for the score and 2*2 for the sum, in 6 blocks; T*(P+T) pairs.
    assert_eq!(cost.work.attention.to_string(), "96*B*P*T+96*B*T*T");
    // 5 tokens after none: a causal mask leaves 1+2+3+4+5 = 15 pairs, a window of 3 leaves
    // 1+2+3+3+3 = 12; 3 blocks of each, 16 operations a pair.
    let five = cost.forward(&at(1, 5, 0));
    assert_eq!(five.full, per_token * 5 + 96 * 25);
    assert_eq!(five.visible, per_token * 5 + 3 * 16 * 15 + 3 * 16 * 12);
    assert_eq!(five.training, 3 * five.full);
    // One token after 7: 8 keys in the full blocks, 3 in the window.
    let last = cost.forward(&cost.last_token());
    assert_eq!(last.full, per_token + 96 * 8);
    assert_eq!(last.visible, per_token + 3 * 16 * 8 + 3 * 16 * 3);
    // Twice the batch, twice the work.
    assert_eq!(cost.forward(&at(2, 5, 0)).full, 2 * five.full);
}

#[test]
fn caches_by_hand() {
    let cost = cost(&decoder(6, false));
    // A grouped key and value head of width 2 in each of 6 blocks.
    assert_eq!(cost.cache_per_token(), 6 * (2 + 2));
    // At 8 tokens: 3 blocks see 8, 3 blocks see 3.
    assert_eq!(cost.cache_at(8), 3 * 4 * 8 + 3 * 4 * 3);
    assert_eq!(cost.cache_at(2), 6 * 4 * 2);
}

#[test]
fn a_mixture_counts_all_experts_and_runs_the_active_ones() {
    let (dense, mixed) = (cost(&decoder(4, false)), cost(&decoder(4, true)));
    // Router 4*4 + 4; an expert 4*8 + 8 + 8*4 + 4 = 76.
    let count = mixed.parameters.of(Role::Ffn);
    assert_eq!(count.total, 2 * 148 + 2 * (20 + 4 * 76));
    assert_eq!(count.active, 2 * 148 + 2 * (20 + 2 * 76));
    // A token in a mixture: router 2*4*4, two experts of 2*(4*8 + 8*4); in a dense ffn 256.
    let difference = 2 * (32 + 2 * 128) - 2 * 256;
    let (dense, mixed) = (dense.forward(&at(1, 1, 0)).full, mixed.forward(&at(1, 1, 0)).full);
    assert_eq!(mixed, dense + difference);
}

#[test]
fn a_billion_layers_cost_no_more_to_count() {
    let started = std::time::Instant::now();
    let graph = decoder(1_000_000_000, true);
    let total = cost(&graph).parameters.all().total;
    let table = layers(&graph, 4, &at(1, 8, 0));
    assert_eq!(total, 76 + 8 + 500_000_000 * (60 + 148 + 16) + 500_000_000 * (60 + 324 + 16));
    assert_eq!(table.total.parameters, total);
    assert!(started.elapsed().as_millis() < 50, "{:?}", started.elapsed());
}

/// Counts products with weights and attention as if the ops were run one after another, with every block
/// separately and shapes as numbers. Returns operations and elements of cached values.
fn run(graph: &Graph, module: &Module, lengths: &Lengths) -> (u128, u128) {
    let size = |id: &trafoc::ir::ValueId| {
        module.value(*id).ty.shape.iter().map(|d| d.eval(lengths)).product::<u128>()
    };
    let last = |id: &trafoc::ir::ValueId| module.value(*id).ty.last().unwrap().eval(lengths);
    let mut sum = (0, 0);
    let mut call = |id: ModuleId, lengths: &Lengths| {
        let (a, b) = run(graph, graph.module(id), lengths);
        sum = (sum.0 + a, sum.1 + b);
    };
    let mut own = (0, 0);
    for node in &module.nodes {
        match &node.op {
            Op::Layer { member } => match &module.member(*member).kind {
                MemberKind::Layer(Layer::Linear { input, .. }) => {
                    own.0 += 2 * size(&node.outputs[0]) * u128::from(*input);
                }
                MemberKind::Layer(Layer::Patches { channels, size: side, .. }) => {
                    own.0 += 2 * size(&node.outputs[0]) * u128::from(*channels * *side * *side);
                }
                _ => {}
            },
            Op::Call { member } => {
                let MemberKind::Module(id) = module.member(*member).kind else { panic!() };
                call(id, lengths);
            }
            Op::Scan { member, each, .. } => {
                let MemberKind::Stack(runs) = &module.member(*member).kind else { panic!() };
                for run in runs {
                    for i in 0..run.count {
                        for _ in 0..*each {
                            call(run.cycle[i as usize % run.cycle.len()], lengths);
                        }
                    }
                }
            }
            Op::Experts { member, active } => {
                let MemberKind::Stack(runs) = &module.member(*member).kind else { panic!() };
                // The experts are equal, so it does not matter to which of them a token is sent.
                for row in 0..size(&node.inputs[0]) / last(&node.inputs[0]) * u128::from(*active) {
                    let one = Lengths { rows: 1, ..*lengths };
                    let experts: Vec<ModuleId> = runs.iter().flat_map(|r| r.cycle.clone()).collect();
                    call(experts[row as usize % experts.len()], &one);
                }
            }
            Op::Attention(_) => {
                own.0 += 2 * size(&node.outputs[1]) * (last(&node.inputs[1]) + last(&node.inputs[2]));
            }
            Op::MatMul { .. } => own.0 += 2 * size(&node.outputs[0]) * last(&node.inputs[0]),
            Op::Einsum(axes) => {
                // Every element of the product of both, before it is added up.
                let shape =
                    |id: &trafoc::ir::ValueId| module.value(*id).ty.shape.iter().map(|dim| dim.eval(lengths));
                let left = axes.left.chars().zip(shape(&node.inputs[0]));
                let right = axes.right.chars().zip(shape(&node.inputs[1]));
                let (alone, mut sizes) = (|c: &char| !axes.result.contains(*c), BTreeMap::new());
                sizes.extend(left.filter(|(c, _)| !alone(c) || axes.right.contains(*c)));
                sizes.extend(right.filter(|(c, _)| !alone(c) || axes.left.contains(*c)));
                own.0 += 2 * sizes.values().product::<u128>();
            }
            Op::Recurrence { .. } => {
                // What is added and what is read; the delta rule reads once more.
                let products = 2 * (node.inputs.len() as u128 - 2);
                own.0 += products * size(&node.outputs[0]) * last(&node.inputs[1]);
            }
            Op::Unembed => own.0 += 2 * size(&node.outputs[0]) * last(&node.inputs[0]),
            Op::Cache => own.1 += size(&node.inputs[0]),
            _ => {}
        }
    }
    (sum.0 + own.0, sum.1 + own.1)
}

/// The closed form, the sum over what is built and the count of what is run are equal.
pub fn self_check(graph: &Verified) {
    let cost = cost(graph);
    let (mut trained, mut buffers) = (0u128, 0u128);
    for (_, parameter) in expanded(graph).unwrap() {
        *(if parameter.trained { &mut trained } else { &mut buffers }) += elements(&parameter.shape);
    }
    assert_eq!((cost.parameters.all().total, cost.parameters.buffers), (trained, buffers), "{}", graph.name);
    for (batch, time, past, source) in [(1, 1, 0, 1), (2, 5, 0, 3), (3, 1, 4, 7), (1, 4, 3, 2)] {
        let past = if graph.decodes { past } else { 0 };
        let lengths = Lengths { batch, time, source, past, rows: 0 };
        let (operations, _) = run(graph, graph.root(), &lengths);
        assert_eq!(cost.forward(&lengths).full, operations, "{} at {lengths:?}", graph.name);
    }
    if graph.decodes {
        let one = Lengths { batch: 1, time: 1, source: 1, past: 5, rows: 0 };
        assert_eq!(cost.cache_per_token(), run(graph, graph.root(), &one).1, "{}", graph.name);
    }
    // Rows that have none below them add up to all parameters, and the operations of one depth to no more
    // than the model's.
    let table = layers(graph, usize::MAX, &at(2, 5, 0));
    let leaves = |i: usize| table.rows.get(i + 1).is_none_or(|next| next.depth <= table.rows[i].depth);
    let sum: u128 = (0..table.rows.len()).filter(|i| leaves(*i)).map(|i| table.rows[i].parameters).sum();
    assert_eq!(sum, trained, "{}", graph.name);
    let top: u128 = table.rows.iter().filter(|r| r.depth == 1).map(|r| r.operations).sum();
    assert!(top <= table.total.operations, "{}", graph.name);
}

#[test]
fn closed_form_equals_what_is_built_and_run() {
    for blocks in 1..=5 {
        self_check(&decoder(blocks, false));
        self_check(&decoder(blocks, true));
    }
}

#[test]
fn shipped_specs_count_what_is_published() {
    let specs = compiled::specs("specs");
    let counts = std::fs::read_to_string(compiled::repository("tests/counts.txt")).unwrap();
    for line in counts.lines().filter(|l| !l.starts_with('#')) {
        let (name, count) = line.split_once(' ').unwrap();
        let path = &specs.iter().find(|(n, _)| n == name).unwrap().1;
        let total = cost(&compiled::graph(path)).parameters.all().total;
        assert_eq!(number::exact(total), count, "{name}");
    }
}

#[test]
fn shipped_specs_cost_what_is_built_and_run() {
    for (_, path) in compiled::specs("specs") {
        self_check(&compiled::graph(&path));
    }
}

#[test]
fn visible_pairs_equal_a_count_one_by_one() {
    let rules = |causal, window: Option<(u64, bool)>, chunk, prefix| MaskRule {
        causal,
        window: window.map(|(size, centred)| Window { size, centred }),
        chunk,
        prefix,
    };
    let mut all = Vec::new();
    for causal in [false, true] {
        for window in [None, Some((1, true)), Some((3, false)), Some((7, true)), Some((50, false))] {
            for chunk in [None, Some(1), Some(4), Some(5)] {
                for prefix in [None, Some(1), Some(6), Some(40)] {
                    all.push(rules(causal, window, chunk, prefix));
                }
            }
        }
    }
    for (i, first) in all.iter().enumerate() {
        // All pairs of rules would be many.
        let second = &all[(i * 37 + 11) % all.len()];
        // Chunks of sizes that are no multiples of each other.
        let third = rules(false, None, Some([3, 6, 7][i % 3]), None);
        for rules in [vec![*first], vec![*first, *second], vec![*first, third], vec![*first, *second, third]]
        {
            for (from, queries, keys) in
                [(0, 0, 0), (0, 1, 1), (0, 43, 43), (6, 7, 13), (12, 1, 13), (0, 9, 4), (29, 14, 43)]
            {
                let slow = (from..from + queries)
                    .flat_map(|q| (0..keys).map(move |k| (q, k)))
                    .filter(|(q, k)| !rules.iter().any(|rule| rule.hides(*q, *k)))
                    .count() as u128;
                let fast = visible_pairs(&rules, from.into(), queries.into(), keys.into());
                assert_eq!(fast, slow, "{rules:?} {from} {queries} {keys}");
            }
        }
    }
    // Lengths for which a loop over pairs would never end.
    let far = 1 << 50;
    let chunked = [rules(true, Some((3, false)), Some(4), None)];
    assert_eq!(visible_pairs(&chunked, 0, far, far), (far / 4) * (1 + 2 + 3 + 3));
    // Chunks of n and n + 1: after chunk j of the second, one of the first has n - j positions left.
    let two = |a: u64, b: u64| [rules(false, None, Some(a), None), rules(false, None, Some(b), None)];
    let n = (1 << 16) - 1u64;
    let once: u128 = (1..u128::from(n)).map(|j| (u128::from(n) - j).pow(2) + (j + 1).pow(2)).sum();
    let once = once + u128::from(n).pow(2) + 1;
    let period = u128::from(n * (n + 1));
    assert_eq!(visible_pairs(&two(n, n + 1), 0, period, period), once);
    assert_eq!(visible_pairs(&two(n, n + 1), 0, 3 * period, 3 * period), 3 * once);
    // A small size under one that is no multiple of it, and under one that is.
    let half = 1u128 << 39;
    assert_eq!(visible_pairs(&two(2, (1 << 39) + 1), 0, 2 * half, 2 * half), 4 * half - 2);
    assert_eq!(visible_pairs(&two(2, 1 << 39), 0, 2 * half, 2 * half), 4 * half);
}

#[test]
fn numbers_read_well() {
    assert_eq!(number::exact(124_439_808), "124,439,808");
    assert_eq!([0, 999, 1000].map(number::exact).join(" "), "0 999 1,000");
    let counts = [0, 999, 1_000, 9_995, 205_888, 999_960, 124_439_808, 8_030_261_248, 1_000_000_000_000];
    assert_eq!(
        counts.map(number::count).join(", "),
        "0, 999, 1.00 K, 10.0 K, 205.9 K, 1.00 M, 124.4 M, 8.03 B, 1.00 T"
    );
    assert_eq!(number::operations(291_600_000_000), "291.6 G");
    // Beyond the largest unit of counts.
    assert_eq!(number::count(103_081_000_000_000_000), "103,081 T");
    assert_eq!(
        [0, 1023, 1024, 497_759_232].map(number::bytes).join(", "),
        "0 B, 1023 B, 1.00 KiB, 474.7 MiB"
    );
    assert_eq!(number::count_with_short(124_439_808), "124,439,808 (124.4 M)");
    assert_eq!(
        [(0, 9), (1, 90_000), (1, 3), (9, 9)].map(|(a, b)| number::share(a, b)).join(", "),
        "0 %, <0.1 %, 33.3 %, 100.0 %"
    );
    let changes = [(9, 9), (0, 9), (90_000, 90_001), (90_001, 90_000), (8, 9), (9, 8), (1, 21), (20_000, 2)];
    let changes = changes.map(|(from, to)| number::percent(from, to)).join(", ");
    assert_eq!(changes, ", , <0.1 %, <0.1 %, +12.5 %, −11.1 %, ×21.0, ÷10000");
    let (b, t) = (Dim::sym(Sym::Batch), Dim::sym(Sym::Time));
    let formula = b.clone() * t.clone() * t.clone() * Dim::of(36_864u64) + b * t + Dim::of(7u64);
    assert_eq!(number::formula(&formula), "36,864·B·T² + B·T + 7");
    assert_eq!(number::formula(&Dim::default()), "0");
}

#[test]
fn pages_fit_in_eighty_columns() {
    let graph = decoder(6, true);
    let page = summary(&graph).to_string();
    let table = layers(&graph, 4, &at(1, 8, 0));
    let texts = [
        ("summary", page.clone()),
        ("layers", table.text(80)),
        ("layers-wide", table.text(140)),
        ("layers-csv", table.csv()),
        ("layers-markdown", table.markdown()),
    ];
    for (name, text) in texts {
        insta::with_settings!({
            snapshot_path => "../snap/report", prepend_module_to_snapshot => false, omit_expression => true
        }, { insta::assert_snapshot!(name, text) });
    }
    for line in page.lines().chain(table.text(80).lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn pages_of_shipped_specs() {
    let names = ["gpt2-small", "mixtral-8x7b", "gemma2-2b", "t5-small", "vit-b16", "deepseek-v3-tiny"];
    for (name, path) in compiled::specs("specs") {
        let graph = compiled::graph(&path);
        let page = summary(&graph).to_string();
        let table = layers(&graph, 3, &cost(&graph).whole_context()).text(80);
        for line in page.lines().chain(table.lines()) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        if names.contains(&name.as_str()) {
            insta::with_settings!({
                snapshot_path => "../snap/report", prepend_module_to_snapshot => false, omit_expression => true
            }, { insta::assert_snapshot!(name, format!("{page}\n{table}")) });
        }
    }
}

/// The values that decoding caches per token, per token of the source, and at the end of the context.
#[test]
fn caches_of_shipped_specs_by_hand() {
    let expected: [(&str, u128, u128, u128); 6] = [
        // 12 layers, keys and values of 768.
        ("gpt2-small", 12 * 2 * 768, 0, 12 * 2 * 768 * 1024),
        // 32 layers, keys and values of 8 heads of 128.
        ("llama3-8b", 32 * 2 * 8 * 128, 0, 32 * 2 * 8 * 128 * 8192),
        // The same with a window of 4096 in a context of 32768.
        ("mistral-7b", 32 * 2 * 8 * 128, 0, 32 * 2 * 8 * 128 * 4096),
        // 13 layers with a window of 4096 and 13 without, in a context of 8192; 4 heads of 256.
        ("gemma2-2b", 26 * 2 * 4 * 256, 0, 13 * 2 * 4 * 256 * 4096 + 13 * 2 * 4 * 256 * 8192),
        // 3 layers, a latent of 16 and a rotated key of 8.
        ("deepseek-v3-tiny", 3 * (16 + 8), 0, 3 * (16 + 8) * 128),
        // 6 layers, keys and values of 8 heads of 64, for the target and again for the source.
        ("t5-small", 6 * 2 * 512, 6 * 2 * 512, 6 * 2 * 512 * 512),
    ];
    let specs = compiled::specs("specs");
    for (name, per_token, per_source_token, at_context) in expected {
        let path = &specs.iter().find(|(n, _)| n == name).unwrap().1;
        let cost = cost(&compiled::graph(path));
        let found = (cost.cache_per_token(), cost.attended.per_source_token, cost.cache_at(cost.context));
        assert_eq!(found, (per_token, per_source_token, at_context), "{name}");
    }
}

/// The forward operations of GPT-2 small over its whole context, term by term.
#[test]
fn operations_of_gpt2_by_hand() {
    let specs = compiled::specs("specs");
    let path = &specs.iter().find(|(n, _)| n == "gpt2-small").unwrap().1;
    let cost = cost(&compiled::graph(path));
    let (d, layers, vocab, t) = (768u128, 12u128, 50_257u128, 1024u128);
    // q, k, v and output d*d each; up and down d*4d each; the tied table d*vocab; 2 operations each.
    let matmul = 2 * t * (layers * (4 * d * d + 8 * d * d) + d * vocab);
    // Scores and weighted sum: 2*d operations a pair each, heads together.
    let (full, half) = (layers * 4 * d * t * t, layers * 4 * d * t * (t + 1) / 2);
    let found = cost.forward(&cost.whole_context());
    assert_eq!((found.full, found.visible), (matmul + full, matmul + half));
}

#[test]
fn json_holds_the_numbers_of_the_page() {
    let graph = decoder(6, true);
    let json = serde_json::to_value(summary(&graph)).unwrap();
    assert_eq!(json["parameters"]["total"], 1956);
    assert_eq!(json["kind"], "decoder");
    assert_eq!(json["roles"][1]["role"], "attention");
    assert_eq!(json["cache"]["per_token"], 24);
    assert_eq!(json["inputs"][0]["type"], "int[B,T]");
    let table = serde_json::to_value(layers(&graph, 2, &at(1, 8, 0))).unwrap();
    assert_eq!(table["rows"][2]["path"], "blocks.0,2,4");
    assert_eq!(table["rows"][2]["copies"], 3);
    assert_eq!(table["total"]["parameters"], 1956);
    // Counts above 64 bits are still numbers.
    let huge = serde_json::to_value(summary(&decoder(u64::MAX, true))).unwrap();
    assert!(huge["parameters"]["total"].is_f64());
}
