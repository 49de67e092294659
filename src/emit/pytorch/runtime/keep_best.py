from __future__ import annotations

import torch
from torch import Tensor


def keep_best(weights: Tensor, choice: Tensor, k: int, normalize: bool) -> Tensor:
    """The weights of the `k` experts with the best `choice`, zero for the others.

    `[B, T, E]` → `[B, T, E]`; if `normalize`, divided by the sum of each token's.
    """
    best = choice.detach().topk(k, dim=-1).indices
    weights = weights * torch.zeros_like(weights).scatter(-1, best, 1.0)
    if normalize:
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-20)
    return weights
