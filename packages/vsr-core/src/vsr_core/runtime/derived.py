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
from ..errors import NonFiniteOutputError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["rerank_by_vectors", "score", "similarities"]


def similarities(response: EmbeddingResponse, function: SimilarityFunction) -> SimilarityResponse:
    """The similarity of the first vector to each of the others.

    :raises NonFiniteOutputError: the vectors are so long that float32 cannot hold a score; reranking raises it, too.
    """
    scores = _finite(score(response.vectors[0], response.vectors[1:], function), response.envelope)
    return SimilarityResponse(envelope=response.envelope, scores=scores, function=function)


def rerank_by_vectors(
    responses: Sequence[EmbeddingResponse], function: SimilarityFunction, *, top_n: int | None
) -> RerankingResponse:
    """Documents by falling similarity to the query, whose vector comes first; ties keep the order of the request."""
    import numpy as np

    vectors = np.concatenate([response.vectors for response in responses])
    scores = _finite(score(vectors[0], vectors[1:], function), responses[0].envelope)
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
    import numpy as np

    with np.errstate(over="ignore"):  # what is beyond float32 is infinite, and refused where the model is known
        return scores.astype(np.float32)


def _finite(scores: FloatArray, envelope: Envelope) -> FloatArray:
    import numpy as np

    if not np.isfinite(scores).all():
        backend_id = str(envelope.backend_id)
        raise NonFiniteOutputError(
            f"{backend_id} gave vectors so long that a score of them is beyond float32", backend_id=backend_id
        )
    return scores


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
