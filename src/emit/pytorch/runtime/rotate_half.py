from __future__ import annotations

import torch
from torch import Tensor


def rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns feature `i` with `i + n/2` of the first `n`: `[B, H, T, D]`, `[T, n/2]`"""
    pairs = cos.shape[-1]
    a, b, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).type_as(x)
    return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned
