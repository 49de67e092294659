"""Exports every directory of `tests/hub` with trafoc and loads and runs the result with Hugging Face's own code.

    python tests/hub/reload.py TRAFOC [directory ...]

TRAFOC is the program. Needs torch, transformers and safetensors. A model passes if its class loads the export
with nothing missing and nothing left over, and computes what `expected.safetensors` holds.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

NAMES = {"tokens": "input_ids", "mask": "attention_mask", "token_types": "token_type_ids", "source": "input_ids",
         "source_mask": "attention_mask", "target": "decoder_input_ids", "image": "pixel_values"}
# Tables that the class computes itself, and what no forward pass reads: a mask token, and ESM's head for contacts.
MADE = ("embed_positions", "mask_token", "contact_head", "rotary_emb", "position_ids")


def reload(program, folder, out):
    subprocess.run([program, "export", folder, "--to", out, "-q"], check=True, capture_output=True, text=True)
    config = json.loads((out / "config.json").read_text())
    kind = getattr(transformers, config["architectures"][0])
    alibi = "sdpa" if config.get("alibi") is True else "eager"
    model, info = kind.from_pretrained(out, output_loading_info=True, attn_implementation=alibi)
    model = model.eval().float()
    odd = [key for part in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info[part]]
    odd = [key for key in odd if not any(made in str(key) for made in MADE)]
    if odd:
        return f"tensors differ: {odd[:4]}"
    given = {name: torch.tensor(value) for name, value in json.loads((folder / "inputs.json").read_text()).items()}
    with torch.no_grad():
        found = model(**{NAMES[name]: value for name, value in given.items()})
    worst = 0.0
    for name, wanted in load_file(folder / "expected.safetensors").items():
        if name not in found:
            continue
        off = (found[name] - wanted).abs()
        mask = given.get("mask")
        if mask is not None and wanted.dim() >= 2 and wanted.shape[:2] == mask.shape:
            off = off[mask.bool()]
        worst = max(worst, (off.max() / wanted[wanted.isfinite()].abs().max()).item())
    return None if worst <= 1e-4 else f"outputs are off by {worst:.2e}"


def main():
    transformers.logging.set_verbosity_error()
    here = Path(__file__).parent
    folders = [here / name for name in sys.argv[2:]] or sorted(p for p in here.iterdir() if p.is_dir())
    failed = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as out:
            try:
                why = reload(sys.argv[1], folder, Path(out) / "export")
            except subprocess.CalledProcessError as error:
                why = error.stderr.strip()[:300]
            except Exception as error:
                why = repr(error)[:300]
        failed += why is not None
        print(f"{folder.name}: {why or 'the same'}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
