"""Directories of the library peft for bodies of these tests, with random changes, and the weights that peft merges.

    python3 tests/tune/adapters.py

needs torch, transformers and peft. It writes `adapters/NAME`, which names its body by a path from there, and
`adapters/NAME/expected/merged.safetensors` with the tensors that are changed or that the body does not have.
"""

import json
import os
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertModel,
)

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
    # A layer of its own rank and factor, by the ends of names and by a whole name.
    "bert-patterns": (
        BertModel, "tune/bert",
        dict(
            r=4, lora_alpha=8, target_modules=["query", "value", "intermediate.dense"],
            rank_pattern={"layer.0.attention.self.query": 2, "intermediate.dense": 3},
            alpha_pattern={"^encoder.layer.1.attention.self.value": 5, "dense": 1.5}, use_rslora=True,
        ),
    ),
    # New heads: with a task, and with the class of the model alone.
    "bert-classify": (
        AutoModelForSequenceClassification, "tune/bert",
        dict(r=2, lora_alpha=3, target_modules=["query"], task_type="SEQ_CLS"),
        dict(num_labels=3),
    ),
    "bert-tag": (
        AutoModelForTokenClassification, "hub/bert-mlm",
        dict(r=2, lora_alpha=3, target_modules=["key", "output.dense"], modules_to_save=["classifier"]),
        dict(num_labels=5),
    ),
    "roberta-classify": (
        AutoModelForSequenceClassification, "hub/roberta",
        dict(r=2, lora_alpha=3, target_modules=["value"], task_type="SEQ_CLS"),
        dict(num_labels=4),
    ),
    # A norm and the head that the body has already.
    "llama": (
        AutoModelForCausalLM, "hub/llama",
        dict(r=2, lora_alpha=3, target_modules=["q_proj", "down_proj"], modules_to_save=["norm", "lm_head"]),
    ),
}

torch.manual_seed(5)
for name, (kind, body, config, *more) in CASES.items():
    folder = HERE / "adapters" / name
    shutil.rmtree(folder, ignore_errors=True)
    whole = kind.from_pretrained(HERE.parent / body, **(more[0] if more else {}))
    before = {key: value.clone() for key, value in whole.state_dict().items()}
    model = get_peft_model(whole, LoraConfig(**config))
    for key, value in model.named_parameters():
        if "lora_" in key or "modules_to_save" in key:
            torch.nn.init.normal_(value, std=0.2)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    own = json.loads(path.read_text())
    own["base_model_name_or_path"] = os.path.relpath(HERE.parent / body, folder)
    path.write_text(json.dumps(own, indent=1, sort_keys=True) + "\n")

    def is_expected(key):
        saved = [*(model.peft_config["default"].modules_to_save or [])]
        return not torch.equal(merged[key], before[key]) or any(f"{module}." in key for module in saved)

    merged = model.merge_and_unload().state_dict()
    changed = {key: value.contiguous() for key, value in merged.items() if is_expected(key)}
    assert changed
    (folder / "expected").mkdir()
    save_file(changed, folder / "expected" / "merged.safetensors")
