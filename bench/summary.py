"""From the raw rounds of every variant to the numbers that are compared."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .results import CosineRange, Summary, VariantResult
from .stats import paired_ratios, quantile, spread

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PEER_BASELINE", "cosine_range", "summarise"]

PEER_BASELINE = "st-fp32"
"""What an application does without being told anything."""

RAW_BASELINES = {
    ("torch", "float32"): "raw-fp32",
    ("torch", "bfloat16"): "raw-bf16",
    ("onnx", "float32"): "raw-onnx",
    ("openvino", "float32"): "raw-openvino",
    ("openvino", "bfloat16"): "raw-openvino-bf16",
}
"""By engine and dtype, the loop that has nothing around the engine."""


def summarise(variants: Sequence[VariantResult], *, tokens: int) -> tuple[Summary, ...]:
    """Summaries of the variants that ran all rounds, in their order.

    :param tokens: of all texts, by the one count that holds for every variant.
    """
    ran = {variant.name: variant for variant in variants if variant.failure is None and variant.rounds}
    return tuple(_summarise(variant, ran, tokens) for variant in ran.values())


def cosine_range(vectors: Path, reference: Path) -> CosineRange:
    """Compare two ``.npy`` files of vectors, row by row.

    :raises ValueError: they differ in shape.
    """
    import numpy as np

    ours: npt.NDArray[np.float64] = np.load(vectors).astype(np.float64)
    theirs: npt.NDArray[np.float64] = np.load(reference).astype(np.float64)
    if ours.shape != theirs.shape:
        raise ValueError(f"vectors of shape {ours.shape} cannot be compared with a reference of shape {theirs.shape}")
    cosines = (ours * theirs).sum(axis=1) / (np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1))
    return CosineRange(mean=float(cosines.mean()), minimum=float(cosines.min()))


def _summarise(variant: VariantResult, ran: Mapping[str, VariantResult], tokens: int) -> Summary:
    dtype = variant.facts.dtype if variant.facts is not None else "unknown"
    raw = RAW_BASELINES.get((variant.engine, dtype))
    singles = [seconds for each in variant.singles for seconds in each]
    peaks = [run.peak_bytes for run in variant.rounds if run.peak_bytes is not None]
    others = [run.others for run in variant.rounds if run.others is not None]
    return Summary(
        name=variant.name,
        dtype=dtype,
        texts_per_second=spread([run.texts / run.seconds for run in variant.rounds]),
        tokens_per_second=spread([tokens / run.seconds for run in variant.rounds]),
        to_peer=_ratio(variant, ran.get(PEER_BASELINE)),
        to_raw=_ratio(variant, ran.get(raw)) if raw is not None else None,
        raw_baseline=raw if raw in ran else None,
        single_p50=quantile(singles, 0.5) if singles else None,
        single_p99=quantile(singles, 0.99) if singles else None,
        peak_bytes=max(peaks, default=None),
        others=statistics.fmean(others) if others else None,
    )


def _ratio(variant: VariantResult, baseline: VariantResult | None) -> float | None:
    """The median over the rounds of how many times as much the variant gets through as the baseline."""
    if baseline is None:
        return None
    ratios = paired_ratios([run.seconds for run in baseline.rounds], [run.seconds for run in variant.rounds])
    return spread(ratios).median
