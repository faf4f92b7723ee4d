"""What a loaded model says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import FeatureState, LoadRequest, ModelInfo
from ..taxonomy import Feature
from .adapted import AdaptedBase
from .base import EncoderBase
from .embedding import EmbeddingTask
from .handle import EncoderTask
from .layers import default_layer
from .space import label_key

__all__ = ["describe_model"]


def describe_model(request: LoadRequest, base: EncoderBase, tasks: Sequence[EncoderTask]) -> ModelInfo:
    """The info of a model in state ``ready``: what ``tasks`` serve, and dimensions where one of them embeds."""
    embedding = next((task for task in tasks if isinstance(task, EmbeddingTask)), None)
    spec, entry, identity = request.spec, request.entry, base.identity
    labels = request.labels or spec.labels or None
    adapted = base if isinstance(base, AdaptedBase) else None
    return ModelInfo(
        backend_id=request.backend_id,
        adapter=entry.name if adapted else None,
        capabilities=tuple(task.capability for task in tasks),
        family=spec.family,
        architecture=spec.architecture,
        artifact=spec.artifact,
        modality=spec.modality,
        native_dimensions=embedding.spec.native_dimensions if embedding else None,
        dimensions=embedding.spec.dimensions if embedding else (),
        default_dimensions=embedding.default_dimensions if embedding else None,
        native_layers=spec.layers,
        exit_layers=spec.exit_layers or (() if spec.layers is None else (spec.layers,)),
        default_layer=default_layer(spec, request.layer, backend_id=request.backend_id),
        advertised_max_tokens=spec.advertised_max_tokens,
        max_tokens=base.max_tokens,
        labels=labels,
        device=identity.device,
        provider=identity.provider,
        dtype=identity.dtype,
        stored_dtype=spec.stored_dtype,
        revision=spec.revision,
        content_hash=spec.content_hash,
        compatibility_key=embedding.key if embedding else label_key(labels),
        base=adapted.base.identity.backend_id if adapted else None,
        shared_layers=adapted.shared_layers if adapted else None,
        features=_features(request, base, embedding),
        state="ready",
        load_seconds=identity.load_seconds,
        loaded_at=identity.loaded_at,
        memory_bytes=identity.memory_bytes,
        source=entry.source,
        contributed_by=entry.contributed_by,
        metadata=entry.metadata,
    )


def _features(request: LoadRequest, base: EncoderBase, embedding: EmbeddingTask | None) -> tuple[FeatureState, ...]:
    shallower = len(request.spec.exit_layers) > 1
    states = [
        FeatureState(feature=Feature.BATCHING, supported=True),
        _dimensions(embedding),
        FeatureState(
            feature=Feature.LAYER_EXIT,
            supported=shallower,
            reason=None if shallower else "the model states no layers to leave at",
        ),
        FeatureState(feature=Feature.UNLOAD, supported=True),
        FeatureState(feature=Feature.STREAMING, supported=False, reason="an encoder answers all at once"),
    ]
    found = {state.feature: state for state in (*states, *base.identity.features)}
    return tuple(sorted(found.values(), key=lambda state: state.feature.code))


def _dimensions(embedding: EmbeddingTask | None) -> FeatureState:
    if embedding is None:
        reason = "the model gives no vectors"
    elif len(embedding.spec.dimensions) < 2:
        reason = "the model states no dimensions beside its native ones"
    else:
        return FeatureState(feature=Feature.DIMENSIONS, supported=True)
    return FeatureState(feature=Feature.DIMENSIONS, supported=False, reason=reason)
