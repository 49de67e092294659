//! Attention as an expression.

use super::function::Function;
use super::layer::is_none;
use super::syntax::{Expr, Sign};
use crate::emit::program::operands::Operands;
use crate::ir::Op;
use crate::ir::op::quantity::Named;
use crate::ir::op::{Attention, Score};
use crate::lower::Bug;

/// Whether PyTorch's own function computes an attention whose weights are not needed: it has no argument for a softcap or
/// for sinks.
pub fn is_one_function(attention: &Attention) -> bool {
    !attention.is_composed() && !attention.has_sinks && attention.softcap.is_none()
}

/// `attention(q, k, v, mask, causal=True)`. Where its weights are wanted, or it has a softcap, sinks or
/// additive scores, the weights are computed apart from the sum.
pub fn attend(
    f: &mut Function<'_>,
    op: &Op,
    attention: &Attention,
    wanted: &Operands<'_>,
) -> Result<Expr, Bug> {
    let Attention { score, scale, softcap, causal, dropout, has_mask, has_bias, has_sinks } = attention;
    let too_few = || Bug("attention has too few inputs in the emitted program".to_owned());
    let [q, k, v, rest @ ..] = wanted.inputs else { return Err(too_few()) };
    let width = f.module.value(*q).ty.last().and_then(|dim| dim.extent());
    // The default of PyTorch is the inverse root of the width of a query.
    // A scale that only happens to be equal to it is written, because the width may be changed in `Config`.
    let is_usual = scale.root().is_some_and(|root| root.is_inverse && Some(root.of) == width);
    let scale = (!is_usual).then(|| f.file.scalar(&f.file.program.constants.score_scale(*scale)));
    let mut rest = rest.iter().copied();
    let is_grouped = f.is_grouped(*k);
    let (q, k, v) = (f.operand(*q), f.operand(*k), f.operand(*v));
    // A mask that hides the future is all that attention needs, where there is one.
    let mut is_causal = causal.then_some(Expr::Bool(true));
    let mut given: Vec<(&str, Expr)> = Vec::new();
    for (name, is_there) in [("mask", *has_mask), ("bias", *has_bias), ("sinks", *has_sinks)] {
        if is_there {
            let id = rest.next().ok_or_else(too_few)?;
            let hides_future = name == "mask" && *causal && f.is_causal(id);
            let value = if hides_future { f.named(id) } else { f.operand(id) };
            if hides_future {
                is_causal = f.may_be_absent(id).then(|| is_none(value.clone()));
            }
            given.push((name, value));
        }
    }
    let flags = [
        is_causal.map(|is_causal| ("causal", is_causal)),
        softcap.map(|cap| ("softcap", f.file.real(Named::Softcap, cap))),
        scale.map(|scale| ("scale", scale)),
    ];
    // The mask comes first, so it needs no name.
    let with = |call: Expr, all: Vec<(&str, Expr)>| {
        all.into_iter().fold(call, |call, (name, value)| match (name, call) {
            ("mask", Expr::Call(function, mut arguments)) => {
                arguments.push(value.into());
                Expr::Call(function, arguments)
            }
            (_, call) => call.with(name, value),
        })
    };
    let wants_weights = wanted.results > 1;
    if is_one_function(attention) && !wants_weights {
        let function = if is_grouped { "grouped_attention" } else { "attention" };
        let call = Expr::Runtime(function).call([q, k, v]);
        let call = with(call, given.into_iter().chain(flags.into_iter().flatten()).collect());
        if *dropout > 0.0 {
            // `scaled_dot_product_attention` drops whenever it is given a probability, also in evaluation.
            let p = Expr::own(wanted.dropout(op)?).attr("p");
            let p = f.local("p", Expr::own("training").choose(p, Expr::Float(0.0)));
            return Ok(call.with("dropout", p));
        }
        return Ok(call);
    }
    let call = match score {
        Score::Dot => Expr::Runtime("attention_weights").call([q, k]),
        Score::Additive => {
            let w = rest.next().ok_or_else(too_few)?;
            Expr::Runtime("additive_weights").call([q, k, f.operand(w)])
        }
    };
    let weights = with(call, given.into_iter().chain(flags.into_iter().flatten()).collect());
    let weights = f.local("weights", weights);
    let dropped = match *dropout > 0.0 {
        true => Expr::own(wanted.dropout(op)?).call([weights.clone()]),
        false => weights.clone(),
    };
    let out = dropped.binary(Sign::Product, v);
    // The weights are a result as they were before dropout.
    Ok(if wants_weights { Expr::Tuple(vec![out, weights]) } else { out })
}
