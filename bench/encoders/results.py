"""What a run of the encoder benchmark leaves behind: every call, every peak, and the summary made of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..machine import Machine
from ..protocol import ForwardMemory, ForwardTimes, SubjectFacts
from ..stats import Spread
from .shapes import ModernBertShape
from .workloads import Workload

__all__ = [
    "MAX_DIFFERENCE",
    "Agreement",
    "ContestantResult",
    "EncodersReport",
    "EncodersSummary",
    "MemoryPoint",
    "WorkloadSummary",
    "WorkloadTimes",
    "problems",
]

MAX_DIFFERENCE = 1e-4
"""Below this, answers in float32 are the same but for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """One contestant's calls of one workload, in the order of the rounds."""

    workload: str
    rounds: tuple[ForwardTimes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """What a text of a length took; or why that is not known."""

    tokens: int
    memory: ForwardMemory | None = None
    failure: str | None = None

    @property
    def added_bytes(self) -> int | None:
        """The peak above what was resident before; None where the system does not say."""
        found = self.memory
        if found is None or found.peak_bytes is None or found.resident_bytes is None:
            return None
        return found.peak_bytes - found.resident_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestantResult:
    """One contestant as it ran; with a ``failure`` the rest is what had been measured by then."""

    name: str
    label: str
    failure: str | None = None
    facts: SubjectFacts | None = None
    load_seconds: float | None = None
    times: tuple[WorkloadTimes, ...] = ()
    memory: tuple[MemoryPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far the vectors of the engine are from those of transformers, both to the full depth.

    :param difference: the largest of any feature; :param largest: the largest feature by its size.
    """

    workload: str
    difference: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSummary:
    """One workload in the numbers of the table.

    :param texts: in its batch; :param tokens: of all of them.
    :param seconds: by contestant, over the medians of the rounds.
    :param to_peer: seconds of the engine over those of transformers, round by round.
    :param exit_to_full: seconds of the engine leaving early over those of the engine, round by round.
    :param others: processors that other processes kept busy meanwhile, on average.
    """

    name: str
    texts: int
    tokens: int
    seconds: dict[str, Spread]
    to_peer: Spread | None
    exit_to_full: Spread | None
    agreement: Agreement | None
    others: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodersSummary:
    """The numbers of the tables.

    :param growth: by contestant, what 4,096 more tokens than 4,096 add over what 2,048 more than 2,048 add.
    """

    workloads: tuple[WorkloadSummary, ...]
    growth: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodersReport:
    """A whole run. ``load_average`` is from before anything was started, and from the end."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    shape: ModernBertShape
    dtype: str
    workloads: tuple[Workload, ...]
    contestants: tuple[ContestantResult, ...]
    agreements: tuple[Agreement, ...]
    summary: EncodersSummary
    notes: tuple[str, ...] = field(default=())


def problems(report: EncodersReport) -> tuple[str, ...]:
    """What failed, and in float32 every workload to which the two give different answers."""
    found = [f"{each.name} failed: {each.failure}" for each in report.contestants if each.failure is not None]
    found += [
        f"{each.name} failed at {point.tokens} tokens: {point.failure}"
        for each in report.contestants
        for point in each.memory
        if point.failure is not None
    ]
    if report.dtype == "float32":
        found += [
            f"{each.workload}: the answers differ by {each.difference:.1e}, more than {MAX_DIFFERENCE:g}"
            for each in report.agreements
            if not each.difference < MAX_DIFFERENCE  # NaN is no agreement either
        ]
    return tuple(found)
