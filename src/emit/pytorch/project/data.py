"""Reads the folder that `trafoc data` has prepared.

Which examples make step `s` follows from the seed and `s` alone, whatever the number
of processes: a counter-based generator permutes the examples of an epoch without a
table (SplitMix64 in a Feistel network). Every process has a share of a batch's rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.distributed as dist

from run_folder import Refused, digest

# What the data must have been prepared for.
NEEDS: dict[str, object] = {}

# The label of a position that takes no part in the loss.
IGNORED = -100

Ints = np.ndarray[Any, Any]


class Batch(NamedTuple):
    """The rows of one batch that belong to this process."""

    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor
    examples: list[int]
    # How many predictions the loss is a sum of. It is 0 if a batch has fewer rows than
    # there are processes; the row is then that of another process, so that all of them
    # do the same work.
    counted: int
    # Tokens that are read, of all processes.
    tokens: int

    def to(self, device: torch.device) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """The inputs and the labels on a device."""
        inputs = {name: x.to(device) for name, x in self.inputs.items()}
        return inputs, self.labels.to(device)


# Random numbers by SplitMix64 (Steele, Lea and Flood 2014), of whole numbers and of
# arrays of uint64.
ALL = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = (z + GOLDEN) & ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
    return z ^ (z >> 31)


def key(seed: int, purpose: str, *numbers: int) -> int:
    """The generator of a purpose; its output n is `draw(key, n)`."""
    state = mix(seed)
    for word in [*purpose.encode(), ALL, *numbers]:
        state = mix(state ^ word)
    return state


def draw(of: int, n):
    return mix((of + n * GOLDEN) & ALL)


def permute(of: int, n: int, at: Sequence[int] | Ints) -> Ints:
    """Which of n items are at these places of a permutation (Luby and Rackoff 1988,
    with the cycle walking of Black and Rogaway 2002)."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    low = (1 << half) - 1
    places = np.asarray(at, np.uint64)
    outside = np.ones(len(places), bool)
    while outside.any():
        left, right = places[outside] >> half, places[outside] & low
        for round in range(8):
            left, right = right, left ^ (draw(of, right * 8 + round) & low)
        places[outside] = left << half | right
        outside = places >= n
    return places.astype(np.int64)


class Lists:
    """Lists of numbers in one array."""

    def __init__(self, values: Ints, offsets: Ints) -> None:
        self.values, self.offsets = values, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Ints:
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self, items: Ints) -> Ints:
        return self.offsets[items + 1] - self.offsets[items]

    def longest(self, items: Ints) -> int:
        return int(self.lengths(items).max())


class Part:
    """The examples for training, validation or test, mapped into memory."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.examples: int = description["examples"]
        self.description = description
        self.arrays: dict[str, Ints] = {}
        types = {"i32": "<i4", "i64": "<i8", "f32": "<f4", "u8": "u1"}
        for name, array in description["arrays"].items():
            shape = tuple(array["shape"])
            if 0 in shape:
                self.arrays[name] = np.zeros(shape, types[array["type"]])
            else:
                self.arrays[name] = np.memmap(
                    folder / array["file"], types[array["type"]], "r", 0, shape
                )

    def lists(self, name: str) -> Lists:
        return Lists(self.arrays[name], self.arrays[f"{name}.offsets"])

    def text(self, name: str, i: int) -> str:
        return bytes(self.lists(name)[i]).decode()


class Data:
    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        size: int,
        accumulate: int,
        # only: bucket
        bucket: int,
        # end
        # only: hidden_token
        masking: tuple[float, float, float],
        # end
        # only: classify_image
        positions: int,
        # end
    ) -> None:
        if not (folder / "whole.json").is_file():
            raise Refused(f"`{folder}` has no data that `trafoc data` has completed")
        listed = json.loads((folder / "whole.json").read_text())
        if listed["format"] != "trafoc-data/1":
            raise Refused(f"`{folder}` has another format, {listed['format']}")
        for name, file in listed["files"].items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                raise Refused(f"`{path}` is missing or cut off: prepare the data again")
        about = json.loads((folder / "data.json").read_text())
        for what, needed in NEEDS.items():
            if (found := about["spec"][what]) != needed:
                why = f"was prepared for {what} {found}, and the model has {needed}"
                raise Refused(f"`{folder}` {why}")
        self.folder, self.files, self.about = folder, listed["files"], about
        self.seed, self.size, self.accumulate = seed, size, accumulate
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        # only: bucket
        self.bucket = bucket
        # end
        # only: hidden_token
        self.masking = masking
        # end
        # only: classify_image
        self.positions = positions
        # end
        # only: text
        marks = about["sequence"]
        self.before, self.between = marks["before"], marks["between"]
        self.after, self.pad = marks["after"], marks["pad"]
        if rows := marks.get("rows"):
            one = [*self.before, "first", *self.after]
            two = [*self.before, "first", *self.between, "second", *self.after]
            is_plain = [[i for i, _ in rows[n]] for n in ("one", "two")] == [one, two]
            # only: token_types
            is_plain = False
            # end
            if not is_plain:
                why = "has rows of texts that only `trafoc train` can read"
                raise Refused(f"`{folder}` {why}: see `rows` in its data.json")
        # end
        # only: translate
        self.source = about["source"]
        # end
        self.parts = {name: Part(folder, part) for name, part in about["parts"].items()}
        self.train = self.parts["train"]
        self.batches = -(-self.train.examples // size)
        self.steps_of_epoch = max(1, -(-self.batches // accumulate))

    def verify(self) -> None:
        """Compares every byte with the checksums, each process those of some files."""
        names = sorted(self.files)[self.rank :: self.world]
        own = [n for n in names if digest(self.folder / n) != self.files[n]]
        damaged: list[list[str]] = [[] for _ in range(self.world)]
        dist.all_gather_object(damaged, own)
        for name in [name for names in damaged for name in names]:
            raise Refused(f"`{self.folder / name}` is damaged: prepare the data again")

    def step(self, step: int) -> list[Batch]:
        """This process's share of the batches of a step, counted from 0."""
        epoch, at = divmod(step, self.steps_of_epoch)
        batches = range(
            at * self.accumulate, min((at + 1) * self.accumulate, self.batches)
        )
        return [
            self.collate("train", self.examples(epoch, batch), epoch)
            for batch in batches
        ]

    def part(self, split: str, limit: int | None) -> Iterator[Batch]:
        """This process's share of the batches of a part, in the order of its files."""
        examples = self.parts[split].examples
        count = min(examples, limit or examples)
        for first in range(0, count, self.size):
            indices = np.arange(first, min(first + self.size, count))
            # only: classify_image
            # Images are sorted by class, so they are taken from the whole part.
            indices = indices * examples // count
            # end
            yield self.collate(split, indices, 0)

    def examples(self, epoch: int, batch: int) -> Ints:
        """The examples of a batch."""
        n, size = self.train.examples, self.size
        order = key(self.seed, "order", epoch)
        # only: bucket
        # Groups of batches are sorted by length. Full batches change places; a smaller
        # last one stays last.
        whole = n // size
        if batch < whole:
            batch = int(permute(key(self.seed, "batches", epoch), whole, [batch])[0])
        first = batch // self.bucket * self.bucket * size
        group = permute(order, n, np.arange(first, min(first + self.bucket * size, n)))
        group = group[np.argsort(self.lengths(self.train, group), kind="stable")]
        return group[batch % self.bucket * size :][:size]
        # end
        # only: !bucket
        return permute(order, n, np.arange(batch * size, min((batch + 1) * size, n)))
        # end

    # only: bucket
    def lengths(self, part: Part, examples: Ints) -> Ints:
        # only: next_token hidden_token tag
        return part.lists("ids").lengths(examples)
        # end
        # only: translate
        source, target = part.lists("source"), part.lists("target")
        return np.maximum(source.lengths(examples), target.lengths(examples))
        # end
        # only: classify_text
        texts, second = part.lists("text"), part.lists("second")
        return texts.lengths(examples) + second.lengths(examples)
        # end
        # only: classify_image
        return np.zeros(len(examples), np.int64)
        # end
        # only: span
        question, contexts = part.lists("question"), part.lists("context_ids")
        of = part.arrays["context"][examples]
        return question.lengths(examples) + contexts.lengths(of)
        # end

    # end
    def collate(self, split: str, examples: Ints, epoch: int) -> Batch:
        """The rows of a batch that belong to this process."""
        own = examples[self.rank :: self.world]
        is_idle = len(own) == 0
        if is_idle:
            own = examples[:1]
        part = self.parts[split]
        # only: text
        before, after, pad = self.before, self.after, self.pad
        # end
        # only: next_token
        lists = part.lists("ids")
        if not part.description["whole"]:
            before, after = [], []
        rows = [[*before, *lists[i], *after] for i in own]
        width = max(1, lists.longest(examples) + len(before) + len(after) - 1)
        inputs = {"tokens": padded([row[:-1] for row in rows], width, pad)}
        labels = padded([row[1:] for row in rows], width, IGNORED)
        # end
        # only: hidden_token tag
        lists = part.lists("ids")
        width = lists.longest(examples) + len(before) + len(after)
        # end
        # only: hidden_token
        hidden = [self.hide(lists[i], split, epoch, int(i)) for i in own]
        rows = [[*before, *read, *after] for read, _ in hidden]
        right = [[IGNORED] * len(before) + was for _, was in hidden]
        # end
        # only: tag
        rows = [[*before, *lists[i], *after] for i in own]
        tags = part.lists("tags")
        right = [np.where(tags[i] < 0, IGNORED, tags[i]).tolist() for i in own]
        right = [[IGNORED] * len(before) + row for row in right]
        # end
        # only: hidden_token tag
        inputs = sequences(rows, width, pad)
        labels = padded(right, max(1, width), IGNORED)
        # end
        # only: translate
        source, target, end = part.lists("source"), part.lists("target"), self.source
        # The language of a source may be before it.
        first, last = end.get("before", []), end["after"]
        width = source.longest(examples) + len(first) + len(last)
        rows = [[*first, *source[i], *last] for i in own]
        inputs = sequences(rows, width, end["pad"], "source", "source_mask")
        longest = max(1, target.longest(examples) + len(before) + len(after) - 1)
        rows = [[*before, *target[i], *after] for i in own]
        inputs["target"] = padded([row[:-1] for row in rows], longest, pad)
        labels = padded([row[1:] for row in rows], longest, IGNORED)
        width += longest
        # end
        # only: languages
        languages = part.arrays["language"][own]
        inputs["language"] = torch.from_numpy(languages.astype(np.int64))
        # end
        # only: classify_text
        texts, second = part.lists("text"), part.lists("second")
        classes, between = part.lists("labels"), self.between
        pairs = [self.pair(texts[i], second[i]) for i in own]
        extra = second.lengths(examples)
        lengths = texts.lengths(examples) + extra + (extra > 0) * len(between)
        width = int(lengths.max()) + len(before) + len(after)
        inputs = sequences([row for row, _ in pairs], width, pad)
        # end
        # only: classify_image
        pixels, classes = part.arrays["pixels"], part.arrays["labels"]
        inputs = {"image": torch.from_numpy(pixels[own].astype(np.float32))}
        # end
        # only: one_class_text
        labels = torch.tensor([int(classes[i][0]) for i in own])
        # end
        # only: one_class_image
        labels = torch.from_numpy(classes[own].astype(np.int64))
        # end
        # only: several
        held = [np.atleast_1d(classes[i]).tolist() for i in own]
        count = cast(int, NEEDS["classes"])
        # A single sigmoid distinguishes the second class from the first.
        wanted = range(count) if count > 1 else [1]
        labels = torch.tensor([[float(c in row) for c in wanted] for row in held])
        # end
        # only: span
        question, contexts = part.lists("question"), part.lists("context_ids")
        of, between = part.arrays["context"], self.between
        edges = len(before) + len(between) + len(after)
        asked = question.lengths(examples)
        room = np.maximum(0, cast(int, NEEDS["longest"]) - edges - asked)
        fits = np.minimum(contexts.lengths(of[examples]), room)
        width = int((asked + fits).max()) + edges
        fits = dict(zip(examples.tolist(), fits.tolist(), strict=True))
        pairs = [
            self.pair(question[i], contexts[int(of[i])][: fits[int(i)]]) for i in own
        ]
        inputs = sequences([row for row, _ in pairs], width, pad)
        start = len(before) + len(between) + question.lengths(own)
        answer = part.arrays["answer"][own]
        # An answer that was cut off is represented by the first token.
        answer = np.where(answer < 0, 0, start[:, None] + answer)
        labels = torch.from_numpy(answer.astype(np.int64))
        # end
        # only: token_types
        # only: hidden_token tag
        types = [[0] * len(row) for row in rows]
        # end
        # only: classify_text span
        types = [types for _, types in pairs]
        # end
        inputs["token_types"] = padded(types, max(1, width), 0)
        # end
        # only: positions
        counted = int((labels != IGNORED).sum())
        # end
        # only: classes
        counted = labels.numel()
        # end
        # only: span
        counted = len(labels)
        # end
        # only: text
        tokens = len(examples) * width
        # end
        # only: classify_image
        tokens = len(examples) * self.positions
        # end
        return Batch(inputs, labels, own.tolist(), 0 if is_idle else counted, tokens)

    # only: classify_text span
    def pair(self, first: Ints, second: Ints) -> tuple[list[int], list[int]]:
        """Two texts in a row, and the index of the text to which each token belongs."""
        # only: classify_text
        if len(second) == 0:
            row = [*self.before, *first, *self.after]
            return row, [0] * len(row)
        # end
        row = [*self.before, *first, *self.between, *second, *self.after]
        start = len(self.before) + len(first) + min(1, len(self.between))
        two = len(self.between) < 2
        return row, [int(two and i >= start) for i in range(len(row))]

    # end
    # only: hidden_token
    def hide(
        self, text: Ints, split: str, epoch: int, example: int
    ) -> tuple[list[int], list[int]]:
        """Masks tokens; returns what is read, and what is to be predicted there."""
        share, hidden, replaced = self.masking
        purpose = "masking" if split == "train" else f"masking of {split}"
        of = key(self.seed, purpose, epoch, example)
        at = np.arange(len(text), dtype=np.uint64)
        bits = draw(of, at[:, None] * 3 + np.arange(3, dtype=np.uint64))
        chosen = (bits[:, 0] >> 11) * 2.0**-53 < share
        if not chosen.any() and len(text) > 0:
            chosen[((draw(of, 3 * len(text)) >> 32) * len(text)) >> 32] = True
        u = (bits[:, 1] >> 11) * 2.0**-53
        marks = self.about["sequence"]
        mask = marks["pad"] if marks["mask"] is None else marks["mask"]
        other = ((bits[:, 2] >> 32) * cast(int, NEEDS["vocab"])) >> 32
        other = np.where(u < hidden + replaced, other.astype(np.int64), text)
        read = np.where(chosen, np.where(u < hidden, mask, other), text)
        return read.tolist(), np.where(chosen, text, IGNORED).tolist()

    # end


def padded(rows: Sequence[Sequence[int] | Ints], width: int, pad: int) -> torch.Tensor:
    """Rows `[B, width]`, filled up at the end."""
    out = torch.full((len(rows), width), pad, dtype=torch.int64)
    for row, ids in zip(out, rows, strict=True):
        row[: len(ids)] = torch.as_tensor(np.asarray(ids, np.int64))
    return out


# only: masked
def sequences(
    rows: Sequence[Sequence[int]],
    width: int,
    pad: int,
    tokens: str = "tokens",
    mask: str = "mask",
) -> dict[str, torch.Tensor]:
    """Tokens, and a mask (1 for a token, 0 for padding) if there is padding."""
    width = max(1, width)
    inputs = {tokens: padded(rows, width, pad)}
    if any(len(row) < width for row in rows):
        inputs[mask] = padded([[1] * len(row) for row in rows], width, 0)
    return inputs


# end
