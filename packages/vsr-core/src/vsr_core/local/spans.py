"""Labelled spans of a text from the probabilities of its tokens.

The aggregation modes have the meanings of the transformers token classification pipeline (version 5.24): ``none``
gives each token by itself under its whole label, ``simple`` joins consecutive tokens by the label scheme, and
``first``, ``average`` and ``max`` give each word one label before words are joined, that of its first token, of the
mean of its probabilities, or of its most certain token. The score of a span is the mean over what was joined.

It differs where transformers guesses:

- Words are the tokenizer's, cut at white space, since some tokenizers make one word of a whole text; transformers goes
  by the continuing prefix of WordPiece, and by spaces elsewhere.
- Punctuation is a word of its own where the tokenizer says so, and at either end of a word where it is a token of its
  own: the full stop of ``in Berlin.`` is no part of the city. Within a word, as in ``Jean-Luc``, it is part of it.
- White space around a span is trimmed. A token of white space alone, or of no width, counts in ``simple`` as any token
  does, but gives a span no width; it is part of no word.
- Tokens that share a character are one word.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..catalog.schemes import LabelScheme
from ..contract import Aggregation, Span
from .engine import IntArray

__all__ = ["find_spans"]

Probabilities = npt.NDArray[np.float64]


class _Place(NamedTuple):
    """Where a token or word stands, less white space around it; of no width where nothing is left."""

    start: int
    end: int

    @property
    def visible(self) -> bool:
        return self.end > self.start


class _Unit(NamedTuple):
    """A token or a word with its most probable label."""

    place: _Place
    label: int
    score: float


def find_spans(
    text: str,
    probabilities: Probabilities,
    *,
    offsets: IntArray,
    words: IntArray,
    scheme: LabelScheme,
    aggregation: Aggregation,
) -> tuple[Span, ...]:
    """Find the spans of one text, by start; ``text[start:end]`` of a span is its ``text`` and never empty.

    :param probabilities: ``[tokens, labels]``, of the text's own tokens, without the special ones around it.
    :param offsets: int32 ``[tokens, 2]``, code points of ``text``; ``words`` is int32 ``[tokens]``.
    """
    places = [_trim(text, start, end) for start, end in offsets.tolist()]
    if aggregation in ("none", "simple"):
        labels, scores = probabilities.argmax(axis=1).tolist(), probabilities.max(axis=1).tolist()
        units = [_Unit(*unit) for unit in zip(places, labels, scores, strict=True)]
    else:
        groups = _words(text, places, words.tolist())
        units = [_word(group, places, probabilities[group], aggregation) for group in groups]
    found = _each(text, units, scheme) if aggregation == "none" else _joined(text, units, scheme)
    return tuple(sorted(found, key=lambda span: (span.start, span.end)))


def _trim(text: str, start: int, end: int) -> _Place:
    stripped = text[start:end].strip()
    if not stripped:
        return _Place(start, start)
    if len(stripped) == end - start:
        return _Place(start, end)
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return _Place(start, start + len(stripped))


def _each(text: str, units: Iterable[_Unit], scheme: LabelScheme) -> Iterator[Span]:
    for unit in units:
        label = scheme.labels[unit.label]
        if label.role != "outside" and unit.place.visible:
            yield _span(text, [unit], label.name)


def _joined(text: str, units: Iterable[_Unit], scheme: LabelScheme) -> Iterator[Span]:
    group: list[_Unit] = []
    for unit in units:
        if group and not scheme.continues(group[-1].label, unit.label):
            yield from _closed(text, group, scheme)
            group = []
        if scheme.labels[unit.label].role != "outside":
            group.append(unit)
    yield from _closed(text, group, scheme)


def _closed(text: str, group: Sequence[_Unit], scheme: LabelScheme) -> Iterator[Span]:
    if any(unit.place.visible for unit in group):
        yield _span(text, group, scheme.labels[group[0].label].entity)


def _span(text: str, group: Sequence[_Unit], label: str) -> Span:
    place = _around([unit.place for unit in group])
    score = math.fsum([unit.score for unit in group]) / len(group)
    return Span(start=place.start, end=place.end, label=label, score=score, text=text[place.start : place.end])


def _around(places: Iterable[_Place]) -> _Place:
    visible = [place for place in places if place.visible]
    return _Place(min(place.start for place in visible), max(place.end for place in visible))


def _word(group: Sequence[int], places: Sequence[_Place], rows: Probabilities, aggregation: Aggregation) -> _Unit:
    if aggregation == "first":
        row = rows[0]
    elif aggregation == "max":
        row = rows[rows.max(axis=1).argmax()]
    else:
        row = rows.mean(axis=0)
    label = int(row.argmax())
    return _Unit(_around([places[index] for index in group]), label, float(row[label]))


def _words(text: str, places: Sequence[_Place], words: Sequence[int]) -> Iterator[list[int]]:
    """Group the numbers of visible tokens by words; no two words share a character."""
    group: list[int] = []
    reach, last = 0, -1  # where the tokens so far end, and the tokenizer's number of the word of the last one
    for index, (place, word) in enumerate(zip(places, words, strict=True)):
        if not place.visible:
            continue
        same = word == last and not any(char.isspace() for char in text[reach : place.start])
        if group and not same and place.start >= reach:
            yield from _edges_apart(text, places, group)
            group = []
        group.append(index)
        reach, last = max(reach, place.end), word
    if group:
        yield from _edges_apart(text, places, group)


def _edges_apart(text: str, places: Sequence[_Place], group: Sequence[int]) -> Iterator[list[int]]:
    """Part the tokens of punctuation at either end of a word from it, unless the word is all punctuation."""
    lettered = [index for index in group if not _is_punctuation(text[places[index].start : places[index].end])]
    if not lettered or (lettered[0], lettered[-1]) == (group[0], group[-1]):
        yield list(group)
        return
    part: list[int] = []
    reach = 0
    for index in group:
        outer = index <= lettered[0] or index > lettered[-1]
        if part and outer and places[index].start >= reach:
            yield part
            part = []
        part.append(index)
        reach = max(reach, places[index].end)
    yield part


def _is_punctuation(text: str) -> bool:
    return all(unicodedata.category(char).startswith("P") for char in text)
