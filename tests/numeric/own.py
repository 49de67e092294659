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


def gated(c, path, x, activation, hidden):
    gate = linear(c, f"{path}.gate", x, hidden, bias=False)
    up = linear(c, f"{path}.up", x, hidden, bias=False)
    return linear(c, f"{path}.down", activation(gate) * up, x.shape[-1], bias=False)


def adapter(c, path, x, size):
    h = ACTIVATIONS["gelu"](linear(c, f"{path}.down", x, size))
    return x + linear(c, f"{path}.up", h, x.shape[-1])


def highway(c, path, x):
    gate = torch.sigmoid(linear(c, f"{path}.gate", x, x.shape[-1]))
    return gate * torch.relu(linear(c, f"{path}.linear", x, x.shape[-1])) + (1 - gate) * x


def solu(c, path, x):
    h = linear(c, f"{path}.up", x, 4 * x.shape[-1])
    h = layer_norm()(c, f"{path}.layer_norm", h * torch.softmax(h, dim=-1))
    return linear(c, f"{path}.down", h, x.shape[-1])


def squared(c, path, x):
    h = linear(c, f"{path}.up", x, 4 * x.shape[-1], bias=False).clamp(min=0) ** 2
    return linear(c, f"{path}.down", h, x.shape[-1], bias=False)


def library(c, p, x):
    x = adapter(c, f"{p}.adapter", x + attention()(c, f"{p}.attention", NORM(c, f"{p}.norm1", x)), 3)
    x = highway(c, f"{p}.highway", x)
    h = NORM(c, f"{p}.norm2", x)
    x = x + gated(c, f"{p}.ffn", h, torch.nn.functional.silu, 64) + gated(c, f"{p}.geglu", h, ACTIVATIONS["gelu"], 6)
    h = NORM(c, f"{p}.norm3", x)
    x = x + gated(c, f"{p}.reglu", h, torch.relu, 5) + gated(c, f"{p}.bilinear", h, lambda gate: gate, 7)
    return x + solu(c, f"{p}.solu", h) + squared(c, f"{p}.squared_relu_mlp", h)
