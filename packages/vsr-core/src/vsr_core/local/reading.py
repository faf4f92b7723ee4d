"""Inputs as the model reads them: how long they are, each in one sequence or overlapping windows, and how that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..contract import BackendId, FloatArray, InputReport, Truncation
from ..errors import CheckpointError
from .base import EncoderBase
from .pairs import EncodedPair, PairNames, WindowedPair, encode_pair_windows, encode_pairs
from .tickets import ItemResult, RowWant, WorkItem
from .tokenize import EncodedText, TextTokenizer
from .windows import WindowedText, encode_windows

__all__ = [
    "Reading",
    "TextReader",
    "by_reading",
    "characters_of",
    "check_pair_room",
    "items_of",
    "read_pairs",
    "read_texts",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """One input as the model reads it.

    :param sequences: one, or the windows in order.
    :param starts: which of the input's own tokens each begins with; for a pair, of those of the second text.
    :param fresh: how many of the input's tokens each is the first to read.
    :param report: what became of the input.
    """

    sequences: tuple[EncodedText, ...] | tuple[EncodedPair, ...]
    starts: tuple[int, ...]
    fresh: tuple[int, ...]
    report: InputReport


def characters_of(texts: object) -> int:
    """Characters of one text or a list of them, whatever else it may be: nothing has been checked yet."""
    if not isinstance(texts, list | tuple):
        return len(texts) if isinstance(texts, str) else 0
    return sum([len(text) for text in texts if isinstance(text, str)])


def read_texts(
    tokenizer: TextTokenizer, texts: Sequence[str], *, max_tokens: int, truncate: Truncation, offsets: bool = False
) -> list[Reading]:
    """Tokenise each text by the truncation asked for.

    :param offsets: whether the sequences carry ``offsets`` and ``words``.
    :raises InputTooLongError: a text over the limit, where that is not to be cut, or beyond what windows cover.
    :raises InvalidInputError: a text that cannot be run.
    """
    if truncate == "window":
        windowed = encode_windows(tokenizer, texts, max_tokens=max_tokens, offsets=offsets)
        return [_windowed(text) for text in windowed]
    encode = tokenizer.encode_with_offsets if offsets else tokenizer.encode
    encoded = encode(texts, max_tokens=max_tokens, truncate=truncate)
    return [
        Reading(
            sequences=(text,),
            starts=(0,),
            fresh=(len(text.ids),),
            report=InputReport(tokens=len(text.ids), total_tokens=text.total_tokens, truncated=text.truncated),
        )
        for text in encoded
    ]


class TextReader:
    """Reads texts for several tasks on one base: what two of them read alike is tokenised once.

    :param offsets: whether any of the tasks wants ``offsets`` and ``words``; then all get them.
    """

    def __init__(self, *, offsets: bool) -> None:
        self._offsets = offsets
        self._known: dict[tuple[tuple[str, ...], int, Truncation], list[Reading]] = {}

    def read(
        self, tokenizer: TextTokenizer, texts: tuple[str, ...], *, max_tokens: int, truncate: Truncation
    ) -> list[Reading]:
        """As :func:`read_texts`."""
        key = (texts, max_tokens, truncate)
        if key not in self._known:
            self._known[key] = read_texts(
                tokenizer, texts, max_tokens=max_tokens, truncate=truncate, offsets=self._offsets
            )
        return self._known[key]


def read_pairs(
    tokenizer: TextTokenizer,
    pairs: Sequence[tuple[str, str]],
    *,
    max_tokens: int,
    truncate: Truncation,
    names: PairNames,
) -> list[Reading]:
    """Tokenise each pair by the truncation asked for; a window holds the whole first text.

    :raises InputTooLongError: as :func:`read_texts`, by the ``names`` given.
    :raises InvalidInputError: a pair that cannot be run.
    """
    if truncate == "window":
        windowed = encode_pair_windows(tokenizer, pairs, max_tokens=max_tokens, names=names)
        return [_windowed(pair) for pair in windowed]
    encoded = encode_pairs(tokenizer, pairs, max_tokens=max_tokens, truncate=truncate, names=names)
    return [
        Reading(
            sequences=(pair,),
            starts=(0,),
            fresh=(len(pair.ids),),
            report=InputReport(
                tokens=len(pair.ids), total_tokens=pair.total_tokens, truncated=pair.truncated, cut=pair.cut
            ),
        )
        for pair in encoded
    ]


def items_of(readings: Sequence[Reading], row: RowWant) -> list[WorkItem]:
    """What to run: every sequence of every reading, in order."""
    rows = (row,)
    return [WorkItem(each.ids, each.type_ids, 0, rows) for reading in readings for each in reading.sequences]


def by_reading(readings: Sequence[Reading], results: Sequence[ItemResult]) -> list[list[FloatArray]]:
    """The answers to the items of :func:`items_of`, one list for each reading."""
    answers = iter(results)
    return [[next(answers)[0] for _ in reading.sequences] for reading in readings]


def check_pair_room(base: EncoderBase, *, backend_id: BackendId) -> None:
    """Refuse a limit that the special tokens of a pair alone use up.

    :raises CheckpointError: they do.
    """
    special = base.tokenizer.pair_special_tokens
    if base.max_tokens <= special:
        raise CheckpointError(
            f"{backend_id}: max_tokens={base.max_tokens} leaves no room beside {special} special tokens of a pair"
        )


def _windowed(text: WindowedText | WindowedPair) -> Reading:
    count = len(text.windows)
    report = InputReport(
        tokens=text.total_tokens,
        total_tokens=text.total_tokens,
        truncated=False,
        windows=count if count > 1 else None,
    )
    return Reading(sequences=text.windows, starts=text.starts, fresh=text.fresh, report=report)
