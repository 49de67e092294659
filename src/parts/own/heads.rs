//! Lowers the words of heads: splitting and joining, positions, and attention.

use super::fields::Attend;
use super::lower::{Fault, Lowered, Lowering, Stack, origin, shape, size};
use super::plan::Amount;
use super::value::{Places, Wide};
use crate::diag::{Code, Diagnostic};
use crate::field;
use crate::ir::factor::Root;
use crate::ir::infer::Mismatch;
use crate::ir::op::{MaskRule, Op};
use crate::ir::{Dim, Extent, Factor, ValueId};
use crate::parts::attention::heads::repeated;
use crate::parts::mask::{Mask, MaskPart, WindowMask};
use crate::parts::position::Geometry;
use crate::parts::scope::{Memory, Padding};
use crate::parts::scores::{self, Scores};
use crate::source::Span;

/// The sizes of a value with heads, `[B, H, T, D]`.
pub(super) struct Heads {
    pub heads: Extent,
    pub length: Dim,
    pub features: Extent,
}

impl<'s> Lowering<'s> {
    pub(super) fn split(
        &mut self,
        x: &Wide,
        place: Span,
        heads: Option<&Amount>,
        name: &str,
    ) -> Lowered<Wide> {
        let amount = heads.ok_or(Mismatch("heads without a number".into()))?;
        let heads = size(amount, 1)?;
        if let Ok(id) = self.b.op(name, Op::SplitHeads { heads }, &[x.id]) {
            return Ok(Wide::new(id, x.from.clone()));
        }
        let message = match self.b.ty(x.id).shape.as_slice() {
            [_, _, width] | [_, width] | [width] => {
                format!("{width} features cannot be divided among {heads} heads")
            }
            _ => format!("`split` takes features, [B, T, H*D], but this is {}", self.shape(x)),
        };
        Err(misfit(place, message, x.from.iter().cloned().chain(origin(amount))))
    }

    pub(super) fn merge(&mut self, x: &Wide, place: Span, name: &str) -> Lowered<Wide> {
        let heads = self.heads("merge", x, place)?;
        let id = self.b.op(name, Op::MergeHeads, &[x.id])?;
        let words = format!("{} heads of {} features each", heads.heads, heads.features);
        Ok(Wide::new(id, vec![(place, words)]))
    }

    pub(super) fn repeat(
        &mut self,
        x: &Wide,
        place: Span,
        times: Option<&Amount>,
        name: &str,
    ) -> Lowered<Wide> {
        self.heads("repeat", x, place)?;
        let times = size(times.ok_or(Mismatch("a number of copies is missing".into()))?, 1)?;
        if times == 1 {
            return Ok(x.clone());
        }
        self.like(x, name, Op::RepeatHeads { times })
    }

    /// Turns heads by the positions of the block.
    pub(super) fn rotate(&mut self, x: &Wide, place: Span, at: Span, name: &str) -> Lowered<Wide> {
        let heads = self.heads("rotate", x, place)?;
        let stack = self.stack()?;
        let scheme = stack.position.scheme();
        if !scheme.rotates() {
            let message = format!(
                "`rotate` needs rotary positions, but the positions here are `{}`",
                stack.position.part()
            );
            let diagnostic = Diagnostic::error(Code::WrongPlace, at, message);
            return Err(Fault::Wrong(Box::new(
                diagnostic.help("give the model rotary positions, `position: rotary`, or remove the call"),
            )));
        }
        if let Some(diagnostic) = scheme.check((heads.features.get(), place), true).into_iter().next() {
            return Err(Fault::Wrong(Box::new(diagnostic)));
        }
        let needs = scheme.needs(stack.scope, geometry(stack, &heads, stack.scope.is_causal));
        let given: Vec<_> = needs.into_iter().flat_map(|id| self.of_stack(stack, id)).collect();
        let id = scheme.on_heads(&mut self.b, &given, name, x.id)?;
        Ok(Wide::new(id, x.from.clone()))
    }

    /// Attention as the stack has it: masked, with the bias of its positions, and with keys and values of earlier
    /// positions from the cache if the stack decodes.
    pub(super) fn attend(
        &mut self,
        fields: &Attend,
        inputs: &[(Wide, Span)],
        at: Span,
        name: &str,
    ) -> Lowered<Wide> {
        let [(q, q_place), (k, k_place), (v, v_place)] = inputs else {
            return Err(Mismatch("attention takes queries, keys and values".into()).into());
        };
        let stack = self.stack()?;
        let scope = stack.scope;
        let queries = self.heads("attend", q, *q_place)?;
        let keys = self.heads("attend", k, *k_place)?;
        let values = self.heads("attend", v, *v_place)?;
        let length = scope.sequence.queries();
        let memory = self.memory_of(&keys.length);
        let of_keys = memory.as_ref().map_or_else(|| length.clone(), |memory| memory.sequence.queries());
        let sizes = [(q, q_place, &queries), (k, k_place, &keys), (v, v_place, &values)];
        for ((value, place, sizes), length) in sizes.into_iter().zip([&length, &of_keys, &of_keys]) {
            if sizes.length != *length {
                let message = format!(
                    "`attend` takes a head for each of {length} positions, but this is {}",
                    self.shape(value)
                );
                return Err(misfit(*place, message, Vec::new()));
            }
        }
        let shapes =
            || format!("queries {}, keys {} and values {}", self.shape(q), self.shape(k), self.shape(v));
        let times = queries.heads.divide(keys.heads);
        let message = match times {
            _ if queries.features != keys.features => Some(format!(
                "the queries and keys of a head must have the same number of features: {}",
                shapes()
            )),
            _ if keys.heads != values.heads => {
                Some(format!("keys and values must have the same number of heads: {}", shapes()))
            }
            None => Some(format!("the heads of queries must be a multiple of those of keys: {}", shapes())),
            Some(_) => None,
        };
        if let Some(message) = message {
            return Err(misfit(at, message, [&q.from, &k.from, &v.from].into_iter().flatten().cloned()));
        }
        if let Some(memory) = memory {
            return self.attend_to_memory(fields, inputs, (&memory, times), at, name);
        }
        let mask = fields.window.map(|size| {
            let places = field::Places::of_names(at, vec![("size".to_owned(), fields.places.of("window"))]);
            MaskPart::Window(WindowMask { size, places })
        });
        let mask = Mask(mask.into_iter().collect());
        if let Some(diagnostic) = mask.check(scope.is_causal) {
            return Err(Fault::Wrong(Box::new(diagnostic)));
        }
        let rule = mask.rule(scope.is_causal);
        let geometry = geometry(stack, &queries, rule.causal);
        let (causal, of_mask) = rule.split();
        let padding = if scope.is_padded { Padding::Own } else { Padding::None };
        let mask = scores::mask(scope, scope.sequence, scope.sequence, of_mask, padding);
        let mask = mask.and_then(|id| self.of_stack(stack, id).first().copied());
        let scheme = stack.position.scheme();
        // Rotary positions act where the author writes `rotate`, which says what is turned.
        let needs = if scheme.rotates() { Vec::new() } else { scheme.needs(scope, geometry) };
        let given: Vec<_> = needs.into_iter().flat_map(|id| self.of_stack(stack, id)).collect();
        let (k, v) = (self.kept("k", k.id)?, self.kept("v", v.id)?);
        let (k, v) = repeated(&mut self.b, times.unwrap_or(Extent::from(1)), k, v)?;
        let bias = scheme.on_scores(&mut self.b, scope, &self.site.path, geometry, &given)?;
        let root = Root { of: queries.features, is_inverse: true };
        let usual = 1.0 / (queries.features.get() as f64).sqrt();
        let id = Scores {
            qkv: (q.id, k, v),
            mask,
            bias,
            sinks: None,
            score: None,
            scale: fields.scale.map_or(Factor::new(usual, Some(root)), |scale| Factor::from(*scale)),
            softcap: fields.softcap.map(|cap| *cap),
            causal,
            dropout: *fields.dropout,
        }
        .lower(&mut self.b, name)?;
        Ok(Wide::new(id, inputs.last().map(|(v, _)| v.from.clone()).unwrap_or_default()))
    }

    /// The encoder's output, if that has this length.
    pub(super) fn memory_of(&self, length: &Dim) -> Option<Memory> {
        let scope = self.site.stack?.scope;
        let of_memory = |memory: &Memory| memory.sequence.queries() == *length;
        scope.memory.clone().filter(|memory| of_memory(memory) && *length != scope.sequence.queries())
    }

    /// The mask of the encoder's output, of which only padding is hidden.
    pub(super) fn memory_mask(&mut self, memory: &Memory) -> Lowered<Option<ValueId>> {
        let stack = self.stack()?;
        let padding = if memory.is_padded { Padding::Memory } else { Padding::None };
        let (scope, rule) = (stack.scope, MaskRule::default());
        let mask = scores::mask(scope, scope.sequence, memory.sequence, rule, padding);
        Ok(mask.and_then(|id| self.of_stack(stack, id).first().copied()))
    }

    /// Refuses a window over the encoder's output, none of whose positions is nearer to a query than another.
    pub(super) fn has_no_window(&self, window: Option<field::Size>, at: Span) -> Lowered<()> {
        if window.is_none() {
            return Ok(());
        }
        let message = "a window counts the stack's own positions, but these keys are those of the memory";
        let diagnostic = Diagnostic::error(Code::WrongPlace, at, message.to_owned());
        Err(Fault::Wrong(Box::new(diagnostic.help("remove `window`"))))
    }

    /// Attention to the encoder's output: all of it is seen, and its positions have no distance to those here.
    fn attend_to_memory(
        &mut self,
        fields: &Attend,
        inputs: &[(Wide, Span)],
        (memory, times): (&Memory, Option<Extent>),
        at: Span,
        name: &str,
    ) -> Lowered<Wide> {
        let [(q, q_place), (k, _), (v, _)] = inputs else {
            return Err(Mismatch("attention takes queries, keys and values".into()).into());
        };
        self.has_no_window(fields.window, at)?;
        let queries = self.heads("attend", q, *q_place)?;
        let mask = self.memory_mask(memory)?;
        let (k, keys) = (k.id, v.id);
        let (k, v_id) = repeated(&mut self.b, times.unwrap_or(Extent::from(1)), k, keys)?;
        let root = Root { of: queries.features, is_inverse: true };
        let usual = 1.0 / (queries.features.get() as f64).sqrt();
        let id = Scores {
            qkv: (q.id, k, v_id),
            mask,
            bias: None,
            sinks: None,
            score: None,
            scale: fields.scale.map_or(Factor::new(usual, Some(root)), |scale| Factor::from(*scale)),
            softcap: fields.softcap.map(|cap| *cap),
            causal: false,
            dropout: *fields.dropout,
        }
        .lower(&mut self.b, name)?;
        Ok(Wide::new(id, v.from.clone()))
    }

    pub(super) fn shape(&self, value: &Wide) -> String {
        shape(self.b.ty(value.id))
    }

    /// The sizes of a value that has heads.
    pub(super) fn heads(&self, word: &str, value: &Wide, place: Span) -> Lowered<Heads> {
        let ty = self.b.ty(value.id);
        if let [_, heads, length, features] = ty.shape.as_slice()
            && let (Some(heads), Some(features)) = (heads.extent(), features.extent())
        {
            return Ok(Heads { heads, length: length.clone(), features });
        }
        let message = format!("`{word}` takes heads, [B, H, T, D], but this is {}", shape(ty));
        let diagnostic = Diagnostic::error(Code::ShapeMismatch, place, message);
        let diagnostic = value.from.iter().fold(diagnostic, |d, (span, words)| d.label(*span, words.clone()));
        Err(Fault::Wrong(Box::new(diagnostic.help("`split(x, heads)` splits features into heads"))))
    }
}

/// What a positional scheme knows of these heads.
pub(super) fn geometry(stack: Stack<'_>, heads: &Heads, is_causal: bool) -> Geometry {
    Geometry {
        heads: heads.heads,
        head_dim: heads.features,
        sequence: stack.scope.sequence,
        is_causal,
        context: stack.context,
    }
}

pub(super) fn misfit(at: Span, message: String, origins: impl IntoIterator<Item = (Span, String)>) -> Fault {
    // Several tensors may have their sizes from the same place.
    let mut known: Places = Vec::new();
    for origin in origins {
        if !known.contains(&origin) {
            known.push(origin);
        }
    }
    let diagnostic = Diagnostic::error(Code::ShapeMismatch, at, message);
    Fault::Wrong(Box::new(known.into_iter().fold(diagnostic, |d, (span, words)| d.label(span, words))))
}
