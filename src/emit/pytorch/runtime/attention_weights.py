from __future__ import annotations

import math

from torch import Tensor

from .score_weights import score_weights


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    # only: bias sinks
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    # end
    causal: bool = False,
    # only: softcap bias sinks
    softcap: float | None = None,
    # end
    # only: scale
    scale: float | None = None,
    # end
) -> Tensor:
    """`softmax(scale q kᵀ)`: `q [B, H, T, D]`, `k [B, H, K, D]` → `[B, H, T, K]`"""
    # only: scale
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(2, 3) * scale
    # end
    # only: !scale
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    # end
    # only: bias sinks
    return score_weights(scores, mask, bias, sinks, causal, softcap).to(q.dtype)
    # end
    # only: !bias
    # only: !sinks
    # only: softcap
    return score_weights(scores, mask, causal=causal, softcap=softcap).to(q.dtype)
    # end
    # only: !softcap
    return score_weights(scores, mask, causal=causal).to(q.dtype)
    # end
    # end
    # end
