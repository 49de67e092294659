from __future__ import annotations

import torch
from torch import Tensor

from .rotary import frequencies


def dynamic_frequencies(
    theta: float,
    dim: int,
    factor: float,
    trained: int,
    length: int,
    device: torch.device,
) -> Tensor:
    """The angles of a sequence longer than the `trained` positions (dynamic NTK)."""
    grown = (factor * length / trained - (factor - 1)) ** (dim / (dim - 2))
    return frequencies(theta * grown, dim, device)
