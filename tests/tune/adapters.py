"""Directories of the library peft for bodies of these tests, with random changes, and the weights that peft merges.

    python3 tests/tune/adapters.py

needs torch, transformers and peft. It writes `adapters/NAME`, which names its body by a path from there, and
`adapters/NAME/expected/merged.safetensors` with the tensors that are changed.
"""

import json
import os
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, BertModel

HERE = Path(__file__).resolve().parent
CASES = {
    "bert": (BertModel, "tune/bert", dict(r=4, lora_alpha=8, target_modules=["query", "value"])),
    "bert-stabilised": (
        BertModel, "tune/bert",
        dict(r=3, lora_alpha=5, use_rslora=True, target_modules=["intermediate.dense"], layers_to_transform=[1]),
    ),
    "gpt2": (
        AutoModelForCausalLM, "hub/gpt2",
        dict(r=2, lora_alpha=7, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True),
    ),
}

torch.manual_seed(5)
for name, (kind, body, config) in CASES.items():
    folder = HERE / "adapters" / name
    shutil.rmtree(folder, ignore_errors=True)
    whole = kind.from_pretrained(HERE.parent / body)
    before = {key: value.clone() for key, value in whole.state_dict().items()}
    model = get_peft_model(whole, LoraConfig(**config))
    for key, value in model.named_parameters():
        if "lora_" in key:
            torch.nn.init.normal_(value, std=0.2)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    own = json.loads(path.read_text())
    own["base_model_name_or_path"] = os.path.relpath(HERE.parent / body, folder)
    path.write_text(json.dumps(own, indent=1, sort_keys=True) + "\n")
    merged = model.merge_and_unload().state_dict()
    changed = {key: value.contiguous() for key, value in merged.items() if not torch.equal(value, before[key])}
    assert changed
    (folder / "expected").mkdir()
    save_file(changed, folder / "expected" / "merged.safetensors")
