from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`softmax(scale q kᵀ + bias) v`: `[B, H, T, D]`, `[B, H, K, D]`, `[B, H, K, V]`

    A key is seen where `mask` is True and, if `causal`, up to the query; the last
    query sees the last key. A query that sees no key gets zeros.
    """
    queries, keys = q.shape[2], k.shape[2]
    is_plain = mask is None and bias is None and queries == keys
    if causal and queries > 1 and not is_plain:
        past = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        past = past.tril(keys - queries)
        mask = past if mask is None else mask & past
    if bias is not None:
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    is_causal = causal and queries > 1 and is_plain
    return F.scaled_dot_product_attention(
        q, k, v, mask, dropout, is_causal, scale=scale
    )
