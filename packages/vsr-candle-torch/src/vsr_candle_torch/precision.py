"""Which dtype to compute in: what was asked for, what this CPU does natively, and what the model's own numbers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from vsr_core.contract import Choice, FloatArray, Preference
from vsr_core.errors import LoadError

__all__ = ["MIN_COSINE", "PROBE_TEXTS", "Precision", "choose", "native_bfloat16"]

MIN_COSINE = 0.999
"""The least cosine to the fp32 vector, over the probe texts, at which ``auto`` computes in bf16."""

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


@dataclass(frozen=True, slots=True)
class Precision:
    """A dtype, and how it came to be chosen."""

    dtype: torch.dtype
    choice: Choice


def native_bfloat16() -> bool:
    """Whether this CPU multiplies bf16 natively (AVX512_BF16 or AMX) and torch's oneDNN will use it."""
    flags = torch.backends.cpu.get_cpu_capability(), torch.cpu._is_avx512_bf16_supported()
    return flags[0] not in ("DEFAULT", "NO AVX") and bool(flags[1] or torch.cpu._is_amx_tile_supported())


def choose(
    preference: Preference, *, backend_id: str, compare: Callable[[], tuple[FloatArray, FloatArray]]
) -> Precision:
    """Decide on a dtype.

    :param compare: gives the vectors of :data:`PROBE_TEXTS` in fp32 and in bf16, each ``[n, d]``; called only where
        the decision needs it.
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


def _auto(asked: str, compare: Callable[[], tuple[FloatArray, FloatArray]]) -> Precision:
    if not native_bfloat16():
        return Precision(torch.float32, Choice(requested=asked, actual="float32", reason="this CPU has no native bf16"))
    worst = float(np.min(_cosines(*compare())))
    if worst >= MIN_COSINE:
        reason = f"native bf16, and the least cosine to fp32 on {len(PROBE_TEXTS)} probe texts is {worst:.5f}"
        return Precision(torch.bfloat16, Choice(requested=asked, actual="bfloat16", reason=reason))
    reason = f"in bf16 the least cosine to fp32 on {len(PROBE_TEXTS)} probe texts is {worst:.5f}, below {MIN_COSINE}"
    return Precision(torch.float32, Choice(requested=asked, actual="float32", reason=reason))


def _cosines(ours: FloatArray, theirs: FloatArray) -> Sequence[float]:
    """Row by row; a row that is not finite, or zero on one side, counts as 0."""
    one, two = ours.astype(np.float64), theirs.astype(np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    dots = (one * two).sum(axis=1)
    good = np.isfinite(dots) & np.isfinite(norms) & (norms > 0)
    values: list[float] = np.where(good, dots / np.where(good, norms, 1.0), 0.0).tolist()
    return values
