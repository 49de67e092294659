//! A whole training step against the same step written by hand in burn: from batch to updated parameters.
//!
//! `cargo bench -p trafoc-benches --bench train`; `peers/train_gbt_mulm.py` is the same step in PyTorch.

use std::time::Instant;

use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use trafoc::compile::compile;
use trafoc::diag::Sink;
use trafoc::interp::{Captures, Plan, Weights};
use trafoc::learn::data::{Array, Batch, Labels};
use trafoc::learn::recipe;
use trafoc::learn::step::{Rules, step};
use trafoc::learn::update::Updater;
use trafoc::spec::load::{self, NoFiles};
use trafoc::syntax::Notation;
use trafoc_benches::{Gpt, Sizes, loss};

const RECIPE: &str = "recipe: 1
data: {format: lines, train: names.txt}
tokens: {characters: {boundary: '.'}}
optimizer: {adamw: {learning_rate: 5e-4, betas: [0.9, 0.99], weight_decay: 0.01}}
steps: 4000
";

const ROUNDS: usize = 60;
const BATCH: usize = 16;
const TIME: usize = 31;

fn ids(round: usize) -> Vec<i64> {
    (0..BATCH * TIME).map(|i| ((i * 7919 + 13 * round) % 30) as i64).collect()
}

fn batch(round: usize) -> Batch {
    let values = ids(round);
    Batch {
        inputs: vec![("tokens", Array::Ints { shape: vec![BATCH, TIME], values: values.clone() })],
        padded: None,
        labels: Labels::Positions { shape: [BATCH, TIME], classes: values, weights: vec![1.0; BATCH * TIME] },
        indices: (0..BATCH).collect(),
        counted: BATCH * TIME,
        tokens: BATCH * TIME,
    }
}

fn main() {
    let device = Device::flex().autodiff();
    let text = include_str!("../../specs/gbt-mulm.yaml");
    let mut sources = load::sources();
    let id = sources.add("gbt-mulm.yaml", text);
    let graph = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles).ok().and_then(|c| c.graph);
    let Some(graph) = graph else { panic!("gbt-mulm does not compile") };
    let id = sources.add("recipe.yaml", RECIPE);
    let Some(recipe) = recipe::read(&sources, id, &[], &mut Sink::new()) else { panic!("no recipe") };
    let Ok(plan) = Plan::new(&graph, &Captures::none()) else { panic!("no plan") };
    let Ok(weights) = Weights::init(&graph, &device, 0) else { panic!("no weights") };
    let mut updater = Updater::new(&recipe.optimizer, |path| recipe.is_frozen(path), &weights);
    let mut weights = Some(updater.freeze(weights));
    let rules = Rules::plain(0);
    let mut own = |round: usize| {
        let begun = Instant::now();
        let made =
            weights.take().map(|w| step(&plan, w, &mut updater, &[batch(round)], round as u64, 1.0, &rules));
        let Some(Ok((moved, _))) = made else { panic!("a step failed") };
        weights = Some(moved);
        begun.elapsed().as_secs_f64()
    };

    let mut model = Some(Gpt::new(Sizes::GBT_MULM, &device));
    let adamw = AdamWConfig::new().with_beta_2(0.99).with_epsilon(1e-8).with_weight_decay(0.01);
    let mut optimizer = adamw.init();
    let mut by_hand = |round: usize| {
        let begun = Instant::now();
        let Some(before) = model.take() else { panic!("no model") };
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids(round), [BATCH, TIME]), &device);
        let mean = loss(before.forward(tokens.clone()), tokens);
        // trafoc's step reads the loss as well.
        let _ = mean.clone().into_scalar::<f32>();
        let gradients = GradientsParams::from_grads(mean.backward(), &before);
        model = Some(optimizer.step(5e-4, before, gradients));
        begun.elapsed().as_secs_f64()
    };

    let mut ratios = Vec::new();
    let (mut owns, mut hands) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The order within a pair alternates.
        let (a, b) = if round % 2 == 0 {
            let a = own(round);
            (a, by_hand(round))
        } else {
            let b = by_hand(round);
            (own(round), b)
        };
        // The first rounds are warm-ups.
        if round >= 6 {
            ratios.push(a / b);
            owns.push(a);
            hands.push(b);
        }
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!("gbt-mulm training step, {BATCH} x {TIME}");
    println!("  trafoc   {:.2} ms", 1e3 * median(&mut owns));
    println!("  by hand  {:.2} ms", 1e3 * median(&mut hands));
    println!("  ratio    {:.3}", median(&mut ratios));
}
