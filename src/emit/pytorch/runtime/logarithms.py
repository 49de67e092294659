from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def logarithms_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """The logarithms of 1, 2, ... times `gain` in every row."""
    numbers = torch.arange(1, tensor.shape[-1] + 1, device=tensor.device)
    return tensor.copy_(gain * numbers.to(tensor.dtype).log())
