from __future__ import annotations

from torch import Tensor


def hide_weights(weights: Tensor, mask: Tensor | None) -> Tensor:
    """`[B, H, T, K]` with 0 where `mask` is False."""
    return weights if mask is None else weights.masked_fill(~mask, 0.0)
