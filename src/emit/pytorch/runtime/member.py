from __future__ import annotations

from typing import Any

from torch import nn


def member(module: nn.Module, name: str) -> Any:
    """A member whose name is a word of Python or of `nn.Module`."""
    for members in (module._modules, module._parameters, module._buffers):
        if name in members:
            return members[name]
    raise AttributeError(name)
