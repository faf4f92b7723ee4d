"""The engine of a base that serves adapters: any mix of them, and of the bare base, in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from vsr_core.contract import FloatArray
from vsr_core.local import Anatomy, BatchRow, EngineOutput, LoraAdapter, RaggedBatch, WantHidden, WantLogits

from .changes import RowChanges, Sliced, Stacked
from .engine import TorchEngine, reduced
from .heads import Head
from .lanes import Lane, Stage, plan_stages, walk
from .network import HeadedEncoder
from .packed import BLOCK_ROWS, Packed
from .shelf import AdapterShelf

__all__ = ["AdaptableEngine"]

_FEW_ROWS: Mapping[torch.dtype, int] = {torch.float32: 24, torch.bfloat16: 256}
"""Up to how many rows an adapter one batched product was measured to be quicker, for six adapters of ModernBERT-base."""


class AdaptableEngine(TorchEngine):
    """A :class:`TorchEngine` whose rows may name adapters.

    Each sequence runs once below the first layer that an adapter in the batch changes for it, and once for each of its
    adapters from there on; the rows of one adapter lie together, so that its change is added to them alone.
    """

    def __init__(self, network: HeadedEncoder, *, threads: int) -> None:
        super().__init__(network, threads=threads)
        self._headed = network
        self._shelf = AdapterShelf(network.encoder, network.read_head)

    @property
    def anatomy(self) -> Anatomy:
        """Where adapters may sit."""
        return self._headed.anatomy

    def attach(self, adapter: LoraAdapter) -> None:
        """Make an adapter available to rows."""
        with torch.inference_mode():
            self._shelf.attach(adapter)

    def detach(self, key: str) -> None:
        """Give one use of an adapter up."""
        self._shelf.detach(key)

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run the base once, as far as rows go along with it, and the lanes of adapters apart.

        :raises ValueError: a row names an adapter that is not there, or wants logits of a model or an adapter without
            a head.
        """
        if all(row.adapter is None for row in batch.rows):
            return super().run(batch)
        self._use_threads(batch.threads or self._threads)
        return EngineOutput(_Run(self._headed, self._shelf, batch).answers())

    def close(self) -> None:
        """Drop the weights and the adapters."""
        del self._headed, self._shelf
        super().close()


@dataclass(frozen=True, slots=True)
class _Asked:
    lane: Lane
    depth: int


def _stackable(rows: Sequence[slice], packed: Packed, dtype: torch.dtype) -> bool:
    """Whether one batched product is possible, and quicker than one for each adapter."""
    sizes = {where.stop - where.start for where in rows}
    few = _FEW_ROWS.get(dtype, 0)
    return len(rows) > 1 and len(sizes) == 1 and max(sizes) <= few and packed.padded_tokens <= BLOCK_ROWS


class _Run:
    """One batch in which some rows have adapters."""

    def __init__(self, network: HeadedEncoder, shelf: AdapterShelf, batch: RaggedBatch) -> None:
        self._network = network
        self._shelf = shelf
        self._rows = batch.rows
        self._packed = Packed.of(batch)
        attached = shelf.adapters
        missing = {row.adapter for row in batch.rows if row.adapter is not None} - set(attached)
        if missing:
            raise ValueError(f"the adapter {min(missing)} is not attached to this base")
        self._used = {row.adapter: attached[row.adapter] for row in batch.rows if row.adapter is not None}
        self._asked = [_Asked(Lane(row.sequence, row.adapter), row.layer or network.layers) for row in batch.rows]

    def answers(self) -> list[FloatArray]:
        """One array per row, in row order."""
        deepest: dict[Lane, int] = {}
        for asked in self._asked:
            deepest[asked.lane] = max(deepest.get(asked.lane, 0), asked.depth)
        stages = plan_stages(self._packed, deepest, {key: one.first for key, one in self._used.items()})
        exits = {asked.depth for asked in self._asked}
        states = walk(self._network.encoder, self._packed, stages, exits=exits, changes=self._changes)
        with torch.inference_mode():
            return self._reduced(states)

    def _changes(self, stage: Stage, index: int) -> RowChanges | None:
        """What adapters do to a layer of a stage, in the form that is quicker for its shape."""
        parts = [(rows, self._used[key].layers[index]) for key, rows in stage.adapters.items()]
        if not any(changes for _, changes in parts):
            return None
        if not _stackable([rows for rows, _ in parts], stage.packed, self._network.dtype):
            return Sliced(parts)
        stacks = self._shelf.stacks({key: self._used[key] for key in stage.adapters})
        return Stacked(slice(parts[0][0].start, parts[-1][0].stop), stacks[index])

    def _reduced(self, states: Mapping[int, tuple[Stage, Tensor]]) -> list[FloatArray]:
        """Group by group: rows that want the same of the same layer under the same adapter share one reduction."""
        groups: dict[tuple[int, str | None, object], list[int]] = {}
        for number, (row, asked) in enumerate(zip(self._rows, self._asked, strict=True)):
            groups.setdefault((asked.depth, row.adapter, row.want), []).append(number)
        answers: dict[int, FloatArray] = {}
        for (depth, key, _), numbers in groups.items():
            stage, whole = states[depth]
            packed, rows = stage.packed.select([stage.place(self._asked[number].lane) for number in numbers])
            answers.update(zip(numbers, self._reduce(self._rows[numbers[0]], key, whole[rows], packed), strict=True))
        return [answers[number] for number in range(len(self._rows))]

    def _reduce(self, row: BatchRow, key: str | None, states: Tensor, packed: Packed) -> Sequence[FloatArray]:
        if isinstance(row.want, WantLogits):
            return [logits.float().numpy() for logits in self._head(key).logits(states, packed)]
        if isinstance(row.want, WantHidden):
            return [part.numpy() for part in packed.split(states.float())]
        return list(reduced(states.float(), packed, row.want.spec))

    def _head(self, key: str | None) -> Head:
        head = self._network.own_head if key is None else self._used[key].head
        if head is None:
            who = "the base" if key is None else f"the adapter {key}"
            raise ValueError(f"{who} has no classification head")
        return head
