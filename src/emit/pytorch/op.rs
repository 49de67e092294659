//! Every op as an expression.
//!
//! Masks are True where a key is seen, as in PyTorch; those of the graph are true where a key is hidden.

use super::attention::attend;
use super::frequencies::frequencies;
use super::function::Function;
use super::layer::is_none;
use super::lengths::{key_count, span, sum};
use super::syntax::{Expr, Sign};
use crate::emit::program::operands::Operands;
use crate::emit::program::rotary;
use crate::ir::op::quantity::Named;
use crate::ir::op::{
    Activation, Distances, Elementary, Fill, Hidden, MaskRule, Neutral, Pool, Router, RouterScore,
    SinusoidLayout, Window,
};
use crate::ir::{Dim, Module, Node, Op, ValueId};
use crate::lower::Bug;

/// The expression of an op.
///
/// # Errors
/// A fault of trafoc: the op has other inputs than it takes, or is one for which a program has another
/// action.
pub fn expr(f: &mut Function<'_>, op: &Op, wanted: &Operands<'_>) -> Result<Expr, Bug> {
    let runtime = |name: &'static str, arguments: Vec<Expr>| Expr::Runtime(name).call(arguments);
    Ok(match op {
        Op::Layer { .. } | Op::ActivatedLayer { .. } | Op::Weight { .. } | Op::Call { .. } | Op::Scan { .. }
        | Op::Experts { .. }
        // Losses are in the graph of training alone.
        | Op::BatchMean { .. } | Op::ExtraLoss { .. } => {
            return Err(Bug(format!("{op:?} is not an action of its own in the emitted program")));
        }
        Op::Positions { along, offset } => {
            let (start, length) = span(f, *along);
            let start = if *offset == 0 { start } else { sum(start, Expr::Int(*offset)) };
            let end = sum(start.clone(), length);
            let range = if start == Expr::Int(0) { vec![end] } else { vec![start, end] };
            // `[T]` instead of `[1, T]`: what is looked up by it has one axis less, and PyTorch broadcasts it
            // over the batch.
            let is_added = positions_are_added(f.module);
            let positions = Expr::torch("arange").call(range).with("device", device(f));
            if is_added { positions } else { positions.method("unsqueeze", [Expr::Int(0)]) }
        }
        Op::Range { len } => {
            let range = Expr::torch("arange").call([f.file.extent(*len)]).with("device", device(f));
            match f.weight() {
                Some(weight) => range.with("dtype", weight.attr("dtype")),
                None => range.with("dtype", Expr::torch("get_default_dtype").call(Vec::<Expr>::new())),
            }
        }
        Op::Sinusoid { dim, base, layout } => {
            let interleaved = *layout == SinusoidLayout::Interleaved;
            let [positions] = wanted.inputs(op)?;
            let (dim, base) = (f.file.extent(*dim), f.file.real(Named::Base, *base));
            let table = runtime("sinusoid", vec![f.operand(positions), dim, base]);
            let table = table.with("interleaved", Expr::Bool(interleaved));
            match f.weight() {
                Some(weight) => table.with("dtype", weight.attr("dtype")),
                // A model without weights of its own at this place has inputs alone, whose type is torch's
                // default.
                None => table,
            }
        }
        Op::RotaryTable { along, rotary } => {
            let (start, length) = span(f, *along);
            let frequencies = frequencies(f, rotary, *along)?;
            // In a variable, which other tables of the body with the same frequencies read, too.
            let angles = f.local("angles", frequencies);
            if rotary.magnitude == 1.0 {
                runtime("rotary_table", vec![angles, start, length])
            } else {
                let magnitude = f.file.real(Named::Magnitude, rotary.magnitude);
                // A function of its own, so that other models' files need not have the factor.
                runtime("scaled_rotary_table", vec![angles, start, length, magnitude])
            }
        }
        Op::Rotate { pairing } => {
            let [x, cos, sin] = wanted.inputs(op)?;
            runtime(rotary::function(*pairing), vec![f.operand(x), f.operand(cos), f.operand(sin)])
        }
        Op::Mask { queries, keys, rule } => {
            let (start, length) = span(f, *queries);
            let keys = key_count(f, *keys);
            let device = device(f);
            let value = runtime("positions", vec![start, length, keys, device]);
            let [query, key] = f.locals(["query", "key"], value);
            visible(f, rule, &query, &key, f.makes_causal())
        }
        Op::PaddingMask => {
            let [mask] = wanted.inputs(op)?;
            match f.queries().filter(|_| f.makes_causal()) {
                Some(queries) => runtime("causal_mask", vec![f.operand(mask), queries]),
                None => runtime("padding_mask", vec![f.operand(mask)]),
            }
        }
        Op::EitherMask => {
            let [a, b] = wanted.inputs(op)?;
            if f.may_be_absent(a) || f.may_be_absent(b) {
                runtime("both_masks", vec![f.operand(a), f.operand(b)])
            } else {
                let (a, b) = (f.operand(a), f.operand(b));
                a.binary(Sign::Both, b)
            }
        }
        Op::AlibiBias { queries, keys, slopes } => {
            let (start, length) = span(f, *queries);
            let keys = key_count(f, *keys);
            let heads = f.file.extent(slopes.heads);
            let mut call = runtime("alibi_bias", vec![heads, start, length, keys, device(f)]);
            // 8 and 1 are the defaults of the runtime's function: the slopes of the paper.
            if slopes.max != 8.0 {
                call = call.with("highest", Expr::Float(slopes.max));
            }
            if slopes.scale != 1.0 {
                call = call.with("scale", Expr::Float(slopes.scale));
            }
            call
        }
        Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => {
            let (start, length) = span(f, *queries);
            let keys = key_count(f, *keys);
            let sizes = vec![
                start,
                length,
                keys,
                f.file.extent(*buckets),
                f.file.count(Named::MaxDistance, *max_distance),
            ];
            let call = runtime("relative_buckets", sizes).with("bidirectional", Expr::Bool(*bidirectional));
            call.with("device", device(f))
        }
        Op::SplitHeads { heads } => {
            let [x] = wanted.inputs(op)?;
            let features = match f.module.value(x).ty.shape.len() {
                1 => f
                    .operand(x)
                    .method("expand", [Expr::Int(1), Expr::Int(1), Expr::Minus(Box::new(Expr::Int(1)))]),
                2 => f.operand(x).index([Expr::None]),
                _ => f.operand(x),
            };
            runtime("split_heads", vec![features, f.file.extent(*heads)])
        }
        Op::MergeHeads => {
            let [x] = wanted.inputs(op)?;
            runtime("merge_heads", vec![f.operand(x)])
        }
        Op::RepeatHeads { times } => {
            let [x] = wanted.inputs(op)?;
            let times = f.file.extent(*times);
            let x = f.operand(x);
            // Attention is given the heads as they are, and PyTorch shares them among the queries.
            if f.repeats_later() {
                return Ok(x);
            }
            x.attr("repeat_interleave").call([times]).with("dim", Expr::Int(1))
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
            let b = if *transposed { b.method("transpose", [Expr::Int(2), Expr::Int(3)]) } else { b };
            a.binary(Sign::Product, b)
        }
        Op::Einsum(axes) => {
            let [a, b] = wanted.inputs(op)?;
            Expr::torch("einsum").call([Expr::Str(axes.to_string()), f.operand(a), f.operand(b)])
        }
        Op::ForBatch => {
            let [x, like] = wanted.inputs(op)?;
            let (x, like) = (f.operand(x), f.named(like));
            let others = [(); 3].map(|()| Expr::Minus(Box::new(Expr::Int(1))));
            let batch = like.attr("shape").index([Expr::Int(0)]);
            x.method("expand", std::iter::once(batch).chain(others))
        }
        Op::Hide { fill } => {
            let [x, mask] = wanted.inputs(op)?;
            let name = match fill {
                Fill::Zero => "hide_weights",
                Fill::Lowest => "hide_scores",
                Fill::LowestIfAny => "hide_scores_if_any",
            };
            runtime(name, vec![f.operand(x), f.operand(mask)])
        }
        Op::HidePadding { neutral } => {
            let [x, mask] = wanted.inputs(op)?;
            let name = match neutral {
                Neutral::Zero => "hide_padding",
                Neutral::One => "one_at_padding",
            };
            runtime(name, vec![f.operand(x), f.operand(mask)])
        }
        Op::ByDistance { queries, keys, center, distances, of_keys } => {
            let (start, length) = span(f, *queries);
            if let Distances::OfKey = distances {
                let (x, mask) = wanted.and_mask(op)?;
                let call = runtime("by_key", vec![f.operand(x), length, key_count(f, *keys)]);
                return Ok(mask.into_iter().fold(call, |call, mask| call.with("mask", f.operand(mask))));
            }
            let [x] = wanted.inputs(op)?;
            let x = f.operand(x);
            let call =
                runtime("by_distance", vec![x, start, length, key_count(f, *keys), f.file.extent(*center)]);
            let call = match distances {
                Distances::Each | Distances::OfKey => call,
                Distances::Logarithmic { exact, farthest } => {
                    let farthest = f.file.extent(*farthest);
                    call.with("exact", f.file.extent(*exact)).with("farthest", farthest)
                }
                Distances::Grid { columns, has_class } => call
                    .with("columns", f.file.extent(*columns))
                    .with("has_class", Expr::Bool(*has_class)),
            };
            if *of_keys { call.with("of_keys", Expr::Bool(true)) } else { call }
        }
        Op::Activate(activation) => {
            let [x] = wanted.inputs(op)?;
            activate(*activation, f.operand(x))
        }
        // PyTorch fuses elementwise ops itself, so its target gets the graph without this op.
        Op::Gate(activation) => {
            let [gate, x] = wanted.inputs(op)?;
            let (gate, x) = (f.operand(gate), f.operand(x));
            activate(*activation, gate).times(x)
        }
        Op::Add => {
            let [a, b] = wanted.inputs(op)?;
            if is_bias_of_scores(f.module, a, b) {
                let (scores, bias) = (f.named(a), f.operand(b));
                return Ok(scores.clone().plus(bias.method("type_as", [scores])));
            }
            let (a, b) = (f.operand(a), f.operand(b));
            a.plus(b)
        }
        Op::Mul => {
            let [a, b] = wanted.inputs(op)?;
            let (a, b) = (f.operand(a), f.operand(b));
            a.times(b)
        }
        Op::Divide => {
            let [a, b] = wanted.inputs(op)?;
            let (a, b) = (f.operand(a), f.operand(b));
            a.over(b)
        }
        Op::Elementary(function) => {
            let [x] = wanted.inputs(op)?;
            elementary(*function, f.operand(x))
        }
        Op::Reduce(reduction) => {
            let [x] = wanted.inputs(op)?;
            let reduced = f.operand(x).method(reduction.name(), []);
            reduced.with("dim", axis(0)).with("keepdim", Expr::Bool(true))
        }
        Op::TopK { count } => {
            let [x] = wanted.inputs(op)?;
            runtime("largest", vec![f.operand(x), f.file.extent(*count)])
        }
        Op::Softmax => {
            let [x] = wanted.inputs(op)?;
            Expr::torch("softmax").call([f.operand(x)]).with("dim", axis(0))
        }
        Op::Scale { by } => {
            let [x] = wanted.inputs(op)?;
            let by = f.file.program.constants.factor(*by);
            let x = f.operand(x);
            f.file.scaled(x, &by)
        }
        Op::Shift { by } => {
            let [x] = wanted.inputs(op)?;
            f.operand(x).plus(Expr::Float(*by))
        }
        Op::Clamp { min, max } => {
            let [x] = wanted.inputs(op)?;
            let x = f.operand(x);
            let bounds = [("min", min), ("max", max)];
            let given =
                bounds.into_iter().filter_map(|(name, bound)| bound.map(|bound| (name, Expr::Float(bound))));
            let call = x.clone().method("clamp", []);
            let call = given.fold(call, |call, (name, bound)| call.with(name, bound));
            if min.is_none() && max.is_none() { x } else { call }
        }
        Op::Softcap { cap } => {
            let [x] = wanted.inputs(op)?;
            let cap = f.file.real(Named::Softcap, *cap);
            cap.clone().times(Expr::torch("tanh").call([f.operand(x).over(cap)]))
        }
        Op::Dropout { .. } => {
            let [x] = wanted.inputs(op)?;
            Expr::own(wanted.dropout(op)?).call([f.operand(x)])
        }
        Op::Slice { axis_from_last, start, len } => {
            let [x] = wanted.inputs(op)?;
            let sizes = [axis(*axis_from_last), f.file.extent(*start), f.file.extent(*len)];
            f.operand(x).method("narrow", sizes)
        }
        Op::Concat { axis_from_last } => {
            let parts: Vec<Expr> = wanted.inputs.iter().map(|id| f.operand(*id)).collect();
            Expr::torch("cat").call([Expr::Tuple(parts)]).with("dim", axis(*axis_from_last))
        }
        Op::Earlier { by, .. } => {
            let [x] = wanted.inputs(op)?;
            let operands = vec![f.operand(x), f.file.extent(*by)];
            stateful(f, "earlier", operands, wanted)
        }
        Op::CausalConv { .. } => {
            let operands = wanted.inputs.iter().map(|id| f.operand(*id)).collect();
            stateful(f, "causal_conv", operands, wanted)
        }
        Op::CumulativeSum { .. } => {
            let [x] = wanted.inputs(op)?;
            let operands = vec![f.operand(x)];
            stateful(f, "cumulative_sum", operands, wanted)
        }
        Op::Recurrence { .. } => {
            let name = match wanted.inputs {
                [_, _, _, _, _] => "delta_recurrence",
                // One decay for a head lets the positions of a chunk be computed at once.
                [_, _, _, decay] if is_one(f.module.value(*decay).ty.last()) => "head_recurrence",
                _ => "recurrence",
            };
            let operands = wanted.inputs.iter().map(|id| f.operand(*id)).collect();
            stateful(f, name, operands, wanted)
        }
        Op::Prepend => {
            let [rows, x] = wanted.inputs(op)?;
            runtime("prepend", vec![f.operand(rows), f.operand(x)])
        }
        Op::Unsqueeze => {
            let [x] = wanted.inputs(op)?;
            f.operand(x).method("unsqueeze", [axis(0)])
        }
        Op::Squeeze => {
            let [x] = wanted.inputs(op)?;
            f.operand(x).method("squeeze", [axis(0)])
        }
        Op::Lookup => {
            let [table, indices] = wanted.inputs(op)?;
            let (table, indices) = (f.operand(table), f.operand(indices));
            Expr::functional("embedding").call([indices, table])
        }
        Op::BiasFromTable => {
            let [rows] = wanted.inputs(op)?;
            // From `[queries, keys, heads]` to `[1, heads, queries, keys]`.
            f.operand(rows).method("permute", [2, 0, 1].map(Expr::Int)).index([Expr::None])
        }
        Op::OrZeros => {
            let [given, like] = wanted.inputs(op)?;
            if !f.may_be_absent(given) {
                return Ok(f.operand(given));
            }
            let given = f.named(given);
            // The value is tested and then used, so it must have a name.
            let zeros = Expr::torch("zeros_like").call([Expr::Value(like)]);
            is_none(given.clone()).choose(zeros, given)
        }
        Op::Unembed => {
            let [x, table] = wanted.inputs(op)?;
            // A step of decoding multiplies a single row, for which the runtime has a faster way on CPUs.
            let product =
                if f.file.has_fast_rows() { Expr::Runtime("linear") } else { Expr::functional("linear") };
            product.call([f.operand(x), f.operand(table)])
        }
        Op::Route(router) => route(f, router, wanted)?,
        Op::Pool(pool) => {
            let (x, keep) = wanted.and_mask(op)?;
            let x = f.operand(x);
            let name = match pool {
                Pool::First => return Ok(x.index([Expr::Slice(None, None), Expr::Int(0)])),
                Pool::Last => "pool_last",
                Pool::Mean => "pool_mean",
                Pool::Max => "pool_max",
            };
            runtime(name, vec![x, keep.map_or(Expr::None, |keep| f.operand(keep))])
        }
        Op::Normalize => {
            let [x] = wanted.inputs(op)?;
            // The default of its `eps`, 1e-12, is the bound of the op.
            Expr::functional("normalize").call([f.operand(x)]).with("dim", axis(0))
        }
    })
}

/// A call of a function that keeps a state in a cache, which it can do without.
fn stateful(f: &Function<'_>, name: &'static str, operands: Vec<Expr>, wanted: &Operands<'_>) -> Expr {
    let cache = wanted.cache.map(|cache| f.cache_or_none(cache));
    Expr::Runtime(name).call(operands.into_iter().chain(cache))
}

/// Whether a sum is one of scores and a bias that all examples of a batch share. Such a bias may be a table in single
/// precision, and a sum with it would be in single precision, too.
fn is_bias_of_scores(module: &Module, scores: ValueId, bias: ValueId) -> bool {
    let shape = |id: ValueId| module.value(id).ty.shape.as_slice();
    let ([batch, _, _, keys], [one, _, _, others]) = (shape(scores), shape(bias)) else { return false };
    keys == others && keys.constant().is_none() && is_one(Some(one)) && !is_one(Some(batch))
}

/// Whether what is looked up by the positions of a module is added to other values and nothing else.
fn positions_are_added(module: &Module) -> bool {
    let is_position = |node: &&Node| matches!(node.op, Op::Positions { .. });
    let mut found = module.nodes.iter().filter(is_position).flat_map(|node| &node.outputs);
    found.all(|id| is_added(module, *id))
}

fn is_added(module: &Module, value: ValueId) -> bool {
    let mut readers = module.nodes.iter().filter(|node| node.inputs.contains(&value));
    !module.results.contains(&value)
        && readers.all(|node| {
            // Each of these keeps the axes of what it is given, or adds one at the end.
            let keeps = matches!(node.op, Op::Layer { .. } | Op::Sinusoid { .. } | Op::Scale { .. });
            node.op == Op::Add || (keeps && node.outputs.iter().all(|id| is_added(module, *id)))
        })
}

/// Whether an axis has size 1.
fn is_one(dim: Option<&Dim>) -> bool {
    dim.and_then(Dim::constant) == Some(1)
}

fn device(f: &mut Function<'_>) -> Expr {
    f.device()
}

/// An axis counted from the last one.
fn axis(from_last: usize) -> Expr {
    Expr::Minus(Box::new(Expr::Int(from_last as u64 + 1)))
}

/// Whether a key is seen, as a condition on `query` and `key`; with `causal` none after the query.
fn visible(f: &Function<'_>, rule: &MaskRule, query: &Expr, key: &Expr, causal: bool) -> Expr {
    let past = causal.then_some(Hidden::Later { prefix: 0 });
    // The future is hidden as a whole already.
    let is_told =
        |condition: &Hidden| causal && matches!(condition, Hidden::Later { .. } | Hidden::Ahead { .. });
    let others = rule.conditions().filter(|condition| !is_told(condition));
    let all = past.into_iter().chain(others);
    let all = all.map(|condition| seen(f, condition, query.clone(), key.clone()));
    let compare = |sign: &'static str| key.clone().binary(Sign::Compare(sign), query.clone());
    // A rule without conditions hides nothing: this is True for every pair, in the shape that a mask must
    // have.
    all.reduce(|a, b| a.binary(Sign::Both, b)).unwrap_or_else(|| compare(">=").binary(Sign::Or, compare("<")))
}

fn seen(f: &Function<'_>, condition: Hidden, query: Expr, key: Expr) -> Expr {
    let count = |named: Named, n: u64| f.file.count(named, n);
    let compare = |a: Expr, sign: &'static str, b: Expr| a.binary(Sign::Compare(sign), b);
    // Half of a window whose middle is the query does not include the query, so its last position is seen.
    let side = |window: Window, strict: &'static str, inclusive: &'static str| {
        let size = count(Named::Window, window.size);
        if window.centred { (size.binary(Sign::Quotient, Expr::Int(2)), inclusive) } else { (size, strict) }
    };
    match condition {
        Hidden::Later { prefix: 0 } => compare(key, "<=", query),
        Hidden::Later { prefix } => compare(key.clone(), "<=", query)
            .binary(Sign::Or, compare(key, "<", count(Named::Prefix, prefix))),
        Hidden::Behind { window } => {
            let (side, is_seen) = side(window, ">", ">=");
            compare(key, is_seen, query.binary(Sign::Less, side))
        }
        Hidden::Ahead { window } => {
            let (side, is_seen) = side(window, "<", "<=");
            compare(key, is_seen, query.plus(side))
        }
        Hidden::OtherChunk { chunk } => {
            let chunk = |x: Expr| x.binary(Sign::Quotient, count(Named::Chunk, chunk));
            compare(chunk(key), "==", chunk(query))
        }
    }
}

fn activate(activation: Activation, x: Expr) -> Expr {
    match activation {
        Activation::Relu => Expr::functional("relu").call([x]),
        Activation::Relu2 => Expr::functional("relu").call([x]).method("square", []),
        Activation::Gelu => Expr::functional("gelu").call([x]),
        Activation::GeluTanh => {
            Expr::functional("gelu").call([x]).with("approximate", Expr::Str("tanh".to_owned()))
        }
        Activation::QuickGelu => Expr::Runtime("quick_gelu").call([x]),
        Activation::Silu => Expr::functional("silu").call([x]),
        Activation::Tanh => Expr::torch("tanh").call([x]),
        Activation::Sigmoid => Expr::torch("sigmoid").call([x]),
    }
}

fn elementary(function: Elementary, x: Expr) -> Expr {
    match function {
        Elementary::Exp
        | Elementary::Log
        | Elementary::Sqrt
        | Elementary::Square
        | Elementary::Abs
        | Elementary::Sign
        | Elementary::Sin
        | Elementary::Cos
        | Elementary::Reciprocal
        | Elementary::Floor => Expr::torch(function.name()).call([x]),
        Elementary::Softplus => Expr::functional("softplus").call([x]),
    }
}

/// `keep_best(affinities, choice, k, normalize)`, times the scale.
fn route(f: &mut Function<'_>, router: &Router, wanted: &Operands<'_>) -> Result<Expr, Bug> {
    let (scores, correction) = match *wanted.inputs {
        [scores] if !router.has_correction => (scores, None),
        [scores, correction] if router.has_correction => (scores, Some(correction)),
        _ => return Err(Bug("a router has other inputs than it takes in the emitted program".to_owned())),
    };
    let scores = f.operand(scores);
    let affinities = match router.score {
        RouterScore::Softmax => scores.method("softmax", [axis(0)]),
        RouterScore::Sigmoid => scores.method("sigmoid", []),
        // The softmax comes after the choice, and no activation before it.
        RouterScore::SoftmaxOfChosen => scores,
    };
    // Read twice: by the choice, and by the weights of what was chosen.
    let affinities = f.local("affinities", affinities);
    let mut choice = affinities.clone();
    if let Some(correction) = correction {
        choice = choice.plus(f.operand(correction));
    }
    if let Some(groups) = router.groups {
        let sizes = [groups.groups, groups.keep, groups.score_of].map(|size| f.file.extent(size));
        choice = Expr::Runtime("limit_groups").call(std::iter::once(choice).chain(sizes));
    }
    // Only a choice that differs needs a variable; otherwise the affinities choose.
    if choice != affinities {
        choice = f.local("choice", choice);
    }
    let top_k = f.file.extent(router.top_k);
    let weights = match router.score {
        RouterScore::Softmax | RouterScore::Sigmoid => Expr::Runtime("keep_best")
            .call([affinities, choice, top_k])
            .with("normalize", Expr::Bool(router.normalize)),
        RouterScore::SoftmaxOfChosen => Expr::Runtime("softmax_of_best").call([affinities, choice, top_k]),
    };
    Ok(if router.scale == 1.0 {
        weights
    } else {
        weights.times(f.file.real(Named::RouterScale, router.scale))
    })
}
