"""The configuration of PLACEHOLDER: the sizes of `model.py` under the usual names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from transformers import PretrainedConfig

from .model import Config

# The name here of each size of `model.py` that is not called the same.
USUAL: dict[str, str] = {}


class PLACEHOLDERConfig(PretrainedConfig):
    """What `config.json` says. `trafo_spec` is the spec that the model was built from."""

    model_type = "MODEL_TYPE"
    # Usual names of sizes that are called otherwise here.
    attribute_map: ClassVar[dict[str, str]] = {}

    def __init__(self, **given: Any) -> None:
        for field in fields(Config):
            name = USUAL.get(field.name, field.name)
            if name != "num_labels":
                setattr(self, name, given.pop(name, field.default))
            elif "id2label" not in given:
                given.setdefault(name, field.default)
        super().__init__(**given)

    def sizes(self) -> Config:
        """The sizes by the names of `model.py`."""
        names = [field.name for field in fields(Config)]
        return Config(**{name: getattr(self, USUAL.get(name, name)) for name in names})
