from __future__ import annotations

import torch
from torch import Tensor


def quick_gelu(x: Tensor) -> Tensor:
    """`x sigmoid(1.702 x)` (Hendrycks and Gimpel 2016)"""
    return x * torch.sigmoid(1.702 * x)
