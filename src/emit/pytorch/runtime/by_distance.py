from __future__ import annotations

import torch
from torch import Tensor


def by_distance(
    x: Tensor, start: int, queries: int, keys: int, center: int, of_keys: bool = False
) -> Tensor:
    """The feature number `center + query - key` for all pairs: `[B, H, T, K]`

    `x [B, H, T, R]` has the features of queries, or those of keys, `[B, H, K, R]`; all
    pairs that are farther away have the first or the last one.
    """
    query = torch.arange(start, start + queries, device=x.device)[:, None]
    distance = query - torch.arange(keys, device=x.device)
    index = (distance + center).clamp(0, x.shape[-1] - 1)
    if of_keys:
        index = index.T.expand(*x.shape[:2], keys, queries)
        return x.expand(-1, -1, keys, -1).gather(-1, index).transpose(2, 3)
    index = index.expand(*x.shape[:2], queries, keys)
    return x.expand(-1, -1, queries, -1).gather(-1, index)
