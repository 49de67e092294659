from __future__ import annotations

import torch
from torch import Tensor


def frequencies(theta: float, dim: int, device: torch.device) -> Tensor:
    """Angles from one position to the next of all pairs: `theta^(-2i / dim)`"""
    exact = torch.float32 if device.type == "mps" else torch.float64
    return theta ** (-torch.arange(0, dim, 2, dtype=exact, device=device) / dim)


def rotary_table(frequencies: Tensor, start: int, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of `position * frequency`, each `[T, pairs]`."""
    positions = torch.arange(start, start + length, device=frequencies.device)
    angles = torch.outer(positions.to(frequencies.dtype), frequencies)
    return angles.cos().float(), angles.sin().float()


def scaled_rotary_table(
    frequencies: Tensor, start: int, length: int, magnitude: float
) -> tuple[Tensor, Tensor]:
    """`rotary_table` times `magnitude`, which scales queries and keys."""
    cos, sin = rotary_table(frequencies, start, length)
    return magnitude * cos, magnitude * sin
