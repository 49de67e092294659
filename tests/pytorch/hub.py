"""Exports every spec with code of its own, and uses the directory as Hugging Face's library does.

    python tests/pytorch/hub.py TRAFOC FOLDER [NAME ...]

TRAFOC is the program, FOLDER what the test `interp::pytorch` wrote with `TRAFOC_PYTORCH=FOLDER`; `.ci/run
pytorch` does both. Names, in which `*` is any text, restrict it to some of the specs. Needs torch,
transformers, accelerate and safetensors.

For each spec: the directory loads with nothing missing and nothing left over, computes the outputs of the
interpreter, also on the meta device first; greedy decoding gives the tokens that whole passes give, with and
without a cache, whichever side the padding is on, and beams do not depend on the rest of the batch; a step of
`Trainer` changes the weights, and recomputed activations give the same gradients; what `save_pretrained`
writes has the same bits, and trafoc computes the same bits of it.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

# The code of each directory is copied to a folder of this run.
MODULES = tempfile.TemporaryDirectory()
os.environ["HF_MODULES_CACHE"] = MODULES.name
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import load_file

# The exit code of what trafoc cannot do and says so.
REFUSED = 3
# Relative to the largest number of an output.
OUTPUTS = 1e-5
NAMES = {
    "tokens": "input_ids",
    "source": "input_ids",
    "token_types": "token_type_ids",
    "image": "pixel_values",
    "source_mask": "attention_mask",
    "target": "decoder_input_ids",
    "embedding": "pooler_output",
}


def under(tensors: dict, prefix: str) -> dict:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def here(inputs: dict) -> dict:
    """Inputs by the names of Hugging Face."""
    mask = "decoder_attention_mask" if "target" in inputs else "attention_mask"
    return {mask if name == "mask" else NAMES.get(name, name): value for name, value in inputs.items()}


def distance(found: torch.Tensor, wanted: torch.Tensor, kept: torch.Tensor | None = None) -> float:
    """The largest difference where something is kept, relative to the largest number."""
    if found.shape != wanted.shape:
        return float("inf")
    if kept is not None and wanted.dim() > 1 and wanted.shape[:2] == kept.shape:
        found, wanted = found[kept], wanted[kept]
    if not found.isfinite().equal(wanted.isfinite()):
        return float("inf")
    found, wanted = found[wanted.isfinite()], wanted[wanted.isfinite()]
    return (
        0.0
        if wanted.numel() == 0
        else ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)).item()
    )


def classes(folder: Path) -> tuple[type, str]:
    """The class that loads the model with its head, and its name."""
    names = [
        name for name in json.loads((folder / "config.json").read_text())["auto_map"] if name != "AutoConfig"
    ]
    name = next((name for name in names if name != "AutoModel"), "AutoModel")
    return getattr(transformers, name), name


def load(folder: Path, kind: type, **settings):
    model, info = kind.from_pretrained(folder, trust_remote_code=True, output_loading_info=True, **settings)
    odd = [key for part in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info[part]]
    return model.eval(), odd


def outputs(model, case: dict, stored: dict, name: str) -> list[str]:
    """The outputs of every run that are compared with the interpreter's."""
    faults = []
    generates = hasattr(model, "step")
    for run in range(case["runs"]):
        # What generates takes only the tokens that are not masked: gaps move the others.
        if generates and run == 2:
            continue
        inputs = under(stored, f"{run}.inputs.")
        mask = inputs.get("mask") if "tokens" in inputs else None
        with torch.no_grad():
            found = model(**here(inputs))
        for output, wanted in under(stored, f"{run}.outputs.").items():
            key = NAMES.get(output, output)
            kept = mask.bool() if mask is not None and generates else None
            off = distance(found[key], wanted, kept)
            if not off <= OUTPUTS:
                faults.append(f"{name}, run {run}: {output} is off by {off:.1e}")
    return faults


def greedy(model, inputs: dict, tokens: torch.Tensor, count: int) -> torch.Tensor:
    """The tokens after these by passes over all of them: `[B, T]` → `[B, T+count]`."""
    name = "target" if "target" in model.inputs else "tokens"
    for _ in range(count):
        with torch.no_grad():
            logits = model.model(**inputs, **{name: tokens})
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return tokens


def padded(rows: list[torch.Tensor], left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences as a batch, and its mask: `[B, T]` each."""
    longest = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        place = slice(longest - len(row), longest) if left else slice(0, len(row))
        ids[i, place], mask[i, place] = row, 1
    return ids, mask


def generation(model, stored: dict) -> list[str]:
    """Greedy decoding against whole passes, and beams against each sequence on its own."""
    faults = []
    inputs = under(stored, "0.inputs.")
    has_source = "target" in inputs
    start = inputs["target" if has_source else "tokens"][:3]
    lengths = (2, 4, 1)
    rows = [row[:length].clone() for row, length in zip(start, lengths, strict=True)]
    for row in rows:
        # Otherwise `generate` would put the start token before a target.
        row[0] = 0 if has_source else row[0]
    others = {
        name: value for name, value in inputs.items() if name not in ("target", "tokens", "token_types")
    }
    new = min(3, model.config.max_position_embeddings - max(lengths))
    if new < 1:
        return []
    settings = {"max_new_tokens": new, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    if has_source:
        settings["decoder_start_token_id"] = 0
    wanted = []
    for i, row in enumerate(rows):
        own = {name: value[i : i + 1] for name, value in others.items()}
        if "token_types" in inputs:
            own["token_types"] = torch.zeros(1, 1, dtype=torch.long)
            wanted.append(None)
            continue
        wanted.append(greedy(model, own, row[None], new)[0, len(row) :])
    if None in wanted:
        return []

    def generate(ids: torch.Tensor, mask: torch.Tensor, given: dict, **more) -> torch.Tensor:
        keys = (
            ("decoder_input_ids", "decoder_attention_mask") if has_source else ("input_ids", "attention_mask")
        )
        prompt = dict(zip(keys, (ids, mask), strict=True))
        return model.generate(**here(given), **prompt, **settings, **more)[:, ids.shape[1] :]

    for left in (True, False):
        for use_cache in (True, False):
            found = generate(*padded(rows, left), others, use_cache=use_cache)
            for own, tokens in zip(found, wanted, strict=True):
                if not own.equal(tokens):
                    side = "left" if left else "right"
                    faults.append(
                        f"greedy, padding {side}, cache {use_cache}: {own.tolist()}, not {tokens.tolist()}"
                    )
    together = generate(*padded(rows, True), others, num_beams=2)
    for i, row in enumerate(rows):
        own = {name: value[i : i + 1] for name, value in others.items()}
        alone = generate(row[None], torch.ones_like(row[None]), own, num_beams=2)
        if not together[i].equal(alone[0]):
            faults.append(f"beams of sequence {i} depend on the batch")
    return faults


def labels(model, inputs: dict, stored: dict) -> dict | None:
    """Labels for a batch of inputs."""
    wanted = under(stored, "0.outputs.")
    name = type(model).__name__
    if "start_logits" in wanted:
        zeros = torch.zeros(wanted["start_logits"].shape[0], dtype=torch.long)
        return {"start_positions": zeros, "end_positions": zeros + 1}
    if "logits" not in wanted:
        return None
    logits = wanted["logits"]
    if name.endswith(("SequenceClassification", "ImageClassification")):
        if model.config.problem_type == "multi_label_classification":
            return {"labels": torch.ones_like(logits)}
        return {"labels": torch.zeros(logits.shape[0], dtype=torch.long)}
    # A single class is always right.
    return {"labels": torch.full(logits.shape[:2], min(1, logits.shape[2] - 1))}


def training(model, stored: dict, folder: Path) -> list[str]:
    """Gradients with and without recomputing, and a step of `Trainer`."""
    inputs = here(under(stored, "0.inputs."))
    given = labels(model, inputs, stored)
    if given is None:
        return []
    faults = []
    found = []
    for recompute in (False, True):
        if recompute:
            model.activation_checkpointing_enable()
        model.zero_grad()
        torch.manual_seed(0)
        model.train()(**inputs, **given).loss.backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    model.activation_checkpointing_disable()
    if found[0].keys() != found[1].keys() or any(not torch.equal(found[0][n], found[1][n]) for n in found[0]):
        faults.append("recomputed activations give other gradients")
    model.zero_grad()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    size = next(iter(inputs.values())).shape[0]
    rows = [{name: value[i] for name, value in {**inputs, **given}.items()} for i in range(size)]
    settings = transformers.TrainingArguments(
        folder,
        max_steps=1,
        per_device_train_batch_size=size,
        learning_rate=1e-2,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows, eval_dataset=rows)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        faults.append("a step of Trainer gives no numbers")
    # With a single class, which is always right, there is nothing to learn.
    classes = under(stored, "0.outputs.").get("logits", torch.zeros(2)).shape[-1]
    learns = classes > 1 or model.config.problem_type == "multi_label_classification"
    if learns and all(torch.equal(before[name], p) for name, p in model.named_parameters()):
        faults.append("a step of Trainer changes nothing")
    if "eval_loss" not in trainer.evaluate():
        faults.append("Trainer finds no loss")
    return faults


def run_of(program: str, folder: Path, inputs: dict, out: Path) -> dict:
    """What trafoc computes of a directory."""
    file = out / "inputs.json"
    file.write_text(json.dumps({name: value.tolist() for name, value in inputs.items()}))
    result = out / "outputs.safetensors"
    command = [program, "run", folder, "--inputs", file, "--outputs", result, "--force", "-q"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return load_file(result)


def saved(program: str, model, folder: Path, weights: dict, stored: dict, out: Path) -> list[str]:
    """What `save_pretrained` writes, and what trafoc makes of it."""
    again = out / "again"
    model.save_pretrained(again)
    faults = []
    found = {
        name.removeprefix("model."): value for name, value in load_file(again / "model.safetensors").items()
    }
    if found.keys() != weights.keys() or any(not found[name].equal(weights[name]) for name in weights):
        faults.append("save_pretrained writes other weights")
    _, odd = load(again, classes(again)[0])
    if odd:
        faults.append(f"what was saved does not load: {odd[:3]}")
    inputs = under(stored, "0.inputs.")
    first, second = (run_of(program, part, inputs, out) for part in (folder, again))
    if first.keys() != second.keys() or any(not first[name].equal(second[name]) for name in first):
        faults.append("trafoc computes other numbers of what was saved")
    return faults


def check(program: str, folder: Path) -> list[str] | str:
    """Everything that is wrong with one spec, or why trafoc refuses it."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    case = json.loads((folder / "case.json").read_text())
    weights, stored = load_file(folder / "weights.safetensors"), load_file(folder / "runs.safetensors")
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        # Transformers takes directories of one name for one module.
        model_folder = out / folder.name.replace("-", "_")
        command = [program, "export", case["spec"], "--code", "--to", model_folder, "-q"]
        command += ["--weights", folder / "weights.safetensors"]
        command += [word for setting in case["settings"] for word in ("--set", setting)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode == REFUSED:
            return done.stderr.strip()
        if done.returncode != 0:
            return [f"trafoc export ends with {done.returncode}: {done.stderr.strip()[:300]}"]
        try:
            kind, name = classes(model_folder)
            model, odd = load(model_folder, kind)
            faults = [f"tensors differ: {odd[:4]}"] if odd else []
            faults += outputs(model, case, stored, name)
            body, _ = load(model_folder, transformers.AutoModel)
            with torch.no_grad():
                hidden = body(**here(under(stored, "0.inputs."))).last_hidden_state
            if hidden.dim() != 3 or not hidden.isfinite().all():
                faults.append("AutoModel gives no vectors")
            config = transformers.AutoConfig.from_pretrained(model_folder, trust_remote_code=True)
            with torch.device("meta"):
                kind.from_config(config, trust_remote_code=True)
            if hasattr(model, "step"):
                faults += generation(model, stored)
            faults += saved(program, model, model_folder, weights, stored, out)
            faults += training(model, stored, out / "trainer")
        except subprocess.CalledProcessError as error:
            return [f"trafoc: {error.stderr.strip()[:300]}"]
        except Exception as error:  # noqa: BLE001 - whatever the code raises is a fault of it
            import traceback

            place = traceback.extract_tb(error.__traceback__)
            own = [
                part for part in place if "transformers_modules" in part.filename or part.filename == __file__
            ]
            return [
                f"{type(error).__name__}: {str(error)[:300]} ({Path(own[-1].filename).name}:{own[-1].lineno})"
            ]
        return faults


def main() -> int:
    program, out = sys.argv[1], Path(sys.argv[2])
    cases = sorted(path.parent for path in out.glob("cases/*/case.json"))
    if sys.argv[3:]:
        cases = [case for case in cases if any(fnmatchcase(case.name, name) for name in sys.argv[3:])]
    cases = [case for case in cases if json.loads((case / "case.json").read_text())["runs"] > 0]
    if not cases:
        raise SystemExit(f"{out} has no cases")
    wrong, refused = 0, 0
    with ProcessPoolExecutor() as pool:
        for case, found in zip(cases, pool.map(check, [program] * len(cases), cases), strict=True):
            if isinstance(found, str):
                refused += 1
                print(f"{case.name}: refused: {found}", flush=True)
            else:
                wrong += bool(found)
                said = "; ".join(found[:4]) or "loads, computes, generates, trains and comes back"
                print(f"{case.name}: {said}", flush=True)
    print(f"{len(cases)} specs with code of their own, {refused} refused, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
