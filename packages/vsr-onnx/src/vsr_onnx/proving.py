"""What a graph answers to a few token ids while it is loaded: it shall be finite, well shaped, and heed its mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from vsr_core.contract import FloatArray, LoadRequest, PoolingSpec
from vsr_core.errors import CheckpointError, NonFiniteOutputError
from vsr_core.local import (
    BatchRow,
    GraphEngine,
    GraphLayout,
    RaggedBatch,
    Want,
    WantHidden,
    WantLogits,
    WantPooled,
)
from vsr_core.taxonomy import Capability

__all__ = ["prove"]

_LENGTHS = (3, 11)
_ROOM = 0.02
"""How far an answer may move when a longer text is beside it, relative to its largest number; half precision does."""


def prove(request: LoadRequest, engine: GraphEngine, layout: GraphLayout, *, vocabulary: int | None) -> None:
    """Run a short and a long sequence, alone and together, to every layer there is.

    :raises CheckpointError: the graph ignores its mask, or has another number of outputs than there are labels.
    :raises NonFiniteOutputError: it answers NaN or infinity.
    """
    name = str(request.backend_id)
    wants = list(_wants(engine, layout))
    ids = [2 + np.arange(length, dtype=np.int32) % max(1, min(vocabulary or 64, 64) - 2) for length in _LENGTHS]
    alone = [answer for one in ids for answer in _run(engine, [one], wants)]
    together = _run(engine, ids, wants)
    for apart, beside in zip(alone, together, strict=True):
        if not (np.isfinite(apart).all() and np.isfinite(beside).all()):
            raise NonFiniteOutputError(
                f"{name} answers NaN or infinity to plain token ids: its weights are damaged, or its export is",
                backend_id=name,
            )
        if apart.shape != beside.shape or np.abs(apart - beside).max() > _ROOM * max(1.0, float(np.abs(apart).max())):
            raise CheckpointError(
                f"{name}: the graph gives a text other numbers when a longer one is beside it, so it does not heed"
                " 'attention_mask': export it again"
            )
    if "logits" in engine.reduces:
        _check_logits(request, alone[0])


def _check_logits(request: LoadRequest, logits: FloatArray) -> None:
    name, labels = request.backend_id, request.labels or request.spec.labels
    tags = Capability.TOKEN_CLASSIFICATION in request.spec.capabilities
    if logits.ndim != (2 if tags else 1):
        given = "every token" if logits.ndim == 2 else "the whole text"
        raise CheckpointError(
            f"{name}: the head of {str(request.path)!r} gives logits for {given}, and the model is to do {request.spec.capabilities[0]}: state"
            " 'capabilities', or export it with the right head"
        )
    if labels is not None and logits.shape[-1] != len(labels):
        raise CheckpointError(
            f"{name}: the head of {str(request.path)!r} gives {logits.shape[-1]} logits, and there are {len(labels)}"
            " labels: state the labels of this head"
        )


def _wants(engine: GraphEngine, layout: GraphLayout) -> Sequence[tuple[Want, int | None]]:
    """One of everything the graph gives, logits first."""
    found: list[tuple[Want, int | None]] = []
    if "logits" in engine.reduces:
        found.append((WantLogits(), None))
    elif layout.pooled is not None:
        found.append((WantPooled(PoolingSpec(modes=("mean",))), None))
    return [*found, *((WantHidden(), layer) for layer in layout.hidden)]


def _run(
    engine: GraphEngine,
    sequences: Sequence[np.ndarray[tuple[int], np.dtype[np.int32]]],
    wants: Sequence[tuple[Want, int | None]],
) -> Sequence[FloatArray]:
    """The answers to every want, sequence by sequence."""
    ids = np.concatenate(sequences)
    batch = RaggedBatch(
        ids=ids,
        type_ids=np.zeros_like(ids),
        offsets=np.cumsum([0, *map(len, sequences)], dtype=np.int32),
        prompt_tokens=np.zeros(len(sequences), np.int32),
        rows=tuple(BatchRow(index, want, layer) for index in range(len(sequences)) for want, layer in wants),
    )
    return engine.run(batch).rows
