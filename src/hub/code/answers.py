"""Models that read a whole input once and answer."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    ImageClassifierOutput,
    MaskedLMOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from .pretrained import Body, Pretrained, class_loss, token_loss


class Answer(Pretrained):
    """A model that gives logits."""

    output_class: Any = SequenceClassifierOutput

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        language: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """The logits, and the loss if there are labels."""
        inputs = self.inputs_among(locals())
        logits = self.model(**inputs)
        loss = None
        if labels is not None:
            loss = self.loss(logits, labels, num_items_in_batch)
        return self.answer(self.output_class(loss=loss, logits=logits), return_dict)

    def loss(
        self, logits: Tensor, labels: Tensor, count: Tensor | int | None
    ) -> Tensor:
        """The loss of labels for every position, `[B, T]`; those of -100 do not count."""
        return token_loss(logits, labels, count)


class MaskedLM(Answer):
    """A model that fills in hidden tokens."""

    output_class = MaskedLMOutput


class TokenClassification(Answer):
    """A model that gives every token a class."""

    output_class = TokenClassifierOutput


class SequenceClassification(Answer):
    """A model that gives a whole text a class, or several."""

    def loss(
        self, logits: Tensor, labels: Tensor, count: Tensor | int | None
    ) -> Tensor:
        """The loss of classes: `labels [B]`, or `[B, C]` of 0 and 1 if there may be several."""
        is_multi_label = self.config.problem_type == "multi_label_classification"
        return class_loss(logits, labels, is_multi_label, count)


class ImageClassification(SequenceClassification):
    """A model that gives an image a class, or several."""

    main_input_name = "pixel_values"
    output_class = ImageClassifierOutput


class QuestionAnswering(Pretrained):
    """A model that finds where the answer to a question starts and ends."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        language: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """`start_logits` and `end_logits`, each `[B, T]`; the loss is the mean of both."""
        inputs = self.inputs_among(locals())
        outputs = self.model(**inputs)
        start, end = outputs.start_logits, outputs.end_logits
        loss = None
        if start_positions is not None and end_positions is not None:
            losses = [
                class_loss(logits, position, is_multi_label=False)
                for logits, position in ((start, start_positions), (end, end_positions))
            ]
            loss = (losses[0] + losses[1]) / 2
        output = QuestionAnsweringModelOutput(
            loss=loss, start_logits=start, end_logits=end
        )
        return self.answer(output, return_dict)


class Embedding(Body):
    """A model that gives a whole input one vector."""

    def output(self, outputs: Any, hidden: Tensor) -> Any:
        """`last_hidden_state [B, T, D]`, and the vector as `pooler_output [B, E]`."""
        return BaseModelOutputWithPooling(
            last_hidden_state=hidden, pooler_output=outputs
        )
