from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[B, T, H * D]` → `[B, H, T, D]`"""
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[B, H, T, D]` → `[B, T, H * D]`"""
    return x.transpose(1, 2).flatten(2)
