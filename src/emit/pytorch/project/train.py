"""Trains the model of `model.py` on any number of processes.

    torchrun --nproc-per-node 4 train.py --data data --out run

A step is the same whatever the number of processes: the same examples, the same mean
of the losses over everything that is predicted, the same clipping. The same command
continues a run that was interrupted, also with another number of processes.
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn import functional as F

from data import IGNORED, Batch, Data, key
from metrics import Meter
from model import Model
from muon import Muon
from parallel import accumulated, clipped, join, spread, total
from run_folder import CODEBOOK, RECIPE, SPEC, Refused, Run, State, say


@dataclass(frozen=True)
class Settings:
    """What the recipe says."""

    name: str = "model"
    seed: int = 0
    # Examples of a batch, over all processes, and batches of a step.
    batch_size: int = 32
    accumulate: int = 1
    # only: recompute
    # Whether blocks are recomputed when going backward, even without the option.
    recompute: bool = True
    # end
    # only: bucket
    # Batches whose examples are sorted by length together.
    bucket: int = 20
    # end
    # only: steps
    steps: int = 1000
    # end
    # only: epochs
    epochs: int = 10
    # end
    learning_rate: float = 1e-3
    # only: adam adamw
    betas: tuple[float, float] = (0.9, 0.999)
    # end
    # only: sgd muon
    momentum: float = 0.9
    # end
    # only: sgd
    dampening: float = 0.0
    # end
    # only: muon
    nesterov: bool = False
    # end
    # only: adam adamw muon
    eps: float = 1e-8
    # end
    weight_decay: float = 0.01
    # only: groups
    # Learning rates and weight decays by names of parameters; the last pattern that
    # matches applies.
    rates: tuple[tuple[str, float], ...] = ()
    decay: tuple[tuple[str, float], ...] = ()
    # end
    # only: muon
    # Newton-Schulz iterations, and how the shape of a matrix scales its learning rate.
    iterations: int = 5
    adjust: str = "original"
    # AdamW for everything that is not a matrix of a block.
    others_learning_rate: float = 1e-3
    others_betas: tuple[float, float] = (0.9, 0.999)
    others_eps: float = 1e-8
    others_weight_decay: float = 0.01
    # end
    # only: muon
    # only: groups
    others_rates: tuple[tuple[str, float], ...] = ()
    others_decay: tuple[tuple[str, float], ...] = ()
    # end
    # end
    # only: warmup
    warmup: int = 100
    # end
    # only: linear cosine
    # The share of the learning rate at the end.
    floor: float = 0.0
    # end
    # only: noam
    d_model: int = 512
    # end
    # only: clip
    clip: float = 1.0
    # end
    # only: smoothing
    label_smoothing: float = 0.1
    # end
    # only: hidden_token
    # Which tokens are selected; how many of them are hidden, and how many replaced.
    masking: tuple[float, float, float] = (0.15, 0.8, 0.1)
    # end
    # only: freeze
    # Parameters that are not trained, by their names.
    freeze: tuple[str, ...] = ()
    # end
    checkpoint_every: int = 500
    checkpoint_keep: int = 2
    # only: average
    average: int = 3
    # end
    # only: evaluate_every
    evaluate_every: int = 100
    # end
    evaluate_split: str = "validation"
    evaluate_limit: int | None = None
    metrics: tuple[str, ...] = ("loss",)
    # only: stop
    stop_metric: str = "loss"
    stop_patience: int = 5
    # end
    # only: classify_image
    # Positions of an image, which are counted as tokens.
    positions: int = 1
    # end


SETTINGS = Settings()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Trains the model.", allow_abbrev=False
    )
    add = parser.add_argument
    add("--data", type=Path, default="data", help="what `trafoc data` has written")
    add("--out", type=Path, default="run", help="the run, a new one or one to continue")
    add("--weights", type=Path, help="a run, or a file of safetensors, to begin with")
    add("--parallel", choices=["fsdp", "ddp"], default="fsdp", help="shards or copies")
    add("--replicas", type=int, default=1, help="copies of the sharded model (HSDP)")
    add("--bf16", action="store_true", help="compute in bfloat16, with float32 masters")
    add("--recompute", action="store_true", help="recompute blocks when going backward")
    add("--compile", action="store_true", help="compile blocks")
    add("--until", type=int, help="save and leave after this step")
    # only: recompute
    parser.set_defaults(recompute=SETTINGS.recompute)
    # end
    return parser.parse_args()


# only: matches
def matches(pattern: str, name: str) -> bool:
    """Whether a pattern, in which `*` is any text, is that of a whole name."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


# end
# only: groups
def chosen(usual: float, rules: tuple[tuple[str, float], ...], name: str) -> float:
    """The value of the last rule whose pattern is that of a name."""
    return [usual, *(value for pattern, value in rules if matches(pattern, name))][-1]


def groups_of(
    named: dict[str, nn.Parameter],
    rate: float,
    rates: tuple[tuple[str, float], ...],
    decay: float,
    decays: tuple[tuple[str, float], ...],
) -> list[dict[str, Any]]:
    """Parameters with the same learning rate and weight decay."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in named.items():
        both = chosen(rate, rates, name), chosen(decay, decays, name)
        groups.setdefault(both, []).append(parameter)
    return [
        {"params": of, "lr": rate, "weight_decay": decay}
        for (rate, decay), of in groups.items()
    ]


# end
def optimizers_of(model: nn.Module) -> list[torch.optim.Optimizer]:
    s = SETTINGS
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    # only: muon
    # Muon trains the matrices of blocks, AdamW everything else.
    inner = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and ".blocks." in name
    }
    rest = {name: p for name, p in named.items() if name not in inner}
    named = {name: p for name, p in named.items() if name in inner}
    # end
    # only: groups
    groups = groups_of(named, s.learning_rate, s.rates, s.weight_decay, s.decay)
    # end
    # only: !groups
    groups = [{"params": list(named.values()), "weight_decay": s.weight_decay}]
    # end
    # only: adam
    return [torch.optim.Adam(groups, s.learning_rate, s.betas, s.eps)]
    # end
    # only: adamw
    return [torch.optim.AdamW(groups, s.learning_rate, s.betas, s.eps)]
    # end
    # only: sgd
    # only: sgd_nesterov
    # The constructor refuses `nesterov` with `dampening`, with which a step works.
    groups = [{**group, "nesterov": True} for group in groups]
    # end
    sgd = partial(torch.optim.SGD, momentum=s.momentum, dampening=s.dampening)
    return [sgd(groups, s.learning_rate)]
    # end
    # only: muon
    # only: groups
    others = groups_of(
        rest,
        s.others_learning_rate,
        s.others_rates,
        s.others_weight_decay,
        s.others_decay,
    )
    # end
    # only: !groups
    others = [{"params": list(rest.values()), "weight_decay": s.others_weight_decay}]
    # end
    adamw = partial(torch.optim.AdamW, betas=s.others_betas, eps=s.others_eps)
    muon = partial(Muon, momentum=s.momentum, nesterov=s.nesterov, eps=s.eps)
    return [
        muon(groups, s.learning_rate, iterations=s.iterations, adjust=s.adjust),
        adamw(others, s.others_learning_rate),
    ]
    # end


def factor_of(step: int, steps: int) -> float:
    """The factor on the learning rate at a step, counted from 1."""
    # only: noam
    warmup = SETTINGS.warmup
    return SETTINGS.d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    # end
    # only: inverse_sqrt
    return min(step / SETTINGS.warmup, math.sqrt(SETTINGS.warmup / step))
    # end
    # only: constant_warmup linear cosine
    warmup = SETTINGS.warmup
    if step <= warmup:
        return step / warmup
    # end
    # only: constant
    return 1.0
    # end
    # only: linear cosine
    done = min(1.0, (step - warmup - 1) / max(1, steps - warmup))
    # end
    # only: linear
    return SETTINGS.floor + (1 - SETTINGS.floor) * (1 - done)
    # end
    # only: cosine
    return SETTINGS.floor + (1 - SETTINGS.floor) * 0.5 * (1 + math.cos(math.pi * done))
    # end


def loss_of(outputs: Any, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The sum of the losses, in float32."""
    # only: positions
    logits, labels = outputs.float().flatten(0, 1), labels.flatten()
    of_all = partial(F.cross_entropy, ignore_index=IGNORED, reduction="sum")
    return of_all(logits, labels, label_smoothing=smoothing)
    # end
    # only: one_class
    of_all = partial(F.cross_entropy, reduction="sum", label_smoothing=smoothing)
    return of_all(outputs.float(), labels)
    # end
    # only: several
    return F.binary_cross_entropy_with_logits(outputs.float(), labels, reduction="sum")
    # end
    # only: span
    of_all = partial(F.cross_entropy, reduction="sum", label_smoothing=smoothing)
    start = of_all(outputs.start_logits.float(), labels[:, 0])
    return (start + of_all(outputs.end_logits.float(), labels[:, 1])) / 2
    # end


class Progress:
    """A line on the terminal; in a file, twenty lines of a run."""

    def __init__(self, state: State) -> None:
        self.first, self.begun = state.step, time.monotonic()
        self.tokens, self.loss = 0, 0.0

    def show(self, state: State, line: dict[str, Any]) -> None:
        made, seconds = state.step - self.first, time.monotonic() - self.begun
        self.tokens += line["tokens"]
        self.loss += max(1 / made, 0.05) * (line["loss"] - self.loss)
        left = seconds / made * (state.steps - state.step)
        text = f"step {state.step}/{state.steps}  loss {self.loss:.4f}  "
        text += f"{self.tokens / seconds:,.0f} tokens/s  "
        text += f"{left // 60:.0f} min {left % 60:.0f} s left"
        every = math.ceil(state.steps / 20)
        if sys.stderr.isatty():
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        elif made == 1 or state.step % every == 0 or state.step == state.steps:
            say(text)


def is_better(metric: str, value: float, before: float | None) -> bool:
    falls = metric in ("loss", "perplexity", "bits_per_character")
    return before is None or (value < before if falls else value > before)


class Trainer:
    """A run from its first step, or from where it was interrupted, to its end."""

    def __init__(
        self, options: argparse.Namespace, data: Data, run: Run, device: torch.device
    ) -> None:
        self.data, self.run, self.device = data, run, device
        self.until: int | None = options.until
        with torch.device("meta"):
            self.model = Model()
        # only: freeze
        for name, parameter in self.model.named_parameters():
            frozen = any(matches(pattern, name) for pattern in SETTINGS.freeze)
            parameter.requires_grad_(not frozen)
        # end
        self.net = spread(self.model, options, device)
        self.optimizers = optimizers_of(self.model)
        self.groups = [group for o in self.optimizers for group in o.param_groups]
        self.rates = [group["lr"] for group in self.groups]
        # only: steps
        steps = SETTINGS.steps
        # end
        # only: epochs
        steps = SETTINGS.epochs * data.steps_of_epoch
        # end
        new = State(0, steps, SETTINGS.seed)
        self.state = run.begin(new, self.model, self.optimizers, first_weights)
        self.seconds, self.signal = 0.0, 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.interrupt)

    def interrupt(self, number: int, _: Any) -> None:
        self.signal = number

    def train(self) -> int:
        """Makes the remaining steps; returns the program's exit code."""
        state, progress = self.state, Progress(self.state)
        # The next step's examples are read while this one is computed.
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self.data.step, state.step)
            while not state.finished:
                batches = ahead.result()
                ahead = reader.submit(self.data.step, state.step + 1)
                line, signals = self.step(batches)
                self.run.record(line)
                if self.run.is_first:
                    progress.show(state, line)
                state.finished = state.step >= state.steps
                due = state.finished or state.step % SETTINGS.checkpoint_every == 0
                # only: evaluate_every
                if state.finished or state.step % SETTINGS.evaluate_every == 0:
                    due |= self.evaluate()
                # end
                # only: !evaluate_every
                if state.finished:
                    self.evaluate()
                # end
                # only: stop
                if state.stale >= SETTINGS.stop_patience:
                    state.finished = due = True
                # end
                leaves = signals > 0 or state.step == self.until
                if due or leaves:
                    self.run.save(state, self.model, self.optimizers)
                if leaves and not state.finished:
                    if self.run.is_first:
                        say(f"saved at step {state.step}; the same command continues")
                    return 128 + (self.signal or signal.SIGTERM) if signals > 0 else 0
        # only: average
        self.run.average(state, SETTINGS.average)
        # end
        return 0

    def step(self, batches: list[Batch]) -> tuple[dict[str, Any], float]:
        """Makes one step. Returns its record, and whether a process got a signal."""
        begun, number = time.monotonic(), self.state.step + 1
        nats, counted = self.learn(batches, number)
        nats, signals = total(nats, self.signal)
        loss, norm = nats / max(1, counted), None
        # only: clip
        norm = clipped(self.model, SETTINGS.clip)
        # end
        if not math.isfinite(loss) or not math.isfinite(norm or 0):
            raise Refused(f"the loss is not a number at step {number}")
        factor = factor_of(number, self.state.steps)
        for group, rate in zip(self.groups, self.rates, strict=True):
            group["lr"] = rate * factor
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.state.step, self.state.targets = number, self.state.targets + counted
        self.seconds += time.monotonic() - begun
        line = {"step": number, "loss": loss, "rate": SETTINGS.learning_rate * factor}
        line |= {"norm": norm, "targets": counted}
        line |= {"tokens": sum(batch.tokens for batch in batches)}
        return line | {"seconds": round(self.seconds, 3)}, signals

    def learn(self, batches: list[Batch], number: int) -> tuple[float, int]:
        """Adds up the gradients of a step. Returns the sum of this process's losses,
        and the number of predictions of all processes."""
        counted = int(total(sum(batch.counted for batch in batches))[0])
        # Gradients become the mean over the processes.
        # only: mean
        scale = dist.get_world_size() / max(1, counted)
        # end
        # only: sum
        scale = dist.get_world_size()
        # end
        nats = torch.zeros((), device=self.device)
        for i, batch in enumerate(batches):
            # Another dropout in every process, the same whenever the step is made.
            seed = key(SETTINGS.seed, "dropout", number, i, dist.get_rank())
            torch.manual_seed(seed >> 1)
            inputs, labels = batch.to(self.device)
            with accumulated(self.net, i == len(batches) - 1):
                outputs = self.net(**inputs)
                # only: outputs
                outputs = outputs.logits
                # end
                # only: smoothing
                loss = loss_of(outputs, labels, SETTINGS.label_smoothing)
                # end
                # only: !smoothing
                loss = loss_of(outputs, labels)
                # end
                # Nothing counts of rows that another process has.
                loss = loss * (batch.counted > 0)
                (loss * scale).backward()
            nats += loss.detach()
        return float(nats), counted

    @torch.no_grad()
    def evaluate(self) -> bool:
        """Computes the metrics; returns whether the model is the best so far."""
        split, limit = SETTINGS.evaluate_split, SETTINGS.evaluate_limit
        state, meter = self.state, Meter(self.data, split, limit)
        self.net.eval()
        for batch in self.data.part(split, limit):
            inputs, labels = batch.to(self.device)
            outputs = self.net(**inputs)
            # only: outputs
            outputs = outputs.logits
            # end
            if batch.counted > 0:
                meter.add(outputs, labels, batch, float(loss_of(outputs, labels)))
            # only: writes
            meter.write(self.net, inputs, batch)
            # end
        self.net.train()
        figures = meter.figures(SETTINGS.metrics)
        self.run.record({"step": state.step, "split": split} | figures)
        first = SETTINGS.metrics[0]
        before = None if state.best is None else state.best["value"]
        is_best = is_better(first, figures[first], before)
        if is_best:
            state.best = {"step": state.step, "value": figures[first]}
        # only: stop
        watched = figures[SETTINGS.stop_metric]
        if is_better(SETTINGS.stop_metric, watched, state.stop):
            state.stop, state.stale = watched, 0
        else:
            state.stale += 1
        # end
        if self.run.is_first:
            shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
            best = ", the best so far" * is_best
            say(f"step {state.step}, on {split}: {shown}{best}")
        return is_best


def first_weights() -> dict[str, Tensor]:
    """The weights with which a new run begins."""
    torch.manual_seed(SETTINGS.seed)
    weights = Model().state_dict()
    # only: start
    trained = load_file(Path(__file__).with_name("start.safetensors"))
    others = ", ".join(sorted(weights.keys() - trained.keys()))
    say(f"begins with {len(trained)} trained tensors; fresh: {others or 'none'}")
    weights |= trained
    # end
    # only: !start
    say("begins with fresh weights")
    # end
    return weights


@record
def main() -> int:
    warnings.filterwarnings("ignore", "TypedStorage is deprecated")
    options, device, run = arguments(), join(), None
    try:
        data = Data(
            options.data,
            seed=SETTINGS.seed,
            size=SETTINGS.batch_size,
            accumulate=SETTINGS.accumulate,
            # only: bucket
            bucket=SETTINGS.bucket,
            # end
            # only: hidden_token
            masking=SETTINGS.masking,
            # end
            # only: classify_image
            positions=SETTINGS.positions,
            # end
        )
        data.verify()
        here = Path(__file__).parent
        documents = {name: (here / name).read_bytes() for name in (SPEC, RECIPE)}
        documents[CODEBOOK] = (options.data / CODEBOOK).read_bytes()
        run = Run(options.out, documents, SETTINGS.checkpoint_keep)
        run.open(SETTINGS.name, options.data, options.weights)
        code = Trainer(options, data, run, device).train()
    except Refused as why:
        if dist.get_rank() == 0:
            say(f"error: {why}")
        return 1
    except RuntimeError as error:
        # When a process is gone, what the others do together fails.
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        last = f"`{options.out}` continues from step {run.saved if run else 0}"
        say(f"error: process {dist.get_rank()} lost another process; {last}")
        return 1
    dist.destroy_process_group()
    return code


if __name__ == "__main__":
    sys.exit(main())
