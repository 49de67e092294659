"""The tokenizer of a translation whose source and target have vocabularies of their own."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

# The file of the target's vocabulary.
TARGET = "target_tokenizer.json"


class TranslationTokenizer(PreTrainedTokenizerFast):
    """Reads texts of the source, and writes those of the target.

    `tokenizer(text)` gives the ids of a source, `tokenizer(text_target=text)` those of a target,
    and `decode` gives the text of a target's ids.
    """

    vocab_files_names: ClassVar[dict[str, str]] = {
        "tokenizer_file": "tokenizer.json",
        "target_file": TARGET,
    }

    # The library reads `tokenizer.json` as it is only for a class without an `__init__`.
    @cached_property
    def of_source(self) -> Tokenizer:
        """The tokenizer of the source, which is the one that the library has loaded."""
        return self._tokenizer

    @cached_property
    def of_target(self) -> Tokenizer:
        """The tokenizer of the target."""
        return Tokenizer.from_file(self.init_kwargs["target_file"])

    def _switch_to_input_mode(self) -> None:
        self._tokenizer = self.of_source

    def _switch_to_target_mode(self) -> None:
        self._switch_to_input_mode()
        self._tokenizer = self.of_target

    def _decode(self, *given: Any, **settings: Any) -> str:
        self._switch_to_target_mode()
        try:
            return super()._decode(*given, **settings)
        finally:
            self._switch_to_input_mode()

    def _save_pretrained(
        self,
        save_directory: Any,
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        written = super()._save_pretrained(
            save_directory, file_names, legacy_format, filename_prefix
        )
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        file = str(Path(save_directory) / (prefix + TARGET))
        self.of_target.save(file)
        return (*written, file)
