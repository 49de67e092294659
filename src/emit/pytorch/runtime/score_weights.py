from __future__ import annotations

import torch
from torch import Tensor


def score_weights(
    scores: Tensor,
    mask: Tensor | None = None,
    # only: bias sinks
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    # end
    causal: bool = False,
    # only: softcap bias sinks
    softcap: float | None = None,
    # end
) -> Tensor:
    """The softmax over the keys of `scores [B, H, T, K]`, in single precision.

    # only: sinks
    A key is seen where `mask` is True and, if `causal`, up to the query; the last
    query sees the last key. A query that sees no key gets zeros. `sinks [H]` are the
    scores of one more key in each head, whose weight is left out.
    # end
    # only: !sinks
    A key is seen where `mask` is True and, if `causal`, up to the query; the last
    query sees the last key. A query that sees no key gets zeros.
    # end
    """
    queries, keys = scores.shape[2:]
    scores = scores.float()
    # only: softcap bias sinks
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    # end
    # only: bias sinks
    if bias is not None:
        scores = scores + bias
    # end
    if causal and queries > 1:
        past = torch.ones(queries, keys, dtype=torch.bool, device=scores.device)
        past = past.tril(keys - queries)
        mask = past if mask is None else mask & past
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    # only: bias sinks
    if sinks is not None:
        sink = sinks.float()[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat((scores, sink), dim=-1)
    weights = scores.softmax(-1)[..., :keys]
    # end
    # only: !bias
    # only: !sinks
    weights = scores.softmax(-1)
    # end
    # end
    return weights if mask is None else weights.masked_fill(~mask, 0.0)
