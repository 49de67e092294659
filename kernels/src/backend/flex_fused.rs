//! The kernels with backward passes on burn's own CPU backend.

use burn::backend::ops::AttentionModuleOptions;
use burn::backend::ops::IntTensorOps;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{DispatchTensorKind, Flex, TensorMetadata};
use burn::prelude::{Shape, Tensor};
use burn::tensor::{DType, Distribution, IntDType};
use burn_flex::{FlexDevice, FlexTensor};

use super::flex_product::{product, product_of_transpose, product_with_transpose};
use super::flex_tensor::{contiguous, is_ours, last, numbers, owned, retire, unset, writable, zeros};
use super::fused::{Fused, MayFuse};
use super::{Activation, AdamW, Affine, Bias, Extra, Norm, Pairing, Parts};
use crate::cpu::attention::{Gradients, Scores, Sizes, Table, attention, attention_backward};
use crate::cpu::cross_entropy::{Rows, cross_entropy, cross_entropy_backward};
use crate::cpu::dropout::Dropout;
use crate::cpu::rotary::{Angles, rotate};
use crate::cpu::simd;
use crate::cpu::sums::{add_to_rows, sum_rows};
use crate::cpu::{activation, adamw, decode_attention, norm};

/// The kernels on slices in `cpu`, given the numbers of Flex's tensors.
#[derive(Debug)]
struct Slices;

impl MayFuse for Flex {
    fn fused(like: &FloatTensor<Self>) -> Option<&'static dyn Fused<Self>> {
        is_ours(like).then_some(&Slices)
    }
}

impl Fused<Flex> for Slices {
    fn linear_backward(
        &self,
        x: Option<FloatTensor<Flex>>,
        weight: Option<FloatTensor<Flex>>,
        with_bias: bool,
        gradient: FloatTensor<Flex>,
    ) -> [Option<FloatTensor<Flex>>; 3] {
        let gradient = contiguous(gradient);
        let of_x = weight.map(|weight| product_with_transpose(gradient.clone(), weight));
        let of_weight = x.map(|x| product_of_transpose(x, gradient.clone()));
        let of_bias = with_bias.then(|| {
            let mut of_bias = zeros(Shape::from([last(&gradient)]));
            sum_rows(numbers(&gradient), of_bias.storage_mut());
            of_bias
        });
        retire(gradient);
        [of_x, of_weight, of_bias]
    }

    fn unembed_backward(
        &self,
        x: Option<FloatTensor<Flex>>,
        table: Option<FloatTensor<Flex>>,
        gradient: FloatTensor<Flex>,
    ) -> [Option<FloatTensor<Flex>>; 2] {
        let gradient = contiguous(gradient);
        let of_x = table.map(|table| product(gradient.clone(), table, Bias::Nothing, None));
        let of_table = x.map(|x| product_of_transpose(gradient, x));
        [of_x, of_table]
    }

    fn look_up_backward(
        &self,
        indices: IntTensor<Flex>,
        rows: usize,
        gradient: FloatTensor<Flex>,
    ) -> FloatTensor<Flex> {
        let gradient = contiguous(gradient);
        let width = last(&gradient);
        let mut found = zeros(Shape::from([rows, width]));
        add_to_rows(numbers(&gradient), &integers(indices), width, found.storage_mut());
        retire(gradient);
        found
    }

    fn gate_backward(
        &self,
        gate: FloatTensor<Flex>,
        x: FloatTensor<Flex>,
        activation: Activation,
        gradient: FloatTensor<Flex>,
    ) -> [FloatTensor<Flex>; 2] {
        // The memory of the result's gradient becomes that of the gate.
        let (gate, x, mut gradient) = (contiguous(gate), contiguous(x), writable(gradient));
        let mut of_x = unset(x.shape());
        if let Some(gradient) = owned(&mut gradient) {
            activation::gate_backward(activation, numbers(&gate), numbers(&x), gradient, of_x.storage_mut());
        }
        [gate, x].into_iter().for_each(retire);
        [gradient, of_x]
    }

    fn norm(&self, x: FloatTensor<Flex>, affine: Affine<Flex>, norm: Norm) -> FloatTensor<Flex> {
        let (weight, bias) = affine.parts();
        let (x, weight, bias) = (contiguous(x), contiguous(weight), bias.map(contiguous));
        let mut y = unset(x.shape());
        let bias = bias.as_ref().map_or(&[] as &[f32], numbers);
        norm::norm(norm, numbers(&x), numbers(&weight), bias, y.storage_mut());
        retire(x);
        y
    }

    fn add_norm(
        &self,
        terms: [FloatTensor<Flex>; 2],
        affine: Affine<Flex>,
        norm: Norm,
    ) -> (FloatTensor<Flex>, FloatTensor<Flex>) {
        let (weight, bias) = affine.parts();
        let (weight, bias) = (contiguous(weight), bias.map(contiguous));
        // The sum is written over a term that nothing else needs. Its order does not change its bits.
        let [mut x, mut term] = terms.map(contiguous);
        if owned(&mut x).is_none() {
            (x, term) = (term, x);
        }
        let mut sum = writable(x);
        let mut y = unset(sum.shape());
        let bias = bias.as_ref().map_or(&[] as &[f32], numbers);
        if let Some(sum) = owned(&mut sum) {
            norm::add_norm(norm, sum, numbers(&term), numbers(&weight), bias, y.storage_mut());
        }
        retire(term);
        (y, sum)
    }

    fn norm_backward(
        &self,
        x: FloatTensor<Flex>,
        weight: FloatTensor<Flex>,
        has_bias: bool,
        norm: Norm,
        gradient: FloatTensor<Flex>,
    ) -> (FloatTensor<Flex>, FloatTensor<Flex>, Option<FloatTensor<Flex>>) {
        // The memory of the result's gradient becomes that of `x`.
        let (x, weight, mut gradient) = (contiguous(x), contiguous(weight), writable(gradient));
        let mut of_weight = zeros(weight.shape());
        let mut of_bias = has_bias.then(|| zeros(weight.shape()));
        let bias = of_bias.as_mut().map_or(&mut [] as &mut [f32], |bias| bias.storage_mut());
        if let Some(gradient) = owned(&mut gradient) {
            norm::norm_backward(norm, numbers(&x), numbers(&weight), gradient, of_weight.storage_mut(), bias);
        }
        retire(x);
        (gradient, of_weight, of_bias)
    }

    fn rotate(
        &self,
        x: FloatTensor<Flex>,
        angles: [FloatTensor<Flex>; 2],
        pairing: Pairing,
    ) -> FloatTensor<Flex> {
        let (x, [cos, sin]) = (in_order(x), angles.map(contiguous));
        let sizes = sizes(&x, &x, &x);
        let mut y = unset(x.shape());
        let angles = Angles { cos: numbers(&cos), sin: numbers(&sin), pairs: last(&cos) };
        rotate(table(&x, x.storage()), sizes, angles, pairing, y.storage_mut());
        retire(x);
        y
    }

    fn attends(&self, q: &FloatTensor<Flex>, k: &FloatTensor<Flex>, v: &FloatTensor<Flex>) -> bool {
        // `q` is not tested here: `fused` was called with it.
        fits_tiles(sizes_of([q, k, v])) && is_ours(k) && is_ours(v)
    }

    fn attention(
        &self,
        qkv: [FloatTensor<Flex>; 3],
        extra: Extra<Flex>,
        options: AttentionModuleOptions,
    ) -> (FloatTensor<Flex>, FloatTensor<Flex>) {
        let [q, k, v] = qkv.map(in_order);
        let sizes = sizes(&q, &k, &v);
        let shape = q.shape();
        let mut y = unset(Shape::from([shape[0], sizes.heads, sizes.queries, sizes.values]));
        let mut norms = zeros(Shape::from([shape[0], sizes.heads, sizes.queries, 2]));
        let extra = Tables::new(extra);
        let (pairs, _) = norms.storage_mut::<f32>().as_chunks_mut::<2>();
        let tables = [&q, &k, &v].map(|x| table(x, x.storage()));
        attention(tables, sizes, &extra.scores(sizes, options), y.storage_mut(), pairs);
        [q, k, v].into_iter().for_each(retire);
        (heads_last(y), norms)
    }

    fn attention_backward(
        &self,
        qkv: [FloatTensor<Flex>; 3],
        extra: Extra<Flex>,
        options: AttentionModuleOptions,
        norms: FloatTensor<Flex>,
        gradient: FloatTensor<Flex>,
        wanted: [bool; 2],
    ) -> ([FloatTensor<Flex>; 3], [Option<FloatTensor<Flex>>; 2]) {
        let [q, k, v] = qkv.map(in_order);
        let gradient = in_order(gradient);
        let sizes = sizes(&q, &k, &v);
        // Zeros, because the kernel adds to the gradients of keys and values tile by tile.
        let mut found = [&q, &k, &v].map(|x| zeros(x.shape()));
        let (batch, heads) = (q.shape()[0], sizes.heads);
        let [with_bias, with_sinks] = wanted;
        let mut of_bias = with_bias.then(|| zeros(Shape::from([batch, heads, sizes.queries, sizes.keys])));
        let mut of_sinks = vec![0.0; if with_sinks { batch * heads } else { 0 }];
        let extra = Tables::new(extra);
        let [of_q, of_k, of_v] = &mut found;
        let to = Gradients {
            q: of_q.storage_mut(),
            k: of_k.storage_mut(),
            v: of_v.storage_mut(),
            bias: of_bias.as_mut().map_or(&mut [] as &mut [f32], |bias| bias.storage_mut()),
            sinks: &mut of_sinks,
        };
        let (pairs, _) = numbers(&norms).as_chunks::<2>();
        let tables = [&q, &k, &v].map(|x| table(x, x.storage()));
        let of_y = table(&gradient, gradient.storage());
        attention_backward(tables, sizes, &extra.scores(sizes, options), pairs, of_y, to);
        [q, k, v, gradient, norms].into_iter().for_each(retire);
        let of_sinks = with_sinks.then(|| {
            let mut sum = zeros(Shape::from([heads]));
            sum_rows(&of_sinks, sum.storage_mut());
            sum
        });
        (found.map(heads_last), [of_bias, of_sinks])
    }

    fn cross_entropy(
        &self,
        logits: FloatTensor<Flex>,
        classes: IntTensor<Flex>,
        weights: FloatTensor<Flex>,
        smoothing: f64,
    ) -> (FloatTensor<Flex>, FloatTensor<Flex>) {
        let (logits, weights) = (contiguous(logits), contiguous(weights));
        let mut logs = zeros(Shape::from([logits.shape()[0]]));
        let classes = integers(classes);
        let rows = Rows { classes: &classes, weights: numbers(&weights), smoothing: smoothing as f32 };
        let sum = cross_entropy(numbers(&logits), rows, logs.storage_mut());
        let mut found = zeros(Shape::from([1]));
        found.storage_mut::<f32>().fill(sum);
        (found, logs)
    }

    fn cross_entropy_backward(
        &self,
        logits: FloatTensor<Flex>,
        (classes, weights, smoothing): (IntTensor<Flex>, FloatTensor<Flex>, f64),
        sums: FloatTensor<Flex>,
        gradient: FloatTensor<Flex>,
    ) -> FloatTensor<Flex> {
        // The memory of the logits becomes that of their gradient, since both are among the largest tensors of a step.
        let (mut logits, weights, gradient) = (writable(logits), contiguous(weights), contiguous(gradient));
        let classes = integers(classes);
        let rows = Rows { classes: &classes, weights: numbers(&weights), smoothing: smoothing as f32 };
        // The loss is one number, and so is its gradient.
        let factor = numbers(&gradient).first().copied().unwrap_or_default();
        if let Some(logits) = owned(&mut logits) {
            cross_entropy_backward(logits, rows, numbers(&sums), factor);
        }
        retire(sums);
        logits
    }

    fn adamw(&self, tensors: [FloatTensor<Flex>; 4], step: AdamW) -> [FloatTensor<Flex>; 3] {
        let [x, gradient, first, second] = tensors;
        let gradient = contiguous(gradient);
        // In place where nothing else uses the memory, so that a step allocates nothing of that size.
        let mut updated = [x, first, second].map(writable);
        let [x, first, second] = &mut updated;
        if let (Some(x), Some(first), Some(second)) = (owned(x), owned(first), owned(second)) {
            adamw::adamw(step, x, numbers(&gradient), first, second);
        }
        retire(gradient);
        updated
    }
}

/// The same tensor `[B, H, T, D]` with the heads of a position next to each other in memory, where merging them needs no
/// copy.
fn heads_last(x: FlexTensor) -> FlexTensor {
    let turned = x.permute(&[0, 2, 1, 3]);
    drop(x);
    contiguous(turned).permute(&[0, 2, 1, 3])
}

/// With fewer queries, as in decoding, preparing keys and values takes longer than the products.
const FEWEST_QUERIES: usize = 6;

/// Attention of a few queries, which reads keys and values where they are. Nothing is kept for a backward
/// pass.
pub fn decode_attention(
    q: FlexTensor,
    k: FlexTensor,
    v: FlexTensor,
    extra: Extra<Flex>,
    options: AttentionModuleOptions,
) -> FlexTensor {
    let (q, k, v) = (contiguous(q), in_order(k), in_order(v));
    let sizes = sizes(&q, &k, &v);
    let mut y = zeros(Shape::from([q.shape()[0], sizes.heads, sizes.queries, sizes.values]));
    let extra = Tables::new(extra);
    let tables = [&k, &v].map(|x| table(x, x.storage()));
    decode_attention::attention(numbers(&q), tables, sizes, &extra.scores(sizes, options), y.storage_mut());
    retire(q);
    y
}

/// Whether [`Fused::attention`] is the best way to compute attention of such tensors, in single precision.
pub fn attends_in_tiles(qkv: [&Tensor<4>; 3]) -> bool {
    let [q, k, v] = qkv.map(|x| x.dims());
    let is_flex = |x: &Tensor<4>| {
        let x = if x.device().is_autodiff() { x.clone().inner() } else { x.clone() };
        matches!(x.into_dispatch().kind, DispatchTensorKind::Flex(_))
    };
    fits_tiles([q, k, v].map(|[_, heads, positions, _]| [heads, positions]))
        && simd::is_available()
        && qkv.into_iter().all(is_flex)
}

/// Heads and positions of queries, keys and values.
fn sizes_of(qkv: [&FlexTensor; 3]) -> [[usize; 2]; 3] {
    qkv.map(|x| [x.shape()[1], x.shape()[2]])
}

/// Whether attention of tensors with these heads and positions is computed in tiles.
fn fits_tiles([[heads, queries], [of_keys, _], [of_values, _]]: [[usize; 2]; 3]) -> bool {
    // The kernel finds the keys of a head by the index of the head of queries.
    heads == of_keys && heads == of_values && queries >= FEWEST_QUERIES
}

/// A key for dropout, from the generator that the device's seed decides.
pub fn random_key() -> [u32; 2] {
    let drawn = Flex::int_random(Shape::from([2]), Distribution::Default, &FlexDevice, IntDType::U32);
    drawn.storage::<u32>().first_chunk().copied().unwrap_or_default()
}

/// Whether [`decode_attention`] can compute attention for such queries, keys and values.
pub fn decodes(q: &FlexTensor, k: &FlexTensor, v: &FlexTensor) -> bool {
    let same_heads = k.shape()[1] == q.shape()[1] && v.shape()[1] == q.shape()[1];
    same_heads && is_ours(q) && is_ours(k) && is_ours(v)
}

/// The tensor with its last axis in order, so that its rows are slices. A mask for all heads is repeated by a
/// stride of zero; a copy of it would be as large as the scores.
fn in_order(x: FlexTensor) -> FlexTensor {
    let is_in_order = x.shape()[3] == 1 || x.layout().strides().last() == Some(&1);
    // A `Table` has unsigned strides, so an axis that runs backwards (a flipped tensor) is copied.
    let is_forward = x.layout().strides().iter().all(|stride| *stride >= 0);
    if is_in_order && is_forward { x } else { x.to_contiguous() }
}

fn sizes(q: &FlexTensor, k: &FlexTensor, v: &FlexTensor) -> Sizes {
    let (q, k, v) = (q.shape(), k.shape(), v.shape());
    Sizes { heads: q[1], queries: q[2], keys: k[2], width: q[3], values: v[3] }
}

/// A mask, a bias and sinks whose last axis is in order, so that their rows are slices.
struct Tables {
    mask: Option<FlexTensor>,
    bias: Option<FlexTensor>,
    sinks: Option<FlexTensor>,
    dropout: Option<Dropout>,
}

impl Tables {
    fn new(extra: Extra<Flex>) -> Self {
        let Parts { mask, bias, sinks, dropout } = extra.parts();
        let dropout = dropout.map(|dropout| Dropout::new(dropout.p, dropout.key));
        Self { mask: mask.map(in_order), bias: bias.map(in_order), sinks: sinks.map(contiguous), dropout }
    }

    fn scores(&self, sizes: Sizes, options: AttentionModuleOptions) -> Scores<'_> {
        // Burn's own default.
        let usual = 1.0 / (sizes.width as f64).sqrt();
        Scores {
            scale: options.scale.unwrap_or(usual) as f32,
            softcap: options.softcap.map(|cap| cap as f32),
            is_causal: options.is_causal,
            mask: self.mask.as_ref().map(|mask| table(mask, mask.bytes())),
            bias: self.bias.as_ref().map(|bias| table(bias, bias.storage())),
            sinks: self.sinks.as_ref().map(numbers),
            dropout: self.dropout,
        }
    }
}

/// The numbers of a tensor with four axes, of which all but the last may have any stride.
fn table<'a, T>(x: &FlexTensor, numbers: &'a [T]) -> Table<'a, T> {
    let mut strides = [0; 3];
    for (to, stride) in strides.iter_mut().zip(x.layout().strides()) {
        *to = stride.unsigned_abs();
    }
    // A view may begin anywhere in its memory, and strides count from there.
    Table { numbers: numbers.get(x.layout().start_offset()..).unwrap_or_default(), strides }
}

/// Indices. A negative one becomes the largest number, which is beyond every size, so that looking it up
/// fails.
fn integers(x: IntTensor<Flex>) -> Vec<usize> {
    let x = x.to_contiguous();
    // Flex's own integers have 32 bits, but a tensor may have been created with 64.
    let (start, end) = x.layout().contiguous_offsets().unwrap_or_default();
    if x.dtype() == DType::I32 {
        let all = x.storage::<i32>().get(start..end).unwrap_or_default();
        all.iter().map(|x| usize::try_from(*x).unwrap_or(usize::MAX)).collect()
    } else {
        let all = x.storage::<i64>().get(start..end).unwrap_or_default();
        all.iter().map(|x| usize::try_from(*x).unwrap_or(usize::MAX)).collect()
    }
}
