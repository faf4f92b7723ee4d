"""What a backend answered, held against what the contract says of it: a wrong answer is an error, never a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..contract import (
    BackendId,
    ClassificationResponse,
    ClassificationResult,
    EmbeddingResponse,
    RerankingRequest,
    RerankingResponse,
    Span,
    TaggingResponse,
)
from ..errors import InferenceError, NonFiniteOutputError
from ..taxonomy import ErrorClass

__all__ = ["checked_labels", "checked_ranking", "checked_spans", "checked_vectors", "foreign_failure"]

_ROUNDING = 1e-6
"""How far a probability may be outside 0 to 1: what float32 makes of one that is not."""


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
    """The response, if it ranks each document once, or the best ``top_n``, by falling finite scores.

    :raises NonFiniteOutputError: a score that is no number.
    :raises InferenceError: an index of no document, one that comes twice, too few results, or scores that rise.
    """
    backend_id = response.envelope.backend_id
    count = len(request.documents)
    expected = count if request.top_n is None else min(request.top_n, count)
    indices = [result.index for result in response.results]
    if len(indices) != expected or len(set(indices)) != expected or not all(0 <= index < count for index in indices):
        raise _malformed(backend_id, f"a ranking of {len(indices)} results for {count} documents that is none of them")
    scores = [result.score for result in response.results]
    _check_finite(backend_id, scores)
    if scores != sorted(scores, reverse=True):
        raise _malformed(backend_id, "a ranking that is not by falling score")
    return response


def checked_labels(response: ClassificationResponse, count: int) -> ClassificationResponse:
    """The response, if each of ``count`` inputs has a label with finite numbers.

    :raises NonFiniteOutputError: a score, probability or logit that is no finite number.
    :raises InferenceError: another number of results, a probability outside 0 to 1, or a label without one.
    """
    backend_id = response.envelope.backend_id
    if len(response.results) != count:
        raise _malformed(backend_id, f"{len(response.results)} results for {count} inputs")
    for result in response.results:
        _check_label(backend_id, result)
    return response


def checked_spans(response: TaggingResponse, texts: Sequence[str]) -> TaggingResponse:
    """The response, if the spans of each text are by start, lie within it and say what is there.

    :raises NonFiniteOutputError: a score that is no finite number.
    :raises InferenceError: another number of results, spans out of order, or one that is not where it says.
    """
    backend_id = response.envelope.backend_id
    if len(response.results) != len(texts):
        raise _malformed(backend_id, f"{len(response.results)} results for {len(texts)} texts")
    for text, result in zip(texts, response.results, strict=True):
        _check_finite(backend_id, (span.score for span in result.spans))
        if not all(_lies_in(text, span) for span in result.spans):
            raise _malformed(backend_id, "a span that is not where it says")
        starts = [span.start for span in result.spans]
        if starts != sorted(starts):
            raise _malformed(backend_id, "spans that are not sorted by start")
    return response


def foreign_failure(backend_id: BackendId, error: BaseException) -> InferenceError:
    """The error for whatever a handle raised that is none of ours."""
    text = " ".join(str(error).split())[:300]
    return InferenceError(
        f"{backend_id} failed: {type(error).__name__}{': ' if text else ''}{text}", backend_id=str(backend_id)
    )


def _check_label(backend_id: BackendId, result: ClassificationResult) -> None:
    _check_finite(backend_id, (result.score, *(result.logits or ())))
    distribution = result.distribution
    if distribution is None:
        return
    _check_finite(backend_id, distribution.values())
    if not all(-_ROUNDING <= value <= 1 + _ROUNDING for value in distribution.values()):
        raise _malformed(backend_id, "a probability outside 0 to 1")
    if result.label not in distribution:
        raise _malformed(backend_id, f"the label {result.label!r}, which is not in its distribution")


def _lies_in(text: str, span: Span) -> bool:
    return 0 <= span.start < span.end <= len(text) and text[span.start : span.end] == span.text


def _check_finite(backend_id: BackendId, values: Iterable[float]) -> None:
    try:
        finite = all(math.isfinite(value) for value in values)
    except TypeError:
        raise _malformed(backend_id, "a score that is no number") from None
    if not finite:
        raise NonFiniteOutputError(
            f"{backend_id} answered a score that is no finite number", backend_id=str(backend_id)
        )


def _malformed(backend_id: BackendId, what: str) -> InferenceError:
    return InferenceError(
        f"{backend_id} answered with {what}", backend_id=str(backend_id), error_class=ErrorClass.MALFORMED_RESPONSE
    )
