"""What a model answers to plain texts while it is loaded: which dtype will do, and whether its weights are sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from vsr_core.contract import FloatArray, LoadRequest, PoolingSpec
from vsr_core.errors import CheckpointError, NonFiniteOutputError
from vsr_core.local import (
    BatchRow,
    IntArray,
    RaggedBatch,
    TextTokenizer,
    Want,
    WantHidden,
    WantLogits,
    WantPooled,
    pool,
)

from .engine import TorchEngine
from .network import Network
from .networks import Blueprint
from .precision import PROBE_TEXTS, Comparison, cosines, probability_shifts

__all__ = ["Candidates", "prove"]


class Candidates:
    """The network in each dtype, built when it is first asked for, so that a decision costs one build at most."""

    def __init__(self, request: LoadRequest, plan: Blueprint) -> None:
        self._request = request
        self._plan = plan
        self._networks: dict[torch.dtype, Network] = {}
        self._ids: list[IntArray] | None = None

    def network(self, dtype: torch.dtype) -> Network:
        """The network in a dtype.

        :raises CheckpointError: the head has another number of outputs than there are labels.
        """
        if dtype not in self._networks:
            network = self._plan.build(dtype)
            labels = self._request.labels or self._request.spec.labels
            if network.labels is not None and labels is not None and network.labels != len(labels):
                raise CheckpointError(
                    f"{self._request.backend_id}: the head gives {network.labels} logits, and there are"
                    f" {len(labels)} labels"
                )
            self._networks[dtype] = network
        return self._networks[dtype]

    def probe_ids(self) -> Sequence[IntArray]:
        """The token ids of the probe texts, shortest first."""
        if self._ids is None:
            spec = self._request.spec
            tokenizer = TextTokenizer.from_folder(
                self._request.path, vocab_size=self._plan.vocabulary, lowercase=bool(spec.lowercase)
            )
            limits = [limit for limit in (spec.max_tokens, self._plan.max_tokens) if limit is not None]
            encoded = tokenizer.encode(PROBE_TEXTS, prompt="", max_tokens=min(limits, default=512), truncate="end")
            self._ids = sorted((text.ids for text in encoded), key=len)
        return self._ids

    def compare(self) -> Comparison:
        """How far bf16 is from fp32 on the probe texts: in probabilities where there is a head, else in cosines."""
        networks = [self.network(dtype) for dtype in (torch.float32, torch.bfloat16)]
        if networks[0].head is not None:
            full, half = (_run(network, self.probe_ids(), WantLogits()) for network in networks)
            shifts = probability_shifts(full, half, activation=self._request.spec.activation or "softmax")
            return Comparison(kind="probability", worst=max(shifts))
        spec = PoolingSpec(modes=(self._request.spec.pooling or PoolingSpec(modes=("mean",))).modes)
        one, other = (np.stack(_pooled(network, self.probe_ids(), spec)) for network in networks)
        return Comparison(kind="cosine", worst=min(cosines(one, other)))


def prove(request: LoadRequest, network: Network, ids: Sequence[IntArray]) -> None:
    """Run plain texts once: weights that give NaN are refused now, and the first request finds the kernels warm."""
    wanted: Want = WantHidden() if network.head is None else WantLogits()
    if not all(np.isfinite(row).all() for row in _run(network, ids, wanted)):
        raise NonFiniteOutputError(
            f"{request.backend_id} answers NaN or infinity to plain texts: its weights are damaged",
            backend_id=str(request.backend_id),
        )


def _pooled(network: Network, ids: Sequence[IntArray], spec: PoolingSpec) -> Sequence[FloatArray]:
    if TorchEngine(network, threads=1).reduces.issuperset(spec.modes):
        return _run(network, ids, WantPooled(spec))
    return [pool(row, spec, prompt_tokens=0) for row in _run(network, ids, WantHidden())]


def _run(network: Network, ids: Sequence[IntArray], want: Want) -> Sequence[FloatArray]:
    flat = np.concatenate(ids).astype(np.int32)
    batch = RaggedBatch(
        ids=flat,
        type_ids=np.zeros_like(flat),
        offsets=np.cumsum([0, *map(len, ids)], dtype=np.int32),
        prompt_tokens=np.zeros(len(ids), np.int32),
        rows=tuple(BatchRow(index, want) for index in range(len(ids))),
    )
    return TorchEngine(network, threads=1).run(batch).rows
