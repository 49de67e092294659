from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Patches(nn.Conv2d):
    """A vector for each square patch: `[B, C, H, W]` → `[B, N, width]`"""

    def __init__(
        self,
        channels: int,
        width: int,
        size: int,
        init: Callable[[Tensor], object],
        bias: bool = True,
        bias_init: Callable[[Tensor], object] = nn.init.zeros_,
    ) -> None:
        self.init, self.bias_init = init, bias_init
        super().__init__(channels, width, size, stride=size, bias=bias)

    def reset_parameters(self) -> None:
        self.init(self.weight)
        if self.bias is not None:
            self.bias_init(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).flatten(2).transpose(1, 2)
