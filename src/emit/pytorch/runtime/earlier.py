from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .cache import KVCache


def earlier(x: Tensor, by: int, cache: KVCache | None = None) -> Tensor:
    """The value `by` positions before each one of `[.., T, D]`, or zeros."""
    time = x.shape[-2]
    if cache is not None and cache.kept:
        x = torch.cat((*cache.kept, x), dim=-2)
    else:
        x = F.pad(x, (0, 0, by, 0))
    if cache is not None:
        cache.kept = (x.narrow(-2, time, by),)
    return x.narrow(-2, 0, time)
