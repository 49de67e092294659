"""Padding left out of sums over positions."""

from __future__ import annotations

from torch import Tensor


def hide_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """`[B, ..., T, D]` with 0 at positions where `mask`, `[B, 1, 1, T]`, is False."""
    if mask is None:
        return x
    between = [1] * (x.dim() - 3)
    return x.masked_fill(~mask.reshape(-1, *between, x.shape[-2], 1), 0.0)
