from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def earlier(whole: Tensor, x: Tensor, by: int) -> Tensor:
    """The value `by` positions before each of the last `T` positions, or zeros:
    `[.., K, D]`, `[.., T, D]` → `[.., T, D]`"""
    start, time = whole.shape[-2] - x.shape[-2], x.shape[-2]
    return F.pad(whole, (0, 0, by, 0)).narrow(-2, start, time)
