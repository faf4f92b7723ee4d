"""How far the numbers of one engine are from another's, on texts that differ in length and script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..contract import Activation, FloatArray
from .scoring import activate

__all__ = ["MAX_SHIFT", "MIN_COSINE", "PROBE_TEXTS", "Comparison", "largest_shift", "least_cosine"]

MIN_COSINE = 0.999
"""The least cosine to the float32 vector, over the probe texts, at which ``auto`` computes in bf16."""

MAX_SHIFT = 0.01
"""The largest change of a probability against float32, over the probe texts, at which ``auto`` computes in bf16."""

PROBE_TEXTS = (
    "yes",
    "Where can I change the delivery address of my order?",
    "The reactor's cooling loop lost pressure twice in March, and nobody wrote down why.",
    "def area(width, height):\n    return width * height",
    "Der Zug nach Zürich fährt heute von Gleis 7 ab.",
    "la réunion est reportée à jeudi, à cause de la grève",
    "明天的会议改到下午三点。",
    "1994-06-17 22:05:31 ERROR disk /dev/sdb: 3 sectors unreadable (0x1f, 0x20, 0x2a)",
    "Water boils at a lower temperature on a mountain because the air presses less on it. " * 6,
    "!!! ??? ... --- 😀 👍🏽",
)
"""Short and long, several scripts, code and noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far bf16 is from float32: the least cosine of vectors, or the largest change of a probability."""

    kind: Literal["cosine", "probability"]
    worst: float

    @property
    def bound(self) -> float:
        """The worst that will do."""
        return MIN_COSINE if self.kind == "cosine" else MAX_SHIFT

    @property
    def good(self) -> bool:
        """Whether bf16 will do."""
        return self.worst >= MIN_COSINE if self.kind == "cosine" else self.worst <= MAX_SHIFT

    @property
    def said(self) -> str:
        """The finding in words."""
        what = "the least cosine to float32" if self.kind == "cosine" else "the largest change of a probability"
        return f"{what} on {len(PROBE_TEXTS)} probe texts is {self.worst:.5f}"


def least_cosine(full: Sequence[FloatArray], half: Sequence[FloatArray]) -> float:
    """Over pairs of vectors; one that is not finite, or zero on one side, counts as 0."""
    return min(_cosine(one.astype(np.float64), other.astype(np.float64)) for one, other in zip(full, half, strict=True))


def largest_shift(full: Sequence[FloatArray], half: Sequence[FloatArray], *, activation: Activation) -> float:
    """Of a probability, or of a raw score by its size; 1.0 where a logit is not finite.

    :param full: logits of each text, ``[labels]`` or ``[tokens, labels]``; :param half: likewise.
    """
    return max(
        _shift(one.astype(np.float64), other.astype(np.float64), activation)
        for one, other in zip(full, half, strict=True)
    )


def _cosine(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if np.isfinite(size) and size > 0 else 0.0


def _shift(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], activation: Activation) -> float:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 1.0
    if activation == "none":
        return float(np.max(np.abs(one - other) / np.maximum(1.0, np.abs(one))))
    return float(np.max(np.abs(activate(one, activation) - activate(other, activation))))
