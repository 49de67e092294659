from __future__ import annotations

import torch
from torch import Tensor


def by_distance(
    x: Tensor,
    start: int,
    queries: int,
    keys: int,
    center: int,
    of_keys: bool = False,
    # only: farthest
    exact: int = 0,
    farthest: int = 0,
    # end
    # only: columns
    columns: int = 0,
    has_class: bool = False,
    # end
) -> Tensor:
    """The feature number `center + query - key` for all pairs: `[B, H, T, K]`

    `x [B, H, T, R]` has the features of queries, or those of keys, `[B, H, K, R]`; all
    pairs that are farther away have the first or the last one.
    # only: farthest
    Distances beyond `exact` share numbers on a logarithmic scale, on which
    `farthest - 1` has the number `2 * exact - 1`.
    # end
    # only: columns
    With `columns`, positions are in a grid: a row apart is `2 * columns - 1`. The last
    three features are from the class token to the others, to it, and to itself.
    # end
    """
    if of_keys and x.shape[-1] == 1:
        return x.transpose(2, 3).expand(-1, -1, queries, keys)
    query = torch.arange(start, start + queries, device=x.device)[:, None]
    distance = query - torch.arange(keys, device=x.device)
    # only: farthest
    if exact:
        scale = torch.tensor((farthest - 1) / exact, device=x.device).log()
        beyond = (distance.abs().clamp(min=exact) / exact).log() / scale * (exact - 1)
        beyond = distance.sign() * (beyond.ceil().long() + exact)
        distance = torch.where(distance.abs() <= exact, distance, beyond)
    # end
    # only: columns
    if columns:
        at = query - int(has_class)
        to = torch.arange(keys, device=x.device) - int(has_class)
        rows = at.div(columns, rounding_mode="floor")
        rows = rows - to.div(columns, rounding_mode="floor")
        across = at.remainder(columns) - to.remainder(columns)
        distance = rows * (2 * columns - 1) + across
        if has_class:
            last = x.shape[-1] - 1 - center
            distance[0], distance[:, 0], distance[0, 0] = last - 2, last - 1, last
    # end
    index = (distance + center).clamp(0, x.shape[-1] - 1)
    if of_keys:
        index = index.T.expand(*x.shape[:2], keys, queries)
        return x.expand(-1, -1, keys, -1).gather(-1, index).transpose(2, 3)
    index = index.expand(*x.shape[:2], queries, keys)
    return x.expand(-1, -1, queries, -1).gather(-1, index)
