"""What is wrong with an answer by itself, whatever the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import (
    ClassificationResponse,
    ClassificationResult,
    EmbeddingResponse,
    InferenceRequest,
    ModelInfo,
    RerankingResponse,
    Response,
    TaggingResponse,
)
from .asking import texts_of
from .claims import demand

__all__ = ["check_answer", "check_envelope"]

_SUM = 1e-5


def check_envelope(response: Response, info: ModelInfo) -> None:
    """Who answered, on what."""
    envelope = response.envelope
    demand(envelope.backend_id == info.backend_id, f"{envelope.backend_id} says it answered, not {info.backend_id}")
    for name, said, known in (
        ("dtype", envelope.dtype, info.dtype and info.dtype.actual),
        ("device", envelope.device, info.device and info.device.actual),
        ("revision", envelope.revision, info.revision),
    ):
        demand(said is None or said == known, f"the envelope says {name}={said!r}, the model's info {known!r}")


def check_answer(request: InferenceRequest[Any], response: Response) -> None:
    """One finite result per text, and each true to itself."""
    texts = texts_of(request)
    match response:
        case EmbeddingResponse():
            shape = response.vectors.shape
            demand(response.vectors.dtype == np.float32, f"vectors come as {response.vectors.dtype}, not as float32")
            demand(len(shape) == 2 and shape[0] == len(texts), f"{len(texts)} texts give vectors of shape {shape}")
            demand(np.isfinite(response.vectors).all(), "vectors hold NaN or infinity")
        case ClassificationResponse():
            _count(len(response.results), texts)
            for result in response.results:
                _check_label(result)
        case TaggingResponse():
            _count(len(response.results), texts)
            for text, tagged in zip(texts, response.results, strict=True):
                _check_spans(text, tagged.spans)
        case RerankingResponse():
            _check_order(response, texts)
        case _:
            raise NotImplementedError(f"the kit cannot check answers of the class {type(response).__name__}")
    reports = response.envelope.inputs
    if not isinstance(response, RerankingResponse):
        demand(len(reports) in (0, len(texts)), f"{len(texts)} texts give {len(reports)} input reports")


def _count(results: int, texts: tuple[str, ...]) -> None:
    demand(results == len(texts), f"{len(texts)} texts give {results} results")


def _check_label(result: ClassificationResult) -> None:
    demand(np.isfinite(result.score), f"the score of {result.label!r} is {result.score}")
    demand(result.logits is None or np.isfinite(result.logits).all(), f"the logits are {result.logits}")
    if result.distribution is None:
        demand(result.distribution_reason, "there is no distribution and no reason why")
        return
    shares = np.array([*result.distribution.values()])
    demand(np.isfinite(shares).all() and (shares >= 0).all(), f"the distribution is {dict(result.distribution)}")
    demand(result.distribution[result.label] == result.score, "the score is not the label's own probability")
    demand(result.score >= shares.max() - _SUM, f"{result.label!r} is not the likeliest label")


def _check_spans(text: str, spans: Any) -> None:
    for span in spans:
        demand(text[span.start : span.end] == span.text, f"{span} is not the text at its place in {text!r}")
        demand(np.isfinite(span.score), f"the score of {span} is not finite")
    starts = [span.start for span in spans]
    demand(starts == sorted(starts), f"spans start at {starts}: they come by start")


def _check_order(response: RerankingResponse, texts: tuple[str, ...]) -> None:
    indexes = [result.index for result in response.results]
    scores = [result.score for result in response.results]
    demand(sorted(indexes) == [*range(len(texts))], f"{len(texts)} documents give the indexes {indexes}")
    demand(np.isfinite(scores).all(), f"the scores are {scores}")
    demand(scores == sorted(scores, reverse=True), f"the scores are {scores}: the best comes first")
