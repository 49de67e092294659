from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class OffsetRMSNorm(nn.Module):
    """`x / sqrt(mean(x²) + eps) * (1 + weight)`"""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(width))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, 1 + self.weight, self.eps)
