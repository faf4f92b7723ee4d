"""Values of a ``config.json``, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vsr_core.errors import CheckpointError

from .linear import ACTIVATIONS, Activation

__all__ = ["ConfigFields"]

_SAME_AS: Mapping[str, Activation] = {"gelu_python": "gelu", "gelu_fast": "gelu_new", "gelu_pytorch_tanh": "gelu_new"}
"""Other names of the same formulas; ``gelu_fast`` rounds its constant a little earlier."""


class ConfigFields:
    """One ``config.json``; every method raises :class:`CheckpointError` naming the file and the key.

    :param where: how the file is called in messages.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def count(self, key: str) -> int:
        """A positive whole number."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refusal(key, f"must be a positive whole number, not {value!r}")
        return value

    def integer(self, key: str, default: int) -> int:
        """A whole number from 0, or ``default`` where the key is missing or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.refusal(key, f"must be a whole number from 0, not {value!r}")
        return value

    def epsilon(self, key: str, default: float) -> float:
        """A number from 0 to 1."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise self.refusal(key, f"must be a number from 0 to 1, not {value!r}")
        return float(value)

    def positive(self, key: str, default: float) -> float:
        """A number above 0."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self.refusal(key, f"must be a number above 0, not {value!r}")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refusal(key, f"must be true or false, not {value!r}")
        return value

    def activation(self, key: str) -> Activation:
        """An activation by one of the names transformers uses; ``gelu`` where the key is missing."""
        value = self.values.get(key, "gelu")
        found = _SAME_AS.get(value, value) if isinstance(value, str) else value
        if found not in ACTIVATIONS:
            raise self.refusal(key, f"{value!r} is not computed here")
        return cast("Activation", found)

    def heads(self, width: int) -> int:
        """The number of attention heads, of which ``width`` must be a multiple."""
        heads = self.count("num_attention_heads")
        if width % heads:
            raise CheckpointError(f"{self.where}: hidden_size {width} is no multiple of {heads} heads")
        return heads

    def refusal(self, key: str, what: str) -> CheckpointError:
        """An error that names this file and a key of it."""
        return CheckpointError(f"{self.where}: {key} {what}")
