from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Table(nn.Embedding):
    """A vector for each index; `init` fills fresh ones."""

    def __init__(self, rows: int, width: int, init: Callable[[Tensor], object]) -> None:
        self.init = init
        super().__init__(rows, width)

    def reset_parameters(self) -> None:
        self.init(self.weight)
