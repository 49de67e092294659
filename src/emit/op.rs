//! Every op as an expression: the same calls, in the same order, as the interpreter makes.

use super::code::Code;
use super::constants::{Kind, float};
use super::function::Function;
use super::layer;
use super::name;
use super::plan::{Need, dropout_field};
use crate::ir::op::{
    Activation, Attention, FrequencyRule, Hidden, LongRule, MaskRule, Pairing, Pool, RotaryTable, Router,
    RouterScore, SinusoidLayout,
};
use crate::ir::{Extent, MemberId, MemberKind, Module, ModuleId, Node, Op, Type, ValueId};

/// The expression of a node. Scans and groups of caches are statements and not made here.
pub fn code(f: &mut Function<'_>, node: &Node) -> Code {
    let module = f.module;
    let input = |i: usize| node.inputs.get(i).copied().unwrap_or(ValueId(usize::MAX));
    let kernel = |f: &mut Function<'_>, name: &str, rest: Vec<Code>| {
        let mut all: Vec<Code> = node.inputs.iter().map(|id| f.operand(*id)).collect();
        all.extend(rest);
        Code::call(&f.file.kernel(name), all)
    };
    let int = |n: u64| Code::text(n.to_string());
    let size = |f: &Function<'_>, size: Extent| Code::text(f.file.constants.argument(size));
    match &node.op {
        Op::Layer { member } => match &module.member(*member).kind {
            MemberKind::Layer(layer) => {
                let operand = node.inputs.first().map(|id| f.operand(*id));
                layer::apply(layer, &module.member(*member).name, operand, f.file)
            }
            MemberKind::Module(_) | MemberKind::Stack(_) => Code::text("()"),
        },
        Op::Weight { path } => weight(f, path),
        Op::Call { member } => f.call(*member, &node.inputs),
        Op::Scan { .. } => Code::text("()"),
        Op::Experts { member, .. } => experts(f, node, *member),
        Op::Positions { along, offset } => {
            let (start, length) = f.span(*along);
            let start = match (*offset, start == Code::text("0")) {
                (0, _) => start,
                (n, true) => int(n),
                (n, false) => start.plus(int(n)),
            };
            let device = f.need(Need::Device);
            Code::call(&f.file.kernel("position_ids"), [start, length, device])
        }
        Op::Sinusoid { dim, base, layout } => {
            let name = match layout {
                SinusoidLayout::Interleaved => "sinusoid_interleaved",
                SinusoidLayout::Concat => "sinusoid_concat",
            };
            let dim = size(f, *dim);
            kernel(f, name, vec![dim, Code::text(float(*base))])
        }
        Op::RotaryTable { along, rotary } => {
            let (start, length) = f.span(*along);
            let total =
                if start == Code::text("0") { length.clone() } else { start.clone().plus(length.clone()) };
            let frequencies = frequencies(f, rotary, total);
            let device = f.need(Need::Device);
            let magnitude = Code::text(float(rotary.magnitude));
            Code::call(&f.file.kernel("rotary_table"), [frequencies, magnitude, start, length, device])
        }
        Op::Mask { queries, keys, rule } => {
            let (start, length) = f.span(*queries);
            let (keys, device) = (f.keys(*keys), f.need(Need::Device));
            let rule = Code::text(format!("|query, key| {}", hides(rule)));
            Code::call(&f.file.kernel("mask_by"), [start, length, keys, device, rule])
        }
        Op::PaddingMask => {
            let name = Code::text(f.file.kernel("padding_mask"));
            let mask = f.operand(input(0));
            if f.is_option(input(0)) {
                mask.method("map", [name])
            } else {
                Code::call("padding_mask", [mask])
            }
        }
        Op::EitherMask => {
            let (a, b) = (f.optional(input(0)), f.optional(input(1)));
            Code::call(&f.file.kernel("either_mask"), [a, b])
        }
        Op::AlibiBias { queries, keys, slopes } => {
            let (start, length) = f.span(*queries);
            let (keys, device) = (f.keys(*keys), f.need(Need::Device));
            let slopes: Vec<f64> = (0..slopes.heads).map(|head| slopes.slope(head)).collect();
            let slopes = Code::text(format!("&{}", f.file.numbers("SLOPES", &slopes)));
            Code::call(&f.file.kernel("alibi_bias"), [slopes, start, length, keys, device])
        }
        Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => {
            let (start, length) = f.span(*queries);
            let (keys, device) = (f.keys(*keys), f.need(Need::Device));
            let two_sided = Code::text(bidirectional.to_string());
            let sizes = [start, length, keys, int(*buckets), int(*max_distance), two_sided, device];
            Code::call(&f.file.kernel("relative_buckets"), sizes)
        }
        Op::SplitHeads { heads } => {
            let heads = size(f, *heads);
            kernel(f, "split_heads", vec![heads])
        }
        Op::MergeHeads => kernel(f, "merge_heads", vec![]),
        Op::RepeatHeads { times } => {
            let times = repeats(f, input(0), *times);
            kernel(f, "repeat_heads", vec![times])
        }
        Op::Rotate { pairing: Pairing::Half } => kernel(f, "rotate_half", vec![]),
        Op::Rotate { pairing: Pairing::Interleaved } => kernel(f, "rotate_interleaved", vec![]),
        // Nothing decodes this graph step by step, so there is nothing before it.
        Op::Cache => f.operand(input(0)),
        Op::Attention(attention) => attend(f, node, attention),
        Op::Activate(activation) => {
            let x = f.operand(input(0));
            activate(f, *activation, x)
        }
        Op::Add => {
            let (a, b) = level(f, node);
            a.plus(b)
        }
        Op::Mul => {
            let (a, b) = level(f, node);
            a.times(b)
        }
        Op::Scale { by } => {
            let by = factor(f, *by, node.inputs.first());
            f.operand(input(0)).times(by)
        }
        Op::Shift { by } => f.operand(input(0)).plus(Code::text(float(*by))),
        Op::Clamp { min, max } => {
            let x = f.operand(input(0));
            let bound = |x: &f64| Code::text(float(*x));
            match (min, max) {
                (Some(min), Some(max)) => x.method("clamp", [bound(min), bound(max)]),
                (Some(min), None) => x.method("clamp_min", [bound(min)]),
                (None, Some(max)) => x.method("clamp_max", [bound(max)]),
                (None, None) => x,
            }
        }
        Op::Softcap { cap } => {
            let cap = Code::text(float(*cap));
            f.operand(input(0)).over(cap.clone()).method("tanh", []).times(cap)
        }
        Op::Dropout { p } => {
            let x = f.operand(input(0));
            Code::text(format!("self.{}", dropout_field(&f.facts, *p))).method("forward", [x])
        }
        Op::Slice { axis_from_last, start, len } => {
            let axis = axis(module, input(0), *axis_from_last);
            let (from, many) = (size(f, *start), size(f, *len));
            f.operand(input(0)).method("narrow", [Code::text(axis.to_string()), from, many])
        }
        Op::Concat { axis_from_last } => {
            let axis = axis(module, input(0), *axis_from_last);
            let parts: Vec<Code> = node.inputs.iter().map(|id| f.operand(*id)).collect();
            Code::call("Tensor::cat", [Code::list("vec![", parts, "]"), Code::text(axis.to_string())])
        }
        Op::Prepend => {
            let (rows, x) = (f.operand(input(0)), f.operand(input(1)));
            Code::call(&f.file.kernel("prepend"), [rows, x])
        }
        Op::Unsqueeze => {
            let rank = rank(module, input(0));
            let method = format!("unsqueeze_dim::<{}>", rank + 1);
            f.operand(input(0)).method(&method, [Code::text(rank.to_string())])
        }
        Op::Squeeze => {
            let last = rank(module, input(0)).saturating_sub(1);
            f.operand(input(0)).method(&format!("squeeze_dim::<{last}>"), [Code::text(last.to_string())])
        }
        Op::Lookup => {
            let embedding = f.file.import("burn::tensor::module::embedding");
            Code::call(&embedding, [f.operand(input(0)), f.operand(input(1))])
        }
        Op::BiasFromTable => {
            f.operand(input(0)).method("permute", [Code::text("[2, 0, 1]")]).method("unsqueeze::<4>", [])
        }
        Op::OrZeros => {
            let given = f.operand(input(0));
            if !f.is_option(input(0)) {
                return given;
            }
            let like = Code::name(input(1));
            given.method("unwrap_or_else", [Code::text("|| ").join(like.method("zeros_like", []))])
        }
        Op::Unembed => {
            let (x, table) = (f.operand(input(0)), f.operand(input(1)));
            Code::call(&f.file.kernel("unembed"), [x, table])
        }
        Op::Route(router) => route(f, node, router),
        Op::Pool(pool) => {
            let name = match pool {
                Pool::First => return Code::call(&f.file.kernel("pool_first"), [f.operand(input(0))]),
                Pool::Last => "pool_last",
                Pool::Mean => "pool_mean",
                Pool::Max => "pool_max",
            };
            let x = f.operand(input(0));
            let keep = if node.inputs.len() > 1 { f.optional(input(1)) } else { Code::text("None") };
            Code::call(&f.file.kernel(name), [x, keep])
        }
        Op::Normalize => kernel(f, "unit_length", vec![]),
    }
}

fn rank(module: &Module, id: ValueId) -> usize {
    module.value(id).ty.shape.len()
}

fn axis(module: &Module, id: ValueId, from_last: usize) -> usize {
    rank(module, id).saturating_sub(1 + from_last)
}

/// `self.embed.tokens.weight.val()`
fn weight(f: &Function<'_>, path: &[MemberId]) -> Code {
    let mut at: &Module = f.module;
    let mut text = "self".to_owned();
    for id in path {
        let member = at.member(*id);
        text.push('.');
        text.push_str(&name::field(&member.name));
        if let MemberKind::Module(child) = member.kind {
            at = f.file.graph.module(child);
        }
    }
    Code::text(text).then(".weight").method("val", [])
}

/// `mix_experts(x, weights, |expert, rows| self.experts[expert].forward(rows))`
fn experts(f: &mut Function<'_>, node: &Node, id: MemberId) -> Code {
    let member = f.module.member(id);
    let field = format!("self.{}[expert]", name::field(&member.name));
    let kinds: Vec<ModuleId> = match &member.kind {
        MemberKind::Stack(runs) => super::plan::kinds(runs),
        MemberKind::Layer(_) | MemberKind::Module(_) => Vec::new(),
    };
    let extra = |f: &mut Function<'_>, kind: ModuleId| -> Vec<Code> {
        std::iter::once(Code::text("rows")).chain(f.extra_arguments(kind)).collect()
    };
    let apply = match kinds.as_slice() {
        [one] => Code::text(field).method("forward", extra(f, *one)),
        several => {
            let stack = f.enum_of(id);
            let mut code = Code::text(format!("match &{field} {{ "));
            for kind in several {
                let variant = super::function::variant(f.file, several, *kind);
                let call = Code::text("expert").method("forward", extra(f, *kind));
                code = code.then(format!("{stack}::{variant}(expert) => ")).join(call).then(", ");
            }
            code.then("}")
        }
    };
    let mut operands: Vec<Code> = node.inputs.iter().map(|id| f.operand(*id)).collect();
    operands.push(Code::text("|expert, rows| ").join(apply));
    Code::call(&f.file.kernel("mix_experts"), operands)
}

/// `HEADS / KV_HEADS`, or `HEADS` where one head of keys serves all queries.
fn repeats(f: &Function<'_>, input: ValueId, times: Extent) -> Code {
    let constants = &f.file.constants;
    let shared = f.module.value(input).ty.shape.get(1).and_then(|dim| dim.extent());
    let few = shared.filter(|few| few.get() > 1).map(|few| (few.get(), constants.size(few)));
    let many = few.as_ref().and_then(|(few, _)| constants.known("heads", few.saturating_mul(times.get())));
    match (many, few) {
        (Some(many), Some((_, few))) => Code::text(format!("{many} / {few}")),
        (None, _) | (_, None) => Code::text(constants.argument(times)),
    }
}

/// The inverse frequencies as `&[f64]`.
fn frequencies(f: &mut Function<'_>, rotary: &RotaryTable, total: Code) -> Code {
    let usual = |f: &Function<'_>| under(f, rotary, &rotary.rule);
    let Some(long) = &rotary.long else { return Code::text("&").join(usual(f)) };
    // No choice is written where the length is known.
    let goes_beyond = total.integer().map(|length| length > long.from);
    if goes_beyond == Some(false) {
        return Code::text("&").join(usual(f));
    }
    let grown = match &long.rule {
        LongRule::Frequencies(rule) => under(f, rotary, rule),
        LongRule::Dynamic { factor } => {
            let sizes = [float(rotary.theta), float(*factor), long.from.to_string()].map(Code::text);
            let call =
                sizes.into_iter().chain([total.clone(), Code::text(f.file.constants.argument(rotary.dim))]);
            Code::call(&f.file.kernel("dynamic_frequencies"), call)
        }
    };
    if goes_beyond == Some(true) {
        return Code::text("&").join(grown);
    }
    let usual = usual(f);
    if grown == usual {
        return Code::text("&").join(usual);
    }
    let is_list = |rule: &FrequencyRule| *rule != FrequencyRule::Plain;
    let same_type = |code: Code, is_list: bool| if is_list { code.method("to_vec", []) } else { code };
    let usual = same_type(usual, is_list(&rotary.rule));
    let grown = same_type(grown, matches!(&long.rule, LongRule::Frequencies(rule) if is_list(rule)));
    let condition = Code::text("&if ").join(total).then(format!(" > {} {{ ", long.from));
    condition.join(grown).then(" } else { ").join(usual).then(" }")
}

/// The frequencies under a rule: `frequencies(theta, dim)` for plain ones, else a constant.
fn under(f: &Function<'_>, rotary: &RotaryTable, rule: &FrequencyRule) -> Code {
    if *rule == FrequencyRule::Plain {
        let dim = f.file.constants.argument(rotary.dim);
        let theta = f.file.constants.float(Kind::Theta, rotary.theta);
        return Code::call(&f.file.kernel("frequencies"), [theta, dim].map(Code::text));
    }
    let values: Vec<f64> = (0..rotary.pairs()).map(|i| rotary.frequency_under(rule, i)).collect();
    Code::text(f.file.numbers("INVERSE_FREQUENCIES", &values))
}

/// Whether a key is hidden, as a condition on `query` and `key`.
fn hides(rule: &MaskRule) -> String {
    let mut any: Vec<String> = rule.conditions().map(hidden).collect();
    if any.len() > 1 {
        any = any
            .into_iter()
            .map(|text| if text.contains("&&") { format!("({text})") } else { text })
            .collect();
    }
    if any.is_empty() { "false".to_owned() } else { any.join(" || ") }
}

fn hidden(condition: Hidden) -> String {
    match condition {
        Hidden::Later { prefix: 0 } => "key > query".to_owned(),
        Hidden::Later { prefix } => format!("key > query && key >= {prefix}"),
        Hidden::Behind { window: 1 } => "key < query".to_owned(),
        Hidden::Behind { window } => format!("key + {window} <= query"),
        Hidden::Ahead { window: 1 } => "query < key".to_owned(),
        Hidden::Ahead { window } => format!("query + {window} <= key"),
        Hidden::OtherChunk { chunk: 1 } => "key != query".to_owned(),
        Hidden::OtherChunk { chunk } => format!("key / {chunk} != query / {chunk}"),
    }
}

/// A factor on `x`, as the root of the width of `x` where it is one.
fn factor(f: &Function<'_>, by: f64, x: Option<&ValueId>) -> Code {
    if let Some(width) = x.and_then(|x| f.module.value(*x).ty.last()?.extent()) {
        let root = (width.get() as f64).sqrt();
        let text = || Code::text(format!("({} as f64).sqrt()", f.file.constants.size(width)));
        if by == root {
            return text();
        }
        if by == 1.0 / root {
            return Code::text("1.0").over(text());
        }
    }
    Code::text(float(by))
}

/// `attention(q, k, v, mask, bias, options)`, or by way of the weights where they are dropped or sunk.
fn attend(f: &mut Function<'_>, node: &Node, attention: &Attention) -> Code {
    let Attention { scale, softcap, causal, dropout, has_mask, has_bias, has_sinks } = attention;
    let mut inputs = node.inputs.iter().copied();
    let mut next = |f: &mut Function<'_>, there: bool, as_option: bool| match inputs.next().filter(|_| there)
    {
        Some(id) if as_option => f.optional(id),
        Some(id) => f.operand(id),
        None => Code::text("None"),
    };
    let (q, k, v) = (next(f, true, false), next(f, true, false), next(f, true, false));
    let mask = if *has_mask { next(f, true, true) } else { Code::text("None") };
    let bias = if *has_bias { next(f, true, true) } else { Code::text("None") };
    let sinks = if *has_sinks { next(f, true, true) } else { Code::text("None") };
    let options = f.file.import("burn::tensor::ops::AttentionModuleOptions");
    let scale = factor(f, *scale, node.inputs.first());
    let softcap = softcap.map_or("None".to_owned(), |cap| format!("Some({})", float(cap)));
    let options = Code::text(format!("{options} {{ scale: Some("))
        .join(scale)
        .then(format!("), softcap: {softcap}, is_causal: {causal} }}"));
    f.local("options", options);
    let options = Code::text("options");
    let field = dropout_field(&f.facts, *dropout).to_owned();
    let wants_weights = node.outputs.get(1).is_some_and(|id| f.is_used(*id));
    if wants_weights || *has_sinks {
        let weights = Code::call(&f.file.kernel("attention_weights"), [q, k, mask, bias, sinks, options]);
        let drop = |weights: Code| {
            if *dropout > 0.0 {
                Code::text(format!("self.{field}")).method("forward", [weights])
            } else {
                weights
            }
        };
        if !wants_weights {
            return drop(weights).method("matmul", [v]);
        }
        let out = drop(Code::text("weights.clone()")).method("matmul", [v]);
        return Code::text("{ let weights = ").join(weights).then("; (").join(out).then(", weights) }");
    }
    if *dropout > 0.0 {
        let dropout = Code::text(format!("&self.{field}"));
        return Code::call(&f.file.kernel("attention_with_dropout"), [q, k, v, mask, bias, options, dropout]);
    }
    Code::call(&f.file.kernel("attention"), [q, k, v, mask, bias, options])
}

fn activate(f: &Function<'_>, activation: Activation, x: Code) -> Code {
    let burn =
        |name: &str, x: Code| Code::call(&f.file.import(&format!("burn::tensor::activation::{name}")), [x]);
    match activation {
        Activation::Relu => burn("relu", x),
        Activation::Relu2 => burn("relu", x).method("square", []),
        Activation::Gelu => Code::call(&f.file.kernel("gelu"), [x]),
        Activation::GeluTanh => burn("gelu_approximate", x),
        Activation::QuickGelu => Code::call(&f.file.kernel("quick_gelu"), [x]),
        Activation::Silu => burn("silu", x),
        Activation::Tanh => burn("tanh", x),
        Activation::Sigmoid => burn("sigmoid", x),
    }
}

/// Both operands with the higher rank.
fn level(f: &mut Function<'_>, node: &Node) -> (Code, Code) {
    let module = f.module;
    let ranks: Vec<usize> = node.inputs.iter().map(|id| rank(module, *id)).collect();
    let highest = ranks.iter().copied().max().unwrap_or(0);
    let mut lifted = node.inputs.iter().zip(&ranks).map(|(id, rank)| {
        let code = f.operand(*id);
        if *rank < highest { code.method(&format!("unsqueeze::<{highest}>"), []) } else { code }
    });
    let a = lifted.next().unwrap_or_else(|| Code::text("()"));
    let b = lifted.next().unwrap_or_else(|| Code::text("()"));
    (a, b)
}

/// `route_softmax(scores, TOP_K, normalize, |affinities| ..)`, times the scale.
fn route(f: &mut Function<'_>, node: &Node, router: &Router) -> Code {
    let mut inputs = node.inputs.iter().copied();
    let scores = inputs.next().map_or_else(|| Code::text("()"), |id| f.operand(id));
    let mut choice = Code::text("affinities");
    if let Some(correction) = inputs.next().filter(|_| router.has_correction) {
        let correction = match f.operand(correction) {
            // The closure may run again, so a variable is cloned in it; a field is read anew.
            code if code == Code::take(correction) => Code::copy(correction),
            code => code,
        };
        choice = choice.plus(correction.method("unsqueeze::<3>", []));
    }
    if let Some(groups) = router.groups {
        let sizes = [groups.groups, groups.keep, groups.score_of]
            .map(|size| Code::text(f.file.constants.argument(size)));
        choice = Code::call(&f.file.kernel("limit_groups"), std::iter::once(choice).chain(sizes));
    }
    let top_k = Code::text(f.file.constants.argument(router.top_k));
    let normalize = Code::text(router.normalize.to_string());
    let choice = Code::text("|affinities| ").join(choice);
    let weights = match router.score {
        RouterScore::Softmax => {
            Code::call(&f.file.kernel("route_softmax"), [scores, top_k, normalize, choice])
        }
        RouterScore::Sigmoid => {
            Code::call(&f.file.kernel("route_sigmoid"), [scores, top_k, normalize, choice])
        }
        RouterScore::SoftmaxOfChosen => {
            Code::call(&f.file.kernel("route_softmax_of_chosen"), [scores, top_k, choice])
        }
    };
    if router.scale == 1.0 { weights } else { weights.times(Code::text(float(router.scale))) }
}

/// A type in Rust.
pub fn rust_type(ty: &Type, is_option: bool) -> String {
    let tensor = match ty.dtype {
        crate::ir::DType::Float => format!("Tensor<{}>", ty.shape.len()),
        crate::ir::DType::Int => format!("Tensor<{}, Int>", ty.shape.len()),
        crate::ir::DType::Bool => format!("Tensor<{}, Bool>", ty.shape.len()),
    };
    if is_option { format!("Option<{tensor}>") } else { tensor }
}
