"""What a backend calls once its engine stands: everything from there to a handle."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..contract import Choice, FeatureState, LoadRequest, ModelInfo
from ..errors import CapabilityError, CheckpointError
from ..taxonomy import Capability, Feature
from .base import BaseIdentity, EncoderBase
from .batching import Batcher
from .dense import load_dense
from .embedding import EmbeddingTask
from .engine import EncoderEngine
from .handle import EncoderHandle
from .threads import ComputeThreads
from .tokenize import TextTokenizer

__all__ = ["build_encoder"]


def build_encoder(
    request: LoadRequest,
    engine: EncoderEngine,
    *,
    device: Choice,
    dtype: Choice,
    provider: Choice | None = None,
    vocab_size: int | None = None,
    memory_bytes: int | None = None,
    memory_limit: int | None = None,
    threads: ComputeThreads | None = None,
    features: Sequence[FeatureState] = (),
    load_seconds: float | None = None,
) -> EncoderHandle:
    """Put tokenizer, batcher and tasks around an engine, which the handle owns from now on, even where this fails.

    :param dtype: what is computed in; ``actual`` in numpy's names (``float32``, ``bfloat16``).
    :param vocab_size: rows of the token embedding, to refuse a tokenizer of another model.
    :param memory_bytes: what the weights take; ``memory_limit`` is what one batch may need beside them.
    :param threads: the process's compute threads, shared by all engines of the backend.
    :param features: what the engine says of features; they replace what the pipeline would say.
    :raises CheckpointError: tokenizer, pooling or dense modules are missing, damaged or contradictory.
    :raises CapabilityError: the model is for nothing that an encoder pipeline does.
    """
    identity = BaseIdentity(
        backend_id=request.backend_id,
        device=device,
        dtype=dtype,
        provider=provider,
        memory_bytes=memory_bytes,
        load_seconds=load_seconds,
        loaded_at=time.time(),
        features=tuple(features),
    )
    try:
        base = _build_base(request, engine, identity, vocab_size=vocab_size, memory_limit=memory_limit, threads=threads)
    except BaseException:
        engine.close()
        raise
    try:
        return _build_handle(request, base)
    except BaseException:
        base.lease()
        base.release()
        raise


def _build_base(
    request: LoadRequest,
    engine: EncoderEngine,
    identity: BaseIdentity,
    *,
    vocab_size: int | None,
    memory_limit: int | None,
    threads: ComputeThreads | None,
) -> EncoderBase:
    spec, name = request.spec, str(request.backend_id)
    if spec.max_tokens is None:
        raise CheckpointError(f"{name}: no file states how many tokens it takes: set 'max_tokens' in the catalog entry")
    folder = request.path if request.path.is_dir() else request.path.parent
    tokenizer = TextTokenizer.from_folder(folder, vocab_size=vocab_size, lowercase=bool(spec.lowercase))
    if spec.max_tokens <= tokenizer.special_tokens:
        raise CheckpointError(
            f"{name}: max_tokens={spec.max_tokens} leaves no room beside {tokenizer.special_tokens} special tokens"
        )
    batcher = Batcher(engine, request.batching, name=name, threads=threads, memory_limit=memory_limit)
    return EncoderBase(engine, tokenizer, batcher=batcher, spec=spec, max_tokens=spec.max_tokens, identity=identity)


def _build_handle(request: LoadRequest, base: EncoderBase) -> EncoderHandle:
    if Capability.EMBEDDING not in request.spec.capabilities:
        named = ", ".join(request.spec.capabilities) or "nothing"
        raise CapabilityError(
            f"{request.backend_id} is a model for {named}, which this backend does not serve",
            backend_id=str(request.backend_id),
            reason="no task of the encoder pipeline",
        )
    folder = request.path if request.path.is_dir() else request.path.parent
    task = EmbeddingTask(
        base,
        backend_id=request.backend_id,
        dense=load_dense(folder, request.spec.dense),
        dimensions=request.dimensions,
        layer=request.layer,
    )
    return EncoderHandle(base, [task], info=_describe(request, base, task))


def _describe(request: LoadRequest, base: EncoderBase, task: EmbeddingTask) -> ModelInfo:
    spec, entry, identity = task.spec, request.entry, base.identity
    return ModelInfo(
        backend_id=request.backend_id,
        capabilities=(task.capability,),
        family=spec.family,
        architecture=spec.architecture,
        artifact=spec.artifact,
        modality=spec.modality,
        native_dimensions=spec.native_dimensions,
        dimensions=spec.dimensions,
        default_dimensions=task.default_dimensions,
        native_layers=spec.layers,
        exit_layers=spec.exit_layers or (() if spec.layers is None else (spec.layers,)),
        default_layer=task.default_layer,
        advertised_max_tokens=spec.advertised_max_tokens,
        max_tokens=base.max_tokens,
        device=identity.device,
        provider=identity.provider,
        dtype=identity.dtype,
        stored_dtype=spec.stored_dtype,
        revision=spec.revision,
        content_hash=spec.content_hash,
        compatibility_key=task.key,
        features=_features(task, identity),
        state="ready",
        load_seconds=identity.load_seconds,
        loaded_at=identity.loaded_at,
        memory_bytes=identity.memory_bytes,
        source=entry.source,
        contributed_by=entry.contributed_by,
        metadata=entry.metadata,
    )


def _features(task: EmbeddingTask, identity: BaseIdentity) -> tuple[FeatureState, ...]:
    narrower, shallower = len(task.spec.dimensions) > 1, len(task.spec.exit_layers) > 1
    states = [
        FeatureState(feature=Feature.BATCHING, supported=True),
        FeatureState(
            feature=Feature.DIMENSIONS,
            supported=narrower,
            reason=None if narrower else "the model states no dimensions beside its native ones",
        ),
        FeatureState(
            feature=Feature.LAYER_EXIT,
            supported=shallower,
            reason=None if shallower else "the model states no layers to leave at",
        ),
        FeatureState(feature=Feature.UNLOAD, supported=True),
        FeatureState(feature=Feature.STREAMING, supported=False, reason="an encoder answers all at once"),
    ]
    found = {state.feature: state for state in (*states, *identity.features)}
    return tuple(sorted(found.values(), key=lambda state: state.feature.code))
