from __future__ import annotations

import torch
from torch import Tensor


def limit_groups(choice: Tensor, groups: int, kept: int, score_of: int) -> Tensor:
    """Leaves the choice among the experts of the best `kept` groups (DeepSeek-V3).

    `[B, T, E]` → `[B, T, E]`; a group's score is the sum of its best `score_of`.
    """
    grouped = choice.reshape(*choice.shape[:-1], groups, -1)
    scores = grouped.detach().topk(score_of, dim=-1).values.sum(-1)
    best = scores.topk(kept, dim=-1).indices
    others = torch.ones_like(scores, dtype=torch.bool).scatter(-1, best, False)
    lowest = torch.finfo(choice.dtype).min
    return grouped.masked_fill(others[..., None], lowest).flatten(-2)
