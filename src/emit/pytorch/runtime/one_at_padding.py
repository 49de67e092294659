"""Padding by which nothing is changed where numbers are divided by it."""

from __future__ import annotations

from torch import Tensor


def one_at_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """`[B, ..., T, D]` with 1 where `mask`, `[B, 1, 1, P+T]`, is False at its end."""
    if mask is None:
        return x
    mask = mask[..., mask.shape[-1] - x.shape[-2] :]
    between = [1] * (x.dim() - 3)
    return x.masked_fill(~mask.reshape(-1, *between, x.shape[-2], 1), 1.0)
