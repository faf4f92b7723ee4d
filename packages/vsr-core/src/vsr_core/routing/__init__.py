"""From a name to the candidates that may serve it; all of it pure, so that both facades and the tests drive it."""

from __future__ import annotations

from .plan import Plan, PlannedCandidate
from .planner import Planner
from .requirements import Requirements
from .resolve import Resolver

__all__ = ["Plan", "PlannedCandidate", "Planner", "Requirements", "Resolver"]
