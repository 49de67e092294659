from __future__ import annotations

import torch
from torch import Tensor


def largest(x: Tensor, count: int) -> Tensor:
    """1 for the `count` largest features, 0 for the others: `[.., D]` → `[.., D]`"""
    best = x.detach().topk(min(count, x.shape[-1]), dim=-1).indices
    return torch.zeros_like(x).scatter(-1, best, 1.0)
