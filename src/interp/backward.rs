//! Gradients of a loss with respect to the parameters of a plan.
//!
//! Autodiff keeps what every op needs for its gradient until the backward pass. If blocks are recomputed, only
//! the values that segments read from each other ([`Segments`]) are kept, mainly the input of every block. The
//! forward pass then leaves no tape, and the backward pass goes through the segments from the last to the
//! first: it computes each again, this time with a tape, and starts from the gradients of the values that leave
//! it (Chen et al. 2016).
//!
//! The gradients are the same bits either way. A segment's pass starts with what later segments have found
//! ([`carry`]), so that sums have the order of one pass over everything, and where several blocks read a value,
//! such as the memory of an encoder, each has a sum of its own either way ([`alias`]). Masks of dropout are
//! drawn from a seed for each instruction, so that they do not depend on what was drawn before.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::prelude::*;
use burn::tensor::Gradients;
use trafoc_kernels::{alias, carry, reach};

use super::Fault;
use super::eval::{self, Context};
use super::inputs::Inputs;
use super::padding::Padding;
use super::plan::{Action, Plan, Segment, Segments};
use super::pointwise::{Add, zip};
use super::product::no_parameter;
use super::random::Stream;
use super::run::{Outputs, RunError};
use super::value::{Ranked, Value, map, with};
use super::weights::{TensorIndex, Weights};
use crate::ir::Lengths;

/// How gradients are computed.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The seed of the masks of dropout.
    pub seed: u64,
    /// Whether blocks are computed again in the backward pass, so that only their inputs are kept.
    pub recomputes: bool,
}

/// The values that arrive at a segment.
type Arriving = BTreeMap<usize, Value>;

/// The gradients found so far of values that segments read from each other.
type Found = BTreeMap<usize, Ranked<Float>>;

impl Plan {
    /// Adds the gradients of a loss to those in `known`. The weights must be on a device with autodiff; dropout
    /// is active. `loss` computes a number `[1]` from the outputs.
    ///
    /// The gradient of an expert to which no token was routed is 0, as in PyTorch, so that momentum and weight decay go on.
    /// A parameter that the loss does not depend on has no gradient unless it is known already.
    ///
    /// # Errors
    /// The inputs do not fit the graph, or `loss` fails.
    pub fn gradients<E: From<RunError>>(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        manner: Manner,
        mut known: GradientsParams,
        loss: impl FnOnce(Outputs) -> Result<Tensor<1>, E>,
    ) -> Result<GradientsParams, E> {
        let segments = self.segments(manner.recomputes);
        let device = weights.device().ok_or_else(|| RunError::from(no_parameter()))?;
        let lengths = self.whole_lengths(inputs, &device)?;
        let constants = self.constants(lengths, &device, weights, true)?;
        let seed = Stream::of_key([manner.seed as u32, (manner.seed >> 32) as u32]);
        let blocks = (!manner.recomputes).then(|| self.segments(true));
        let padding = Padding::of_run(self, inputs, &device).map_err(RunError::from)?;
        let pass = Pass { plan: self, weights, device: &device, constants, lengths, padding, seed, blocks };
        let tracked = segments.tracked(&self.body, weights);
        let mut kept = pass.forward(segments, &tracked, inputs)?;
        let mut found = Found::new();
        let mut loss = Some(loss);
        for segment in segments.all.iter().rev() {
            // What arrives at a segment is freed as soon as the segment has been computed again.
            let Some(arriving) = kept.pop().flatten() else { continue };
            let (frame, leaves, leaving) = pass.again(segment, arriving, &tracked)?;
            let mut root = match loss.take() {
                Some(loss) => loss(pass.results(frame)?)?,
                None => {
                    // What the backward pass needs of the values is on the tape.
                    drop(frame);
                    Tensor::zeros([1], &device)
                }
            };
            // All of them are reached before the first gradient, whose value may be an input of another one.
            for value in leaving.values() {
                root = with!(value.clone(), x => reach(root, x));
            }
            // In this order, because autodiff visits what was added last first.
            let mut leaving: Vec<(usize, Ranked<Float>)> = leaving.into_iter().collect();
            leaving.sort_by_key(|(number, _)| std::cmp::Reverse(segments.visited.get(*number)));
            for (number, value) in leaving {
                if let Some(gradient) = found.remove(&number) {
                    root = carried(root, value, gradient)?;
                }
            }
            for place in parameters(segment, weights) {
                root = weights.carrying(place, root, &mut known);
            }
            // Where nothing is trained, nothing has a gradient.
            if root.is_tracked() {
                let mut gradients = root.backward();
                drop(root);
                for (number, leaf) in leaves {
                    if let Some(gradient) = taken(&leaf, &mut gradients) {
                        // Each segment's own sum is added to that of the later ones, as aliases do it.
                        let sum = match found.remove(&number) {
                            Some(later) => zip(gradient, later, Add).map_err(RunError::from)?,
                            None => gradient,
                        };
                        found.insert(number, sum);
                    }
                }
                for place in parameters(segment, weights) {
                    weights.collect(place, &mut gradients, &mut known);
                }
            }
        }
        for place in self.of_experts().into_iter().flat_map(|place| weights.with_change(place)) {
            weights.complete(place, &mut known);
        }
        Ok(known)
    }

    /// The parameters of all experts, which have a gradient even where no token was routed to them.
    fn of_experts(&self) -> Vec<TensorIndex> {
        let mut found = Vec::new();
        for instruction in &self.body.instructions {
            if let Action::Experts(experts) = &instruction.action {
                let mut add = |action: &Action| found.extend(action.parameters());
                experts.iter().for_each(|expert| expert.each(&mut add));
            }
        }
        found
    }
}

/// A step of training on a batch.
struct Pass<'a> {
    plan: &'a Plan,
    weights: &'a Weights,
    device: &'a Device,
    constants: Vec<Value>,
    lengths: Lengths,
    padding: Option<Padding>,
    seed: Stream,
    /// The segments of the blocks, if everything is one segment.
    blocks: Option<&'a Segments>,
}

impl Pass<'_> {
    /// Runs everything but the last segment without a tape, and returns what arrives at each segment; `None` if
    /// no gradient reaches it.
    fn forward(
        &self,
        segments: &Segments,
        tracked: &[bool],
        inputs: &Inputs,
    ) -> Result<Vec<Option<Arriving>>, RunError> {
        let body = &self.plan.body;
        let mut frame = self.plan.frame(inputs, self.device, true)?;
        let last = segments.all.len().saturating_sub(1);
        let leaves_gradient = |segment: &Segment| {
            segment.leaving.values().flatten().any(|(_, number)| tracked.get(*number) == Some(&true))
        };
        let mut kept: Vec<Option<Arriving>> = segments
            .all
            .iter()
            .enumerate()
            .map(|(i, segment)| (i == last || leaves_gradient(segment)).then(Arriving::new))
            .collect();
        // The tape of an op that has an input with a gradient would stay in memory without a backward pass.
        let weights = (last > 0).then(|| self.weights.untracked());
        let mut context = self.context(weights.as_ref().unwrap_or(self.weights));
        let mut arrive = |segment: usize, at: usize, frame: &[Value]| {
            let arriving = segments.all.get(segment).and_then(|segment| segment.arriving.get(&at));
            for (register, number) in arriving.into_iter().flatten() {
                let value = frame.get(*register).cloned().unwrap_or_default();
                if let Some(Some(kept)) = kept.get_mut(segment) {
                    kept.insert(*number, value);
                }
            }
        };
        for (at, (instruction, segment)) in body.instructions.iter().zip(&segments.of).enumerate() {
            arrive(*segment, at, &frame);
            if *segment != last {
                self.sow(at, &instruction.action, context.weights);
                eval::execute(instruction, &mut frame, &mut context, |_, _, _| ())?;
            }
        }
        arrive(last, body.instructions.len(), &frame);
        Ok(kept)
    }

    /// Runs a segment with a tape. Returns its registers, what arrives and what leaves, as far as it has a
    /// gradient, by the number of the value.
    #[expect(clippy::type_complexity, reason = "three parts of one result")]
    fn again(
        &self,
        segment: &Segment,
        mut arriving: Arriving,
        tracked: &[bool],
    ) -> Result<(Vec<Value>, Vec<(usize, Ranked<Float>)>, Found), RunError> {
        let body = &self.plan.body;
        let mut frame = vec![Value::Absent; body.registers];
        let mut context = self.context(self.weights);
        let (mut leaves, mut leaving) = (Vec::new(), Found::new());
        let mut arrive = |at: usize, frame: &mut [Value]| {
            for (register, number) in segment.arriving.get(&at).into_iter().flatten() {
                let value = match arriving.remove(number) {
                    Some(Value::Float(x)) if tracked.get(*number) == Some(&true) => {
                        let leaf = map!(x, x => Tensor::from_inner(x.inner()).require_grad());
                        leaves.push((*number, leaf.clone()));
                        Value::Float(leaf)
                    }
                    value => value.unwrap_or_default(),
                };
                if let Some(register) = frame.get_mut(*register) {
                    *register = value;
                }
            }
        };
        let mut shared = Found::new();
        for at in &segment.instructions {
            let Some(instruction) = body.instructions.get(*at) else { continue };
            arrive(*at, &mut frame);
            self.divide(*at, &mut frame, tracked, &mut shared);
            self.sow(*at, &instruction.action, context.weights);
            let leaves_here = segment.leaving.get(at);
            eval::execute(instruction, &mut frame, &mut context, |result, _, value| {
                let number = leaves_here.into_iter().flatten().find(|(index, _)| *index == result);
                if let (Some((_, number)), Value::Float(x)) = (number, value)
                    && with!(x, x => x.is_tracked())
                {
                    leaving.insert(*number, x.clone());
                }
            })?;
        }
        arrive(body.instructions.len(), &mut frame);
        self.divide(body.instructions.len(), &mut frame, tracked, &mut shared);
        Ok((frame, leaves, leaving))
    }

    /// Gives a block an alias of each value that several of them read, so that the gradient of the value is the
    /// same sum of the same sums as if each block went back by itself: that of the last block, to which those
    /// of earlier ones are added. Otherwise autodiff would add up all uses in an order of its own. `shared` has
    /// what the next block gets an alias of.
    fn divide(&self, at: usize, frame: &mut [Value], tracked: &[bool], shared: &mut Found) {
        let Some(blocks) = self.blocks else { return };
        let segment = blocks.of.get(at).map_or(blocks.all.last(), |segment| blocks.all.get(*segment));
        let arriving = segment.and_then(|segment| segment.arriving.get(&at));
        for (register, number) in arriving.into_iter().flatten() {
            let is_shared = blocks.is_shared.get(*number) == Some(&true);
            if let (true, Some(Value::Float(x))) =
                (is_shared && tracked.get(*number) == Some(&true), frame.get_mut(*register))
            {
                let before = shared.remove(number).unwrap_or_else(|| x.clone());
                let own = map!(before, x => alias(x));
                *x = map!(own.clone(), x => alias(x));
                shared.insert(*number, own);
            }
        }
    }

    /// The outputs of the model from the registers after the last segment.
    fn results(&self, mut frame: Vec<Value>) -> Result<Outputs, RunError> {
        let read = |operand| eval::read(operand, &mut frame, &self.constants);
        let results: Result<Vec<Value>, Fault> = self.plan.body.results.iter().copied().map(read).collect();
        self.plan.named(results?)
    }

    fn context<'c>(&'c self, weights: &'c Weights) -> Context<'c> {
        Context {
            weights,
            constants: &self.constants,
            device: self.device,
            lengths: self.lengths,
            training: true,
            only_last: false,
            padding: self.padding.as_ref(),
            cache: None,
        }
    }

    /// Seeds the device before an instruction that draws random numbers, with what belongs to that
    /// instruction. On some backends the generator belongs to the whole process, and other draws would shift
    /// its numbers.
    fn sow(&self, at: usize, action: &Action, weights: &Weights) {
        let mut draws = false;
        action.each(&mut |action| {
            draws |= match action {
                Action::Linear { weight, .. } => weights.added(*weight).is_some_and(|(_, p)| p > 0.0),
                other => other.op().is_some_and(|op| op.meaning().is_random()),
            };
        });
        if draws {
            let [low, high, ..] = self.seed.block(at as u64, 0);
            self.device.seed(u64::from(high) << 32 | u64::from(low));
        }
    }
}

/// The parameters of a segment, with the low-rank changes of its projections.
fn parameters<'a>(segment: &'a Segment, weights: &'a Weights) -> impl Iterator<Item = TensorIndex> + 'a {
    segment.parameters.iter().flat_map(|place| weights.with_change(*place))
}

fn carried(root: Tensor<1>, x: Ranked<Float>, gradient: Ranked<Float>) -> Result<Tensor<1>, RunError> {
    Ok(match (x, gradient) {
        (Ranked::R1(x), Ranked::R1(g)) => carry(root, x, Tensor::from_inner(g)),
        (Ranked::R2(x), Ranked::R2(g)) => carry(root, x, Tensor::from_inner(g)),
        (Ranked::R3(x), Ranked::R3(g)) => carry(root, x, Tensor::from_inner(g)),
        (Ranked::R4(x), Ranked::R4(g)) => carry(root, x, Tensor::from_inner(g)),
        (_, gradient) => return Err(Fault::rank(gradient.rank()).into()),
    })
}

/// The gradient of a leaf, taken out of those of a backward pass.
fn taken(leaf: &Ranked<Float>, gradients: &mut Gradients) -> Option<Ranked<Float>> {
    Some(match leaf {
        Ranked::R1(x) => Ranked::R1(x.grad_remove(gradients)?),
        Ranked::R2(x) => Ranked::R2(x.grad_remove(gradients)?),
        Ranked::R3(x) => Ranked::R3(x.grad_remove(gradients)?),
        Ranked::R4(x) => Ranked::R4(x.grad_remove(gradients)?),
    })
}

impl Weights {
    /// The same parameters without gradients.
    fn untracked(&self) -> Self {
        struct Untracked;
        impl ModuleMapper for Untracked {
            fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
                parameter.set_require_grad(false)
            }
        }
        self.clone().map(&mut Untracked)
    }

    /// A parameter, and those of its low-rank change.
    fn with_change(&self, place: TensorIndex) -> Vec<TensorIndex> {
        let added = Some(place).filter(|place| place.rank == 2).and_then(|place| self.added(place.index));
        let added = added.into_iter().flat_map(|(added, _)| added);
        [place].into_iter().chain(added.map(|index| TensorIndex { rank: 2, index })).collect()
    }

    /// Whether a parameter, or its low-rank change, is trained.
    pub(super) fn is_trained(&self, place: TensorIndex) -> bool {
        self.with_change(place).into_iter().any(|TensorIndex { rank, index }| match rank {
            1 => self.vectors.get(index).is_some_and(|p| p.is_require_grad()),
            2 => self.matrices.get(index).is_some_and(|p| p.is_require_grad()),
            3 => self.cubes.get(index).is_some_and(|p| p.is_require_grad()),
            _ => self.kernels.get(index).is_some_and(|p| p.is_require_grad()),
        })
    }

    /// `root` with the known gradient of a parameter, which is taken out.
    fn carrying(&self, place: TensorIndex, root: Tensor<1>, known: &mut GradientsParams) -> Tensor<1> {
        fn one<const D: usize>(
            parameter: Option<&Param<Tensor<D>>>,
            root: Tensor<1>,
            known: &mut GradientsParams,
        ) -> Tensor<1> {
            match parameter.and_then(|p| Some((p, known.remove::<D>(p.id)?))) {
                Some((parameter, gradient)) => carry(root, parameter.val(), Tensor::from_inner(gradient)),
                None => root,
            }
        }
        match place.rank {
            1 => one(self.vectors.get(place.index), root, known),
            2 => one(self.matrices.get(place.index), root, known),
            3 => one(self.cubes.get(place.index), root, known),
            _ => one(self.kernels.get(place.index), root, known),
        }
    }

    /// Moves the gradient of a parameter from those of a backward pass to the known ones.
    fn collect(&self, place: TensorIndex, gradients: &mut Gradients, known: &mut GradientsParams) {
        fn one<const D: usize>(
            parameter: Option<&Param<Tensor<D>>>,
            gradients: &mut Gradients,
            known: &mut GradientsParams,
        ) {
            if let Some(parameter) = parameter.filter(|p| p.is_require_grad())
                && let Some(gradient) = parameter.val().grad_remove(gradients)
            {
                known.register(parameter.id, gradient);
            }
        }
        match place.rank {
            1 => one(self.vectors.get(place.index), gradients, known),
            2 => one(self.matrices.get(place.index), gradients, known),
            3 => one(self.cubes.get(place.index), gradients, known),
            _ => one(self.kernels.get(place.index), gradients, known),
        }
    }

    /// Adds a gradient of zeros of a trained parameter that has none.
    fn complete(&self, place: TensorIndex, known: &mut GradientsParams) {
        fn one<const D: usize>(parameter: Option<&Param<Tensor<D>>>, known: &mut GradientsParams) {
            if let Some(parameter) = parameter.filter(|p| p.is_require_grad())
                && known.get::<D>(parameter.id).is_none()
            {
                known.register(parameter.id, parameter.val().inner().zeros_like());
            }
        }
        match place.rank {
            1 => one(self.vectors.get(place.index), known),
            2 => one(self.matrices.get(place.index), known),
            3 => one(self.cubes.get(place.index), known),
            _ => one(self.kernels.get(place.index), known),
        }
    }
}
