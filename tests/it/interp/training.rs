//! Laws of training: gradients are derivatives, and dropout is applied where the spec says.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Gradients;

use super::*;

/// A scalar computed from every output.
fn loss(outputs: &Outputs) -> Tensor<1> {
    let is_float = |value: &&Value| matches!(value, Value::Float(_));
    Tensor::cat(outputs.values().filter(is_float).map(weighted).collect(), 0).sum()
}

/// Moves every trained parameter along a direction that looks random.
struct Move {
    by: f64,
    seed: u64,
}

fn direction<const D: usize>(shape: [usize; D], seed: &mut u64, device: &Device) -> Tensor<D> {
    *seed += 1;
    let mut next = noise(*seed);
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| 2.0 * next() as f32 - 1.0).collect();
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

impl ModuleMapper for Move {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let trained = parameter.is_require_grad();
        parameter.map(|t| {
            let step = direction(t.dims(), &mut self.seed, &t.device());
            if trained { t.clone().detach() + step * self.by } else { t }
        })
    }
}

/// The gradient's component along the direction, and its length.
struct Along<'a> {
    gradients: &'a Gradients,
    seed: u64,
    dot: f64,
    square: f64,
    without: usize,
}

impl ModuleVisitor for Along<'_> {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let value = parameter.val();
        let step = direction(value.dims(), &mut self.seed, &device());
        match value.grad(self.gradients) {
            Some(gradient) => {
                self.dot += f64::from((gradient.clone() * step).sum().into_scalar::<f32>());
                self.square += f64::from(gradient.square().sum().into_scalar::<f32>());
            }
            None => self.without += 1,
        }
    }
}

#[test]
fn gradients_are_derivatives() {
    let wrong: Vec<String> = cases()
        .into_iter()
        .filter_map(|(name, graph)| {
            // A router that selects other experts within the step has no derivative; another seed is tried
            // then.
            let tries: Vec<String> = (3..6).map_while(|seed| slope_differs(&graph, seed)).collect();
            (tries.len() == 3).then(|| format!("{name}: {}", tries.join("; ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How far the gradient is from the slope of the loss in one direction; `None` if it is close enough.
fn slope_differs(graph: &Verified, seed: u64) -> Option<String> {
    // The losses of parts are among the results, so that every parameter has a gradient.
    let plan = Plan::for_training(graph).unwrap();
    let weights = Weights::init(graph, &device().autodiff(), seed).unwrap();
    let inputs = inputs(&plan, &LENGTHS);
    let run = |weights: &Weights| loss(&plan.run(weights, &inputs, false).unwrap());
    let gradients = run(&weights).backward();
    let mut along = Along { gradients: &gradients, seed: 7, dot: 0.0, square: 0.0, without: 0 };
    weights.visit(&mut along);
    let untrained = weights.layout().values().filter(|slot| !slot.trained).count();
    if along.without > untrained {
        return Some(format!("{} parameters have no gradient", along.without - untrained));
    }
    let moved = |by| f64::from(run(&weights.clone().map(&mut Move { by, seed: 7 })).into_scalar::<f32>());
    // A short step shows rounding, a long one curvature and the kinks of relu and maxima.
    let slopes = [1e-3, 3e-4, 1e-4, 1e-5].map(|by| (moved(by) - moved(-by)) / (2.0 * by));
    let error = slopes.iter().map(|slope| (slope - along.dot).abs()).fold(f64::INFINITY, f64::min);
    let scale = along.square.sqrt().max(along.dot.abs()).max(1e-3);
    (error > 1e-2 * scale).then(|| format!("slopes {slopes:?}, gradient {} of length {scale}", along.dot))
}

#[test]
fn training_without_dropout_computes_what_inference_computes() {
    let autodiff = device().autodiff();
    for (name, graph) in cases() {
        let plan = Plan::new(&graph, &trafoc::interp::Captures::none()).unwrap();
        let inputs = inputs(&plan, &LENGTHS);
        let trained = Weights::init(&graph, &autodiff, 3).unwrap();
        let plain = Weights::init(&graph, &device(), 3).unwrap();
        let a = plan.run(&trained, &inputs, false).unwrap();
        let b = plan.run(&plain, &inputs, true).unwrap();
        for (output, value) in &a {
            assert_close(&floats(value), &floats(&b[output]));
        }
        assert_eq!(a.len(), b.len(), "{name}");
    }
}

const DROPPED: &str = "
trafo: 1
name: dropped
vocab: 11
context: 16
d_model: 8
embed: {position: learned, dropout: PLACE_EMBED}
decoder:
  layers: 2
  attention: {heads: 2, dropout: {weights: PLACE_WEIGHTS, out: PLACE_OUT}}
  ffn: {dropout: PLACE_FFN}
head: lm
";

#[test]
fn every_place_of_dropout_drops_in_training_alone() {
    let places = ["PLACE_EMBED", "PLACE_WEIGHTS", "PLACE_OUT", "PLACE_FFN"];
    for place in places {
        let text = places.iter().fold(DROPPED.to_owned(), |text, other| {
            text.replace(other, if *other == place { "0.5" } else { "0" })
        });
        let graph = spec(&text);
        let plan = Plan::new(&graph, &trafoc::interp::Captures::none()).unwrap();
        let weights = Weights::init(&graph, &device().autodiff(), 3).unwrap();
        let inputs = inputs(&plan, &LENGTHS);
        let of = |training| floats(&plan.run(&weights, &inputs, training).unwrap()["logits"]);
        assert_eq!(of(false), of(false), "{place}");
        assert_ne!(of(false), of(true), "{place}");
        assert_ne!(of(true), of(true), "{place}");
        device().seed(4);
        let first = of(true);
        device().seed(4);
        assert_eq!(first, of(true), "{place}");
    }
}

#[test]
fn a_few_steps_learn_a_sentence() {
    let graph = spec(
        &DROPPED
            .replace("PLACE_EMBED", "0")
            .replace("PLACE_WEIGHTS", "0")
            .replace("PLACE_OUT", "0")
            .replace("PLACE_FFN", "0"),
    );
    let plan = Plan::new(&graph, &trafoc::interp::Captures::none()).unwrap();
    let device = device().autodiff();
    let mut weights = Weights::init(&graph, &device, 3).unwrap();
    let mut optimiser = burn::optim::AdamWConfig::new().init();
    let tokens = |ids: [i64; 7]| Tensor::<2, Int>::from_data([ids], &device);
    let (seen, next) = (tokens([1, 5, 2, 8, 3, 9, 4]), tokens([5, 2, 8, 3, 9, 4, 7]));
    let mut last = f32::INFINITY;
    for _ in 0..60 {
        let outputs = plan.run(&weights, &Inputs::new().with("tokens", seen.clone()), true).unwrap();
        let logits = outputs["logits"].float::<3>().unwrap();
        let chosen =
            burn::tensor::activation::log_softmax(logits, 2).gather(2, next.clone().unsqueeze_dim(2));
        let loss = -chosen.mean();
        last = loss.clone().into_scalar::<f32>();
        let gradients = burn::optim::GradientsParams::from_grads(loss.backward(), &weights);
        weights = optimiser.step(2e-2, weights, gradients);
    }
    assert!(last < 0.05, "{last}");
}
