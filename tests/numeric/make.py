"""Writes a fixture for every spec of this folder: weights, inputs and expected outputs.

    python tests/numeric/make.py [NAME ...]

A fixture is a safetensors file with `weights.PATH`, and for every run `runs.I.inputs.NAME` and
`runs.I.outputs.NAME`; `gradients.PATH` is the gradient of the first run's `loss`, to which what
parts add is added, absent where the loss does not depend on the parameter; `losses.NAME` is the mean over all layers of
what they add, without its weight. Expected values are computed in float64. An output that has no meaning, at a padded
position, is NaN. Needs PyTorch and nothing else; the same version writes the same bytes.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

import torch

from own import (
    library,
    mixer,
    own,
    own_attention,
    own_disentangled,
    own_embedding,
    own_experts,
    own_functions,
    own_heads,
    own_keys,
    own_losses,
    own_memory,
    own_norms,
    own_pairs,
    own_recurrence,
    own_sums,
    own_sums_of_memory,
    own_time,
)
from reference import *

HERE = Path(__file__).parent
LN, RMS, EACH = layer_norm(), rms_norm(), each_head_norm()


# Inputs


def tokens(batch, length, vocab=11, seed=0):
    random = torch.Generator().manual_seed(seed + 1)
    return torch.randint(vocab, (batch, length), generator=random)


def kept(*lengths):
    """A mask for rows that are padded at the end."""
    longest = max(lengths)
    return (torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]).long()


def image(channels, side, seed=0):
    random = torch.Generator().manual_seed(seed + 2)
    return torch.randn((2, channels, side, side), generator=random)


PLAIN = [{"tokens": tokens(2, 9)}]
PADDED = [{"tokens": tokens(2, 9)}, {"tokens": tokens(2, 9), "mask": kept(9, 6)}]
PAIRS = [
    {"source": tokens(2, 7), "target": tokens(2, 5, seed=3)},
    {"source": tokens(2, 7), "target": tokens(2, 5, seed=3), "source_mask": kept(7, 4)},
]


# Models


def dec(attend=None, feed=None, norm=LN, wiring=pre_norm, layers=2, final=True, **more):
    blocks = [wiring(norm, attend or attention(), feed or mlp())] * layers
    return decoder(blocks, norm=norm if final else None, **more)


def enc(attend=None, feed=None, norm=LN, wiring=pre_norm, layers=2, **more):
    return encoder([wiring(norm, attend or attention(), feed or mlp())] * layers, norm=norm, **more)


def rotary(head_dim=None, **fields):
    return dec(attention(rotary=Rotary(**fields), head_dim=head_dim))


def vit(head, **patches):
    return enc(layers=1, embedded=embed(patches=patches, position=learned()), head=head)


def without_first_norm(norm):
    """ModernBERT: the first attention reads the output of the embedding's norm."""
    attend, feed = attention(), mlp()

    def block(c, p, x):
        x = x + attend(c, f"{p}.attention", x)
        return x + feed(c, f"{p}.ffn", norm(c, f"{p}.norm2", x))

    return block


def t5_attention(**more):
    return attention(head_dim=5, bias="", scale=1.0, **more)


# Every pair and triple of rules that may be together; a prefix both longer and shorter than the others.
COMPOSITIONS = [
    {"causal": True, "window": 3},
    {"causal": True, "chunk": 4},
    {"causal": True, "window": 3, "chunk": 4},
    {"causal": False, "window": 5},
    {"causal": False, "chunk": 4},
    {"causal": False, "window": 5, "chunk": 4},
    {"prefix": 6, "window": 3},
    {"prefix": 2, "window": 3},
    {"prefix": 5, "chunk": 4},
    {"prefix": 6, "window": 3, "chunk": 4},
]
TRIPLES = [rules for rules in COMPOSITIONS if "window" in rules and "chunk" in rules]


def composed(**more):
    return [pre_norm(RMS, attention(2, head_dim=2, **rules, **more), mlp(4)) for rules in COMPOSITIONS]


WITHOUT_BIAS = layer_norm(bias=False)
T5_FEED = glu(20, "gelu_tanh", bias=False)
EXPERT = glu(8, "silu", bias=False)
RELU_20 = mlp(20, "relu")
SINES = sinusoidal()
CASES = {
    "attention-plain": (dec(), PLAIN),
    "attention-grouped": (
        dec(attention(heads=4, kv_heads=2, head_dim=6, value_dim=5, scale=0.3, bias="qv")),
        PLAIN,
    ),
    "attention-multi-query": (dec(attention(heads=4, kv_heads=1, bias="")), PLAIN),
    "attention-softcap": (dec(attention(softcap=1.5, scale=2**-0.5)), PLAIN),
    "attention-qk-norm-head": (dec(attention(kv_heads=1, qk_norm=RMS, rotary=Rotary())), PLAIN),
    "attention-qk-norm-full": (dec(attention(qk_norm=RMS, over="full", rotary=Rotary())), PLAIN),
    "attention-qk-norm-after": (dec(attention(qk_norm=LN, after=True, rotary=Rotary())), PLAIN),
    "attention-qk-norm-each": (dec(attention(kv_heads=1, qk_norm=EACH, over="each_head", rotary=Rotary())), PLAIN),
    "attention-clip": (dec(attention(clip=0.6)), PLAIN),
    "attention-sinks": (dec(attention(heads=4, kv_heads=2, sinks=True)), PADDED),
    "attention-additive": (dec(attention(head_dim=5, additive=True)), PADDED),
    "attention-additive-all": (
        dec(
            attention(
                4,
                2,
                head_dim=6,
                value_dim=5,
                scale=0.7,
                softcap=1.5,
                qk_norm=RMS,
                sinks=True,
                gate="headwise",
                rotary=Rotary(),
                additive=True,
                window=4,
            )
        ),
        PADDED,
    ),
    "attention-gate-headwise": (dec(attention(gate="headwise")), PLAIN),
    "attention-gate-elementwise": (dec(attention(value_dim=6, gate="elementwise")), PLAIN),
    "attention-latent": (
        dec(latent_attention(2, 5, 6, content=6, rotated=4, value=7, rotary=Rotary(pairing="interleaved"))),
        PLAIN,
    ),
    "attention-latent-direct": (
        dec(latent_attention(2, 5, content=6, rotated=4, value=5, bias=True, norm=LN, rotary=Rotary())),
        PLAIN,
    ),
    "mask-window": (dec(attention(window=3)), PADDED),
    "mask-window-bidirectional": (enc(attention(window=5)), PADDED),
    "mask-prefix": (dec(attention(prefix=4)), PLAIN + [{"tokens": tokens(2, 3)}]),
    "mask-chunk": (dec(attention(chunk=3)), PADDED),
    "mask-composed": (dec(attention(window=3, chunk=4)), PADDED),
    "mask-compositions": (decoder(composed(), norm=RMS), PADDED),
    "mask-compositions-sinks": (decoder(composed(sinks=True), norm=RMS), PADDED),
    "mask-compositions-encoder": (encoder(composed(), norm=RMS), PADDED),
    "mask-compositions-cross": (
        encoder_decoder(
            [pre_norm(RMS, attention(2, head_dim=2, **rules), mlp(4)) for rules in TRIPLES],
            [
                pre_norm(RMS, attention(2, head_dim=2, **rules), mlp(4), attention(2, head_dim=2, cross=True))
                for rules in TRIPLES
            ],
            lm(),
            embed(position=learned()),
            embed(position=learned()),
            norm=RMS,
        ),
        PAIRS,
    ),
    "mask-bidirectional": (dec(attention(causal=False)), PADDED),
    "mask-padding": (enc(), PADDED),
    "mask-causal-encoder": (enc(attention(causal=True)), PADDED),
    "position-learned": (dec(embedded=embed(position=learned(2))), PLAIN),
    "position-sinusoidal-interleaved": (dec(embedded=embed(position=SINES, scale=4.0)), PLAIN),
    "position-sinusoidal-concat": (dec(embedded=embed(position=sinusoidal("concat", 2, 1000.0))), PLAIN),
    "position-rotary-half": (rotary(theta=500.0), PLAIN),
    "position-rotary-interleaved": (rotary(theta=500.0, pairing="interleaved"), PLAIN),
    "position-rotary-fraction": (rotary(fraction=0.5), PLAIN),
    "position-rotary-linear": (rotary(scaling={"kind": "linear", "factor": 4}), PLAIN),
    "position-rotary-dynamic": (
        rotary(scaling={"kind": "dynamic", "factor": 3, "original": 8}),
        [{"tokens": tokens(2, n)} for n in (8, 9, 14)],
    ),
    "position-rotary-yarn": (rotary(16, scaling={"kind": "yarn", "factor": 4, "original": 16}), PLAIN),
    "position-rotary-yarn-deepseek": (
        rotary(
            16,
            theta=100.0,
            scaling={
                "kind": "yarn",
                "factor": 4,
                "original": 16,
                "beta_fast": 4,
                "beta_slow": 0.5,
                "truncate": False,
                "mscale": 0.8,
                "mscale_all_dim": 0.4,
            },
        ),
        PLAIN,
    ),
    "position-rotary-yarn-factor": (
        rotary(
            16,
            theta=100.0,
            scaling={"kind": "yarn", "factor": 4, "original": 64, "beta_fast": 8, "attention_factor": 1.3},
        ),
        PLAIN,
    ),
    "position-rotary-longrope": (
        rotary(
            scaling={
                "kind": "longrope",
                "short": [1, 1.1, 1.3, 1.7],
                "long": [1.5, 2, 3, 5],
                "original": 8,
            }
        ),
        [{"tokens": tokens(2, n)} for n in (8, 9)],
    ),
    "position-rotary-longrope-factor": (
        rotary(
            scaling={
                "kind": "longrope",
                "short": [1, 1.1, 1.3, 1.7],
                "long": [1.5, 2, 3, 5],
                "original": 8,
                "attention_factor": 1.4,
            }
        ),
        PLAIN,
    ),
    "position-rotary-llama3-own": (
        rotary(16, theta=100.0, scaling={"kind": "llama3", "factor": 4, "low": 2, "high": 9, "original": 64}),
        PLAIN,
    ),
    "position-rotary-llama3": (
        rotary(16, theta=100.0, scaling={"kind": "llama3", "factor": 4, "low": 1, "high": 4, "original": 64}),
        PLAIN,
    ),
    "position-by-block": (
        decoder(
            [
                pre_norm(LN, attention(rotary=Rotary(50.0), window=4), mlp()),
                pre_norm(LN, attention(), mlp()),
                pre_norm(LN, attention(rotary=Rotary(50.0), window=4), mlp()),
            ],
            norm=LN,
        ),
        PLAIN,
    ),
    "position-alibi": (dec(attention(heads=4, score_bias=alibi())), PADDED),
    "position-alibi-six": (
        dec(attention(heads=6, score_bias=alibi()), embedded=embed(24)),
        PLAIN,
    ),
    "position-alibi-bidirectional": (
        enc(attention(heads=3, head_dim=4, score_bias=alibi(6.0)), embedded=embed()),
        PADDED,
    ),
    "position-t5-bidirectional": (
        enc(attention(bias="", scale=1.0, score_bias=t5_bias(8, 16)), embedded=embed(), context=48),
        [{"tokens": tokens(1, 40)}],
    ),
    "position-t5-causal": (
        dec(attention(scale=1.0, score_bias=t5_bias()), context=160),
        [{"tokens": tokens(1, 150)}],
    ),
    "position-t5-own": (dec(attention(score_bias=t5_bias(8, 12, shared=False))), [{"tokens": tokens(1, 20)}]),
    "position-t5-both-sides": (
        dec(attention(score_bias=t5_bias(8, 12, bidirectional=True))),
        [{"tokens": tokens(1, 20)}],
    ),
    "norm-layer-plain": (dec(norm=layer_norm(0.1, affine=False)), PLAIN),
    "norm-layer-without-bias": (dec(norm=layer_norm(0.01, bias=False)), PLAIN),
    "norm-layer-unit-offset": (dec(norm=layer_norm(unit_offset=True)), PLAIN),
    "norm-rms": (dec(norm=rms_norm(0.1)), PLAIN),
    "norm-rms-plain": (dec(norm=rms_norm(1e-5, affine=False)), PLAIN),
    "norm-rms-unit-offset": (dec(norm=rms_norm(unit_offset=True)), PLAIN),
    "norm-dynamic-tanh": (
        decoder(
            [pre_norm(dynamic_tanh(), attention(qk_norm=dynamic_tanh(affine=False), over="full"), mlp())] * 2,
            norm=dynamic_tanh(affine=False),
            embedded=embed(norm=dynamic_tanh(bias=False)),
        ),
        PLAIN,
    ),
    "norm-none": (dec(norm=no_norm), PLAIN),
    "norm-in-places": (
        encoder(
            [without_first_norm(WITHOUT_BIAS), pre_norm(WITHOUT_BIAS, attention(), mlp())],
            embedded=embed(position=learned(), norm=layer_norm(1e-3)),
            norm=rms_norm(1e-4),
        ),
        PLAIN,
    ),
    "ffn-activations": (
        decoder([pre_norm(LN, attention(1, head_dim=4), mlp(8, a)) for a in ACTIVATIONS], norm=LN),
        PLAIN,
    ),
    # Gated units amplify rounding errors: nine in a row with large weights lose two digits.
    "ffn-glu-activations": (
        decoder(
            [multiplied(0.25)(LN, attention(1, head_dim=4), glu(6, a, False)) for a in ACTIVATIONS],
            norm=LN,
        ),
        PLAIN,
    ),
    "ffn-expansion": (dec(feed=mlp(40, "relu", bias=False)), PLAIN),
    "ffn-glu": (dec(feed=glu(20, "gelu")), PLAIN),
    "ffn-clamped": (dec(feed=clamped_glu(20, limit=1.0)), PLAIN),
    "ffn-clamped-own": (dec(feed=clamped_glu(20, alpha=1.3, limit=1.0, shift=0.5)), PLAIN),
    "moe-mixtral": (dec(feed=mixture(4, 2, EXPERT, normalize=True)), PLAIN),
    "moe-qwen": (dec(feed=mixture(4, 2, EXPERT, shared=glu(12, bias=False), shared_gate=True)), PLAIN),
    "moe-gpt-oss": (
        dec(feed=mixture(4, 2, clamped_glu(8, limit=2.0), score="softmax_of_chosen", router_bias=True)),
        PLAIN,
    ),
    "moe-deepseek-v2": (dec(feed=mixture(6, 3, EXPERT, scale=1.5, groups=(3, 2, 1)), layers=1), PLAIN),
    "moe-deepseek-v3": (
        decoder(
            [
                pre_norm(LN, attention(), glu(20, bias=False)),
                pre_norm(
                    LN,
                    attention(),
                    mixture(
                        8,
                        3,
                        EXPERT,
                        score="sigmoid",
                        normalize=True,
                        scale=2.5,
                        correction=True,
                        groups=(4, 2, 2),
                        shared=EXPERT,
                    ),
                ),
            ],
            norm=LN,
        ),
        PLAIN,
    ),
    "moe-losses": (
        decoder(
            [
                pre_norm(LN, attention(), mixture(4, 2, EXPERT, balance=0.3, z_loss=0.1)),
                pre_norm(LN, attention(), mixture(3, 1, EXPERT, score="sigmoid", balance=0.2, z_loss=0.1)),
                pre_norm(LN, attention(), mixture(4, 2, EXPERT, score="softmax_of_chosen", balance=0.5, z_loss=0.1)),
            ],
            norm=LN,
        ),
        PLAIN,
    ),
    "moe-losses-padded": (
        decoder([pre_norm(LN, attention(), mixture(4, 2, EXPERT, balance=0.3, z_loss=0.1))] * 2, norm=LN),
        PADDED[1:],
    ),
    "moe-sigmoid": (dec(feed=mixture(3, 1, mlp(8, "relu"), score="sigmoid")), PLAIN),
    "moe-dropout": (
        decoder(
            [pre_norm(LN, attention(), mixture(3, 2, expert)) for expert in (mlp(8, bias=False), glu(8))],
            norm=LN,
        ),
        PLAIN,
    ),
    "embed-segments": (
        enc(layers=1, embedded=embed(position=learned(), segments=3, norm=layer_norm(1e-12))),
        PADDED + [{"tokens": tokens(2, 9), "token_types": tokens(2, 9, 3, seed=5)}],
    ),
    "embed-factorised": (
        encoder(
            [(pre_norm(LN, attention(), mlp()), 0)] * 3,
            embedded=embed(dim=6, position=learned(), segments=2, norm=layer_norm(1e-12)),
            norm=LN,
            head=mlm(width=6),
        ),
        [{"tokens": tokens(2, 9), "token_types": tokens(2, 9, 2, seed=5)}],
    ),
    "embed-factorised-first": (
        dec(
            layers=1,
            embedded=embed(dim=6, widen="first", position=learned(2)),
            head=lm(tied="embed", width=6),
        ),
        PLAIN,
    ),
    "embed-language": (
        encoder_decoder(
            [pre_norm(LN, attention(), mlp())],
            [pre_norm(LN, attention(), mlp(), attention(cross=True))],
            lm(tied="source_embed"),
            embed(position=SINES, scale=4.0, languages=3),
            embed(position=SINES, scale=4.0, table="source_embed"),
            norm=LN,
        ),
        [dict(run, language=torch.tensor([2, 0])) for run in PAIRS],
    ),
    "embed-patches": (vit(classify(), size=4), [{"image": image(3, 8)}]),
    "embed-patches-registers": (
        vit(classify(), size=4, distillation_token=True, registers=2, bias=False),
        [{"image": image(2, 8)}],
    ),
    "embed-patches-mean": (
        vit(classify(pool="mean"), size=3, class_token=False, registers=1),
        [{"image": image(1, 9)}],
    ),
    "wiring-post-norm": (dec(wiring=post_norm, final=False), PLAIN),
    "wiring-parallel": (dec(wiring=parallel), PLAIN),
    "wiring-parallel-two-norms": (dec(wiring=parallel_two_norms), PLAIN),
    "wiring-sandwich": (dec(wiring=sandwich), PLAIN),
    "wiring-reordered": (dec(wiring=reordered), PLAIN),
    "wiring-macaron": (dec(wiring=macaron), PLAIN),
    "wiring-layer-scale": (dec(wiring=layer_scale), PLAIN),
    "wiring-deepnorm": (dec(wiring=deepnorm(1.7), final=False), PLAIN),
    "wiring-multipliers": (dec(wiring=multiplied(0.22)), PLAIN),
    "wiring-shared": (
        decoder([(pre_norm(LN, attention(), mlp()), i) for i in (0, 0, 1, 1)], norm=LN),
        PLAIN,
    ),
    "head-lm": (dec(layers=1, head=lm(bias=True, scale=0.4, softcap=1.2)), PLAIN),
    "head-lm-tied": (dec(layers=1, head=lm(tied="embed", bias=True, scale=0.25)), PLAIN),
    "head-lm-fixed-bias": (dec(layers=1, head=lm(tied="embed", fixed_bias=True)), PLAIN),
    "head-mlm": (enc(layers=1), PADDED),
    "head-mlm-plain": (enc(layers=1, head=mlm(transform=False, tied=None)), PADDED),
    "head-classify": (enc(layers=1, head=classify(4, hidden=(8, 6))), PADDED),
    "head-classify-mean": (enc(layers=1, head=classify(4, "mean")), PADDED),
    "head-classify-last": (enc(layers=1, head=classify(4, "last")), PADDED),
    "head-classify-max": (enc(layers=1, head=classify(4, "max")), PADDED),
    "head-tag": (enc(layers=1, head=tag()), PADDED),
    "head-span": (enc(layers=1, head=span()), PADDED),
    "head-embed": (
        enc(layers=1, head=embedding(project=6, activation="tanh", normalize=True)),
        PADDED,
    ),
    "head-pooler": (enc(layers=1, head=embedding("first", 16, "tanh")), PADDED),
    "head-classify-patches": (vit(classify(pool="patches", pooled_norm=LN), size=4), [{"image": image(3, 8)}]),
    "head-embed-patches": (vit(embedding("patches", 6, pooled_norm=RMS), size=4), [{"image": image(3, 8)}]),
    "head-embed-first": (enc(layers=1, head=embedding("first", 6, bias=False)), PADDED),
    "head-tag-plain": (enc(layers=1, head=tag(bias=False)), PADDED),
    "head-span-plain": (enc(layers=1, head=span(bias=False)), PADDED),
    "head-classify-norm": (
        enc(layers=1, head=classify(4, hidden=(8,), activation="gelu", norm=LN, bias=False)),
        PADDED,
    ),
    "head-mlm-bare": (enc(layers=1, head=mlm(bias=False)), PADDED),
    "head-translate-softcap": (
        encoder_decoder(
            [pre_norm(LN, attention(), mlp())],
            [pre_norm(LN, attention(), mlp(), attention(cross=True))],
            lm(softcap=1.2),
            embed(position=learned()),
            embed(position=learned()),
            norm=LN,
        ),
        PAIRS,
    ),
    "stack-runs": (
        decoder([pre_norm(LN, attention(), feed) for feed in (mlp(), RELU_20, RELU_20, RELU_20)], norm=LN),
        PLAIN,
    ),
    "reuse": (dec(feed=RELU_20), PLAIN),
    "parts-own": (decoder([own] * 2, norm=LN), PLAIN),
    "parts-functions": (decoder([own_functions] * 2, norm=LN), PLAIN),
    "parts-library": (decoder([library] * 2, norm=LN), PLAIN),
    "parts-attention": (decoder([own_attention] * 2, norm=LN), PLAIN),
    "parts-time": (decoder([own_time] * 2, norm=LN), PLAIN),
    "parts-recurrence": (decoder([own_recurrence], norm=LN), [{"tokens": tokens(2, 70)}]),
    "parts-losses": (decoder([own_losses] * 3, norm=LN), PLAIN),
    "parts-norms": (own_norms(), PLAIN),
    "parts-pairs": (decoder([own_pairs] * 2, norm=LN), PADDED),
    "parts-disentangled": (encoder([own_disentangled] * 2, norm=LN), PADDED),
    "parts-heads": (decoder([own_heads] * 2, norm=LN), PLAIN),
    "parts-keys": (decoder([own_keys] * 2, norm=LN), PADDED),
    "parts-experts": (decoder([own_experts] * 2, norm=LN), PLAIN),
    "parts-memory": (
        encoder_decoder(
            [pre_norm(LN, attention(), mlp(24))],
            [own_memory] * 2,
            lm(),
            embed(position=learned()),
            embed(position=learned()),
            norm=LN,
        ),
        PAIRS,
    ),
    "parts-mixer": (
        enc(
            mixer,
            mlp(24),
            embedded=embed(patches={"size": 4, "class_token": False}),
            head=classify(3, pool="mean"),
        ),
        [{"image": image(1, 12)}],
    ),
    "parts-embedding": (decoder([own_embedding] * 2, norm=LN), PLAIN),
    "parts-sums": (
        encoder_decoder(
            [own_sums] * 2,
            [own_sums_of_memory],
            lm(),
            embed(position=learned()),
            embed(position=learned()),
            norm=LN,
        ),
        PAIRS,
    ),
    "cross": (
        encoder_decoder(
            [post_norm(LN, attention(bias=""), mlp(activation="relu"))],
            [
                post_norm(
                    LN,
                    attention(),
                    mlp(activation="relu"),
                    attention(4, 2, head_dim=3, value_dim=5, scale=0.7, bias="qkv", cross=True),
                )
            ],
            lm(bias=True),
            embed(vocab=13, position=SINES, scale=4.0),
            embed(position=SINES, scale=4.0),
        ),
        [dict(run, source=tokens(2, 7, 13)) for run in PAIRS],
    ),
    "cross-additive": (
        encoder_decoder(
            [pre_norm(LN, attention(additive=True), mlp())],
            [pre_norm(LN, attention(additive=True), mlp(), bahdanau_attention(7))],
            lm(),
            embed(position=learned()),
            embed(position=learned()),
            norm=LN,
        ),
        PAIRS,
    ),
    "cross-qk-norm": (
        encoder_decoder(
            [pre_norm(RMS, attention(), mlp())],
            [pre_norm(RMS, attention(), mlp(), attention(softcap=2, qk_norm=rms_norm(1e-5), cross=True))],
            lm(tied="source_embed", bias=True),
            embed(position=learned()),
            embed(position=learned(), table="source_embed"),
            norm=RMS,
        ),
        PAIRS,
    ),
    "t5": (
        encoder_decoder(
            [pre_norm(RMS, t5_attention(score_bias=t5_bias(8, 20)), T5_FEED)] * 2,
            [
                pre_norm(
                    RMS, t5_attention(score_bias=t5_bias(8, 20)), T5_FEED, t5_attention(cross=True)
                )
            ]
            * 2,
            lm(tied="source_embed", scale=0.25),
            embed(),
            embed(table="source_embed"),
            norm=RMS,
        ),
        PAIRS,
    ),
}


# Files


def save(path, tensors):
    """The safetensors format: the length of a JSON header, the header, the bytes."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind, array = ("I64", tensor.numpy()) if tensor.dtype == torch.int64 else ("F32", tensor.float().numpy())
        bytes_ = array.tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def loss(outputs):
    """The sum over the outputs of the mean of x_i cos(i), x_i being its i-th number in memory's order."""
    return sum((x.flatten() * torch.arange(x.numel()).double().cos()).mean() for x in outputs.values())


def make(name):
    model, runs = CASES[name]
    context = C(zlib.crc32(name.encode()))
    tensors = {}
    for i, inputs in enumerate(runs):
        context.losses = []
        outputs = model(context, **inputs)
        if i == 0:
            own = sum(weight * value for _, weight, value in context.losses)
            (loss(outputs) + own).backward()
            for key in {key for key, _, _ in context.losses}:
                values = [value for name, _, value in context.losses if name == key]
                tensors[f"losses.{key}"] = torch.stack(values).mean().detach()[None]
            gradients = {key: leaf.grad for key, leaf in context.leaves.items() if leaf.grad is not None}
        mask = inputs.get("mask")
        for key, value in inputs.items():
            tensors[f"runs.{i}.inputs.{key}"] = value
        for key, value in outputs.items():
            if mask is not None and value.shape[:2] == mask.shape:
                meaningless = (mask == 0).reshape(mask.shape + (1,) * (value.dim() - 2))
                value = value.masked_fill(meaningless, float("nan"))
            tensors[f"runs.{i}.outputs.{key}"] = value.detach().float()
    for key, value in context.weights.items():
        tensors[f"weights.{key}"] = value
    for key, value in gradients.items():
        tensors[f"gradients.{key}"] = value.float()
    save(HERE / f"{name}.safetensors", tensors)
    largest = max(v[~v.isnan()].abs().max() for k, v in tensors.items() if ".outputs." in k)
    print(f"{name}: {(HERE / f'{name}.safetensors').stat().st_size} bytes, largest output {largest:.2f}")


if __name__ == "__main__":
    specs = sorted(path.stem for path in HERE.glob("*.yaml"))
    assert specs == sorted(CASES), set(specs) ^ set(CASES)
    for name in sys.argv[1:] or specs:
        make(name)
