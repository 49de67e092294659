//! Checks the shapes of a use of a part, by lowering it once before the spec is accepted.

use super::lower::{Fault, Outcome, Site, Stack, module, shape};
use super::plan::OwnPart;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::value::MAX_SIZE;
use crate::ir::Extent;
use crate::ir::build::Arena;
use crate::ir::op::Sequence;
use crate::parts::init::{self, InitPlan};
use crate::parts::position::Position;
use crate::parts::scope::{self, Scope};
use crate::source::Span;
use crate::syntax::expr::Scope as _;

/// Checks the shapes of a part that is given each position by itself: its inputs are as wide as the stack, and its
/// result must be so, too.
pub fn check(part: &OwnPart, cx: &mut Context<'_>) -> Option<()> {
    checked(part, &Position::nowhere(), (Sequence::Whole, false), cx)
}

/// The same for a part that a block calls with whole sequences. The stack is given as its sequence and whether it is
/// causal; its positional scheme is absent if it is not known because of an error.
pub fn check_in_block(
    part: &OwnPart,
    position: Option<&Position>,
    stack: (Sequence, bool),
    cx: &mut Context<'_>,
) {
    let nowhere = Position::nowhere();
    if let Some(position) = position.or(part.of_stack().is_none().then_some(&nowhere)) {
        // What is wrong has been reported.
        let _ = checked(part, position, stack, cx);
    }
}

fn checked(
    part: &OwnPart,
    position: &Position,
    (sequence, is_causal): (Sequence, bool),
    cx: &mut Context<'_>,
) -> Option<()> {
    // Without a width, which is an error of its own, nothing can be said.
    let (number, place) = cx.lookup("d_model")?;
    let d_model = Extent::new("d_model", number.to_u64().filter(|n| (1..=MAX_SIZE).contains(n))?);
    let context = cx.lookup("context").and_then(|(context, _)| context.to_u64()).unwrap_or(1);
    if cx.is_again() {
        return Some(());
    }
    // With an arena of its own, so that nothing is left of it; initial values have no influence on shapes.
    let scope = Scope {
        arena: Arena::new(),
        init: InitPlan::new(&init::Init::default()).into(),
        path: String::new(),
        prefix: String::new(),
        d_model,
        sequence,
        is_causal,
        // An image has no padding.
        is_padded: !matches!(sequence, Sequence::Fixed(_)),
        memory: Some(scope::Memory { sequence: Sequence::Source, width: d_model, is_padded: true }),
        ambients: scope::Ambients::default(),
    };
    let input = scope.activations(d_model);
    let origins = place.into_iter().map(|span| (span, format!("d_model is {number} here"))).collect();
    let site = Site {
        origins: vec![origins; part.definition.inputs.len()],
        ..Site::called(part, part.name(), Stack { scope: &scope, position, context })
    };
    let wrong = match module(part, &site) {
        Ok(Outcome { ty, .. }) if ty == input => return Some(()),
        Ok(Outcome { ty, from, .. }) => {
            let message = format!(
                "the result of `{}` is {}, but a part in a block must return {}, the shape that it is given",
                part.name(),
                shape(&ty),
                shape(&input)
            );
            let diagnostic = Diagnostic::error(Code::ShapeMismatch, part.definition.result.span, message);
            let diagnostic = from.iter().cloned().fold(diagnostic, |d, (span, text)| d.label(span, text));
            let is_told = |span: &Span| from.iter().any(|(other, _)| other == span);
            let diagnostic = place
                .into_iter()
                .filter(|span| !is_told(span))
                .fold(diagnostic, |d, span| d.label(span, format!("d_model is {number} here")));
            diagnostic.help(match ty.shape.len() {
                4 => "join the heads, `merge(..)`, and end with a projection to that width: `linear(merge(..), d_model)`",
                _ => "end with a projection to that width: `linear(.., d_model)`",
            })
        }
        Err(Fault::Wrong(diagnostic)) => *diagnostic,
        Err(Fault::Bug(mismatch)) => Diagnostic::error(Code::ShapeMismatch, part.definition.span, mismatch.0),
    };
    // Without fields, every use of the part has the same fault, and it is reported once.
    cx.report(if part.definition.fields.is_empty() {
        wrong
    } else {
        wrong.label(part.places.whole(), "for this use of the part")
    });
    None
}
