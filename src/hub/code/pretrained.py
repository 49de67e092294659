"""What all models of this kind share: how `model.py` is used by the library of Hugging Face."""

from __future__ import annotations

import inspect
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from .model import Model

# The library's names for the inputs of `model.py`.
NAMES = {
    "tokens": "input_ids",
    "source": "input_ids",
    "token_types": "token_type_ids",
    "image": "pixel_values",
    "language": "language",
    "source_mask": "attention_mask",
    "target": "decoder_input_ids",
}
# The inputs that `forward` takes, unless the model generates.
INPUTS = (
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "pixel_values",
    "language",
    "decoder_input_ids",
    "decoder_attention_mask",
)
# Arguments that other models of the library take, and this one refuses.
UNSUPPORTED = ("inputs_embeds", "output_attentions", "output_hidden_states")
# Labels that do not count.
IGNORED = -100


def recomputed(block: nn.Module, *inputs: Any) -> Any:
    """The forward pass of a block whose activations are computed again for the backward pass."""
    forward = partial(type(block).forward, block)
    if not block.training or not torch.is_grad_enabled():
        return forward(*inputs)
    return block.recompute(forward, *inputs)  # type: ignore[operator]


class Pretrained(PreTrainedModel):
    """A model of `model.py` with what `from_pretrained`, `generate` and `Trainer` need.

    Files name the weights as `model.py` does, with or without `model.` before it.
    """

    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    # `model.py` calls `F.scaled_dot_product_attention` itself; no other attention can be chosen.
    _supports_sdpa = True
    _supports_flash_attn = False
    _supports_flex_attn = False
    _supports_attention_backend = False
    # Losses are divided by the `num_items_in_batch` that `Trainer` counts.
    accepts_loss_kwargs = True

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = Model(config.sizes())
        blocks = [block for stack in self.model.stacks() for block in stack.blocks]
        self._no_split_modules = sorted({type(block).__name__ for block in blocks})
        parameters = inspect.signature(self.model.forward).parameters
        # The inputs of `model.py` by name, and whether each must be given.
        self.inputs = {
            name: parameter.default is parameter.empty
            for name, parameter in parameters.items()
            if name != "cache"
        }
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()

    def _set_gradient_checkpointing(
        self,
        enable: bool = True,
        gradient_checkpointing_func: Any = checkpoint,
        every_n_layers: int = 1,
    ) -> None:
        blocks = [block for stack in self.model.stacks() for block in stack.blocks]
        for index, block in enumerate(blocks):
            block.__dict__.pop("forward", None)
            if enable and index % every_n_layers == 0:
                block.__dict__["recompute"] = gradient_checkpointing_func
                block.__dict__["forward"] = MethodType(recomputed, block)
        self.gradient_checkpointing = enable

    def get_submodule(self, target: str) -> nn.Module:
        """A module by its path, also one whose name is an attribute of every module."""
        module: nn.Module = self
        for name in filter(None, target.split(".")):
            child = module._modules.get(name)
            if child is None:
                raise AttributeError(f"{target}: there is no module `{name}`")
            module = child
        return module

    def name_of(self, name: str) -> str:
        """What an input of `model.py` is called here."""
        if name == "mask":
            has_target = "target" in self.inputs
            return "decoder_attention_mask" if has_target else "attention_mask"
        return NAMES.get(name, name)

    def taken(self, needed: set[str] | None = None, **given: Any) -> dict[str, Any]:
        """The inputs of `model.py`, from those that are given by their names here.

        All inputs that `model.py` needs must be there, or only those that are `needed`.
        """
        taken = {}
        for name, is_needed in self.inputs.items():
            value = given.pop(self.name_of(name), None)
            if value is None and is_needed and (needed is None or name in needed):
                raise ValueError(f"this model needs `{self.name_of(name)}`")
            if value is not None:
                taken[name] = value
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"this model does not take `{name}`")
        return taken

    def inputs_among(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The inputs of `model.py` among the arguments of `forward`.

        `Trainer` reads the names in the signature of `forward`, so every `forward` lists them.
        """
        self.refuse(**{name: arguments[name] for name in UNSUPPORTED})
        return self.taken(**{name: arguments[name] for name in INPUTS})

    def refuse(self, **given: Any) -> None:
        """Refuses what a caller may ask of other models."""
        for name, value in given.items():
            if name.startswith("output_"):
                value = value or getattr(self.config, name, None)
            if value is not None and value is not False:
                raise ValueError(f"this model does not support `{name}`")

    def hidden(self, **inputs: Any) -> tuple[Any, Tensor]:
        """What the model computes, and what its last stack gives to its head, `[B, T, D]`."""
        kept: list[Tensor] = []

        def keep(module: nn.Module, given: Any, result: Any) -> None:
            kept.append(result)

        handle = self.model.stacks()[-1].register_forward_hook(keep)
        try:
            outputs = self.model(**inputs)
        finally:
            handle.remove()
        return outputs, kept[0]

    def answer(self, output: Any, return_dict: bool | None) -> Any:
        """The output as the caller wants it."""
        wanted = self.config.return_dict if return_dict is None else return_dict
        return output if wanted else output.to_tuple()

    def embedding(self) -> nn.Module:
        """The module that begins with the table of token vectors."""
        for name in ("embed", "source_embed"):
            if hasattr(self.model, name):
                return getattr(self.model, name)
        raise ValueError("this model has no table of token vectors")

    def get_input_embeddings(self) -> nn.Module:
        """The table of token vectors."""
        return self.embedding().tokens  # type: ignore[return-value]

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the table of token vectors."""
        self.embedding().tokens = value

    def get_output_embeddings(self) -> nn.Module | None:
        """The projection to the vocabulary, if it is not the table of token vectors."""
        return getattr(getattr(self.model, "head", None), "output", None)

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replaces the projection to the vocabulary."""
        self.model.head.output = new_embeddings  # type: ignore[union-attr]


class Body(Pretrained):
    """The model without its head: the vector of every position."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        language: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """`input_ids [B, T]` → `last_hidden_state [B, T, D]`"""
        inputs = self.inputs_among(locals())
        outputs, hidden = self.hidden(**inputs)
        return self.answer(self.output(outputs, hidden), return_dict)

    def output(self, outputs: Any, hidden: Tensor) -> Any:
        """What the caller gets of `outputs`, the model's own, and of `hidden [B, T, D]`."""
        return BaseModelOutput(last_hidden_state=hidden)


def token_loss(
    logits: Tensor, labels: Tensor, count: Tensor | int | None = None
) -> Tensor:
    """The mean loss of the labels that count, or their sum divided by `count`.

    `logits [B, T, C]`, `labels [B, T]`
    """
    reduction = "mean" if count is None else "sum"
    loss = F.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten().to(logits.device),
        ignore_index=IGNORED,
        reduction=reduction,
    )
    return loss if count is None else loss / count


def class_loss(
    logits: Tensor,
    labels: Tensor,
    is_multi_label: bool,
    count: Tensor | int | None = None,
) -> Tensor:
    """The mean loss of classes, or its sum divided by `count`.

    `logits [B, C]`, and `labels [B]`, or `[B, C]` of 0 and 1.
    """
    labels = labels.to(logits.device)
    if not is_multi_label:
        return token_loss(logits[:, None], labels.flatten()[:, None], count)
    labels = labels.reshape(logits.shape).float()
    reduction = "mean" if count is None else "sum"
    loss = F.binary_cross_entropy_with_logits(
        logits.float(), labels, reduction=reduction
    )
    return loss if count is None else loss / count
