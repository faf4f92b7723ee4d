"""What a loaded model is put through, asked as an application asks: through the facade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...contract import (
    CapabilitySet,
    EmbeddingRequest,
    FloatArray,
    InferenceRequest,
    InputReport,
    ModelInfo,
    PairClassificationRequest,
    Refused,
    RerankingRequest,
    Response,
    SequenceClassificationRequest,
    TokenClassificationRequest,
)
from ...errors import CapabilityError, CapabilityUnmetError, InputTooLongError, RequestError
from ...runtime import Runtime
from ...taxonomy import Artifact, Capability, Feature
from ..conformance.answers import check_answer, check_envelope
from ..conformance.asking import TEXTS, question, vectors
from ..conformance.claims import demand, distance, nearest
from ..conformance.offers import Cell
from .trials import Findings

__all__ = ["Subject", "allowed_gap", "examine", "rank_by_vectors", "similar_by_vectors"]

_GAPS: Final[Mapping[str, float]] = {"float32": 1e-4, "int8": 1e-4}
"""How far two answers to one question may be apart by the dtype computed in; 8-bit graphs run texts one by one."""

_WIDER_GAP: Final = 5e-2
_LONGEST_CUT: Final = 1024
"""Above this limit a text over it is not run, only refused."""

_NO_LAYER: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model of a runtime, by the name it is asked for, and what it is asked for."""

    runtime: Runtime
    model: str
    capability: Capability

    def ask(
        self, texts: Sequence[str], *, requires: Sequence[str] = (), **asked: Any
    ) -> tuple[InferenceRequest[Any], Response]:
        """The facade's answer to what :func:`question` asks about texts, with the request."""
        request = question(self.capability, texts, **asked)
        return request, _call(self.runtime, request, model=self.model, requires=tuple(requires))

    def rows(self, texts: Sequence[str]) -> list[FloatArray]:
        """The answer to each text, as numbers."""
        return vectors(*self.ask(texts))


def examine(subject: Subject, rules: CapabilitySet) -> Findings:
    """Load, finite, in order, the same alone as in company, cuts told, refusals made.

    :param rules: what the backend declares.
    :raises AssertionError: something does not hold.
    """
    info = subject.runtime.load(subject.model)
    demand(info.device is not None and info.device.actual, "the model does not say on which device it was loaded")
    demand(info.dtype is not None and info.dtype.actual, "the model does not say in which dtype it computes")
    request, response = subject.ask(TEXTS)
    check_answer(request, response)
    check_envelope(response, info)
    together = vectors(request, response)
    allowed = allowed_gap(info)
    checks = ["loaded", "answered with finite numbers"]
    measured = _in_order_and_alone(subject, together, allowed)
    checks += ["in the order of the texts", "alone as in company"]
    checks += _cuts(subject, info)
    checks += _refusals(subject, info, rules)
    return Findings(checks=tuple(checks), info=info, measured=measured, allowed=allowed)


def allowed_gap(info: ModelInfo) -> float:
    """How far two answers to the same question may be apart."""
    dtype = info.dtype.actual if info.dtype is not None else None
    return _GAPS.get(dtype or "", _WIDER_GAP)


def similar_by_vectors(runtime: Runtime, model: str) -> Findings:
    """Similarities are those of the model's own vectors.

    :raises AssertionError: they are not.
    """
    info = runtime.load(model)
    scores = runtime.similarity(TEXTS[0], list(TEXTS[1:]), model=model).scores
    gap = distance(scores, _cosines(runtime, model))
    allowed = allowed_gap(info)
    demand(gap <= allowed, f"similarities are off the cosines of the vectors by {gap:g}, {allowed:g} is allowed")
    return Findings(checks=("agrees with the cosines of the vectors",), info=info, measured=gap, allowed=allowed)


def rank_by_vectors(runtime: Runtime, model: str) -> Findings:
    """A ranking by a model that embeds is the order of its vectors.

    :raises AssertionError: it is not.
    """
    info = runtime.load(model)
    results = runtime.rerank(TEXTS[0], list(TEXTS[1:]), model=model).results
    cosines = _cosines(runtime, model)
    found = np.array([result.score for result in sorted(results, key=lambda each: each.index)])
    allowed = allowed_gap(info)
    demand(len(results) == len(cosines), f"{len(cosines)} documents give {len(results)} results")
    gap = distance(found, cosines)
    demand(gap <= allowed, f"scores are off the cosines of the vectors by {gap:g}, {allowed:g} is allowed")
    ordered = [result.score for result in results]
    demand(ordered == sorted(ordered, reverse=True), f"the scores are {ordered}: the best comes first")
    return Findings(checks=("agrees with the cosines", "best first"), info=info, measured=gap, allowed=allowed)


def _cosines(runtime: Runtime, model: str) -> FloatArray:
    rows = runtime.embed(list(TEXTS), model=model).vectors.astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines: FloatArray = (rows[1:] @ rows[0]).astype(np.float32)
    return cosines


def _in_order_and_alone(subject: Subject, together: Sequence[FloatArray], allowed: float) -> float:
    """The largest gap between the answers to a text, alone and in two batches."""
    alone = [subject.rows([text])[0] for text in TEXTS]
    backwards = subject.rows(TEXTS[::-1])[::-1]
    worst = 0.0
    for index, text in enumerate(TEXTS):
        for rows in (together, backwards):
            found = nearest(rows[index], alone)
            same = distance(alone[found], alone[index]) <= allowed
            demand(found == index or same, f"the answer in the place of {text!r} is the one to {TEXTS[found]!r}")
            gap = distance(rows[index], alone[index])
            demand(gap <= allowed, f"{text!r} among others is off by {gap:g}, {allowed:g} is allowed")
            worst = max(worst, gap)
    return worst


def _cuts(subject: Subject, info: ModelInfo) -> list[str]:
    """What becomes of a text over the limit."""
    if info.max_tokens is None:
        return []
    long = "the red cat is on a green tree " * (info.max_tokens // 4 + 1)
    try:
        subject.ask([long], truncate="error")
    except InputTooLongError:
        checks = ["refused a text over the limit"]
    else:
        raise AssertionError(
            f"a text over {info.max_tokens} tokens is answered where truncate='error' asks to refuse it"
        )
    if info.max_tokens > _LONGEST_CUT:
        return checks
    _, response = subject.ask([long, TEXTS[0]], truncate="end")
    reports = [*response.envelope.inputs][-2:]
    demand(len(reports) == 2, f"two texts have {len(reports)} reports of what was read of them")
    cut, whole = reports
    demand(cut.truncated, f"a text over {info.max_tokens} tokens was cut, and the report says {cut}")
    demand(_fewer(cut), f"a text was cut, and the report says {cut}")
    demand(not whole.truncated, f"{TEXTS[0]!r} is within the limit, and the report says {whole}")
    return [*checks, "told what was cut"]


def _fewer(report: InputReport) -> bool:
    return report.tokens is None or report.total_tokens is None or report.tokens < report.total_tokens


def _refusals(subject: Subject, info: ModelInfo, rules: CapabilitySet) -> list[str]:
    """Every feature the backend refuses for such a model, with its reason, and a layer that no model has."""
    refused = 0
    for feature in Feature:
        cell = Cell(
            capability=subject.capability,
            family=info.family or "",
            artifact=info.artifact or Artifact.FULL,
            feature=feature,
        )
        verdict = cell.verdict(rules)
        if isinstance(verdict, Refused):
            _expect_refusal(subject, feature, verdict)
            refused += 1
    checks = [f"refused {refused} features with their reasons"] if refused else []
    if subject.capability is not Capability.RERANKING and info.exit_layers:
        try:
            subject.ask(TEXTS[:1], layer=_NO_LAYER)
        except (RequestError, CapabilityError):
            checks.append("refused a layer it has not")
        else:
            raise AssertionError(f"layer={_NO_LAYER} is answered")
    return checks


def _expect_refusal(subject: Subject, feature: Feature, verdict: Refused) -> None:
    try:
        subject.ask(TEXTS[:1], requires=[feature.value])
    except CapabilityUnmetError as error:
        demand(
            error.reason == verdict.reason, f"{feature} is refused with {error.reason!r}, declared {verdict.reason!r}"
        )
    else:
        raise AssertionError(
            f"{feature} is declared to be refused ({verdict.reason}), and requests for it are answered"
        )


def _call(runtime: Runtime, request: InferenceRequest[Any], *, model: str, requires: tuple[str, ...]) -> Response:
    """The facade's call for a request."""
    asked: dict[str, Any] = {"model": model, "requires": requires}
    match request:
        case EmbeddingRequest() | SequenceClassificationRequest() | PairClassificationRequest():
            asked |= {"layer": request.layer, "truncate": request.truncate}
        case TokenClassificationRequest():
            asked |= {"layer": request.layer, "truncate": request.truncate, "aggregation": request.aggregation}
        case RerankingRequest():
            return runtime.rerank(request.query, request.documents, truncate=request.truncate, **asked)
    match request:
        case EmbeddingRequest():
            return runtime.embed(request.texts, **asked)
        case SequenceClassificationRequest():
            return runtime.classify(request.texts, logits=request.logits, **asked)
        case PairClassificationRequest():
            return runtime.nli(request.pairs, logits=request.logits, **asked)
        case TokenClassificationRequest():
            return runtime.tag(request.texts, **asked)
    raise NotImplementedError(f"no call of the facade makes a {type(request).__name__}")
