"""What the files next to this one use of an emitted model."""

from typing import Any

from torch import nn

class Stack(nn.Module):
    blocks: nn.ModuleList

class Model(nn.Module):
    def __init__(self) -> None: ...
    def stacks(self) -> list[Stack]: ...
    def __call__(self, **inputs: Any) -> Any: ...
