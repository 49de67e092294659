//! The types, costs and training memory of layers that are applied.

use super::meaning::{Given, Site, Types, size};
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, Layer, Type};

/// The type of a layer's result, or why the layer does not fit its input.
pub(super) fn infer(layer: &Layer, given: &Given<'_>) -> Types {
    if let Layer::Param { shape, .. } = layer {
        return match given.inputs {
            [] => Ok(vec![Type::float(shape.iter().map(|n| Dim::from(*n)))]),
            _ => fail("a parameter takes no input"),
        };
    }
    let x = match given.inputs {
        [x] => x,
        [x, residual] if layer.is_norm() => {
            if x != residual {
                return fail(format!("a residual of {x} is {residual}"));
            }
            x
        }
        _ => return fail("a layer takes one input, or two terms if it is a norm"),
    };
    let ends_in = |n: Extent| x.last() == Some(&Dim::from(n)) && x.dtype == DType::Float;
    match layer {
        Layer::Linear { input, output, .. } => {
            if !ends_in(*input) {
                return fail(format!("a projection of {input} features is given {x}"));
            }
            let mut ty = (*x).clone();
            if let Some(last) = ty.shape_mut().last_mut() {
                *last = Dim::from(*output);
            }
            Ok(vec![ty])
        }
        Layer::Embedding { dim, .. } => {
            // Positions are `[1, T]` and buckets of distances `[T, K]`.
            if x.dtype != DType::Int || x.shape.len() != 2 {
                return fail(format!("an embedding looks up `[B, T]` of indices, not {x}"));
            }
            Ok(vec![Type::float(x.shape.iter().cloned().chain([Dim::from(*dim)]))])
        }
        Layer::LayerNorm { dim, .. } | Layer::RmsNorm { dim, .. } => {
            if !ends_in(*dim) {
                return fail(format!("a norm over {dim} features is given {x}"));
            }
            // The norm, and the sum if it is one of two terms.
            Ok(vec![(*x).clone(); given.inputs.len()])
        }
        Layer::Patches { channels, dim, size, .. } => match x.shape.as_slice() {
            [batch, c, h, w] if *c == Dim::from(*channels) => {
                match (h.divide_by(*size), w.divide_by(*size)) {
                    (Some(rows), Some(columns)) => {
                        // The product would have the words of two quotients; readers know it as the number of
                        // patches.
                        let all = (&rows * &columns).extent();
                        let all = all
                            .map_or_else(|| &rows * &columns, |n| Extent::by_rule("patches", n.get()).into());
                        Ok(vec![Type::float([batch.clone(), all, Dim::from(*dim)])])
                    }
                    _ => fail(format!("patches of {size} do not divide {h}x{w}")),
                }
            }
            _ => fail(format!("patches are cut from `[B, {channels}, H, W]`, not {x}")),
        },
        Layer::Param { .. } => fail("a parameter takes no input"),
    }
}

/// Whether a layer computes each position of its result from the same position of its input.
pub(super) fn is_by_position(layer: &Layer) -> bool {
    match layer {
        Layer::Linear { .. } | Layer::Embedding { .. } | Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => {
            true
        }
        Layer::Patches { .. } | Layer::Param { .. } => false,
    }
}

/// The work of applying a layer.
pub(super) fn work(layer: &Layer, site: &Site<'_>) -> Work {
    let out = &site.out();
    let bias = |on: bool| if on { out.clone() } else { Dim::default() };
    let per_input =
        |steps: u64| Work { elementwise: &size(site.input(0)) * &Dim::of(steps), ..Work::computed(out) };
    let mut work = match layer {
        Layer::Linear { input: width, bias: has_bias, .. } => Work {
            // A multiply-add counts as two operations.
            matmul: &(out * &Dim::from(*width)) * &Dim::of(2u64),
            elementwise: bias(*has_bias),
            ..Work::computed(out)
        },
        Layer::Patches { channels, size, bias: has_bias, .. } => {
            let pixels = [*channels, *size, *size].into_iter().map(Dim::from).product();
            Work {
                matmul: &(out * &pixels) * &Dim::of(2u64),
                elementwise: bias(*has_bias),
                ..Work::computed(out)
            }
        }
        // Rows are only copied.
        Layer::Embedding { .. } => Work::computed(out),
        Layer::LayerNorm { affine, bias, .. } => {
            // The steps of norms, by the conventions of `ir::work`.
            per_input([5, u64::from(*affine), u64::from(*bias)].iter().sum())
        }
        Layer::RmsNorm { affine, .. } => per_input(if *affine { 4 } else { 3 }),
        Layer::Param { .. } => Work::default(),
    };
    if site.node.inputs.len() > 1 {
        work.add(&site.per_element(1));
    }
    work
}

/// What applying a layer to `inputs` inputs keeps in a training step.
pub(super) fn training(layer: &Layer, inputs: usize) -> Training {
    let training = training_of_one(layer);
    if inputs < 2 {
        return training;
    }
    // The norm of a sum, which is a result, too.
    let sum = Entry { size_of: 1, ..Entry::of_inputs(Passing::Shared, 2) };
    let mut both = sum.alone().then(training);
    if let Training::Computed { results, .. } = &mut both {
        *results = vec![1, 0];
    }
    both
}

fn training_of_one(layer: &Layer) -> Training {
    let (x, weight) = (Operand::Input(0), Operand::Weight);
    let both = |passing: Passing| Entry::new(passing, [x, weight]);
    match layer {
        // The weight is not counted as kept: it exists in any case.
        Layer::Linear { .. } => both(Passing::Fresh).keeping([x]).alone(),
        Layer::Embedding { .. } => Entry::new(Passing::Fresh, [weight]).alone(),
        // Mean and variance are computed once more for the gradient.
        Layer::LayerNorm { affine: true, .. } | Layer::RmsNorm { affine: true, .. } => {
            both(Passing::InPlace).keeping([x]).alone()
        }
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => {
            Entry::of_input(Passing::InPlace).keeping([x]).alone()
        }
        // The product of the patches, which are cut out of the image.
        Layer::Patches { .. } => Entry { copied: vec![x], ..both(Passing::Fresh) }.alone(),
        Layer::Param { .. } => Training::Member,
    }
}
