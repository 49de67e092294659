//! Patches of images, projected by one matrix product.

use burn::prelude::*;

use super::unembed::unembed;

/// Patches of an image in reading order, each projected by a kernel: image `[B, C, H, W]`, kernel `[D, C, P, P]` with a `P` that
/// divides `H` and `W`, bias `[D]` → `[B, H/P · W/P, D]`. It is the convolution with stride `P` (Dosovitskiy et al. 2021,
/// section 3.1). Such patches do not overlap, so cutting them and one matrix product compute it on every device, with the
/// gradient of a product. Burn has several kernels for the gradient of a convolution on graphics cards, and chooses one by
/// measuring them, so that a result could depend on how busy the machine is (burn-cubecl 0.22.1).
pub fn patches_of(image: Tensor<4>, kernel: Tensor<4>, bias: Option<Tensor<1>>) -> Tensor<3> {
    let [batch, channels, height, width] = image.dims();
    let [dim, _, size, _] = kernel.dims();
    let (rows, columns, pixels) = (height / size, width / size, channels * size * size);
    let cut = image
        .reshape([batch, channels, rows, size, columns, size])
        .permute([0, 2, 4, 1, 3, 5])
        .reshape([batch, rows * columns, pixels]);
    let projected = unembed(cut, kernel.reshape([dim, pixels]));
    match bias {
        Some(bias) => projected + bias.reshape([1, 1, dim]),
        None => projected,
    }
}

/// The patches of an image, projected by the kernel of a convolution: `[B, C, H, W]` → `[B, N, D]`
// Emitted models call this: their fields are burn's layers, whose own `forward` is not used.
pub fn patches(layer: &nn::conv::Conv2d, image: Tensor<4>) -> Tensor<3> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    patches_of(image, layer.weight.val(), bias)
}
