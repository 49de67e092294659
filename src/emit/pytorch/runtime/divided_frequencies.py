from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def divided_frequencies(plain: Tensor, divisors: Sequence[float]) -> Tensor:
    """Angles of all pairs, each divided by a number of its own (LongRoPE)."""
    return plain / plain.new_tensor(divisors)
