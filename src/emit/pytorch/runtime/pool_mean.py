from __future__ import annotations

from torch import Tensor


def pool_mean(x: Tensor, keep: Tensor | None) -> Tensor:
    """The mean of the positions that are kept, or zeros: `[B, T, D]` → `[B, D]`"""
    if keep is None:
        return x.mean(1)
    weight = keep.to(x.dtype)[..., None]
    return (x * weight).sum(1) / weight.sum(1).clamp(min=1)
