from __future__ import annotations

import torch
from torch import Tensor


def hide_scores(scores: Tensor, mask: Tensor | None) -> Tensor:
    """`[B, H, T, K]` with the lowest number where `mask` is False."""
    if mask is None:
        return scores
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
