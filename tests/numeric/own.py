"""The parts that the specs `parts-*.yaml` define, in plain PyTorch."""

import math

import torch

from reference import ACTIVATIONS, attention, dynamic_tanh, layer_norm, linear, rms_norm

NORM = layer_norm()


def words(c, path, x):
    half = x.shape[-1] // 2
    low, high = x[..., :half], (1.5 * torch.tanh(x[..., half:] / 1.5)).clamp(-1, 1.2)
    bounded = dynamic_tanh()(c, f"{path}.dynamic_tanh", low)
    unit = bounded / bounded.norm(dim=-1, keepdim=True)
    scaled = rms_norm(1e-3)(c, f"{path}.scaled", high)
    y = torch.cat((high, layer_norm(bias=False)(c, f"{path}.layer_norm", low), unit, scaled), dim=-1)
    y = ACTIVATIONS["relu2"](y) + ACTIVATIONS["gelu"](y) - torch.tanh(y) / 3
    return linear(c, f"{path}.down", y, 2 * half, bias=False)


def mixed(c, path, a, b, scale):
    size = (a.shape[-1],)
    gate = torch.sigmoid(a * c.weight(f"{path}.gate", size, mean=1.0) + c.weight(f"{path}.shift", size))
    y = (scale * gate * a - (1 - scale) * b + 0.25) * c.weight(f"{path}.gain", size, mean=1.0)
    h = linear(c, f"{path}.small.down", y, 5).clamp(min=0)
    return y + linear(c, f"{path}.small.up", h, *size)


def own(c, p, x):
    h = NORM(c, f"{p}.norm1", x)
    x = x + attention()(c, f"{p}.attention", h) + mixed(c, f"{p}.mixed", h, x, 0.3)
    return x + words(c, f"{p}.ffn", NORM(c, f"{p}.norm2", x))


def functions(c, path, x):
    h = linear(c, f"{path}.up", x, 2 * x.shape[-1])
    scores = torch.softmax(h / math.sqrt(x.shape[-1]), dim=-1)
    entropy = (-scores * torch.log(scores + 1e-6)).sum(-1, keepdim=True)
    unit = layer_norm(affine=False)(c, path, h)
    y = torch.log1p(unit.exp()) * torch.exp(-unit.abs()) + torch.sin(unit) * torch.cos(unit)
    y = y / (1 + h.abs().amax(-1, keepdim=True)) + 1 / (2 + entropy) + math.log(2) + torch.log(1 + unit**2)
    return linear(c, f"{path}.down", y, x.shape[-1])


def own_functions(c, p, x):
    x = x + attention()(c, f"{p}.attention", NORM(c, f"{p}.norm", x))
    size = c.weight(f"{p}.scaled.size", (1,), mean=1.0)
    return x + functions(c, f"{p}.ffn", size * x / torch.sqrt((x**2).sum(-1, keepdim=True) + 1e-6))
