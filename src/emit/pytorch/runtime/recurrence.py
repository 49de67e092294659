from __future__ import annotations

import torch
from torch import Tensor

from .cache import KVCache


def recurrence(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, cache: KVCache | None = None
) -> Tensor:
    """`S = decay * S + k vᵀ`, `y = Sᵀ q`, one position after the other: `q` and `k`
    `[B, H, T, N]`, `v` `[B, H, T, P]`, where other axes than `N` may be 1."""
    batch, heads, time, width = v.shape
    q, k, decay = (x.expand(batch, heads, time, -1) for x in (q, k, decay))
    state = v.new_zeros(batch, heads, k.shape[-1], width)
    if cache is not None and cache.kept:
        (state,) = cache.kept
    results: list[Tensor] = []
    for t in range(time):
        added = k[:, :, t, :, None] * v[:, :, t, None]
        state = decay[:, :, t, :, None] * state + added
        results.append((q[:, :, t, :, None] * state).sum(2))
    if cache is not None:
        cache.kept = (state,)
    return torch.stack(results, dim=2)
