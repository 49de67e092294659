//! LibTorch.

use burn::backend::LibTorch;
use burn::backend::ops::AttentionModuleOptions;
use burn::backend::ops::attention::attention_fallback;
use burn::backend::tensor::FloatTensor;

use super::fused::MayFuse;
use super::{Extra, Kernels, Parts, default};

impl MayFuse for LibTorch {}

impl Kernels for LibTorch {
    // LibTorch's own attention cannot be used (`attention` in ops/module.rs of burn-tch 0.22.1): burn
    // passes it our mask unchanged, although LibTorch attends where a mask is true, and does not pass it
    // the softcap; its causal mask is aligned with the first key instead of the last; and it does not
    // accept another mask together with the causal one.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let ([q, k, v], extra) = default::with_sinks_as_keys::<Self>([q, k, v], extra);
        let Parts { mask, bias, .. } = extra.parts();
        attention_fallback::<Self>(q, k, v, mask, bias, options)
    }
}
