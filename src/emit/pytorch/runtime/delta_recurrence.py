from __future__ import annotations

import torch
from torch import Tensor

from .cache import KVCache


def delta_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    beta: Tensor,
    cache: KVCache | None = None,
) -> Tensor:
    """`S = D + beta k (v - Dᵀ k)ᵀ` with `D = decay * S`, `y = Sᵀ q`, one position after
    the other: `q` and `k` `[B, H, T, N]`, `v` `[B, H, T, P]`, `beta` `[B, H, T, 1]`,
    where other axes than `N` may be 1."""
    batch, heads, time, width = v.shape
    q, k, decay, beta = (x.expand(batch, heads, time, -1) for x in (q, k, decay, beta))
    state = v.new_zeros(batch, heads, k.shape[-1], width)
    if cache is not None and cache.kept:
        (state,) = cache.kept
    results: list[Tensor] = []
    for t in range(time):
        state = decay[:, :, t, :, None] * state
        key = k[:, :, t, :, None]
        new = beta[:, :, t] * (v[:, :, t] - (key * state).sum(2))
        state = state + key * new[:, :, None]
        results.append((q[:, :, t, :, None] * state).sum(2))
    if cache is not None:
        cache.kept = (state,)
    return torch.stack(results, dim=2)
