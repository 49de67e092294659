from __future__ import annotations

from torch import Tensor, nn


def truncated_normal_(tensor: Tensor, std: float, cut: float) -> Tensor:
    """Fills from `N(0, std²)` without values beyond `cut` standard deviations."""
    return nn.init.trunc_normal_(tensor, std=std, a=-cut * std, b=cut * std)
