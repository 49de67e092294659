"""Decoding with the caches of `model.py`."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast

from .pretrained import Pretrained, token_loss


def ends_in_padding(mask: Tensor | None) -> bool:
    """Whether padding, if there is any, follows the tokens of every sequence: `mask [B, T]`."""
    return mask is None or bool((mask[:, 1:] <= mask[:, :-1]).all())


class Again:
    """The inputs so far of a model that computes all positions again for every token."""

    def __init__(self) -> None:
        self.past: dict[str, Tensor] = {}

    def extend(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The inputs after those before them, each `[B, P+T]`, and the languages, `[B]`."""
        for name, new in inputs.items():
            old = None if name == "language" else self.past.get(name)
            self.past[name] = new if old is None else torch.cat([old, new], dim=1)
        return dict(self.past)

    def select(self, rows: Tensor) -> None:
        """Keeps these sequences of the batch, in this order."""
        self.past = {
            name: past.index_select(0, rows) for name, past in self.past.items()
        }


class Decoded:
    """What has been decoded of a batch, as `past_key_values`.

    Positions follow the mask: a sequence is its tokens that are not masked, wherever the padding
    is. Sequences with equally many are decoded together, each such group with a cache of its own.
    """

    is_compileable = False

    def __init__(self, new_cache: Any, batch: int, device: torch.device) -> None:
        self.columns = 0
        self.groups: list[tuple[Tensor, Any]] = [
            (torch.arange(batch, device=device), new_cache())
        ]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many columns of tokens are in it, padding included."""
        return self.columns

    def split(self, counts: Tensor) -> None:
        """Makes groups of rows with equally many new tokens, `counts [B]`."""
        groups = []
        for rows, cache in self.groups:
            own = counts[rows]
            kinds = own.unique().tolist()
            for kind in kinds:
                if len(kinds) == 1:
                    groups.append((rows, cache))
                    continue
                index = (own == kind).nonzero().flatten()
                part = copy.deepcopy(cache)
                if part is not None:
                    part.select(index)
                groups.append((rows[index], part))
        self.groups = groups

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Row `i` continues what was row `beam_idx[i]`."""
        groups = []
        for rows, cache in self.groups:
            place = torch.full_like(beam_idx, -1, dtype=torch.long)
            place[rows] = torch.arange(len(rows), device=rows.device)
            index = place[beam_idx]
            own = (index >= 0).nonzero().flatten()
            if len(own) > 0:
                if cache is not None:
                    cache.select(index[own])
                groups.append((own, cache))
        self.groups = groups


class Decoder(Pretrained, GenerationMixin):
    """A model that generates tokens."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # The caches are those of `model.py`, in a `Decoded`.
        return False

    def new_past(self, tokens: Tensor) -> Decoded:
        """A cache for a batch of tokens `[B, T]`."""
        new_cache = getattr(self.model, "new_cache", Again)
        return Decoded(new_cache, tokens.shape[0], tokens.device)

    def step(self, tokens: Tensor, inputs: dict[str, Any], cache: Any) -> Tensor:
        """The logits of tokens that have no padding, `[B, T]` → `[B, T, V]`."""
        raise NotImplementedError

    def logits(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        inputs: dict[str, Any],
        past: Decoded | None,
    ) -> Tensor:
        """The logits of the next tokens, `[B, T]` → `[B, T, V]`.

        `mask [B, P+T]`, or of the new tokens alone, is 1 where there is no padding. `inputs` have a row for
        every sequence. A column of padding has the logits of the last token before it.
        """
        batch, time = tokens.shape
        if past is None:
            past = Decoded(lambda: None, batch, tokens.device)
        elif not isinstance(past, Decoded):
            kind = type(past).__name__
            raise ValueError(
                f"`past_key_values` is what this model returned, not a `{kind}`"
            )
        past.columns += time
        kept = torch.ones_like(tokens) if mask is None else mask[:, -time:].long()
        if mask is not None:
            past.split(kept.sum(1))
        if len(past.groups) == 1 and (mask is None or bool(kept.all())):
            return self.step(tokens, inputs, past.groups[0][1])
        logits = None
        for rows, cache in past.groups:
            own = kept[rows].bool()
            count = int(own[0].sum())
            if count == 0:
                continue
            compact = {
                name: self.rows_of(name, value, rows, own)
                for name, value in inputs.items()
            }
            new = self.step(tokens[rows][own].view(len(rows), count), compact, cache)
            if logits is None:
                logits = new.new_zeros(batch, time, new.shape[-1])
            index = (own.long().cumsum(1) - 1).clamp(min=0)
            logits[rows] = new.gather(
                1, index[:, :, None].expand(-1, -1, new.shape[-1])
            )
        if logits is None:
            raise ValueError("every token is masked")
        return logits

    @staticmethod
    def rows_of(name: str, value: Any, rows: Tensor, kept: Tensor) -> Any:
        """An input's rows, without the columns of padding if it has a column for every token."""
        if name == "token_types":
            return value[rows][kept].view(len(rows), -1)
        return value[rows]


class CausalLM(Decoder):
    """A model that predicts the next token."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        language: Tensor | None = None,
        past_key_values: Decoded | None = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """`input_ids [B, T]`, `attention_mask [B, P+T]` → `logits [B, T, V]`

        The loss compares every position with the label after it; labels of -100 do not count.
        """
        self.refuse(
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )
        inputs = self.taken(
            input_ids=input_ids, token_type_ids=token_type_ids, language=language
        )
        tokens: Tensor = inputs.pop("tokens")
        past: Any = past_key_values
        if past is None and use_cache:
            past = self.new_past(tokens)
        # `generate` says whether it uses a cache; it reads the last column, which may be padding.
        if use_cache is None and past is None and ends_in_padding(attention_mask):
            logits = self.model(tokens, mask=attention_mask, **inputs)
        else:
            logits = self.logits(tokens, attention_mask, inputs, past)
        loss = None
        if labels is not None:
            loss = token_loss(logits[:, :-1], labels[:, 1:], num_items_in_batch)
        output = CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past)
        return self.answer(output, return_dict)

    def step(self, tokens: Tensor, inputs: dict[str, Any], cache: Any) -> Tensor:
        """The logits of tokens that have no padding, `[B, T]` → `[B, T, V]`."""
        if isinstance(cache, Again):
            logits = self.model(**cache.extend({"tokens": tokens, **inputs}))
            return logits[:, -tokens.shape[1] :]
        if cache is None:
            return self.model(tokens, **inputs)
        return self.model(tokens, **inputs, cache=cache)
