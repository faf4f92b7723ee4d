"""The seam between the shared pipeline and an in-process engine: ragged token batches in, arrays out.

An engine knows nothing of texts, names, deadlines or queues. It may pack the sequences, pad them or split the
batch as suits it, as long as the answer to a row does not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..contract import FloatArray, PoolingSpec

__all__ = [
    "BatchRow",
    "BatchShape",
    "EncoderEngine",
    "EngineOutput",
    "IntArray",
    "RaggedBatch",
    "Reduction",
    "Want",
    "WantHidden",
    "WantLogits",
    "WantPooled",
]

IntArray = npt.NDArray[np.int32]

Reduction = Literal["cls", "mean", "max", "mean_sqrt_len", "weighted_mean", "last", "logits"]
"""What an engine may reduce on its own device; what it does not, the pipeline reduces in numpy."""


@dataclass(frozen=True, slots=True)
class WantHidden:
    """The token vectors of the row's layer: float32 ``[tokens, hidden]``."""

    tag: ClassVar[str] = "hidden"


@dataclass(frozen=True, slots=True)
class WantPooled:
    """The token vectors of the row's layer, pooled: float32 ``[hidden * modes]``.

    An engine is asked for the modes it reduces, over whole sequences; a prompt to be left out is the pipeline's part.
    """

    tag: ClassVar[str] = "pooled"
    spec: PoolingSpec


@dataclass(frozen=True, slots=True)
class WantLogits:
    """The logits of the model's own head: float32 ``[labels]``, or ``[tokens, labels]`` for a token head."""

    tag: ClassVar[str] = "logits"


Want = WantHidden | WantPooled | WantLogits


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One answer wanted: which sequence, after which layer (None: all of them), with which adapter, as what."""

    sequence: int
    want: Want
    layer: int | None = None
    adapter: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RaggedBatch:
    """Unique token sequences, back to back, and the rows wanted of them.

    Sequence ``i`` is ``ids[offsets[i]:offsets[i + 1]]``. One text for six adapters is one sequence and six rows.

    :param ids: token ids, int32 ``[tokens]``; ``type_ids`` likewise; ``offsets`` is int32 ``[sequences + 1]``.
    :param prompt_tokens: how many leading tokens of each sequence belong to its prompt, int32 ``[sequences]``.
    :param threads: how many compute threads this batch may use; None leaves it to the engine.
    """

    ids: IntArray
    type_ids: IntArray
    offsets: IntArray
    prompt_tokens: IntArray
    rows: tuple[BatchRow, ...]
    threads: int | None = None

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence, int32 ``[sequences]``."""
        return np.diff(self.offsets).astype(np.int32, copy=False)


@dataclass(frozen=True, slots=True)
class BatchShape:
    """What decides the memory a batch will need."""

    sequences: int
    longest: int
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class EngineOutput:
    """One float32 array per row, in row order."""

    rows: Sequence[FloatArray]


class EncoderEngine(Protocol):
    """What an in-process encoder backend implements, in about a hundred lines."""

    @property
    def reduces(self) -> frozenset[Reduction]:
        """What the engine reduces itself; rows never ask it for anything else but hidden states."""
        ...

    @property
    def concurrency(self) -> int:
        """How many batches it can run side by side; each runs on a thread of its own."""
        ...

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run one batch. Called from up to ``concurrency`` threads at once."""
        ...

    def plan_bytes(self, shape: BatchShape) -> int:
        """An upper estimate of the working memory a batch of this shape needs, in bytes."""
        ...

    def close(self) -> None:
        """Free the weights; no run is in progress or will follow."""
        ...
