"""PLACEHOLDER for the library of Hugging Face. The model itself is in `model.py`."""

from __future__ import annotations

from .answers import Embedding
from .configuration_placeholder import PLACEHOLDERConfig


class PLACEHOLDERModel(Embedding):
    """The model with its head, which gives one vector."""

    config_class = PLACEHOLDERConfig
