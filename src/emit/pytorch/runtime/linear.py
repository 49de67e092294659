from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Linear(nn.Linear):
    """`x Wᵀ + b`; `init` and `bias_init` fill fresh weights."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        init: Callable[[Tensor], object],
        bias: bool = True,
        bias_init: Callable[[Tensor], object] = nn.init.zeros_,
    ) -> None:
        self.init, self.bias_init = init, bias_init
        super().__init__(d_in, d_out, bias)

    def reset_parameters(self) -> None:
        self.init(self.weight)
        if self.bias is not None:
            self.bias_init(self.bias)
