"""What a backend calls once its engine stands: everything from there to a handle."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..catalog.documents import model_folder
from ..contract import Choice, FeatureState, LoadRequest
from ..errors import CheckpointError
from .base import BaseIdentity, EncoderBase
from .batching import Batcher
from .describing import describe_model
from .engine import EncoderEngine
from .handle import EncoderHandle
from .memory import WorkingMemory
from .tasks import build_tasks
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
