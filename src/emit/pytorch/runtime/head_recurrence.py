from __future__ import annotations

import torch
from torch import Tensor

from .cache import KVCache


def head_recurrence(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, cache: KVCache | None = None
) -> Tensor:
    """`S = decay * S + k vᵀ`, `y = Sᵀ q`, with one decay for a head, in chunks of 64
    positions: `q` and `k` `[B, H, T, N]`, `v` `[B, H, T, P]`, `decay` `[B, H, T, 1]`,
    where other axes of the decay and the heads of `q` and `k` may be 1."""
    batch, heads, time, width = v.shape
    q, k, decay = (x.expand(batch, heads, time, -1) for x in (q, k, decay))
    state = v.new_zeros(batch, heads, k.shape[-1], width)
    if cache is not None and cache.kept:
        (state,) = cache.kept
    results: list[Tensor] = []
    for q_c, k_c, v_c, decay_c in zip(*(x.split(64, dim=2) for x in (q, k, v, decay))):
        # The decays after position j up to position i, from each j to each later i.
        size = decay_c.shape[2]
        later = torch.ones(size, size, dtype=torch.bool, device=v.device).tril(-1)
        between = torch.where(later, decay_c, 1.0).cumprod(-2).tril()
        since = decay_c.cumprod(-2)
        own = (q_c @ k_c.mT * between) @ v_c
        results.append(own + (q_c * since) @ state)
        added = (k_c * between[:, :, -1, :, None]).mT @ v_c
        state = state * since[:, :, -1:] + added
    if cache is not None:
        cache.kept = (state,)
    return torch.cat(results, dim=2)
