from __future__ import annotations

from torch import Tensor


def both_masks(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The keys that both masks let a query see. An absent mask hides nothing."""
    if a is None or b is None:
        return b if a is None else a
    return a & b
