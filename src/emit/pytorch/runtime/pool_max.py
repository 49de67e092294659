from __future__ import annotations

import torch
from torch import Tensor


def pool_max(x: Tensor, keep: Tensor | None) -> Tensor:
    """The largest values of the positions that are kept, or zeros: → `[B, D]`"""
    if keep is None:
        return x.amax(1)
    padding = (keep == 0)[..., None]
    highest = x.masked_fill(padding, torch.finfo(x.dtype).min).amax(1)
    return highest.masked_fill(padding.all(1), 0.0)
