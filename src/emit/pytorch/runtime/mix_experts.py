from __future__ import annotations

import torch
from torch import Tensor, nn


def mix_experts(
    x: Tensor, weights: Tensor, experts: nn.ModuleList, *needs: object
) -> Tensor:
    """The weighted sum of the experts, each applied to its own tokens alone.

    `x [B, T, D]`, `weights [B, T, E]` → `[B, T, D]`
    """
    rows, weights = x.flatten(0, -2), weights.flatten(0, -2)
    total = torch.zeros_like(rows)
    for expert, weight in zip(experts, weights.unbind(-1)):
        (own,) = weight.nonzero(as_tuple=True)  # the tokens sent to this expert
        y = expert(rows[own], *needs) * weight[own, None]
        total = total.index_add(0, own, y.to(total.dtype))
    return total.view_as(x)
