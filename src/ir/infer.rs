//! Result types of ops: the shape rules, in one place.
//!
//! Lowering builds nodes through these rules and `verify` runs them again over the finished graph.

use super::op::Attention;
use super::{DType, Dim, Layer, MemberKind, Module, Op, Type};

/// Why an op does not fit its inputs, in shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

type Types = Result<Vec<Type>, Mismatch>;

fn fail<T>(text: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch(text.into()))
}

/// The types an op defines. `module` owns the members the op names, `modules` its children.
pub fn infer(op: &Op, inputs: &[&Type], module: &Module, modules: &[Module]) -> Types {
    match op {
        Op::Layer { member } => {
            let member = module.members.get(member.0).ok_or(Mismatch("no such member".into()))?;
            match &member.kind {
                MemberKind::Layer(layer) => infer_layer(layer, inputs),
                MemberKind::Module(_) | MemberKind::Stack(_) => fail("a layer is applied that is a module"),
            }
        }
        Op::Weight { path } => infer_weight(path, module, modules),
        Op::Call { member } => match module.members.get(member.0).map(|m| &m.kind) {
            Some(MemberKind::Module(id)) => infer_call(inputs, modules.get(id.0)),
            _ => fail("a call of something that is not a module"),
        },
        Op::Scan { member, each, args } => {
            let Some(MemberKind::Stack(runs)) = module.members.get(member.0).map(|m| &m.kind) else {
                return fail("a scan over something that is not a stack");
            };
            let Some((carry, pool)) = inputs.split_first() else { return fail("a scan needs a value") };
            if *each == 0 || runs.len() != args.len() {
                return fail("a scan's runs and arguments differ");
            }
            for (run, cycle) in runs.iter().zip(args) {
                if run.cycle.len() != cycle.len() || run.cycle.is_empty() {
                    return fail("a scan's cycle and arguments differ");
                }
                for (id, extra) in run.cycle.iter().zip(cycle) {
                    let mut of_block = vec![*carry];
                    for index in extra {
                        let ty = index.checked_sub(1).and_then(|i| pool.get(i));
                        of_block.push(ty.ok_or(Mismatch("a scan's argument is out of range".into()))?);
                    }
                    let results = infer_call(&of_block, modules.get(id.0))?;
                    if results.len() != 1 || results.first() != Some(carry) {
                        return fail("a block does not return what it takes");
                    }
                }
            }
            Ok(vec![(*carry).clone()])
        }
        Op::Experts { member, .. } => {
            let Some(MemberKind::Stack(runs)) = module.members.get(member.0).map(|m| &m.kind) else {
                return fail("experts that are not a stack");
            };
            let [x, weights] = inputs else { return fail("experts take the input and the weights") };
            let experts = Dim::of(super::stack_len(runs));
            if weights.last() != Some(&experts) || weights.shape.len() != 3 {
                return fail(format!("{experts} experts, weights {weights}"));
            }
            for id in runs.iter().flat_map(|r| &r.cycle) {
                let expert = modules.get(id.0).ok_or(Mismatch("no such module".into()))?;
                let takes_rows = expert.args == 1 && expert.arguments().iter().all(|v| v.ty.shape.len() == 2);
                if !takes_rows {
                    return fail("an expert takes rows `[N, D]`");
                }
            }
            Ok(vec![(*x).clone()])
        }
        Op::Positions { along, .. } => Ok(vec![Type::int([Dim::of(1u64), along.queries()])]),
        Op::Sinusoid { dim, .. } => {
            let [positions] = inputs else { return fail("positions expected") };
            let mut shape = positions.shape.clone();
            shape.push(Dim::of(*dim));
            Ok(vec![Type::float(shape)])
        }
        Op::RotaryTable { along, rotary } => {
            let ty = Type::float([along.queries(), Dim::of(rotary.pairs())]);
            Ok(vec![ty.clone(), ty])
        }
        Op::Mask { queries, keys, .. } => {
            let one = Dim::of(1u64);
            Ok(vec![Type::bool([one.clone(), one, queries.queries(), keys.keys()])])
        }
        Op::PaddingMask => match inputs {
            [Type { dtype: DType::Int, shape, optional }] if shape.len() == 2 => {
                let one = Dim::of(1u64);
                let mut ty = Type::bool([shape[0].clone(), one.clone(), one, shape[1].clone()]);
                ty.optional = *optional;
                Ok(vec![ty])
            }
            _ => fail("a padding mask is `[B, K]` of 0 and 1"),
        },
        Op::EitherMask => {
            let [a, b] = inputs else { return fail("two masks expected") };
            let mut ty = Type::bool(broadcast(&a.shape, &b.shape)?);
            ty.optional = a.optional && b.optional;
            Ok(vec![ty])
        }
        Op::AlibiBias { queries, keys, slopes } => {
            let heads = Dim::of(slopes.heads);
            Ok(vec![Type::float([Dim::of(1u64), heads, queries.queries(), keys.keys()])])
        }
        Op::RelativeBuckets { queries, keys, .. } => Ok(vec![Type::int([queries.queries(), keys.keys()])]),
        Op::SplitHeads { heads } => match inputs {
            [Type { shape, .. }] if shape.len() == 3 => {
                let Some(dim) = shape[2].divide(u128::from(*heads)) else {
                    return fail(format!("{heads} heads do not divide {}", shape[2]));
                };
                Ok(vec![Type::float([shape[0].clone(), Dim::of(*heads), shape[1].clone(), dim])])
            }
            _ => fail("heads are split off `[B, T, H*D]`"),
        },
        Op::MergeHeads => match inputs {
            [Type { shape, .. }] if shape.len() == 4 => {
                Ok(vec![Type::float([shape[0].clone(), shape[2].clone(), &shape[1] * &shape[3]])])
            }
            _ => fail("heads are merged from `[B, H, T, D]`"),
        },
        Op::RepeatHeads { times } => match inputs {
            [Type { shape, .. }] if shape.len() == 4 => {
                let heads = &shape[1] * &Dim::of(*times);
                Ok(vec![Type::float([shape[0].clone(), heads, shape[2].clone(), shape[3].clone()])])
            }
            _ => fail("heads are repeated in `[B, H, T, D]`"),
        },
        Op::Rotate { .. } => {
            let [x, cos, sin] = inputs else { return fail("rotation takes x, cos and sin") };
            let pairs = cos.last().and_then(Dim::constant).unwrap_or(u128::MAX);
            let width = x.last().and_then(Dim::constant).unwrap_or(0);
            if cos != sin || x.shape.len() != 4 || pairs.saturating_mul(2) > width {
                return fail(format!("{pairs} pairs rotated in {x}"));
            }
            if x.shape.get(2) != cos.shape.first() {
                return fail(format!("angles of {cos} for {x}"));
            }
            Ok(vec![(*x).clone()])
        }
        Op::Cache => {
            let [x] = inputs else { return fail("one value is cached") };
            let mut ty = (*x).clone();
            let axis =
                ty.shape.len().checked_sub(2).ok_or(Mismatch("a cached value has rank 2 or more".into()))?;
            if ty.shape[axis] != Dim::sym(super::Sym::Time) {
                return fail("only the decoded sequence is cached");
            }
            ty.shape[axis] = Dim::sym(super::Sym::Past) + Dim::sym(super::Sym::Time);
            Ok(vec![ty])
        }
        Op::Attention(attention) => infer_attention(attention, inputs),
        Op::Activate(_)
        | Op::Scale { .. }
        | Op::Shift { .. }
        | Op::Clamp { .. }
        | Op::Softcap { .. }
        | Op::Dropout { .. }
        | Op::Normalize => match inputs {
            [x] if x.dtype == DType::Float && !x.optional => Ok(vec![(*x).clone()]),
            _ => fail("one float tensor expected"),
        },
        Op::Add | Op::Mul => {
            let [a, b] = inputs else { return fail("two tensors expected") };
            if a.dtype != DType::Float || b.dtype != DType::Float || a.optional || b.optional {
                return fail(format!("{a} and {b} are not two float tensors"));
            }
            Ok(vec![Type::float(broadcast(&a.shape, &b.shape)?)])
        }
        Op::Slice { axis_from_last, start, len } => {
            let [x] = inputs else { return fail("one tensor is sliced") };
            let mut ty = (*x).clone();
            let axis = axis_of(&ty, *axis_from_last)?;
            if let Some(size) = ty.shape[axis].constant()
                && u128::from(*start) + u128::from(*len) > size
            {
                return fail(format!("{start}..{} of {size}", start + len));
            }
            ty.shape[axis] = Dim::of(*len);
            Ok(vec![ty])
        }
        Op::Concat { axis_from_last } => {
            let Some((first, rest)) = inputs.split_first() else { return fail("nothing to join") };
            let mut ty = (*first).clone();
            let axis = axis_of(&ty, *axis_from_last)?;
            for other in rest {
                if other.shape.len() != ty.shape.len() || other.dtype != ty.dtype {
                    return fail(format!("{ty} and {other} cannot be joined"));
                }
                for (i, (a, b)) in first.shape.iter().zip(&other.shape).enumerate() {
                    if i != axis && a != b {
                        return fail(format!("{first} and {other} cannot be joined"));
                    }
                }
                ty.shape[axis] = &ty.shape[axis] + &other.shape[axis];
            }
            Ok(vec![ty])
        }
        Op::Prepend => {
            let [rows, x] = inputs else { return fail("rows and a sequence expected") };
            if rows.shape.len() != 2 || x.shape.len() != 3 || rows.last() != x.last() {
                return fail(format!("{rows} before {x}"));
            }
            let mut ty = (*x).clone();
            ty.shape[1] = &rows.shape[0] + &x.shape[1];
            Ok(vec![ty])
        }
        Op::Unsqueeze => {
            let [x] = inputs else { return fail("one tensor expected") };
            let mut ty = (*x).clone();
            ty.shape.push(Dim::of(1u64));
            Ok(vec![ty])
        }
        Op::Squeeze => match inputs {
            [x] if x.last() == Some(&Dim::of(1u64)) => {
                let mut ty = (*x).clone();
                ty.shape.pop();
                Ok(vec![ty])
            }
            _ => fail("a last axis of length 1 is dropped"),
        },
        Op::Lookup => match inputs {
            [table, Type { dtype: DType::Int, shape, optional: false }]
                if table.shape.len() == 2 && shape.len() == 2 =>
            {
                Ok(vec![Type::float([shape[0].clone(), shape[1].clone(), table.shape[1].clone()])])
            }
            _ => fail("rows of a table are looked up by `[B, T]` of indices"),
        },
        Op::BiasFromTable => match inputs {
            [Type { shape, dtype: DType::Float, .. }] if shape.len() == 3 => {
                Ok(vec![Type::float([Dim::of(1u64), shape[2].clone(), shape[0].clone(), shape[1].clone()])])
            }
            _ => fail("a table of biases is `[T, K, H]`"),
        },
        Op::OrZeros => {
            let [a, b] = inputs else { return fail("a value and its likeness expected") };
            if a.shape != b.shape || a.dtype != b.dtype {
                return fail(format!("{a} is not like {b}"));
            }
            Ok(vec![(*b).clone()])
        }
        Op::Unembed => {
            let [x, w] = inputs else { return fail("x and the table expected") };
            if w.shape.len() != 2 || x.last() != w.last() {
                return fail(format!("{x} times {w} transposed"));
            }
            let mut ty = (*x).clone();
            if let Some(last) = ty.shape.last_mut() {
                *last = w.shape[0].clone();
            }
            Ok(vec![ty])
        }
        Op::Route(router) => {
            let scores = match inputs {
                [scores] if !router.has_correction => scores,
                [scores, correction] if router.has_correction => {
                    if correction.shape.len() != 1 || correction.last() != scores.last() {
                        return fail(format!("a correction of {correction} for scores {scores}"));
                    }
                    scores
                }
                _ => return fail("a router takes scores"),
            };
            let experts = scores.last().and_then(Dim::constant).unwrap_or(0);
            if scores.shape.len() != 3 || u128::from(router.top_k) > experts || router.top_k == 0 {
                return fail(format!("{} of {experts} experts", router.top_k));
            }
            Ok(vec![(*scores).clone()])
        }
        Op::Pool(_) => {
            let x = match inputs {
                [x] | [x, _] => x,
                _ => return fail("a sequence expected"),
            };
            match x.shape.as_slice() {
                [batch, _, dim] => Ok(vec![Type::float([batch.clone(), dim.clone()])]),
                _ => fail("pooling is over `[B, T, D]`"),
            }
        }
    }
}

fn infer_layer(layer: &Layer, inputs: &[&Type]) -> Types {
    if let Layer::Param { shape, .. } = layer {
        return match inputs {
            [] => Ok(vec![Type::float(shape.iter().map(|n| Dim::of(*n)))]),
            _ => fail("a parameter takes no input"),
        };
    }
    let [x] = inputs else { return fail("a layer takes one input") };
    let ends_in = |n: u64| x.last() == Some(&Dim::of(n)) && x.dtype == DType::Float;
    match layer {
        Layer::Linear { input, output, .. } => {
            if !ends_in(*input) {
                return fail(format!("a projection of {input} features is given {x}"));
            }
            let mut ty = (*x).clone();
            if let Some(last) = ty.shape.last_mut() {
                *last = Dim::of(*output);
            }
            Ok(vec![ty])
        }
        Layer::Embedding { dim, .. } => {
            if x.dtype != DType::Int || x.shape.len() != 2 {
                return fail(format!("an embedding looks up `[B, T]` of indices, not {x}"));
            }
            let mut shape = x.shape.clone();
            shape.push(Dim::of(*dim));
            Ok(vec![Type::float(shape)])
        }
        Layer::LayerNorm { dim, .. } | Layer::RmsNorm { dim, .. } => {
            if !ends_in(*dim) {
                return fail(format!("a norm over {dim} features is given {x}"));
            }
            Ok(vec![(*x).clone()])
        }
        Layer::Patches { channels, dim, size, .. } => match x.shape.as_slice() {
            [batch, c, h, w] if *c == Dim::of(*channels) => {
                let size = u128::from(*size);
                match (h.divide(size), w.divide(size)) {
                    (Some(rows), Some(columns)) => {
                        Ok(vec![Type::float([batch.clone(), &rows * &columns, Dim::of(*dim)])])
                    }
                    _ => fail(format!("patches of {size} do not divide {h}x{w}")),
                }
            }
            _ => fail(format!("patches are cut from `[B, {channels}, H, W]`, not {x}")),
        },
        Layer::Param { .. } => fail("a parameter takes no input"),
    }
}

fn infer_weight(path: &[super::MemberId], module: &Module, modules: &[Module]) -> Types {
    let mut at = module;
    for (i, id) in path.iter().enumerate() {
        match at.members.get(id.0).map(|m| &m.kind) {
            Some(MemberKind::Module(child)) => {
                at = modules.get(child.0).ok_or(Mismatch("no such module".into()))?;
            }
            Some(MemberKind::Layer(Layer::Embedding { rows, dim, .. })) if i + 1 == path.len() => {
                return Ok(vec![Type::float([Dim::of(*rows), Dim::of(*dim)])]);
            }
            _ => return fail("only an embedding's weight can be used elsewhere"),
        }
    }
    fail("a path that ends at a module")
}

fn infer_call(inputs: &[&Type], callee: Option<&Module>) -> Types {
    let callee = callee.ok_or(Mismatch("no such module".into()))?;
    if inputs.len() != callee.args {
        return fail(format!("{} takes {} arguments, not {}", callee.name, callee.args, inputs.len()));
    }
    for (given, wanted) in inputs.iter().zip(callee.arguments()) {
        let fits = given.dtype == wanted.ty.dtype
            && given.shape == wanted.ty.shape
            && (!given.optional || wanted.ty.optional);
        if !fits {
            return fail(format!("{} takes {} of {}, not {given}", callee.name, wanted.name, wanted.ty));
        }
    }
    Ok(callee.results.iter().map(|id| callee.value(*id).ty.clone()).collect())
}

fn infer_attention(attention: &Attention, inputs: &[&Type]) -> Types {
    let expected =
        3 + [attention.has_mask, attention.has_bias, attention.has_sinks].iter().filter(|b| **b).count();
    if inputs.len() != expected {
        return fail(format!("attention takes {expected} inputs, not {}", inputs.len()));
    }
    let [q, k, v, rest @ ..] = inputs else { return fail("attention takes q, k and v") };
    let ([b, h, t, d], [kb, kh, kt, kd], [vb, vh, vt, vd]) =
        (q.shape.as_slice(), k.shape.as_slice(), v.shape.as_slice())
    else {
        return fail(format!("attention over {q}, {k}, {v}"));
    };
    if (b, h, d) != (kb, kh, kd) || (kb, kh, kt) != (vb, vh, vt) {
        return fail(format!("queries {q}, keys {k} and values {v} do not fit"));
    }
    let scores = [b.clone(), h.clone(), t.clone(), kt.clone()];
    let mut rest = rest.iter();
    for wanted in [attention.has_mask, attention.has_bias] {
        if wanted
            && let Some(extra) = rest.next()
            && broadcast(&scores, &extra.shape)? != scores
        {
            return fail(format!("{extra} does not fit scores of {q} and {k}"));
        }
    }
    if attention.has_sinks
        && let Some(sinks) = rest.next()
        && sinks.shape.as_slice() != [h.clone()]
    {
        return fail(format!("sinks of {sinks} for {h} heads"));
    }
    Ok(vec![Type::float([b.clone(), h.clone(), t.clone(), vd.clone()]), Type::float(scores)])
}

fn axis_of(ty: &Type, from_last: usize) -> Result<usize, Mismatch> {
    match ty.shape.len().checked_sub(1 + from_last) {
        Some(axis) => Ok(axis),
        None => fail(format!("no axis {from_last} from the last in {ty}")),
    }
}

/// Trailing axes line up; a size of 1 stretches.
fn broadcast(a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, Mismatch> {
    let one = Dim::of(1u64);
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], i: usize| {
        (i + shape.len()).checked_sub(rank).and_then(|i| shape.get(i)).cloned().unwrap_or(one.clone())
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Ok(x),
            (x, y) if y == one => Ok(x),
            (x, y) if x == one => Ok(y),
            (x, y) => fail(format!("{x} and {y} do not line up")),
        })
        .collect()
}
