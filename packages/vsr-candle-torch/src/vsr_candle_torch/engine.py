"""The torch engine behind the shared pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from vsr_core.contract import FloatArray, PoolingMode, PoolingSpec
from vsr_core.local import BatchRow, BatchShape, EngineOutput, RaggedBatch, Reduction, WantLogits, WantPooled

from .network import Network, States
from .packed import Packed

__all__ = ["TorchEngine", "reduced"]

_KERNELS = 24 << 20
"""Scratch of oneDNN and slack of the allocator, as measured beside the plan of a base-sized encoder."""


class TorchEngine:
    """Runs packed batches on the CPU.

    Two streams of one thread each get more through than one stream of two threads, and one alone is quickest with
    all threads; the batcher says with each batch how many threads it may use, and OpenMP keeps that number per thread.
    """

    def __init__(self, network: Network, *, threads: int) -> None:
        self._network = network
        self._threads = threads

    @property
    def reduces(self) -> frozenset[Reduction]:
        """Pooling that costs less here than moving hidden states would, and the head the model has."""
        pooled = frozenset[Reduction]({"cls", "mean"})
        return pooled if self._network.head is None else pooled | {"logits"}

    @property
    def concurrency(self) -> int:
        """A stream per compute thread, up to four; more of them would only push each other out of the caches."""
        return max(1, min(4, self._threads))

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run the network once, to the deepest layer a row wants.

        :raises ValueError: a row has an adapter, which :class:`~vsr_candle_torch.adapted.AdaptableEngine` alone knows.
        """
        if any(row.adapter is not None for row in batch.rows):
            raise ValueError("this engine runs the base alone, without adapters")
        self._use_threads(batch.threads or self._threads)
        full = self._network.layers
        packed = Packed.of(batch)
        heads = [isinstance(row.want, WantLogits) for row in batch.rows]
        depths = [row.layer or full for row in batch.rows]
        states = self._network.run(
            packed,
            hidden=frozenset(depth for depth, head in zip(depths, heads, strict=True) if not head),
            logits=frozenset(depth for depth, head in zip(depths, heads, strict=True) if head),
        )
        answers: dict[tuple[int, object], Sequence[FloatArray]] = {}
        with torch.inference_mode():
            for row, depth in zip(batch.rows, depths, strict=True):
                if (depth, row.want) not in answers:
                    answers[depth, row.want] = _answers(states, depth, row, packed)
        return EngineOutput(
            [answers[depth, row.want][row.sequence] for row, depth in zip(batch.rows, depths, strict=True)]
        )

    def plan_bytes(self, shape: BatchShape) -> int:
        """That of the network, the hidden states in float32, and what the kernels keep for themselves."""
        return self._network.plan_bytes(shape) + shape.tokens * 4 * self._network.hidden_size + _KERNELS

    def close(self) -> None:
        """Drop the weights."""
        del self._network

    def _use_threads(self, threads: int) -> None:
        if torch.get_num_threads() != threads:  # of this thread, which other engines use too
            torch.set_num_threads(threads)


def _answers(states: States, depth: int, row: BatchRow, packed: Packed) -> Sequence[FloatArray]:
    """What a row wants, for every sequence of the batch, as float32."""
    if isinstance(row.want, WantLogits):
        return [logits.float().numpy() for logits in states.logits[depth]]
    wide = states.hidden[depth].float()
    if isinstance(row.want, WantPooled):
        return list(reduced(wide, packed, row.want.spec))
    return [part.numpy() for part in packed.split(wide)]


def reduced(states: Tensor, packed: Packed, spec: PoolingSpec) -> FloatArray:
    """The pooled vectors of float32 states ``[tokens, hidden]``: ``[sequences, hidden * modes]``."""
    pooled = [_pool(states, packed, mode) for mode in spec.modes]
    together: FloatArray = (pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=1)).numpy()
    return together


def _pool(states: Tensor, packed: Packed, mode: PoolingMode) -> Tensor:
    if mode == "cls":
        return states[packed.offsets[:-1]]
    pooled = states.new_empty(len(packed.offsets) - 1, states.shape[1])
    for run in packed.runs:
        grid = states[run.row : run.end].view(run.count, run.length, -1)
        pooled[run.first : run.first + run.count] = grid.mean(1)
    return pooled
