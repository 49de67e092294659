from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def grouped_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`softmax(scale q kᵀ + bias) v`: `[B, H, T, D]`, `[B, G, K, D]`, `[B, G, K, V]`

    Each of `G` heads of keys and values serves `H / G` of queries. A key is seen where
    `mask` is True and, if `causal`, up to the query; the last query sees the last key.
    A query that sees no key gets zeros.
    """
    queries, keys = q.shape[2], k.shape[2]
    is_plain = mask is None and bias is None and (not causal or queries in (1, keys))
    if not is_plain:
        # The fast kernels of PyTorch share heads only without a mask.
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    if causal and queries > 1 and not is_plain:
        past = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        past = past.tril(keys - queries)
        mask = past if mask is None else mask & past
    if bias is not None:
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    is_causal = causal and queries > 1 and is_plain
    return F.scaled_dot_product_attention(
        q, k, v, mask, dropout, is_causal, scale=scale, enable_gqa=is_plain
    )
