//! What the masks of a spec let its positions see: whether a decoder sees later ones, and warnings about masks that are
//! as wide as the context or wider, and so hide nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::block::Part;
use super::model::ModelSpec;
use crate::diag::{Code, Diagnostic, Sink};
use crate::ir::op::MaskRule;
use crate::parts::Head;
use crate::parts::attention::Attention;
use crate::parts::mask::{Mask, MaskPart};
use crate::source::Span;

/// A rule of a mask that gives a number of positions.
struct Rule {
    /// What it is called.
    what: &'static str,
    /// The number.
    size: u64,
    /// The smallest number that hides nothing in the context.
    least: u64,
    /// The place of the number.
    place: Span,
}

/// Reports every window, chunk and prefix that hides nothing because of its length, and masks under which a decoder sees
/// what it is to predict.
pub fn check(spec: &ModelSpec, sink: &mut Sink) {
    check_lengths(spec, sink);
    check_answer(spec, sink);
}

/// Reports masks under which every position of a decoder sees the next token, which its head learns to predict.
fn check_answer(spec: &ModelSpec, sink: &mut Sink) {
    let head = match &spec.head {
        Head::Lm(_) => "lm",
        Head::Translate(_) => "translate",
        Head::Mlm(_) | Head::Span(_) | Head::Tag(_) | Head::Classify(_) | Head::Embed(_) => return,
    };
    let parts = decoder_masks(spec).filter(|mask| !mask.rule(true).causal).flat_map(|mask| &mask.0);
    let places = parts.filter_map(|part| match part {
        MaskPart::Bidirectional(part) => Some(part.places.whole()),
        MaskPart::Window(_) | MaskPart::Prefix(_) | MaskPart::Chunk(_) | MaskPart::Causal(_) => None,
    });
    // The same text may describe several parts.
    let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
    for place in places.filter(|place| seen.insert((place.start, place.end))) {
        let message = format!("`{head}` predicts the next token, which every position sees under this mask");
        let help = "write `causal`, or `{prefix: N}` if only the first positions are to see one another; a model that \
                    fills in masked tokens is an `encoder` with the head `mlm`";
        sink.push(Diagnostic::warning(Code::HeadMismatch, place, message).help(help));
    }
}

fn check_lengths(spec: &ModelSpec, sink: &mut Sink) {
    let Some(context) = spec.context else { return };
    let end = spec.places.of("context");
    let rules =
        [(&spec.encoder, false), (&spec.decoder, true)].into_iter().flat_map(|(stack, is_decoder)| {
            let blocks = stack.iter().flat_map(|stack| &stack.blocks);
            let parts = blocks.flat_map(|block| &block.instances).map(|instance| instance.part.as_ref());
            parts.filter_map(mask_of).flat_map(move |mask| {
                let is_causal = mask.rule(is_decoder).causal;
                mask.0.iter().filter_map(move |part| rule_of(part, is_causal, context))
            })
        });
    // The same text may describe several parts.
    let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
    for Rule { what, size, least, place } in rules {
        // A context that is made smaller on the command line, or by a spec that extends this one, is a trial.
        let is_meant = place.source == end.source;
        if size < least || !is_meant || !seen.insert((place.start, place.end)) {
            continue;
        }
        let message = format!("a {what} of {size} hides nothing in a context of {context}");
        let instead = match what {
            // Without it, nothing after the query would be seen.
            "prefix" => "write `bidirectional` if all of it is to be seen",
            _ => "remove it",
        };
        sink.push(
            Diagnostic::warning(Code::BeyondEnd, place, message)
                .label(end, format!("context is {context} here"))
                .help(format!("{instead}, or write a number below {least}")),
        );
    }
}

/// The first mask of the decoder under which a position sees later ones, which it is to predict if the head predicts the
/// next token.
pub fn ahead(spec: &ModelSpec) -> Option<MaskRule> {
    decoder_masks(spec).map(|mask| mask.rule(true)).find(MaskRule::looks_ahead)
}

/// The spec with its masks as they are compared.
pub fn with_compared_masks(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    for (stack, is_decoder) in [(&mut spec.encoder, false), (&mut spec.decoder, true)] {
        let blocks = stack.iter_mut().flat_map(|stack| &mut stack.blocks);
        for instance in blocks.flat_map(|block| &mut block.instances) {
            let Some(mask) = mask_of(&instance.part).map(|mask| mask.compared(is_decoder)) else { continue };
            match Arc::make_mut(&mut instance.part) {
                Part::Attention(Attention::MultiHead(attention)) => attention.mask = mask,
                Part::Attention(Attention::Latent(attention)) => attention.mask = mask,
                Part::Attention(Attention::Own(_))
                | Part::Cross(_)
                | Part::Norm(_)
                | Part::Ffn(_)
                | Part::Gain(_)
                | Part::Own(_)
                | Part::Reading(_) => {}
            }
        }
    }
    spec
}

/// The masks of the decoder's own sequence.
fn decoder_masks(spec: &ModelSpec) -> impl Iterator<Item = &Mask> {
    let instances = spec.decoder.iter().flat_map(|stack| &stack.blocks).flat_map(|block| &block.instances);
    instances.filter_map(|instance| mask_of(instance.part.as_ref()))
}

/// The mask of a part, if it has one. No other part reads later positions of its own sequence.
fn mask_of(part: &Part) -> Option<&Mask> {
    match part {
        Part::Attention(Attention::MultiHead(attention)) => Some(&attention.mask),
        Part::Attention(Attention::Latent(attention)) => Some(&attention.mask),
        Part::Attention(Attention::Own(_))
        | Part::Cross(_)
        | Part::Norm(_)
        | Part::Ffn(_)
        | Part::Gain(_)
        | Part::Own(_)
        | Part::Reading(_) => None,
    }
}

/// A rule of a mask that gives a number, for a query that sees only earlier positions or those on both sides.
fn rule_of(part: &MaskPart, is_causal: bool, context: u64) -> Option<Rule> {
    let (what, size, places) = match part {
        MaskPart::Window(rule) => ("window", *rule.size, &rule.places),
        MaskPart::Prefix(rule) => ("prefix", *rule.size, &rule.places),
        MaskPart::Chunk(rule) => ("chunk", *rule.size, &rule.places),
        MaskPart::Causal(_) | MaskPart::Bidirectional(_) => return None,
    };
    // A query in the middle of its window sees half of it on each side.
    let is_centred = what == "window" && !is_causal;
    let least = if is_centred { context.saturating_mul(2).saturating_sub(1) } else { context };
    Some(Rule { what, size, least, place: places.of("size") })
}
