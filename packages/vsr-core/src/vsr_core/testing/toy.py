"""A backend that needs no framework: it loads any checkpoint and embeds by hashing, and does as a test tells it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np

from ..contract import (
    BackendAdapter,
    BackendContext,
    BackendDescriptor,
    BlockingModelHandle,
    CallContext,
    CapabilitySet,
    Choice,
    EmbeddingRequest,
    EmbeddingResponse,
    Envelope,
    InferenceRequest,
    InputReport,
    LoadRequest,
    ModelInfo,
    Response,
    RuntimeInfo,
    Selector,
    Supported,
    Usage,
    hookimpl,
)
from ..errors import CapabilityError
from ..taxonomy import Capability, Feature

__all__ = ["ToyBackend", "ToyHandle", "ToyPlugin"]

R = TypeVar("R", bound=Response)

DIMENSIONS = 8


class ToyHandle(BlockingModelHandle):
    """Embeds a text as numbers drawn from its hash and the generation of the handle.

    Using it after it was closed is an ``AssertionError``, a fault of its user; ``closings`` counts how often it was closed.
    """

    def __init__(self, backend: ToyBackend, request: LoadRequest, generation: int) -> None:
        self._backend = backend
        self._info = ModelInfo(
            backend_id=request.backend_id,
            capabilities=(Capability.EMBEDDING,),
            family=request.spec.family,
            artifact=request.spec.artifact,
            dimensions=(DIMENSIONS,),
            device=Choice(requested=str(request.device), actual="cpu"),
            dtype=Choice(requested=str(request.precision), actual="float32"),
            revision=str(generation),
            content_hash=request.spec.content_hash,
            memory_bytes=DIMENSIONS * 4,
        )
        self.closed = False
        self.closings = 0

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def infer(self, request: InferenceRequest[R], call: CallContext) -> R:
        return self.infer_blocking(request, call)

    def infer_blocking(self, request: InferenceRequest[R], call: CallContext) -> R:
        if self.closed:
            raise AssertionError("the handle was used after it was closed")
        call.check()
        if not isinstance(request, EmbeddingRequest):
            raise CapabilityError(f"{self._info.backend_id} only embeds", backend_id=str(self._info.backend_id))
        if self._backend.before_inference is not None:
            self._backend.before_inference()
        return cast("R", self._embed(request, call))

    async def close(self) -> None:
        self.closings += 1
        self.closed = True
        self._backend.open_handles.discard(self)

    def _embed(self, request: EmbeddingRequest, call: CallContext) -> EmbeddingResponse:
        seeds = [hashlib.sha256(f"{self._info.revision}:{text}".encode()).digest() for text in request.texts]
        vectors = [np.frombuffer(seed[: DIMENSIONS * 4], np.uint32) / 2**32 - 0.5 for seed in seeds]
        return EmbeddingResponse(
            envelope=Envelope(
                backend_id=self._info.backend_id,
                request_id=call.request_id,
                revision=self._info.revision,
                dtype="float32",
                dimensions=DIMENSIONS,
                inputs=tuple(InputReport(tokens=len(text), truncated=False) for text in request.texts),
                usage=Usage(input_tokens=sum(map(len, request.texts))),
            ),
            vectors=np.array(vectors, np.float32),
        )


class ToyBackend(BackendAdapter):
    """The backend ``toy``. A test reaches it through ``BackendInstances.adapter("toy")``.

    ``before_load`` and ``before_inference`` are called where the name says, and may block or raise.
    """

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name
        self.loads: list[LoadRequest] = []
        self.open_handles: set[ToyHandle] = set()
        self.load_threads: set[str] = set()
        self.before_load: Callable[[], None] | None = None
        self.before_inference: Callable[[], None] | None = None

    def capabilities(self) -> CapabilitySet:
        rules = [(Selector(capability=Capability.EMBEDDING), Supported())]
        rules += [(Selector(capability=Capability.EMBEDDING, feature=Feature.BATCHING), Supported())]
        return CapabilitySet.of(rules)

    def probe(self) -> RuntimeInfo:
        return RuntimeInfo(usable=True, devices=("cpu",), dtypes=("float32",))

    def load(self, request: LoadRequest) -> ToyHandle:
        self.load_threads.add(threading.current_thread().name)
        if self.before_load is not None:
            self.before_load()
        self.loads.append(request)
        handle = ToyHandle(self, request, len(self.loads))
        self.open_handles.add(handle)
        return handle


class ToyPlugin:
    """The plugin object to register on a host: ``host.register(ToyPlugin(), name="toy")``."""

    @hookimpl
    def vsr_backends(self) -> list[BackendDescriptor]:
        """The backend ``toy``."""
        return [
            BackendDescriptor(
                name="toy", contract="1.0", factory="vsr_core.testing.toy:ToyBackend", summary="Embeds by hashing"
            )
        ]
