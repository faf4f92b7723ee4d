"""How a conformance test says what does not hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...contract import FloatArray

__all__ = ["apart", "demand", "distance", "nearest"]


def demand(holds: object, message: str) -> None:
    """Fail the test with a sentence unless something holds; also where Python runs without assertions."""
    if not holds:
        raise AssertionError(message)


def distance(left: FloatArray, right: FloatArray) -> float:
    """The largest difference between two answers; infinite where they differ in shape or are not finite."""
    if left.shape != right.shape:
        return float("inf")
    gap = float(np.max(np.abs(left.astype(np.float64) - right.astype(np.float64)), initial=0.0))
    return gap if np.isfinite(gap) else float("inf")


def nearest(answer: FloatArray, others: Sequence[FloatArray]) -> int:
    """The number of the answer that is most like this one."""
    return int(np.argmin([distance(answer, other) for other in others]))


def apart(left: Sequence[FloatArray], right: Sequence[FloatArray]) -> float:
    """The largest difference between two lists of answers; infinite where they are not equally many."""
    if len(left) != len(right):
        return float("inf")
    return max((distance(one, other) for one, other in zip(left, right, strict=True)), default=0.0)
