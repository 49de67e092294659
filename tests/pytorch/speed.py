"""Times emitted PyTorch side by side with the models of transformers, at the sizes of GPT-2 small and MiniLM.

    python tests/pytorch/speed.py TRAFOC [RUNS]

TRAFOC is the program. Both models have random weights and the same config; nothing is downloaded. A row is the median
of RUNS runs (9), which take turns, and the ratio of the two; below 1, the emitted model is faster. Ends with 1 if one
is slower by more than what two runs of the same model differ. Where there is a CUDA device, both run there in bfloat16,
and GPT-2 is also trained compiled, on batches that fill the device.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from model_checks import load_class
from torch.nn.functional import cross_entropy

ON_CUDA = torch.cuda.is_available()
# Medians of the same work are this far apart on a busy machine.
NOISE = 1.05


def tokens(batch, length, vocab):
    return torch.tensor([(i * 7919 + 13) % vocab for i in range(batch * length)]).view(batch, length)


def emitted(program, peer, folder):
    """The emitted model of a config, with as many parameters as its peer; both in use."""
    peer.config.architectures = [type(peer).__name__]
    peer.config.save_pretrained(folder)
    file = folder / "model.py"
    done = subprocess.run(
        [program, "build", folder, "--target", "pytorch", "-o", file, "-q"],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    model = load_class(file)()
    count, wanted = (sum(p.numel() for p in m.parameters()) for m in (model, peer))
    assert count == wanted, f"{count} parameters, not {wanted}"
    peer.eval()
    if ON_CUDA:
        model.bfloat16(), peer.bfloat16()
    return model.eval()


def step(model, loss):
    """A forward and a backward pass in training."""

    def run():
        model.train()
        model.zero_grad()
        loss().backward()
        model.eval()

    return run


def in_use(run):
    return torch.no_grad()(run)


def gpt2(program, folder):
    peer = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    own = emitted(program, peer, folder)
    vocab = peer.config.vocab_size
    for batch, length in ((1, 128), (4, 512)):
        ids = tokens(batch, length, vocab)
        yield (
            f"gpt2-small, forward {batch} x {length}",
            in_use(lambda ids=ids: own(ids)),
            in_use(lambda ids=ids: peer(ids)),
        )

    def steps(batch, length, own, peer):
        ids = tokens(batch, length, vocab)

        def loss(logits):
            return cross_entropy(logits.flatten(0, 1), ids.flatten())

        return step(own, lambda: loss(own(ids))), step(peer, lambda: loss(peer(ids).logits))

    yield "gpt2-small, training step 2 x 256", *steps(2, 256, own, peer)
    if ON_CUDA:
        yield "gpt2-small, training step 8 x 1024", *steps(8, 1024, own, peer)
        compiled = steps(8, 1024, *map(torch.compile, (own, peer)))
        yield "gpt2-small, training step 8 x 1024, compiled", *compiled

    def decode(model, begin, logits):
        def run():
            ids, cache = tokens(1, 16, vocab), begin()
            for _ in range(64):
                ids = logits(ids, cache)[:, -1:].argmax(-1)

        return in_use(run)

    ours = decode(own, own.new_cache, lambda x, cache: own(x, cache=cache))
    theirs = decode(
        peer,
        lambda: transformers.DynamicCache(config=peer.config),
        lambda x, cache: peer(x, past_key_values=cache).logits,
    )
    yield "gpt2-small, 64 tokens with a cache", ours, theirs


def minilm(program, folder):
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    peer = transformers.BertModel(config)
    own = emitted(program, peer, folder)
    ids = tokens(32, 64, config.vocab_size)
    mask = (torch.arange(64) < torch.arange(33, 65)[:, None]).long()

    def ours(mask):
        return own(ids, mask=mask)

    def theirs(mask):
        return peer(ids, attention_mask=mask).pooler_output

    losses = (
        step(own, lambda: ours(mask).square().mean()),
        step(peer, lambda: theirs(mask).square().mean()),
    )
    yield "MiniLM, forward 32 x 64", in_use(lambda: ours(None)), in_use(lambda: theirs(None))
    yield "MiniLM, forward 32 x 64, padded", in_use(lambda: ours(mask)), in_use(lambda: theirs(mask))
    yield "MiniLM, training step 32 x 64, padded", *losses


def seconds(run):
    start = time.perf_counter()
    run()
    if ON_CUDA:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    program, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    transformers.logging.set_verbosity_error()
    if ON_CUDA:
        torch.set_default_device("cuda")
    slower = False
    place = torch.cuda.get_device_name() if ON_CUDA else f"{torch.get_num_threads()} threads"
    print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {place}")
    for models in (gpt2, minilm):
        with tempfile.TemporaryDirectory() as folder:
            for name, own, peer in models(program, Path(folder)):
                own(), peer()
                pairs = [(seconds(own), seconds(peer)) for _ in range(runs)]
                ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
                ratio = statistics.median(a / b for a, b in pairs)
                slower |= ratio > NOISE
                print(
                    f"{name:44} emitted {ours:8.4f} s   transformers {theirs:8.4f} s   ratio {ratio:.2f}",
                    flush=True,
                )
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
