"""Exports trained runs with code of their own, and uses the directories as their users would.

    python tests/pytorch/runs.py TRAFOC FOLDER [NAME ...]

TRAFOC is the program, FOLDER is written to; NAME are some of the cases of `project.py`, which trains the same specs.
Needs torch, transformers, tokenizers, safetensors, accelerate and pillow.

For each task a run of a few steps is exported: the Auto classes load the model, its tokenizer and what prepares its
images; what they generate or predict for a text or an image is what `trafoc generate` and `trafoc predict` say of the
run, with the names of its classes; and the same of the directory after the library has saved it, for trafoc too.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

# The code of each directory is copied to a folder of this run.
MODULES = tempfile.TemporaryDirectory()
os.environ["HF_MODULES_CACHE"] = MODULES.name
os.environ["HF_HUB_OFFLINE"] = "1"

import project
import torch
import transformers

# Differences of probabilities, which `trafoc` rounds.
BOUND = 1e-4
TEXTS = {
    "gbt-mulm": ["an", "kara", "s"],
    "text": ["ankara", "is"],
    "d2l-nmt": ["one .", "two hundred", "a word that nobody knows"],
    "noam": ["one", "two hundred"],
    "mlm": ["ank[MASK]ra", "[MASK]stanbul"],
    "tag": ["ada lives in paris .", "Who is Nobody ?"],
    "classify": ["shares rose by two cents", "rain"],
    "sigmoid": ["what a good film", "not at all"],
    "span": ["Ada was born in London. She lived in Paris."],
    "vit": [],
}
QUESTION = "Where was Ada born?"


def asked(*words: object) -> dict:
    return json.loads(project.run(project.TRAFOC, *words, "--format", "json", "-q"))["data"]


def auto(folder: Path) -> type:
    """The class that loads the model with its head."""
    names = json.loads((folder / "config.json").read_text())["auto_map"]
    return getattr(transformers, next(name for name in names if name not in ("AutoConfig", "AutoModel")))


def written(folder: Path, text: str) -> str:
    """What the model writes after a text, or as its translation."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = auto(folder).from_pretrained(folder, trust_remote_code=True).eval()
    inputs = tokenizer(text, return_tensors="pt")
    ids = model.generate(**inputs, do_sample=False)[0]
    return tokenizer.decode(ids, skip_special_tokens=True)


def classes(model, logits: torch.Tensor) -> list[tuple[str, float]]:
    """The names of all classes with their probabilities, the most probable first."""
    several = model.config.problem_type == "multi_label_classification"
    shares = (logits.sigmoid() if several else logits.softmax(-1)).tolist()
    named = [(model.config.id2label[i], share) for i, share in enumerate(shares)]
    return sorted(named, key=lambda pair: -pair[1])


def predicted(folder: Path, name: str, text: str) -> list[tuple[str, float]]:
    """Names and probabilities in the order in which `trafoc predict` has them."""
    model = auto(folder).from_pretrained(folder, trust_remote_code=True).eval()
    if name == "vit":
        import numpy
        from PIL import Image

        processor = transformers.AutoImageProcessor.from_pretrained(folder)
        pixels = numpy.asarray(Image.open(text), dtype=numpy.uint8)
        inputs = processor(pixels[:, :, None], input_data_format="channels_last", return_tensors="pt")
        return classes(model, model(**inputs).logits[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    with torch.no_grad():
        if name == "span":
            inputs = tokenizer(QUESTION, text, return_tensors="pt", return_offsets_mapping=True)
            offsets = inputs.pop("offset_mapping")[0]
            inside = torch.tensor([i == 1 for i in inputs.sequence_ids(0)])
            found = model(**inputs)
            starts, ends = (logits[0].softmax(-1) * inside for logits in (found.start_logits, found.end_logits))
            both = (starts[:, None] * ends).triu()
            start, end = divmod(int(both.argmax()), both.shape[1])
            return [(text[offsets[start, 0] : offsets[end, 1]], float(both.max()))]
        inputs = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = inputs.pop("special_tokens_mask")[0]
        logits = model(**inputs).logits[0]
    if name == "mlm":
        [place] = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
        share, best = logits[place].softmax(-1).max(-1)
        return [(tokenizer.decode(best), float(share))]
    if name == "tag":
        shares, best = logits.softmax(-1).max(-1)
        return [(model.config.id2label[int(i)], float(p)) for i, p, s in zip(best, shares, special) if not s]
    return classes(model, logits)


def wanted(folder: Path, name: str, text: str) -> list[tuple[str, float]]:
    """The same by trafoc."""
    if name == "vit":
        given = ["--image", text]
    else:
        given = ["--text", text, *(["--question", QUESTION] if name == "span" else [])]
    [one] = asked("predict", folder, *given)["predictions"]
    if "answer" in one:
        return [(one["answer"], one["probability"])]
    if "hidden" in one:
        return [(one["hidden"][0]["token"], one["hidden"][0]["probability"])]
    found = one.get("classes", one.get("tags"))
    return [(part["class"], part["probability"]) for part in found]


def compare(out: Path, run: Path, name: str, text: str, generates: bool) -> None:
    """The library's words for a text are those of trafoc."""
    if generates:
        [own] = asked("generate", run, "--prompt", text, "--temperature", 0)["texts"]
        found = written(out, text)
        # A text is continued; a translation stands on its own.
        same = found in (own["text"], text + own["text"])
        assert same, f"{name}: {text!r} gives {found!r}, and by trafoc {own['text']!r}"
        return
    ours, theirs = wanted(run, name, text), predicted(out, name, text)
    if len(theirs) == 1:
        # A single sigmoid is the probability of one class, and trafoc names the other class too.
        ours = [(word, share) for word, share in ours if word == theirs[0][0]]
    assert [word for word, _ in ours] == [word for word, _ in theirs], f"{name}: {text!r}: {theirs}, not {ours}"
    worst = max(abs(a - b) for (_, a), (_, b) in zip(ours, theirs, strict=True))
    assert worst < BOUND, f"{name}: {text!r}: {theirs}, not {ours}"


def check(name: str) -> None:
    spec, settings, recipe, changes = {**project.CASES, **project.OTHERS}[name]
    if name in project.OTHERS:
        spec, settings, recipe, changes = project.other(name)
    folder = project.OUT / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    words = [word for s in settings for word in ([s] if s.startswith("--") else ["--set", s])]
    words += [word for change in changes for word in ("--with", change.replace("EPOCHS", "2"))]
    run, out, again = folder / "run", folder / "exported", folder / "again"
    project.run(project.TRAFOC, "train", spec, "--recipe", recipe, *words, "--out", run)
    project.run(project.TRAFOC, "export", run, "--to", out, "--code")
    texts = TEXTS[name] or [str(project.picture())]
    model = auto(out).from_pretrained(out, trust_remote_code=True)
    generates = model.can_generate()
    for text in texts:
        compare(out, run, name, text, generates)
    model.save_pretrained(again)
    if name == "vit":
        transformers.AutoImageProcessor.from_pretrained(out).save_pretrained(again)
    else:
        transformers.AutoTokenizer.from_pretrained(out, trust_remote_code=True).save_pretrained(again)
    for folder in (run, again):
        # As the library reads what it saved, and as trafoc does.
        compare(again, folder, name, texts[0], generates)
    print(f"  {name}: {type(model).__name__}, {len(texts)} inputs", flush=True)


def main() -> int:
    project.TRAFOC, project.OUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    failed = []
    for name in sys.argv[3:] or TEXTS:
        try:
            check(name)
        except Exception as error:  # noqa: BLE001 - whatever the code raises is a fault of it
            print(f"  FAILED {name}: {type(error).__name__}: {error}", flush=True)
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all runs are the same in the library")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
