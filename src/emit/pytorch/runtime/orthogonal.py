from __future__ import annotations

from torch import Tensor, nn


def orthogonal_(tensor: Tensor, gain: float) -> Tensor:
    """Fills with orthonormal rows or columns, times `gain` (Saxe et al. 2013)."""
    nn.init.orthogonal_(tensor.view(tensor.shape[0], -1), gain)
    return tensor
