"""A batch as the forwards take it, and what every forward of ours offers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor
from vsr_core.local import BatchShape, LinearSite, LowRank, RaggedBatch

from .attention import EqualRun, equal_runs
from .changes import LinearName, RowChanges
from .linear import padded_rows

__all__ = ["BLOCK_ROWS", "Encoder", "Packed", "Step", "forward", "row_blocks"]

BLOCK_ROWS = 1024
"""Rows that the widest part of a layer is computed for at a time."""


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

    @property
    def padded_tokens(self) -> int:
        """The row count the kernels know that has room for all tokens."""
        return padded_rows(self.tokens)

    def padded(self, values: Tensor) -> Tensor:
        """``values [tokens]`` with zeros up to a row count the kernels know."""
        return torch.nn.functional.pad(values, (0, self.padded_tokens - self.tokens))

    def select(self, sequences: Sequence[int]) -> tuple[Packed, Tensor]:
        """Some of the sequences, in any order and as often as they are named; and the rows they are: ``[tokens]``."""
        bounds = self.offsets.tolist()
        lengths = [bounds[index + 1] - bounds[index] for index in sequences]
        rows = torch.cat([torch.arange(bounds[index], bounds[index + 1]) for index in sequences])
        offsets = torch.tensor([0, *accumulate(lengths)])
        return Packed(self.ids[rows], self.type_ids[rows], offsets, equal_runs(lengths)), rows

    def split(self, rows: Tensor) -> Sequence[Tensor]:
        """``rows [tokens, ...]`` by sequence."""
        return rows.tensor_split(self.offsets[1:-1])


Step = Callable[[int, Tensor, RowChanges | None], Tensor]
"""Runs one layer, counted from 0, on states ``[rows, hidden]``, with what adapters change in it; gives new states."""


class Encoder(Protocol):
    """Prepared weights that never change; every method is safe to call from several threads."""

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

    @property
    def sites(self) -> tuple[LinearSite, ...]:
        """The linear layers that adapters may change."""
        ...

    def embed(self, packed: Packed) -> Tensor:
        """The states ``[rows, hidden]`` before the first layer, with rows of padding after the last token."""
        ...

    def steps(self, packed: Packed) -> Step:
        """How layers run on these sequences."""
        ...

    def leave(self, states: Tensor) -> Tensor:
        """What an exit gives of the states after its layer."""
        ...

    def adapt(self, changes: Mapping[str, LowRank]) -> tuple[Mapping[LinearName, LowRank], ...]:
        """Changes of sites, as changes of the linear layers of each layer of this forward."""
        ...

    def plan_bytes(self, shape: BatchShape) -> int:
        """An upper estimate of the working memory of a batch, in bytes."""
        ...


def forward(encoder: Encoder, packed: Packed, *, exits: Collection[int]) -> dict[int, Tensor]:
    """The hidden states ``[tokens, hidden]`` after each of the layers ``exits``, counted from 1.

    Neighbouring sequences of equal length share one attention call, so a batch sorted by length runs fastest; the
    result does not depend on the order.
    """
    with torch.inference_mode():
        x, step = encoder.embed(packed), encoder.steps(packed)
        states: dict[int, Tensor] = {}
        for index in range(max(exits)):
            x = step(index, x, None)
            if index + 1 in exits:
                states[index + 1] = encoder.leave(x[: packed.tokens])
        return states


def row_blocks(rows: int) -> Iterator[slice]:
    """Slices of at most 1,024 rows, so that what is widest of a layer takes memory for that many alone."""
    return (slice(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS))
