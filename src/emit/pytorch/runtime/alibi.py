from __future__ import annotations

import torch
from torch import Tensor


def alibi_bias(
    heads: int,
    start: int,
    queries: int,
    keys: int,
    device: torch.device,
    highest: float = 8.0,
    scale: float = 1.0,
) -> Tensor:
    """`-slope |query - key|` for each head: `[1, H, T, K]` (Press et al. 2021)

    Slopes are `2^(-highest i / n)` for the `n` heads, or for the next lower power of
    two, followed by every second slope of the next higher one.
    """
    below = 2 ** (heads.bit_length() - 1)
    powers = [highest * (i + 1) / below for i in range(below)]
    powers += [highest * (2 * i + 1) / (2 * below) for i in range(heads - below)]
    slopes = torch.tensor([scale * 2**-power for power in powers], device=device)
    query = torch.arange(start, start + queries, device=device)
    distance = (query[:, None] - torch.arange(keys, device=device)).abs()
    return -slopes[None, :, None, None] * distance
