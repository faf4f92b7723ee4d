"""What a backend calls once its engine stands, or for an adapter on one that does: everything from there to a handle."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..catalog.adapters import AdapterConfig
from ..catalog.documents import model_folder, read_document
from ..contract import Choice, FeatureState, LoadRequest
from ..errors import CheckpointError, LoadError
from .adapted import AdaptedBase
from .adapters import read_adapter, target_of
from .base import BaseIdentity, EncoderBase
from .batching import Batcher
from .describing import describe_model
from .engine import EncoderEngine
from .handle import EncoderHandle
from .lora import AdapterHost
from .memory import WorkingMemory
from .probing import prove_adapter
from .tasks import build_tasks
from .threads import ComputeThreads
from .tokenize import TextTokenizer

__all__ = ["build_adapter", "build_encoder"]

_CONFIG = "adapter_config.json"


def build_encoder(
    request: LoadRequest,
    engine: EncoderEngine,
    *,
    device: Choice,
    dtype: Choice,
    provider: Choice | None = None,
    vocab_size: int | None = None,
    memory_bytes: int | None = None,
    memory: WorkingMemory | None = None,
    threads: ComputeThreads | None = None,
    features: Sequence[FeatureState] = (),
    load_seconds: float | None = None,
) -> EncoderHandle:
    """Put tokenizer, batcher and tasks around an engine, which the handle owns from now on, even where this fails.

    :param dtype: what is computed in; ``actual`` in numpy's names (``float32``, ``bfloat16``).
    :param vocab_size: rows of the token embedding, to refuse a tokenizer of another model.
    :param memory_bytes: what the weights take; ``memory`` says what batches may take beside them.
    :param threads: the process's compute threads, shared by all engines of the backend.
    :param features: what the engine says of features; they replace what the pipeline would say.
    :raises CheckpointError: what a task needs, such as tokenizer, pooling, labels or dense modules, is missing, damaged
        or contradictory.
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
        folder=model_folder(request.path),
    )
    try:
        base = _build_base(request, engine, identity, vocab_size=vocab_size, memory=memory, threads=threads)
    except BaseException:
        engine.close()
        raise
    try:
        return _build_handle(request, base)
    except BaseException:
        base.lease()
        base.release()
        raise


def build_adapter(request: LoadRequest) -> EncoderHandle:
    """Read a LoRA adapter, prove it on the base that the request brings, and give a handle of its own on that base.

    The base serves on meanwhile, and is kept for as long as the handle is open.

    :raises CheckpointError: the adapter is damaged, is not what its configuration says, or belongs on another base.
    :raises LoadError: the base is served by an engine that takes no adapters.
    :raises NonFiniteOutputError: the base answers NaN or infinity with it.
    """
    name = str(request.backend_id)
    base, host = _host(request)
    config = read_document(request.path, _CONFIG)
    if config is None:
        raise CheckpointError(f"{name}: {request.path / _CONFIG} is missing")
    adapter = read_adapter(
        request.path,
        AdapterConfig.read(config),
        host.anatomy,
        target=target_of(request.spec.capabilities),
        where=name,
    )
    adapted = AdaptedBase(base, host, adapter, spec=request.spec, backend_id=request.backend_id)
    adapted.lease()
    try:
        prove_adapter(request, adapted, target=adapter.target)
        return _build_handle(request, adapted)
    finally:
        adapted.release()


def _host(request: LoadRequest) -> tuple[EncoderBase, AdapterHost]:
    """The base that a request brings, and its engine, which takes adapters."""
    name, handle = str(request.backend_id), request.base
    if not isinstance(handle, EncoderHandle):
        raise LoadError(f"{name}: its base is not served by the encoder pipeline", backend_id=name)
    base = handle.base
    if isinstance(base, AdaptedBase):
        raise LoadError(
            f"{name}: its base {base.identity.backend_id} is an adapter itself: name the entry that it sits on",
            backend_id=name,
        )
    if not isinstance(base.engine, AdapterHost):
        raise LoadError(
            f"{name}: {base.identity.backend_id} is served by an engine that takes no adapters: name a backend that"
            " does in 'backends', or merge the adapter with PEFT",
            backend_id=name,
        )
    return base, base.engine


def _build_base(
    request: LoadRequest,
    engine: EncoderEngine,
    identity: BaseIdentity,
    *,
    vocab_size: int | None,
    memory: WorkingMemory | None,
    threads: ComputeThreads | None,
) -> EncoderBase:
    spec, name = request.spec, str(request.backend_id)
    if spec.max_tokens is None:
        raise CheckpointError(f"{name}: no file states how many tokens it takes: set 'max_tokens' in the catalog entry")
    tokenizer = TextTokenizer.from_folder(
        model_folder(request.path), vocab_size=vocab_size, lowercase=bool(spec.lowercase)
    )
    if spec.max_tokens <= tokenizer.special_tokens:
        raise CheckpointError(
            f"{name}: max_tokens={spec.max_tokens} leaves no room beside {tokenizer.special_tokens} special tokens"
        )
    batcher = Batcher(engine, request.batching, name=name, threads=threads, memory=memory)
    return EncoderBase(engine, tokenizer, batcher=batcher, spec=spec, max_tokens=spec.max_tokens, identity=identity)


def _build_handle(request: LoadRequest, base: EncoderBase) -> EncoderHandle:
    tasks = build_tasks(request, base)
    return EncoderHandle(base, tasks, info=describe_model(request, base, tasks))
