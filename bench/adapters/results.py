"""What a run of the adapters benchmark leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine import Machine
from ..protocol import RunTime, SubjectFacts

__all__ = ["AdaptersReport", "Gate", "ServingResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingResult:
    """One way to serve the six tasks; with a ``failure`` the rest is what had been measured by then.

    :param bytes: of all files it reads, which is what has to be downloaded or shipped.
    :param start_seconds: from the start of the process to the first answers to all tasks; the files were in the page
        cache, as they had just been written.
    :param warm_seconds: of what it does before anything is timed.
    :param resident_bytes: after the first answers, less ``empty_bytes``, those of a process with the same libraries and
        no model.
    :param ones: per round, seconds of each request for one task; :param alls: for all six; :param crowds: the rounds of
        16 texts at once, all six tasks each.
    :param difference: the largest difference of a logit from that of the merged models in vsr.
    """

    name: str
    label: str
    failure: str | None = None
    facts: SubjectFacts | None = None
    bytes: int = 0
    start_seconds: float | None = None
    warm_seconds: float | None = None
    resident_bytes: int | None = None
    ones: tuple[tuple[float, ...], ...] = ()
    alls: tuple[tuple[float, ...], ...] = ()
    crowds: tuple[RunTime, ...] = ()
    difference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A number the design is held to: ``value`` is at most (or at least) ``bound``."""

    name: str
    value: float | None
    bound: float
    at_most: bool = True

    @property
    def met(self) -> bool | None:
        """Whether it holds; None where it was not measured."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersReport:
    """A run as a whole."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    shape: str
    precision: str
    empty_bytes: int | None
    results: tuple[ServingResult, ...]
    gates: tuple[Gate, ...]
