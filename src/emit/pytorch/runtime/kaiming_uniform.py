from __future__ import annotations

import math

from torch import Tensor, nn


def kaiming_uniform_(tensor: Tensor, gain: float) -> Tensor:
    """Fills `[out, in, ..]` evenly up to `gain * sqrt(3 / in)` (He et al. 2015)."""
    bound = gain * math.sqrt(3 / math.prod(tensor.shape[1:]))
    return nn.init.uniform_(tensor, -bound, bound)
