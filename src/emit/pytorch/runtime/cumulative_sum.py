from __future__ import annotations

from torch import Tensor

from .cache import KVCache


def cumulative_sum(x: Tensor, cache: KVCache | None = None) -> Tensor:
    """The sum over all positions so far, for each position of `[.., T, D]`."""
    total = x.cumsum(-2)
    if cache is not None:
        for before in cache.kept:
            total = total + before
        cache.kept = (total.narrow(-2, total.shape[-2] - 1, 1),)
    return total
