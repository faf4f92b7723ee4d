"""The operations of the facade: what each asks a candidate, and how the answers become its result."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..contract import (
    ClassificationResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    InferenceRequest,
    ModelSpec,
    PairClassificationRequest,
    RerankingRequest,
    RerankingResponse,
    Response,
    SequenceClassificationRequest,
    SimilarityResponse,
    TaggingResponse,
    TokenClassificationRequest,
)
from ..errors import InferenceError, RequestError, VsrError
from ..routing import PlannedCandidate
from .answers import checked_labels, checked_ranking, checked_spans, checked_vectors
from .derived import rerank_by_vectors, similarities

__all__ = ["Classify", "Embed", "Operation", "Rerank", "Similarity", "Tag"]

A = TypeVar("A", bound=Response)
R_co = TypeVar("R_co", bound=Response, covariant=True)


class Operation(Protocol[R_co]):
    """An operation of the facade, once its arguments are read."""

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        """What to ask a candidate."""
        ...

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        """The error of a candidate in the caller's words, who may have called the texts by other names.

        :param asked: which of the ``of`` requests failed, counted from 0.
        """
        ...

    def result(self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]) -> R_co:
        """The result, from the answers to those requests in order."""
        ...


@dataclass(frozen=True, slots=True)
class Embed:
    """One embedding request, answered by the backend."""

    request: EmbeddingRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (self.request,)

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        return error

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> EmbeddingResponse:
        return checked_vectors(_expect(responses[0], EmbeddingResponse, candidate), len(self.request.texts))


@dataclass(frozen=True, slots=True)
class Similarity:
    """Computed from the vectors of all texts, asked for in one request."""

    text: str
    candidates: tuple[str, ...]

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (EmbeddingRequest(texts=(self.text, *self.candidates)),)

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        return _renamed(error, lambda index: "text" if index == 0 else f"candidates[{index - 1}]")

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> SimilarityResponse:
        response = checked_vectors(_expect(responses[0], EmbeddingResponse, candidate), 1 + len(self.candidates))
        return similarities(response, spec.similarity if spec else "cosine")


@dataclass(frozen=True, slots=True)
class Rerank:
    """Answered by a reranker, or computed from vectors where the candidate embeds."""

    request: RerankingRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        if candidate.derives is None:
            return (self.request,)
        ask, tell = _retrieval_prompts(spec)
        query, documents, truncate = (self.request.query,), self.request.documents, self.request.truncate
        if ask == tell:
            return (EmbeddingRequest(texts=query + documents, prompt=ask, truncate=truncate),)
        return (
            EmbeddingRequest(texts=query, prompt=ask, truncate=truncate),
            EmbeddingRequest(texts=documents, prompt=tell, truncate=truncate),
        )

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        first = 1 if of == 1 else 0  # the query leads the documents, or is asked for by itself
        if of == 2 and asked == 0:
            return _renamed(error, lambda _: "query")
        return _renamed(error, lambda index: "query" if index < first else f"documents[{index - first}]")

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


@dataclass(frozen=True, slots=True)
class Classify:
    """One request about texts or pairs, each of which gets a label."""

    request: SequenceClassificationRequest | PairClassificationRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (self.request,)

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        return error

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> ClassificationResponse:
        response, request = _expect(responses[0], ClassificationResponse, candidate), self.request
        count = len(request.pairs if isinstance(request, PairClassificationRequest) else request.texts)
        return checked_labels(response, count)


@dataclass(frozen=True, slots=True)
class Tag:
    """One request for the labelled spans of texts."""

    request: TokenClassificationRequest

    def requests(self, candidate: PlannedCandidate, spec: ModelSpec | None) -> tuple[InferenceRequest[Response], ...]:
        return (self.request,)

    def blame(self, error: VsrError, *, asked: int, of: int) -> VsrError:
        return error

    def result(
        self, candidate: PlannedCandidate, spec: ModelSpec | None, responses: Sequence[Response]
    ) -> TaggingResponse:
        return checked_spans(_expect(responses[0], TaggingResponse, candidate), self.request.texts)


def _renamed(error: VsrError, name: Callable[[int], str]) -> VsrError:
    """The same error, with ``texts[i]`` called what the caller calls it."""

    def called(text: str) -> str:
        return re.sub(r"\btexts\[(\d+)\]", lambda found: name(int(found[1])), text)

    renamed = copy.copy(error)
    renamed.message = called(error.message)
    renamed.args = (renamed.message,)
    if isinstance(renamed, RequestError) and renamed.param is not None:
        renamed.param = called(renamed.param)
    return renamed


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
