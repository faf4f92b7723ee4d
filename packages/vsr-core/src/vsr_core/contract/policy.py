"""What routing policies see, are given, and answer.

A policy is any object with some of the methods of :class:`Filter`, :class:`Orderer`, :class:`Guard` and
:class:`Observer`. The core intersects what it answers with the permitted candidates, and owns the deadline and
the attempts.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Literal, Protocol, runtime_checkable

from ..taxonomy import Capability, Kind
from .address import BackendId
from .attempt import AttemptRecord
from .backend import InferenceGateway

__all__ = [
    "Allow",
    "Candidate",
    "Clock",
    "Counters",
    "Drop",
    "Filter",
    "Guard",
    "GuardVerdict",
    "HealthView",
    "HintValue",
    "Observer",
    "Orderer",
    "PolicyContext",
    "Price",
    "RouteRequest",
    "RouteView",
    "Router",
    "Skip",
    "Stop",
]

HintValue = str | int | float | bool | None
"""What a hint or a signal may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, and per request; None is unknown, never free."""

    input: Decimal | None = None
    output: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None
    per_request: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    """How a candidate has been doing; ``until`` is when its cooldown ends, on the policy clock."""

    state: Literal["closed", "open", "half_open"] = "closed"
    until: float | None = None
    latency_ms: float | None = None
    samples: int = 0
    error_rate: float | None = None
    in_flight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One backend id that may serve the request.

    :param position: its place in the declared order, from 0.
    :param window: tokens it can read and write together, or None where unknown.
    :param compatibility_key: see ``ModelInfo.compatibility_key``.
    """

    backend_id: BackendId
    position: int
    window: int | None = None
    price: Price | None = None
    compatibility_key: str | None = None
    tags: frozenset[str] = frozenset()
    health: HealthView = HealthView()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """What is being routed; no texts."""

    request_id: str
    kind: Kind
    capability: Capability
    logical_name: str
    role: str | None = None
    requires: frozenset[str] = frozenset()
    hints: Mapping[str, HintValue] = field(default_factory=dict)
    tenant: str | None = None
    stream: bool = False
    timeout: float | None = None
    signals: Mapping[str, HintValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """An immutable snapshot: candidates already filtered by capability, in declared order."""

    request: RouteRequest
    candidates: tuple[Candidate, ...]
    now: float
    seed: int = 0


class Clock(Protocol):
    """Where policies read the time."""

    def now(self) -> float:
        """Seconds on a monotonic clock."""
        ...


class Counters(Protocol):
    """Counters shared by the policies of a runtime, and by processes where a ledger is shared."""

    async def add(self, key: str, amount: Decimal, *, window: str) -> Decimal:
        """Add to a counter of a window (``day``, ``week``, ``month``, ``lifetime``) and return its value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """What a policy's factory receives."""

    name: str
    options: object = None
    clock: Clock | None = None
    random: random.Random | None = None
    counters: Counters | None = None
    gateway: InferenceGateway | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A candidate left out, and why."""

    backend_id: BackendId
    reason: str
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class Allow:
    """Go ahead."""

    tag: ClassVar[str] = "allow"


@dataclass(frozen=True, slots=True)
class Skip:
    """Not this candidate; try the next."""

    tag: ClassVar[str] = "skip"
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """No candidate at all."""

    tag: ClassVar[str] = "stop"
    reason: str


GuardVerdict = Allow | Skip | Stop


@runtime_checkable
class Filter(Protocol):
    """Leaves candidates out. Pure and quick: no I/O. Failing means the request fails (closed)."""

    def filter(self, view: RouteView) -> Sequence[Drop]:
        """The candidates to drop."""
        ...


@runtime_checkable
class Orderer(Protocol):
    """Orders candidates by a key, lower first. Pure and quick: no I/O. Failing means no opinion."""

    def key(self, view: RouteView, candidate: Candidate) -> float:
        """The sort key of one candidate; equal keys keep the order so far."""
        ...


@runtime_checkable
class Guard(Protocol):
    """Has the last word before each attempt. Failing means the attempt is not made (closed)."""

    async def before_attempt(self, view: RouteView, candidate: Candidate) -> GuardVerdict:
        """Whether this attempt may be made."""
        ...


@runtime_checkable
class Observer(Protocol):
    """Is told of every attempt; failing harms nobody."""

    def on_attempt(self, record: AttemptRecord) -> None:
        """Take note."""
        ...


@runtime_checkable
class Router(Protocol):
    """Decides the order of candidates as a whole."""

    def route(self, view: RouteView) -> Sequence[BackendId]:
        """The candidates to try, in order; the core drops what the view does not permit."""
        ...
