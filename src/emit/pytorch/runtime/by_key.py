from __future__ import annotations

from torch import Tensor


def by_key(x: Tensor, queries: int, keys: int) -> Tensor:
    """Features of queries by the number of the key: `[B, H, T, R]` → `[B, H, T, K]`"""
    return x[..., :keys].expand(-1, -1, queries, -1)
