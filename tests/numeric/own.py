"""The parts that the specs `parts-*.yaml` define, in plain PyTorch."""

import math

import torch

from reference import (
    ACTIVATIONS,
    Rotary,
    alibi,
    attention,
    decoder,
    dynamic_tanh,
    heads_of,
    joined,
    layer_norm,
    linear,
    mlp,
    pre_norm,
    rms_norm,
    scored,
    visible,
)

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


def differential(c, path, x, start, heads=2):
    """Ye et al. 2024, with the same masks as attention that comes along."""
    dim = x.shape[-1] // heads // 2

    def half(i):
        q = heads_of(linear(c, f"{path}.query{i}", x, heads * dim, bias=False), heads)
        k = heads_of(linear(c, f"{path}.key{i}", x, heads * dim, bias=False), heads)
        q, k = Rotary().rotate(q, c.context), Rotary().rotate(k, c.context)
        return scored(q, k, v, dim**-0.5, keep)

    def size(i):
        return torch.exp(
            (c.weight(f"{path}.lambda_q{i}", (dim,)) * c.weight(f"{path}.lambda_k{i}", (dim,))).sum()
        )

    v = heads_of(linear(c, f"{path}.value", x, 2 * heads * dim, bias=False), heads)
    keep = visible(c, x.shape[1], x.shape[1])
    y = half(1) - (size(1) - size(2) + start) * half(2)
    y = (1 - start) * rms_norm()(c, f"{path}.norm", y)
    return linear(c, f"{path}.output", joined(y), x.shape[-1], bias=False)


def own_attention(c, p, x):
    x = x + differential(c, f"{p}.differential_attention", NORM(c, f"{p}.norm1", x), 0.3)
    return x + mlp()(c, f"{p}.ffn", NORM(c, f"{p}.norm2", x))


def own_heads(c, p, x):
    path, h, length = f"{p}.grouped", NORM(c, f"{p}.norm", x), x.shape[1]
    q = heads_of(linear(c, f"{path}.query", h, 20), 4)
    k, v = (heads_of(linear(c, f"{path}.{name}", h, 2 * n), 2) for name, n in (("key", 5), ("value", 3)))
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    q = NORM(c, f"{path}.scored.q", q)
    bias = alibi()(c, path, 4, length, length)
    y = scored(q, k, v, 0.5, visible(c, length, length, window=4), 1.5, bias)
    y = joined(y * c.weight(f"{path}.gain", (4, 1, 3), mean=1.0))
    return x + linear(c, f"{path}.output", y * torch.sigmoid(linear(c, f"{path}.gate", h, 12)), x.shape[-1])


def earlier(x, n):
    return torch.cat((torch.zeros_like(x[..., :n, :]), x), dim=-2)[..., : x.shape[-2], :]


def convolved(c, path, x, width, bias=True):
    weight = c.weight(path, (x.shape[-1], 1, width))
    y = sum(weight[:, 0, j] * (earlier(x, width - 1 - j) if j < width - 1 else x) for j in range(width))
    return y + c.weight(f"{path}_bias", (x.shape[-1],)) if bias else y


def own_losses(c, p, x):
    h, d = NORM(c, f"{p}.norm1", x), x.shape[-1]
    x = x + attention()(c, f"{p}.attention", h)
    h = NORM(c, f"{p}.norm2", x)
    gate = torch.sigmoid(linear(c, f"{p}.gated.gate", h, 1))
    c.losses.append(("open", 0.2, gate.mean()))
    y = gate * linear(c, f"{p}.gated.down", linear(c, f"{p}.gated.up", h, 12).clamp(min=0), d)
    size = ((x - x.flatten(0, 1).mean(0)) ** 2).mean(-1)
    c.losses.append(("spread", 0.4, torch.log1p(size).mean()))
    c.losses.append(("side", 0.05, (linear(c, f"{p}.spread.probe", torch.tanh(x), 3) ** 2).mean()))
    return x + y + linear(c, f"{p}.spread.out", x, d)


def power(c, path, x):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-3) * c.weight(f"{path}.gain", x.shape[-1:], mean=1.0)


def unit(c, path, x):
    return 4 * c.weight(f"{path}.scale", (1,), mean=1.0) * x / x.norm(dim=-1, keepdim=True)


def own_norms():
    block = pre_norm(power, attention(), mlp(24))
    return decoder([block, pre_norm(unit, attention(), mlp(24))], norm=unit)


def own_time(c, p, x):
    h, d = NORM(c, f"{p}.norm1", x), x.shape[-1]
    path = f"{p}.short_convolution"
    before, after, y = (linear(c, f"{path}.{name}", h, d) for name in ("before", "after", "input"))
    short = linear(c, f"{path}.output", after * convolved(c, f"{path}.conv", before * y, 4), d)
    h = NORM(c, f"{p}.norm2", x)
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    heads = joined(torch.tanh(heads_of(earlier(h, 3), 2)).cumsum(-2))
    x = x + short + h.cumsum(-2) / counts + convolved(c, f"{p}.so_far.narrow", h, 2, bias=False) + heads
    h = NORM(c, f"{p}.norm3", x)
    share = c.weight(f"{p}.mixed.param", (d,))
    y = linear(c, f"{p}.mixed.up", share * h + (1 - share) * earlier(h, 1), 12).clamp(min=0) ** 2
    return x + linear(c, f"{p}.mixed.down", y, d)


def recurrence(q, k, v, decay, beta=None):
    """Katharopoulos et al. 2020 and Yang et al. 2024, one position after the other."""
    batch, heads, length, width = v.shape
    q, k, decay = (t.expand(batch, heads, length, t.shape[-1]) for t in (q, k, decay))
    state, results = torch.zeros(batch, heads, k.shape[-1], width, dtype=v.dtype), []
    for t in range(length):
        state = decay[:, :, t].unsqueeze(-1) * state
        new = v[:, :, t]
        if beta is not None:
            new = beta[:, :, t] * (new - torch.einsum("bhn,bhnp->bhp", k[:, :, t], state))
        state = state + torch.einsum("bhn,bhp->bhnp", k[:, :, t], new)
        results.append(torch.einsum("bhn,bhnp->bhp", q[:, :, t], state))
    return torch.stack(results, dim=2)


def own_recurrence(c, p, x):
    d = x.shape[-1]

    def of(path, name, h, heads, size):
        return heads_of(linear(c, f"{path}.{name}", h, heads * size), heads)

    path, h = f"{p}.of_heads", NORM(c, f"{p}.norm1", x)
    q, k, v = of(path, "query", h, 3, 5), of(path, "key", h, 1, 5), of(path, "value", h, 3, 4)
    decay = of(path, "decay", h, 3, 1).clamp(-0.9, 0.9) * of(path, "gate", h, 3, 1).clamp(min=0)
    x = x + linear(c, f"{path}.output", joined(recurrence(q, k, v, decay)), d)

    path, h = f"{p}.of_features", NORM(c, f"{p}.norm2", x)
    q, k = (of(path, name, h, 2, 4).repeat_interleave(2, dim=1) for name in ("query", "key"))
    v, decay = of(path, "value", h, 4, 3), torch.sigmoid(of(path, "decay", h, 4, 4))
    x = x + linear(c, f"{path}.output", joined(recurrence(q, k, v, decay)), d)

    path, h = f"{p}.replaced", NORM(c, f"{p}.norm3", x)
    q, k, v = of(path, "query", h, 2, 4), of(path, "key", h, 2, 4), of(path, "value", h, 2, 3)
    k = k / k.norm(dim=-1, keepdim=True)
    beta, decay = torch.sigmoid(of(path, "beta", h, 2, 1)), torch.sigmoid(of(path, "decay", h, 2, 4))
    y = recurrence(q, k, v, c.weight(f"{path}.fading", (2, 1, 1)), beta) + recurrence(q, k, v, decay, beta)
    x = x + linear(c, f"{path}.output", joined(y), d)

    path, h = f"{p}.fixed", NORM(c, f"{p}.norm4", x)
    q, k, v = of(path, "query", h, 2, 4), of(path, "key", h, 2, 4), of(path, "value", h, 2, 3)
    k, one = k / k.norm(dim=-1, keepdim=True), torch.ones(1, 1, 1, 1, dtype=x.dtype)
    y = recurrence(q, k, v, 0.9 * one) + recurrence(q, k, v, one, 0.5 * one.expand(1, 1, h.shape[1], 1))
    x = x + linear(c, f"{path}.output", joined(y), d)

    path, h = f"{p}.scan", NORM(c, f"{p}.norm5", x)
    step = torch.log(1 + torch.exp(of(path, "step", h, d, 1)))
    v = heads_of(h, d)
    decay = torch.exp(-step * torch.exp(c.weight(f"{path}.a_log", (d, 1, 3))))
    y = recurrence(of(path, "query", h, 1, 3), of(path, "key", h, 1, 3), step * v, decay)
    return x + joined(y + c.weight(f"{path}.skip", (d, 1, 1)) * v)


def seen(c, length, window=None):
    keep = visible(c, length, length, window=window)
    return keep if c.keep is None else keep & c.keep[:, None, None, :]


def own_pairs(c, p, x):
    d, length = x.shape[-1], x.shape[1]
    path, h = f"{p}.talking", NORM(c, f"{p}.norm1", x)
    q = heads_of(linear(c, f"{path}.query", h, 20), 4)
    k, v = (heads_of(linear(c, f"{path}.{name}", h, 2 * n), 2) for name, n in (("key", 5), ("value", 6)))
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    s = q @ k.transpose(-1, -2) / math.sqrt(5) + alibi()(c, path, 4, length, length)
    s = torch.einsum("bhtk,hg->bgtk", s, c.weight(f"{path}.before", (4, 4)))
    far = torch.arange(length)[:, None] - torch.arange(length)
    s = s + c.weight(f"{path}.near", (12,)).view(4, 3)[:, far.clamp(0, 2)]
    w = torch.softmax(s.masked_fill(~seen(c, length, window=4), -math.inf), -1)
    w = torch.einsum("bgtk,gh->bhtk", w, c.weight(f"{path}.after", (4, 4)))
    x = x + linear(c, f"{path}.output", joined(w @ v), d)

    path, h = f"{p}.kernel", NORM(c, f"{p}.norm2", x)
    q = heads_of(linear(c, f"{path}.query", h, d), 2)
    w = torch.exp(-((q @ q.transpose(-1, -2) / 2 + alibi()(c, path, 2, length, length)) ** 2))
    places = torch.einsum("bhtd,hdr->bhtr", q, c.weight(f"{path}.distance", (2, 8, 5)))
    index = (1 + far).clamp(0, 4).expand(x.shape[0], 2, length, length)
    w = (w + places.gather(-1, index)).masked_fill(~seen(c, length), 0.0)
    y = w @ q / (2 + w.sum(-1, keepdim=True) ** 2)
    y = torch.einsum("bhtd,hde->bhte", y, c.weight(f"{path}.mix", (2, 8, 3)))
    x = x + linear(c, f"{path}.output", joined(y), d)

    path, h = f"{p}.free", NORM(c, f"{p}.norm3", x)
    k = torch.exp(linear(c, f"{path}.key", h, d))
    w = torch.exp(c.weight(f"{path}.near", (6,))[far.clamp(0, 5)]).masked_fill(~seen(c, length), 0.0)
    w = w.expand(x.shape[0], 1, length, length)[:, 0]
    y = (w @ (k * linear(c, f"{path}.value", h, d))) / (w @ k)
    shared = c.weight(f"{path}.fixed", (8,)).view(2, 4)[:, (1 + far).clamp(0, 3)]
    shared = torch.softmax(shared.masked_fill(~seen(c, length), -math.inf), -1)
    y = torch.sigmoid(linear(c, f"{path}.query", h, d)) * y
    return x + y + joined((shared @ heads_of(h, 2)) * shared.sum(-1, keepdim=True))


def own_disentangled(c, p, x, heads=2, span=3):
    """As `disentangled_attention_bias` of the authors' DeBERTa computes it, a pair at a time."""
    d, length = x.shape[-1], x.shape[1]
    path, h = f"{p}.disentangled", NORM(c, f"{p}.norm", x)
    q, k, v = (heads_of(linear(c, f"{path}.{name}", h, d), heads) for name in ("query", "key", "value"))
    table = c.weight(f"{path}.distances", (2 * span, d))
    far_k = linear(c, f"{path}.far_key", table, d, bias=False).view(2 * span, heads, -1)
    far_q = linear(c, f"{path}.far_query", table, d).view(2 * span, heads, -1)
    s = torch.zeros(x.shape[0], heads, length, length, dtype=x.dtype)
    for i in range(length):
        for j in range(length):
            to, back = (min(max(n, 0), 2 * span - 1) for n in (i - j + span, span - (j - i)))
            s[:, :, i, j] = (
                (q[:, :, i] * k[:, :, j]).sum(-1)
                + (q[:, :, i] * far_k[to]).sum(-1)
                + (k[:, :, j] * far_q[back]).sum(-1)
            )
    s = s / math.sqrt(3 * d / heads)
    w = torch.softmax(s.masked_fill(~seen(c, length), -math.inf), -1)
    return x + linear(c, f"{path}.output", joined(w @ v), d)


def own_keys(c, p, x):
    d, length = x.shape[-1], x.shape[1]
    keep = seen(c, length)
    path, h = f"{p}.forgetful", NORM(c, f"{p}.norm1", x)
    q, k, v = (heads_of(linear(c, f"{path}.{name}", h, d), 4) for name in ("query", "key", "value"))
    # The logarithm of the product of all gates after the key up to the query, a pair at a time.
    gates = torch.sigmoid(linear(c, f"{path}.forget", h, 4)).transpose(1, 2)
    s = q @ k.transpose(-1, -2) / math.sqrt(d // 4)
    faded = torch.zeros_like(s)
    for i in range(length):
        for j in range(i + 1):
            faded[:, :, i, j] = s[:, :, i, j] + torch.log(gates[:, :, j + 1 : i + 1]).sum(-1)
    w = torch.softmax(faded.masked_fill(~keep, -math.inf), -1)
    x = x + linear(c, f"{path}.output", joined(w @ v), d)

    path, h = f"{p}.synthesizer", NORM(c, f"{p}.norm2", x)
    dense = heads_of(linear(c, f"{path}.scores", h, 2 * c.context), 2)[..., :length]
    table = c.weight(f"{path}.table.weight", (c.context, 2 * c.context), std=0.8)
    fixed = table.view(c.context, 2, c.context).transpose(0, 1)[:, :length, :length]
    w = torch.softmax((dense + fixed).masked_fill(~keep, -math.inf), -1)
    x = x + linear(c, f"{path}.output", joined(w @ heads_of(linear(c, f"{path}.value", h, d), 2)), d)

    path, h = f"{p}.sparse", NORM(c, f"{p}.norm3", x)
    q, k, v = (heads_of(linear(c, f"{path}.{name}", h, d), 2) for name in ("query", "key", "value"))
    s = (q @ k.transpose(-1, -2) / math.sqrt(d // 2)).masked_fill(~keep, -math.inf)
    most = s.amax(-1, keepdim=True)
    e = torch.exp(s - most) - torch.exp(-most)
    w = e.clamp(min=0) / (1e-6 + e.abs().masked_fill(~keep, 0.0).sum(-1, keepdim=True))
    third = s.sort(-1, descending=True).values[..., 2:3]
    return x + linear(c, f"{path}.output", joined(w.masked_fill(s < third, 0.0) @ v), d)


def own_experts(c, p, x):
    d = x.shape[-1]

    def unit(path, x, hidden):
        h = linear(c, f"{path}.up", x, hidden)
        return linear(c, f"{path}.down", h * torch.sigmoid(h), d)

    path, h = f"{p}.ffn", NORM(c, f"{p}.norm1", x)
    best = linear(c, f"{path}.router", h, 5, bias=False).softmax(-1)
    kept, index = best.topk(2, -1)
    y = torch.zeros_like(x)
    for e in range(5):
        share = ((kept / kept.sum(-1, keepdim=True)) * (index == e)).sum(-1, keepdim=True)
        y = y + share * unit(f"{path}.experts.{e}", 0.5 * h, 6)
    x = x + y

    path, h = f"{p}.switch", NORM(c, f"{p}.norm2", x)
    best = linear(c, f"{path}.router", h, 3).softmax(-1)
    weight, index = best.max(-1)
    y = torch.zeros_like(x)
    for e in range(3):
        # The first two tokens of a text that chose it.
        taken = (index == e) & ((index == e).cumsum(-1) <= 2)
        y = y + (weight * taken)[..., None] * unit(f"{path}.unit.{e}", h, 8)
    return x + y


def own_memory(c, p, x):
    d = x.shape[-1]
    x = x + attention()(c, f"{p}.attention", NORM(c, f"{p}.norm1", x))
    keep = torch.ones(1, 1, 1, c.memory.shape[1], dtype=torch.bool)
    if c.memory_keep is not None:
        keep = c.memory_keep[:, None, None, :]
    path, h = f"{p}.reading", NORM(c, f"{p}.norm2", x)
    q = heads_of(linear(c, f"{path}.query", h, 20), 4)
    k, v = (heads_of(linear(c, f"{path}.{n}", c.memory, 2 * w), 2) for n, w in (("key", 5), ("value", 6)))
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    y = linear(c, f"{path}.output", joined(scored(q, k, v, 0.4, keep, softcap=3)), d)

    path, h = f"{p}.talking", NORM(c, f"{p}.norm3", x)
    q = heads_of(linear(c, f"{path}.query", h, d), 2)
    k, v = (heads_of(linear(c, f"{path}.{n}", c.memory, d), 2) for n in ("key", "value"))
    s = torch.einsum("bhtk,hg->bgtk", q @ k.transpose(-1, -2) / math.sqrt(d // 2), c.weight(f"{path}.before", (2, 2)))
    w = torch.softmax(s.masked_fill(~keep, -math.inf), -1)
    w = torch.einsum("bhtk,hg->bgtk", w, c.weight(f"{path}.after", (2, 2)))
    y = y + linear(c, f"{path}.output", joined(w.masked_fill(~keep, 0.0) @ v), d)
    x = x + y
    return x + attention(cross=True)(c, f"{p}.cross", NORM(c, f"{p}.norm4", x))


def own_sums(c, p, x):
    """The covariance of features over positions, with queries and keys of unit length along them."""
    d, path = x.shape[-1], f"{p}.attention"
    keep = torch.ones(x.shape[:2], dtype=torch.bool) if c.keep is None else c.keep
    h = NORM(c, f"{p}.norm1", x)
    q, k, v = (heads_of(linear(c, f"{path}.{n}", h, d), 2) for n in ("query", "key", "value"))
    q, k = (t * keep[:, None, :, None] for t in (q, k))
    q, k = (t / ((t**2).sum(2, keepdim=True) + 1e-3).sqrt() for t in (q, k))
    weights = torch.softmax(q.transpose(-1, -2) @ k * c.weight(f"{path}.temperature", (1,)), -1)
    x = x + linear(c, f"{path}.output", joined(v @ weights.transpose(-1, -2)), d)
    return x + mlp(24)(c, f"{p}.ffn", NORM(c, f"{p}.norm2", x))


def own_sums_of_memory(c, p, x):
    d, path = x.shape[-1], f"{p}.reading"
    x = x + attention()(c, f"{p}.attention", NORM(c, f"{p}.norm1", x))
    keep = torch.ones(c.memory.shape[:2], dtype=torch.bool) if c.memory_keep is None else c.memory_keep
    q = torch.exp(torch.sin(heads_of(linear(c, f"{path}.query", NORM(c, f"{p}.norm2", x), d), 2)))
    k = torch.exp(torch.sin(heads_of(linear(c, f"{path}.key", c.memory, d), 2)))
    v = heads_of(linear(c, f"{path}.value", c.memory, d), 2)
    weights = (q @ k.transpose(-1, -2)) * keep[:, None, None, :]
    total = weights.sum(-1, keepdim=True) * c.weight(f"{path}.ones", (1, 1), mean=1.0)
    return x + linear(c, f"{path}.output", joined(weights @ v / total), d)


def mixer(c, path, x):
    h = torch.einsum("btd,ts->bsd", x, c.weight(f"{path}.up", (9, 5)))
    h = ACTIVATIONS["gelu"](h * c.weight(f"{path}.scale", (5, x.shape[-1]), mean=1.0))
    return torch.einsum("bsd,st->btd", h, c.weight(f"{path}.down", (5, 9)))


def own_embedding(c, p, x):
    """Rows of tables: found by whole numbers, and interpolated between two neighbours."""
    d = x.shape[-1]
    steps = (torch.arange(x.shape[1]) // 2).clamp(max=5)
    h = NORM(c, f"{p}.norm1", x)
    x = x + h + torch.nn.functional.embedding(steps, c.weight(f"{p}.steps.table", (6, d)))
    path = f"{p}.between"
    n = 5 * torch.sigmoid(linear(c, f"{path}.number", NORM(c, f"{p}.norm2", x), 2))
    table = c.weight(f"{path}.table", (6, 8))
    low = n.floor().clamp(max=4)
    part = (n - low)[..., None]
    rows = table[low.long()] * (1 - part) + table[low.long() + 1] * part
    return x + linear(c, f"{path}.output", rows.flatten(-2), d)
