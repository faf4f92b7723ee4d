"""The few statistics the benchmarks state."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Spread", "paired_ratios", "quantile", "spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the range around it."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median, the least and the greatest of some values.

    :raises ValueError: there are none.
    """
    if not values:
        raise ValueError("no values have no spread")
    return Spread(statistics.median(values), min(values), max(values))


def quantile(values: Sequence[float], fraction: float) -> float:
    """The value below which ``fraction`` of the values lie, interpolated between neighbours.

    :raises ValueError: there are no values, or ``fraction`` is not within 0 and 1.
    """
    if not values or not 0 <= fraction <= 1:
        raise ValueError(f"no quantile {fraction!r} of {len(values)} values")
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    below, above = math.floor(place), math.ceil(place)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def paired_ratios(values: Sequence[float], baseline: Sequence[float]) -> tuple[float, ...]:
    """Each value over the baseline's of the same round, so that what slows a whole round cancels out.

    :raises ValueError: the two have not the same rounds.
    """
    return tuple(value / base for value, base in zip(values, baseline, strict=True))
