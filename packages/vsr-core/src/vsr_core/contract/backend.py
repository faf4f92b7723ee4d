"""What a backend implements: an adapter that says what it can do and loads models, and the handles it returns."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import CapabilityError, DeadlineExceededError, VsrError
from .address import BackendId
from .capabilities import CapabilitySet
from .info import ModelInfo, RuntimeInfo
from .load import LoadRequest
from .model import CatalogEntry, FamilyDescriptor
from .requests import GenerationRequest, InferenceRequest
from .responses import GenerationEvent, Response

__all__ = [
    "BackendAdapter",
    "BackendContext",
    "BlockingModelHandle",
    "CallContext",
    "InferenceGateway",
    "JointCall",
    "JointModelHandle",
    "ModelHandle",
]

R = TypeVar("R", bound=Response)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who is calling, and until when.

    :param deadline: on the clock of ``time.monotonic``, or None for no deadline; ``timeout`` is what the caller gave.
    :param attempt_id: one per candidate tried; ``request_id`` is shared by all attempts of a request.
    """

    request_id: str
    attempt_id: str | None = None
    deadline: float | None = None
    timeout: float | None = None
    tenant: str | None = None
    idempotency_key: str | None = None

    def remaining(self) -> float | None:
        """Seconds left, at least 0, or None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raise :class:`DeadlineExceededError` if the deadline has passed."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlineExceededError(
                f"the deadline of {self.timeout:g} s passed" if self.timeout else "the deadline passed",
                timeout=self.timeout,
            )


class InferenceGateway(Protocol):
    """How a delegating backend reaches the others."""

    async def infer(self, backend_id: BackendId, request: InferenceRequest[R], call: CallContext) -> R:
        """Run a request on another backend; the attempt there is the one that counts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext:
    """What a backend's factory receives.

    :param name: the instance's name, which is its namespace.
    :param options: an instance of the options model the descriptor names, validated; None where it names none.
    :param families: the families that are known, by name, with what this backend needs for each.
    :param cache_dir: a folder of this backend's own that survives the process, created on use.
    :param threads: the compute threads of the process, shared by every engine in it.
    :param gateway: the way to other backends, for delegating ones.
    """

    name: str
    options: Any = None
    families: Mapping[str, FamilyDescriptor] = field(default_factory=dict)
    cache_dir: Path | None = None
    threads: int | None = None
    gateway: InferenceGateway | None = None


class ModelHandle(ABC):
    """What answers for one backend id until it is closed. Safe to use from any thread and any task."""

    @property
    @abstractmethod
    def info(self) -> ModelInfo:
        """What was loaded, as it really is."""

    @abstractmethod
    async def infer(self, request: InferenceRequest[R], call: CallContext) -> R:
        """Answer a request, honouring the deadline and cancellation.

        :raises CapabilityError: for a request this handle does not answer.
        :raises BackendError: where it failed.
        """

    def stream(self, request: GenerationRequest, call: CallContext) -> AsyncIterator[GenerationEvent]:
        """Answer a generation request piece by piece, ending with ``GenerationEnd``.

        :raises CapabilityError: at once, where the handle cannot stream.
        """
        raise CapabilityError(
            f"{self.info.backend_id} does not stream", backend_id=str(self.info.backend_id), reason="no streaming"
        )

    @abstractmethod
    async def close(self) -> None:
        """Free what was loaded; calling it again does nothing."""


class BlockingModelHandle(ModelHandle):
    """A handle that computes on threads of its own and can be waited for without an event loop."""

    @abstractmethod
    def infer_blocking(self, request: InferenceRequest[R], call: CallContext) -> R:
        """As :meth:`ModelHandle.infer`, blocking the calling thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointCall:
    """One of several requests that are answered together, each by its own handle."""

    handle: JointModelHandle
    request: InferenceRequest[Any]
    call: CallContext


class JointModelHandle(BlockingModelHandle):
    """A handle that can answer together with others that share what computes: one tokenisation, one batch."""

    @property
    @abstractmethod
    def joint_key(self) -> Hashable:
        """Handles with equal keys can answer together."""

    @abstractmethod
    def infer_together_blocking(self, calls: Sequence[JointCall]) -> list[Response | VsrError]:
        """Answer requests to handles of this one's key, in order; one that fails gives its error and fails alone.

        The deadline is that of the first call.
        """

    @abstractmethod
    async def infer_together(self, calls: Sequence[JointCall]) -> list[Response | VsrError]:
        """As :meth:`infer_together_blocking`, awaiting instead of blocking."""


class BackendAdapter(ABC):
    """An inference engine or provider."""

    namespace: str

    @abstractmethod
    def capabilities(self) -> CapabilitySet:
        """What is declared; cheap, and imports no framework."""

    @abstractmethod
    def probe(self) -> RuntimeInfo:
        """Look at this host; may import the framework. A failure is an answer (``usable=False``), not an exception."""

    @abstractmethod
    def load(self, request: LoadRequest) -> ModelHandle:
        """Load a model; blocks. Core calls it on the load thread of the runtime, one load at a time.

        :raises LoadError: it cannot be loaded; the message says what to do.
        """

    def discover_models(self) -> Sequence[CatalogEntry]:
        """The models an open namespace has to offer; none by default."""
        return ()

    async def close(self) -> None:
        """Free what the backend holds beyond its handles."""
        return
