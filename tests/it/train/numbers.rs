//! Losses, updates and decoding against their definitions.

use burn::prelude::*;
use trafoc::interp::{Captures, Inputs, Outputs, Plan, Value, Weights};
use trafoc::ir::Verified;
use trafoc::learn::choose::{Sampling, logs};
use trafoc::learn::data::{Array, Batch, Labels};
use trafoc::learn::decode::{Beam, Decoder, Limits, Prompt};
use trafoc::learn::loss::loss;
use trafoc::learn::recipe::{Optimizer, Patterns, Recipe, Reduction};
use trafoc::learn::step::{Rules, plain, step};
use trafoc::learn::update::Updater;

use crate::backend::device;
use crate::learn::Pair;

fn outputs(name: &str, value: impl Into<Value>) -> Outputs {
    [(name.to_owned(), value.into())].into_iter().collect()
}

fn number(tensor: Tensor<1>) -> f64 {
    f64::from(tensor.into_scalar::<f32>())
}

fn nats(scores: &[f64], class: usize) -> f64 {
    scores.iter().map(|score| (score - scores[class]).exp()).sum::<f64>().ln()
}

#[test]
fn losses_are_what_they_are_defined_to_be() {
    let rows = [[0.5, -1.0, 2.0], [3.0, 0.0, 0.25]];
    let scores = |rows: [[f64; 3]; 2]| Tensor::<2>::from_data(rows.map(|r| r.map(|x| x as f32)), &device());
    let by_class = Labels::Classes(vec![2, 1]);
    let wanted = nats(&rows[0], 2) + nats(&rows[1], 1);
    let own = number(loss(&outputs("logits", scores(rows)), &by_class, 0.0).unwrap());
    assert!((own - wanted).abs() < 1e-5, "{own} {wanted}");
    // The share is spread over all classes, including the right one.
    let smooth =
        |row: &[f64; 3], class| 0.7 * nats(row, class) + 0.1 * (0..3).map(|c| nats(row, c)).sum::<f64>();
    let own = number(loss(&outputs("logits", scores(rows)), &by_class, 0.3).unwrap());
    let wanted = smooth(&rows[0], 2) + smooth(&rows[1], 1);
    assert!((own - wanted).abs() < 1e-5, "{own} {wanted}");
    let several = Labels::Several { shape: [2, 3], values: vec![1.0, 0.0, 0.0, 0.0, 1.0, 1.0] };
    let own = number(loss(&outputs("logits", scores(rows)), &several, 0.0).unwrap());
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let binary = |x: f64, y: f64| -(y * sigmoid(x).ln() + (1.0 - y) * (1.0 - sigmoid(x)).ln());
    let wanted: f64 =
        rows.iter().flatten().zip([1.0, 0.0, 0.0, 0.0, 1.0, 1.0]).map(|(x, y)| binary(*x, y)).sum();
    assert!((own - wanted).abs() < 1e-5, "{own} {wanted}");
    let mut both = outputs("start_logits", scores(rows));
    both.extend(outputs("end_logits", scores([rows[1], rows[0]])));
    let spans = Labels::Spans { start: vec![0, 1], end: vec![1, 2] };
    let own = number(loss(&both, &spans, 0.0).unwrap());
    let start = nats(&rows[0], 0) + nats(&rows[1], 1);
    let wanted = (start + nats(&rows[1], 1) + nats(&rows[0], 2)) / 2.0;
    assert!((own - wanted).abs() < 1e-5, "{own} {wanted}");
}

#[test]
fn padding_takes_no_part() {
    let scores = Tensor::<3>::from_data([[[0.5, 1.0], [f32::MAX, -9.0]]], &device());
    let positions = |weights: [f32; 2]| Labels::Positions {
        shape: [1, 2],
        classes: vec![1, 0],
        weights: weights.to_vec(),
    };
    let own = number(loss(&outputs("logits", scores), &positions([1.0, 0.0]), 0.0).unwrap());
    assert!((own - nats(&[0.5, 1.0], 1)).abs() < 1e-6, "{own}");
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let scores = || outputs("logits", Tensor::<2>::from_data([[0.5, 1.0]], &device()));
    for labels in [
        Labels::Classes(vec![2]),
        Labels::Classes(vec![-1]),
        Labels::Classes(vec![0, 1]),
        Labels::Several { shape: [1, 3], values: vec![0.0; 3] },
        Labels::Spans { start: vec![0], end: vec![0] },
    ] {
        assert!(loss(&scores(), &labels, 0.0).is_err(), "{labels:?}");
    }
}

const SPEC: &str = "
trafo: 1
name: little
vocab: 9
context: 8
d_model: 8
embed: {position: learned}
decoder: {layers: 2, attention: {heads: 2}}
head: lm
";

fn little() -> Verified {
    crate::interp::spec(SPEC)
}

fn optimizer(text: &str) -> (Optimizer, Patterns) {
    let text = format!("recipe: 1\ndata: {{format: lines, train: x}}\ntokens: characters\nsteps: 1\n{text}");
    let spec = crate::compiled::repository("specs/gbt-mulm.yaml");
    let pair = Pair::of_text("recipe.yaml", &text, &spec, None, &[]);
    let Recipe { optimizer, freeze, .. } = pair.recipe.unwrap_or_else(|| panic!("{:#?}", pair.sink));
    (optimizer, freeze)
}

/// Sentences that can be learnt: every token is the previous one plus one.
fn batch(firsts: &[i64]) -> Batch {
    let time = 5;
    let rows = firsts.iter().flat_map(|first| (0..time).map(move |i| (first + i) % 9));
    let values: Vec<i64> = rows.collect();
    let classes = values.iter().map(|v| (v + 1) % 9).collect();
    let shape = [firsts.len(), time as usize];
    Batch {
        inputs: vec![("tokens", Array::Ints { shape: shape.to_vec(), values })],
        padded: None,
        labels: Labels::Positions { shape, classes, weights: vec![1.0; shape[0] * shape[1]] },
        indices: (0..firsts.len()).collect(),
        counted: shape[0] * shape[1],
        tokens: shape[0] * shape[1],
    }
}

struct Training {
    plan: Plan,
    weights: Option<Weights>,
    updater: Updater,
    rules: Rules,
}

impl Training {
    fn new(graph: &Verified, recipe: &str) -> Self {
        let weights = Weights::init(graph, &device().autodiff(), 3).unwrap();
        let (optimizer, freeze) = optimizer(recipe);
        let updater = Updater::new(&optimizer, |path| freeze.matches(path), &weights);
        let weights = Some(updater.freeze(weights));
        let plan = Plan::new(graph, &Captures::none()).unwrap();
        Self { plan, weights, updater, rules: Rules::plain(1) }
    }

    fn step(&mut self, number: u64, batches: &[Batch]) -> f64 {
        let weights = self.weights.take().unwrap();
        let (weights, made) =
            step(&self.plan, weights, &mut self.updater, batches, number, 1.0, &self.rules).unwrap();
        self.weights = Some(weights);
        made.loss
    }

    fn values(&self) -> Vec<(String, Vec<f32>)> {
        let weights = self.weights.as_ref().unwrap();
        weights.layout().keys().map(|path| (path.clone(), weights.values(path).unwrap())).collect()
    }
}

const OPTIMIZERS: [&str; 6] = [
    "optimizer: {adam: {learning_rate: 1e-2, weight_decay: 0.01}}",
    "optimizer: {adamw: {learning_rate: 1e-2, decay: {'*.weight': 0.1}}}",
    "optimizer: {sgd: {learning_rate: 0.5}}",
    "optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-3}}",
    "optimizer: {muon: {learning_rate: 2e-2, others: {learning_rate: 1e-2}}}",
    "optimizer: {muon: {learning_rate: 2e-2, adjust: match_rms_adamw, others: {learning_rate: 1e-2}}}",
];

#[test]
fn every_optimizer_learns_and_goes_on_from_a_file_as_if_nothing_had_been() {
    let graph = little();
    let folder = tempfile::tempdir().unwrap();
    for recipe in OPTIMIZERS {
        let mut whole = Training::new(&graph, recipe);
        let data = [batch(&[0, 3, 5]), batch(&[1, 7, 4])];
        let first = whole.step(1, &data);
        for number in 2..=20 {
            whole.step(number, &data);
        }
        let (model, state) = (folder.path().join("m.safetensors"), folder.path().join("o.safetensors"));
        whole.weights.as_ref().unwrap().save(&model, &Default::default()).unwrap();
        whole.updater.save(&state).unwrap();
        let mut resumed = Training::new(&graph, recipe);
        let (weights, _) = Weights::load(&graph, &model, &device().autodiff()).unwrap();
        resumed.weights = Some(resumed.updater.freeze(weights));
        resumed.updater.load(&state, &device()).unwrap();
        let mut last = 0.0;
        for number in 21..=60 {
            last = whole.step(number, &data);
            assert_eq!(last, resumed.step(number, &data), "{recipe}");
        }
        assert_eq!(whole.values(), resumed.values(), "{recipe}");
        assert!(last < 0.5 * first, "{recipe}: {first} to {last}");
    }
}

/// The gradient of a sum is that of the mean as many times as there are predictions, and the loss that is
/// told is the mean either way.
#[test]
fn a_loss_may_be_summed() {
    let graph = little();
    let data = [batch(&[0, 3, 5]), batch(&[1, 7, 4])];
    let counted: usize = data.iter().map(|b| b.counted).sum();
    let mut mean = Training::new(&graph, "optimizer: {sgd: {learning_rate: 0.3}}");
    let rate = 0.3 / counted as f64;
    let mut sum = Training::new(&graph, &format!("optimizer: {{sgd: {{learning_rate: {rate}}}}}"));
    sum.rules.reduction = Reduction::Sum;
    for number in 1..=5 {
        let (a, b) = (mean.step(number, &data), sum.step(number, &data));
        assert!((a - b).abs() < 1e-5, "step {number}: {a} and {b}");
    }
    let (moved, other) = (mean.values(), sum.values());
    for ((path, a), (_, b)) in moved.iter().zip(&other) {
        let far = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(far < 1e-5, "{path}: {far}");
    }
    // The same learning rate is another one for a sum.
    let mut fast = Training::new(&graph, "optimizer: {sgd: {learning_rate: 0.3}}");
    fast.rules.reduction = Reduction::Sum;
    fast.step(1, &data);
    let mut slow = Training::new(&graph, "optimizer: {sgd: {learning_rate: 0.3}}");
    slow.step(1, &data);
    assert_ne!(fast.values(), slow.values());
}

/// The steps of a matrix under the two rules differ only in length, which depends on the shape in files:
/// `sqrt(max(1, outputs / inputs))` and `0.2 sqrt(max(outputs, inputs))`.
#[test]
fn steps_of_muon_go_by_the_shape() {
    let graph = little();
    let moved = |adjust: &str| {
        let recipe =
            format!("optimizer: {{muon: {{learning_rate: 1e-2, weight_decay: 0, adjust: {adjust}}}}}");
        let mut training = Training::new(&graph, &recipe);
        let before = training.values();
        training.step(1, &[batch(&[0, 3, 5])]);
        let length =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
        let after = training.values();
        let lengths = before.iter().zip(&after).map(|((path, a), (_, b))| (path.clone(), length(a, b)));
        lengths.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (original, matched) = (moved("original"), moved("match_rms_adamw"));
    let weights = Weights::init(&graph, &device(), 1).unwrap();
    let mut wide = 0;
    for (path, slot) in weights.layout() {
        let [outputs, inputs] = slot.shape[..] else { continue };
        if !path.contains(".blocks.") {
            continue;
        }
        let (outputs, inputs) = (outputs as f64, inputs as f64);
        let wanted = (outputs / inputs).max(1.0).sqrt() / (0.2 * outputs.max(inputs).sqrt());
        let ratio = original[path] / matched[path];
        assert!((ratio / wanted - 1.0).abs() < 1e-3, "{path}: {ratio} for {wanted}");
        wide += usize::from(outputs > inputs);
    }
    assert!(wide > 0);
}

#[test]
fn accumulated_batches_are_one_larger_batch() {
    let graph = little();
    let mut together = Training::new(&graph, OPTIMIZERS[2]);
    let mut apart = Training::new(&graph, OPTIMIZERS[2]);
    let a = together.step(1, &[batch(&[0, 3, 5, 1, 7])]);
    // Batches of different sizes are weighted by their predictions.
    let b = apart.step(1, &[batch(&[0, 3, 5]), batch(&[1]), batch(&[7])]);
    assert!((a - b).abs() < 1e-6, "{a} {b}");
    for ((path, a), (_, b)) in together.values().iter().zip(&apart.values()) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{path}");
    }
}

#[test]
fn the_gradient_of_all_parameters_together_is_clipped() {
    let graph = little();
    let mut training = Training::new(&graph, "optimizer: {sgd: {learning_rate: 1}}");
    training.rules.clip = Some(0.25);
    let before = training.values();
    training.step(1, &[batch(&[0, 3])]);
    let after = training.values();
    let moved = before.iter().zip(&after).flat_map(|((_, a), (_, b))| {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).collect::<Vec<_>>()
    });
    let length = moved.sum::<f64>().sqrt();
    assert!((length - 0.25).abs() < 1e-4, "{length}");
}

#[test]
fn what_is_frozen_stays_and_what_decays_is_said_by_path() {
    let graph = little();
    let recipe = "optimizer: {sgd: {learning_rate: 0.1, weight_decay: 0, decay: {'*.norm1.weight': 0.5}}}
freeze: ['*.attention.*', 'embed.*']";
    let mut training = Training::new(&graph, recipe);
    let before = training.values();
    // The loss of a batch without predictions is 0, and so is its gradient, so only weight decay changes
    // parameters.
    let mut idle = batch(&[0]);
    if let Labels::Positions { weights, .. } = &mut idle.labels {
        weights.fill(0.0);
    }
    training.step(1, &[idle]);
    for ((path, a), (_, b)) in before.iter().zip(&training.values()) {
        match path.ends_with(".norm1.weight") {
            true => assert!(a.iter().zip(b).all(|(a, b)| (0.95 * a - b).abs() < 1e-6), "{path}"),
            false => assert_eq!(a, b, "{path}"),
        }
    }
    training.step(2, &[batch(&[0, 3])]);
    for ((path, a), (_, b)) in before.iter().zip(&training.values()) {
        let is_frozen = path.contains(".attention.") || path.starts_with("embed.");
        assert_eq!(is_frozen, a == b, "{path}");
    }
}

/// PyTorch's `grad` of such an expert is zeros, as it multiplies no rows or is a part of a tensor of all experts.
#[test]
fn an_expert_without_tokens_decays() {
    let moe = "heads: 2}, ffn: {moe: {experts: 12, top_k: 1, expert: {glu: {hidden: 16}}}}}";
    let text = SPEC.replace("heads: 2}}", moe);
    let graph = crate::interp::spec(&text);
    let mut training = Training::new(&graph, "optimizer: {adamw: {learning_rate: 0.1, weight_decay: 0.5}}");
    let before = training.values();
    training.step(1, &[batch(&[4])]);
    let after = training.values();
    let of_experts: Vec<bool> = before
        .iter()
        .zip(&after)
        .filter(|((path, _), _)| path.contains(".experts.") && path.ends_with(".weight"))
        .map(|((_, a), (_, b))| a.iter().zip(b).all(|(a, b)| (0.95 * a - b).abs() < 1e-6))
        .collect();
    // Five tokens reach five experts of twelve at most, whose weights move as well.
    let idle = of_experts.iter().filter(|is_idle| **is_idle).count();
    assert!(idle >= of_experts.len() * 7 / 12 && idle < of_experts.len(), "{idle} of {}", of_experts.len());
}

fn taught(graph: &Verified) -> (Plan, Weights) {
    let mut training = Training::new(graph, OPTIMIZERS[1]);
    for number in 1..=15 {
        training.step(number, &[batch(&[0, 3, 5, 1, 7])]);
    }
    (training.plan, plain(training.weights.as_ref().unwrap()))
}

/// The logarithms of the probabilities of the next token, without a cache.
fn next(plan: &Plan, weights: &Weights, tokens: &[u32]) -> Vec<f64> {
    let ids: Vec<i64> = tokens.iter().map(|t| i64::from(*t)).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, tokens.len()]), &device());
    let outputs = plan.run(weights, &Inputs::new().with("tokens", ids), false).unwrap();
    let all = outputs["logits"].to_floats().unwrap();
    // The scores of the 9 tokens at the last position.
    logs(&all[all.len() - 9..])
}

#[test]
fn decoding_is_what_the_model_says_without_a_cache() {
    decoding_is_what_is_said(&little());
    // Angles that depend on the sequence's length cannot be cached.
    let scaling = "{dynamic: {factor: 4, original_context: 3}}";
    let growing = format!("{{position: {{rotary: {{scaling: {scaling}}}}}}}");
    let growing = crate::interp::spec(&SPEC.replace("{position: learned}", &growing));
    assert!(!growing.decodes);
    decoding_is_what_is_said(&growing);
}

fn decoding_is_what_is_said(graph: &Verified) {
    let (plan, weights) = taught(graph);
    let decoder = Decoder::new(&plan, &weights);
    let prompts: Vec<Prompt> = [vec![1], vec![4, 5], vec![2], vec![8, 0]]
        .map(|tokens| Prompt { tokens, ..Prompt::default() })
        .to_vec();
    let limits = Limits { most: 100, context: 8, stop: vec![7], never: vec![], last: None };
    let mut told = vec![Vec::new(); 4];
    let decoded = decoder
        .sample(&prompts, &Sampling::GREEDY, &limits, 0, &mut |i, token| {
            told[i].push(token);
            true
        })
        .unwrap();
    for ((prompt, decoded), told) in prompts.iter().zip(&decoded).zip(&told) {
        let (mut tokens, mut sum, mut ended) = (prompt.tokens.clone(), 0.0, false);
        // What follows the last position of the context is still written.
        while tokens.len() <= 8 {
            let logs = next(&plan, &weights, &tokens);
            let best = (0..9).max_by(|a, b| logs[*a].total_cmp(&logs[*b])).unwrap();
            sum += logs[best];
            ended = best == 7;
            if ended {
                break;
            }
            tokens.push(best as u32);
        }
        assert_eq!(decoded.tokens, tokens[prompt.tokens.len()..], "{prompt:?}");
        assert_eq!(decoded.ended, ended);
        assert!((decoded.log_probability - sum).abs() < 1e-4);
        assert_eq!(*told, decoded.tokens);
    }
}

#[test]
fn translating_without_a_cache_is_what_the_model_says() {
    // Angles that depend on the sequence's length cannot be cached.
    let position = "{rotary: {scaling: {dynamic: {factor: 4, original_context: 3}}}}";
    let graph = crate::interp::spec(&format!(
        "trafo: 1\nname: growing\nvocab: 9\ncontext: 8\nd_model: 8\nembed: {{position: {position}}}\n\
         encoder: {{layers: 1, attention: {{heads: 2}}}}\n\
         decoder: {{layers: 1, attention: {{heads: 2}}, cross: {{heads: 2}}}}\nhead: translate\n\
         init: {{normal: {{std: 0.7}}}}\n"
    ));
    assert!(!graph.decodes);
    let plan = Plan::new(&graph, &Captures::none()).unwrap();
    let weights = Weights::init(&graph, &device(), 5).unwrap();
    let decoder = Decoder::new(&plan, &weights);
    let sources = [vec![1, 2, 3, 4, 5], vec![8, 7, 6, 5, 4], vec![3, 3], vec![0, 8, 0, 8, 2]];
    let prompts = sources.clone().map(|source: Vec<i64>| {
        let memory = vec![("source", Array::Ints { shape: vec![1, source.len()], values: source })];
        Prompt { tokens: vec![1], memory, ..Prompt::default() }
    });
    let said = |source: &[i64], target: &[u32]| -> Vec<f64> {
        let row = |ids: Vec<i64>| {
            let shape = [1, ids.len()];
            Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &device())
        };
        let target = row(target.iter().map(|t| i64::from(*t)).collect());
        let inputs = Inputs::new().with("source", row(source.to_vec())).with("target", target);
        let all = plan.run(&weights, &inputs, false).unwrap()["logits"].to_floats().unwrap();
        logs(&all[all.len() - 9..])
    };
    let limits = Limits { most: 6, context: 8, stop: vec![7], never: vec![], last: None };
    let greedy = decoder.sample(&prompts, &Sampling::GREEDY, &limits, 0, &mut |_, _| true).unwrap();
    for ((prompt, source), greedy) in prompts.iter().zip(&sources).zip(&greedy) {
        // Several rows of a beam, whose order changes, read the same source.
        let beam = decoder.beam(prompt, &Beam { width: 3, length_penalty: 0.0 }, &limits).unwrap();
        for (decoded, is_greedy) in std::iter::once((greedy, true)).chain(beam.iter().map(|d| (d, false))) {
            let (mut tokens, mut sum) = (vec![1], 0.0);
            for token in decoded.tokens.iter().copied().chain(decoded.ended.then_some(7)) {
                let logs = said(source, &tokens);
                let best = (0..9).max_by(|a, b| logs[*a].total_cmp(&logs[*b])).unwrap();
                assert!(!is_greedy || best == token as usize, "{source:?}: {tokens:?}");
                sum += logs[token as usize];
                tokens.push(token);
            }
            assert!(decoded.ended || decoded.tokens.len() == 6);
            assert!((decoded.log_probability - sum).abs() < 1e-4, "{source:?}: {decoded:?}");
        }
    }
    assert!(
        greedy.iter().any(|decoded| decoded.tokens != greedy[0].tokens),
        "the sources make no difference"
    );
}

#[test]
fn a_wide_beam_finds_the_most_probable_sequence() {
    let (plan, weights) = taught(&little());
    let decoder = Decoder::new(&plan, &weights);
    let prompt = Prompt { tokens: vec![4], ..Prompt::default() };
    let limits = Limits { most: 3, context: 8, stop: vec![7], never: vec![], last: None };
    for length_penalty in [0.0, 1.0] {
        let mut best = (f64::NEG_INFINITY, Vec::new());
        let mut open = vec![(Vec::new(), 0.0f64)];
        while let Some((tokens, sum)) = open.pop() {
            let all: Vec<u32> = [4].into_iter().chain(tokens.iter().copied()).collect();
            for (token, log) in (0u32..).zip(next(&plan, &weights, &all)) {
                let mut way: Vec<u32> = tokens.clone();
                let sum = sum + log;
                let length = (tokens.len() + 1) as f64;
                if token != 7 {
                    way.push(token);
                }
                if token == 7 || way.len() == 3 {
                    let score = sum / length.powf(length_penalty);
                    if score > best.0 {
                        best = (score, way);
                    }
                } else {
                    open.push((way, sum));
                }
            }
        }
        // As wide as all sequences of two tokens, so none is left out.
        let beam = Beam { width: 81, length_penalty };
        let found = decoder.beam(&prompt, &beam, &limits).unwrap();
        assert_eq!(found[0].tokens, best.1, "penalty {length_penalty}");
    }
    let narrow = decoder.beam(&prompt, &Beam { width: 1, length_penalty: 0.0 }, &limits).unwrap();
    let greedy = decoder.sample(&[prompt], &Sampling::GREEDY, &limits, 0, &mut |_, _| true).unwrap();
    assert_eq!(narrow, greedy);
}
