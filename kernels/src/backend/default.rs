//! What the kernels compute, in burn's own operations: the implementation for every backend that has no
//! better one.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::prelude::{Shape, TensorData};
use burn::tensor::{FloatDType, Slice};

use super::packed::Packed;
use super::{Activation, AdamW, Affine, Bias, Extra, Norm, Pairing, Parts};

/// `sqrt(2/pi)`, the factor inside of the hyperbolic tangent.
const ROOT: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
/// The factor of `x³` in the same place.
const CUBIC: f64 = 0.044_715;

/// The factor of quick gelu inside of the logistic function.
const QUICK: f64 = 1.702;

/// Attention whose sinks are a key before the others: it is zero, and so is its value, and the sink of a head is its bias
/// in all scores. A causal mask is aligned with the last key, so it never hides the first one.
pub fn with_sinks_as_keys<B: Backend>(
    qkv: [FloatTensor<B>; 3],
    extra: Extra<B>,
) -> ([FloatTensor<B>; 3], Extra<B>) {
    let [q, k, v] = qkv;
    let Parts { mask, bias, sinks, .. } = extra.parts();
    let Some(sinks) = sinks else { return ([q, k, v], Extra::new(mask, bias, None)) };
    let (device, dtype) = (q.device(), FloatDType::F32);
    let [batch, heads, queries, _] = q.shape().dims();
    let keys = k.shape()[2];
    let first = |x: FloatTensor<B>| {
        let row = Shape::from([batch, heads, 1, x.shape()[3]]);
        B::float_cat(vec![B::float_zeros(row, &device, dtype), x], 2)
    };
    let (k, v) = (first(k), first(v));
    let bias =
        bias.unwrap_or_else(|| B::float_zeros(Shape::from([batch, heads, queries, keys]), &device, dtype));
    let column = Shape::from([batch, heads, queries, 1]);
    let sinks = B::float_expand(B::float_reshape(sinks, Shape::from([1, heads, 1, 1])), column.clone());
    let bias = B::float_cat(vec![sinks, bias], 3);
    let mask = mask.map(|mask| {
        let seen = B::bool_zeros(column, &device, mask.dtype().into());
        B::bool_cat(vec![seen, mask], 3)
    });
    ([q, k, v], Extra::new(mask, Some(bias), None))
}

pub fn activate<B: Backend>(x: FloatTensor<B>, activation: Activation) -> FloatTensor<B> {
    let factor = match activation {
        Activation::Gelu => return B::gelu(x),
        Activation::GeluTanh => {
            let tanh = B::float_tanh(inner::<B>(x.clone()));
            let half = B::float_mul_scalar(x, 0.5.into());
            return B::float_mul(half, B::float_add_scalar(tanh, 1.0.into()));
        }
        Activation::QuickGelu => QUICK,
        Activation::Silu => 1.0,
    };
    let sigmoid = B::sigmoid(B::float_mul_scalar(x.clone(), factor.into()));
    B::float_mul(x, sigmoid)
}

pub fn activate_backward<B: Backend>(
    x: FloatTensor<B>,
    gradient: FloatTensor<B>,
    activation: Activation,
) -> FloatTensor<B> {
    let factor = match activation {
        Activation::Gelu => return B::gelu_backward(x, gradient),
        // (1 + t) / 2 + x/2 (1 - t²) y', where t = tanh(y) and y' = sqrt(2/pi) (1 + 3 * 0.044715 x²)
        Activation::GeluTanh => {
            let tanh = B::float_tanh(inner::<B>(x.clone()));
            let square = B::float_mul(x.clone(), x.clone());
            let slope = B::float_mul_scalar(square, (3.0 * CUBIC * ROOT).into());
            let slope = B::float_add_scalar(slope, ROOT.into());
            let rest = B::float_neg(B::float_mul(tanh.clone(), tanh.clone()));
            let rest = B::float_mul(B::float_mul(B::float_add_scalar(rest, 1.0.into()), slope), x);
            let sum = B::float_add(B::float_add_scalar(tanh, 1.0.into()), rest);
            return B::float_mul(B::float_mul_scalar(sum, 0.5.into()), gradient);
        }
        Activation::QuickGelu => QUICK,
        Activation::Silu => 1.0,
    };
    // s + y s (1 - s), where s = sigmoid(y) and y = factor x
    let y = B::float_mul_scalar(x, factor.into());
    let s = B::sigmoid(y.clone());
    let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into());
    let slope = B::float_mul(B::float_add_scalar(B::float_mul(y, rest), 1.0.into()), s);
    B::float_mul(slope, gradient)
}

/// `sqrt(2/pi) (x + 0.044715 x³)`
fn inner<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let square = B::float_mul(x.clone(), x.clone());
    let factor = B::float_add_scalar(B::float_mul_scalar(square, CUBIC.into()), 1.0.into());
    B::float_mul_scalar(B::float_mul(x, factor), ROOT.into())
}

pub fn linear<B: Backend>(x: FloatTensor<B>, weight: FloatTensor<B>, bias: Bias<B>) -> FloatTensor<B> {
    by_rows::<B>(x, |x| {
        let y = B::float_matmul(x, weight);
        match bias {
            Bias::Nothing => y,
            Bias::Added(bias) => {
                let width = bias.shape().num_elements();
                B::float_add(y, B::float_reshape(bias, Shape::from([1, width])))
            }
        }
    })
}

pub fn unembed<B: Backend>(x: FloatTensor<B>, table: FloatTensor<B>) -> FloatTensor<B> {
    by_rows::<B>(x, |x| B::float_matmul(x, B::float_transpose(table)))
}

pub fn packed_product<B: Backend>(x: FloatTensor<B>, weight: &Packed, bias: Bias<B>) -> FloatTensor<B> {
    let data = TensorData::new(weight.unpacked(), [weight.inputs(), weight.outputs()]);
    let weight = B::float_from_data(data.convert_dtype(x.dtype()), &x.device());
    linear::<B>(x, weight, bias)
}

/// Applies `f` to all rows of `x [.., D]` as one matrix. The result has the shape of `x`, apart from the last
/// axis.
pub fn by_rows<B: Backend>(
    x: FloatTensor<B>,
    f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let mut shape = x.shape();
    let axes = shape.num_dims().saturating_sub(1);
    let rows = shape.iter().take(axes).product::<usize>();
    let width = shape.last().copied().unwrap_or(1);
    // As one matrix, because burn may multiply sequence by sequence, with a gradient of the weight for each.
    let y = f(B::float_reshape(x, Shape::from([rows, width])));
    if let (Some(last), Some(made)) = (shape.last_mut(), y.shape().last()) {
        *last = *made;
    }
    B::float_reshape(y, shape)
}

pub fn rotate<B: Backend>(
    x: FloatTensor<B>,
    cos: FloatTensor<B>,
    sin: FloatTensor<B>,
    pairing: Pairing,
) -> FloatTensor<B> {
    let (shape, pairs) = (x.shape(), cos.shape()[1]);
    let [batch, heads, time, width] = shape.dims();
    let of = |x: &FloatTensor<B>, from: usize, len: usize| {
        let (whole, some) = (Slice::full(), Slice::from(from..from + len));
        let last = x.shape().num_dims() - 1;
        let slices: Vec<Slice> = (0..=last).map(|axis| if axis == last { some } else { whole }).collect();
        B::float_slice(x.clone(), &slices)
    };
    // The two features of all pairs, and the angles in as many axes.
    let pairs_of = match pairing {
        Pairing::Half => x.clone(),
        Pairing::Interleaved => {
            let turned = of(&x, 0, 2 * pairs);
            B::float_reshape(turned, Shape::from([batch, heads, time, pairs, 2]))
        }
    };
    let (a, b, angles, axis) = match pairing {
        Pairing::Half => (of(&x, 0, pairs), of(&x, pairs, pairs), vec![1, 1, time, pairs], 3),
        Pairing::Interleaved => (of(&pairs_of, 0, 1), of(&pairs_of, 1, 1), vec![1, 1, time, pairs, 1], 4),
    };
    let [cos, sin] = [cos, sin].map(|x| B::float_reshape(x, Shape::from(angles.clone())));
    let times = |x: &FloatTensor<B>, by: &FloatTensor<B>| B::float_mul(x.clone(), by.clone());
    let first = B::float_sub(times(&a, &cos), times(&b, &sin));
    let second = B::float_add(times(&b, &cos), times(&a, &sin));
    let turned = B::float_cat(vec![first, second], axis);
    let turned = B::float_reshape(turned, Shape::from([batch, heads, time, 2 * pairs]));
    if width > 2 * pairs {
        // Only the first features of a head may be turned (`fraction`); the others follow unchanged.
        let rest = of(&x, 2 * pairs, width - 2 * pairs);
        return B::float_cat(vec![turned, rest], 3);
    }
    turned
}

pub fn norm<B: Backend>(x: FloatTensor<B>, affine: Affine<B>, norm: Norm) -> FloatTensor<B> {
    let (weight, bias) = affine.parts();
    let eps = match norm {
        Norm::Layer { eps } => return B::layer_norm(x, weight, bias, eps),
        Norm::Rms { eps } => eps,
    };
    let (dtype, shape) = (FloatDType::from(x.dtype()), x.shape());
    let last = shape.num_dims().saturating_sub(1);
    // The square of a 16-bit number may exceed the range of its type: in f16, that of 256 does.
    let single = B::float_cast(x.clone(), FloatDType::F32);
    let mean = B::float_mean_dim(B::float_mul(single.clone(), single), last);
    let rms = B::float_cast(B::float_sqrt(B::float_add_scalar(mean, eps.into())), dtype);
    let along = |parameter: FloatTensor<B>| {
        let width = parameter.shape().num_elements();
        let sizes = (0..=last).map(|axis| if axis == last { width } else { 1 });
        B::float_reshape(parameter, Shape::from(sizes.collect::<Vec<usize>>()))
    };
    let y = B::float_mul(B::float_div(x, rms), along(weight));
    match bias {
        Some(bias) => B::float_add(y, along(bias)),
        None => y,
    }
}

pub fn cross_entropy<B: Backend>(
    logits: FloatTensor<B>,
    classes: IntTensor<B>,
    weights: FloatTensor<B>,
    smoothing: f64,
) -> FloatTensor<B> {
    let logs = B::log_softmax(logits, 1);
    let own = B::float_gather(1, logs.clone(), classes);
    // `-(1 - smoothing) log p(class)`
    let mut losses = B::float_mul_scalar(own, (smoothing - 1.0).into());
    if smoothing > 0.0 {
        let mean = B::float_mul_scalar(B::float_mean_dim(logs, 1), smoothing.into());
        losses = B::float_sub(losses, mean);
    }
    B::float_sum(B::float_mul(losses, weights))
}

pub fn adamw<B: Backend>(tensors: [FloatTensor<B>; 4], step: AdamW) -> [FloatTensor<B>; 3] {
    let [x, gradient, first, second] = tensors;
    let moment = |moment: FloatTensor<B>, beta: f32, gradient: FloatTensor<B>| {
        let added = B::float_mul_scalar(gradient, (1.0 - beta).into());
        B::float_add(B::float_mul_scalar(moment, beta.into()), added)
    };
    let ([beta_1, beta_2], [of_first, of_second]) = (step.betas, step.corrections());
    let first = moment(first, beta_1, gradient.clone());
    let second = moment(second, beta_2, B::float_mul(gradient.clone(), gradient));
    let root = B::float_sqrt(B::float_div_scalar(second.clone(), of_second.into()));
    let below = B::float_add_scalar(root, step.eps.into());
    let delta = B::float_div(B::float_div_scalar(first.clone(), of_first.into()), below);
    let x = B::float_mul_scalar(x, step.kept().into());
    [B::float_sub(x, B::float_mul_scalar(delta, step.rate.into())), first, second]
}
