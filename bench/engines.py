"""The torch engine itself, loaded by its own backend, without a runtime around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from vsr_candle_torch.adapter import TorchBackend
from vsr_core.catalog import CORE_FAMILIES, parse_source, resolve_source, specify
from vsr_core.contract import BackendContext, BackendId, CatalogEntry, LoadRequest, PoolingSpec, Preference
from vsr_core.local import BatchRow, EncodedText, EncoderHandle, RaggedBatch, WantPooled

from .corpus import MODEL

__all__ = ["MEAN", "load_handle", "ragged"]

MEAN = WantPooled(PoolingSpec(modes=("mean",)))
"""What the checkpoint asks for after its last layer."""


def load_handle(dtype: str, *, threads: int) -> EncoderHandle:
    """The benchmark's checkpoint on the torch backend, in one dtype; its ``base`` has the engine and the tokenizer."""
    entry = CatalogEntry(name="minilm", source=MODEL)
    resolved = resolve_source(parse_source(MODEL))
    request = LoadRequest(
        backend_id=BackendId("torch", entry.name),
        entry=entry,
        path=resolved.path,
        spec=specify(entry, resolved.path, families={family.name: family for family in CORE_FAMILIES}),
        precision=Preference("require", dtype),
        threads=threads,
    )
    handle = TorchBackend(BackendContext(name="torch", threads=threads)).load(request)
    if not isinstance(handle, EncoderHandle):
        raise TypeError(f"the torch backend gave a {type(handle).__name__} instead of an encoder's handle")
    return handle


def ragged(texts: Sequence[EncodedText], *, threads: int) -> RaggedBatch:
    """One batch for the engine: every text once, pooled."""
    offsets: npt.NDArray[np.int32] = np.zeros(len(texts) + 1, np.int32)
    np.cumsum([len(text.ids) for text in texts], out=offsets[1:])
    return RaggedBatch(
        ids=np.concatenate([text.ids for text in texts]),
        type_ids=np.concatenate([text.type_ids for text in texts]),
        offsets=offsets,
        prompt_tokens=np.zeros(len(texts), np.int32),
        rows=tuple(BatchRow(index, MEAN) for index in range(len(texts))),
        threads=threads,
    )
