from __future__ import annotations

from torch import Tensor


def padding_mask(keep: Tensor | None) -> Tensor | None:
    """The keys that are not padding, for attention: `[B, K]` → `[B, 1, 1, K]`"""
    return None if keep is None else keep.bool()[:, None, None, :]
