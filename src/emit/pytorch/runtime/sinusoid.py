from __future__ import annotations

import torch
from torch import Tensor


def sinusoid(
    positions: Tensor,
    dim: int,
    base: float,
    interleaved: bool,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Sines and cosines of `position / base^(2i / dim)`: `[.., T]` → `[.., T, dim]`

    They alternate, or all sines come first (Vaswani et al. 2017).
    """
    exact = torch.float32 if positions.device.type == "mps" else torch.float64
    pairs = torch.arange(0, dim, 2, dtype=exact, device=positions.device)
    angles = positions.to(exact)[..., None] / base ** (pairs / dim)
    sines, cosines = angles.sin().to(dtype), angles.cos().to(dtype)
    if interleaved:
        return torch.stack((sines, cosines), dim=-1).flatten(-2)[..., :dim]
    return torch.cat((sines, cosines), dim=-1)[..., :dim]
