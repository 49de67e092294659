from __future__ import annotations

import math

from torch import Tensor

from .score_weights import score_weights


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    causal: bool = False,
    softcap: float | None = None,
    scale: float | None = None,
) -> Tensor:
    """`softmax(scale q kᵀ)`: `q [B, H, T, D]`, `k [B, H, K, D]` → `[B, H, T, K]`"""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(2, 3) * scale
    return score_weights(scores, mask, bias, sinks, causal, softcap).to(q.dtype)
