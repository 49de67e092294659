from __future__ import annotations

from torch import Tensor


def cumulative_sum(whole: Tensor, x: Tensor) -> Tensor:
    """The sum over all positions so far, for the last `T` of `K` positions:
    `[.., K, D]`, `[.., T, D]` → `[.., T, D]`"""
    start, time = whole.shape[-2] - x.shape[-2], x.shape[-2]
    return whole.cumsum(-2).narrow(-2, start, time)
