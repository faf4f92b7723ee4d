"""What core computes itself from embeddings: similarity, and reranking by a bi-encoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contract import (
    EmbeddingResponse,
    Envelope,
    FloatArray,
    RerankingResponse,
    RerankResult,
    SimilarityFunction,
    SimilarityResponse,
    Usage,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["rerank_by_vectors", "score", "similarities"]


def similarities(response: EmbeddingResponse, function: SimilarityFunction) -> SimilarityResponse:
    """The similarity of the first vector to each of the others."""
    scores = score(response.vectors[0], response.vectors[1:], function)
    return SimilarityResponse(envelope=response.envelope, scores=scores, function=function)


def rerank_by_vectors(
    responses: Sequence[EmbeddingResponse], function: SimilarityFunction, *, top_n: int | None
) -> RerankingResponse:
    """Documents by falling similarity to the query, whose vector comes first; ties keep the order of the request."""
    import numpy as np

    vectors = np.concatenate([response.vectors for response in responses])
    scores = score(vectors[0], vectors[1:], function)
    order = np.argsort(-scores, kind="stable")[:top_n]
    return RerankingResponse(
        envelope=_joined([response.envelope for response in responses]),
        results=tuple(RerankResult(index=int(index), score=float(scores[index])) for index in order),
        score_kind=function,
    )


def score(vector: FloatArray, others: FloatArray, function: SimilarityFunction) -> FloatArray:
    """The similarity of ``vector`` ``[d]`` to each row of ``others`` ``[n, d]``, higher is closer; float32 ``[n]``.

    Euclidean and Manhattan distances are negated, as sentence-transformers does. The cosine with a zero vector is 0.
    """
    import numpy as np

    one, many = vector.astype(np.float64), others.astype(np.float64)
    if function == "euclidean":
        scores = -np.sqrt(((many - one) ** 2).sum(axis=1))
    elif function == "manhattan":
        scores = -np.abs(many - one).sum(axis=1)
    else:
        scores = many @ one
        if function == "cosine":
            norms = np.sqrt((many * many).sum(axis=1) * (one @ one))
            scores = np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
    return _narrow(scores)


def _narrow(scores: np.typing.NDArray[np.float64]) -> FloatArray:
    return scores.astype("float32")


def _joined(envelopes: Sequence[Envelope]) -> Envelope:
    """One envelope for the answers of one model to several requests."""
    first = envelopes[0]
    if len(envelopes) == 1:
        return first
    tokens = [envelope.usage.input_tokens for envelope in envelopes]
    total = None if None in tokens else sum(count for count in tokens if count is not None)
    return dataclasses.replace(
        first,
        inputs=tuple(report for envelope in envelopes for report in envelope.inputs),
        usage=Usage(input_tokens=total),
    )
