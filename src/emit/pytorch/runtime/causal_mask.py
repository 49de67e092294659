from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(keep: Tensor | None, queries: int) -> Tensor | None:
    """The keys up to each query that are not padding: `[B, K]` → `[B, 1, T, K]`"""
    if keep is None:
        return None  # Attention itself is causal.
    keys = keep.shape[1]
    past = torch.ones(queries, keys, dtype=torch.bool, device=keep.device)
    return past.tril(keys - queries) & keep.bool()[:, None, None, :]
