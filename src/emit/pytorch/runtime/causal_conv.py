from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def causal_conv(whole: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Each feature convolved over `W` positions, the last of which is its own, for the
    last `T` of `K` positions: `[B, K, D]`, `[B, T, D]`, `[D, 1, W]` → `[B, T, D]`"""
    features, _, width = weight.shape
    start, time = whole.shape[1] - x.shape[1], x.shape[1]
    padded = F.pad(whole, (0, 0, width - 1, 0))
    recent = padded.narrow(1, start, time + width - 1).transpose(1, 2)
    return F.conv1d(recent, weight, groups=features).transpose(1, 2)
