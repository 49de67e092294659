"""Muon: orthogonalised momentum for matrices (Jordan et al. 2024)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor


class Muon(torch.optim.Optimizer):
    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float,
        momentum: float,
        nesterov: bool,
        eps: float,
        iterations: int,
        adjust: str,
    ) -> None:
        super().__init__(groups, {"lr": lr})
        self.momentum, self.nesterov, self.adjust = momentum, nesterov, adjust
        self.iterations, self.eps = iterations, eps

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        for group in self.param_groups:
            rate, decay = group["lr"], group["weight_decay"]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    update = self.update(parameter, self.state[parameter])
                    parameter.mul_(1 - rate * decay).sub_(update * rate)
        return loss

    def update(self, parameter: Tensor, state: dict[str, Tensor]) -> Tensor:
        """The orthogonal matrix nearest to the momentum, scaled by its shape."""
        gradient = parameter.grad
        assert gradient is not None
        if "momentum" in state:
            state["momentum"].mul_(self.momentum).add_(gradient)
        else:
            state["momentum"] = gradient.clone()
        momentum = state["momentum"]
        if self.nesterov:
            momentum = gradient + self.momentum * momentum
        # Every process computes the whole matrix and takes its part of it.
        is_part = isinstance(momentum, DTensor)
        whole = momentum.full_tensor() if is_part else momentum
        rows, columns = whole.shape
        scale = math.sqrt(max(1.0, rows / columns))
        if self.adjust == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        whole = orthogonal(whole, self.iterations, self.eps) * scale
        if not isinstance(parameter, DTensor):
            return whole
        mesh, placements = parameter.device_mesh, parameter.placements
        return distribute_tensor(whole, mesh, placements, src_data_rank=None)


def orthogonal(x: Tensor, iterations: int, eps: float) -> Tensor:
    """The nearest orthogonal matrix, by Newton-Schulz iterations."""
    is_tall = x.shape[0] > x.shape[1]
    x = (x.T if is_tall else x) / x.norm().clamp_min(eps)
    for _ in range(iterations):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x.T if is_tall else x
