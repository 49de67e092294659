"""One model on many processes: sharded or copied, compiled, recomputed, in bfloat16."""

from __future__ import annotations

import argparse
import contextlib
import os
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from model import Model
from run_folder import Refused


def join() -> torch.device:
    """Joins the other processes; returns this one's device."""
    device, backend = torch.device("cpu"), "gloo"
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend)
    return device


def spread(
    model: Model, options: argparse.Namespace, device: torch.device
) -> nn.Module:
    """Places a model without memory on all processes; its weights are to be loaded."""
    blocks = dict.fromkeys(block for stack in model.stacks() for block in stack.blocks)
    for block in blocks:
        if options.compile:
            block.forward = torch.compile(block.forward)
        if options.recompute:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if options.parallel == "ddp":
        if options.bf16:
            in_bf16 = torch.autocast(device.type, torch.bfloat16)
            model.forward = in_bf16(model.forward)
        model.to_empty(device=device)
        return DistributedDataParallel(model)
    if dist.get_world_size() % options.replicas != 0:
        raise Refused(f"--replicas {options.replicas} does not divide the processes")
    shape = (options.replicas, dist.get_world_size() // options.replicas)
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("replicas", "shards"))
    mesh = mesh if options.replicas > 1 else mesh["shards"]
    # Masters stay float32, and so does what is summed over the processes.
    number = torch.bfloat16 if options.bf16 else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=number, reduce_dtype=torch.float32)
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model.to_empty(device=device)


def accumulated(
    net: nn.Module, is_last: bool
) -> contextlib.AbstractContextManager[Any]:
    """Gradients are summed over the processes after the last batch of a step only."""
    if isinstance(net, FSDPModule):
        net.set_requires_gradient_sync(is_last)
    elif isinstance(net, DistributedDataParallel) and not is_last:
        return net.no_sync()
    return contextlib.nullcontext()


def total(*numbers: float) -> list[float]:
    """The sums of numbers over all processes."""
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


# only: clip
def clipped(model: nn.Module, most: float) -> float:
    """Scales all gradients together down to a norm; returns the norm they had."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
    nn.utils.clip_grads_with_norm_(parameters, most, norm)
    return float(norm)


# end
