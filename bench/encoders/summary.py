"""From raw calls and peaks to the numbers that are compared, and what these are meant to be."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..protocol import ForwardTimes
from ..stats import Spread, paired_ratios, spread
from .contestants import EXIT, FULL, PEER
from .results import Agreement, ContestantResult, EncodersSummary, MemoryPoint, WorkloadSummary
from .workloads import Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["EXIT_AIM", "GROWTH_AIM", "agreement", "peer_aim", "summarise_encoders"]

EXIT_AIM = 0.35
"""The most the exit may take of the full depth: 6 of 22 layers, and the embeddings."""

GROWTH_AIM = (1.6, 2.4)
"""Around 2: memory that grows with the tokens."""

_GROWTH_LENGTHS = (2048, 4096, 8192)


def peer_aim(tokens: int) -> float | None:
    """The most the engine may take of transformers' time for one text; None where nothing is aimed at."""
    if tokens <= 2048:
        return 1.05
    return 0.60 if tokens >= 8192 else None


def agreement(workload: str, ours: Path, theirs: Path) -> Agreement:
    """Compare two ``.npy`` files of vectors.

    :raises ValueError: they differ in shape.
    """
    import numpy as np

    one: npt.NDArray[np.float64] = np.load(ours).astype(np.float64)
    other: npt.NDArray[np.float64] = np.load(theirs).astype(np.float64)
    if one.shape != other.shape:
        raise ValueError(f"vectors of shape {one.shape} cannot be compared with vectors of shape {other.shape}")
    return Agreement(workload=workload, difference=float(np.abs(one - other).max()), largest=float(np.abs(other).max()))


def summarise_encoders(
    workloads: Sequence[Workload], contestants: Sequence[ContestantResult], agreements: Sequence[Agreement]
) -> EncodersSummary:
    """The summary of every workload that somebody ran, and of how memory grows."""
    agreed = {each.workload: each for each in agreements}
    summaries = (_summarise(each, contestants, agreed.get(each.name)) for each in workloads)
    growths = ((each.name, _growth(each.memory)) for each in contestants)
    return EncodersSummary(
        workloads=tuple(each for each in summaries if each.seconds),
        growth={name: growth for name, growth in growths if growth is not None},
    )


def _summarise(
    workload: Workload, contestants: Sequence[ContestantResult], agreed: Agreement | None
) -> WorkloadSummary:
    rounds: dict[str, Sequence[ForwardTimes]] = {
        each.name: times.rounds for each in contestants for times in each.times if times.workload == workload.name
    }
    seconds = {name: [statistics.median(each.seconds) for each in times] for name, times in rounds.items()}
    others = [each.others for times in rounds.values() for each in times if each.others is not None]
    return WorkloadSummary(
        name=workload.name,
        texts=len(workload.lengths),
        tokens=workload.tokens,
        seconds={name: spread(values) for name, values in seconds.items()},
        to_peer=_ratio(seconds, FULL, PEER),
        exit_to_full=_ratio(seconds, EXIT, FULL),
        agreement=agreed,
        others=statistics.fmean(others) if others else None,
    )


def _ratio(seconds: Mapping[str, Sequence[float]], name: str, baseline: str) -> Spread | None:
    """Round by round; None where one of the two did not run them all."""
    values, base = seconds.get(name, ()), seconds.get(baseline, ())
    return spread(paired_ratios(values, base)) if values and len(values) == len(base) else None


def _growth(points: Sequence[MemoryPoint]) -> float | None:
    """What the second doubling of the length adds over what the first one adds; 2 is linear, 4 quadratic."""
    added = {point.tokens: point.added_bytes for point in points}
    low, middle, high = (added.get(length) for length in _GROWTH_LENGTHS)
    if low is None or middle is None or high is None or middle <= low:
        return None
    return (high - middle) / (middle - low)
