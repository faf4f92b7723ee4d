"""What planning gives: the candidates in order, and who was left out and why."""

from __future__ import annotations

from dataclasses import dataclass

from ..contract import BackendId, Drop
from ..taxonomy import Capability, Kind

__all__ = ["Plan", "PlannedCandidate"]


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """A candidate, what it is asked for, and what core computes from its answer (None: the answer is the answer)."""

    backend_id: BackendId
    asks: Capability
    derives: Capability | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The candidates of one kind of request, in the order they would be tried; there is at least one."""

    kind: Kind
    logical_name: str
    capability: Capability
    candidates: tuple[PlannedCandidate, ...]
    drops: tuple[Drop, ...] = ()

    @property
    def first(self) -> PlannedCandidate:
        """The candidate that is tried first."""
        return self.candidates[0]
