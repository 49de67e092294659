"""PLACEHOLDER for the library of Hugging Face. The model itself is in `model.py`."""

from __future__ import annotations

from .configuration_placeholder import PLACEHOLDERConfig
from .decoding import CausalLM
from .pretrained import Body


class PLACEHOLDERModel(Body):
    """The vector of every position."""

    config_class = PLACEHOLDERConfig


class PLACEHOLDERForCausalLM(CausalLM):
    """The model with its head."""

    config_class = PLACEHOLDERConfig
