//! Every op as an expression: the same calls, in the same order, as the interpreter makes.

use super::attention::attend;
use super::code::{Code, code};
use super::function::Function;
use super::number::float;
use super::pointwise::{activate, dropout_of, elementary, gated};
use crate::emit::program::function::Lent;
use crate::emit::program::needs::Need;
use crate::emit::program::operands::Operands;
use crate::emit::program::rotary::{self, Frequencies, Rule};
use crate::ir::op::quantity::Named;
use crate::ir::op::{
    Distances, Fill, FrequencyRule, Hidden, MaskRule, Neutral, Pool, Reduction, RotaryTable, Router,
    RouterScore, Sequence, SinusoidLayout, Slopes, Window,
};
use crate::ir::{Module, Op, ValueId};
use crate::lower::Bug;

/// The expression of an op.
///
/// # Errors
/// A fault of trafoc: the op has other inputs than it takes, or is one for which a program has another
/// action.
pub fn code(f: &mut Function<'_>, op: &Op, wanted: &Operands<'_>) -> Result<Code, Bug> {
    let module = f.module;
    let int = |n: u64| Code::text(n.to_string());
    let call = |name: &'static str, arguments: Vec<Code>| Code::call(Code::kernel(name), arguments);
    Ok(match op {
        Op::Layer { .. } | Op::ActivatedLayer { .. } | Op::Weight { .. } | Op::Call { .. } | Op::Scan { .. }
        | Op::Experts { .. }
        // Losses are in the graph of training alone.
        | Op::BatchMean { .. } | Op::ExtraLoss { .. } => {
            return Err(Bug(format!("{op:?} is not an action of its own in the emitted program")));
        }
        Op::Positions { along, offset } => {
            let (start, length) = span(f, *along);
            let start = match (*offset, start == Code::text("0")) {
                (0, _) => start,
                (n, true) => int(n),
                (n, false) => start.plus(int(n)),
            };
            call("position_ids", vec![start, length, device()])
        }
        Op::Range { len } => call("number_range", vec![f.file.extent(*len), device()]),
        Op::Sinusoid { dim, base, layout } => {
            let name = match layout {
                SinusoidLayout::Interleaved => "sinusoid_interleaved",
                SinusoidLayout::Concat => "sinusoid_concat",
            };
            let [positions] = wanted.inputs(op)?;
            call(name, vec![f.operand(positions), f.file.extent(*dim), f.file.real(Named::Base, *base)])
        }
        Op::RotaryTable { along, rotary } => {
            let (start, length) = span(f, *along);
            let total =
                if start == Code::text("0") { length.clone() } else { start.clone().plus(length.clone()) };
            let frequencies = frequencies(f, rotary, *along, total)?;
            let magnitude = f.file.real(Named::Magnitude, rotary.magnitude);
            call("rotary_table", vec![frequencies, magnitude, start, length, device()])
        }
        Op::Mask { queries, keys, rule } => {
            let (start, length) = span(f, *queries);
            let rule = code!["|query, key| ", hides(f, rule)];
            call("mask_by", vec![start, length, key_count(f, *keys), device(), rule])
        }
        Op::PaddingMask => {
            let [mask] = wanted.inputs(op)?;
            let (operand, kernel) = (f.operand(mask), Code::kernel("padding_mask"));
            if f.is_option(mask) { operand.method("map", [kernel]) } else { Code::call(kernel, [operand]) }
        }
        Op::EitherMask => {
            let [a, b] = wanted.inputs(op)?;
            call("either_mask", vec![f.optional(a), f.optional(b)])
        }
        Op::AlibiBias { queries, keys, slopes } => {
            let (start, length) = span(f, *queries);
            let Slopes { heads, max, scale } = slopes;
            let (max, scale) = (f.file.real(Named::AlibiMax, *max), f.file.real(Named::AlibiScale, *scale));
            let slopes = Code::call(Code::kernel("alibi_slopes"), [f.file.extent(*heads), max, scale]);
            call("alibi_bias", vec![code!["&", slopes], start, length, key_count(f, *keys), device()])
        }
        Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => {
            let (start, length) = span(f, *queries);
            let two_sided = Code::text(bidirectional.to_string());
            let keys = key_count(f, *keys);
            let sizes = vec![
                start,
                length,
                keys,
                f.file.extent(*buckets),
                f.file.count(Named::MaxDistance, *max_distance),
                two_sided,
                device(),
            ];
            call("relative_buckets", sizes)
        }
        Op::SplitHeads { heads } => {
            let [x] = wanted.inputs(op)?;
            let features = match rank(module, x) {
                1 | 2 => f.operand(x).method("unsqueeze::<3>", []),
                _ => f.operand(x),
            };
            call("split_heads", vec![features, f.file.extent(*heads)])
        }
        Op::MergeHeads => {
            let [x] = wanted.inputs(op)?;
            call("merge_heads", vec![f.operand(x)])
        }
        Op::RepeatHeads { times } => {
            let [x] = wanted.inputs(op)?;
            call("repeat_heads", vec![f.operand(x), f.file.extent(*times)])
        }
        Op::Rotate { pairing } => {
            let [x, cos, sin] = wanted.inputs(op)?;
            call(rotary::function(*pairing), vec![f.operand(x), f.operand(cos), f.operand(sin)])
        }
        // Appending to a cache is another action of the program. A model that does not decode step by step
        // has no caches, so nothing comes before these keys and values.
        Op::Cache => {
            let [x] = wanted.inputs(op)?;
            f.operand(x)
        }
        Op::Attention(attention) => attend(f, op, attention, wanted)?,
        Op::MatMul { transposed } => {
            let [a, b] = wanted.inputs(op)?;
            let (a, b) = (f.operand(a), f.operand(b));
            let b = if *transposed { b.method("swap_dims", [int(2), int(3)]) } else { b };
            a.method("matmul", [b])
        }
        Op::Einsum(axes) => {
            let [a, b] = wanted.inputs(op)?;
            // The rank of the result is in the text of the axes, where the compiler of Rust does not see it.
            let function = Code::kernel("einsum").then(format!("::<_, _, {}>", axes.result.len()));
            Code::call(function, vec![Code::text(format!("\"{axes}\"")), f.operand(a), f.operand(b)])
        }
        Op::ForBatch => {
            let [x, like] = wanted.inputs(op)?;
            call("for_batch", vec![f.operand(x), f.operand(like)])
        }
        Op::Hide { fill } => {
            let [x, mask] = wanted.inputs(op)?;
            let name = match fill {
                Fill::Zero => "hide_weights",
                Fill::Lowest => "hide_scores",
                Fill::LowestIfAny => "hide_scores_if_any",
            };
            call(name, vec![f.operand(x), f.optional(mask)])
        }
        Op::HidePadding { neutral } => {
            let [x, mask] = wanted.inputs(op)?;
            let name = match neutral {
                Neutral::Zero => "hide_padding",
                Neutral::One => "one_at_padding",
            };
            call(name, vec![f.operand(x), f.optional(mask)])
        }
        Op::ByDistance { queries, keys, center, distances, of_keys } => {
            let (start, length) = span(f, *queries);
            if let Distances::OfKey = distances {
                let (x, mask) = wanted.and_mask(op)?;
                let x = f.operand(x);
                let mask = mask.map_or_else(|| Code::text("None"), |mask| f.optional(mask));
                return Ok(call("by_key", vec![x, length, key_count(f, *keys), mask]));
            }
            let [x] = wanted.inputs(op)?;
            let x = f.operand(x);
            let name = if *of_keys { "by_distance_of_keys" } else { "by_distance" };
            let center = f.file.extent(*center);
            let feature = match distances {
                Distances::Each | Distances::OfKey => call("each_distance", vec![center]),
                Distances::Logarithmic { exact, farthest } => {
                    call("log_distance", vec![center, f.file.extent(*exact), f.file.extent(*farthest)])
                }
                Distances::Grid { columns, has_class } => {
                    let has_class = Code::text(has_class.to_string());
                    call("grid_distance", vec![center, f.file.extent(*columns), has_class])
                }
            };
            call(name, vec![x, start, length, key_count(f, *keys), feature])
        }
        Op::Activate(activation) => {
            let [x] = wanted.inputs(op)?;
            activate(*activation, f.operand(x))
        }
        Op::Gate(activation) => {
            let [gate, x] = wanted.inputs(op)?;
            gated(*activation, f.operand(gate), f.operand(x))
        }
        Op::Add => {
            let (a, b) = level(f, wanted.inputs(op)?);
            a.plus(b)
        }
        Op::Mul => {
            let (a, b) = level(f, wanted.inputs(op)?);
            a.times(b)
        }
        Op::Divide => {
            let (a, b) = level(f, wanted.inputs(op)?);
            a.over(b)
        }
        Op::Elementary(function) => {
            let [x] = wanted.inputs(op)?;
            elementary(*function, f.operand(x))
        }
        Op::Reduce(reduction) => {
            let [x] = wanted.inputs(op)?;
            let last = int(axis(module, x, 0) as u64);
            let method = match reduction {
                Reduction::Sum => "sum_dim",
                Reduction::Mean => "mean_dim",
                Reduction::Max => "max_dim",
            };
            f.operand(x).method(method, [last])
        }
        Op::TopK { count } => {
            let [x] = wanted.inputs(op)?;
            call("largest", vec![f.operand(x), f.file.extent(*count)])
        }
        Op::Softmax => {
            let [x] = wanted.inputs(op)?;
            let last = int(axis(module, x, 0) as u64);
            Code::call(Code::import("burn::tensor::activation::softmax"), [f.operand(x), last])
        }
        Op::Scale { by } => {
            let [x] = wanted.inputs(op)?;
            let by = f.file.scalar(&f.file.program.constants.factor(*by));
            f.operand(x).times(by)
        }
        Op::Shift { by } => {
            let [x] = wanted.inputs(op)?;
            f.operand(x).plus(Code::text(float(*by)))
        }
        Op::Clamp { min, max } => {
            let [x] = wanted.inputs(op)?;
            let x = f.operand(x);
            let bound = |x: &f64| Code::text(float(*x));
            match (min, max) {
                (Some(min), Some(max)) => x.method("clamp", [bound(min), bound(max)]),
                (Some(min), None) => x.method("clamp_min", [bound(min)]),
                (None, Some(max)) => x.method("clamp_max", [bound(max)]),
                (None, None) => x,
            }
        }
        Op::Softcap { cap } => {
            let [x] = wanted.inputs(op)?;
            let cap = f.file.real(Named::Softcap, *cap);
            f.operand(x).over(cap.clone()).method("tanh", []).times(cap)
        }
        Op::Dropout { .. } => {
            let [x] = wanted.inputs(op)?;
            dropout_of(wanted, op)?.method("forward", [f.operand(x)])
        }
        Op::Slice { axis_from_last, start, len } => {
            let [x] = wanted.inputs(op)?;
            let axis = int(axis(module, x, *axis_from_last) as u64);
            f.operand(x).method("narrow", [axis, f.file.extent(*start), f.file.extent(*len)])
        }
        Op::Concat { axis_from_last } => {
            let first = wanted.inputs.first().copied();
            let first = first.ok_or_else(|| Bug("nothing is joined in the emitted program".to_owned()))?;
            // All of them have the rank of the first.
            let axis = int(axis(module, first, *axis_from_last) as u64);
            let parts: Vec<Code> = wanted.inputs.iter().map(|id| f.operand(*id)).collect();
            Code::call("Tensor::cat", [Code::list("vec![", parts, "]"), axis])
        }
        Op::Earlier { by, .. } => {
            let [x] = wanted.inputs(op)?;
            call("earlier", vec![f.operand(x), f.file.extent(*by), state(f, wanted)])
        }
        Op::CausalConv { .. } => {
            let [x, w] = wanted.inputs(op)?;
            call("causal_conv", vec![f.operand(x), f.operand(w), state(f, wanted)])
        }
        Op::CumulativeSum { .. } => {
            let [x] = wanted.inputs(op)?;
            call("cumulative_sum", vec![f.operand(x), state(f, wanted)])
        }
        Op::Recurrence { .. } => {
            let name = if wanted.inputs.len() > 4 { "delta_recurrence" } else { "recurrence" };
            let lift = |id: &ValueId| {
                let x = f.operand(*id);
                if rank(module, *id) < 4 { x.method("unsqueeze::<4>", []) } else { x }
            };
            let mut operands: Vec<Code> = wanted.inputs.iter().map(lift).collect();
            operands.push(state(f, wanted));
            call(name, operands)
        }
        Op::Prepend => {
            let [rows, x] = wanted.inputs(op)?;
            call("prepend", vec![f.operand(rows), f.operand(x)])
        }
        Op::Unsqueeze => {
            let [x] = wanted.inputs(op)?;
            let rank = rank(module, x);
            f.operand(x).method(&format!("unsqueeze_dim::<{}>", rank + 1), [int(rank as u64)])
        }
        Op::Squeeze => {
            let [x] = wanted.inputs(op)?;
            // The new rank, and the index of the axis that is dropped.
            let last = rank(module, x).saturating_sub(1);
            f.operand(x).method(&format!("squeeze_dim::<{last}>"), [int(last as u64)])
        }
        Op::Lookup => {
            let [table, indices] = wanted.inputs(op)?;
            call("look_up", vec![f.operand(table), f.operand(indices)])
        }
        Op::BiasFromTable => {
            let [rows] = wanted.inputs(op)?;
            // From `[queries, keys, heads]` to `[1, heads, queries, keys]`.
            f.operand(rows).method("permute", ["[2, 0, 1]".into()]).method("unsqueeze::<4>", [])
        }
        Op::OrZeros => {
            let [given, like] = wanted.inputs(op)?;
            let operand = f.operand(given);
            if !f.is_option(given) {
                return Ok(operand);
            }
            // By name: only the shape is read, so nothing is moved or cloned.
            let zeros = code!["|| ", Code::name(like).method("zeros_like", [])];
            operand.method("unwrap_or_else", [zeros])
        }
        Op::Unembed => {
            let [x, table] = wanted.inputs(op)?;
            call("unembed", vec![f.operand(x), f.operand(table)])
        }
        Op::Route(router) => route(f, router, wanted)?,
        Op::Pool(pool) => {
            let name = match pool {
                Pool::First => {
                    let first = wanted.inputs.first().copied();
                    let x =
                        first.ok_or_else(|| Bug("nothing is pooled in the emitted program".to_owned()))?;
                    return Ok(call("pool_first", vec![f.operand(x)]));
                }
                Pool::Last => "pool_last",
                Pool::Mean => "pool_mean",
                Pool::Max => "pool_max",
            };
            let (x, keep) = wanted.and_mask(op)?;
            let x = f.operand(x);
            call(name, vec![x, keep.map_or_else(|| Code::text("None"), |keep| f.optional(keep))])
        }
        Op::Normalize => {
            let [x] = wanted.inputs(op)?;
            call("unit_length", vec![f.operand(x)])
        }
    })
}

fn need(need: Need) -> Code {
    Code::text(need.variable())
}

fn device() -> Code {
    need(Need::Device)
}

/// The first position and the number of positions along a sequence.
fn span(f: &Function<'_>, along: Sequence) -> (Code, Code) {
    let decodes = f.file.program.graph.decodes;
    // Without a cache, nothing comes before the first position.
    let start = if along == Sequence::Cached && decodes { need(Need::Past) } else { Code::text("0") };
    let length = match along {
        Sequence::Whole | Sequence::Cached => need(Need::Time),
        Sequence::Source => need(Need::Source),
        Sequence::Fixed(n) => f.file.extent(n),
    };
    (start, length)
}

/// The number of keys of a sequence.
fn key_count(f: &Function<'_>, along: Sequence) -> Code {
    let (start, length) = span(f, along);
    if start == Code::text("0") { length } else { start.plus(length) }
}

/// The cache of an op that keeps a state, as an operand.
fn state(f: &Function<'_>, wanted: &Operands<'_>) -> Code {
    match wanted.cache {
        Some(first) => f.lent(Lent::Part { first, count: 1, list: false }),
        None => Code::text("None"),
    }
}

fn rank(module: &Module, id: ValueId) -> usize {
    module.value(id).ty.shape.len()
}

fn axis(module: &Module, id: ValueId, from_last: usize) -> usize {
    rank(module, id).saturating_sub(1 + from_last)
}

/// The inverse frequencies as `&[f64]`.
fn frequencies(f: &Function<'_>, rotary: &RotaryTable, along: Sequence, total: Code) -> Result<Code, Bug> {
    match rotary::frequencies(rotary, along) {
        Frequencies::Same(rule) => Ok(code!["&", by_rule(f, rotary, rule, total)?]),
        Frequencies::ByLength { from, usual, long } => {
            let long = by_rule(f, rotary, long, total.clone())?;
            let usual = by_rule(f, rotary, usual, total.clone())?;
            let from = f.file.count(Named::OriginalContext, from);
            Ok(code!["&if ", total, " > ", from, " { ", long, " } else { ", usual, " }"])
        }
    }
}

/// The frequencies by a rule, in a sequence of `total` positions.
fn by_rule(f: &Function<'_>, rotary: &RotaryTable, rule: Rule<'_>, total: Code) -> Result<Code, Bug> {
    match rule {
        Rule::Fixed(rule) => under(f, rotary, rule),
        Rule::Dynamic { factor, from } => {
            let sizes = [
                f.file.real(Named::Theta, rotary.theta),
                f.file.real(Named::ScalingFactor, factor),
                f.file.count(Named::OriginalContext, from),
                total,
                f.file.extent(rotary.dim),
            ];
            Ok(Code::call(Code::kernel("dynamic_frequencies"), sizes))
        }
    }
}

/// The frequencies under a rule: the plain ones, `frequencies(theta, dim)`, and how they are changed.
fn under(f: &Function<'_>, rotary: &RotaryTable, rule: &FrequencyRule) -> Result<Code, Bug> {
    let theta = f.file.real(Named::Theta, rotary.theta);
    let plain = Code::call(Code::kernel("frequencies"), [theta, f.file.extent(rotary.dim)]);
    let factor = |by: f64| f.file.real(Named::ScalingFactor, by);
    Ok(match rule {
        FrequencyRule::Plain => plain,
        FrequencyRule::Divided { by } => {
            Code::call(Code::kernel("divided_frequencies"), [plain, factor(*by)])
        }
        FrequencyRule::DividedEach(by) => {
            Code::call(Code::kernel("frequencies_divided_each"), [plain, code!["&", f.file.table(by)?]])
        }
        FrequencyRule::Ramp { factor: by, low, high } => {
            let (low, high) = (f.file.real(Named::RampLow, *low), f.file.real(Named::RampHigh, *high));
            Code::call(Code::kernel("ramp_frequencies"), [plain, factor(*by), low, high])
        }
        FrequencyRule::ByWavelength { factor: by, original, low, high } => {
            let original = f.file.count(Named::OriginalContext, *original);
            let low = f.file.real(Named::LowFreqFactor, *low);
            let high = f.file.real(Named::HighFreqFactor, *high);
            Code::call(Code::kernel("wavelength_frequencies"), [plain, factor(*by), original, low, high])
        }
    })
}

/// Whether a key is hidden, as a condition on `query` and `key`.
fn hides(f: &Function<'_>, rule: &MaskRule) -> Code {
    let several = rule.conditions().count() > 1;
    let any = rule.conditions().map(|condition| match condition {
        // The parentheses are for readers, who may not know that `&&` binds more tightly than `||`.
        Hidden::Later { prefix } if several && prefix > 0 => code!["(", hidden(f, condition), ")"],
        Hidden::Later { .. } | Hidden::Behind { .. } | Hidden::Ahead { .. } | Hidden::OtherChunk { .. } => {
            hidden(f, condition)
        }
    });
    if rule.is_empty() { Code::text("false") } else { Code::separated(any, " || ") }
}

fn hidden(f: &Function<'_>, condition: Hidden) -> Code {
    // Positions are `usize`, so windows are added to the smaller one: `query - window` would go below zero. A
    // window of 1 is compared without a sum, as clippy's `int_plus_one` asks.
    let count = |named: Named, n: u64| f.file.count(named, n);
    let side = |window: Window| {
        let size = count(Named::Window, window.size);
        if window.centred { code![size, " / 2 < "] } else { code![size, " <= "] }
    };
    match condition {
        Hidden::Later { prefix: 0 } => "key > query".into(),
        Hidden::Later { prefix } => code!["key > query && key >= ", count(Named::Prefix, prefix)],
        Hidden::Behind { window } if window.side() == 1 => "key < query".into(),
        Hidden::Behind { window } => code!["key + ", side(window), "query"],
        Hidden::Ahead { window } if window.side() == 1 => "query < key".into(),
        Hidden::Ahead { window } => code!["query + ", side(window), "key"],
        // The chunk is the query's own position, and nothing need be divided.
        Hidden::OtherChunk { chunk: 1 } => "key != query".into(),
        Hidden::OtherChunk { chunk } => {
            let chunk = count(Named::Chunk, chunk);
            code!["key / ", &chunk, " != query / ", &chunk]
        }
    }
}

/// Both operands with the higher rank.
fn level(f: &mut Function<'_>, inputs: [ValueId; 2]) -> (Code, Code) {
    let module = f.module;
    // burn's operators take tensors of the same rank, and broadcast axes of length 1 alone.
    let highest = inputs.map(|id| rank(module, id)).into_iter().max().unwrap_or(0);
    let [a, b] = inputs.map(|id| {
        let code = f.operand(id);
        if rank(module, id) < highest { code.method(&format!("unsqueeze::<{highest}>"), []) } else { code }
    });
    (a, b)
}

/// `route_softmax(scores, TOP_K, normalize, |affinities| ..)`, times the scale.
fn route(f: &mut Function<'_>, router: &Router, wanted: &Operands<'_>) -> Result<Code, Bug> {
    let (scores, correction) = match *wanted.inputs {
        [scores] if !router.has_correction => (scores, None),
        [scores, correction] if router.has_correction => (scores, Some(correction)),
        _ => return Err(Bug("a router has other inputs than it takes in the emitted program".to_owned())),
    };
    let scores = f.operand(scores);
    let mut choice = Code::text("affinities");
    if let Some(correction) = correction {
        let correction = match f.operand(correction) {
            // The closure may run again, so it clones a variable and reads a field each time.
            code if code == Code::take(correction) => Code::copy(correction),
            code => code,
        };
        choice = choice.plus(correction.method("unsqueeze::<3>", []));
    }
    if let Some(groups) = router.groups {
        let sizes = [groups.groups, groups.keep, groups.score_of].map(|size| f.file.extent(size));
        choice = Code::call(Code::kernel("limit_groups"), std::iter::once(choice).chain(sizes));
    }
    let top_k = f.file.extent(router.top_k);
    let normalize = Code::text(router.normalize.to_string());
    let choice = code!["|affinities| ", choice];
    let weights = match router.score {
        RouterScore::Softmax => Code::call(Code::kernel("route_softmax"), [scores, top_k, normalize, choice]),
        RouterScore::Sigmoid => Code::call(Code::kernel("route_sigmoid"), [scores, top_k, normalize, choice]),
        // The softmax over the chosen experts sums to one, so there is nothing to normalise.
        RouterScore::SoftmaxOfChosen => {
            Code::call(Code::kernel("route_softmax_of_chosen"), [scores, top_k, choice])
        }
    };
    Ok(if router.scale == 1.0 {
        weights
    } else {
        weights.times(f.file.real(Named::RouterScale, router.scale))
    })
}
