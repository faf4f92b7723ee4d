"""The torch engine behind the shared pipeline."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from vsr_core.contract import FloatArray
from vsr_core.local import BatchRow, BatchShape, EngineOutput, RaggedBatch, Reduction, WantPooled

from .attention import equal_runs
from .bert import BertEncoder

__all__ = ["TorchEngine"]


class TorchEngine:
    """Runs packed batches on the CPU.

    Two streams of one thread each get more through than one stream of two threads, and one alone is quickest with
    all threads; the batcher says with each batch how many threads it may use, and OpenMP keeps that number per thread.
    """

    def __init__(self, encoder: BertEncoder, *, threads: int) -> None:
        self._encoder = encoder
        self._threads = threads
        self._local = threading.local()

    @property
    def reduces(self) -> frozenset[Reduction]:
        """Pooling that costs less here than moving hidden states would."""
        return frozenset({"cls", "mean"})

    @property
    def concurrency(self) -> int:
        """A stream per compute thread, up to four; more of them would only push each other out of the caches."""
        return max(1, min(4, self._threads))

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run the encoder once, to the deepest layer a row wants."""
        self._use_threads(batch.threads or self._threads)
        full = self._encoder.config.layers
        offsets = torch.from_numpy(batch.offsets.astype(np.int64))
        states = self._encoder.forward(
            torch.from_numpy(batch.ids),
            torch.from_numpy(batch.type_ids),
            offsets,
            exits=frozenset(row.layer or full for row in batch.rows),
        )
        with torch.inference_mode():
            answers: dict[tuple[int, object], Sequence[FloatArray]] = {}
            for row in batch.rows:
                key = (row.layer or full, row.want)
                if key not in answers:
                    answers[key] = _reduce(states[key[0]], offsets, row)
            return EngineOutput(rows=[answers[row.layer or full, row.want][row.sequence] for row in batch.rows])

    def plan_bytes(self, shape: BatchShape) -> int:
        """Activations of one layer, in the dtype of the weights, and the hidden states in float32."""
        config = self._encoder.config
        element = torch.finfo(self._encoder.dtype).bits // 8
        wide = 6 * config.hidden_size + 2 * config.intermediate
        return shape.tokens * (wide * element + 4 * config.hidden_size)

    def close(self) -> None:
        """Drop the weights."""
        del self._encoder

    def _use_threads(self, threads: int) -> None:
        if getattr(self._local, "threads", None) != threads:
            torch.set_num_threads(threads)
            self._local.threads = threads


def _reduce(states: Tensor, offsets: Tensor, row: BatchRow) -> Sequence[FloatArray]:
    """What a row wants, for every sequence of the batch, as float32."""
    wide = states.float()
    if isinstance(row.want, WantPooled):
        pooled = [_pool(wide, offsets, mode) for mode in row.want.spec.modes]
        together: FloatArray = (pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=1)).numpy()
        return list(together)
    hidden: FloatArray = wide.numpy()
    return np.split(hidden, offsets[1:-1].numpy())


def _pool(states: Tensor, offsets: Tensor, mode: str) -> Tensor:
    if mode == "cls":
        return states[offsets[:-1]]
    pooled = states.new_empty(len(offsets) - 1, states.shape[1])
    for run in equal_runs(offsets.diff().tolist()):
        grid = states[run.row : run.end].view(run.count, run.length, -1)
        pooled[run.first : run.first + run.count] = grid.mean(1)
    return pooled
