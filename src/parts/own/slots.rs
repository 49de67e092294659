//! Parts that a spec defines in the slots of a block: which of them fit.

use super::check::check;
use super::plan::{MEMORY, OwnPart};
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::definition::Definitions;
use crate::field::words::listed;
use crate::syntax::tree::{Kind, Node, Style};

/// The slot of what reads other positions.
const ATTENTION: &str = "attention";

/// The slot of what is given the rows of some tokens.
const EXPERT: &str = "expert";

impl OwnPart {
    /// The part in a slot, if the slot's node names one that the spec defines: its name alone, or with its
    /// fields. `None` if it does not; `Some(None)` after an error.
    pub fn in_slot(node: &Node, slot: &str, cx: &mut Context<'_>) -> Option<Option<Self>> {
        let name = Self::named(node, cx.definitions())?.to_owned();
        let Some(part) = Self::alone(node, &name, slot, cx) else { return Some(None) };
        if part.definition.inputs.len() != 1 || part.reads_memory() {
            let message = if part.reads_memory() {
                format!("`{name}` reads the memory, but a part in `{slot}` is not given it")
            } else {
                let inputs = part.definition.inputs.len();
                format!("`{name}` has {inputs} inputs, but a part in `{slot}` is given one")
            };
            cx.report(
                Diagnostic::error(Code::WrongArguments, node.span, message)
                    .label(part.definition.span, "defined here")
                    .help("call it by its name in the block's equation"),
            );
            return Some(None);
        }
        // What attends is given the whole sequence.
        if let Some(message) = part.needs_stack(slot).filter(|_| slot != ATTENTION) {
            cx.report(
                Diagnostic::error(Code::WrongPlace, node.span, message)
                    .label(part.definition.span, "defined here")
                    .help(format!("call it by its name in the block's equation, or put it in `{ATTENTION}`")),
            );
            return Some(None);
        }
        // What attends is checked in its block, where the values of the stack are known.
        if slot != ATTENTION && check(&part, cx).is_none() {
            return Some(None);
        }
        // The rows of an expert are those of a few tokens, in no order and without their batch.
        if let Some(word) = part.of_losses().filter(|_| slot == EXPERT) {
            let message =
                format!("`{name}` calls `{word}`, and the experts of a mixture have no losses of their own");
            cx.report(
                Diagnostic::error(Code::WrongPlace, node.span, message)
                    .label(part.definition.span, "defined here")
                    .help("`balance` and `z_loss` of `moe` are losses of the router"),
            );
            return Some(None);
        }
        Some(Some(part))
    }

    /// The part in the slot of cross attention, as [`OwnPart::in_slot`] has those of the others. It is given the
    /// stack's sequence and then the memory.
    pub fn of_memory(node: &Node, slot: &str, cx: &mut Context<'_>) -> Option<Option<Self>> {
        let name = Self::named(node, cx.definitions())?.to_owned();
        let Some(part) = Self::alone(node, &name, slot, cx) else { return Some(None) };
        let inputs: Vec<&str> = part.definition.inputs.iter().map(|(name, _)| name.as_str()).collect();
        if !matches!(inputs.as_slice(), [x, memory] if *x != MEMORY && *memory == MEMORY) {
            let message =
                format!("a part in `{slot}` takes `x` and `memory`, but `{name}` takes {}", listed(&inputs));
            // The equation of a part that comes along cannot be changed.
            let help = if cx.definitions().shared.contains(&name) {
                "give the fields of attention, such as `heads`, or a part of your own whose equation begins with \
                 `(x, memory):`"
            } else {
                "begin its equation with `(x, memory):`"
            };
            cx.report(
                Diagnostic::error(Code::WrongArguments, node.span, message)
                    .label(part.definition.span, "defined here")
                    .help(help),
            );
            return Some(None);
        }
        Some(Some(part))
    }

    /// The name of the part of the spec that a slot's node names, if it does.
    pub fn named<'n>(node: &'n Node, definitions: &Definitions) -> Option<&'n str> {
        let name = match &node.kind {
            Kind::Scalar(s) if s.style != Style::Quoted => s.text.trim(),
            Kind::Map(entries) => entries.iter().find(|e| definitions.has(&e.key))?.key.as_str(),
            Kind::Scalar(_) | Kind::Null | Kind::List(_) | Kind::Delete => return None,
        };
        definitions.has(name).then_some(name)
    }

    /// The part of that name, which a slot's node has alone; `None` after an error.
    fn alone(node: &Node, name: &str, slot: &str, cx: &mut Context<'_>) -> Option<Self> {
        let null = Node { kind: Kind::Null, span: node.span };
        let own = node.entry(name);
        if let Some(own) = own.filter(|_| node.entries().is_some_and(|entries| entries.len() > 1)) {
            let message = format!("`{slot}` holds one part, but `{name}` has other keys next to it");
            cx.report(
                Diagnostic::error(Code::SeveralParts, own.key_span, message)
                    .help(format!("put the fields inside `{name}: {{...}}`")),
            );
            return None;
        }
        Self::decode(name, own.map_or(&null, |own| &own.value), cx)
    }
}
