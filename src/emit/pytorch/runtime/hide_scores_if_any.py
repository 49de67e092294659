from __future__ import annotations

from torch import Tensor

from .hide_scores import hide_scores


def hide_scores_if_any(scores: Tensor, mask: Tensor | None) -> Tensor:
    """`hide_scores` in rows of `mask` that have a True; others keep their scores."""
    if mask is not None:
        mask = mask | ~mask.any(-1, keepdim=True)
    return hide_scores(scores, mask)
