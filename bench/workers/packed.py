"""Worker: the engine of vsr-candle-torch over token ids, to the full depth or to an earlier layer."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..encoders.serving import Forward, serve_forward
from ..machine import installed_versions
from ..protocol import SubjectFacts

__all__ = ["PackedEngine", "main"]


class PackedEngine(Forward):
    """One batch of packed tokens at a time, on all compute threads.

    :param dtype: ``float32`` or ``bfloat16``.
    :param depth: the layer to leave after, counted from 1; None is the last.
    """

    def __init__(self, folder: Path, *, dtype: str, depth: int | None, threads: int) -> None:
        import torch
        from vsr_candle_torch.engine import TorchEngine
        from vsr_candle_torch.networks import blueprint
        from vsr_core.catalog import CORE_FAMILIES, specify
        from vsr_core.contract import BackendId, CatalogEntry, LoadRequest

        entry = CatalogEntry(name="encoder", source=str(folder), pooling=("mean",))
        request = LoadRequest(
            backend_id=BackendId("torch", entry.name),
            entry=entry,
            path=folder,
            spec=specify(entry, folder, families={family.name: family for family in CORE_FAMILIES}),
        )
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        network = blueprint(request, config).build(getattr(torch, dtype))
        self._dtype, self._depth, self._threads = dtype, depth, threads
        self._layers = network.layers
        self._engine = TorchEngine(network, threads=threads)

    def pooled(self, sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        from vsr_core.local import BatchRow, RaggedBatch

        from ..engines import MEAN

        ids: npt.NDArray[np.int32] = np.concatenate([np.asarray(each, np.int32) for each in sequences])
        offsets: npt.NDArray[np.int32] = np.zeros(len(sequences) + 1, np.int32)
        np.cumsum([len(each) for each in sequences], out=offsets[1:])
        batch = RaggedBatch(
            ids=ids,
            type_ids=np.zeros_like(ids),
            offsets=offsets,
            prompt_tokens=np.zeros(len(sequences), np.int32),
            rows=tuple(BatchRow(index, MEAN, layer=self._depth) for index in range(len(sequences))),
        )
        return np.stack(self._engine.run(batch).rows)

    def facts(self) -> SubjectFacts:
        return SubjectFacts(
            dtype=self._dtype,
            threads=self._threads,
            versions=installed_versions("vsr-candle-torch", "vsr-core", "torch"),
            details={"layers": f"{self._depth or self._layers} of {self._layers}"},
        )

    def planned_bytes(self, lengths: Sequence[int]) -> int | None:
        from vsr_core.local import BatchShape

        return self._engine.plan_bytes(BatchShape(sequences=len(lengths), longest=max(lengths), tokens=sum(lengths)))


def main() -> None:
    """Serve the engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--depth", type=int)
    arguments = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    serve_forward(partial(PackedEngine, dtype=arguments.dtype, depth=arguments.depth, threads=threads))


if __name__ == "__main__":
    main()
