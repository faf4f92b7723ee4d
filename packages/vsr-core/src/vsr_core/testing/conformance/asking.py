"""Questions for every capability an encoder answers, and answers as numbers that can be compared."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...contract import (
    BlockingModelHandle,
    CallContext,
    ClassificationResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    FloatArray,
    InferenceRequest,
    ModelHandle,
    PairClassificationRequest,
    RerankingRequest,
    RerankingResponse,
    Response,
    SequenceClassificationRequest,
    TaggingResponse,
    TokenClassificationRequest,
    Truncation,
)
from ...taxonomy import Capability

__all__ = ["CROWD", "ODD_TEXTS", "TEXTS", "answer", "ask", "question", "texts_of", "vectors"]

TEXTS = (
    "the cat",
    "a dog is in the tree",
    "blue river bank of the red dog and two green trees",
    "query one",
    "it",
    "the answer to the query is three",
)
"""Texts of mixed lengths, no two alike."""

CROWD = tuple(
    f"the {colour} {thing}" for colour in ("red", "green", "blue") for thing in ("cat", "dog", "tree", "bank")
)
"""Texts of one length, which share a batch where others would not."""

ODD_TEXTS = ("", "   ", "\n\t", "\U0001f600 and \U0001f408", "a\x00b", "é" * 8, "cat " * 8)
"""Texts nobody would write, which are texts all the same."""

_OTHER = "a dog in the river"
"""The second text of each pair, and the query of each reranking."""


def question(
    capability: Capability, texts: Sequence[str], *, layer: int | None = None, truncate: Truncation | None = None
) -> InferenceRequest[Any]:
    """A request about texts: of pairs they are the first ones, for a reranking the documents.

    :raises NotImplementedError: the kit asks no questions of this capability.
    """
    given = tuple(texts)
    request: InferenceRequest[Any]
    match capability:
        case Capability.EMBEDDING:
            request = EmbeddingRequest(texts=given, layer=layer)
        case Capability.SEQUENCE_CLASSIFICATION:
            request = SequenceClassificationRequest(texts=given, layer=layer, logits=True)
        case Capability.PAIR_CLASSIFICATION:
            pairs = tuple((text, _OTHER) for text in given)
            request = PairClassificationRequest(pairs=pairs, layer=layer, logits=True)
        case Capability.TOKEN_CLASSIFICATION:
            request = TokenClassificationRequest(texts=given, aggregation="none", layer=layer)
        case Capability.RERANKING:
            request = RerankingRequest(query=_OTHER, documents=given)
        case _:
            raise NotImplementedError(f"the kit has no question for {capability}: give exercise() one")
    return request if truncate is None else replace(request, truncate=truncate)


def texts_of(request: InferenceRequest[Any]) -> tuple[str, ...]:
    """The texts that :func:`question` was given."""
    match request:
        case PairClassificationRequest():
            return tuple(first for first, _ in request.pairs)
        case RerankingRequest():
            return request.documents
    texts: tuple[str, ...] = request.texts  # type: ignore[attr-defined]
    return texts


def answer(handle: ModelHandle, request: InferenceRequest[Any], *, call: CallContext | None = None) -> Response:
    """Ask a handle as the blocking facade does."""
    context = call or CallContext(request_id="conformance")
    if isinstance(handle, BlockingModelHandle):
        found: Response = handle.infer_blocking(request, context)
        return found
    awaited: Response = asyncio.run(handle.infer(request, context))
    return awaited


def ask(handle: ModelHandle, request: InferenceRequest[Any]) -> list[FloatArray]:
    """The answer to each text of a request, as numbers."""
    return vectors(request, answer(handle, request))


def vectors(request: InferenceRequest[Any], response: Response) -> list[FloatArray]:
    """The answer to each text as an array: what is equal in two answers is equal in their arrays."""
    match response:
        case EmbeddingResponse():
            return list(response.vectors)
        case ClassificationResponse():
            rows = [
                result.logits or (*(result.distribution or {}).values(), result.score) for result in response.results
            ]
            return [np.array(row) for row in rows]
        case TaggingResponse():
            pairs = zip(texts_of(request), response.results, strict=False)
            return [_painted(text, result.spans) for text, result in pairs]
        case RerankingResponse():
            scores = {result.index: result.score for result in response.results}
            return [np.array([scores[index]]) for index in sorted(scores)]
    raise NotImplementedError(f"the kit cannot compare answers of the class {type(response).__name__}")


def _painted(text: str, spans: Sequence[Any]) -> FloatArray:
    """A number for each code point: the label that marks it and the label's score."""
    line = np.zeros((len(text), 2), np.float32)
    for span in spans:
        line[span.start : span.end] = zlib.crc32(span.label.encode()) % 997, span.score
    return line
