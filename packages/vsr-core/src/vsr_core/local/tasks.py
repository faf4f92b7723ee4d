"""Which tasks of the pipeline a model is served for, by the capabilities its spec names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..catalog.documents import model_folder
from ..contract import LoadRequest
from ..errors import CapabilityError, CheckpointError
from ..taxonomy import Capability
from .base import EncoderBase
from .classification import PairClassificationTask, SequenceClassificationTask
from .dense import load_dense
from .embedding import EmbeddingTask
from .handle import EncoderTask
from .lora import AdapterHost
from .reranking import RerankingTask
from .scoring import Scorer, check_calibration
from .tagging import TokenClassificationTask

__all__ = ["build_tasks"]


def build_tasks(request: LoadRequest, base: EncoderBase) -> list[EncoderTask]:
    """One task for each capability of the model that an encoder pipeline answers itself, in the order of its spec.

    :raises CapabilityError: there is none.
    :raises CheckpointError: what a task needs is missing, damaged or contradictory.
    """
    capabilities = request.spec.capabilities
    builders = [_BUILDERS[capability] for capability in capabilities if capability in _BUILDERS]
    if not capabilities and isinstance(base.engine, AdapterHost):
        return []  # a base that is there for its adapters
    if not builders:
        named = ", ".join(capabilities) or "nothing"
        raise CapabilityError(
            f"{request.backend_id} is a model for {named}, which this backend does not serve",
            backend_id=str(request.backend_id),
            reason="no task of the encoder pipeline",
        )
    if request.dimensions is not None and Capability.EMBEDDING not in capabilities:
        raise CheckpointError(
            f"{request.backend_id}: dimensions={request.dimensions} applies to vectors, and the model gives none:"
            " leave 'dimensions' out"
        )
    return [build(request, base) for build in builders]


def _embedding(request: LoadRequest, base: EncoderBase) -> EncoderTask:
    return EmbeddingTask(
        base,
        backend_id=request.backend_id,
        dense=load_dense(base.identity.folder or model_folder(request.path), base.spec.dense),
        dimensions=request.dimensions,
        layer=request.layer,
    )


def _sequences(request: LoadRequest, base: EncoderBase) -> EncoderTask:
    scorer = _scorer(request)
    return SequenceClassificationTask(base, backend_id=request.backend_id, scorer=scorer, layer=request.layer)


def _pairs(request: LoadRequest, base: EncoderBase) -> EncoderTask:
    scorer = _scorer(request)
    return PairClassificationTask(base, backend_id=request.backend_id, scorer=scorer, layer=request.layer)


def _reranking(request: LoadRequest, base: EncoderBase) -> EncoderTask:
    return RerankingTask(base, backend_id=request.backend_id, scorer=_scorer(request), layer=request.layer)


def _tagging(request: LoadRequest, base: EncoderBase) -> EncoderTask:
    labels = request.labels or request.spec.labels
    if not labels:
        raise CheckpointError(
            f"{request.backend_id}: no file names what the head marks: set 'labels' in the catalog entry"
        )
    entry = request.entry
    check_calibration(
        "softmax", backend_id=request.backend_id, temperature=entry.temperature, threshold=entry.threshold
    )
    return TokenClassificationTask(base, backend_id=request.backend_id, labels=labels, entry=entry, layer=request.layer)


def _scorer(request: LoadRequest) -> Scorer:
    spec, entry = request.spec, request.entry
    return Scorer(
        request.labels or spec.labels,
        backend_id=request.backend_id,
        activation=spec.activation,
        temperature=entry.temperature,
        threshold=entry.threshold,
        positive_labels=entry.positive_labels,
    )


_BUILDERS: Mapping[Capability, Callable[[LoadRequest, EncoderBase], EncoderTask]] = MappingProxyType(
    {
        Capability.EMBEDDING: _embedding,
        Capability.SEQUENCE_CLASSIFICATION: _sequences,
        Capability.PAIR_CLASSIFICATION: _pairs,
        Capability.TOKEN_CLASSIFICATION: _tagging,
        Capability.RERANKING: _reranking,
    }
)
