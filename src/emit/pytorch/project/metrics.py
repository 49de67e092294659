"""The metrics of the recipe, over all processes, each from its published definition."""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import sacrebleu
import tokenizers
import torch
import torch.distributed as dist
from torch import Tensor, nn

from data import IGNORED, Batch, Data


class Meter:
    """Collects what the metrics of an evaluation need."""

    def __init__(self, data: Data, split: str, limit: int | None) -> None:
        self.data, self.part = data, data.parts[split]
        self.examples = min(self.part.examples, limit or self.part.examples)
        self.nats, self.counted = 0.0, 0
        # only: accuracy
        self.right = 0
        # end
        # only: macro_f1
        # The right and the predicted class; before them, of several classes at once,
        # which class it is.
        self.pairs: Counter[tuple[int, int, int]] = Counter()
        # end
        # only: texts
        # What the model has written or answered, with the references.
        self.texts: list[tuple[str, list[str]]] = []
        # end

    def add(self, outputs: Any, labels: Tensor, batch: Batch, nats: float) -> None:
        self.nats += nats
        self.counted += batch.counted
        # only: predicted
        # only: positions
        kept = labels != IGNORED
        predicted, right = outputs.argmax(-1)[kept], labels[kept]
        # end
        # only: one_class
        predicted, right = outputs.argmax(-1), labels
        # end
        # only: several
        predicted, right = (outputs > 0).long(), labels.long()
        # end
        # only: accuracy
        self.right += int((predicted == right).sum())
        # end
        # only: macro_f1
        # only: positions one_class
        pairs = zip(
            [0] * right.numel(),
            right.flatten().tolist(),
            predicted.flatten().tolist(),
            strict=True,
        )
        # end
        # only: several
        which = list(range(right.shape[1])) * len(right)
        pairs = zip(
            which, right.flatten().tolist(), predicted.flatten().tolist(), strict=True
        )
        # end
        self.pairs.update(pairs)
        # end
        # end
        # only: answers
        scores = [
            torch.log_softmax(o.double(), -1).cpu().numpy()
            for o in (outputs.start_logits, outputs.end_logits)
        ]
        self.texts += [
            self.answer(i, *of) for i, *of in zip(batch.examples, *scores, strict=True)
        ]
        # end

    # only: answers
    def answer(
        self, i: int, start: np.ndarray, end: np.ndarray
    ) -> tuple[str, list[str]]:
        """The most probable answer of at most 30 tokens, and the references."""
        part, marks = self.part, self.data.about["sequence"]
        context = int(part.arrays["context"][i])
        before = (
            len(marks["before"])
            + len(part.lists("question")[i])
            + len(marks["between"])
        )
        room = max(0, self.data.about["spec"]["longest"] - before - len(marks["after"]))
        count = min(len(part.lists("context_ids")[context]), room)
        scores = (
            start[before : before + count, None] + end[None, before : before + count]
        )
        allowed = np.triu(np.ones((count, count), bool)) & ~np.triu(
            np.ones((count, count), bool), 30
        )
        own = ""
        if count > 0:
            best = int(np.where(allowed, scores, -np.inf).argmax())
            places = part.arrays["context_bytes"][
                part.arrays["context_ids.offsets"][context] :
            ]
            text = bytes(part.lists("context_text")[context])
            own = text[places[best // count][0] : places[best % count][1]].decode(
                errors="replace"
            )
        of = part.arrays["answer_text.of.offsets"]
        return plain(own), [
            plain(part.text("answer_text", j)) for j in range(of[i], of[i + 1])
        ]

    # end
    # only: writes
    def write(self, net: nn.Module, inputs: dict[str, Tensor], batch: Batch) -> None:
        """Translates greedily, all processes in step, so that sharded models can."""
        marks, longest = self.data.about["sequence"], self.data.about["spec"]["longest"]
        (end,) = marks["after"]
        target = inputs["target"].new_tensor([marks["before"]] * len(inputs["target"]))
        ended = torch.zeros(len(target), dtype=torch.bool, device=target.device)
        while target.shape[1] <= longest:
            chosen = net(**inputs | {"target": target})[:, -1].argmax(-1)
            target = torch.cat([target, chosen[:, None]], 1)
            ended |= chosen == end
            waiting = torch.tensor(int((~ended).sum()))
            dist.all_reduce(waiting)
            if waiting == 0:
                break
        for i, row in zip(batch.examples, target[:, 1:].tolist(), strict=True):
            if batch.counted > 0:
                own = row[: row.index(end)] if end in row else row
                right = self.part.text("target_text", i)
                self.texts.append((decoded(self.data, own), [normal(self.data, right)]))

    # end
    def figures(self, names: tuple[str, ...]) -> dict[str, float]:
        sums = torch.tensor([self.nats, self.counted], dtype=torch.float64)
        dist.all_reduce(sums)
        nats, counted = sums.tolist()
        loss = nats / max(1, counted)
        found: dict[str, float] = {"loss": loss}
        # only: perplexity
        found["perplexity"] = math.exp(loss) if loss < 700 else math.inf
        # end
        # only: bits_per_character
        found["bits_per_character"] = nats / math.log(2) / max(1, self.characters())
        # end
        # only: accuracy
        right = torch.tensor(self.right)
        dist.all_reduce(right)
        found["accuracy"] = float(right) / max(1, counted)
        # end
        # only: macro_f1
        found["macro_f1"] = macro_f1(gathered([self.pairs]))
        # end
        # only: texts
        texts = gathered(self.texts)
        # end
        # only: bleu word_bleu
        written, references = (
            [own for own, _ in texts],
            [[right[0] for _, right in texts]],
        )
        # end
        # only: bleu
        found["bleu"] = sacrebleu.corpus_bleu(written, references).score
        # end
        # only: word_bleu
        found["word_bleu"] = sacrebleu.corpus_bleu(
            written, references, tokenize="none", force=True
        ).score
        # end
        # only: sentence_bleu
        found["sentence_bleu"] = mean(
            [sentence_bleu(own, right[0], 2) for own, right in texts]
        )
        # end
        # only: exact_match
        found["exact_match"] = mean([float(own in right) for own, right in texts])
        # end
        # only: f1
        found["f1"] = mean(
            [max((f1(own, r) for r in right), default=0.0) for own, right in texts]
        )
        # end
        return {name: found[name] for name in names}

    # only: bits_per_character
    def characters(self) -> int:
        # only: counts_characters
        if self.examples < self.part.examples:
            # Nothing predicts the first token unless a start token does; a piece of a
            # text shares it with the piece before.
            marks, whole = self.data.about["sequence"], self.part.description["whole"]
            unpredicted = 0 if whole and marks["before"] else 1
            texts = (self.part.lists("ids")[i].tolist() for i in range(self.examples))
            return sum(
                len(decoded(self.data, ids))
                - len(decoded(self.data, ids[:unpredicted]))
                for ids in texts
            )
        # end
        return self.part.description["characters"]

    # end


# only: macro_f1 texts
def gathered(own: list[Any]) -> list[Any]:
    """The items of all processes."""
    all: list[list[Any]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(all, own)
    return [item for items in all for item in items]


# end
# only: sentence_bleu exact_match f1
def mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


# end
# only: macro_f1
def macro_f1(found: list[Counter[tuple[int, int, int]]]) -> float:
    """The mean over the classes of `2 hits / (2 hits + false alarms + misses)`."""
    hits, faults = Counter[int](), Counter[int]()
    for (which, right, predicted), count in sum(found, Counter()).items():
        # only: positions one_class
        if right == predicted:
            hits[right] += count
        else:
            faults.update({right: count, predicted: count})
        # end
        # only: several
        hits[which] += count if right == predicted == 1 else 0
        faults[which] += count if right != predicted else 0
        # end
    classes = hits.keys() | faults.keys()
    return sum(2 * hits[c] / max(1, 2 * hits[c] + faults[c]) for c in classes) / max(
        1, len(classes)
    )


# end
# only: sentence_bleu
def sentence_bleu(own: str, right: str, k: int) -> float:
    """BLEU of a sentence, 0 to 1, as "Dive into Deep Learning" has it."""
    words, reference = own.split(" "), right.split(" ")
    score = math.exp(min(0.0, 1 - len(reference) / len(words)))
    for n in range(1, min(k, len(words)) + 1):
        runs, known = ngrams(words, n), ngrams(reference, n)
        score *= ((runs & known).total() / runs.total()) ** 0.5**n
    return score


def ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


# end
# only: answers
def plain(text: str) -> str:
    """An answer without case, punctuation and articles, as SQuAD compares it."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


# end
# only: f1
def f1(own: str, right: str) -> float:
    """`2 P R / (P + R)` of the words of an answer."""
    words, reference = Counter(own.split()), Counter(right.split())
    return 2 * (words & reference).total() / max(1, words.total() + reference.total())


# end
# only: decodes
def decoded(data: Data, ids: list[int]) -> str:
    """The text of tokens, without special ones."""
    # only: words
    words = codebook(data)["words"]["words"]
    return " ".join(
        "<unk>" if i == 0 else words[i - 4]
        for i in ids
        if i == 0 or 4 <= i < len(words) + 4
    )
    # end
    # only: characters
    about = codebook(data)["characters"]
    first = 4 if about["boundary"] is None else 1
    return "".join(
        about["alphabet"][i - first]
        for i in ids
        if first <= i < len(about["alphabet"]) + first
    )
    # end
    # only: bytes
    return bytes(i for i in ids if i < 256).decode(errors="replace")
    # end
    # only: subword
    return tokenizers.Tokenizer.from_str(json.dumps(codebook(data)["subword"])).decode(
        ids
    )
    # end


# only: codebook
@cache
def codebook(data: Data) -> dict[str, Any]:
    return json.loads((data.folder / "codebook.json").read_text())["tokenizer"]


# end
# end
# only: writes
def normal(data: Data, text: str) -> str:
    """A reference in the form in which the model writes."""
    # only: words
    text = re.sub(r"([,.!?])", r" \1", text)
    lower = codebook(data)["words"]["lower"]
    return " ".join(
        "".join(c.lower() for c in word) if lower else word for word in text.split()
    )
    # end
    # only: characters
    lower = codebook(data)["characters"]["lower"]
    return "".join(c.lower() for c in text) if lower else text
    # end
    # only: subword
    about = json.dumps(codebook(data)["subword"])
    normalizer = tokenizers.Tokenizer.from_str(about).normalizer
    if normalizer is None:
        return text
    own, space = normalizer.normalize_str(text), "\u2581"
    # Marks that stand for spaces until texts are decoded are no part of the text.
    if space in own and space not in text:
        return own.replace(space, " ").strip()
    return own
    # end
    # only: bytes
    return text
    # end


# end
