from __future__ import annotations

import torch
from torch import Tensor


def prepend(rows: Tensor, x: Tensor) -> Tensor:
    """The same rows before every sequence: `[n, D]`, `[B, T, D]` → `[B, n+T, D]`"""
    return torch.cat((rows.expand(x.shape[0], -1, -1), x), dim=1)
