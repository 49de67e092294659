from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .cache import KVCache


def causal_conv(x: Tensor, weight: Tensor, cache: KVCache | None = None) -> Tensor:
    """Each feature convolved over `W` positions, the last of which is its own:
    `[B, T, D]`, `[D, 1, W]` → `[B, T, D]`"""
    features, _, width = weight.shape
    time = x.shape[1]
    if cache is not None and cache.kept:
        x = torch.cat((*cache.kept, x), dim=1)
    else:
        x = F.pad(x, (0, 0, width - 1, 0))
    if cache is not None:
        cache.kept = (x.narrow(1, time, width - 1),)
    return F.conv1d(x.transpose(1, 2), weight, groups=features).transpose(1, 2)
