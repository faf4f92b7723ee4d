"""What a facade call comes to: a plan of who may answer, and the operation to ask them for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, get_args

from ..contract import (
    Aggregation,
    CallContext,
    ClassificationResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    PairClassificationRequest,
    RerankingRequest,
    RerankingResponse,
    Response,
    SequenceClassificationRequest,
    SimilarityResponse,
    TaggingResponse,
    TokenClassificationRequest,
    Truncation,
    check_pairs,
    check_texts,
)
from ..routing import Plan, Planner, Requirements
from ..taxonomy import Capability, Kind
from .arguments import Hints, call_context, check_choice, check_count, check_text, check_truth, implied_features
from .operations import Classify, Embed, Operation, Rerank, Similarity, Tag

__all__ = ["Ask", "Asking"]

R_co = TypeVar("R_co", bound=Response, covariant=True)

_CUTS: tuple[Truncation, ...] = ("error", "end", "start")
"""What may become of a text that gets one vector; windows would give several."""


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
        truncate: Truncation,
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
            truncate=check_choice(truncate, "truncate", _CUTS),
        )
        needs = Requirements.of(
            Kind.EMBEDDING,
            Capability.EMBEDDING,
            derived=implied_features(dimensions=dimensions, layer=layer),
            requires=requires,
        )
        return Ask(self._planner.plan(needs, model), Embed(request), call_context(timeout, hints))

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
        operation = Similarity(check_text(text, "text"), check_texts(candidates, "candidates"))
        needs = Requirements.of(Kind.EMBEDDING, Capability.SIMILARITY, requires=requires)
        return Ask(self._planner.plan(needs, model), operation, call_context(timeout, hints))

    def rerank(
        self,
        query: str,
        documents: str | Sequence[str],
        *,
        top_n: int | None,
        model: str,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[RerankingResponse]:
        """Plan a reranking."""
        request = RerankingRequest(
            query=check_text(query, "query"),
            documents=check_texts(documents, "documents"),
            top_n=check_count(top_n, "top_n"),
            truncate=_truncation(truncate),
        )
        needs = Requirements.of(Kind.RERANKING, Capability.RERANKING, requires=requires)
        return Ask(self._planner.plan(needs, model), Rerank(request), call_context(timeout, hints))

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        layer: int | None,
        logits: bool,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[ClassificationResponse]:
        """Plan the classification of texts."""
        request = SequenceClassificationRequest(
            texts=check_texts(texts),
            layer=check_count(layer, "layer"),
            logits=check_truth(logits, "logits"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Classify(request), call_context(timeout, hints))

    def nli(
        self,
        pairs: tuple[str, str] | Sequence[tuple[str, str]],
        *,
        model: str,
        layer: int | None,
        logits: bool,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[ClassificationResponse]:
        """Plan the classification of pairs."""
        request = PairClassificationRequest(
            pairs=check_pairs(pairs),
            layer=check_count(layer, "layer"),
            logits=check_truth(logits, "logits"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Classify(request), call_context(timeout, hints))

    def tag(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        aggregation: Aggregation,
        layer: int | None,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[TaggingResponse]:
        """Plan the tagging of texts."""
        request = TokenClassificationRequest(
            texts=check_texts(texts),
            aggregation=check_choice(aggregation, "aggregation", get_args(Aggregation)),
            layer=check_count(layer, "layer"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Tag(request), call_context(timeout, hints))


def _needs(capability: Capability, layer: int | None, requires: Sequence[str]) -> Requirements:
    return Requirements.of(capability.kind, capability, derived=implied_features(layer=layer), requires=requires)


def _truncation(truncate: Truncation) -> Truncation:
    return check_choice(truncate, "truncate", get_args(Truncation))
