"""Long texts as overlapping windows, so that every token is read and none without its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InputTooLongError, InvalidInputError
from .engine import IntArray
from .tokenize import EncodedText, TextTokenizer

__all__ = [
    "MAX_TOKENS",
    "MAX_WINDOWS",
    "OVERLAP",
    "WindowedText",
    "encode_windows",
    "fresh_tokens",
    "merge_windows",
    "most_tokens",
    "window_starts",
]

Scalar = TypeVar("Scalar", bound=np.generic)

OVERLAP = 0.25
"""The part of a window's room that it shares with the window before it, rounded down to whole tokens."""

MAX_WINDOWS = 256
"""How many windows one text may take."""

MAX_TOKENS = 131_072
"""How many tokens are read of one text, however many windows would cover: a few hundred pages."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowedText:
    """One text as the model reads it, in one window or several.

    :param windows: whole sequences with their special tokens; places and words count in the text as given.
    :param starts: which of the text's own tokens each window begins with, counted without special tokens.
    :param fresh: how many of the text's own tokens each window is the first to read; they sum to all of them.
    :param total_tokens: tokens of the whole text, with the special tokens counted once.
    """

    windows: tuple[EncodedText, ...]
    starts: tuple[int, ...]
    fresh: tuple[int, ...]
    total_tokens: int


def window_starts(count: int, *, room: int) -> tuple[int, ...]:
    """Where the windows over ``count`` tokens begin, with ``room`` tokens each; the last is moved back to be full."""
    if count <= room:
        return (0,)
    return (*range(0, count - room, _stride(room)), count - room)


def fresh_tokens(starts: Sequence[int], count: int, *, room: int) -> tuple[int, ...]:
    """How many of ``count`` tokens each of the windows at ``starts`` is the first to read."""
    ends = [min(start + room, count) for start in starts]
    return tuple(end - before for before, end in zip([0, *ends], ends, strict=False))


def most_tokens(room: int) -> int:
    """How many tokens :data:`MAX_WINDOWS` windows with ``room`` tokens each cover, but at most :data:`MAX_TOKENS`."""
    return max(room, min(room + (MAX_WINDOWS - 1) * _stride(room), MAX_TOKENS))


def encode_windows(
    tokenizer: TextTokenizer, texts: Sequence[str], *, max_tokens: int, offsets: bool = False
) -> list[WindowedText]:
    """Tokenise each text whole and cut it into windows of at most ``max_tokens`` tokens, special ones included.

    The text is tokenised once, so a token is the same in every window that holds it. A text within the limit is one
    window, and one without tokens of its own is the special tokens alone.

    :param offsets: whether the windows carry ``offsets`` and ``words``.
    :raises InputTooLongError: a text that :data:`MAX_WINDOWS` windows do not cover; the limit on its characters
        follows from that.
    :raises InvalidInputError: a text that gives no token at all, or a limit without room for text.
    """
    room = max_tokens - tokenizer.special_tokens
    if room < 1:
        raise InvalidInputError(
            f"a limit of {max_tokens} tokens leaves no room beside {tokenizer.special_tokens} special tokens",
            param="max_tokens",
        )
    encode = tokenizer.encode_with_offsets if offsets else tokenizer.encode
    limit = tokenizer.special_tokens + most_tokens(room)
    try:
        encoded = encode(texts, max_tokens=limit, truncate="error")
    except InputTooLongError as error:
        raise InputTooLongError(
            f"{error.param} has {error.actual} {error.unit}, windows are read up to {error.limit}: split the text",
            limit=error.limit,
            actual=error.actual,
            unit=error.unit,
            param=error.param,
        ) from None
    return [_divide(text, tokenizer.frame, room) for text in encoded]


def merge_windows(values: Sequence[npt.NDArray[Scalar]], starts: Sequence[int]) -> npt.NDArray[Scalar]:
    """Merge what windows say of their tokens into one row per token of the text.

    Each token is taken from the window in which it stands farthest from a border that is not also one of the text;
    of equals the earlier window counts.

    :param values: one array ``[tokens, ...]`` per window, of the text's own tokens; ``starts`` is where each begins.
    """
    if len(values) == 1:
        return values[0]
    count = starts[-1] + len(values[-1])
    merged = np.empty((count, *values[0].shape[1:]), values[0].dtype)
    distance = np.full(count, -1)
    for value, start in zip(values, starts, strict=True):
        end = start + len(value)
        place = np.arange(len(value))
        before = place if start > 0 else np.full(len(value), count)
        after = place[::-1] if end < count else np.full(len(value), count)
        here = np.minimum(before, after)
        better = here > distance[start:end]
        merged[start:end][better] = value[better]
        distance[start:end][better] = here[better]
    return merged


def _stride(room: int) -> int:
    return room - int(room * OVERLAP)


def _divide(text: EncodedText, frame: tuple[int, int], room: int) -> WindowedText:
    count = len(text.ids) - sum(frame)
    starts = window_starts(count, room=room)
    windows = (text,) if len(starts) == 1 else tuple(_window(text, frame, start, room) for start in starts)
    fresh = fresh_tokens(starts, count, room=room)
    return WindowedText(windows=windows, starts=starts, fresh=fresh, total_tokens=len(text.ids))


def _window(text: EncodedText, frame: tuple[int, int], start: int, room: int) -> EncodedText:
    def cut(values: IntArray) -> IntArray:
        before, after = frame
        own = values[before + start : before + start + room]
        return np.concatenate((values[:before], own, values[len(values) - after :]))

    return replace(
        text,
        ids=cut(text.ids),
        type_ids=cut(text.type_ids),
        total_tokens=sum(frame) + room,
        offsets=None if text.offsets is None else cut(text.offsets),
        words=None if text.words is None else cut(text.words),
    )
