from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Linear(nn.Linear):
    """`x Wᵀ + b`; `init` fills fresh weights, and fresh biases are zeros."""

    def __init__(
        self, d_in: int, d_out: int, init: Callable[[Tensor], object], bias: bool = True
    ) -> None:
        self.init = init
        super().__init__(d_in, d_out, bias)

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
