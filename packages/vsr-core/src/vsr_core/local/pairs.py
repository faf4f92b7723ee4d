"""Pairs of texts into token ids: cut longest first, or the second text in windows beside the whole first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from tokenizers import Encoding

from ..contract import Truncation
from ..errors import InputTooLongError, InvalidInputError
from .engine import IntArray
from .tokenize import TextTokenizer, character_cap
from .windows import fresh_tokens, most_tokens, window_starts

__all__ = ["EncodedPair", "PairNames", "WindowedPair", "encode_pair_windows", "encode_pairs"]

Side = Literal["first", "second"]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPair:
    """One pair as the model reads it.

    :param ids: token ids with the special tokens, int32 ``[tokens]``; ``type_ids`` likewise.
    :param total_tokens: what the whole pair would have taken; None where a character cap left a part unread.
    :param cut: which of the texts lost something.
    """

    ids: IntArray
    type_ids: IntArray
    total_tokens: int | None
    truncated: bool
    cut: tuple[Side, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowedPair:
    """One pair as the model reads it, with the whole first text in every window.

    :param windows: whole sequences with their special tokens.
    :param starts: which token of the second text each window begins with.
    :param fresh: how many tokens of the second text each window is the first to read; they sum to all of them.
    :param total_tokens: tokens of the whole pair, with the first text and the special tokens counted once.
    """

    windows: tuple[EncodedPair, ...]
    starts: tuple[int, ...]
    fresh: tuple[int, ...]
    total_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNames:
    """What errors call a pair and its texts: templates in which ``{}`` is the number of the pair."""

    pair: str = "pairs[{}]"
    first: str = "pairs[{}][0]"
    second: str = "pairs[{}][1]"


_PAIRS = PairNames()
_SIDES: tuple[Side, Side] = ("first", "second")


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a call asks of every pair."""

    max_tokens: int
    truncate: Truncation
    names: PairNames


@dataclass(frozen=True, slots=True)
class _Split:
    """Where the two texts stand in an encoding: (start, count) each; all else are special tokens."""

    total: int
    first: tuple[int, int]
    second: tuple[int, int]

    @property
    def special(self) -> int:
        return self.total - self.first[1] - self.second[1]


def encode_pairs(
    tokenizer: TextTokenizer,
    pairs: Sequence[tuple[str, str]],
    *,
    max_tokens: int,
    truncate: Truncation,
    names: PairNames = _PAIRS,
) -> list[EncodedPair]:
    """Tokenise each pair into at most ``max_tokens`` tokens, special ones included.

    Cuts are longest first, as tokenizers' ``longest_first``: a text that fits into half of the room stays whole and
    the other one gets the rest; where neither fits, both get half, and an odd token goes to the longer one, to the
    second where they are equally long.

    :raises InputTooLongError: with ``truncate="error"``, a pair over the limit in characters or tokens.
    :raises InvalidInputError: a pair that gives no token at all, a limit without room, or ``truncate="window"``.
    """
    if truncate not in ("error", "end", "start"):
        raise InvalidInputError(
            f"truncate={truncate!r} does not give one sequence per pair: use 'error', 'end' or 'start'",
            param="truncate",
        )
    _check_room(tokenizer, max_tokens)
    terms, inputs = _Terms(max_tokens, truncate, names), list(pairs)
    capped = _apply_caps(inputs, terms)
    return [
        _encode(tokenizer, encoding, terms, index, capped=capped.get(index, ()))
        for index, encoding in enumerate(tokenizer.encode_whole_pairs(inputs))
    ]


def encode_pair_windows(
    tokenizer: TextTokenizer, pairs: Sequence[tuple[str, str]], *, max_tokens: int, names: PairNames = _PAIRS
) -> list[WindowedPair]:
    """Tokenise each pair whole and divide its second text into windows, each beside the whole first text.

    The windows are those of :func:`~vsr_core.local.windows.encode_windows`, in the room the first text leaves.

    :raises InputTooLongError: a first text that leaves no room, or a second one that as many windows as may be taken
        do not cover, by its tokens or, before it is tokenised, its characters.
    :raises InvalidInputError: a pair that gives no token at all, or a limit without room.
    """
    _check_room(tokenizer, max_tokens)
    caps = character_cap(max_tokens), character_cap(most_tokens(max_tokens - tokenizer.pair_special_tokens))
    for index, pair in enumerate(pairs):
        _check_characters(pair, caps, index, names)
    terms = _Terms(max_tokens, "window", names)
    return [
        _divide(tokenizer, encoding, terms, index) for index, encoding in enumerate(tokenizer.encode_whole_pairs(pairs))
    ]


def _check_room(tokenizer: TextTokenizer, max_tokens: int) -> None:
    special = tokenizer.pair_special_tokens
    if max_tokens <= special:
        raise InvalidInputError(
            f"a limit of {max_tokens} tokens leaves no room beside {special} special tokens", param="max_tokens"
        )


def _apply_caps(inputs: list[tuple[str, str]], terms: _Terms) -> Mapping[int, tuple[Side, ...]]:
    """Cut texts over the character cap in place; gives which texts of which pairs were."""
    cap = character_cap(terms.max_tokens)
    capped: dict[int, tuple[Side, ...]] = {}
    for index, (first, second) in enumerate(inputs):
        lengths = len(first), len(second)
        if max(lengths) <= cap:
            continue
        if terms.truncate == "error":
            _check_characters((first, second), (cap, cap), index, terms.names)
        capped[index] = _over(lengths, (cap, cap))
        if terms.truncate == "end":
            inputs[index] = first[:cap], second[:cap]
        else:
            inputs[index] = first[max(0, lengths[0] - cap) :], second[max(0, lengths[1] - cap) :]
    return capped


def _encode(
    tokenizer: TextTokenizer, encoding: Encoding, terms: _Terms, index: int, *, capped: tuple[Side, ...]
) -> EncodedPair:
    where = terms.names.pair.format(index)
    ids, type_ids = _arrays(tokenizer, encoding, where)
    total, cut = len(ids), capped
    if total > terms.max_tokens:
        if terms.truncate == "error":
            raise _too_long(
                where, total, terms.max_tokens, "shorten it, or ask for truncate='end', 'start' or 'window'"
            )
        split = _split(encoding)
        counts = split.first[1], split.second[1]
        kept = _longest_first(counts, terms.max_tokens - split.special)
        keep = np.ones(total, bool)
        for (start, count), left in zip((split.first, split.second), kept, strict=True):
            gone = start + left if terms.truncate == "end" else start
            keep[gone : gone + count - left] = False
        ids, type_ids = ids[keep], type_ids[keep]
        cut = tuple(side for side in _SIDES if side in (*capped, *_over(counts, kept)))
    return EncodedPair(ids, type_ids, None if capped else total, truncated=bool(cut), cut=cut)


def _divide(tokenizer: TextTokenizer, encoding: Encoding, terms: _Terms, index: int) -> WindowedPair:
    names = terms.names
    ids, type_ids = _arrays(tokenizer, encoding, names.pair.format(index))
    split = _split(encoding)
    begin, count = split.second
    room = terms.max_tokens - split.special - split.first[1]
    if room < min(count, 1):
        limit = terms.max_tokens - split.special - min(count, 1)
        raise _too_long(names.first.format(index), split.first[1], limit, "shorten it, or ask for truncate='end'")
    if count > room and count > most_tokens(room):
        raise _too_long(names.second.format(index), count, most_tokens(room), "shorten it, or the text beside it")
    starts = window_starts(count, room=room)
    windows = []
    for start in starts:
        keep = np.ones(split.total, bool)
        keep[begin : begin + start] = keep[begin + start + room : begin + count] = False
        own = ids[keep]
        windows.append(EncodedPair(own, type_ids[keep], len(own), truncated=False))
    fresh = fresh_tokens(starts, count, room=room)
    return WindowedPair(windows=tuple(windows), starts=starts, fresh=fresh, total_tokens=split.total)


def _arrays(tokenizer: TextTokenizer, encoding: Encoding, where: str) -> tuple[IntArray, IntArray]:
    ids = encoding.ids
    if not ids:
        raise InvalidInputError(f"{where} gives no token, so there is nothing to run", param=where)
    return tokenizer.as_ids(ids, where), np.array(encoding.type_ids, np.int32)


def _split(encoding: Encoding) -> _Split:
    owners = encoding.sequence_ids
    (first, second) = ((owners.index(side), owners.count(side)) if side in owners else (0, 0) for side in (0, 1))
    return _Split(len(owners), first, second)


def _longest_first(counts: tuple[int, int], room: int) -> tuple[int, int]:
    """How many tokens each text keeps, where together they do not fit."""
    shorter = min(*counts, room // 2)
    return (shorter, room - shorter) if counts[0] <= counts[1] else (room - shorter, shorter)


def _over(counts: tuple[int, int], limits: tuple[int, int]) -> tuple[Side, ...]:
    return tuple(side for side, count, limit in zip(_SIDES, counts, limits, strict=True) if count > limit)


def _check_characters(pair: tuple[str, str], caps: tuple[int, int], index: int, names: PairNames) -> None:
    for text, cap, name in zip(pair, caps, (names.first, names.second), strict=True):
        if len(text) > cap:
            raise _too_long(name.format(index), len(text), cap, "shorten it", unit="characters")


def _too_long(where: str, actual: int, limit: int, way_out: str, *, unit: str = "tokens") -> InputTooLongError:
    return InputTooLongError(
        f"{where} has {actual} {unit}, the limit is {limit}: {way_out}",
        limit=limit,
        actual=actual,
        unit=unit,
        param=where,
    )
