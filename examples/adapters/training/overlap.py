"""Test texts that are in the training texts, or nearly so."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .data import Example

__all__ = ["Overlap", "find_overlaps"]

RUN = 3
"""Words in a row that are compared."""

SHARE = 0.5
"""A test text of whose runs one training text has this share is a near duplicate."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Overlap:
    """A test text and the training text that it is, or almost is."""

    test: str
    train: str
    share: float


def find_overlaps(train: Sequence[Example], test: Sequence[Example]) -> list[Overlap]:
    """Find the test texts that equal or nearly equal a training text, whatever the case and punctuation.

    Spans are compared by their labels, so that two fillings of one template are one text.
    """
    words = {_words(example): example for example in train}
    holders: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for text in words:
        for run in _runs(text):
            holders[run].add(text)
    return [overlap for example in test if (overlap := _overlap(example, words, holders)) is not None]


def _overlap(
    example: Example,
    words: dict[tuple[str, ...], Example],
    holders: dict[tuple[str, ...], set[tuple[str, ...]]],
) -> Overlap | None:
    text = _words(example)
    if text in words:
        return Overlap(example.text, words[text].text, 1.0)
    runs = set(_runs(text))
    shared = Counter(holder for run in runs for holder in holders.get(run, ()))
    for holder, count in shared.most_common(1):
        if count / len(runs) >= SHARE:
            return Overlap(example.text, words[holder].text, count / len(runs))
    return None


def _words(example: Example) -> tuple[str, ...]:
    parts, last = [], 0
    for mark in example.marks:
        parts += [example.text[last : mark.start], f" {mark.label} "]
        last = mark.end
    return tuple(_WORD.findall("".join([*parts, example.text[last:]]).casefold()))


def _runs(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (words[start : start + RUN] for start in range(len(words) - RUN + 1))
