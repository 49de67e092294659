from __future__ import annotations

from torch import Tensor


def by_key(
    x: Tensor,
    queries: int,
    keys: int,
    # only: mask
    mask: Tensor | None = None,
    # end
) -> Tensor:
    """Features of queries by the position of the key: `[B, H, T, R]` → `[B, H, T, K]`
    # only: mask

    Positions that `mask`, `[B, 1, 1, K]`, leaves out are not counted.
    # end
    """
    # only: mask
    if mask is not None:
        index = (mask.long().cumsum(-1) - 1).clamp(min=0)
        index = index.expand(-1, x.shape[1], queries, -1)
        return x.expand(-1, -1, queries, -1).gather(-1, index)
    # end
    return x[..., :keys].expand(-1, -1, queries, -1)
