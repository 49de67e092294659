from __future__ import annotations

import math

import torch
from torch import Tensor


def relative_buckets(
    start: int,
    queries: int,
    keys: int,
    buckets: int,
    max_distance: int,
    bidirectional: bool,
    device: torch.device,
) -> Tensor:
    """The bucket of `key - query`: `[T, K]` (Raffel et al. 2020)

    If `bidirectional`, the second half of the buckets is for keys after the query;
    otherwise these count as distance 0. Half of the buckets of a side have one distance
    each, the others grow logarithmically.
    """
    query = torch.arange(start, start + queries, device=device)[:, None]
    distance = query - torch.arange(keys, device=device)
    side = buckets // 2 if bidirectional else buckets
    later = side * (distance < 0) if bidirectional else 0
    distance = distance.abs() if bidirectional else distance.clamp(min=0)
    exact = side // 2
    part = torch.log(distance.float() / exact) / math.log(max_distance / exact)
    far = exact + (part * (side - exact)).clamp(min=0).long()
    return later + torch.where(distance < exact, distance, far.clamp(max=side - 1))
