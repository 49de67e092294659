from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x Wᵀ + b`; a CPU reads a large `W` for a single row faster in eight parts."""
    rows = weight.shape[0] // 8
    is_row = x.is_cpu and x.dtype == torch.float32 and x.numel() == x.shape[-1]
    if not is_row or rows * weight.shape[1] < 2**15:
        return F.linear(x, weight, bias)
    parts = weight[: 8 * rows].view(8, rows, -1).mT
    y = torch.bmm(x.reshape(1, 1, -1).expand(8, 1, -1), parts).flatten()
    if 8 * rows < weight.shape[0]:
        y = torch.cat((y, F.linear(x.flatten(), weight[8 * rows :])))
    y = y.view(*x.shape[:-1], -1)
    return y if bias is None else y + bias


class Linear(nn.Linear):
    """`x Wᵀ + b`; `init` fills fresh weights, and fresh biases are zeros."""

    def __init__(
        self, d_in: int, d_out: int, init: Callable[[Tensor], object], bias: bool = True
    ) -> None:
        self.init = init
        super().__init__(d_in, d_out, bias)

    # only: fast_rows
    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    # end
    def reset_parameters(self) -> None:
        self.init(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class BiasedLinear(Linear):
    """`x Wᵀ + b`; `init` and `bias_init` fill fresh weights."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        init: Callable[[Tensor], object],
        bias_init: Callable[[Tensor], object],
    ) -> None:
        self.bias_init = bias_init
        super().__init__(d_in, d_out, init)

    def reset_parameters(self) -> None:
        self.init(self.weight)
        self.bias_init(self.bias)
