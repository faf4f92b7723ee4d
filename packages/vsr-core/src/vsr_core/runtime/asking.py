"""What a facade call comes to: a plan, what to ask the candidate, and how its answers become the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..contract import (
    CallContext,
    EmbeddingRequest,
    EmbeddingResponse,
    InferenceRequest,
    ModelSpec,
    RerankingRequest,
    RerankingResponse,
    Response,
    SimilarityResponse,
    check_texts,
)
from ..errors import InferenceError
from ..routing import Plan, PlannedCandidate, Planner, Requirements
from ..taxonomy import Capability, Kind
from .answers import checked_ranking, checked_vectors
from .arguments import Hints, call_context, check_count, check_text, implied_features
from .derived import rerank_by_vectors, similarities

__all__ = ["Ask", "Asking", "Operation"]

A = TypeVar("A", bound=Response)
R_co = TypeVar("R_co", bound=Response, covariant=True)


class Operation(Protocol[R_co]):
    """An operation of the facade, once its arguments are read."""

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        """What to ask a candidate."""
        ...

    def result(self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]) -> R_co:
        """The result, from the answers to those requests in order."""
        ...


@dataclass(frozen=True, slots=True)
class Ask(Generic[R_co]):
    """A planned call that has not been made yet."""

    plan: Plan
    operation: Operation[R_co]
    call: CallContext


class Asking:
    """Turns the arguments of facade calls into asks; everything it raises, it raises from the plain call."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        dimensions: int | None,
        layer: int | None,
        prompt: str | None,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[EmbeddingResponse]:
        """Plan an embedding."""
        request = EmbeddingRequest(
            texts=check_texts(texts),
            dimensions=check_count(dimensions, "dimensions"),
            layer=check_count(layer, "layer"),
            prompt=prompt if prompt is None else check_text(prompt, "prompt"),
        )
        needs = Requirements.of(
            Kind.EMBEDDING,
            Capability.EMBEDDING,
            derived=implied_features(dimensions=dimensions, layer=layer),
            requires=requires,
        )
        return Ask(self._planner.plan(needs, model), _Embed(request), call_context(timeout, hints))

    def similarity(
        self,
        text: str,
        candidates: str | Sequence[str],
        *,
        model: str,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[SimilarityResponse]:
        """Plan the similarity of one text to others."""
        operation = _Similarity(check_text(text, "text"), check_texts(candidates, "candidates"))
        needs = Requirements.of(Kind.EMBEDDING, Capability.SIMILARITY, requires=requires)
        return Ask(self._planner.plan(needs, model), operation, call_context(timeout, hints))

    def rerank(
        self,
        query: str,
        documents: str | Sequence[str],
        *,
        top_n: int | None,
        model: str,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[RerankingResponse]:
        """Plan a reranking."""
        request = RerankingRequest(
            query=check_text(query, "query"),
            documents=check_texts(documents, "documents"),
            top_n=check_count(top_n, "top_n"),
        )
        needs = Requirements.of(Kind.RERANKING, Capability.RERANKING, requires=requires)
        return Ask(self._planner.plan(needs, model), _Rerank(request), call_context(timeout, hints))


@dataclass(frozen=True, slots=True)
class _Embed:
    request: EmbeddingRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (self.request,)

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> EmbeddingResponse:
        return checked_vectors(_expect(responses[0], EmbeddingResponse, candidate), len(self.request.texts))


@dataclass(frozen=True, slots=True)
class _Similarity:
    text: str
    candidates: tuple[str, ...]

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (EmbeddingRequest(texts=(self.text, *self.candidates)),)

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> SimilarityResponse:
        response = checked_vectors(_expect(responses[0], EmbeddingResponse, candidate), 1 + len(self.candidates))
        return similarities(response, spec.similarity if spec else "cosine")


@dataclass(frozen=True, slots=True)
class _Rerank:
    request: RerankingRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        if candidate.derives is None:
            return (self.request,)
        ask, tell = _retrieval_prompts(spec)
        if ask == tell:
            return (EmbeddingRequest(texts=(self.request.query, *self.request.documents), prompt=ask),)
        return (
            EmbeddingRequest(texts=(self.request.query,), prompt=ask),
            EmbeddingRequest(texts=self.request.documents, prompt=tell),
        )

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> RerankingResponse:
        if candidate.derives is None:
            return checked_ranking(_expect(responses[0], RerankingResponse, candidate), self.request)
        counts = (1 + len(self.request.documents),) if len(responses) == 1 else (1, len(self.request.documents))
        vectors = [
            checked_vectors(_expect(response, EmbeddingResponse, candidate), count)
            for response, count in zip(responses, counts, strict=True)
        ]
        return rerank_by_vectors(vectors, spec.similarity if spec else "cosine", top_n=self.request.top_n)


def _retrieval_prompts(spec: ModelSpec | None) -> tuple[str | None, str | None]:
    """The names of the prompts for queries and documents, by the names sentence-transformers looks for.

    None is the checkpoint's default prompt.
    """
    prompts = spec.prompts or {} if spec is not None else {}
    ask = "query" if "query" in prompts else None
    tell = next((name for name in ("document", "passage", "corpus") if name in prompts), None)
    return ask, tell


def _expect(response: object, kind: type[A], candidate: PlannedCandidate) -> A:
    if not isinstance(response, kind):
        backend_id = str(candidate.backend_id)
        raise InferenceError(
            f"{backend_id} answered with a {type(response).__name__} instead of a {kind.__name__}",
            backend_id=backend_id,
        )
    return response
