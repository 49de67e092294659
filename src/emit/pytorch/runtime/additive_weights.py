from __future__ import annotations

import math

import torch
from torch import Tensor

from .score_weights import score_weights


def additive_weights(
    q: Tensor,
    k: Tensor,
    w: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    causal: bool = False,
    softcap: float | None = None,
    scale: float | None = None,
) -> Tensor:
    """`softmax(scale w · tanh(q + k))` (Bahdanau, Cho and Bengio 2015)

    `q [B, H, T, D]`, `k [B, H, K, D]`, `w [H, D]` → `[B, H, T, K]`
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [B, H, T, K, D]
    scores = (hidden @ w[:, None, :, None]).squeeze(-1) * scale
    return score_weights(scores, mask, bias, sinks, causal, softcap).to(q.dtype)
