"""What a run of the embedding benchmark leaves behind: raw rounds, and the summary made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from .machine import Machine
from .protocol import RunTime, SubjectFacts, SweepPoint
from .stats import Spread

__all__ = ["SCHEMA", "CosineRange", "EmbedReport", "Summary", "VariantResult", "read_report", "to_json"]

SCHEMA = 1
"""Rises when a key changes its meaning or goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineRange:
    """The cosine of each text's vector to the reference's: the mean over all texts, and the least."""

    mean: float
    minimum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """One variant as it ran; with a ``failure`` the rest is what had been measured by then.

    :param engine: what computed: ``torch``, ``onnx`` or ``openvino``.
    :param tokens: the variant's own count of what it read.
    :param rounds: one pass over all texts per round, in the order of the rounds.
    :param singles: per round, seconds of each text asked by itself.
    """

    name: str
    label: str
    engine: str = "torch"
    failure: str | None = None
    facts: SubjectFacts | None = None
    tokens: int | None = None
    load_seconds: float | None = None
    resident_bytes: int | None = None
    sweep: tuple[SweepPoint, ...] = ()
    rounds: tuple[RunTime, ...] = ()
    singles: tuple[tuple[float, ...], ...] = ()
    cosine: CosineRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One variant in the numbers of the table.

    :param to_peer: throughput over that of ``st-fp32``, median of the rounds' ratios.
    :param to_raw: likewise over the raw loop ``raw_baseline``, the one of the same engine and dtype.
    :param single_p50: seconds of a text asked by itself; ``single_p99`` likewise.
    :param peak_bytes: the most memory resident in any round.
    :param others: processors other processes kept busy during the rounds, on average over the variant's rounds.
    """

    name: str
    dtype: str
    texts_per_second: Spread
    tokens_per_second: Spread
    to_peer: float | None
    to_raw: float | None
    raw_baseline: str | None
    single_p50: float | None
    single_p99: float | None
    peak_bytes: int | None
    others: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedReport:
    """A whole run.

    :param tokens: of all texts, counted once for every variant; ``truncated_to`` is the limit it was counted at.
    :param load_average: of the machine, before anything was started and after the last round.
    :param notes: what went wrong beside the variants themselves, or disagrees.
    """

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    model: str
    texts: int
    tokens: int
    truncated_to: int
    variants: tuple[VariantResult, ...]
    summary: tuple[Summary, ...]
    notes: tuple[str, ...] = field(default=())


def to_json(report: object) -> str:
    """A report, a dataclass, as indented JSON."""
    return TypeAdapter(type(report)).dump_json(report, indent=2).decode() + "\n"


def read_report(path: Path) -> EmbedReport:
    """Read what an earlier run wrote.

    :raises ValueError: it is no such report, or of another schema.
    """
    report = TypeAdapter(EmbedReport).validate_json(path.read_bytes())
    if report.schema != SCHEMA:
        raise ValueError(f"{path.name!r} has schema {report.schema}, this version reads {SCHEMA}")
    return report
