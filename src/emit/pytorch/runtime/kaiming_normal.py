from __future__ import annotations

import math

from torch import Tensor, nn


def kaiming_normal_(tensor: Tensor, gain: float) -> Tensor:
    """Fills `[out, in, ..]` from a normal distribution (He et al. 2015)."""
    return nn.init.normal_(tensor, std=gain / math.sqrt(math.prod(tensor.shape[1:])))
