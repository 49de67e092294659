"""Models with an encoder and a decoder that generates."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from .decoding import Again, Decoded, Decoder
from .pretrained import IGNORED, token_loss


class Encoder(nn.Module):
    """The encoder of a model, as `generate` calls it."""

    def __init__(self, owner: Seq2SeqLM) -> None:
        super().__init__()
        # Not a child module, which would list the model's weights a second time.
        self.__dict__["owner"] = owner

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        language: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """`input_ids [B, S]` → `last_hidden_state [B, S, D]`"""
        owner: Seq2SeqLM = self.__dict__["owner"]
        owner.refuse(
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )
        inputs = owner.taken(
            needed={owner.source},
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            pixel_values=pixel_values,
            language=language,
        )
        return owner.answer(owner.encoded(inputs), return_dict)


class Seq2SeqLM(Decoder):
    """A model that writes a target for a source."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.source = "image" if "image" in self.inputs else "source"
        self.main_input_name = self.name_of(self.source)

    @property
    def writes(self) -> Any:
        """The function of `model.py` that gives the logits of a target."""
        return getattr(self.model, "decode", self.model.forward)

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """The encoder, which `generate` calls once."""
        return Encoder(self)

    def encoded(self, inputs: dict[str, Any]) -> BaseModelOutput:
        """What the decoder reads of the source; further values follow the first.

        A model that does not encode a source on its own reads it again for every token.
        """
        if not hasattr(self.model, "encode"):
            return BaseModelOutput(last_hidden_state=inputs[self.source])
        names = inspect.signature(self.model.encode).parameters
        memory = self.model.encode(
            **{name: inputs[name] for name in names if name in inputs}
        )
        first, *others = memory if isinstance(memory, tuple) else (memory,)
        output = BaseModelOutput(last_hidden_state=first)
        for index, other in enumerate(others):
            output[f"memory_{index + 1}"] = other
        return output

    def read(self, encoded: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs of the decoder by their names in `model.py`, without the target."""
        memory = encoded.values() if isinstance(encoded, dict) else encoded
        names = list(inspect.signature(self.writes).parameters)
        known = [name for name in names if name not in self.inputs and name != "cache"]
        if not known:
            known = [self.source]
        read = {name: inputs[name] for name in names if name in inputs}
        return {**read, **dict(zip(known, memory))}

    def shifted(self, labels: Tensor) -> Tensor:
        """The target that predicts these labels: each after the one before it."""
        start = getattr(self.config, "decoder_start_token_id", None)
        if start is None:
            start = self.generation_config.decoder_start_token_id
        if start is None:
            raise ValueError(
                "`decoder_start_token_id` is missing in config.json, or give `decoder_input_ids`"
            )
        padding = self.config.pad_token_id
        padding = start if padding is None else padding
        shifted = torch.cat(
            [torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1
        )
        return shifted.masked_fill(shifted == IGNORED, padding)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """The target for these labels, under the name by which data collators call it."""
        return self.shifted(labels)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        language: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Decoded | None = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """`input_ids [B, S]`, `decoder_input_ids [B, T]` → `logits [B, T, V]`

        Without `decoder_input_ids`, the target is the labels, each after the one before it. Labels of -100
        do not count.
        """
        self.refuse(
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )
        if decoder_input_ids is None and labels is not None:
            decoder_input_ids = self.shifted(labels)
        inputs = self.taken(
            needed=None if encoder_outputs is None else {"target"},
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            pixel_values=pixel_values,
            language=language,
            decoder_input_ids=decoder_input_ids,
        )
        target: Tensor = inputs.pop("target")
        encoded = self.encoded(inputs) if encoder_outputs is None else encoder_outputs
        given = self.read(encoded, inputs)
        past: Any = past_key_values
        if past is None and use_cache:
            past = self.new_past(target)
        logits = self.logits(target, decoder_attention_mask, given, past)
        loss = None
        if labels is not None:
            loss = token_loss(logits, labels, num_items_in_batch)
        output = Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=past,
            encoder_last_hidden_state=encoded[0],
        )
        return self.answer(output, return_dict)

    def step(self, tokens: Tensor, inputs: dict[str, Any], cache: Any) -> Tensor:
        """The logits of targets that have no padding, `[B, T]` → `[B, T, V]`."""
        if isinstance(cache, Again):
            target = cache.extend({"target": tokens})["target"]
            return self.writes(target=target, **inputs)[:, -tokens.shape[1] :]
        if cache is None:
            return self.writes(target=tokens, **inputs)
        return self.writes(target=tokens, **inputs, cache=cache)
