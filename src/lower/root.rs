//! Lowers the model: combines inputs, embeddings, stacks and head in the root module.

use std::rc::Rc;

use super::bug::Bug;
use super::stack::{self, Takes, camel};
use crate::diag::Diagnostic;
use crate::ir::build::{Arena, Builder};
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, Sequence};
use crate::ir::{Dim, Extent, Graph, MemberId, ModelKind, Role, Slot, Sym, Type, ValueId};
use crate::parts::embed::{self, Input};
use crate::parts::init::InitPlan;
use crate::parts::scope::{Ambients, Memory, Scope};
use crate::parts::{Head, Position, head};
use crate::spec::{Block, ModelSpec, Stack, reach};

/// One stack, with its place in the model.
struct StackSite<'a> {
    stack: &'a Stack,
    scope: Scope,
    vocab: Extent,
    context: u64,
    /// Whether it is the encoder or the decoder.
    slot: Slot,
    /// The name of the stack's member.
    name: &'static str,
    /// The names of the embedding's member and of its module.
    embed: (&'static str, &'static str),
    /// The names of the graph's inputs for tokens and mask.
    tokens: &'static str,
    mask: &'static str,
}

/// Lowers a spec to a graph. Returns also what is wrong with the initial values: rules that match no
/// parameter, and distributions that a parameter cannot have.
pub fn lower(spec: &ModelSpec, arena: &Arena) -> Result<(Graph, Vec<Diagnostic>), Bug> {
    let init = Rc::new(InitPlan::new(&spec.init));
    let places = places(spec, arena, &init);
    let graph = assemble(spec, arena, &init, &places)?;
    // Only now is it known which parameters the rules have matched.
    Ok((graph, init.faults()))
}

fn places<'a>(spec: &'a ModelSpec, arena: &Arena, init: &Rc<InitPlan>) -> Vec<StackSite<'a>> {
    let both = spec.kind() == ModelKind::EncoderDecoder;
    // An image has no context; the fixed length of its sequence is used instead.
    let context = spec.context.unwrap_or(0);
    // Without tokens no table has this size.
    let vocab = Extent::new("vocab", spec.vocab.unwrap_or(0));
    let d_model = Extent::new("d_model", spec.d_model);
    // All images have the same number of patches, so their length is part of the types.
    let sequence_of = |stack: &Stack, tokens: Sequence| match &stack.embed.patches {
        Some(patches) => Sequence::Fixed(patches.length()),
        None => tokens,
    };
    let mut places = Vec::new();
    // The encoder comes first, because the decoder reads its output.
    if let Some(encoder) = &spec.encoder {
        let sequence = sequence_of(encoder, if both { Sequence::Source } else { Sequence::Whole });
        let scope = Scope {
            arena: arena.clone(),
            init: init.clone(),
            path: "encoder".into(),
            // Without a second stack there is nothing to tell apart.
            prefix: if both { "Encoder" } else { "" }.into(),
            d_model,
            sequence,
            is_causal: false,
            // An image has no padding.
            is_padded: !matches!(sequence, Sequence::Fixed(_)),
            memory: None,
            ambients: Ambients::default(),
        };
        places.push(StackSite {
            stack: encoder,
            scope,
            vocab: spec.source_vocab.map_or(vocab, |n| Extent::new("source_vocab", n)),
            context: fixed(sequence).unwrap_or(context),
            slot: Slot::Encoder,
            name: "encoder",
            embed: if both { ("source_embed", "SourceEmbedding") } else { ("embed", "Embedding") },
            tokens: if both { "source" } else { "tokens" },
            mask: if both { "source_mask" } else { "mask" },
        });
    }
    if let Some(decoder) = &spec.decoder {
        let memory = places.first().map(|p| Memory {
            sequence: p.scope.sequence,
            width: d_model,
            is_padded: p.scope.is_padded,
        });
        let sequence = sequence_of(decoder, if decodes(spec) { Sequence::Cached } else { Sequence::Whole });
        let scope = Scope {
            arena: arena.clone(),
            init: init.clone(),
            path: "decoder".into(),
            prefix: if both { "Decoder" } else { "" }.into(),
            d_model,
            sequence,
            is_causal: true,
            // Targets are padded at their ends, where causality already hides the padding from every token.
            is_padded: !both && !matches!(sequence, Sequence::Fixed(_)),
            memory,
            ambients: Ambients::default(),
        };
        places.push(StackSite {
            stack: decoder,
            scope,
            vocab,
            context: fixed(sequence).unwrap_or(context),
            slot: Slot::Decoder,
            name: "decoder",
            embed: if both { ("target_embed", "TargetEmbedding") } else { ("embed", "Embedding") },
            tokens: if both { "target" } else { "tokens" },
            mask: "mask",
        });
    }
    places
}

fn fixed(sequence: Sequence) -> Option<u64> {
    match sequence {
        Sequence::Fixed(n) => Some(n.get()),
        Sequence::Whole | Sequence::Cached | Sequence::Source => None,
    }
}

/// Whether the model can decode token by token: the head predicts next tokens, no attention of the decoder
/// looks ahead, and no rotary angle changes as the sequence grows.
fn decodes(spec: &ModelSpec) -> bool {
    let predicts = matches!(spec.head, Head::Lm(_) | Head::Translate(_));
    let context = spec.context.unwrap_or(0);
    let is_steady = |b: &Block| match &b.position {
        Position::Rotary(rotary) => !rotary.scaling.changes_within(context),
        Position::None(_)
        | Position::Learned(_)
        | Position::Sinusoidal(_)
        | Position::Alibi(_)
        | Position::T5(_) => true,
    };
    let is_decoder = |s: &Stack| s.embed.patches.is_none() && s.blocks.iter().all(is_steady);
    predicts && reach::ahead(spec).is_none() && spec.decoder.as_ref().is_some_and(is_decoder)
}

/// The root module under construction, with the values that later parts use.
struct Root {
    b: Builder,
    inputs: Vec<(&'static str, ValueId)>,
}

impl Root {
    fn input(&self, name: &str) -> Option<ValueId> {
        self.inputs.iter().find(|(n, _)| *n == name).map(|(_, id)| *id)
    }
}

fn input_name(input: Input, place: &StackSite<'_>) -> Option<&'static str> {
    match input {
        Input::Tokens => Some(place.tokens),
        Input::Image => Some("image"),
        Input::TokenTypes => Some("token_types"),
        Input::Language => Some("language"),
        Input::Table => None,
    }
}

fn assemble(
    spec: &ModelSpec,
    arena: &Arena,
    init: &Rc<InitPlan>,
    places: &[StackSite<'_>],
) -> Result<Graph, Bug> {
    let mut root = Root { b: Builder::new(arena, type_name(&spec.name), Role::Head), inputs: Vec::new() };
    root.b.at(spec.places.whole());
    root.b.doc(format!("{}.", description(spec)));
    let d_model = Extent::new("d_model", spec.d_model);
    // A shared table belongs to the first embedding; the second one borrows it.
    // `shared` of the model's `embed` holds for both stacks; one that a stack takes back is not shared.
    let shared = places.len() == 2 && places.iter().all(|p| p.stack.embed.shared);
    let sites: Vec<embed::Site<'_>> = places
        .iter()
        .enumerate()
        .map(|(i, p)| embed::Site {
            arena,
            init,
            path: p.embed.0,
            module: p.embed.1,
            vocab: p.vocab,
            d_model,
            sequence: p.scope.sequence,
            context: Extent::new("context", p.context),
            borrows_table: shared && i == 1,
        })
        .collect();
    // All inputs come first, in the order in which readers see them, before anything uses them.
    for (place, site) in places.iter().zip(&sites) {
        for input in place.stack.embed.inputs(site.borrows_table) {
            let Some(name) = input_name(input, place) else { continue };
            // Both stacks may read the same input, such as the language.
            if root.input(name).is_none() {
                let id = root.b.argument(name, place.stack.embed.input_type(input, site));
                root.inputs.push((name, id));
            }
        }
        if place.scope.is_padded {
            let ty = Type::int([Dim::sym(Sym::Batch), place.scope.sequence.keys()]).or_absent();
            let id = root.b.argument(place.mask, ty);
            root.inputs.push((place.mask, id));
        }
    }
    // The head reads the result of the last stack.
    let last = places.last().ok_or(Mismatch("no stack".into()))?;
    // A causal decoder does not need to know about padding at the end, but a head may.
    let is_pooled = !matches!(last.scope.sequence, Sequence::Fixed(_)) && spec.head.pools_by_mask();
    if is_pooled && !last.scope.is_padded {
        let ty = Type::int([Dim::sym(Sym::Batch), last.scope.sequence.keys()]).or_absent();
        let id = root.b.argument(last.mask, ty);
        root.inputs.push((last.mask, id));
    }
    let mut tables: Vec<Vec<MemberId>> = Vec::new();
    let mut memory: Option<ValueId> = None;
    let mut hidden = None;
    for (place, site) in places.iter().zip(&sites) {
        let lowered = place.stack.embed.lower(site)?;
        let mut args = Vec::new();
        for input in place.stack.embed.inputs(site.borrows_table) {
            args.push(match input_name(input, place) {
                Some(name) => root.input(name).ok_or(Mismatch(format!("no input {name}")))?,
                None => {
                    // A borrowed table is not an input but a parameter of the first embedding.
                    let path = tables.first().cloned().unwrap_or_default();
                    root.b.op("table", Op::Weight { path }, &[])?
                }
            });
        }
        let member = root.b.child(place.embed.0, lowered.module);
        let embedded = root.b.op("x", Op::Call { member }, &args)?;
        // A tied head reads the last table, which then is the shared one.
        if site.borrows_table {
            tables.extend(tables.first().cloned());
        } else if let Some(table) = lowered.table {
            tables.push(vec![member, table]);
        }
        let stack = stack::lower(place.stack, (place.slot, place.name), &place.scope, place.context)?;
        let mut args = vec![embedded];
        for taken in &stack.takes {
            args.push(match taken {
                Takes::Memory => memory.ok_or(Mismatch("no memory".into()))?,
                Takes::MemoryMask => root.input("source_mask").ok_or(Mismatch("no source_mask".into()))?,
                Takes::Mask => root.input(place.mask).ok_or(Mismatch("no mask".into()))?,
            });
        }
        let member = root.b.child(place.name, stack.module);
        let is_last = places.last().is_some_and(|last| std::ptr::eq(place, last));
        let value = root.b.op(if is_last { "hidden" } else { "memory" }, Op::Call { member }, &args)?;
        memory = Some(value);
        hidden = Some(value);
    }
    let hidden = hidden.ok_or(Mismatch("no stack".into()))?;
    let site = head::Site {
        arena,
        init,
        d_model,
        sequence: last.scope.sequence,
        vocab: last.vocab,
        table_width: last.stack.embed.width(d_model),
        is_padded: last.scope.is_padded || is_pooled,
        before_patches: last.stack.embed.before_patches(),
    };
    let lowered = spec.head.lower(&site)?;
    let mut args = vec![hidden];
    if lowered.takes_table {
        let path = tables.last().cloned().ok_or(Mismatch("no table to tie".into()))?;
        args.push(root.b.op("table", Op::Weight { path }, &[])?);
    }
    if lowered.takes_mask {
        args.push(root.input(last.mask).ok_or(Mismatch("no mask".into()))?);
    }
    let member = root.b.child("head", lowered.module);
    let results = root.b.ops(spec.head.outputs(), Op::Call { member }, &args)?;
    let root = root.b.finish(&results);
    Ok(Graph {
        name: spec.name.clone(),
        modules: arena.clone().into_modules(),
        root,
        context: last.context,
        vocab: spec.vocab,
        // What `decodes` above has found, since it chose this sequence.
        decodes: last.scope.sequence == Sequence::Cached,
        kind: spec.kind(),
    })
}

/// The name of the type in emitted code.
fn type_name(name: &str) -> String {
    let camel = camel(name);
    match camel.chars().next() {
        None => "Model".to_owned(),
        // The name of a type cannot begin with a digit.
        Some(c) if c.is_ascii_digit() => format!("Model{camel}"),
        Some(_) => camel,
    }
}

fn description(spec: &ModelSpec) -> String {
    let stack = |name: &str, stack: &Option<Stack>| {
        let layers = stack.as_ref()?.layers;
        Some(format!("{name} of {layers} layer{}", if layers == 1 { "" } else { "s" }))
    };
    let stacks = [stack("an encoder", &spec.encoder), stack("a decoder", &spec.decoder)];
    let stacks: Vec<String> = stacks.into_iter().flatten().collect();
    format!("{}: {}, width {}", spec.name, stacks.join(" and "), spec.d_model)
}
