//! Costs by name: random specs against what is built and run, caches against `tests/compare/kv.txt`, memory
//! against its components.

use proptest::prelude::*;
use trafoc::ir::verify::verify;
use trafoc::ir::{Graph, MemberKind, Op, Run, Verified};
use trafoc::report::cost::cost;
use trafoc::report::costs::{Costs, Name};
use trafoc::report::memory::memory;
use trafoc::report::scene::{Element, Scene};
use trafoc::report::summary::summary;
use trafoc::source::{SourceMap, Span};
use trafoc::syntax::expr::{NoNames, eval, parse};
use trafoc::syntax::tree::Node;

use crate::compiled::{graph, graph_with, repository, specs};
use crate::front::Front;
use crate::{laws, random, report};

proptest! {
    #![proptest_config(laws::config())]

    /// The closed form, the sum over what is built and the count of what is run are equal.
    #[test]
    fn a_random_spec_costs_what_is_built_and_run(tape in laws::tape()) {
        // The sum goes over every layer that is built.
        let text = random::spec(&tape).replace("1000000007", "5");
        let front = Front::of_text("tiny.yaml", &text, "specs");
        prop_assert!(front.is_sound(), "{text}\n{}", front.rendered());
        report::self_check(&front.compilation.graph.unwrap());
    }
}

/// The same model with a run of its own for every block.
fn written_out(graph: &Graph) -> Verified {
    let mut graph = graph.clone();
    for module in &mut graph.modules {
        let (members, nodes) = (&mut module.members, &mut module.nodes);
        for (index, member) in members.iter_mut().enumerate() {
            let MemberKind::Stack(runs) = &mut member.kind else { continue };
            let blocks = |run: &Run| (0..run.count as usize).map(|i| i % run.cycle.len()).collect::<Vec<_>>();
            for node in nodes.iter_mut() {
                if let Op::Scan { member, args, .. } = &mut node.op
                    && member.0 == index
                {
                    let of_run = |(run, args): (&Run, &Vec<Vec<usize>>)| -> Vec<Vec<Vec<usize>>> {
                        blocks(run).into_iter().map(|i| vec![args[i].clone()]).collect()
                    };
                    *args = runs.iter().zip(&*args).flat_map(of_run).collect();
                }
            }
            let alone = |run: &Run, i: usize| Run { count: 1, cycle: vec![run.cycle[i]] };
            *runs = runs.iter().flat_map(|run| blocks(run).into_iter().map(|i| alone(run, i))).collect();
        }
    }
    verify(graph).unwrap()
}

proptest! {
    #![proptest_config(laws::config())]

    /// Memory in closed form over equal blocks is that of the same blocks one by one.
    #[test]
    fn memory_of_repeated_blocks_is_that_of_blocks_one_by_one(tape in laws::tape(), more in 0u64..12) {
        let text = random::spec(&tape);
        let deeper = |line: &str| match line.trim().strip_prefix("layers: ").map(str::parse::<u64>) {
            // Written out, a billion layers would fill the memory.
            Some(Ok(layers)) => format!("  layers: {}\n", layers % 1_000_000_000 + more),
            _ => format!("{line}\n"),
        };
        let text: String = text.lines().map(deeper).collect();
        // A spec that lists its layers one by one has a fixed number of them.
        let Some(graph) = Front::of_text("tiny.yaml", &text, "specs").compilation.graph else { return Ok(()) };
        let scene = Scene { batch: 3, tokens: 7, element: Element::F32 };
        let of = |graph: &Verified| memory(graph, &cost(graph), &scene);
        prop_assert_eq!(of(&graph), of(&written_out(&graph.for_training())), "{}", text);
    }
}

/// The value of an arithmetic expression.
fn worked(text: &str) -> u128 {
    let mut sources = SourceMap::new();
    let id = sources.add("kv.txt", text);
    let expr = parse(&sources, &Node::plain(text, Span::new(id, 0, text.len()))).unwrap();
    eval(&expr, &NoNames).unwrap().to_u64().unwrap().into()
}

#[test]
fn caches_are_as_worked_by_hand() {
    let text = std::fs::read_to_string(repository("tests/compare/kv.txt")).unwrap();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[name, setting, tokens, per_token, whole] = columns.as_slice() else { panic!("{line}") };
        let settings: Vec<&str> = [setting].into_iter().filter(|s| !s.is_empty()).collect();
        let file = if name.contains('/') { format!("{name}.yaml") } else { format!("specs/{name}.yaml") };
        let graph = graph_with(&repository(&file), &settings);
        let scene = Scene { batch: 1, tokens: tokens.parse().unwrap(), element: Element::Bf16 };
        let costs = Costs::measure(&graph, &cost(&graph), &scene);
        let found = (costs.of(Name::KvPerToken), costs.of(Name::Kv));
        assert_eq!(found, (worked(per_token), worked(whole)), "{line}");
    }
}

/// A batch costs as much as its sequences together, and bytes are proportional to the size of an element.
#[test]
fn costs_scale_as_they_should() {
    for (name, path) in specs("specs") {
        let graph = graph(&path);
        let of = |batch, element| {
            let scene = Scene { batch, tokens: 16, element };
            Costs::measure(&graph, &cost(&graph), &scene)
        };
        let (one, three, wide) = (of(1, Element::Bf16), of(3, Element::Bf16), of(1, Element::F32));
        for cost in [Name::Flops, Name::VisibleFlops, Name::TrainingFlops, Name::Kv] {
            assert_eq!(three.of(cost), 3 * one.of(cost), "{name} {}", cost.word());
        }
        for cost in [Name::Weights, Name::Kv, Name::KvPerToken, Name::RunMemory] {
            assert_eq!(wide.of(cost), 2 * one.of(cost), "{name} {}", cost.word());
        }
        // Masks, ids and the entries of the autodiff tape, which training keeps too, do not have the
        // element type.
        let (wide, narrow) = (wide.of(Name::TrainMemory), 2 * one.of(Name::TrainMemory));
        assert!(wide <= narrow && narrow - wide <= narrow / 50 + (1 << 18), "{name}: {wide} of {narrow}");
        let memory = one.memory;
        assert_eq!(memory.gradients, 2 * one.of(Name::Params), "{name}");
        assert_eq!(memory.optimizer, 2 * memory.gradients, "{name}");
        // The values that are alive at the same time, attention scores included, are at most all values
        // that are computed.
        assert!(0 < memory.peak && memory.peak <= memory.activations, "{name}: {memory:?}");
        assert_eq!(three.memory.weights, memory.weights, "{name}");
    }
}

/// To run, an additional layer needs no more memory than its weights: the values of only one block are
/// alive at a time.
#[test]
fn memory_to_run_does_not_grow_with_depth() {
    let path = repository("specs/gpt2-small.yaml");
    let scene = Scene { batch: 2, tokens: 64, element: Element::F32 };
    let memory = |layers: &str| {
        let graph = graph_with(&path, &[layers]);
        Costs::measure(&graph, &cost(&graph), &scene).memory
    };
    let (few, many) = (memory("decoder.layers=2"), memory("decoder.layers=40"));
    assert_eq!(few.peak, many.peak);
    // The logits of every position, and their input of 768.
    assert_eq!(few.peak, (2 * 64 * 50_257 + 2 * 64 * 768) * 4);
    let per_layer = (many.activations - few.activations) / 38;
    assert_eq!(few.activations + 3 * per_layer, memory("decoder.layers=5").activations);
}

/// The delta rule reads the state once more: a multiply-add for each feature of the keys and each number of the
/// result.
#[test]
fn the_delta_rule_costs_another_product() {
    let operations = |beta: &str| {
        let text = format!(
            "trafo: 1\nname: tiny\nvocab: 16\ncontext: 8\nd_model: 8\nhead: lm\nparts:\n  unit: |\n    \
             beta = sigmoid(split(linear[rate](x, 2), 2))\n    \
             q = split(linear[query](x, d_model), 2)\n    k = split(linear[key](x, d_model), 2)\n    \
             v = beta * split(linear[value](x, d_model), 2)\n    \
             linear[out](merge(recurrence(q, k, v, 0.5{beta})), d_model)\n\
             decoder: {{layers: 1, attention: unit, ffn: {{hidden: 8}}}}\n"
        );
        let front = Front::of_text("tiny.yaml", &text, "specs");
        assert!(front.codes().is_empty(), "{}", front.rendered());
        let cost = cost(&front.compilation.graph.unwrap());
        cost.forward(&cost.whole_context()).full
    };
    // Two heads, eight positions, four numbers of each, and four features of a key.
    assert_eq!(operations(", beta") - operations(""), 2 * (2 * 8 * 4) * 4);
}

#[test]
fn the_help_names_every_cost() {
    let help = std::fs::read_to_string(repository("tests/snap/cli/help.snap")).unwrap();
    let words: Vec<&str> = help.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for name in Name::ALL {
        assert!(words.contains(&name.word()), "{}", name.word());
        assert!(!name.explanation().is_empty() && !name.phrase().starts_with(' '));
    }
}

/// A step of decoding reads the keys that its cache has, and computes nothing of the source again.
#[test]
fn a_step_of_decoding_counts_what_is_not_kept() {
    let measured = |rest: &str| {
        let text = format!("name: tiny\nvocab: 27\ncontext: 160\nd_model: 16\n{rest}");
        let front = Front::of_text("tiny.yaml", &text, "specs");
        assert!(front.codes().is_empty(), "{}", front.rendered());
        let graph = front.compilation.graph.unwrap();
        let cost = cost(&graph);
        let scene = Scene { batch: 1, tokens: 160, element: Element::F32 };
        let next = Costs::one(Name::DecodingFlops, &graph, &cost, &scene).unwrap();
        (next, cost, summary(&graph).to_string())
    };
    // Four products of 16 x 16 and the table of 27; 2 heads of 8 take 64 operations for a key, of which 5 are seen.
    let block =
        "decoder: {layers: 1, block: 'x = x + attention(norm(x))', attention: {heads: 2, mask: [window: 5]}}";
    let part = "parts: {f: 'linear[o](merge(attend(split(linear[q](x, 16), 2), split(linear[k](x, 16), 2), \
                split(linear[v](x, 16), 2), window: 5)), 16)'}\ndecoder: {layers: 1, block: 'x = x + f(norm(x))'}";
    for of in [block, part] {
        let (next, cost, page) = measured(&format!("{of}\nhead: lm\n"));
        assert_eq!((next, cost.cache_at(160)), (2 * (4 * 16 * 16 + 16 * 27) + 64 * 5, 5 * 32), "{page}");
        let line = "decoding   3.23 k for the next token after 159, with what masks leave\n";
        assert!(page.contains(line), "{page}");
    }
    // Keys, values and a sum over the source are computed once and kept: with them, a step has two products, the scores and
    // the weighted sum over 160 keys, what it reads of the sum, and the table.
    let both = "source_vocab: 27\nencoder: {layers: 1, ffn: {expansion: 1}, block: 'x = x + ffn(norm(x))'}\n\
                decoder: {layers: 1, cross: summed, block: 'x = x + cross(norm(x), memory)'}\nhead: translate\n\
                parts:\n  summed: |\n    (x, memory):\n    q = split(linear[q](x, 16), 2)\n    k = split(linear[k](memory, 16), 2)\n    \
                v = split(linear[v](memory, 16), 2)\n    all = einsum(\"bhtd,bhte->bhde\", exp(k), v)\n    \
                w = weigh(softmax(scores(q, k)), v) + einsum(\"bhtd,bhde->bhte\", q, all)\n    linear[o](merge(w), 16)\n";
    let (next, cost, page) = measured(both);
    assert_eq!(next, 2 * (2 * 16 * 16 + 16 * 27) + 64 * 160 + 2 * 2 * 8 * 8, "{page}");
    assert_eq!((cost.attended.per_source_token, cost.attended.states), (32, 128), "{page}");
    assert!(page.contains("without what depends on the source alone, which is computed once\n"), "{page}");
}
