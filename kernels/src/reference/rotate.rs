//! The rotation of rotary positions (Su et al. 2021).

use burn::prelude::*;

/// Rotates feature `i` with `i + n/2` among the first `n = 2 * pairs` features: `[B, H, T, D]`, tables
/// `[T, pairs]`. The other features stay unchanged.
pub fn rotate_half(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<4> {
    let (pairs, width) = (cos.dims()[1], x.dims()[3]);
    let (cos, sin) = (cos.unsqueeze::<4>(), sin.unsqueeze::<4>());
    let a = x.clone().narrow(3, 0, pairs);
    let b = x.clone().narrow(3, pairs, pairs);
    // Only the first features of a head may be rotated (`fraction`); the others follow unchanged.
    let mut parts = vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos + a * sin];
    if width > 2 * pairs {
        parts.push(x.narrow(3, 2 * pairs, width - 2 * pairs));
    }
    Tensor::cat(parts, 3)
}

/// Rotates feature `2i` with `2i + 1` among the first `2 * pairs` features: `[B, H, T, D]`, tables
/// `[T, pairs]`. The other features stay unchanged.
pub fn rotate_interleaved(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<4> {
    let [batch, heads, length, width] = x.dims();
    let pairs = cos.dims()[1];
    let (cos, sin) = (cos.unsqueeze_dim::<3>(2).unsqueeze::<5>(), sin.unsqueeze_dim::<3>(2).unsqueeze::<5>());
    let turned = x.clone().narrow(3, 0, 2 * pairs).reshape([batch, heads, length, pairs, 2]);
    let a = turned.clone().narrow(4, 0, 1);
    let b = turned.narrow(4, 1, 1);
    let turned = Tensor::cat(vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos + a * sin], 4)
        .reshape([batch, heads, length, 2 * pairs]);
    if width > 2 * pairs {
        Tensor::cat(vec![turned, x.narrow(3, 2 * pairs, width - 2 * pairs)], 3)
    } else {
        turned
    }
}
