"""Scores with 95 % intervals: accuracy by Wilson, F1 of entities by resampling texts."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .data import Mark

__all__ = ["Score", "accuracy", "entity_f1", "per_entity", "per_label"]

Z95 = 1.959963984540054
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Score:
    """A score and its 95 % interval over ``n`` texts."""

    metric: str
    value: float
    low: float
    high: float
    n: int
    interval: str


@dataclass(frozen=True, slots=True)
class _Counts:
    """Entities of one text: found rightly, found, and there."""

    right: int
    found: int
    there: int


def accuracy(expected: Sequence[int], found: Sequence[int]) -> Score:
    """The share of texts labelled rightly, with the interval of Wilson (1927)."""
    n = len(expected)
    share = sum(one == other for one, other in zip(expected, found, strict=True)) / n
    middle = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2))
    return Score("accuracy", share, middle - half, middle + half, n, "wilson")


def entity_f1(expected: Sequence[Sequence[Mark]], found: Sequence[Sequence[Mark]], seed: int = 0) -> Score:
    """Micro F1 of entities that match in start, end and label, with the percentile bootstrap over texts."""
    counts = [
        _Counts(len(set(one) & set(other)), len(other), len(one)) for one, other in zip(expected, found, strict=True)
    ]
    chance = random.Random(seed)
    drawn = sorted(_f1(chance.choices(counts, k=len(counts))) for _ in range(RESAMPLES))
    low, high = drawn[round(0.025 * (RESAMPLES - 1))], drawn[round(0.975 * (RESAMPLES - 1))]
    return Score("entity_f1", _f1(counts), low, high, len(counts), "bootstrap over texts")


def per_label(labels: Sequence[str], expected: Sequence[int], found: Sequence[int]) -> Mapping[str, float]:
    """The share of each label's texts that got it (recall)."""
    return {
        name: _share([other == index for one, other in zip(expected, found, strict=True) if one == index])
        for index, name in enumerate(labels)
    }


def per_entity(
    labels: Sequence[str], expected: Sequence[Sequence[Mark]], found: Sequence[Sequence[Mark]]
) -> Mapping[str, float]:
    """F1 of the entities of each label."""
    scores = {}
    for name in labels:
        pairs = [
            ({mark for mark in one if mark.label == name}, {mark for mark in other if mark.label == name})
            for one, other in zip(expected, found, strict=True)
        ]
        scores[name] = _f1([_Counts(len(one & other), len(other), len(one)) for one, other in pairs])
    return scores


def _f1(counts: Sequence[_Counts]) -> float:
    both = sum(count.found + count.there for count in counts)
    return 2 * sum(count.right for count in counts) / both if both else 0.0


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0
