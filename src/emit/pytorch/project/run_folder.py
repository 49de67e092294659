"""The folder of a run, which `trafoc eval`, `generate`, `predict`, `inspect` and
`export` take.

    RUN/checkpoints/step-000001000/    the model in one file, the state of training,
                                       the spec, the recipe and the vocabulary
                         whole.json    every file with its checksum, written last
    RUN/torch/step-000001000/          model and optimizer in shards
    RUN/metrics.jsonl                  a line for each step and each evaluation

A folder named `step-...` is complete: it was written under another name and renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

# The file that makes a folder a run, with the format of what is in it.
RUN, FORMAT = "run.json", "trafoc-run/1"
SPEC, RECIPE, CODEBOOK = "spec.yaml", "recipe.yaml", "codebook.json"
MODEL = "model.safetensors"


class Refused(Exception):
    """Why training cannot begin or continue."""


@dataclass
class State:
    """What training continues with, in addition to the model and the optimizer."""

    step: int
    steps: int
    seed: int
    # The version of the generator that orders the examples.
    order: int = 2
    # The examples of a run that trafoc began, which it recognises by this.
    data: dict[str, Any] | None = None
    # The checksum of the weights of a trained model that such a run began with.
    began_with: str | None = None
    # Predictions that were learnt from.
    targets: int = 0
    # The step of the best evaluation, and its value.
    best: dict[str, Any] | None = None
    # The best value of the metric that may end training, and the evaluations since.
    stop: float | None = None
    stale: int = 0
    finished: bool = False


class Run:
    """The folder of a run. The first process writes it; all of them have the shards."""

    def __init__(self, root: Path, documents: dict[str, bytes], keep: int) -> None:
        self.root, self.documents, self.keep = root, documents, keep
        self.is_first = dist.get_rank() == 0
        # The step of the newest checkpoint.
        self.saved = 0
        # What training begins with: a state and shards, or a file of weights. Only the
        # first process knows the file.
        self.state: dict[str, Any] | None = None
        self.shards: Path | None = None
        self.weights: Path | None = None

    def open(self, name: str, data: Path, weights: Path | None) -> None:
        """Locks the folder, and finds what training begins with."""
        found: list[Any] = [None, None, None]
        if self.is_first:
            try:
                self.weights = None if weights is None else weights_of(weights)
                self.lock_or_create(name, data)
                found[1:] = self.newest()
                self.rewind(found[1]["step"] if found[1] else 0)
            except Refused as why:
                found[0] = str(why)
        fault, self.state, self.shards = agreed(found)
        if fault is not None:
            raise Refused(fault)

    def lock_or_create(self, name: str, data: Path) -> None:
        is_new = not (self.root / RUN).is_file()
        known = re.compile(r"lock|start|checkpoints|torch|\..*\.tmp")
        others = [p for p in self.root.glob("*") if not known.fullmatch(p.name)]
        if not is_new:
            check_format(self.root)
        elif others:
            raise Refused(f"`{self.root}` is not empty, and not a run's folder")
        for folder in ("start", "checkpoints", "torch"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        # The system releases the lock when the process ends, even if it is killed.
        lock, flags = self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        try:
            self.lock = os.open(lock, flags, 0o644)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not lock.is_file() or os.fstat(self.lock).st_nlink > 1:
                raise OSError("it is not an ordinary file with one name")
        except BlockingIOError:
            raise Refused(f"another process is training in `{self.root}`") from None
        except OSError as why:
            raise Refused(f"`{lock}` cannot be locked: {why}") from None
        os.ftruncate(self.lock, 0)
        os.write(self.lock, f"{os.getpid()}\n".encode())
        if is_new:
            if (self.root / RUN).exists():
                raise Refused(f"another process has begun a run in `{self.root}`")
            path = None if self.weights is None else str(self.weights.resolve())
            write(self.root / "start/weights.json", pretty({"weights": path}))
            prepared = pretty({"folder": str(data.resolve())})
            write(self.root / "start/prepared.json", prepared)
            for file, content in self.documents.items():
                write(self.root / "start" / file, content)
            # Whole, or a run that is killed here could not be read.
            draft = self.root / f".{RUN}.tmp"
            draft.unlink(missing_ok=True)
            write(draft, pretty({"format": FORMAT, "name": name}))
            draft.rename(self.root / RUN)
            flush(self.root)
        # What a process that was killed has left.
        for folder in ("checkpoints", "torch"):
            for draft in (self.root / folder).glob(".*"):
                shutil.rmtree(draft)

    def newest(self) -> tuple[dict[str, Any] | None, Path | None]:
        """The state of the newest checkpoint, and its shards if it has any."""
        for path in checkpoints(self.root)[:1]:
            own = {name: (path / name).read_bytes() for name in self.documents}
            self.compare(own)
            # They also say what the run started from, which stays as it is.
            self.documents = own
            state = json.loads((path / "state.json").read_text())
            if state.get("order") != 2 and not state["finished"]:
                raise Refused(f"the run in `{self.root}` had another order of examples")
            shards = self.root / "torch" / path.name
            # With this file, trafoc has made the step again, and shards of it are left.
            is_again = (path / "optimizer.safetensors").is_file()
            if shards.is_dir() and not is_again:
                return state, shards
            self.weights = path / MODEL
            return state, None
        return None, None

    def compare(self, own: dict[str, bytes]) -> None:
        """Refuses documents that are not the run's own."""
        start, this = shlex.quote(str(self.root / "start")), f"the run in `{self.root}`"
        of_it = f"{start}/{SPEC} --recipe {start}/{RECIPE} --out NEW"
        for name in (SPEC, RECIPE):
            if why := difference(own[name], self.documents[name]):
                project = f"`trafoc build --target pytorch {of_it}` writes its project"
                raise Refused(f"{this} has another {why}\nhelp: {project}")
        if own[CODEBOOK] != self.documents[CODEBOOK]:
            data = f"`trafoc data {of_it}` prepares its data"
            raise Refused(f"{this} has another vocabulary than the data\nhelp: {data}")

    def begin(
        self,
        new: State,
        model: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        first_weights: Callable[[], dict[str, Tensor]],
    ) -> State:
        """Gives the model its first weights; returns the state of training."""
        state = new if self.state is None else State(**self.state)
        self.saved = state.step
        if self.shards is not None:
            # Another number of processes may have written them.
            weights, momenta = get_state_dict(model, optimizers)
            both = {"model": weights, "optimizer": momenta}
            load(both, checkpoint_id=self.shards)
            weights, momenta = both["model"], both["optimizer"]
            set_state_dict(
                model, optimizers, model_state_dict=weights, optim_state_dict=momenta
            )
            if self.is_first:
                say(f"continues from step {state.step}")
            return state
        # The first process has the weights and sends them to the others.
        whole: dict[str, Any] = {}
        fault = None
        if self.weights is not None:
            whole |= load_file(self.weights)
            how = f"continues from step {state.step}" if self.state else "begins"
            say(f"{how} with the weights of {self.weights}")
            # After its last step a run needs no optimizer.
            if self.state and not state.finished:
                say("the optimizer begins with a new state")
        elif self.is_first:
            whole |= first_weights()
        if self.is_first:
            shapes = {name: x.shape for name, x in model.state_dict().items()}
            if {name: x.shape for name, x in whole.items()} != shapes:
                source = self.weights or "start.safetensors"
                fault = f"{source} does not have the weights of this model"
        if (fault := agreed([fault])[0]) is not None:
            raise Refused(fault)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(model, whole, options=options)
        return state

    def save(
        self, state: State, model: nn.Module, optimizers: list[torch.optim.Optimizer]
    ) -> None:
        """Writes a checkpoint and deletes old ones; the best one stays."""
        name = named(state.step)
        draft = self.root / "torch" / f".{name}.tmp"
        weights, momenta = get_state_dict(model, optimizers)
        save({"model": weights, "optimizer": momenta}, checkpoint_id=draft)
        # The first process gathers the whole model in its main memory.
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        whole = get_model_state_dict(model, options=options)
        if self.is_first:
            replace(draft, self.root / "torch" / name)
            self.put(name, state, whole)
            best = None if state.best is None else named(state.best["step"])
            kept = [path.name for path in checkpoints(self.root)[: self.keep]]
            for path in (self.root / "checkpoints").glob("step-*"):
                if path.name not in [*kept, best]:
                    # Without its list it is no checkpoint, even if the rest stays.
                    (path / "whole.json").unlink(missing_ok=True)
                    shutil.rmtree(path)
            for path in (self.root / "torch").glob("step-*"):
                if path.name not in kept:
                    shutil.rmtree(path)
        self.saved = state.step
        dist.barrier()

    def put(self, name: str, state: State, weights: dict[str, Any]) -> None:
        folder = self.root / "checkpoints"
        draft = folder / f".{name}.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        for file, content in self.documents.items():
            write(draft / file, content)
        save_file(
            {n: x.float().contiguous() for n, x in weights.items()}, draft / MODEL
        )
        flush(draft / MODEL)
        write(draft / "state.json", pretty(asdict(state)))
        files = {path.name: digest(path) for path in sorted(draft.iterdir())}
        write(
            draft / "whole.json",
            pretty({"format": "trafoc-checkpoint/1", "files": files}),
        )
        replace(draft, folder / name)

    # only: average
    def average(self, state: State, count: int) -> None:
        """Writes the mean of the last checkpoints, which is the model of the run."""
        if not self.is_first:
            return
        found = checkpoints(self.root)[:count]
        sums: dict[str, Tensor] = {}
        for path in found:
            for name, x in load_file(path / MODEL).items():
                sums[name] = x.double() + sums.get(name, 0)
        self.put("averaged", state, {name: x / len(found) for name, x in sums.items()})

    # end
    def record(self, line: dict[str, Any]) -> None:
        if self.is_first:
            numbers = {name: finite(value) for name, value in line.items()}
            with open(self.root / "metrics.jsonl", "a") as file:
                file.write(json.dumps(numbers) + "\n")

    def rewind(self, step: int) -> None:
        """Removes what was recorded after a step, because it will be measured again."""
        path = self.root / "metrics.jsonl"
        if path.exists():
            lines = path.read_text().split("\n")[:-1]
            kept = [line + "\n" for line in lines if json.loads(line)["step"] <= step]
            draft = path.with_name(".metrics.jsonl.tmp")
            write(draft, "".join(kept).encode())
            draft.replace(path)


def agreed(found: list[Any]) -> list[Any]:
    """What the first process has found."""
    dist.broadcast_object_list(found)
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def named(step: int) -> str:
    return f"step-{step:09}"


def finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def difference(own: bytes, given: bytes) -> str | None:
    """The first key of a run's document that says something else in the one given, and
    its line in both. Where a new run would start from does not matter to one that has
    weights."""
    before, now = keys(own), keys(given)
    for key in [key for key in before | now if key != "start"]:
        lines = (of.get(key, "").splitlines() for of in (before, now))
        for a, b in zip_longest(*lines, fillvalue="nothing"):
            if a != b:
                return f"`{key}`: `{a.strip()}`, and the project has `{b.strip()}`"
    return None


def keys(document: bytes) -> dict[str, str]:
    """The text of each key of a document, by the key. What is below it is indented."""
    texts = re.split(r"^(?=\w)", document.decode(), flags=re.MULTILINE)
    return {text.partition(":")[0]: text for text in texts}


def pretty(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    flush(path)


def replace(draft: Path, target: Path) -> None:
    """Gives a folder that is complete its name."""
    flush(draft)
    if target.exists():
        # It is damaged, or the step was repeated after an older one was continued.
        aside = target.with_name(f".{target.name}.old.tmp")
        target.rename(aside)
        draft.rename(target)
        shutil.rmtree(aside)
    else:
        draft.rename(target)
    flush(target.parent)


def digest(path: Path) -> dict[str, Any]:
    sha256, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            sha256.update(part)
            size += len(part)
    return {"bytes": size, "sha256": sha256.hexdigest()}


def is_whole(folder: Path) -> bool:
    """Whether every byte of a checkpoint is as it was written."""
    try:
        files = json.loads((folder / "whole.json").read_text())["files"]
        return all(digest(folder / name) == sum for name, sum in files.items())
    except (OSError, ValueError, KeyError):
        return False


def checkpoints(root: Path) -> list[Path]:
    """The checkpoints of a run that are whole, newest first."""
    found = (root / "checkpoints").glob("step-*")
    return [path for path in sorted(found, reverse=True) if is_whole(path)]


def check_format(root: Path) -> None:
    """Refuses a run that another version of trafoc has written."""
    if json.dumps(FORMAT) not in (root / RUN).read_text():
        raise Refused(f"`{root / RUN}` does not have the format {FORMAT}")


def weights_of(path: Path) -> Path:
    """The file of weights that a path names, itself or that of a run."""
    if not (path / RUN).is_file():
        if path.is_file():
            return path
        raise Refused(f"`{path}` is neither a run nor a file of weights")
    check_format(path)
    for found in checkpoints(path):
        return found / MODEL
    raise Refused(f"`{path}` has no whole checkpoint")
