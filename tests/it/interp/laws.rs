//! Laws that must hold for every architecture.

use proptest::prelude::*;

use trafoc::ir::Sym;
use trafoc::ir::op::{Pool, Sequence};

use super::*;

#[test]
fn outputs_have_their_types_and_are_finite() {
    for (name, graph) in cases() {
        let model = model(graph);
        let outputs = run(&model, &inputs(model.plan(), &LENGTHS));
        let root = model.graph().root();
        for id in &root.results {
            let wanted = root.value(*id);
            let shape: Vec<usize> = wanted.ty.shape.iter().map(|d| d.eval(&LENGTHS) as usize).collect();
            let found = &outputs[&wanted.name];
            assert_eq!(found.dims().unwrap(), shape, "{name} {}", wanted.name);
            assert!(floats(found).iter().all(|x| x.is_finite()), "{name} {}", wanted.name);
        }
    }
}

#[test]
fn cached_decoding_equals_full_decoding() {
    for (name, graph) in cases() {
        let model = model(graph);
        if model.graph().decodes {
            cached_equals_full(&name, &model);
        }
    }
}

fn cached_equals_full(name: &str, model: &Model) {
    let all = inputs(model.plan(), &LENGTHS);
    let full = run(model, &all);
    let mut cache = model.cache();
    let mut parts: Vec<Vec<f32>> = Vec::new();
    let (batch, time) = (LENGTHS.batch as usize, LENGTHS.time as usize);
    // A prompt of three positions, then one position at a time.
    let steps = [0..3, 3..4, 4..5, 5..6, 6..7];
    for step in steps {
        let mut given = Inputs::new();
        for input in model.plan().inputs().iter().filter(|i| step.start == 0 || !i.memory) {
            let value = all.get(&input.name).unwrap().clone();
            given = given.with(&input.name, if input.memory { value } else { part(value, input, &step) });
        }
        let outputs = model.forward_cached(&given, &mut cache).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(cache.len(), step.end);
        parts.push(floats(&outputs["logits"]));
    }
    let full = floats(&full["logits"]);
    let width = full.len() / batch / time;
    let mut joined = Vec::new();
    for b in 0..batch {
        for part in &parts {
            let rows = part.len() / batch;
            joined.extend_from_slice(&part[b * rows..(b + 1) * rows]);
        }
    }
    assert_eq!(joined.len(), batch * time * width);
    assert_close(&full, &joined);
}

/// Decoders continue 1,000 prompts of any length and content, greedily and together: with a cache, and with all positions
/// computed again for every token. Both choose the same tokens, and their scores are the same but for rounding.
#[test]
fn a_thousand_prompts_are_continued_alike_with_a_cache_and_without() {
    const PROMPTS: usize = 1000;
    let all: Vec<(String, Model)> = cases()
        .into_iter()
        .filter(|(_, graph)| graph.decodes)
        .map(|(name, graph)| (name, model(graph)))
        .collect();
    let mut next = noise(1000);
    let mut chosen = 0;
    for number in 0..PROMPTS {
        let (name, model) = &all[number % all.len()];
        chosen += continued_alike(&format!("{name}, prompt {number}"), model, &mut next);
    }
    println!("{} decoders chose {chosen} tokens after {PROMPTS} prompts", all.len());
    assert!(chosen >= 3 * PROMPTS, "{chosen} tokens");
}

/// Continues a prompt of random tokens with a cache and without one; the number of tokens that both have chosen.
fn continued_alike(name: &str, model: &Model, next: &mut impl FnMut() -> f64) -> usize {
    // Longer than every window and chunk of the specs, and within their contexts.
    const LONGEST: usize = 16;
    let mut below = |most: usize| ((next() * most as f64) as usize).min(most - 1);
    let length = 1 + below(LONGEST);
    let lengths = Lengths { batch: 1, time: LONGEST as u64, source: 1 + below(6) as u64, ..LENGTHS };
    let inputs = model.plan().inputs();
    let text = inputs.iter().find(|i| !i.memory && !i.keep && i.ty.shape.len() == 2).unwrap();
    let vocab = text.rows.as_ref().unwrap().0 as usize;
    let mut tokens: Vec<i64> = (0..length).map(|_| below(vocab) as i64).collect();
    let seed = below(1 << 30) as u64;
    // What the model needs besides the tokens of these positions; a mask that may be left out hides nothing.
    let given = |tokens: &[i64], from: usize| {
        let mut given = Inputs::new();
        for (i, input) in inputs.iter().enumerate().filter(|(_, input)| !input.ty.optional) {
            if input.memory && from > 0 {
                continue;
            }
            given = match input.name == text.name {
                true => {
                    let new = TensorData::new(tokens[from..].to_vec(), [1, tokens.len() - from]);
                    given.with(&input.name, Tensor::<2, Int>::from_data(new, &device()))
                }
                false => {
                    let whole = value(input, &lengths, seed + i as u64);
                    let step = from..tokens.len();
                    given.with(&input.name, if input.memory { whole } else { part(whole, input, &step) })
                }
            };
        }
        given
    };
    let mut cache = model.cache();
    let mut chosen = 0;
    loop {
        let options = Options::default();
        let last = |outputs: &Outputs| {
            let logits = floats(&outputs["logits"]);
            let width = *outputs["logits"].dims().unwrap().last().unwrap();
            logits[logits.len() - width..].to_vec()
        };
        let new = given(&tokens, cache.len());
        let cached = model.forward_cached(&new, &mut cache).unwrap_or_else(|e| panic!("{name}: {e}"));
        let whole = model.forward(&given(&tokens, 0), &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (cached, whole) = (last(&cached), last(&whole));
        assert_close(&whole, &cached);
        let best =
            |scores: &[f32]| (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        assert_eq!(best(&whole), best(&cached), "{name}: after {tokens:?}");
        chosen += 1;
        if tokens.len() == LONGEST {
            return chosen;
        }
        // A table of tokens may have fewer rows than there are scores.
        tokens.push((best(&whole) % vocab) as i64);
    }
}

proptest! {
    // Few of the specs are decoders with such a part.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// The same for random models with parts that read other positions.
    #[test]
    fn cached_decoding_equals_full_decoding_of_random_parts(tape in crate::laws::tape()) {
        let text = crate::random::spec(&tape).replace("1000000007", "3");
        let front = crate::front::Front::of_text("tiny.yaml", &text, "specs");
        let graph = front.compilation.graph.unwrap();
        if graph.decodes && text.contains("seen(") {
            let model = model(graph);
            if !grows_rounding(&model) {
                cached_equals_full("tiny", &model);
            }
        }
    }
}

/// Whether embeddings that differ in their last bit change the scores by more than half of what two ways of computing them may
/// differ. Nothing follows from such a model: without norms, numbers grow from layer to layer, and a sine of them is any number.
fn grows_rounding(model: &Model) -> bool {
    let all = inputs(model.plan(), &LENGTHS);
    let path = model.weights().layout().keys().find(|path| path.ends_with("tokens.weight")).unwrap();
    let turned =
        |(i, x): (usize, f32)| if i % 2 == 0 { x * (1.0 + f32::EPSILON) } else { x * (1.0 - f32::EPSILON) };
    let turned = model.weights().values(path).unwrap().into_iter().enumerate().map(turned).collect();
    let weights = model.weights().clone().replaced(&[(path.clone(), turned)].into_iter().collect()).unwrap();
    let (plain, turned) = (run(model, &all), model.plan().run(&weights, &all, false).unwrap());
    let (plain, turned) = (floats(&plain["logits"]), floats(&turned["logits"]));
    let scale = plain.iter().fold(1.0f32, |most, x| most.max(x.abs()));
    let off = plain.iter().zip(&turned).fold(0.0f32, |most, (x, y)| most.max((x - y).abs()));
    off > bounds().ways * scale / 2.0
}

/// With a cache and without one, what is computed for the last position alone is the last row of all.
#[test]
fn the_last_position_alone_has_its_logits() {
    for (name, graph) in cases() {
        let model = model(graph);
        if !model.graph().decodes {
            continue;
        }
        let all = inputs(model.plan(), &LENGTHS);
        let full = run(&model, &all);
        let (batch, time) = (LENGTHS.batch as usize, LENGTHS.time as usize);
        let wanted: Vec<f32> = {
            let full = floats(&full["logits"]);
            let width = full.len() / batch / time;
            full.chunks(time * width).flat_map(|rows| rows[(time - 1) * width..].to_vec()).collect()
        };
        for cache in [None, Some(&mut model.cache())] {
            let outputs = model.plan().run_last(model.weights(), &all, cache).unwrap();
            let logits = &outputs["logits"];
            assert_eq!(logits.dims().unwrap()[..2], [batch, 1], "{name}");
            assert_close(&wanted, &floats(logits));
        }
    }
}

/// The new positions of an input; a padding mask covers the past too.
fn part(value: Value, input: &Input, step: &std::ops::Range<usize>) -> Value {
    let start = if input.keep { 0 } else { step.start };
    match value {
        Value::Int(trafoc::interp::Ranked::R2(t)) => Value::from(t.narrow(1, start, step.end - start)),
        other => other,
    }
}

#[test]
fn capturing_attention_changes_nothing_but_the_last_digits() {
    for (name, graph) in cases() {
        let model = model(graph);
        let inputs = inputs(model.plan(), &LENGTHS);
        let fused = run(&model, &inputs);
        let nodes = model.graph().modules.iter().flat_map(|module| &module.nodes);
        let mut attention =
            nodes.filter_map(|node| if let Op::Attention(op) = &node.op { Some(op) } else { None });
        let has_sinks = attention.any(|op| op.has_sinks);
        let paths: Vec<String> = trafoc::interp::plan::paths(model.graph())
            .unwrap()
            .into_iter()
            .filter(|(path, ty)| ty.shape.len() == 4 && path.split(['.', '@']).any(|part| part == "weights"))
            .map(|(path, _)| path)
            .collect();
        let options = Options { captures: trafoc::interp::Captures::of(paths.clone()), ..Options::default() };
        let composed = model.forward(&inputs, &options).unwrap();
        for (output, value) in &fused {
            assert_close(&floats(value), &floats(&composed[output]));
        }
        for path in paths {
            let value = &composed[&path];
            let keys = *value.dims().unwrap().last().unwrap();
            for row in floats(value).chunks(keys) {
                let sum: f32 = row.iter().sum();
                // A sink takes a share of the attention weight.
                let least = if has_sinks { 0.0 } else { 1.0 - bounds().ways };
                assert!((least..1.0 + bounds().ways).contains(&sum), "{name} {path}: {sum}");
            }
        }
    }
}

#[test]
fn what_a_causal_mask_hides_changes_nothing() {
    for (name, graph) in cases() {
        let model = model(graph);
        // The positions of a prefix see each other.
        if !model.graph().decodes || name.contains("prefix") {
            continue;
        }
        let all = inputs(model.plan(), &LENGTHS);
        let before = floats(&run(&model, &all)["logits"]);
        let (batch, time, at) = (LENGTHS.batch as usize, LENGTHS.time as usize, 4);
        let changed = model.plan().inputs().iter().filter(|i| !i.memory && !i.keep).fold(
            all.clone(),
            |changed, input| {
                let Value::Int(trafoc::interp::Ranked::R2(old)) = all.get(&input.name).unwrap().clone()
                else {
                    return changed;
                };
                let Value::Int(trafoc::interp::Ranked::R2(new)) = value(input, &LENGTHS, 99) else {
                    return changed;
                };
                let joined = Tensor::cat(vec![old.narrow(1, 0, at), new.narrow(1, at, time - at)], 1);
                changed.with(&input.name, joined)
            },
        );
        let after = floats(&run(&model, &changed)["logits"]);
        assert_ne!(before, after, "{name}");
        let width = before.len() / batch / time;
        for b in 0..batch {
            let seen = b * time * width..(b * time + at) * width;
            assert_hidden(model.graph(), &before[seen.clone()], &after[seen], &name);
        }
    }
}

/// Whether something is computed from the first position, padding or not, as in BERT.
fn takes_first(model: &Model) -> bool {
    let mut nodes = model.graph().modules.iter().flat_map(|module| &module.nodes);
    nodes.any(|node| matches!(node.op, Op::Pool(Pool::First)))
}

/// A text has the same numbers with padding before it or after it, at once and step by step: what a part divides by has
/// nothing to add up before a text, and the number of a key is its position in the text.
#[test]
fn a_text_does_not_see_where_padding_is() {
    for spec in ["part-mean", "part-after"] {
        let graph = graph_with(&crate::compiled::repository(&format!("tests/good/{spec}.yaml")), &[]);
        let width = graph.vocab.unwrap() as usize;
        let model = model(graph);
        let tensor = |numbers: Vec<i64>| {
            Tensor::<2, Int>::from_data(TensorData::new(numbers.clone(), [1, numbers.len()]), &device())
        };
        let tokens = |range: std::ops::Range<usize>| tensor(range.map(|i| i as i64 * 5 % 16).collect());
        for text in [2..7, 0..5] {
            let alone = floats(&run(&model, &Inputs::new().with("tokens", tokens(text.clone())))["logits"]);
            let keep = |end: usize| tensor((0..end).map(|i| i64::from(text.contains(&i))).collect());
            let padded = Inputs::new().with("tokens", tokens(0..7)).with("mask", keep(7));
            let whole = floats(&run(&model, &padded)["logits"]);
            let mut cache = model.cache();
            let steps = [0..3, 3..4, 4..6, 6..7].map(|step| {
                let given = Inputs::new().with("tokens", tokens(step.clone())).with("mask", keep(step.end));
                floats(&model.forward_cached(&given, &mut cache).unwrap()["logits"])
            });
            for padded in [whole, steps.concat()] {
                assert!(padded.iter().all(|x| x.is_finite()), "{spec}: {padded:?}");
                assert_close(&alone, &padded[text.start * width..text.end * width]);
            }
        }
    }
}

/// Padding after a text, and before it.
#[test]
fn what_padding_hides_changes_nothing() {
    for (name, graph) in cases() {
        let model = model(graph);
        let masks: Vec<Input> = model.plan().inputs().iter().filter(|i| i.keep).cloned().collect();
        for (mask, is_before) in masks.iter().flat_map(|mask| [(mask, false), (mask, true)]) {
            let all = inputs(model.plan(), &LENGTHS);
            let shape: Vec<usize> = mask.ty.shape.iter().map(|d| d.eval(&LENGTHS) as usize).collect();
            let [batch, length] = shape[..] else { panic!("{name}") };
            let kept = if is_before { 2..length } else { 0..length - 2 };
            let numbers: Vec<i64> =
                (0..batch * length).map(|i| i64::from(kept.contains(&(i % length)))).collect();
            let keep = Tensor::<2, Int>::from_data(TensorData::new(numbers, [batch, length]), &device());
            let all = all.with(&mask.name, keep);
            let before = run(&model, &all);
            // Every other input of the same length gets other values where the mask hides. Without a cache, the mask of
            // one is as long as the text.
            let cached = [Sym::Batch.into(), Sequence::Cached.keys()];
            let own = if mask.ty.shape[..] == cached {
                Sequence::Cached.queries()
            } else {
                mask.ty.shape[1].clone()
            };
            let is_of_mask =
                |input: &&Input| !input.keep && input.ty.shape[..] == [Sym::Batch.into(), own.clone()];
            let mut changed = all.clone();
            for input in model.plan().inputs().iter().filter(is_of_mask) {
                let Value::Int(trafoc::interp::Ranked::R2(old)) = all.get(&input.name).unwrap().clone()
                else {
                    continue;
                };
                let Value::Int(trafoc::interp::Ranked::R2(new)) = value(input, &LENGTHS, 99) else {
                    continue;
                };
                let seen = old.narrow(1, kept.start, kept.len());
                let joined = if is_before {
                    Tensor::cat(vec![new.narrow(1, 0, kept.start), seen], 1)
                } else {
                    Tensor::cat(vec![seen, new.narrow(1, kept.end, length - kept.end)], 1)
                };
                changed = changed.with(&input.name, joined);
            }
            let after = run(&model, &changed);
            for (output, value) in &before {
                let root = model.graph().root();
                let id = root.results.iter().find(|id| root.value(**id).name == *output).unwrap();
                let over_length = root.value(*id).ty.shape.get(1) == Some(&own);
                let (a, b) = (floats(value), floats(&after[output]));
                if over_length {
                    let width = a.len() / batch / length;
                    for row in 0..batch {
                        let seen = (row * length + kept.start) * width..(row * length + kept.end) * width;
                        assert_hidden(model.graph(), &a[seen.clone()], &b[seen], &name);
                    }
                } else if !(is_before && takes_first(&model)) {
                    assert_hidden(model.graph(), &a, &b, &name);
                }
            }
        }
    }
}

#[test]
fn a_start_is_a_function_of_seed_and_path() {
    let (_, graph) = cases().into_iter().find(|(name, _)| name == "attention-plain").unwrap();
    let a = Weights::init(&graph, &device(), 3).unwrap();
    let b = Weights::init(&graph, &device(), 3).unwrap();
    let c = Weights::init(&graph, &device(), 4).unwrap();
    let path = a.layout().keys().find(|p| p.ends_with("query.weight")).unwrap();
    assert_eq!(a.values(path), b.values(path));
    assert_ne!(a.values(path), c.values(path));
}

/// A knob that no other implementation's numbers cover has the same initial values on every device as on
/// flex, and computes the same as flex, with which emitted Rust is compared.
#[test]
fn what_has_no_stored_numbers_is_as_on_flex() {
    let flex = trafoc::interp::device::device("flex").unwrap().device;
    let on = |graph: &Verified, device: &Device| {
        let weights = Weights::init(graph, device, 1).unwrap();
        let paths: Vec<String> = weights.layout().keys().cloned().collect();
        let start: Vec<_> = paths.iter().map(|path| weights.values(path)).collect();
        let model = Model::new(graph.clone(), weights).unwrap();
        let outputs = run(&model, &inputs_on(model.plan(), &LENGTHS, device));
        (start, outputs.values().map(floats).collect::<Vec<_>>())
    };
    for (name, graph) in crate::capabilities::without_numbers() {
        // Shown if one of them differs.
        println!("{name}");
        let (wanted, found) = (on(&graph, &flex), on(&graph, &device()));
        assert_eq!(wanted.0, found.0, "{name}");
        wanted.1.iter().zip(&found.1).for_each(|(wanted, found)| assert_close(wanted, found));
    }
}
