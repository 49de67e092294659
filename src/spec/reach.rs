//! Warns about masks that are wider than the context, and so hide nothing.

use std::collections::BTreeSet;

use super::block::Part;
use super::model::ModelSpec;
use crate::diag::{Code, Diagnostic, Sink};
use crate::parts::attention::Attention;
use crate::parts::mask::{Mask, MaskPart};
use crate::source::Span;

/// Reports every window, chunk and prefix that is longer than the context.
pub fn check(spec: &ModelSpec, sink: &mut Sink) {
    let Some(context) = spec.context else { return };
    let end = spec.places.of("context");
    let blocks = [&spec.encoder, &spec.decoder].into_iter().flatten().flat_map(|stack| &stack.blocks);
    let parts = blocks.flat_map(|block| &block.instances).map(|instance| instance.part.as_ref());
    // The same text may describe several parts.
    let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (what, size, place) in parts.filter_map(mask_of).flat_map(|mask| mask.0.iter()).filter_map(size_of) {
        // A context that is made smaller on the command line, or by a spec that extends this one, is a trial.
        let is_meant = place.source == end.source;
        if size <= context || !is_meant || !seen.insert((place.start, place.end)) {
            continue;
        }
        let message =
            format!("a {what} of {size} is longer than the context of {context}, so it hides nothing");
        let instead = match what {
            // Without it, nothing after the query would be seen.
            "prefix" => "write `bidirectional` if all of it is to be seen",
            _ => "remove it",
        };
        sink.push(
            Diagnostic::warning(Code::BeyondEnd, place, message)
                .label(end, format!("context is {context} here"))
                .help(format!("{instead}, or write a number below {context}")),
        );
    }
}

/// The mask of a part, if it has one.
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

/// What a rule of a mask is called, and the number of positions that it gives with its place.
fn size_of(part: &MaskPart) -> Option<(&'static str, u64, Span)> {
    match part {
        MaskPart::Window(rule) => Some(("window", *rule.size, rule.places.of("size"))),
        MaskPart::Prefix(rule) => Some(("prefix", *rule.size, rule.places.of("size"))),
        MaskPart::Chunk(rule) => Some(("chunk", *rule.size, rule.places.of("size"))),
        MaskPart::Causal(_) | MaskPart::Bidirectional(_) => None,
    }
}
