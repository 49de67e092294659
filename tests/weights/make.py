"""Makes the checkpoints of `tests/weights`: state dictionaries of modules written by hand, as people write
them, with inputs and what they compute. The spec beside each says how its names are ours.

    python tests/weights/make.py

Needs torch. Numbers are float32; every tensor is made random, those that start at 0 or 1 too.
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent


class Norm(nn.Module):
    """A layer norm whose parameters have other names."""

    def __init__(self, width, scale="scale", shift="shift"):
        super().__init__()
        self.names = scale, shift
        self.register_parameter(scale, nn.Parameter(torch.ones(width)))
        self.register_parameter(shift, nn.Parameter(torch.zeros(width)))

    def forward(self, x):
        scale, shift = (getattr(self, name) for name in self.names)
        return F.layer_norm(x, x.shape[-1:], scale, shift, 1e-5)


def attend(q, k, v, causal):
    """[B, H, T, d] each."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
    return scores.softmax(-1) @ v


def split(x, heads):
    b, t, _ = x.shape
    return x.view(b, t, heads, -1).transpose(1, 2)


def joined(x):
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)


class Queries(nn.Module):
    """A decoder with one matrix per projection (`W_queries` and so on) and a mask that is saved as a buffer."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("W_queries", "W_keys", "W_values"):
                setattr(self, name, nn.Linear(24, 24, bias=False))
            self.out_proj = nn.Linear(24, 24)
            self.register_buffer("mask", torch.triu(torch.ones(12, 12), 1))

        def forward(self, x):
            q, k, v = (split(w(x), 3) for w in (self.W_queries, self.W_keys, self.W_values))
            return self.out_proj(joined(attend(q, k, v, True)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.att = Queries.Attention()
            self.ff = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24))
            self.norm_before_att, self.norm_before_ff = Norm(24), Norm(24)

        def forward(self, x):
            x = x + self.att(self.norm_before_att(x))
            return x + self.ff(self.norm_before_ff(x))

    def __init__(self):
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(31, 24), nn.Embedding(12, 24)
        self.trf_blocks = nn.Sequential(*(Queries.Block() for _ in range(2)))
        self.final_norm, self.out_head = Norm(24), nn.Linear(24, 31, bias=False)

    def forward(self, tokens):
        x = self.tok_emb(tokens) + self.pos_emb(torch.arange(tokens.shape[1]))
        return self.out_head(self.final_norm(self.trf_blocks(x)))


class Heads(nn.Module):
    """A decoder with a separate module for every attention head."""

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("W_query", "W_key", "W_value"):
                setattr(self, name, nn.Linear(24, 8))

        def forward(self, x):
            q, k, v = (w(x)[:, None] for w in (self.W_query, self.W_key, self.W_value))
            return attend(q, k, v, True)[:, 0]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList(Heads.Head() for _ in range(3))
            self.proj, self.norm = nn.Linear(24, 24), nn.LayerNorm(24)

        def forward(self, x):
            n = self.norm(x)
            return x + self.proj(torch.cat([head(n) for head in self.heads], -1))

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(31, 24), nn.Parameter(torch.zeros(1, 12, 24))
        self.blocks = nn.ModuleList(Heads.Block() for _ in range(2))
        self.head = nn.Linear(24, 31)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions[:, : tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Fused(nn.Module):
    """A decoder with one matrix for queries, keys and values, a tied head, and a wrapper's prefix."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(24), nn.LayerNorm(24)
            self.attn = nn.ModuleDict(dict(qkv=nn.Linear(24, 72), c_proj=nn.Linear(24, 24)))
            self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(24, 96), c_proj=nn.Linear(96, 24)))
            self.register_buffer("bias", torch.ones(12, 12).tril()[None, None])

        def forward(self, x):
            q, k, v = self.attn["qkv"](self.ln_1(x)).split(24, -1)
            x = x + self.attn["c_proj"](joined(attend(split(q, 4), split(k, 4), split(v, 4), True)))
            return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))

    def __init__(self):
        super().__init__()
        self._orig_mod = nn.ModuleDict(dict(transformer=nn.ModuleDict(dict(
            wte=nn.Embedding(31, 24), wpe=nn.Embedding(12, 24),
            h=nn.ModuleList(Fused.Block() for _ in range(2)), ln_f=nn.LayerNorm(24))),
            lm_head=nn.Linear(24, 31, bias=False)))
        self._orig_mod["lm_head"].weight = self._orig_mod["transformer"]["wte"].weight

    def forward(self, tokens):
        t = self._orig_mod["transformer"]
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1]))
        for block in t["h"]:
            x = block(x)
        return self._orig_mod["lm_head"](t["ln_f"](x))


class Modules(nn.Module):
    """An encoder of raw matrices `x @ W`, queries, keys and values head by head, in dictionaries of modules."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.W_qkv, self.W_out = nn.Parameter(torch.zeros(24, 72)), nn.Parameter(torch.zeros(24, 24))
            self.up, self.down = nn.Parameter(torch.zeros(24, 40)), nn.Parameter(torch.zeros(40, 24))
            self.b_up, self.b_down = nn.Parameter(torch.zeros(40)), nn.Parameter(torch.zeros(24))
            self.norms = nn.ModuleDict({"after_attention": Norm(24, "a_2", "b_2"), "after_ffn": Norm(24, "a_2", "b_2")})

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (x @ self.W_qkv).view(b, t, 4, 3, 6).permute(3, 0, 2, 1, 4)
            x = self.norms["after_attention"](x + joined(attend(q, k, v, False)) @ self.W_out)
            return self.norms["after_ffn"](x + F.relu(x @ self.up + self.b_up) @ self.down + self.b_down)

    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleDict({"words": nn.Embedding(31, 24), "places": nn.Embedding(12, 24)})
        self.encoder = nn.ModuleDict({f"layer_{i}": Modules.Block() for i in range(2)})
        self.heads = nn.ModuleDict({"topic": nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5))})

    def forward(self, tokens):
        x = self.embeddings["words"](tokens) + self.embeddings["places"](torch.arange(tokens.shape[1]))
        for block in self.encoder.values():
            x = block(x)
        return self.heads["topic"](x.mean(1))


class Torch(nn.Module):
    """`nn.Transformer`, whose attention has an `in_proj_weight`, with embeddings around it."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(29, 24), nn.Embedding(31, 24)
        pe = torch.zeros(12, 24)
        position, freq = torch.arange(12)[:, None], torch.exp(torch.arange(0, 24, 2) * (-math.log(10000.0) / 24))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * freq), torch.cos(position * freq)
        self.register_buffer("pe", pe[None])
        self.transformer = nn.Transformer(24, 4, 1, 1, 48, 0.0, batch_first=True)
        self.generator = nn.Linear(24, 31)

    def forward(self, source, target):
        x, y = self.src(source) + self.pe[:, : source.shape[1]], self.tgt(target) + self.pe[:, : target.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.generator(self.transformer(x, y, tgt_mask=mask))


def main():
    tokens = dict(tokens=[[3, 1, 4, 1, 5, 9, 2, 6], [27, 18, 28, 18, 28, 4, 5, 9]])
    both = dict(source=[[3, 1, 4, 1, 5]], target=[[1, 5, 9, 2, 6, 5]])
    all_of_them = dict(queries=(Queries, tokens), heads=(Heads, tokens), fused=(Fused, tokens),
                       modules=(Modules, tokens), torch=(Torch, both))
    for name, (build, inputs) in all_of_them.items():
        torch.manual_seed(0)
        model = build().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                around = 1.0 if parameter.dim() == 1 and bool((parameter == 1).all()) else 0.0
                parameter.normal_(around, 0.2)
            logits = model(*(torch.tensor(rows) for rows in inputs.values()))
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        # A tied tensor is written twice, as by `torch.save`.
        state = {key: value.clone().contiguous() for key, value in model.state_dict().items()}
        save_file(state, folder / "model.safetensors")
        (folder / "inputs.json").write_text(json.dumps(inputs) + "\n")
        save_file({"logits": logits.contiguous()}, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
