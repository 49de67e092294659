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
use crate::syntax::expr::Scope as _;

/// Checks the shapes of a part whose inputs are as wide as the stack, and whether its result is as wide, too. One
/// that needs the values of a stack is checked where these are known, by [`check_in_block`].
pub fn check(part: &OwnPart, cx: &mut Context<'_>) -> Option<()> {
    if part.of_stack().is_some() { Some(()) } else { checked(part, &Position::nowhere(), false, cx) }
}

/// The same for a part that needs the values of a stack, which is causal or not, in a block with these positions.
pub fn check_in_block(part: &OwnPart, position: &Position, is_causal: bool, cx: &mut Context<'_>) {
    if part.of_stack().is_some() {
        // What is wrong has been reported.
        let _ = checked(part, position, is_causal, cx);
    }
}

fn checked(part: &OwnPart, position: &Position, is_causal: bool, cx: &mut Context<'_>) -> Option<()> {
    // Without a width, which is an error of its own, nothing can be said.
    let (number, place) = cx.lookup("d_model")?;
    let d_model = Extent::new("d_model", number.to_u64().filter(|n| (1..=MAX_SIZE).contains(n))?);
    let context = cx.lookup("context").and_then(|(context, _)| context.to_u64()).unwrap_or(1);
    // With an arena of its own, so that nothing is left of it; initial values have no influence on shapes.
    let scope = Scope {
        arena: Arena::new(),
        init: InitPlan::new(&init::Init::default()).into(),
        path: String::new(),
        prefix: String::new(),
        d_model,
        sequence: Sequence::Whole,
        is_causal,
        is_padded: false,
        memory: Some(scope::Memory { sequence: Sequence::Source, width: d_model, is_padded: false }),
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
                "the result of `{}` is {}, and a part in a block returns {}, as it is given",
                part.name(),
                shape(&ty),
                shape(&input)
            );
            let diagnostic = Diagnostic::error(Code::ShapeMismatch, part.definition.result.span, message);
            let diagnostic = from.into_iter().fold(diagnostic, |d, (span, text)| d.label(span, text));
            let diagnostic = place
                .into_iter()
                .fold(diagnostic, |d, span| d.label(span, format!("d_model is {number} here")));
            diagnostic.help("end with a projection to that width: `linear(.., d_model)`")
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
