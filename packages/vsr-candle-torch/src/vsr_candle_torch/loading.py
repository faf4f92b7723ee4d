"""Loading an encoder: weights, dtype, engine, pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from vsr_core.contract import Choice, FloatArray, LoadRequest, ModelHandle, PoolingSpec
from vsr_core.errors import LoadError, NonFiniteOutputError
from vsr_core.local import (
    BatchRow,
    ComputeThreads,
    IntArray,
    RaggedBatch,
    TextTokenizer,
    WantHidden,
    WantPooled,
    build_encoder,
    pool,
)

from .bert import BertConfig, BertEncoder
from .engine import TorchEngine
from .precision import PROBE_TEXTS, choose
from .weights import read_tensors

__all__ = ["load_encoder"]


def load_encoder(request: LoadRequest, config: Mapping[str, Any], *, threads: ComputeThreads) -> ModelHandle:
    """Load a BERT-family encoder.

    :raises CheckpointError: the files are not those of such an encoder.
    :raises LoadError: a device or precision that was required is not to be had.
    :raises NonFiniteOutputError: the model answers NaN or infinity to a plain text.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # of this thread: the team it would keep alive is the one a worker needs
    try:
        return _load(request, config, threads=threads)
    finally:
        torch.set_num_threads(before)  # torch also takes it as the default of threads that are yet to use it


def _load(request: LoadRequest, config: Mapping[str, Any], *, threads: ComputeThreads) -> ModelHandle:
    device = _device(request)
    shape = BertConfig.read(config, str(request.path / "config.json"))
    tensors = read_tensors(request.path, request.spec.weights)
    candidates = _Candidates(request, shape, tensors)
    precision = choose(request.precision, backend_id=str(request.backend_id), compare=candidates.compare)
    encoder = candidates.encoder(precision.dtype)
    engine = TorchEngine(encoder, threads=threads.total)
    _prove(request, TorchEngine(encoder, threads=1), candidates.probe_ids())
    return build_encoder(
        request,
        engine,
        device=device,
        dtype=precision.choice,
        vocab_size=shape.vocabulary,
        memory_bytes=encoder.bytes,
        threads=threads,
    )


class _Candidates:
    """The encoder in each dtype, built when it is first asked for, so that a decision costs one build at most."""

    def __init__(self, request: LoadRequest, shape: BertConfig, tensors: Mapping[str, Tensor]) -> None:
        self._request = request
        self._shape = shape
        self._tensors = tensors
        self._encoders: dict[torch.dtype, BertEncoder] = {}
        self._ids: list[IntArray] | None = None

    def encoder(self, dtype: torch.dtype) -> BertEncoder:
        """The encoder in a dtype."""
        if dtype not in self._encoders:
            self._encoders[dtype] = BertEncoder(self._shape, self._tensors, dtype=dtype, where=str(self._request.path))
        return self._encoders[dtype]

    def probe_ids(self) -> Sequence[IntArray]:
        """The token ids of the probe texts."""
        if self._ids is None:
            spec = self._request.spec
            tokenizer = TextTokenizer.from_folder(
                self._request.path, vocab_size=self._shape.vocabulary, lowercase=bool(spec.lowercase)
            )
            limit = min(spec.max_tokens or self._shape.positions, self._shape.positions)
            encoded = tokenizer.encode(PROBE_TEXTS, prompt="", max_tokens=limit, truncate="end")
            self._ids = sorted((text.ids for text in encoded), key=len)
        return self._ids

    def compare(self) -> tuple[FloatArray, FloatArray]:
        """The pooled vectors of the probe texts in fp32 and in bf16."""
        wanted = self._request.spec.pooling or PoolingSpec(modes=("mean",))
        full, half = (
            _pooled(TorchEngine(self.encoder(dtype), threads=1), self.probe_ids(), wanted)
            for dtype in (torch.float32, torch.bfloat16)
        )
        return full, half


def _pooled(engine: TorchEngine, ids: Sequence[IntArray], wanted: PoolingSpec) -> FloatArray:
    spec = PoolingSpec(modes=wanted.modes)
    if engine.reduces.issuperset(spec.modes):
        return np.stack(engine.run(_batch(ids, spec)).rows)
    return np.stack([pool(row, spec, prompt_tokens=0) for row in engine.run(_batch(ids, None)).rows])


def _batch(ids: Sequence[IntArray], pooling: PoolingSpec | None) -> RaggedBatch:
    flat = np.concatenate(ids).astype(np.int32)
    want = WantHidden() if pooling is None else WantPooled(pooling)
    return RaggedBatch(
        ids=flat,
        type_ids=np.zeros_like(flat),
        offsets=np.cumsum([0, *map(len, ids)], dtype=np.int32),
        prompt_tokens=np.zeros(len(ids), np.int32),
        rows=tuple(BatchRow(index, want) for index in range(len(ids))),
    )


def _prove(request: LoadRequest, engine: TorchEngine, ids: Sequence[IntArray]) -> None:
    """Run plain texts once: weights that give NaN are refused now, and the first request finds the kernels warm."""
    vectors = _pooled(engine, ids, PoolingSpec(modes=("mean",)))
    if not np.isfinite(vectors).all():
        raise NonFiniteOutputError(
            f"{request.backend_id} answers NaN or infinity to plain texts: its weights are damaged",
            backend_id=str(request.backend_id),
        )


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
