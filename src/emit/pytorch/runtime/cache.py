from __future__ import annotations

import torch
from torch import Tensor


class KVCache:
    """What one layer keeps of the tokens so far: keys and values, or a state."""

    def __init__(self) -> None:
        self.kept: tuple[Tensor, ...] = ()

    def append(self, *new: Tensor) -> tuple[Tensor, ...]:
        """Adds `[.., T, D]` after the tokens so far and returns all, `[.., P+T, D]`."""
        if self.kept:
            new = tuple(torch.cat(pair, dim=-2) for pair in zip(self.kept, new))
        self.kept = new
        return new

    def select(self, rows: Tensor) -> None:
        """Keeps these sequences of the batch, in this order."""
        self.kept = tuple(kept.index_select(0, rows) for kept in self.kept)


class Cache:
    """What a model keeps while it decodes a batch."""

    def __init__(self, layers: int) -> None:
        self.past = 0  # P, the tokens so far
        self.layers = [KVCache() for _ in range(layers)]

    def select(self, rows: Tensor) -> None:
        """Keeps these sequences of the batch, in this order, as beam search needs."""
        for layer in self.layers:
            layer.select(rows)
