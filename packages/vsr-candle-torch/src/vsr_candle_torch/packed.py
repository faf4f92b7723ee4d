"""A batch as the forwards take it, and what every forward of ours offers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor
from vsr_core.local import BatchShape, RaggedBatch

from .attention import EqualRun, equal_runs
from .linear import padded_rows

__all__ = ["Encoder", "Packed", "row_blocks"]

_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Sequences back to back: ``ids`` and ``type_ids`` are ``[tokens]``, ``offsets`` is ``[sequences + 1]``."""

    ids: Tensor
    type_ids: Tensor
    offsets: Tensor
    runs: tuple[EqualRun, ...]

    @classmethod
    def of(cls, batch: RaggedBatch) -> Self:
        """The sequences of a batch."""
        runs = equal_runs(batch.lengths.tolist())
        offsets = torch.from_numpy(batch.offsets.astype(np.int64))
        return cls(torch.from_numpy(batch.ids), torch.from_numpy(batch.type_ids), offsets, runs)

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return self.ids.numel()

    def positions(self) -> Tensor:
        """The place of each token in its sequence, from 0: ``[tokens]``."""
        return torch.arange(self.tokens) - torch.repeat_interleave(self.offsets[:-1], self.offsets.diff())

    def padded(self, values: Tensor) -> Tensor:
        """``values [tokens]`` with zeros up to a row count the kernels know."""
        return torch.nn.functional.pad(values, (0, padded_rows(self.tokens) - self.tokens))

    def split(self, rows: Tensor) -> Sequence[Tensor]:
        """``rows [tokens, ...]`` by sequence."""
        return rows.tensor_split(self.offsets[1:-1])


class Encoder(Protocol):
    """Prepared weights that never change; :meth:`forward` is safe to call from several threads."""

    @property
    def hidden_size(self) -> int:
        """Width of a token vector."""
        ...

    @property
    def layers(self) -> int:
        """The full depth."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """That of the weights and the computation."""
        ...

    @property
    def bytes(self) -> int:
        """What the weights take."""
        ...

    def forward(self, packed: Packed, *, exits: Collection[int]) -> dict[int, Tensor]:
        """The hidden states ``[tokens, hidden]`` after each of the layers ``exits``, counted from 1."""
        ...

    def plan_bytes(self, shape: BatchShape) -> int:
        """An upper estimate of the working memory of a batch, in bytes."""
        ...


def row_blocks(rows: int) -> Iterator[slice]:
    """Slices of at most 1,024 rows, so that what is widest of a layer takes memory for that many alone."""
    return (slice(start, min(start + _BLOCK_ROWS, rows)) for start in range(0, rows, _BLOCK_ROWS))
