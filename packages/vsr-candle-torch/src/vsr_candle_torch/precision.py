"""Which dtype to compute in: what was asked for, what this CPU does natively, and what the model's own numbers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from vsr_core.contract import Activation, Choice, FloatArray, Preference
from vsr_core.errors import LoadError
from vsr_core.local import activate

__all__ = [
    "MAX_SHIFT",
    "MIN_COSINE",
    "PROBE_TEXTS",
    "Comparison",
    "Precision",
    "choose",
    "cosines",
    "native_bfloat16",
    "probability_shifts",
]

DoubleArray = npt.NDArray[np.float64]

MIN_COSINE = 0.999
"""The least cosine to the fp32 vector, over the probe texts, at which ``auto`` computes in bf16."""

MAX_SHIFT = 0.01
"""The largest change of a probability against fp32, over the probe texts, at which ``auto`` computes in bf16."""

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
"""Short and long, several scripts, code and noise: what the load-time probe compares the dtypes on."""

_NAMES = {"fp32": torch.float32, "float32": torch.float32, "bf16": torch.bfloat16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far bf16 is from fp32: the least cosine of vectors, or the largest change of a probability."""

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
        what = "the least cosine to fp32" if self.kind == "cosine" else "the largest change of a probability"
        return f"{what} on {len(PROBE_TEXTS)} probe texts is {self.worst:.5f}"


@dataclass(frozen=True, slots=True)
class Precision:
    """A dtype, and how it came to be chosen."""

    dtype: torch.dtype
    choice: Choice


def native_bfloat16() -> bool:
    """Whether this CPU multiplies bf16 natively (AVX512_BF16 or AMX) and torch's oneDNN will use it."""
    flags = torch.backends.cpu.get_cpu_capability(), torch.cpu._is_avx512_bf16_supported()
    return flags[0] not in ("DEFAULT", "NO AVX") and bool(flags[1] or torch.cpu._is_amx_tile_supported())


def choose(preference: Preference, *, backend_id: str, compare: Callable[[], Comparison]) -> Precision:
    """Decide on a dtype.

    :param compare: how far bf16 is from fp32 on :data:`PROBE_TEXTS`; called only where the decision needs it.
    :raises LoadError: a required precision that is not to be had.
    """
    asked = str(preference)
    if preference.mode == "auto":
        return _auto(asked, compare)
    dtype = _NAMES.get(preference.value or "")
    if dtype is None and preference.mode == "require":
        known = ", ".join(sorted(_NAMES))
        raise LoadError(f"{backend_id}: precision {asked!r} is not to be had; known are {known}", backend_id=backend_id)
    if dtype is None:
        reason = f"{preference.value!r} is no precision of this backend"
        return Precision(torch.float32, Choice(requested=asked, actual="float32", reason=reason))
    if dtype is torch.bfloat16 and not native_bfloat16():
        reason = "this CPU has no native bf16"
        if preference.mode == "require":
            raise LoadError(f"{backend_id}: precision {asked!r} is not to be had: {reason}", backend_id=backend_id)
        return Precision(torch.float32, Choice(requested=asked, actual="float32", reason=reason))
    return Precision(dtype, Choice(requested=asked, actual=str(dtype).removeprefix("torch.")))


def _auto(asked: str, compare: Callable[[], Comparison]) -> Precision:
    if not native_bfloat16():
        return Precision(torch.float32, Choice(requested=asked, actual="float32", reason="this CPU has no native bf16"))
    found = compare()
    if found.good:
        reason = f"native bf16, and {found.said}"
        return Precision(torch.bfloat16, Choice(requested=asked, actual="bfloat16", reason=reason))
    reason = f"in bf16 {found.said}, and the bound is {found.bound}"
    return Precision(torch.float32, Choice(requested=asked, actual="float32", reason=reason))


def cosines(ours: FloatArray, theirs: FloatArray) -> Sequence[float]:
    """Row by row of ``[n, d]``; a row that is not finite, or zero on one side, counts as 0."""
    one, two = ours.astype(np.float64), theirs.astype(np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    dots = (one * two).sum(axis=1)
    good = np.isfinite(dots) & np.isfinite(norms) & (norms > 0)
    values: list[float] = np.where(good, dots / np.where(good, norms, 1.0), 0.0).tolist()
    return values


def probability_shifts(
    full: Sequence[FloatArray], half: Sequence[FloatArray], *, activation: Activation
) -> Sequence[float]:
    """For each text the largest change of a probability, or of a raw score by its size; 1.0 where it is not finite.

    :param full: logits of each text, ``[labels]`` or ``[tokens, labels]``; :param half: likewise.
    """
    return [
        _shift(one.astype(np.float64), other.astype(np.float64), activation)
        for one, other in zip(full, half, strict=True)
    ]


def _shift(one: DoubleArray, other: DoubleArray, activation: Activation) -> float:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 1.0
    if activation == "none":
        return float(np.max(np.abs(one - other) / np.maximum(1.0, np.abs(one))))
    return float(np.max(np.abs(activate(one, activation) - activate(other, activation))))
