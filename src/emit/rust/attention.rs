//! Attention as an expression.

use super::code::{Code, code};
use super::function::Function;
use super::pointwise::dropout_of;
use crate::emit::program::operands::Operands;
use crate::ir::Op;
use crate::ir::op::quantity::Named;
use crate::ir::op::{Attention, Score};
use crate::lower::Bug;

/// `attention(q, k, v, mask, bias, options)` and the like. Where its weights are wanted, or it has additive scores or
/// both sinks and dropout, the weights are computed apart from the sum.
pub fn attend(
    f: &mut Function<'_>,
    op: &Op,
    attention: &Attention,
    wanted: &Operands<'_>,
) -> Result<Code, Bug> {
    let Attention { score, scale, softcap, causal, dropout, has_mask, has_bias, has_sinks } = attention;
    let [q, k, v, rest @ ..] = wanted.inputs else {
        return Err(Bug("attention has too few inputs in the emitted program".to_owned()));
    };
    let scale = f.file.scalar(&f.file.program.constants.score_scale(*scale));
    let mut rest = rest.iter().copied();
    let (q, k, v) = (f.operand(*q), f.operand(*k), f.operand(*v));
    let mut next = |is_there: bool| match is_there.then(|| rest.next()) {
        None => Ok(Code::text("None")),
        Some(Some(id)) => Ok(f.optional(id)),
        Some(None) => Err(Bug("attention has too few inputs in the emitted program".to_owned())),
    };
    let (mask, bias) = (next(*has_mask)?, next(*has_bias)?);
    let sinks = match has_sinks.then(|| rest.next()) {
        None => None,
        Some(Some(id)) => Some(f.operand(id)),
        Some(None) => return Err(Bug("attention has no sinks in the emitted program".to_owned())),
    };
    let (kernel, score) = match score {
        Score::Dot => ("attention_weights", None),
        Score::Additive => match rest.next() {
            Some(id) => ("additive_weights", Some(f.operand(id))),
            None => return Err(Bug("additive scores have no weights in the emitted program".to_owned())),
        },
    };
    let softcap = softcap
        .map_or_else(|| Code::text("None"), |cap| code!["Some(", f.file.real(Named::Softcap, cap), ")"]);
    let options = code![
        Code::import("burn::tensor::ops::AttentionModuleOptions"),
        " { scale: Some(",
        scale,
        "), softcap: ",
        softcap,
        format!(", is_causal: {causal} }}")
    ];
    // A call may be written into a later line, so that a second variable of this name would be read by the first call.
    let attentions = f.module.nodes.iter().filter(|node| matches!(node.op, Op::Attention(_))).count();
    let options = if attentions > 1 {
        options
    } else {
        f.local("options", options);
        Code::text("options")
    };
    let wants_weights = wanted.results > 1;
    let drops = *dropout > 0.0;
    if wants_weights || attention.is_composed() || drops && *has_sinks {
        let sinks = sinks.map_or_else(|| Code::text("None"), |sinks| Code::call("Some", [sinks]));
        let given = [q, k].into_iter().chain(score).chain([mask, bias, sinks, options]);
        let weights = Code::call(Code::kernel(kernel), given);
        let drop = |weights: Code| -> Result<Code, Bug> {
            match drops {
                true => Ok(dropout_of(wanted, op)?.method("forward", [weights])),
                false => Ok(weights),
            }
        };
        if !wants_weights {
            return Ok(drop(weights)?.method("matmul", [v]));
        }
        // The weights are also a result, as they were before dropout, so the product takes a copy.
        let out = drop(Code::text("weights.clone()"))?.method("matmul", [v]);
        return Ok(code!["{ let weights = ", weights, "; (", out, ", weights) }"]);
    }
    if drops {
        let dropout = code!["&", dropout_of(wanted, op)?];
        let kernel = Code::kernel("attention_with_dropout");
        return Ok(Code::call(kernel, [q, k, v, mask, bias, options, dropout]));
    }
    if let Some(sinks) = sinks {
        let kernel = Code::kernel("attention_with_sinks");
        return Ok(Code::call(kernel, [q, k, v, mask, bias, sinks, options]));
    }
    Ok(Code::call(Code::kernel("attention"), [q, k, v, mask, bias, options]))
}
