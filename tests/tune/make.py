"""Fine-tuning with PyTorch and transformers, with which `tests/it/tune.rs` compares the losses of `trafoc train`.

    python3 tests/tune/make.py

needs torch, transformers, and peft for the cases with LoRA. It writes `bert`, the directory of a small body with
random weights and a `vocab.txt` alone, `data.csv`, `pairs.tsv`, `images`, and `expected.json`; with the argument `others` only what
is not about classes of texts. The order of examples and the fresh numbers are
those of trafoc, computed here in plain Python.
"""

import csv
import importlib.util
import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import (
    BertConfig, BertForSequenceClassification, BertModel, BertTokenizer, ViTForImageClassification,
)

HERE = Path(__file__).resolve().parent
STEPS, SIZE, SEED = 20, 4, 3
spec = importlib.util.spec_from_file_location("order", HERE.parent / "order/make.py")
order = importlib.util.module_from_spec(spec)
spec.loader.exec_module(order)

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


class Stream:
    """Philox 4x32-10 (Salmon et al. 2011), keyed by a seed and a path."""

    def __init__(self, seed, path):
        z = 0xCBF29CE484222325
        for byte in path.encode():
            z = ((z ^ byte) * 0x100000001B3) & M64
        z ^= (seed * 0x9E3779B97F4A7C15) & M64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        z ^= z >> 31
        self.key = (z & M32, z >> 32)

    def block(self, index, lane=0):
        c, key = [index & M32, index >> 32, lane, 0], self.key
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ key[0], b & M32, (a >> 32) ^ c[3] ^ key[1], a & M32]
            key = ((key[0] + 0x9E3779B9) & M32, (key[1] + 0xBB67AE85) & M32)
        return [(x + 0.5) / 2**32 for x in c]


def normal(path, shape, std):
    stream, values = Stream(SEED, path), []
    for index in range(-(-math.prod(shape) // 4)):
        a, b, c, d = stream.block(index)
        for u, v in ((a, b), (c, d)):
            radius = math.sqrt(-2 * math.log(u))
            values += [radius * math.cos(math.tau * v) * std, radius * math.sin(math.tau * v) * std]
    return torch.tensor(np.array(values[: math.prod(shape)]).astype(np.float32).reshape(shape))


def uniform(path, shape, bound):
    stream, values = Stream(SEED, path), []
    for index in range(-(-math.prod(shape) // 4)):
        values += [(2 * u - 1) * bound for u in stream.block(index)]
    return torch.tensor(np.array(values[: math.prod(shape)]).astype(np.float32).reshape(shape))


def truncated(path, shape, std):
    """Normal numbers of at most two standard deviations: others are drawn again."""
    stream, values = Stream(SEED, path), []
    for element in range(math.prod(shape)):
        for attempt in range(1, 1000):
            a, b, _, _ = stream.block(element, attempt)
            x = math.sqrt(-2 * math.log(a)) * math.cos(math.tau * b)
            if abs(x) <= 2:
                values.append(x * std)
                break
    return torch.tensor(np.array(values).astype(np.float32).reshape(shape))


WORDS = {
    "ship": "The harbour closed; seven freighters wait, and the Café crew repaint them.",
    "wheat": "Wheat prices rose 12% in Genève as dry fields cost farmers a naïve hope.",
    "trade": "Ministers met in Zürich: tariffs on steel (and 中国 tea) would fall by half.",
}


def data():
    rows, source = [], random.Random(5)
    for i in range(36):
        label = list(WORDS)[i % 3]
        words = WORDS[label].split()
        source.shuffle(words)
        rows.append((" ".join(words[: source.randint(4, len(words))]), label))
    with open(HERE / "data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "label"])
        writer.writerows(rows)
    return rows


def vocabulary():
    """Whole words for some, pieces for others, and every character, so that nothing common is unknown."""
    whole = ["the", "harbour", "closed", "seven", "wait", "and", "cafe", "crew", "them", "wheat", "prices", "in"]
    whole += ["as", "dry", "fields", "farmers", "a", "hope", "ministers", "met", "tariffs", "on", "steel", "tea"]
    whole += ["##ers", "##eve", "##ich", "##aint", "free", "##ight", "fall", "by", "half", "would", "12", "中"]
    characters = sorted("abcdefghijklmnopqrstuvwxyz.,;:()%")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return marks + whole + characters + [f"##{c}" for c in characters if c.isalpha()]


def body():
    folder = HERE / "bert"
    tokens = list(dict.fromkeys(vocabulary()))
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=0,
        initializer_range=0.1,
    )
    torch.manual_seed(11)
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return folder


def fresh(folder):
    model = BertForSequenceClassification.from_pretrained(folder, num_labels=3, attn_implementation="eager")
    with torch.no_grad():
        model.classifier.weight.copy_(normal("head.output.weight", (3, 32), 0.1))
        model.classifier.bias.zero_()
    return model.train()


def batches(rows, tokenizer):
    labels = sorted({label for _, label in rows})
    walk = order.Order(SEED, len(rows), SIZE)
    for step in range(STEPS):
        (indices,) = walk.step(step)
        texts = tokenizer([rows[i][0] for i in indices], padding=True, return_tensors="pt")
        yield texts, torch.tensor([labels.index(rows[i][1]) for i in indices])


def losses(model, groups, rows, tokenizer):
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    found = []
    for texts, labels in batches(rows, tokenizer):
        loss = model(**texts, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def images():
    """Noise of 16 x 16 pixels in which another colour is missing in each class."""
    source, found = np.random.default_rng(7), []
    for label, name in enumerate(["cyan", "magenta", "yellow"]):
        folder = HERE / "images" / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(4):
            pixels = source.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            pixels[:, :, label] //= 4
            Image.fromarray(pixels).save(folder / f"{i}.png")
            found.append((pixels, label))
    return found


def image_losses():
    """A vision transformer whose images are moved to -1 to 1, with a new head."""
    all, model = images(), ViTForImageClassification.from_pretrained(
        HERE.parent / "hub/vit", num_labels=3, ignore_mismatched_sizes=True, attn_implementation="eager"
    )
    with torch.no_grad():
        model.classifier.weight.copy_(truncated("head.output.weight", (3, 32), model.config.initializer_range))
        model.classifier.bias.zero_()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    walk, losses = order.Order(SEED, len(all), SIZE), []
    for step in range(STEPS):
        (indices,) = walk.step(step)
        pixels = np.stack([all[i][0] for i in indices]).transpose(0, 3, 1, 2).astype(np.float32)
        inputs = torch.tensor((pixels / 255 - 0.5) / 0.5)
        loss = model(pixel_values=inputs, labels=torch.tensor([all[i][1] for i in indices])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def pair_losses(rows, tokenizer):
    """Finding the other half of a text among those of the batch, by the cosine of mean vectors times 20."""
    halves = []
    for text, _ in rows:
        words = text.split()
        halves.append((" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])))
    (HERE / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in halves), encoding="utf-8")
    model = BertModel.from_pretrained(HERE / "bert", add_pooling_layer=False, attn_implementation="eager").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    walk, losses = order.Order(SEED, len(halves), SIZE), []
    for step in range(STEPS):
        (indices,) = walk.step(step)
        texts = [halves[i][0] for i in indices] + [halves[i][1] for i in indices]
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        hidden, mask = model(**inputs).last_hidden_state, inputs["attention_mask"].unsqueeze(-1)
        vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
        scores = 20 * vectors[:SIZE] @ vectors[SIZE:].T
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(SIZE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def write(expected):
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")


def main():
    if sys.argv[1:] == ["others"]:
        expected = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
        with open(HERE / "data.csv", newline="", encoding="utf-8") as file:
            rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
        pairs = pair_losses(rows, BertTokenizer.from_pretrained(HERE / "bert"))
        return write({**expected, "image": image_losses(), "pairs": pairs})
    rows, folder = data(), body()
    tokenizer = BertTokenizer.from_pretrained(folder)
    texts = [text for text, _ in rows]
    expected = {"texts": texts, "ids": [tokenizer(text)["input_ids"] for text in texts]}

    model = fresh(folder)
    expected["head"] = losses(model, list(model.parameters()), rows, tokenizer)

    model = fresh(folder)
    for name, parameter in model.named_parameters():
        if name.startswith(("bert.embeddings.", "bert.encoder.layer.0.")):
            parameter.requires_grad_(False)
    expected["frozen"] = losses(model, [p for p in model.parameters() if p.requires_grad], rows, tokenizer)

    model = fresh(folder)
    head, low, rest = [], [], []
    for name, parameter in model.named_parameters():
        is_head = name.startswith(("classifier.", "bert.pooler."))
        is_low = name.startswith("bert.encoder.layer.0.")
        (head if is_head else low if is_low else rest).append(parameter)
    groups = [{"params": head, "lr": 1e-2}, {"params": low, "lr": 1e-4}, {"params": rest}]
    expected["rates"] = losses(model, groups, rows, tokenizer)

    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        print("peft is missing, so the losses of LoRA stay as they were")
        before = json.loads((HERE / "expected.json").read_text()) if (HERE / "expected.json").exists() else {}
        expected["lora"] = before.get("lora", [])
    else:
        config = LoraConfig(
            task_type="SEQ_CLS", r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["query", "value"]
        )
        model = get_peft_model(fresh(folder), config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_A" in name:
                    words = name.split(".")
                    layer, part = words[words.index("layer") + 1], words[words.index("lora_A") - 1]
                    path = f"encoder.blocks.{layer}.attention.{part}.lora_a"
                    parameter.copy_(uniform(path, tuple(parameter.shape), 1 / math.sqrt(parameter.shape[1])))
        trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        expected["lora"] = losses(model, [p for _, p in trained], rows, tokenizer)

    write({**expected, "image": image_losses(), "pairs": pair_losses(rows, tokenizer)})


main()
