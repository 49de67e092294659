"""Transformers in plain PyTorch, written from the papers and the definitions, to compare trafoc with.

Everything here is a function of a context `C`, a path and a tensor. Weights are drawn at random when
they are first asked for, under the path that trafoc gives them, kept in float32 and used in float64, so
that the expected outputs are exact to float32. Nothing starts at 0 or 1: a part that ignores a bias, a
norm's weight or a table shows.
"""

import math

import torch
import torch.nn.functional as F


class C:
    """Weights, and the values that the parts of a stack share."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)
        self.weights = {}
        self.leaves = {}  # the same in double precision, for computing gradients
        self.stack = "decoder"
        self.causal = True
        self.keep = None  # [B, K], true where a token is not padding
        self.memory = None
        self.memory_keep = None
        self.context = 32
        self.losses = []  # what parts add to the loss: name, weight, value

    def weight(self, name, shape, mean=0.0, std=0.3):
        if name not in self.weights:
            drawn = mean + std * torch.randn(shape, generator=self.random)
            self.weights[name] = drawn.float()
            self.leaves[name] = self.weights[name].double().requires_grad_()
        assert self.weights[name].shape == torch.Size(shape), name
        return self.leaves[name]


# Layers


def linear(c, path, x, out, bias=True):
    """x W^T + b"""
    width = x.shape[-1]
    y = x @ c.weight(f"{path}.weight", (out, width), std=1.5 / math.sqrt(width)).T
    return y + c.weight(f"{path}.bias", (out,)) if bias else y


def lookup(c, path, rows, dim, indices):
    return c.weight(f"{path}.weight", (rows, dim), std=0.8)[indices]


def layer_norm(eps=1e-5, affine=True, bias=True, unit_offset=False):
    def norm(c, path, x):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        y = (x - mean) / torch.sqrt(variance + eps)
        if affine:
            w = c.weight(f"{path}.weight", x.shape[-1:], mean=0.0 if unit_offset else 1.0)
            y = y * (1 + w if unit_offset else w)
        if affine and bias:
            y = y + c.weight(f"{path}.bias", x.shape[-1:])
        return y

    return norm


def rms_norm(eps=1e-6, affine=True, unit_offset=False):
    def norm(c, path, x):
        y = x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps)
        if affine:
            w = c.weight(f"{path}.weight", x.shape[-1:], mean=0.0 if unit_offset else 1.0)
            y = y * (1 + w if unit_offset else w)
        return y

    return norm


def dynamic_tanh(affine=True, bias=True):
    """Zhu et al. 2025, section 4."""

    def norm(c, path, x):
        y = torch.tanh(c.weight(f"{path}.alpha", (1,), mean=0.5) * x)
        if affine:
            y = c.weight(f"{path}.weight", x.shape[-1:], mean=1.0) * y
        if affine and bias:
            y = y + c.weight(f"{path}.bias", x.shape[-1:])
        return y

    return norm


def each_head_norm(eps=1e-5):
    """Layer norm of each head's features, with separate weights for every head."""

    def norm(c, path, x):
        y = layer_norm(eps, affine=False)(c, path, x)
        shape = (x.shape[1], 1, x.shape[3])
        return y * c.weight(f"{path}_gain", shape, mean=1.0) + c.weight(f"{path}_shift", shape)

    return norm


def no_norm(c, path, x):
    return x


ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "relu2": lambda x: x.clamp(min=0) ** 2,
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "tanh": torch.tanh,
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "none": lambda x: x,
}


# Positions


def sinusoid(positions, dim, base=10000.0, layout="interleaved"):
    """Vaswani et al. 2017, section 3.5; Marian and M2M-100 put all sines first."""
    i = torch.arange(dim // 2, dtype=torch.float64)
    angle = positions.double()[:, None] / base ** (2 * i / dim)
    if layout == "concat":
        return torch.cat([angle.sin(), angle.cos()], -1)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def learned(offset=0):
    def add(c, path, x):
        rows = c.context + offset
        at = torch.arange(x.shape[1]) + offset
        return x + lookup(c, f"{path}.positions", rows, x.shape[-1], at)

    return add


def sinusoidal(layout="interleaved", offset=0, base=10000.0):
    def add(c, path, x):
        return x + sinusoid(torch.arange(x.shape[1]) + offset, x.shape[-1], base, layout)

    return add


class Rotary:
    """Su et al. 2021. Scalings follow the definitions of Hugging Face's `modeling_rope_utils`."""

    def __init__(self, theta=10000.0, fraction=1.0, pairing="half", scaling=None):
        self.theta, self.fraction, self.pairing, self.scaling = theta, fraction, pairing, scaling or {}

    def frequencies(self, dim, length, context):
        """Inverse frequencies [dim / 2] and the factor on sines and cosines."""
        s, theta = self.scaling, self.theta
        i = torch.arange(0, dim, 2, dtype=torch.float64)
        kind = s.get("kind")
        if kind == "dynamic" and length > s["original"]:
            grown = s["factor"] * length / s["original"] - (s["factor"] - 1)
            theta = theta * grown ** (dim / (dim - 2))
        plain = 1 / theta ** (i / dim)
        if kind == "linear":
            return plain / s["factor"], 1.0
        if kind == "yarn":
            return self.yarn(plain, dim)
        if kind == "longrope":
            factors = s["long"] if length > s["original"] else s["short"]
            longer = context / s["original"]
            magnitude = math.sqrt(1 + math.log(longer) / math.log(s["original"])) if longer > 1 else 1.0
            return plain / torch.tensor(factors, dtype=torch.float64), s.get("attention_factor", magnitude)
        if kind == "llama3":
            return self.llama3(plain), 1.0
        return plain, 1.0

    def yarn(self, plain, dim):
        s = self.scaling

        def mscale(scale, m=1.0):
            return 1.0 if scale <= 1 else 0.1 * m * math.log(scale) + 1.0

        if "attention_factor" in s:
            magnitude = s["attention_factor"]
        elif "mscale" in s and "mscale_all_dim" in s:
            magnitude = mscale(s["factor"], s["mscale"]) / mscale(s["factor"], s["mscale_all_dim"])
        else:
            magnitude = mscale(s["factor"])

        def dimension(turns):
            return dim * math.log(s["original"] / (turns * 2 * math.pi)) / (2 * math.log(self.theta))

        low, high = dimension(s.get("beta_fast", 32.0)), dimension(s.get("beta_slow", 1.0))
        if s.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        if low == high:
            high += 0.001
        ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
        return plain / s["factor"] * ramp + plain * (1 - ramp), magnitude

    def llama3(self, plain):
        s = self.scaling
        wavelength = 2 * math.pi / plain
        low, high = s["original"] / s["low"], s["original"] / s["high"]
        smooth = (s["original"] / wavelength - s["low"]) / (s["high"] - s["low"])
        between = (1 - smooth) * plain / s["factor"] + smooth * plain
        return torch.where(
            wavelength > low, plain / s["factor"], torch.where(wavelength < high, plain, between)
        )

    def rotate(self, x, context):
        """x [B, H, T, D]"""
        length, dim = x.shape[2], int(x.shape[3] * self.fraction + 1e-9)
        inverse, magnitude = self.frequencies(dim, length, context)
        angle = torch.arange(length, dtype=torch.float64)[:, None] * inverse
        cos, sin = angle.cos() * magnitude, angle.sin() * magnitude
        turned, rest = x[..., :dim], x[..., dim:]
        if self.pairing == "half":
            a, b = turned[..., : dim // 2], turned[..., dim // 2 :]
            turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        else:
            a, b = turned[..., 0::2], turned[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        return torch.cat([turned, rest], -1)


def alibi(largest=8.0):
    """Press et al. 2021, with the slopes of their published function."""

    def slopes(heads):
        def power_of_two(n):
            start = 2.0 ** (-largest / n)
            return [start ** (i + 1) for i in range(n)]

        if math.log2(heads).is_integer():
            return power_of_two(heads)
        closest = 2 ** math.floor(math.log2(heads))
        return power_of_two(closest) + power_of_two(2 * closest)[0::2][: heads - closest]

    def bias(c, path, heads, queries, keys):
        distance = (torch.arange(queries)[:, None] - torch.arange(keys)[None, :]).abs().double()
        return -torch.tensor(slopes(heads), dtype=torch.float64)[:, None, None] * distance

    return bias


def t5_bias(buckets=32, max_distance=128, shared=True, bidirectional=None):
    """Raffel et al. 2020, with the rounding of the published code: logarithms in float32."""

    def bucket(relative, two_sided):
        n, result = buckets, torch.zeros_like(relative)
        if two_sided:
            n //= 2
            result = result + (relative > 0).long() * n
            relative = relative.abs()
        else:
            relative = -torch.minimum(relative, torch.zeros_like(relative))
        exact = n // 2
        large = exact + (
            torch.log(relative.float() / exact) / math.log(max_distance / exact) * (n - exact)
        ).long()
        large = torch.minimum(large, torch.full_like(large, n - 1))
        return result + torch.where(relative < exact, relative, large)

    def bias(c, path, heads, queries, keys):
        two_sided = (not c.causal) if bidirectional is None else bidirectional
        relative = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
        table = f"{c.stack if shared else path}.relative_bias"
        return lookup(c, table, buckets, heads, bucket(relative, two_sided)).permute(2, 0, 1)

    return bias


# Attention


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(-2)


def visible(c, queries, keys, window=None, prefix=None, chunk=None, causal=None):
    """[T, K], true where a query sees a key."""
    q, k = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    causal = prefix is not None or (c.causal if causal is None else causal)
    keep = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        keep &= (k <= q) | (k < (prefix or 0))
    if window is not None:
        keep &= (q - k).abs() < (window if causal else (window + 1) // 2)
    if chunk is not None:
        keep &= q // chunk == k // chunk
    return keep


def scored(q, k, v, scale, keep, softcap=None, bias=None, sinks=None, additive=None):
    if additive is None:
        scores = scale * q @ k.transpose(-1, -2)
    else:
        hidden = torch.tanh(q[:, :, :, None, :] + k[:, :, None, :, :])
        scores = scale * torch.einsum("bhtkd,hd->bhtk", hidden, additive)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~keep, -math.inf)
    if sinks is not None:
        sink = sinks[None, :, None, None].expand(scores.shape[0], -1, scores.shape[2], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1] @ v
    return torch.softmax(scores, -1) @ v


def attention(
    heads=2,
    kv_heads=None,
    head_dim=None,
    value_dim=None,
    bias="qkvo",
    scale=None,
    softcap=None,
    qk_norm=None,
    over="head",
    after=False,
    clip=None,
    sinks=False,
    gate=None,
    rotary=None,
    score_bias=None,
    cross=False,
    additive=False,
    **mask,
):
    """Multi-head attention. `bias` names the projections that have one."""

    def part(c, path, x):
        d_model = x.shape[-1]
        kv, dim = kv_heads or heads, head_dim or d_model // heads
        values = value_dim or dim
        source = c.memory if cross else x
        q = linear(c, f"{path}.query", x, heads * dim, "q" in bias)
        k = linear(c, f"{path}.key", source, kv * dim, "k" in bias)
        v = linear(c, f"{path}.value", source, kv * values, "v" in bias)
        if clip is not None:
            q, k, v = (t.clamp(-clip, clip) for t in (q, k, v))
        if qk_norm and over == "full":
            q, k = qk_norm(c, f"{path}.query_norm", q), qk_norm(c, f"{path}.key_norm", k)
        q, k, v = heads_of(q, heads), heads_of(k, kv), heads_of(v, kv)
        if qk_norm and over == "each_head":
            q, k = qk_norm(c, f"{path}.query", q), qk_norm(c, f"{path}.key", k)
        if qk_norm and over == "head" and not after:
            q, k = qk_norm(c, f"{path}.query_norm", q), qk_norm(c, f"{path}.key_norm", k)
        if rotary:
            q, k = rotary.rotate(q, c.context), rotary.rotate(k, c.context)
        if qk_norm and over == "head" and after:
            q, k = qk_norm(c, f"{path}.query_norm", q), qk_norm(c, f"{path}.key_norm", k)
        k, v = (t.repeat_interleave(heads // kv, dim=1) for t in (k, v))
        padding = c.memory_keep if cross else c.keep
        length = k.shape[2]
        keep = torch.ones(1, 1, 1, length, dtype=torch.bool) if cross else visible(c, length, length, **mask)
        if padding is not None:
            keep = keep & padding[:, None, None, :]
        added = score_bias(c, path, heads, q.shape[2], length) if score_bias else None
        sink = c.weight(f"{path}.sinks", (heads,), std=1.0) if sinks else None
        w = c.weight(f"{path}.score", (heads, dim)) if additive else None
        y = scored(q, k, v, scale or (1.0 if additive else dim**-0.5), keep, softcap, added, sink, w)
        if gate == "headwise":
            opened = torch.sigmoid(linear(c, f"{path}.gate", x, heads, False))
            y = y * opened.transpose(1, 2).unsqueeze(-1)
        y = joined(y)
        if gate == "elementwise":
            y = y * torch.sigmoid(linear(c, f"{path}.gate", x, heads * values, False))
        return linear(c, f"{path}.output", y, d_model, "o" in bias)

    return part


def bahdanau_attention(hidden):
    """Additive attention to the memory as "Dive into Deep Learning" has it, with values and outputs projected."""

    def part(c, path, x):
        d_model = x.shape[-1]
        queries = linear(c, f"{path}.query", x, hidden, False)
        keys = linear(c, f"{path}.key", c.memory, hidden, False)
        values = linear(c, f"{path}.value", c.memory, hidden)
        features = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))
        scores = F.linear(features, c.weight(f"{path}.score", (1, hidden))).squeeze(-1)
        if c.memory_keep is not None:
            scores = scores.masked_fill(~c.memory_keep[:, None, :], -1e6)
        return linear(c, f"{path}.output", torch.bmm(torch.softmax(scores, dim=-1), values), d_model)

    return part


def latent_attention(
    heads, kv_rank, query_rank=None, content=8, rotated=4, value=8, bias=False, norm=rms_norm(), rotary=None
):
    """DeepSeek-V2, section 2.1: keys and values from a latent vector, one rotated key for all heads."""

    def part(c, path, x):
        width = heads * (content + rotated)
        if query_rank:
            latent = linear(c, f"{path}.query_down", x, query_rank, bias)
            q = linear(c, f"{path}.query_up", norm(c, f"{path}.query_norm", latent), width, bias)
        else:
            q = linear(c, f"{path}.query", x, width, bias)
        q_content, q_rotated = heads_of(q, heads).split([content, rotated], -1)
        down = linear(c, f"{path}.kv_down", x, kv_rank + rotated, bias)
        latent, k_rotated = down.split([kv_rank, rotated], -1)
        up = linear(c, f"{path}.kv_up", norm(c, f"{path}.kv_norm", latent), heads * (content + value), bias)
        k_content, v = heads_of(up, heads).split([content, value], -1)
        q_rotated = rotary.rotate(q_rotated, c.context)
        k_rotated = rotary.rotate(k_rotated.unsqueeze(1), c.context).expand(-1, heads, -1, -1)
        q, k = torch.cat([q_content, q_rotated], -1), torch.cat([k_content, k_rotated], -1)
        y = scored(q, k, v, (content + rotated) ** -0.5, visible(c, x.shape[1], x.shape[1]))
        return linear(c, f"{path}.output", joined(y), x.shape[-1], bias)

    return part


# Feed-forward


def mlp(hidden=24, activation="gelu", bias=True):
    def part(c, path, x):
        h = ACTIVATIONS[activation](linear(c, f"{path}.up", x, hidden, bias))
        return linear(c, f"{path}.down", h, x.shape[-1], bias)

    return part


def glu(hidden=24, activation="silu", bias=True):
    def part(c, path, x):
        gate = ACTIVATIONS[activation](linear(c, f"{path}.gate", x, hidden, bias))
        return linear(c, f"{path}.down", gate * linear(c, f"{path}.up", x, hidden, bias), x.shape[-1], bias)

    return part


def clamped_glu(hidden=24, alpha=1.702, limit=7.0, shift=1.0):
    """GPT-OSS."""

    def part(c, path, x):
        gate = linear(c, f"{path}.gate", x, hidden).clamp(max=limit)
        up = linear(c, f"{path}.up", x, hidden).clamp(-limit, limit)
        return linear(c, f"{path}.down", (up + shift) * gate * torch.sigmoid(alpha * gate), x.shape[-1])

    return part


def mixture(
    experts,
    top_k,
    expert,
    score="softmax",
    normalize=False,
    scale=1.0,
    router_bias=False,
    correction=False,
    groups=None,
    shared=None,
    shared_gate=False,
    balance=None,
    z_loss=None,
):
    """Shazeer et al. 2017, with the routers of Mixtral, Qwen, DeepSeek-V2 and V3, and GPT-OSS; the losses are those of
    Fedus et al. 2021, for several experts a token as in Mixtral, and of Zoph et al. 2022."""

    def part(c, path, x):
        logits = linear(c, f"{path}.router", x, experts, router_bias)
        if score == "softmax_of_chosen":
            chosen, index = logits.topk(top_k, -1)
            weights = torch.softmax(chosen, -1)
        else:
            affinity = torch.softmax(logits, -1) if score == "softmax" else torch.sigmoid(logits)
            choice = affinity
            if correction:
                choice = choice + c.weight(f"{path}.correction", (experts,), mean=0.5, std=0.2)
            if groups:
                count, kept, score_of = groups
                grouped = choice.unflatten(-1, (count, -1))
                best = grouped.topk(score_of, -1).values.sum(-1).topk(kept, -1).indices
                allowed = torch.zeros(grouped.shape[:-1]).scatter(-1, best, 1).bool()
                choice = grouped.masked_fill(~allowed.unsqueeze(-1), -math.inf).flatten(-2)
            index = choice.topk(top_k, -1).indices
            weights = affinity.gather(-1, index)
            if normalize:
                weights = weights / weights.sum(-1, keepdim=True)
        # As in Hugging Face's `load_balancing_loss_func`, padding is no token.
        kept = torch.ones(x.shape[:2], dtype=torch.bool) if c.keep is None else c.keep
        if balance:
            shares = F.one_hot(index, experts).double().sum(-2)[kept].mean(0)
            affinity = torch.sigmoid(logits) if score == "sigmoid" else torch.softmax(logits, -1)
            affinity = (affinity / affinity.sum(-1, keepdim=True))[kept].mean(0)
            c.losses.append(("balance", balance, experts * (shares * affinity).sum()))
        if z_loss:
            c.losses.append(("z_loss", z_loss, (torch.logsumexp(logits[kept], -1) ** 2).mean()))
        y = torch.zeros_like(x)
        for e in range(experts):
            weight = (weights * (index == e)).sum(-1, keepdim=True) * scale
            y = y + weight * expert(c, f"{path}.experts.{e}", x)
        if shared:
            always = shared(c, f"{path}.shared", x)
            if shared_gate:
                always = always * torch.sigmoid(linear(c, f"{path}.shared_gate", x, 1, False))
            y = y + always
        return y

    return part


# Wirings: norms are numbered in the order in which an equation is written, outer before inner.


def pre_norm(norm, attend, feed, cross=None):
    def block(c, p, x):
        x = x + attend(c, f"{p}.attention", norm(c, f"{p}.norm1", x))
        if cross:
            x = x + cross(c, f"{p}.cross", norm(c, f"{p}.norm2", x))
        return x + feed(c, f"{p}.ffn", norm(c, f"{p}.norm{3 if cross else 2}", x))

    return block


def post_norm(norm, attend, feed, cross=None):
    def block(c, p, x):
        x = norm(c, f"{p}.norm1", x + attend(c, f"{p}.attention", x))
        if cross:
            x = norm(c, f"{p}.norm2", x + cross(c, f"{p}.cross", x))
        return norm(c, f"{p}.norm{3 if cross else 2}", x + feed(c, f"{p}.ffn", x))

    return block


def parallel(norm, attend, feed):
    def block(c, p, x):
        h = norm(c, f"{p}.norm", x)
        return x + attend(c, f"{p}.attention", h) + feed(c, f"{p}.ffn", h)

    return block


def parallel_two_norms(norm, attend, feed):
    def block(c, p, x):
        a = attend(c, f"{p}.attention", norm(c, f"{p}.norm1", x))
        return x + a + feed(c, f"{p}.ffn", norm(c, f"{p}.norm2", x))

    return block


def sandwich(norm, attend, feed):
    def block(c, p, x):
        x = x + norm(c, f"{p}.norm1", attend(c, f"{p}.attention", norm(c, f"{p}.norm2", x)))
        return x + norm(c, f"{p}.norm3", feed(c, f"{p}.ffn", norm(c, f"{p}.norm4", x)))

    return block


def reordered(norm, attend, feed):
    def block(c, p, x):
        x = x + norm(c, f"{p}.norm1", attend(c, f"{p}.attention", x))
        return x + norm(c, f"{p}.norm2", feed(c, f"{p}.ffn", x))

    return block


def deepnorm(alpha):
    """Wang et al. 2022: the residual stream is scaled up before the sum."""

    def wiring(norm, attend, feed):
        def block(c, p, x):
            x = norm(c, f"{p}.norm1", alpha * x + attend(c, f"{p}.attention", x))
            return norm(c, f"{p}.norm2", alpha * x + feed(c, f"{p}.ffn", x))

        return block

    return wiring


def layer_scale(norm, attend, feed):
    def block(c, p, x):
        gain = lambda name: c.weight(f"{p}.{name}", x.shape[-1:], mean=0.5)
        x = x + gain("gain1") * attend(c, f"{p}.attention", norm(c, f"{p}.norm1", x))
        return x + gain("gain2") * feed(c, f"{p}.ffn", norm(c, f"{p}.norm2", x))

    return block


def multiplied(factor):
    """Granite: each branch is multiplied by a number."""

    def wiring(norm, attend, feed):
        def block(c, p, x):
            x = x + factor * attend(c, f"{p}.attention", norm(c, f"{p}.norm1", x))
            return x + factor * feed(c, f"{p}.ffn", norm(c, f"{p}.norm2", x))

        return block

    return wiring


def macaron(norm, attend, feed):
    def block(c, p, x):
        x = x + 0.5 * feed(c, f"{p}.ffn1", norm(c, f"{p}.norm1", x))
        x = x + attend(c, f"{p}.attention", norm(c, f"{p}.norm2", x))
        return x + 0.5 * feed(c, f"{p}.ffn2", norm(c, f"{p}.norm3", x))

    return block


def stack(c, path, x, blocks, final_norm):
    """`blocks` holds one block per layer; a pair (block, index) names the physical block it shares."""
    c.stack = path
    for i, block in enumerate(blocks):
        block, at = block if isinstance(block, tuple) else (block, i)
        x = block(c, f"{path}.blocks.{at}", x)
    return final_norm(c, f"{path}.final_norm", x) if final_norm else x


# Embeddings and heads


def embed(
    d_model=16,
    vocab=11,
    scale=1.0,
    position=None,
    dim=None,
    widen="last",
    segments=None,
    languages=None,
    norm=None,
    patches=None,
    table=None,
):
    def part(c, path, x, token_types=None, language=None):
        width = dim or d_model
        if patches:
            h, tokens = cut(c, path, x, d_model, **patches), None
        else:
            h, tokens = lookup(c, f"{table or path}.tokens", vocab, width, x), x
        h = scale * h
        if dim and widen == "first":
            h = linear(c, f"{path}.project", h, d_model, False)
        if segments:
            types = torch.zeros_like(tokens) if token_types is None else token_types
            h = h + lookup(c, f"{path}.segments", segments, h.shape[-1], types)
        if position:
            before = c.context
            c.context = h.shape[1] if patches else before
            h = position(c, path, h)
            c.context = before
        if patches and patches.get("registers"):
            n, first = patches["registers"], bool(patches.get("class_token", True)) + bool(
                patches.get("distillation_token")
            )
            registers = c.weight(f"{path}.registers", (n, d_model), std=0.8).expand(len(h), -1, -1)
            h = torch.cat([h[:, :first], registers, h[:, first:]], 1)
        if languages:
            h = h + lookup(c, f"{path}.languages", languages, h.shape[-1], language)[:, None]
        if norm:
            h = norm(c, f"{path}.norm", h)
        if dim and widen == "last":
            h = linear(c, f"{path}.project", h, d_model, True)
        return h

    return part


def cut(c, path, image, d_model, size, class_token=True, distillation_token=False, registers=0, bias=True):
    """Dosovitskiy et al. 2020: patches row by row, preceded by the class token."""
    channels = image.shape[1]
    weight = c.weight(f"{path}.patches.weight", (d_model, channels, size, size), std=0.5 / size)
    h = F.conv2d(image, weight, stride=size).flatten(2).transpose(1, 2)
    if bias:
        h = h + c.weight(f"{path}.patches.bias", (d_model,))
    first = []
    if class_token:
        first.append(c.weight(f"{path}.class_token", (1, d_model), std=0.8).expand(len(h), -1, -1))
    if distillation_token:
        first.append(c.weight(f"{path}.distillation_token", (1, d_model), std=0.8).expand(len(h), -1, -1))
    return torch.cat(first + [h], 1)


def lm(vocab=11, tied=None, bias=False, fixed_bias=False, scale=1.0, softcap=None, width=None):
    """`tied` is the path of the table."""

    def head(c, x):
        x = x * scale
        if tied:
            if width:
                x = linear(c, "head.project", x, width, False)
            logits = x @ c.leaves[f"{tied}.tokens.weight"].T
            if bias:
                logits = logits + c.weight("head.bias", (vocab,))
        else:
            logits = linear(c, "head.output", x, vocab, bias)
        if fixed_bias:
            logits = logits + c.weight("head.fixed_bias", (vocab,))
        if softcap:
            logits = softcap * torch.tanh(logits / softcap)
        return {"logits": logits}

    return head


def mlm(vocab=11, activation="gelu", norm=layer_norm(1e-12), tied="embed", width=None, transform=True, bias=True):
    def head(c, x):
        if transform:
            x = linear(c, "head.transform", x, width or x.shape[-1])
            x = norm(c, "head.norm", ACTIVATIONS[activation](x))
        if tied:
            logits = x @ c.leaves[f"{tied}.tokens.weight"].T
            if bias:
                logits = logits + c.weight("head.bias", (vocab,))
        else:
            logits = linear(c, "head.output", x, vocab)
        return {"logits": logits}

    return head


def pooled(c, x, how):
    keep = torch.ones(x.shape[:2], dtype=torch.bool) if c.keep is None else c.keep
    if how == "first":
        return x[:, 0]
    if how == "patches":
        return x[:, 1:].mean(1)
    if how == "last":
        last = torch.tensor([row.nonzero().max() for row in keep])
        return x[torch.arange(len(x)), last]
    if how == "max":
        return x.masked_fill(~keep.unsqueeze(-1), -math.inf).max(1).values
    return (x * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)


def classify(classes=5, pool="first", hidden=(), activation="tanh", norm=no_norm, bias=True, pooled_norm=no_norm):
    """`bias` is that of the scores; hidden layers have one."""

    def head(c, x):
        h = pooled_norm(c, "head.pooled_norm", pooled(c, x, pool))
        for i, width in enumerate(hidden):
            number = f"_{i + 1}" if i else ""
            h = ACTIVATIONS[activation](linear(c, f"head.hidden{number}", h, width))
            h = norm(c, f"head.norm{number}", h)
        return {"logits": linear(c, "head.output", h, classes, bias)}

    return head


def tag(classes=4, bias=True):
    return lambda c, x: {"logits": linear(c, "head.output", x, classes, bias)}


def span(bias=True):
    def head(c, x):
        both = linear(c, "head.output", x, 2, bias)
        return {"start_logits": both[..., 0], "end_logits": both[..., 1]}

    return head


def embedding(pool="mean", project=None, activation="none", normalize=False, bias=True, pooled_norm=no_norm):
    def head(c, x):
        h = pooled_norm(c, "head.pooled_norm", pooled(c, x, pool))
        if project:
            h = linear(c, "head.project", h, project, bias)
        h = ACTIVATIONS[activation](h)
        if normalize:
            h = h / h.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        return {"embedding": h}

    return head


# Whole models: a function from inputs to outputs


def decoder(blocks, head=None, embedded=None, norm=None, context=32):
    embedded, head = embedded or embed(), head or lm()
    return one_stack("decoder", True, blocks, head, embedded, norm, context)


def encoder(blocks, head=None, embedded=None, norm=None, context=32):
    embedded, head = embedded or embed(position=learned()), head or mlm()
    return one_stack("encoder", False, blocks, head, embedded, norm, context)


def one_stack(path, causal, blocks, head, embedded, norm, context):
    def model(c, tokens=None, mask=None, token_types=None, image=None, language=None):
        c.causal, c.context, c.stack = causal, context, path
        c.keep = None if mask is None else mask.bool()
        x = embedded(c, "embed", tokens if image is None else image.double(), token_types, language)
        return head(c, stack(c, path, x, blocks, norm))

    return model


def encoder_decoder(
    encoder_blocks, decoder_blocks, head, source_embed, target_embed, norm=None, context=32, final=(True, True)
):
    def model(c, source, target, source_mask=None, language=None):
        c.context = context
        c.causal, c.keep = False, None if source_mask is None else source_mask.bool()
        c.stack = "encoder"
        x = source_embed(c, "source_embed", source, None, language)
        memory = stack(c, "encoder", x, encoder_blocks, norm if final[0] else None)
        c.causal, c.memory, c.memory_keep, c.keep = True, memory, c.keep, None
        c.stack = "decoder"
        y = target_embed(c, "target_embed", target)
        return head(c, stack(c, "decoder", y, decoder_blocks, norm if final[1] else None))

    return model
