//! Executes instructions: every op is a fixed sequence of burn calls.
//!
//! The emitter writes the same calls, so emitted code computes the same numbers. The comment above each op
//! shows them, where `x` is the first input. Sequences of more than a call or two are functions of
//! [`trafoc_kernels`].

use burn::prelude::*;
use burn::tensor::ops::AttentionModuleOptions;
use trafoc_kernels::{
    additive_weights, alibi_bias, alibi_slopes, attention, attention_weights, attention_with_dropout,
    attention_with_sinks, dropout, either_mask, for_batch, hide_padding, largest, look_up, mask_by,
    merge_heads, mix_experts, number_range, one_at_padding, padding_mask, patches_of, pool_first, pool_last,
    pool_max, pool_mean, position_ids, prepend, relative_buckets, repeat_heads, rotary_table, rotate_half,
    rotate_interleaved, sinusoid_concat, sinusoid_interleaved, split_heads, unembed, unit_length,
};

use super::Fault;
use super::cache::Buffer;
use super::norm::{Kind, Norm, add_norm, offset};
use super::padding::Padding;
use super::pairs::{by_distances, hide};
use super::plan::{Action, Body, Instruction, Operand};
use super::pointwise::{
    Add, Divide, Gate, Mul, activate, batch_mean, einsum, elementary, level, mean, reduce, softmax, zip,
};
use super::product::{linear, logits, no_parameter};
use super::route::route;
use super::time;
use super::value::{Ranked, Value, axis, concat, map, squeeze, unsqueeze, with};
use super::weights::Weights;
use crate::ir::op::{Attention, Neutral, Pairing, Pool, Score, Sequence, SinusoidLayout};
use crate::ir::{Lengths, Op};

/// Everything an instruction may read in addition to its inputs.
pub(super) struct Context<'a> {
    pub weights: &'a Weights,
    pub constants: &'a [Value],
    pub device: &'a Device,
    pub lengths: Lengths,
    /// Whether dropout is active, which needs weights with autodiff.
    pub training: bool,
    /// Whether only the outputs at the last position are wanted.
    pub only_last: bool,
    /// The padding of a batch, which losses leave out; `None` where nothing has losses.
    pub padding: Option<&'a Padding>,
    /// The buffers of cached decoding; `None` if whole sequences are computed.
    pub cache: Option<&'a mut [Buffer]>,
}

/// Runs a body in a frame of its registers, calling `defined` with each register that an instruction writes
/// and its value. `run_memory` is false when the registers of the memory have been filled beforehand, so that
/// its instructions are skipped.
pub(super) fn run(
    body: &Body,
    frame: &mut [Value],
    context: &mut Context<'_>,
    run_memory: bool,
    mut defined: impl FnMut(usize, &Value),
) -> Result<Vec<Value>, Fault> {
    for instruction in &body.instructions {
        if instruction.memory && !run_memory {
            continue;
        }
        execute(instruction, frame, context, |_, register, value| defined(register, value))?;
    }
    body.results.iter().map(|operand| read(*operand, frame, context.constants)).collect()
}

/// Executes one instruction in a frame of registers, calling `defined` with the index of each result that is
/// used, its register and its value.
pub(super) fn execute(
    instruction: &Instruction,
    frame: &mut [Value],
    context: &mut Context<'_>,
    mut defined: impl FnMut(usize, usize, &Value),
) -> Result<(), Fault> {
    let mut inputs = Vec::with_capacity(instruction.inputs.len());
    for operand in &instruction.inputs {
        inputs.push(read(*operand, frame, context.constants)?);
    }
    let has_second = instruction.outputs.get(1).is_some_and(Option::is_some);
    let results = action(&instruction.action, Inputs(inputs.into_iter()), context, has_second)?;
    for (at, (register, value)) in instruction.outputs.iter().zip(results).enumerate() {
        if let Some(register) = register {
            defined(at, *register, &value);
            *frame.get_mut(*register).ok_or_else(no_register)? = value;
        }
    }
    Ok(())
}

/// The value of an operand, moved out of its register if this is the last read.
pub(super) fn read(operand: Operand, frame: &mut [Value], constants: &[Value]) -> Result<Value, Fault> {
    match operand {
        Operand::Constant(index) => constants.get(index).cloned().ok_or_else(no_register),
        Operand::Register { index, last } => {
            let value = frame.get_mut(index).ok_or_else(no_register)?;
            // Flex computes in place if nothing else owns the buffer, so a register may not keep what is read
            // for the last time.
            Ok(if last { std::mem::take(value) } else { value.clone() })
        }
    }
}

fn no_register() -> Fault {
    Fault("an instruction names a register that does not exist".into())
}

/// The inputs of an instruction, taken in order.
pub(super) struct Inputs(std::vec::IntoIter<Value>);

impl Inputs {
    fn next(&mut self) -> Value {
        // A missing input becomes absent, which the op reports as a fault if it needs a value there.
        self.0.next().unwrap_or_default()
    }

    fn float(&mut self) -> Result<Ranked<Float>, Fault> {
        match self.next() {
            Value::Float(t) => Ok(t),
            other => Err(unexpected("a float tensor", &other)),
        }
    }

    /// All that are left.
    fn floats(&mut self) -> Result<Vec<Ranked<Float>>, Fault> {
        let count = self.0.len();
        (0..count).map(|_| self.float()).collect()
    }

    fn int(&mut self) -> Result<Tensor<2, Int>, Fault> {
        match self.next() {
            Value::Int(t) => t.r2(),
            other => Err(unexpected("an integer tensor", &other)),
        }
    }

    fn optional_int(&mut self) -> Result<Option<Tensor<2, Int>>, Fault> {
        match self.next() {
            Value::Absent => Ok(None),
            Value::Int(t) => t.r2().map(Some),
            other => Err(unexpected("an integer tensor", &other)),
        }
    }

    fn mask(&mut self) -> Result<Option<Tensor<4, Bool>>, Fault> {
        match self.next() {
            Value::Absent => Ok(None),
            Value::Bool(t) => t.r4().map(Some),
            other => Err(unexpected("a mask", &other)),
        }
    }
}

fn unexpected(wanted: &str, found: &Value) -> Fault {
    let found = match found {
        Value::Absent => "nothing",
        Value::Float(_) => "a float tensor",
        Value::Int(_) => "an integer tensor",
        Value::Bool(_) => "a mask",
    };
    Fault(format!("{found} where {wanted} is expected"))
}

type Results = Result<Vec<Value>, Fault>;

fn one(value: impl Into<Value>) -> Results {
    Ok(vec![value.into()])
}

/// Computes the results of one action. `has_second` says whether the second one is used, so that attention
/// returns its weights only then.
fn action(action: &Action, mut inputs: Inputs, context: &mut Context<'_>, has_second: bool) -> Results {
    let weights = context.weights;
    let vector = |index: &usize| weights.vectors.get(*index).map(|p| p.val()).ok_or_else(no_parameter);
    let matrix = |index: &usize| weights.matrices.get(*index).map(|p| p.val()).ok_or_else(no_parameter);
    match action {
        // linear_of(x, weight, bias) or activated_linear_of(x, weight, bias, activation), where the weight is [in, out]; with
        // a low-rank change, the sum of both
        Action::Linear { weight, bias, then } => {
            let bias = bias.as_ref().map(vector).transpose()?;
            let x = inputs.float()?;
            one(Value::Float(linear(weights, *weight, bias, *then, x, context.training)?))
        }
        // look_up(weight, ids)
        Action::Embedding { weight } => one(match weights.packed(*weight) {
            Some(packed) => packed.look_up(inputs.int()?),
            None => look_up(matrix(weight)?, inputs.int()?),
        }),
        // unembed(x, weight)
        Action::Unembed { weight } => one(Value::Float(logits(weights, *weight, inputs.float()?)?)),
        // layer_norm_of(x, weight, bias, eps) or, of a sum, add_layer_norm_of(x, residual, weight, bias, eps); with a unit
        // offset the weight is weight + 1.0
        Action::LayerNorm { weight, bias, eps, unit_offset } => {
            let weight = weight.as_ref().map(vector).transpose()?.map(|w| offset(w, *unit_offset));
            let bias = bias.as_ref().map(vector).transpose()?;
            normalized(Norm { kind: Kind::Layer, weight, bias, eps: *eps }, inputs)
        }
        // rms_norm_of(x, weight, eps) or, of a sum, add_rms_norm_of(x, residual, weight, eps); with a unit offset the weight
        // is weight + 1.0
        Action::RmsNorm { weight, eps, unit_offset } => {
            let weight = weight.as_ref().map(vector).transpose()?.map(|w| offset(w, *unit_offset));
            normalized(Norm { kind: Kind::Rms, weight, bias: None, eps: *eps }, inputs)
        }
        // patches_of(image, weight, bias)
        Action::Patches { weight, bias } => {
            let weight = weights.kernels.get(*weight).ok_or_else(no_parameter)?.val();
            let bias = bias.as_ref().map(vector).transpose()?;
            one(patches_of(inputs.float()?.r4()?, weight, bias))
        }
        // the parameter's value
        Action::Param(place) => one(weights.value(*place).ok_or_else(no_parameter)?),
        // mix_experts(x, weights, |expert, rows| ..)
        Action::Experts(experts) => {
            let (x, routed) = (inputs.float()?.r3()?, inputs.float()?.r3()?);
            // The kernel's function cannot fail, so a fault is remembered and returned afterwards.
            let mut failed = None;
            let y = mix_experts(x, routed, |expert, rows| {
                match experts.get(expert).map(|body| apply(body, rows.clone(), context)) {
                    Some(Ok(y)) => y,
                    // The rows have the shape of a result, which is not used after a fault.
                    Some(Err(fault)) => {
                        failed = Some(fault);
                        rows
                    }
                    None => {
                        failed = Some(Fault("more experts routed to than there are".into()));
                        rows
                    }
                }
            });
            failed.map_or_else(|| one(y), Err)
        }
        // buffer.append(x, past) in cached decoding, else x
        Action::Cache { slot } => {
            let x = inputs.float()?;
            match &mut context.cache {
                Some(buffers) => {
                    let past = context.lengths.past as usize;
                    let buffer = buffers.get_mut(*slot).ok_or_else(no_register)?;
                    one(Value::Float(buffer.append(x, past)?))
                }
                None => one(Value::Float(x)),
            }
        }
        // earlier(x, by, cache), causal_conv(x, w, cache), ..
        Action::State { op, slot } => {
            let buffer = match &mut context.cache {
                Some(buffers) => Some(buffers.get_mut(*slot).ok_or_else(no_register)?),
                None => None,
            };
            one(Value::Float(time::with_state(op, inputs.floats()?, buffer.map(Buffer::state).transpose()?)?))
        }
        // x.narrow(1, T - 1, 1)
        Action::Last => {
            let x = inputs.next();
            let time = x.dims().and_then(|axes| axes.get(1).copied()).unwrap_or(0);
            if !context.only_last || time < 2 {
                return one(x);
            }
            one(x.narrow(1, time - 1, 1))
        }
        Action::Op(op) => self::op(op, inputs, context, has_second),
    }
}

/// The norm of the input or, of two terms, that of their sum, and this sum.
fn normalized(norm: Norm, mut inputs: Inputs) -> Results {
    let x = inputs.float()?;
    match inputs.floats()?.pop() {
        Some(residual) => Ok(add_norm(norm, x, residual)?.map(Value::Float).into()),
        None => one(Value::Float(map!(x, x => norm.of(x)))),
    }
}

/// Applies one expert to the tokens that were routed to it, `[N, D]`.
fn apply(body: &Body, rows: Tensor<2>, context: &mut Context<'_>) -> Result<Tensor<2>, Fault> {
    let mut frame = vec![Value::Absent; body.registers];
    if let Some(Some(register)) = body.arguments.first() {
        *frame.get_mut(*register).ok_or_else(no_register)? = rows.into();
    }
    match run(body, &mut frame, context, true, |_, _| ())?.pop() {
        Some(Value::Float(y)) => y.r2(),
        _ => Err(Fault("an expert returns no rows".into())),
    }
}

/// Computes all results of an op whose value depends only on the lengths.
pub(super) fn constant(
    op: &Op,
    inputs: Vec<Value>,
    lengths: Lengths,
    device: &Device,
    weights: &Weights,
) -> Results {
    let mut context = Context {
        weights,
        constants: &[],
        device,
        lengths,
        training: false,
        only_last: false,
        padding: None,
        cache: None,
    };
    // With the second result: the sines of a rotary table are one.
    self::op(op, Inputs(inputs.into_iter()), &mut context, true)
}

/// The first position of a sequence that is computed, and the number of positions.
fn span(sequence: Sequence, lengths: &Lengths) -> (usize, usize) {
    let (start, length) = match sequence {
        Sequence::Whole => (0, lengths.time),
        Sequence::Cached => (lengths.past, lengths.time),
        Sequence::Source => (0, lengths.source),
        Sequence::Fixed(n) => (0, n.get()),
    };
    (start as usize, length as usize)
}

/// The number of keys, which includes the cached positions.
fn keys_of(sequence: Sequence, lengths: &Lengths) -> usize {
    let (start, length) = span(sequence, lengths);
    start + length
}

// With a wildcard arm, a new op could be forgotten here without an error of the compiler.
#[warn(clippy::wildcard_enum_match_arm)]
fn op(op: &Op, mut inputs: Inputs, context: &mut Context<'_>, has_second: bool) -> Results {
    let (device, lengths) = (context.device, context.lengths);
    match op {
        // position_ids(offset + past, length, device)
        Op::Positions { along, offset } => {
            let (start, length) = span(*along, &lengths);
            one(position_ids(start + *offset as usize, length, device))
        }
        Op::Range { len } => one(number_range(len.get() as usize, device)),
        // sinusoid_interleaved(positions, dim, base) or sinusoid_concat
        Op::Sinusoid { dim, base, layout } => {
            let (at, dim) = (inputs.int()?, dim.get() as usize);
            one(match layout {
                SinusoidLayout::Interleaved => sinusoid_interleaved(at, dim, *base),
                SinusoidLayout::Concat => sinusoid_concat(at, dim, *base),
            })
        }
        // rotary_table(inverse_frequencies, magnitude, past, length, device)
        Op::RotaryTable { along, rotary } => {
            let (start, length) = span(*along, &lengths);
            // Some scalings choose the frequencies by the length of the sequence, cached positions included.
            let total = (start + length) as u64;
            let frequencies: Vec<f64> =
                (0..rotary.pairs()).map(|i| rotary.inverse_frequency_at(total, i)).collect();
            let (cos, sin) = rotary_table(&frequencies, rotary.magnitude, start, length, device);
            Ok(vec![cos.into(), sin.into()])
        }
        // mask_by(past, queries, keys, device, |query, key| ..)
        Op::Mask { queries, keys, rule } => {
            let (start, length) = span(*queries, &lengths);
            let hides = |query, key| rule.hides(query as u64, key as u64);
            one(mask_by(start, length, keys_of(*keys, &lengths), device, hides))
        }
        // padding_mask(keep); absent if `keep` is absent
        Op::PaddingMask => match inputs.optional_int()? {
            Some(keep) => one(padding_mask(keep)),
            None => one(Value::Absent),
        },
        // either_mask(a, b)
        Op::EitherMask => {
            let either = either_mask(inputs.mask()?, inputs.mask()?);
            one(either.map_or(Value::Absent, Value::from))
        }
        // alibi_bias(alibi_slopes(heads, max, scale), past, queries, keys, device)
        Op::AlibiBias { queries, keys, slopes } => {
            let (start, length) = span(*queries, &lengths);
            let heads = slopes.heads.get() as usize;
            let slopes = alibi_slopes(heads, slopes.max, slopes.scale);
            one(alibi_bias(&slopes, start, length, keys_of(*keys, &lengths), device))
        }
        // relative_buckets(past, queries, keys, buckets, max_distance, bidirectional, device)
        Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => {
            let (start, length) = span(*queries, &lengths);
            let (keys, buckets, far) =
                (keys_of(*keys, &lengths), buckets.get() as usize, *max_distance as usize);
            one(relative_buckets(start, length, keys, buckets, far, *bidirectional, device))
        }
        // split_heads(x, heads)
        Op::SplitHeads { heads } => one(split_heads(inputs.float()?.lift(3).r3()?, heads.get() as usize)),
        // merge_heads(x)
        Op::MergeHeads => one(merge_heads(inputs.float()?.r4()?)),
        // repeat_heads(x, times)
        Op::RepeatHeads { times } => one(repeat_heads(inputs.float()?.r4()?, times.get() as usize)),
        // rotate_half(x, cos, sin) or rotate_interleaved; burn's own layer has the second form only
        Op::Rotate { pairing } => {
            let (x, cos, sin) = (inputs.float()?.r4()?, inputs.float()?.r2()?, inputs.float()?.r2()?);
            one(match pairing {
                Pairing::Half => rotate_half(x, cos, sin),
                Pairing::Interleaved => rotate_interleaved(x, cos, sin),
            })
        }
        Op::Attention(fields) => attend(fields, inputs, context, has_second),
        // a.matmul(b), or a.matmul(b.swap_dims(2, 3))
        Op::MatMul { transposed } => {
            let (a, b) = (inputs.float()?.r4()?, inputs.float()?.r4()?);
            one(a.matmul(if *transposed { b.swap_dims(2, 3) } else { b }))
        }
        // einsum(axes, a, b)
        Op::Einsum(axes) => one(Value::Float(einsum(axes, inputs.float()?, inputs.float()?)?)),
        // for_batch(x, like)
        Op::ForBatch => {
            let x = inputs.float()?.r4()?;
            one(with!(inputs.float()?, like => for_batch(x, like)))
        }
        // hide_weights(x, mask), hide_scores(x, mask) or hide_scores_if_any(x, mask)
        Op::Hide { fill } => one(hide(*fill, inputs.float()?.r4()?, inputs.mask()?)),
        // hide_padding(x, mask) or one_at_padding(x, mask)
        Op::HidePadding { neutral } => {
            let (x, mask) = (inputs.float()?, inputs.mask()?);
            one(Value::Float(match neutral {
                Neutral::Zero => map!(x, x => hide_padding(x, mask)),
                Neutral::One => map!(x, x => one_at_padding(x, mask)),
            }))
        }
        Op::ByDistance { queries, keys, center, distances, of_keys } => {
            let x = inputs.float()?.r4()?;
            let (start, length) = span(*queries, &lengths);
            let (keys, center) = (keys_of(*keys, &lengths), center.get() as usize);
            let mask = inputs.mask()?;
            one(by_distances(x, (start, length, keys), *distances, center, *of_keys, mask))
        }
        Op::Activate(activation) => one(Value::Float(map!(inputs.float()?, x => activate(*activation, x)))),
        // silu_gate(gate, x), ..
        Op::Gate(activation) => {
            let (a, b) = (inputs.float()?, inputs.float()?);
            one(Value::Float(zip(a, b, Gate(*activation))?))
        }
        // a + b, the one of lower rank with leading axes of size 1
        Op::Add => {
            let (a, b) = level(inputs.float()?, inputs.float()?);
            one(Value::Float(zip(a, b, Add)?))
        }
        // a * b, the one of lower rank with leading axes of size 1
        Op::Mul => {
            let (a, b) = level(inputs.float()?, inputs.float()?);
            one(Value::Float(zip(a, b, Mul)?))
        }
        // a / b, the one of lower rank with leading axes of size 1
        Op::Divide => {
            let (a, b) = level(inputs.float()?, inputs.float()?);
            one(Value::Float(zip(a, b, Divide)?))
        }
        // x.exp(), x.log(), ..
        Op::Elementary(function) => one(Value::Float(map!(inputs.float()?, x => elementary(*function, x)))),
        // x.sum_dim(axis), x.mean_dim(axis), x.max_dim(axis)
        Op::Reduce(reduction) => one(Value::Float(map!(inputs.float()?, x => reduce(*reduction, x)))),
        // activation::softmax(x, axis)
        Op::Softmax => one(Value::Float(map!(inputs.float()?, x => softmax(x)))),
        // largest(x, count)
        Op::TopK { count } => one(Value::Float(map!(inputs.float()?, x => largest(x, count.get() as usize)))),
        // x * by
        Op::Scale { by } => one(Value::Float(map!(inputs.float()?, x => x * **by))),
        // x + by
        Op::Shift { by } => one(Value::Float(map!(inputs.float()?, x => x + *by))),
        // x.clamp(min, max), x.clamp_min(min), x.clamp_max(max)
        Op::Clamp { min, max } => one(Value::Float(map!(inputs.float()?, x => match (min, max) {
            (Some(min), Some(max)) => x.clamp(*min, *max),
            (Some(min), None) => x.clamp_min(*min),
            (None, Some(max)) => x.clamp_max(*max),
            (None, None) => x,
        }))),
        // (x / cap).tanh() * cap
        Op::Softcap { cap } => one(Value::Float(map!(inputs.float()?, x => (x / *cap).tanh() * *cap))),
        // dropout(x, p) in training, else x
        Op::Dropout { p } => {
            let x = inputs.float()?;
            one(Value::Float(if context.training { map!(x, x => dropout(x, *p)) } else { x }))
        }
        // x.narrow(axis, start, len)
        Op::Slice { axis_from_last, start, len } => {
            let (from_last, start, len) = (*axis_from_last, start.get() as usize, len.get() as usize);
            let x = inputs.next();
            match x.dims() {
                Some(axes) => one(x.narrow(axis(axes.len(), from_last)?, start, len)),
                None => one(x),
            }
        }
        // Tensor::cat(vec![a, b, ..], axis)
        Op::Concat { axis_from_last } => one(concat(inputs.0, *axis_from_last)?),
        // earlier(x, by, None), causal_conv(x, w, None), ..
        Op::Earlier { .. } | Op::CausalConv { .. } | Op::CumulativeSum { .. } | Op::Recurrence { .. } => {
            one(Value::Float(time::with_state(op, inputs.floats()?, None)?))
        }
        // prepend(rows, x)
        Op::Prepend => one(prepend(inputs.float()?.r2()?, inputs.float()?.r3()?)),
        // x.unsqueeze_dim(rank)
        Op::Unsqueeze => match inputs.next() {
            Value::Float(x) => one(Value::Float(unsqueeze(x)?)),
            Value::Int(x) => one(Value::Int(unsqueeze(x)?)),
            Value::Bool(x) => one(Value::Bool(unsqueeze(x)?)),
            Value::Absent => one(Value::Absent),
        },
        // x.squeeze_dim(rank - 1)
        Op::Squeeze => match inputs.next() {
            Value::Float(x) => one(Value::Float(squeeze(x)?)),
            Value::Int(x) => one(Value::Int(squeeze(x)?)),
            Value::Bool(x) => one(Value::Bool(squeeze(x)?)),
            Value::Absent => one(Value::Absent),
        },
        // look_up(table, ids)
        Op::Lookup => one(look_up(inputs.float()?.r2()?, inputs.int()?)),
        // x.permute([2, 0, 1]).unsqueeze()
        Op::BiasFromTable => one(inputs.float()?.r3()?.permute([2, 0, 1]).unsqueeze::<4>()),
        // a, or b.zeros_like() if a is absent
        Op::OrZeros => match (inputs.next(), inputs.next()) {
            (Value::Absent, Value::Float(like)) => one(Value::Float(map!(like, x => x.zeros_like()))),
            (Value::Absent, Value::Int(like)) => one(Value::Int(map!(like, x => x.zeros_like()))),
            (Value::Absent, other) => Err(unexpected("numbers", &other)),
            (given, _) => one(given),
        },
        // unembed(x, weight), where the weight is not a parameter
        Op::Unembed => {
            let (x, weight) = (inputs.float()?, inputs.float()?.r2()?);
            one(Value::Float(map!(x, x => unembed(x, weight))))
        }
        Op::Route(router) => {
            let scores = inputs.float()?.r3()?;
            let correction = if router.has_correction { Some(inputs.float()?.r1()?) } else { None };
            one(route(router, scores, correction))
        }
        // pool_first(x), pool_last(x, keep), pool_mean(x, keep), pool_max(x, keep)
        Op::Pool(pool) => {
            let (x, keep) = (inputs.float()?.r3()?, inputs.optional_int()?);
            one(match pool {
                Pool::First => pool_first(x),
                Pool::Last => pool_last(x, keep),
                Pool::Mean => pool_mean(x, keep),
                Pool::Max => pool_max(x, keep),
            })
        }
        // batch_mean(x), or that of what is no padding
        Op::BatchMean { along } => {
            let padding = context.padding.and_then(|padding| padding.along(*along));
            one(Value::Float(map!(inputs.float()?, x => batch_mean(x, padding))))
        }
        // x.mean(), or that of what is no padding
        Op::ExtraLoss { along, .. } => {
            let padding = context.padding.and_then(|padding| padding.along(*along));
            one(with!(inputs.float()?, x => mean(x, padding)))
        }
        // unit_length(x)
        Op::Normalize => one(Value::Float(map!(inputs.float()?, x => unit_length(x)))),
        Op::Layer { .. }
        | Op::ActivatedLayer { .. }
        | Op::Weight { .. }
        | Op::Call { .. }
        | Op::Scan { .. }
        | Op::Experts { .. }
        | Op::Cache => Err(Fault("a plan contains an op with members or a cache".into())),
    }
}

/// `attention(q, k, v, mask, bias, options)`, `attention_with_dropout(q, k, v, mask, bias, options, dropout)` or
/// `attention_with_sinks(q, k, v, mask, bias, sinks, options)`, unless the weights must be computed by themselves: for both
/// sinks and dropout, for additive scores, or because they are used as a result. Then `weights` is
/// `attention_weights(q, k, mask, bias, sinks, options)`, or for additive scores
/// `additive_weights(q, k, w, mask, bias, sinks, options)`, and the result is
/// `dropout(weights.clone(), p).matmul(v)`.
fn attend(fields: &Attention, mut inputs: Inputs, context: &Context<'_>, wants_weights: bool) -> Results {
    let Attention { score, scale, softcap, causal, dropout: p, has_mask, has_bias, has_sinks } = fields;
    let (q, k, v) = (inputs.float()?.r4()?, inputs.float()?.r4()?, inputs.float()?.r4()?);
    // The optional inputs come in the order that [`Attention`] documents, those of additive scores last.
    let mask = if *has_mask { inputs.mask()? } else { None };
    let bias = if *has_bias { Some(inputs.float()?.r4()?) } else { None };
    let sinks = if *has_sinks { Some(inputs.float()?.r1()?) } else { None };
    let options = AttentionModuleOptions { scale: Some(**scale), softcap: *softcap, is_causal: *causal };
    let drops = context.training && *p > 0.0;
    if !(wants_weights || fields.is_composed() || drops && sinks.is_some()) {
        return one(match sinks {
            Some(sinks) => attention_with_sinks(q, k, v, mask, bias, sinks, options),
            None if drops => {
                attention_with_dropout(q, k, v, mask, bias, options, &nn::DropoutConfig::new(*p).init())
            }
            None => attention(q, k, v, mask, bias, options),
        });
    }
    // The ops above return no weights, so the steps are separate here.
    let weights = match score {
        Score::Dot => attention_weights(q, k, mask, bias, sinks, options),
        Score::Additive => additive_weights(q, k, inputs.float()?.r2()?, mask, bias, sinks, options),
    };
    let dropped = if drops { dropout(weights.clone(), *p) } else { weights.clone() };
    Ok(vec![dropped.matmul(v).into(), weights.into()])
}
