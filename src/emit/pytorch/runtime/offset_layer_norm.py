from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class OffsetLayerNorm(nn.Module):
    """`(x - mean) / sqrt(var + eps) * (1 + weight) + bias`"""

    def __init__(self, width: int, eps: float, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, 1 + self.weight, self.bias, self.eps)
