from __future__ import annotations

import torch
from torch import Tensor


def ramp_frequencies(plain: Tensor, factor: float, low: float, high: float) -> Tensor:
    """Angles up to pair `low` are kept, those from `high` on divided (YaRN)."""
    pairs = torch.arange(len(plain), dtype=plain.dtype, device=plain.device)
    ramp = ((pairs - low) / (high - low)).clamp(0, 1)
    return plain / factor * ramp + plain * (1 - ramp)
