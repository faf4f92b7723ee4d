"""Reading the arguments of a facade call into what the rooms below work with."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ..contract import CallContext, HintValue
from ..errors import InvalidInputError
from ..taxonomy import Feature

__all__ = [
    "Hints",
    "call_context",
    "check_choice",
    "check_count",
    "check_text",
    "check_timeout",
    "check_truth",
    "implied_features",
]

W = TypeVar("W", bound=str)

_LONGEST = 10_000_000
"""Seconds; about four months, which every lock and event loop can still wait."""

Hints = Mapping[str, HintValue]
"""What a caller tells routing beside the request: tenant, app, prompt tokens, anything."""


def call_context(timeout: float | None, hints: Hints | None) -> CallContext:
    """The context of one request: a fresh id, and a deadline where the caller gave time.

    :raises InvalidInputError: ``timeout`` is no positive number of seconds, or ``hints`` no mapping of plain values.
    """
    tenant = _tenant(hints)
    request_id = os.urandom(12).hex()
    seconds = check_timeout(timeout)
    if seconds is None:
        return CallContext(request_id=request_id, tenant=tenant)
    return CallContext(request_id=request_id, deadline=time.monotonic() + seconds, timeout=seconds, tenant=tenant)


def check_timeout(timeout: object) -> float | None:
    """Seconds, or None for no limit.

    :raises InvalidInputError: no positive number of seconds, or more of them than anybody can wait.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= _LONGEST:
        raise InvalidInputError(
            f"timeout must be a number of seconds above 0 and at most {_LONGEST}, or None for no limit", param="timeout"
        )
    return float(timeout)


def check_count(value: object, param: str) -> int | None:
    """A positive whole number, or None where none was given.

    :raises InvalidInputError: anything else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInputError(f"{param} must be a positive whole number, not {value!r}", param=param)
    return value


def check_choice(value: W, param: str, allowed: tuple[W, ...]) -> W:
    """One of a few words.

    :raises InvalidInputError: anything else.
    """
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(map(repr, allowed))
        raise InvalidInputError(f"{param} must be one of {words}, not {value!r}", param=param)
    return value


def check_truth(value: object, param: str) -> bool:
    """True or False.

    :raises InvalidInputError: anything else.
    """
    if not isinstance(value, bool):
        raise InvalidInputError(f"{param} must be True or False, not {value!r}", param=param)
    return value


def check_text(text: object, param: str) -> str:
    """One string that a tokenizer can take.

    :raises InvalidInputError: no string, or one with a lone surrogate.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{param} must be a string, not {type(text).__name__}", param=param)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{param} holds a lone surrogate at character {error.start}: it is no valid Unicode text", param=param
        ) from None
    return text


def implied_features(*, dimensions: int | None = None, layer: int | None = None) -> Iterable[Feature]:
    """The features a request needs by what it asks for."""
    if dimensions is not None:
        yield Feature.DIMENSIONS
    if layer is not None:
        yield Feature.LAYER_EXIT


def _tenant(hints: Hints | None) -> str | None:
    if hints is None:
        return None
    if not isinstance(hints, Mapping):
        raise InvalidInputError(f"hints must be a mapping, not {type(hints).__name__}", param="hints")
    for key, value in hints.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool | None):
            raise InvalidInputError(
                f"hints[{key!r}] must be text, a number, a boolean or None, not {type(value).__name__}", param="hints"
            )
    tenant = hints.get("tenant")
    return None if tenant is None else str(tenant)
