from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    # only: bias
    bias: Tensor | None = None,
    # end
    # only: causal
    causal: bool = False,
    # end
    # only: scale
    scale: float | None = None,
    # end
    # only: dropout
    dropout: float = 0.0,
    # end
) -> Tensor:
    """`softmax(scale q kᵀ) v`: `[B, H, T, D]`, `[B, H, K, D]`, `[B, H, K, V]`

    # only: causal
    A key is seen where `mask` is True and, if `causal`, up to the query; the last
    query sees the last key. A query that sees no key gets zeros.
    # end
    # only: !causal
    A key is seen where `mask` is True. A query that sees no key gets zeros.
    # end
    # only: bias
    `bias` is added to `scale q kᵀ`.
    # end
    """
    # only: causal
    queries, keys = q.shape[2], k.shape[2]
    # only: bias
    is_plain = mask is None and bias is None and queries == keys
    # end
    # only: !bias
    is_plain = mask is None and queries == keys
    # end
    if queries == 1:
        causal = False
    elif causal and not is_plain:
        past = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        past = past.tril(keys - queries)
        mask, causal = past if mask is None else mask & past, False
    # end
    # only: bias
    if bias is not None:
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    # end
    # only: scale
    # only: dropout
    # only: causal
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale)
    # end
    # only: !causal
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)
    # end
    # end
    # only: !dropout
    # only: causal
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale)
    # end
    # only: !causal
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    # end
    # end
    # end
    # only: !scale
    # only: dropout
    # only: causal
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
    # end
    # only: !causal
    return F.scaled_dot_product_attention(q, k, v, mask, dropout)
    # end
    # end
    # only: !dropout
    # only: causal
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
    # end
    # only: !causal
    return F.scaled_dot_product_attention(q, k, v, mask)
    # end
    # end
    # end
