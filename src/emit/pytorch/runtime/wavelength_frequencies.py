from __future__ import annotations

import math

from torch import Tensor


def wavelength_frequencies(
    plain: Tensor, factor: float, original: float, low: float, high: float
) -> Tensor:
    """Angles of long wavelengths are divided, of short ones kept (Llama 3.1)."""
    turns = original * plain / (2 * math.pi)  # of a pair in `original` positions
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * plain / factor + kept * plain
