"""Ragged batches and load requests for engines without a pipeline around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ...catalog import CORE_FAMILIES, specify
from ...contract import BackendId, CatalogEntry, FamilyDescriptor, LoadRequest
from ...local import BatchRow, IntArray, RaggedBatch
from ..encoders import EncoderHead

__all__ = ["SEQUENCES", "load_request", "ragged"]

_LENGTHS = (7, 1, 12, 7, 31, 2, 7)
_SMALLEST_ID, _LARGEST_ID = 5, 90


def _sequences() -> tuple[IntArray, ...]:
    source = np.random.default_rng(1)
    return tuple(source.integers(_SMALLEST_ID, _LARGEST_ID, length).astype(np.int32) for length in _LENGTHS)


SEQUENCES = _sequences()
"""Token ids of mixed lengths, some equal, one of a single token; in the vocabulary of every tiny checkpoint."""


def ragged(sequences: Sequence[IntArray], rows: Iterable[BatchRow], *, threads: int | None = None) -> RaggedBatch:
    """A batch of sequences whose tokens are all of the first type."""
    ids = np.concatenate(sequences)
    return RaggedBatch(
        ids=ids,
        type_ids=np.zeros_like(ids),
        offsets=np.cumsum([0, *map(len, sequences)], dtype=np.int32),
        prompt_tokens=np.zeros(len(sequences), np.int32),
        rows=tuple(rows),
        threads=threads,
    )


def load_request(
    folder: Path, *, head: EncoderHead, layers: tuple[int, ...] = (), families: Iterable[FamilyDescriptor] = ()
) -> LoadRequest:
    """What a backend would be told to load a folder."""
    known = {family.name: family for family in (*CORE_FAMILIES, *families)}
    pooling = ("mean",) if head == "embedding" else ()
    entry = CatalogEntry(name="m", source=str(folder), pooling=pooling, layers=layers)  # type: ignore[arg-type]
    spec = specify(entry, folder, families=known)
    return LoadRequest(backend_id=BackendId("engine", "m"), entry=entry, path=folder, spec=spec, threads=2)
