"""Loading an encoder: weights, dtype, engine, pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from vsr_core.contract import Choice, FeatureState, LoadRequest, ModelHandle
from vsr_core.errors import LoadError
from vsr_core.local import (
    ComputeThreads,
    WorkingMemory,
    build_encoder,
    choose_precision,
    compare,
    probe_ids,
    prove,
)
from vsr_core.taxonomy import Feature

from .adapted import AdaptableEngine
from .engine import TorchEngine
from .families import BORROWED, full_depth_only
from .network import HeadedEncoder, Network
from .networks import blueprint
from .precision import native_bfloat16, torch_dtype

__all__ = ["alone", "load_encoder"]


def load_encoder(request: LoadRequest, config: Mapping[str, Any], *, threads: ComputeThreads) -> ModelHandle:
    """Load an encoder with its head.

    :raises CheckpointError: the files are not those of such an encoder.
    :raises LoadError: a device or precision that was required is not to be had.
    :raises NonFiniteOutputError: the model answers NaN or infinity to a plain text.
    """
    with alone():
        return _load(request, config, threads=threads)


@contextmanager
def alone() -> Iterator[None]:
    """Compute on this thread alone meanwhile: the team it would keep alive is the one a worker needs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)  # torch also takes it as the default of threads that are yet to use it


def _load(request: LoadRequest, config: Mapping[str, Any], *, threads: ComputeThreads) -> ModelHandle:
    device = _device(request)
    plan = blueprint(request, config)
    ids = probe_ids(request, vocabulary=plan.vocabulary, max_tokens=plan.max_tokens)
    networks: dict[torch.dtype, Network] = {}

    def engine(dtype: torch.dtype) -> TorchEngine:
        if dtype not in networks:
            networks[dtype] = plan.build(dtype)
        return _engine(networks[dtype], threads=1)

    precision = choose_precision(
        request.precision,
        native=("bfloat16",) if native_bfloat16() else (),
        place="this CPU",
        backend_id=str(request.backend_id),
        compare=lambda: compare(request, engine(torch.float32), engine(torch.bfloat16), ids=ids),
    )
    dtype = torch_dtype(precision.actual)
    prove(request, engine(dtype), ids=ids)  # the first request finds the kernels warm, too
    network = networks[dtype]
    return build_encoder(
        request,
        _engine(network, threads=threads.total),
        device=device,
        dtype=precision,
        vocab_size=plan.vocabulary,
        memory_bytes=network.bytes,
        memory=WorkingMemory(),
        threads=threads,
        features=_features(request.spec.family),
    )


def _engine(network: Network, *, threads: int) -> TorchEngine:
    if isinstance(network, HeadedEncoder):
        return AdaptableEngine(network, threads=threads)
    return TorchEngine(network, threads=threads)


def _features(family: str) -> tuple[FeatureState, ...]:
    """What the family's code takes away from what the pipeline offers."""
    if family not in BORROWED:
        return ()
    return (FeatureState(feature=Feature.LAYER_EXIT, supported=False, reason=full_depth_only(family)),)


def _device(request: LoadRequest) -> Choice:
    asked = request.device
    if asked.mode == "auto" or asked.value == "cpu":
        return Choice(requested=str(asked), actual="cpu")
    reason = f"vsr-candle-torch computes on the CPU, not on {asked.value!r}"
    if asked.mode == "require":
        raise LoadError(
            f"{request.backend_id}: device {str(asked)!r} is not to be had: {reason}",
            backend_id=str(request.backend_id),
        )
    return Choice(requested=str(asked), actual="cpu", reason=reason)
