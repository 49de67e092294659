"""The order of examples, the masking of tokens and the first batches, computed without trafoc.

    python3 tests/order/make.py

writes `vectors.json`, with which `tests/it/learn/order.rs` compares. It needs Python alone. The batches of `d2l-nmt`
need a file that may not be distributed (`TRAFOC_DATA/fra-eng/fra.txt`, or `../shared/data/fra-eng/fra.txt`); of them
only indices and a checksum are stored, and without the file those that are stored stay.
"""

import gzip
import hashlib
import json
import os
import struct
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
M = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = 8


def mix(z):
    """One output of SplitMix64 from its state (Steele, Lea and Flood 2014)."""
    z = (z + GOLDEN) & M
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
    return z ^ (z >> 31)


def key(seed, purpose, *numbers):
    k = mix(seed)
    for word in [*purpose.encode(), M, *numbers]:
        k = mix(k ^ word)
    return k


def draw(k, n):
    return mix((k + n * GOLDEN) & M)


def unit(bits):
    return (bits >> 11) * 2.0**-53


def below(bits, n):
    return ((bits >> 32) * n) >> 32


def permute(k, n, at):
    """Which of n items is at place `at`: a Feistel network, walked until it is below n."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = at >> half, at & mask
        for r in range(ROUNDS):
            left, right = right, left ^ (draw(k, right * ROUNDS + r) & mask)
        at = left << half | right
        if at < n:
            return at


class Order:
    def __init__(self, seed, n, size, accumulate=1, bucket=0, length=lambda _: 0):
        self.seed, self.n, self.size, self.bucket, self.length = seed, n, size, bucket, length
        self.accumulate = accumulate
        self.batches = -(-n // size)
        self.steps_of_epoch = max(1, -(-self.batches // accumulate))

    def step(self, s):
        epoch, at = divmod(s, self.steps_of_epoch)
        first = at * self.accumulate
        return [self.batch(epoch, b) for b in range(first, min(first + self.accumulate, self.batches))]

    def batch(self, epoch, b):
        order, n, size, bucket = key(self.seed, "order", epoch), self.n, self.size, self.bucket
        if bucket == 0:
            return [permute(order, n, at) for at in range(b * size, min((b + 1) * size, n))]
        whole = n // size
        c = permute(key(self.seed, "batches", epoch), whole, b) if b < whole else b
        first = c // bucket * bucket * size
        group = [permute(order, n, at) for at in range(first, min(first + bucket * size, n))]
        group.sort(key=self.length)
        j = c % bucket
        return group[j * size : (j + 1) * size]


def corrupt(ids, k, share, hide, replace, vocab, mask):
    read, right = list(ids), [-1] * len(ids)
    chosen = [t for t in range(len(ids)) if unit(draw(k, 3 * t)) < share]
    if not chosen and ids:
        chosen = [below(draw(k, 3 * len(ids)), len(ids))]
    for t in chosen:
        right[t] = ids[t]
        u = unit(draw(k, 3 * t + 1))
        if u < hide:
            read[t] = mask
        elif u < hide + replace:
            read[t] = below(draw(k, 3 * t + 2), vocab)
    return read, right


class Xoshiro:
    """xoshiro256** (Blackman and Vigna 2018), with which examples are held out."""

    def __init__(self, seed, purpose, number):
        state = seed
        for word in [*purpose.encode(), M, number]:
            state = mix(state) ^ word
        self.s = []
        for _ in range(4):
            state = (state + GOLDEN) & M
            self.s.append(mix(state))

    def bits(self):
        def rotate(x, k):
            return ((x << k) | (x >> (64 - k))) & M

        a, b, c, d = self.s
        result = (rotate((b * 5) & M, 7) * 9) & M
        c, d = c ^ a, d ^ b
        self.s = [a ^ d, b ^ c, c ^ ((b << 17) & M), rotate(d, 45)]
        return result

    def below(self, n):
        floor = ((1 << 64) - n) % n
        while True:
            product = self.bits() * n
            if product & M >= floor:
                return product >> 64

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def padded(rows, pad):
    width = max(map(len, rows))
    return [row + [pad] * (width - len(row)) for row in rows]


def digest(code, *tables):
    """The SHA-256 of tables of numbers, one after the other, as little-endian values."""
    flat = [v for table in tables for row in table for v in row]
    return hashlib.sha256(struct.pack(f"<{len(flat)}{code}", *flat)).hexdigest()


def place_names():
    """gbt-mulm: characters in the order of Unicode after the boundary 0."""
    names = (ROOT / "data/isimler.txt").read_text(encoding="utf-8").splitlines()
    ids = {c: i + 1 for i, c in enumerate(sorted(set("".join(names))))}
    names = [[ids[c] for c in name] for name in names]
    order = Order(3407, len(names), 16)
    steps = {}
    for s in (0, 1, 1874, 1875, 3999):
        (examples,) = order.step(s)
        rows = [[0, *names[i], 0] for i in examples]
        read = padded([row[:-1] for row in rows], 0)
        right = padded([row[1:] for row in rows], 0)
        counted = sum(len(row) - 1 for row in rows)
        steps[s] = {"indices": examples, "counted": counted, "sha256": digest("q", read, right)}
        if s == 0:
            steps[s] |= {"tokens": read, "labels": right}
    return steps


def words(text):
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    return "".join(" " + c if c in ",.!?" and i and text[i - 1] != " " else c for i, c in enumerate(text)).split()


def vocabulary(texts):
    counts = Counter(word for text in texts for word in text)
    kept = sorted((word for word in counts if counts[word] >= 2), key=lambda w: (-counts[w], w))
    return {word: i + 4 for i, word in enumerate(kept)}


def translations():
    """d2l-nmt: `<unk> <pad> <bos> <eos>`, then words by frequency; 10 positions, of which one is special."""
    folder = Path(os.environ.get("TRAFOC_DATA", ROOT.parent / "shared/data"))
    path = folder / "fra-eng/fra.txt"
    if not path.exists():
        return None
    pairs = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()[:601]]
    sides = [[words(text) for text in side] for side in zip(*pairs)]
    tables = [vocabulary(side) for side in sides]
    source, target = ([[t.get(w, 0) for w in x][:9] for x in side] for side, t in zip(sides, tables))
    order = Order(0, len(pairs), 64)
    steps = {}
    for s in (0, 9, 10, 1999):
        (examples,) = order.step(s)
        sources = [source[i] + [3] for i in examples]
        rows = [[2, *target[i], 3] for i in examples]
        read, right = padded([r[:-1] for r in rows], 1), padded([r[1:] for r in rows], 0)
        counted = sum(len(row) - 1 for row in rows)
        sums = {"source": digest("q", padded(sources, 1)), "target": digest("q", read), "labels": digest("q", right)}
        steps[s] = {"indices": examples, "counted": counted, **sums}
    return steps


def digits():
    """vit: a fifth is held out for the test; 16 is white."""
    lines = gzip.decompress((ROOT / "data/digits.csv.gz").read_bytes()).decode().splitlines()
    images = [[int(v) for v in line.split(",")] for line in lines if line]
    order = list(range(len(images)))
    Xoshiro(1, "split", 0).shuffle(order)
    held = set(order[: round(0.2 * len(images))])
    images = [image for i, image in enumerate(images) if i not in held]
    order = Order(1, len(images), 64)
    steps = {}
    for s in (0, 22, 23, 574):
        (examples,) = order.step(s)
        pixels = [[v / 16 for v in images[i][:64]] for i in examples]
        labels = [images[i][64] for i in examples]
        steps[s] = {"indices": examples, "labels": labels, "sha256": digest("f", pixels)}
    return steps


def main():
    file = HERE / "vectors.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    counters = []
    for seed, purpose, numbers in [(0, "", []), (7, "order", [0]), (M, "masking", [3, 29995]), (1 << 40, "batches", [M])]:
        k = key(seed, purpose, *numbers)
        draws = [draw(k, n) for n in (0, 1, 2, 1 << 40, M)]
        counters.append({"seed": seed, "purpose": purpose, "numbers": numbers, "draws": draws})
    orders = []
    for n in (1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 100, 1000):
        k = key(5, "order", n)
        places = range(min(n, 40))
        orders.append({"count": n, "places": list(places), "items": [permute(k, n, at) for at in places]})
    for n in (29996, 1 << 20, (1 << 20) + 1, (1 << 33) + 5, (1 << 63) + 1, M):
        k = key(5, "order", n)
        places = [0, 1, 2, n // 3, n // 2, n - 2, n - 1]
        orders.append({"count": n, "places": places, "items": [permute(k, n, at) for at in places]})
    plans = []
    for n, size, accumulate, bucket in [(1, 4, 1, 0), (10, 4, 1, 0), (103, 8, 3, 0), (103, 8, 3, 4), (96, 8, 2, 5), (7, 8, 2, 3)]:
        order = Order(11, n, size, accumulate, bucket, lambda i: i * 7919 % 23)
        steps = [order.step(s) for s in range(2 * order.steps_of_epoch)]
        plans.append({"examples": n, "size": size, "accumulate": accumulate, "bucket": bucket, "steps": steps})
    masks = []
    for example, ids in enumerate([[], [9], [5, 6, 7], list(range(5, 45))]):
        for shares in ((0.15, 0.8, 0.1), (0.5, 0.3, 0.6)):
            read, right = corrupt(ids, key(4, "masking", 2, example), *shares, 97, 1)
            masks.append({"example": example, "ids": ids, "shares": shares, "read": read, "right": right})
    vectors = {
        "counters": counters,
        "orders": orders,
        "plans": plans,
        "masks": masks,
        "gbt-mulm": place_names(),
        "d2l-nmt": translations() or before.get("d2l-nmt"),
        "vit": digits(),
    }
    rows = [f'"{name}": [\n' + ",\n".join(json.dumps(v) for v in value) + "\n]" if isinstance(value, list)
            else f'"{name}": ' + "{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in (value or {}).items()) + "\n}"
            for name, value in vectors.items()]
    file.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
