from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class PaddedTable(nn.Embedding):
    """A vector for each index; `init` fills fresh ones, zeros that of padding."""

    def __init__(
        self, rows: int, width: int, init: Callable[[Tensor], object], padding: int
    ) -> None:
        self.init, self.padding = init, padding
        super().__init__(rows, width)

    def reset_parameters(self) -> None:
        self.init(self.weight)
        nn.init.zeros_(self.weight[self.padding])
