"""A backend that needs no framework: it loads any checkpoint, answers by hashing, and does as a test tells it."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ..contract import (
    BackendAdapter,
    BackendContext,
    BackendDescriptor,
    BlockingModelHandle,
    CallContext,
    CapabilitySet,
    Choice,
    ClassificationResponse,
    ClassificationResult,
    EmbeddingRequest,
    EmbeddingResponse,
    Envelope,
    InferenceRequest,
    InputReport,
    LoadRequest,
    ModelInfo,
    PairClassificationRequest,
    RerankingRequest,
    RerankingResponse,
    RerankResult,
    Response,
    RuntimeInfo,
    Selector,
    SequenceClassificationRequest,
    Span,
    Supported,
    TaggingResponse,
    TaggingResult,
    TokenClassificationRequest,
    Usage,
    hookimpl,
)
from ..errors import CapabilityError
from ..taxonomy import Capability, Feature

__all__ = ["ToyBackend", "ToyHandle", "ToyPlugin"]

R = TypeVar("R", bound=Response)

DIMENSIONS = 8
ANSWERED = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
    Capability.RERANKING,
)


class ToyHandle(BlockingModelHandle):
    """Answers with numbers drawn from the hash of a text and the generation of the handle.

    Every word in upper case is a span with the label ``UPPER``. A document that is its query scores 1, any other less.
    Using the handle after it was closed is an ``AssertionError``, a fault of its user; ``closings`` counts how often it
    was closed.
    """

    def __init__(self, backend: ToyBackend, request: LoadRequest, generation: int) -> None:
        self._backend = backend
        self._entry = request.entry
        self._labels = request.labels or request.spec.labels or ("LABEL_0", "LABEL_1")
        capabilities = tuple(item for item in request.spec.capabilities if item in ANSWERED)
        self._info = ModelInfo(
            backend_id=request.backend_id,
            capabilities=capabilities,
            family=request.spec.family,
            artifact=request.spec.artifact,
            dimensions=(DIMENSIONS,) if Capability.EMBEDDING in capabilities else (),
            labels=request.labels or request.spec.labels,
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
        if request.capability not in self._info.capabilities:
            name = str(self._info.backend_id)
            raise CapabilityError(f"{name} does not answer {request.capability} requests", backend_id=name)
        self._backend.asked.append(request)
        if self._backend.before_inference is not None:
            self._backend.before_inference()
        return cast("R", self._answer(request, call))

    async def close(self) -> None:
        self.closings += 1
        self.closed = True
        self._backend.open_handles.discard(self)

    def _answer(self, request: InferenceRequest[Any], call: CallContext) -> Response:
        match request:
            case EmbeddingRequest():
                return self._embed(request, call)
            case SequenceClassificationRequest():
                return self._classify(request, request.texts, call)
            case PairClassificationRequest():
                return self._classify(request, ["\t".join(pair) for pair in request.pairs], call)
            case TokenClassificationRequest():
                results = tuple(TaggingResult(spans=_upper(text), truncated=False) for text in request.texts)
                return TaggingResponse(envelope=self._envelope(request.texts, call, request.layer), results=results)
            case RerankingRequest():
                return self._rerank(request, call)
        raise AssertionError(f"nobody answers a {type(request).__name__}")

    def _embed(self, request: EmbeddingRequest, call: CallContext) -> EmbeddingResponse:
        return EmbeddingResponse(
            envelope=self._envelope(request.texts, call, dimensions=DIMENSIONS),
            vectors=np.array([self._numbers(text) for text in request.texts], np.float32),
        )

    def _classify(
        self,
        request: SequenceClassificationRequest | PairClassificationRequest,
        texts: Sequence[str],
        call: CallContext,
    ) -> ClassificationResponse:
        results = tuple(self._label(text, logits=request.logits) for text in texts)
        return ClassificationResponse(envelope=self._envelope(texts, call, request.layer), results=results)

    def _label(self, text: str, *, logits: bool) -> ClassificationResult:
        numbers = [4 * self._numbers(f"{text}:{label}")[0] for label in self._labels]
        powers = [math.exp(number / self._entry.temperature) for number in numbers]
        distribution = {label: power / sum(powers) for label, power in zip(self._labels, powers, strict=True)}
        label = max(distribution, key=distribution.__getitem__)
        threshold, counting = self._entry.threshold, self._entry.positive_labels or self._labels
        return ClassificationResult(
            label=label,
            score=distribution[label],
            distribution=distribution,
            logits=tuple(numbers) if logits else None,
            passed=None if threshold is None else distribution[label] >= threshold and label in counting,
            truncated=False,
            tokens=len(text),
        )

    def _rerank(self, request: RerankingRequest, call: CallContext) -> RerankingResponse:
        scores = [
            1.0 if document == request.query else self._numbers(f"{request.query}:{document}")[0] / 2 + 0.5
            for document in request.documents
        ]
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: request.top_n]
        return RerankingResponse(
            envelope=self._envelope(request.documents, call),
            results=tuple(RerankResult(index=index, score=scores[index]) for index in order),
            score_kind="probability",
        )

    def _numbers(self, text: str) -> list[float]:
        """Numbers from -0.5 to 0.5 that stand for a text."""
        seed = hashlib.sha256(f"{self._info.revision}:{text}".encode()).digest()
        return [int.from_bytes(seed[at : at + 4], "little") / 2**32 - 0.5 for at in range(0, DIMENSIONS * 4, 4)]

    def _envelope(
        self, texts: Sequence[str], call: CallContext, layer: int | None = None, dimensions: int | None = None
    ) -> Envelope:
        """A token is a character."""
        return Envelope(
            backend_id=self._info.backend_id,
            request_id=call.request_id,
            revision=self._info.revision,
            dtype="float32",
            dimensions=dimensions,
            requested_layer=layer,
            layer=layer,
            inputs=tuple(InputReport(tokens=len(text), truncated=False) for text in texts),
            usage=Usage(input_tokens=sum(map(len, texts))),
        )


def _upper(text: str) -> tuple[Span, ...]:
    return tuple(
        Span(start=word.start(), end=word.end(), label="UPPER", score=1.0, text=word.group())
        for word in re.finditer(r"\w+", text)
        if word.group().isupper()
    )


class ToyBackend(BackendAdapter):
    """The backend ``toy``. A test reaches it through ``BackendInstances.adapter("toy")``.

    ``before_load`` and ``before_inference`` are called where the name says, and may block or raise; ``asked`` has every
    request that reached a handle.
    """

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name
        self.loads: list[LoadRequest] = []
        self.asked: list[InferenceRequest[Any]] = []
        self.open_handles: set[ToyHandle] = set()
        self.load_threads: set[str] = set()
        self.before_load: Callable[[], None] | None = None
        self.before_inference: Callable[[], None] | None = None

    def capabilities(self) -> CapabilitySet:
        """Early exit for classifiers alone, so that there is something to refuse."""
        rules = [(Selector(capability=capability), Supported()) for capability in ANSWERED]
        rules += [(Selector(capability=Capability.EMBEDDING, feature=Feature.BATCHING), Supported())]
        rules += [
            (Selector(capability=capability, feature=Feature.LAYER_EXIT), Supported())
            for capability in ANSWERED
            if capability not in (Capability.EMBEDDING, Capability.RERANKING)
        ]
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
                name="toy", contract="1.0", factory="vsr_core.testing.toy:ToyBackend", summary="Answers by hashing"
            )
        ]
