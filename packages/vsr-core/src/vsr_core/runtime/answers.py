"""What a backend answered, held against what the contract says of it: a wrong answer is an error, never a result."""

from __future__ import annotations

import math

from ..contract import BackendId, EmbeddingResponse, RerankingRequest, RerankingResponse
from ..errors import InferenceError, NonFiniteOutputError
from ..taxonomy import ErrorClass

__all__ = ["checked_ranking", "checked_vectors", "foreign_failure"]


def checked_vectors(response: EmbeddingResponse, count: int) -> EmbeddingResponse:
    """The response, if its vectors are finite float32 ``[count, d]``.

    :raises NonFiniteOutputError: NaN or infinity among them.
    :raises InferenceError: another type, dtype or shape.
    """
    import numpy as np

    vectors: object = response.vectors
    backend_id = response.envelope.backend_id
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2:
        found = f"{vectors.dtype} {list(vectors.shape)}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
        raise _malformed(backend_id, f"vectors of {found} instead of float32 [{count}, d]")
    if len(vectors) != count:
        raise _malformed(backend_id, f"{len(vectors)} vectors for {count} texts")
    if not np.isfinite(vectors).all():
        raise NonFiniteOutputError(
            f"{backend_id} answered NaN or infinity: the values are withheld", backend_id=str(backend_id)
        )
    return response


def checked_ranking(response: RerankingResponse, request: RerankingRequest) -> RerankingResponse:
    """The response, if it ranks each document once, or the best ``top_n``, with finite scores.

    :raises NonFiniteOutputError: a score that is no number.
    :raises InferenceError: an index of no document, one that comes twice, or too few results.
    """
    backend_id = response.envelope.backend_id
    count = len(request.documents)
    expected = count if request.top_n is None else min(request.top_n, count)
    indices = [result.index for result in response.results]
    if len(indices) != expected or len(set(indices)) != expected or not all(0 <= index < count for index in indices):
        raise _malformed(backend_id, f"a ranking of {len(indices)} results for {count} documents that is none of them")
    if not all(math.isfinite(result.score) for result in response.results):
        raise NonFiniteOutputError(
            f"{backend_id} answered a score that is no finite number", backend_id=str(backend_id)
        )
    return response


def foreign_failure(backend_id: BackendId, error: BaseException) -> InferenceError:
    """The error for whatever a handle raised that is none of ours."""
    text = " ".join(str(error).split())[:300]
    return InferenceError(
        f"{backend_id} failed: {type(error).__name__}{': ' if text else ''}{text}", backend_id=str(backend_id)
    )


def _malformed(backend_id: BackendId, what: str) -> InferenceError:
    return InferenceError(
        f"{backend_id} answered with {what}", backend_id=str(backend_id), error_class=ErrorClass.MALFORMED_RESPONSE
    )
