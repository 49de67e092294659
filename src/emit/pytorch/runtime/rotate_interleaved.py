from __future__ import annotations

import torch
from torch import Tensor


def rotate_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns feature `2i` with `2i + 1` of the first `n`: `[B, H, T, D]`, `[T, n/2]`"""
    width = 2 * cos.shape[-1]
    a, b, rest = x[..., 0:width:2], x[..., 1:width:2], x[..., width:]
    turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1)
    turned = turned.flatten(-2).type_as(x)
    return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned
