from __future__ import annotations

import torch
from torch import Tensor


def positions(
    start: int, queries: int, keys: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The positions of queries `[T, 1]`, from `start` on, and of all keys `[K]`."""
    query = torch.arange(start, start + queries, device=device)
    return query[:, None], torch.arange(keys, device=device)
