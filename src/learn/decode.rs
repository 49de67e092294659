//! Generates tokens with a decoder: the continuation of a prompt, or the target of a source.
//!
//! Keys and values of past positions are cached, so a new token costs one position. If they change as the
//! sequence grows, as with rotary angles that depend on the length, all positions are computed again.
//! Sequences whose prompts have the same length are decoded in one batch; a sequence that has ended leaves
//! the batch. Beam search keeps the most probable prefixes of one sequence as a batch.

use std::collections::BTreeMap;

use burn::prelude::*;
use burn::tensor::DType;
use trafoc_kernels::largest_score;

use super::choose::{Sampling, choose, logs};
use super::data::Array;
use super::random::Stream;
use super::step::{StepError, array};
use crate::diag::count::counted;
use crate::interp::run::RunError;
use crate::interp::{Cache, Inputs, Plan, Weights};

/// What one generated sequence begins with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// The tokens before the first generated one, at least one: the start token if there is nothing else.
    pub tokens: Vec<u32>,
    /// How many of them, at the end, were prescribed as the first tokens of what is written, and so count in
    /// its length: the language of a translation.
    pub prescribed: usize,
    /// The inputs of the encoder, such as a source and its mask, each with a batch of 1.
    pub memory: Vec<(&'static str, Array)>,
}

/// When generation ends, and which tokens are excluded.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The most tokens that are generated.
    pub most: usize,
    /// The number of positions that the model has, including the prompt.
    pub context: usize,
    /// Tokens that end a sequence; they are not part of it.
    pub stop: Vec<u32>,
    /// Tokens that are never generated.
    pub never: Vec<u32>,
    /// The token that ends a sequence when it reaches its greatest length.
    pub last: Option<u32>,
}

impl Limits {
    /// The most tokens that can follow a prompt of `given` tokens. The position of the last one is not computed,
    /// because no token follows.
    pub fn room(&self, given: usize) -> usize {
        self.most.min(self.context.saturating_add(1).saturating_sub(given))
    }

    /// Excludes the tokens that may not come next: after a prompt of `given` tokens and `made` generated
    /// ones. Returns the token that must come next, if there is one.
    fn restrict<T: From<f32>>(&self, scores: &mut [T], given: usize, made: usize) -> Option<u32> {
        let last = self.last.filter(|_| made + 1 >= self.room(given));
        // Scores are not removed, so that a token's index stays its id. Its probability becomes 0.
        let exclude = |score: &mut T| *score = f32::NEG_INFINITY.into();
        match last {
            // What must come next comes next, also where it may come nowhere else.
            Some(last) => {
                (0u32..).zip(scores).filter(|(id, _)| *id != last).for_each(|(_, score)| exclude(score));
            }
            None => {
                for id in &self.never {
                    usize::try_from(*id).ok().and_then(|id| scores.get_mut(id)).into_iter().for_each(exclude);
                }
            }
        }
        last
    }
}

/// A generated sequence, or a hypothesis of beam search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The generated tokens, without the prompt and without a stop token.
    pub tokens: Vec<u32>,
    /// The sum of the logarithms of their probabilities, including that of the stop token.
    pub log_probability: f64,
    /// Whether it ended with a stop token.
    pub ended: bool,
}

/// Beam search (Graves 2012; length penalty as in Wu et al. 2016, in the form `score / length^penalty`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beam {
    /// The number of hypotheses that are kept.
    pub width: usize,
    /// The exponent of the length by which a score is divided; a value above 0 favours longer sequences.
    pub length_penalty: f64,
}

/// The arguments of [`Decoder::sample`] that are the same for all groups of prompts.
struct Sampled<'a> {
    prompts: &'a [Prompt],
    how: &'a Sampling,
    limits: &'a Limits,
    seed: u64,
}

/// The state after the tokens so far.
enum Past {
    /// The cached keys and values of all positions.
    Kept(Cache),
    /// All positions are computed again in each step, those of an encoder too.
    Again {
        /// The tokens, one row per sequence.
        rows: Vec<Vec<u32>>,
        /// The inputs of the encoder, with one row per sequence.
        memory: Vec<(&'static str, Array)>,
    },
}

impl Past {
    /// The state before the first token.
    fn new(plan: &Plan) -> Self {
        if plan.decodes() {
            Self::Kept(Cache::new(plan))
        } else {
            Self::Again { rows: Vec::new(), memory: Vec::new() }
        }
    }

    /// The number of positions so far.
    fn len(&self) -> usize {
        match self {
            Self::Kept(cache) => cache.len(),
            Self::Again { rows, .. } => rows.first().map_or(0, Vec::len),
        }
    }

    /// Keeps the sequences with these indices, in this order; an index may occur several times. With `same_source` all of
    /// them have the same source.
    fn select(&mut self, sequences: &[usize], same_source: bool, device: &Device) -> Result<(), StepError> {
        match self {
            Self::Kept(cache) => cache.select(sequences, same_source, device).map_err(|too_much| {
                let of = counted(sequences.len() as u64, "continuation");
                StepError::Run(RunError::DoesNotFit(too_much.says(&format!("keeping {of}"))))
            })?,
            Self::Again { rows, memory } => {
                *rows = sequences.iter().filter_map(|i| rows.get(*i).cloned()).collect();
                // Each sequence has its own source, which must stay in the same row.
                memory.iter_mut().for_each(|(_, values)| *values = values.select(sequences));
            }
        }
        Ok(())
    }

    /// The tokens that the model needs as its input, given the new ones.
    fn input<'t>(&'t mut self, tokens: &'t [Vec<u32>]) -> &'t [Vec<u32>] {
        match self {
            Self::Kept(_) => tokens,
            Self::Again { rows, .. } => {
                // Empty before the first step; afterwards there are as many rows as sequences.
                rows.resize(tokens.len(), Vec::new());
                rows.iter_mut().zip(tokens).for_each(|(row, new)| row.extend(new));
                rows
            }
        }
    }

    /// The inputs of the encoder that the model needs, given those of the first step.
    fn memory(&mut self, first: Vec<(&'static str, Array)>) -> Vec<(&'static str, Array)> {
        match self {
            // What the encoder has made of them is in the cache.
            Self::Kept(_) => first,
            Self::Again { memory, .. } => {
                if !first.is_empty() {
                    *memory = first;
                }
                // Given again in each step, because nothing of the encoder is cached.
                memory.clone()
            }
        }
    }
}

/// A plan with its weights, which generates tokens.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    plan: &'a Plan,
    weights: &'a Weights,
}

impl<'a> Decoder<'a> {
    /// The weights must be on a device without autodiff.
    pub fn new(plan: &'a Plan, weights: &'a Weights) -> Self {
        Self { plan, weights }
    }

    /// The name of the input for tokens: the first input that does not belong to the encoder.
    fn input(&self) -> Result<&'a str, StepError> {
        // Found by its type, because decoders call it `tokens` and encoder-decoders `target`.
        let input = self.plan.inputs().iter().find(|i| !i.memory && !i.keep && i.ty.shape.len() == 2);
        input
            .map(|i| i.name.as_str())
            .ok_or_else(|| StepError::Labels("the model has no input for tokens".into()))
    }

    /// The device of the parameters, on which inputs are created.
    fn device(&self) -> Result<Device, StepError> {
        self.weights.device().ok_or_else(|| StepError::Labels("the model has no parameters".into()))
    }

    /// Continues every prompt. `seed` and the prompt's index determine its random numbers, whatever it is
    /// batched with. `told` is called with every new token and its prompt's index; if it returns `false`,
    /// that sequence ends.
    ///
    /// # Errors
    /// The model does not decode, or a prompt does not fit it.
    pub fn sample(
        &self,
        prompts: &[Prompt],
        how: &Sampling,
        limits: &Limits,
        seed: u64,
        told: &mut dyn FnMut(usize, u32) -> bool,
    ) -> Result<Vec<Decoded>, StepError> {
        // Each prompt has its own stream of random numbers, so its text does not depend on the others.
        let task = Sampled { prompts, how, limits, seed };
        let mut out = vec![Decoded::default(); prompts.len()];
        // Prompts of different lengths are not padded: that would give their tokens other positions.
        for group in alike(prompts) {
            self.group(&task, group, told, &mut out)?;
        }
        Ok(out)
    }

    /// Continues the prompts with the indices `alive`, which have the same shape.
    fn group(
        &self,
        task: &Sampled<'_>,
        mut alive: Vec<usize>,
        told: &mut dyn FnMut(usize, u32) -> bool,
        out: &mut [Decoded],
    ) -> Result<(), StepError> {
        let Sampled { prompts, how, limits, seed } = *task;
        let device = self.device()?;
        let mut streams: BTreeMap<usize, Stream> =
            alive.iter().map(|i| (*i, Stream::new(seed, "sampling", *i as u64))).collect();
        let mut past = Past::new(self.plan);
        let mut next: Vec<Vec<u32>> = alive.iter().map(|i| prompts[*i].tokens.clone()).collect();
        let mut memory = together(prompts, &alive)?;
        while !alive.is_empty() {
            let room = limits.context.saturating_sub(past.len());
            // The sequences of a group have the same length, so the first one decides for all.
            if next.first().is_none_or(|tokens| tokens.len() > room) {
                break;
            }
            // The inputs of the encoder are given in the first call only.
            let (mut rows, vocab) = self.scores(&next, std::mem::take(&mut memory), &mut past, &device)?;
            let mut kept = Vec::new();
            next.clear();
            for (row, (index, scores)) in alive.iter().zip(rows.chunks_mut(vocab)).enumerate() {
                let decoded = &mut out[*index];
                limits.restrict(scores, prompts[*index].tokens.len(), decoded.tokens.len());
                let mut seen = Vec::new();
                // Copied only for a penalty, since the text gets longer with every token.
                if how.repetition_penalty != 1.0 {
                    seen.extend_from_slice(&prompts[*index].tokens);
                    seen.extend_from_slice(&decoded.tokens);
                }
                let Some(stream) = streams.get_mut(index) else { continue };
                let Some((token, log)) = choose(scores, &seen, how, stream) else {
                    return Err(StepError::of_scores(scores));
                };
                decoded.log_probability += log;
                // Before it is shown or kept: a stop token is not part of the text.
                if limits.stop.contains(&token) {
                    decoded.ended = true;
                    continue;
                }
                decoded.tokens.push(token);
                if told(*index, token) && decoded.tokens.len() < limits.most {
                    kept.push(row);
                    next.push(vec![token]);
                }
            }
            // Selecting copies the caches, so it is left out if no sequence has ended.
            if kept.len() < alive.len() && !kept.is_empty() {
                past.select(&kept, false, &device)?;
            }
            alive = kept.into_iter().map(|row| alive[row]).collect();
        }
        Ok(())
    }

    /// The scores after the last of the new tokens, a row of the given width for each sequence, one after the other: a
    /// copy of each row would take as much memory again.
    fn scores(
        &self,
        tokens: &[Vec<u32>],
        memory: Vec<(&'static str, Array)>,
        past: &mut Past,
        device: &Device,
    ) -> Result<(Vec<f32>, usize), StepError> {
        let given = past.input(tokens);
        let (rows, length) = (given.len(), given.first().map_or(0, Vec::len));
        let ids: Vec<i64> = given.iter().flatten().map(|id| i64::from(*id)).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [rows, length]), device);
        let mut inputs = Inputs::new().with(self.input()?, ids);
        for (name, values) in past.memory(memory) {
            inputs = inputs.with(name, array(&values, device)?);
        }
        let outputs = match past {
            Past::Kept(cache) => self.plan.run_last(self.weights, &inputs, Some(cache))?,
            Past::Again { .. } => self.plan.run_last(self.weights, &inputs, None)?,
        };
        let logits = super::loss::output::<3>(&outputs, "logits").map_err(StepError::Labels)?;
        // What is read back is copied as long as it has another owner.
        drop(outputs);
        let [_, length, width] = logits.dims();
        let last = logits.narrow(1, length - 1, 1);
        // Only the last position is read back: a prompt's other scores were for tokens that are known.
        let data = last.try_into_data().map_err(|e| StepError::Device(e.to_string()))?;
        // The usual type is taken without a copy: a row has as many numbers as the vocabulary has tokens.
        let numbers: Vec<f32> = match data.dtype() {
            DType::F32 => data.try_into_vec().map_err(|e| StepError::Device(e.to_string()))?,
            _ => data.iter::<f32>().collect(),
        };
        // Before any token is excluded: one whose score is NaN takes no part, but one must be left.
        let width = width.max(1);
        if let Some(row) = numbers.chunks(width).find(|row| !largest_score(row).is_finite()) {
            return Err(StepError::of_scores(row));
        }
        Ok((numbers, width))
    }

    /// The most probable continuations of a prompt, the best first; at most `beam.width`. The search goes on until
    /// no hypothesis can become better than those that have ended, as with the library's
    /// `early_stopping="never"`.
    ///
    /// # Errors
    /// The model does not decode, or the prompt does not fit it.
    pub fn beam(&self, prompt: &Prompt, beam: &Beam, limits: &Limits) -> Result<Vec<Decoded>, StepError> {
        let device = self.device()?;
        let width = beam.width.max(1);
        let score = |d: &Decoded| {
            // The stop token counts in the length, as it does in the probability. A token that is prescribed
            // counts too, with a probability of 1.
            let length = (d.tokens.len() + usize::from(d.ended) + prompt.prescribed).max(1) as f64;
            d.log_probability / length.powf(beam.length_penalty)
        };
        // Stable, so equal scores stay in the order in which they were found, which is the same on every
        // device.
        let best_first = |all: &mut Vec<Decoded>| all.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let mut past = Past::new(self.plan);
        // The search begins with a batch of one, which grows when `select` copies the cache of a hypothesis.
        let mut alive = vec![Decoded::default()];
        let mut next = vec![prompt.tokens.clone()];
        let mut memory = prompt.memory.clone();
        let mut done: Vec<Decoded> = Vec::new();
        for _ in 0..limits.most {
            if next.first().is_none_or(|tokens| tokens.len() > limits.context.saturating_sub(past.len())) {
                break;
            }
            let (scores, vocab) = self.scores(&next, std::mem::take(&mut memory), &mut past, &device)?;
            // Ties are broken by the hypothesis and the token, so that every device with equal scores finds the same.
            let best_of_all = |all: &mut Vec<(f64, usize, u32)>| {
                all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
                // Each of the stop tokens may be among the best of every hypothesis.
                all.truncate(width + alive.len() * limits.stop.len());
            };
            let mut continuations: Vec<(f64, usize, u32)> = Vec::new();
            for (row, scores) in scores.chunks(vocab).enumerate() {
                let mut logs = logs(scores);
                // After the logarithm, as in the library: what is excluded does not make the rest more
                // probable, or a hypothesis would gain by every place where it excludes much.
                let last = limits.restrict(&mut logs, prompt.tokens.len(), alive[row].tokens.len());
                if let Some(log) = last.and_then(|last| logs.get_mut(usize::try_from(last).ok()?)) {
                    // It comes next with certainty.
                    *log = 0.0;
                }
                let mut own: Vec<(f64, usize, u32)> = logs
                    .into_iter()
                    .zip(0u32..)
                    // Excluded tokens have the score `-inf`.
                    .filter(|(log, _)| log.is_finite())
                    .map(|(log, token)| (alive[row].log_probability + log, row, token))
                    .collect();
                // At most `width` continuations of one hypothesis survive, so the rest are not compared with
                // others.
                own.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
                // More than `width` are needed, because each of the stop tokens may be among the best.
                own.truncate(width + limits.stop.len());
                continuations.append(&mut own);
                // A wide beam would otherwise keep as many continuations as the square of its width.
                if row % 32 == 31 {
                    best_of_all(&mut continuations);
                }
            }
            best_of_all(&mut continuations);
            // Selecting copies the caches, for which this may make room.
            drop(scores);
            let (mut rows, mut kept) = (Vec::new(), Vec::new());
            next.clear();
            for (log_probability, row, token) in continuations {
                let mut hypothesis = Decoded { log_probability, ..alive[row].clone() };
                if limits.stop.contains(&token) {
                    // A hypothesis that ends but is not among the best would have an advantage only by
                    // being short.
                    if kept.len() < width {
                        hypothesis.ended = true;
                        done.push(hypothesis);
                    }
                    continue;
                }
                if kept.len() == width {
                    break;
                }
                hypothesis.tokens.push(token);
                rows.push(row);
                next.push(vec![token]);
                kept.push(hypothesis);
            }
            alive = kept;
            best_first(&mut done);
            done.truncate(width);
            // Probabilities only decrease. If even the greatest length would not make a hypothesis win, the
            // search is complete.
            let best_possible = alive.iter().map(|hypothesis| {
                let longest =
                    hypothesis.tokens.len() + if beam.length_penalty > 0.0 { limits.most } else { 1 };
                let length = longest.min(limits.most) + prompt.prescribed;
                hypothesis.log_probability / (length.max(1) as f64).powf(beam.length_penalty)
            });
            let best_possible = best_possible.fold(f64::NEG_INFINITY, f64::max);
            if alive.is_empty()
                || (done.len() == width && done.last().is_some_and(|d| score(d) >= best_possible))
            {
                alive.clear();
                break;
            }
            // The survivors may continue the same hypothesis, whose cache is then copied for each.
            past.select(&rows, true, &device)?;
        }
        // What was cut off by the limit competes with what ended, by the same score.
        done.append(&mut alive);
        best_first(&mut done);
        done.truncate(width);
        Ok(done)
    }
}

/// Groups the indices of prompts that can be decoded in one batch: with the same length and with encoder
/// inputs of the same shape.
fn alike(prompts: &[Prompt]) -> Vec<Vec<usize>> {
    // Ordered, so that the groups, and with them the order in which tokens are shown, are always the same.
    let mut groups: BTreeMap<(usize, Vec<Vec<usize>>), Vec<usize>> = BTreeMap::new();
    for (i, prompt) in prompts.iter().enumerate() {
        let shapes = prompt.memory.iter().map(|(_, array)| array.shape().to_vec()).collect();
        groups.entry((prompt.tokens.len(), shapes)).or_default().push(i);
    }
    groups.into_values().collect()
}

/// The encoder inputs of several prompts, concatenated along the batch.
fn together(prompts: &[Prompt], group: &[usize]) -> Result<Vec<(&'static str, Array)>, StepError> {
    let Some(first) = group.first().map(|i| &prompts[*i].memory) else { return Ok(Vec::new()) };
    let mut out = first.clone();
    for index in group.iter().skip(1) {
        for ((_, all), (_, one)) in out.iter_mut().zip(&prompts[*index].memory) {
            match (all, one) {
                (Array::Ints { shape, values }, Array::Ints { values: more, .. }) => {
                    values.extend_from_slice(more);
                    shape.iter_mut().take(1).for_each(|n| *n += 1);
                }
                (Array::Floats { shape, values }, Array::Floats { values: more, .. }) => {
                    values.extend_from_slice(more);
                    shape.iter_mut().take(1).for_each(|n| *n += 1);
                }
                (Array::Ints { .. }, Array::Floats { .. }) | (Array::Floats { .. }, Array::Ints { .. }) => {
                    return Err(StepError::Labels("the sources have different shapes".into()));
                }
            }
        }
    }
    Ok(out)
}
