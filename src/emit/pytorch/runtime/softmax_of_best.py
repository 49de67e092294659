from __future__ import annotations

import torch
from torch import Tensor


def softmax_of_best(scores: Tensor, choice: Tensor, k: int) -> Tensor:
    """The softmax over the `k` experts with the best `choice`, zero for the others.

    `[B, T, E]` → `[B, T, E]`
    """
    best = choice.detach().topk(k, dim=-1).indices
    others = torch.ones_like(scores, dtype=torch.bool).scatter(-1, best, False)
    return scores.float().masked_fill(others, -torch.inf).softmax(-1).to(scores.dtype)
