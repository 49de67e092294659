//! What is done to queries and keys before attention reads them.

use crate::ir::{Layer, MemberId, MemberKind, Module, Op, ValueId};

/// What is done to queries or keys between their projection and attention, in words and in this order.
pub(super) fn prepared(module: &Module, read: ValueId) -> Vec<&'static str> {
    let defining = |id: ValueId| module.nodes.iter().find(|node| node.outputs.contains(&id));
    let mut words = Vec::new();
    let mut at = defining(read);
    while let Some(node) = at {
        let is_norm = |member: MemberId| {
            matches!(
                &module.member(member).kind,
                MemberKind::Layer(Layer::LayerNorm { .. } | Layer::RmsNorm { .. })
            )
        };
        if matches!(node.op, Op::Rotate { .. }) {
            words.push("rotated by their positions");
        } else if matches!(node.op, Op::Clamp { .. }) {
            words.push("clipped");
        } else if matches!(node.op, Op::Layer { member } if is_norm(member)) {
            words.push("normalised");
        } else if !matches!(node.op, Op::SplitHeads { .. } | Op::RepeatHeads { .. } | Op::Cache) {
            // The projection, or something that has no common word.
            break;
        }
        at = node.inputs.first().and_then(|id| defining(*id));
    }
    words.reverse();
    words
}
