"""What the embedding benchmark's numbers are held against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .results import EmbedReport

__all__ = ["AIMS", "Aim", "Outcome", "outcomes"]

Measure = Literal["x raw loop", "x st-fp32", "mean cosine"]


@dataclass(frozen=True, slots=True)
class Aim:
    """The least that a variant should come to."""

    variant: str
    measure: Measure
    least: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """An aim and what it came to."""

    aim: Aim
    measured: float

    @property
    def met(self) -> bool:
        """Whether the aim was reached, by the number as it is."""
        return self.measured >= self.aim.least


AIMS: tuple[Aim, ...] = (
    *(
        Aim(variant, "x raw loop", 0.9)
        for variant in ("vsr-fp32", "vsr-auto", "vsr-onnx", "vsr-openvino", "vsr-openvino-bf16")
    ),
    Aim("vsr-onnx", "x st-fp32", 2.5),
    Aim("vsr-openvino", "x st-fp32", 2.7),
    Aim("vsr-openvino-bf16", "x st-fp32", 4.8),
    Aim("vsr-onnx-int8", "mean cosine", 0.995),
)
"""The runtime should cost at most a tenth of what its engine does alone; 8 bits should stay the same model."""


def outcomes(report: EmbedReport) -> Iterator[Outcome]:
    """What the aims came to, as far as a run has the numbers for them."""
    summaries = {summary.name: summary for summary in report.summary}
    cosines = {variant.name: variant.cosine for variant in report.variants}
    for aim in AIMS:
        summary, cosine = summaries.get(aim.variant), cosines.get(aim.variant)
        if summary is None:
            continue
        measured = {
            "x raw loop": summary.to_raw,
            "x st-fp32": summary.to_peer,
            "mean cosine": None if cosine is None else cosine.mean,
        }[aim.measure]
        if measured is not None:
            yield Outcome(aim, measured)
