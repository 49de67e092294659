from __future__ import annotations

import torch
from torch import Tensor


def pool_last(x: Tensor, keep: Tensor | None) -> Tensor:
    """The last position that is kept, or the first: `[B, T, D]` → `[B, D]`"""
    if keep is None:
        return x[:, -1]
    positions = torch.arange(x.shape[1], device=x.device)
    last = ((keep != 0) * positions).amax(1)
    return x[torch.arange(x.shape[0], device=x.device), last]
