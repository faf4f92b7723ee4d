"""Which sequences run under which adapters: together while no adapter has changed anything, apart from there on.

A lane is one sequence under one adapter. Below the first layer its adapter changes, a lane is the same as the bare
sequence, which is its trunk and runs once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .changes import RowChanges
from .packed import Encoder, Packed

__all__ = ["Lane", "Stage", "plan_stages", "walk"]


@dataclass(frozen=True, slots=True)
class Lane:
    """A sequence of the batch under an adapter, by its key; None is the base by itself."""

    sequence: int
    adapter: str | None = None

    @property
    def trunk(self) -> Lane:
        """The same sequence without an adapter."""
        return Lane(self.sequence)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Layers in a row that run on the same lanes.

    :param first: the first of the layers, counted from 0; ``end`` is the one after the last.
    :param lanes: the place of each lane; those of one adapter lie together.
    :param rows: which row of the stage before, or of the embeddings, each row begins as: ``[tokens]``; None for all.
    :param adapters: the rows of each adapter.
    """

    first: int
    end: int
    lanes: Mapping[Lane, int]
    packed: Packed
    rows: Tensor | None
    adapters: Mapping[str, slice]

    def place(self, lane: Lane) -> int:
        """Where a lane, or the trunk it is still part of, is in the stage."""
        return self.lanes[lane] if lane in self.lanes else self.lanes[lane.trunk]


def plan_stages(packed: Packed, deepest: Mapping[Lane, int], forks: Mapping[str, int]) -> list[Stage]:
    """Arrange a batch.

    :param deepest: for each lane that is wanted the number of layers it has to go through.
    :param forks: for each adapter the first layer it changes, counted from 0.
    """
    forked = {lane: _fork(lane, depth, forks) for lane, depth in deepest.items()}
    starts = sorted({0, *(fork for fork in forked.values() if fork is not None)})
    ends = [*starts[1:], max(deepest.values())]
    stages: list[Stage] = []
    before: tuple[Packed, Mapping[Lane, int]] = (packed, {Lane(i): i for i in range(len(packed.offsets) - 1)})
    for first, end in zip(starts, ends, strict=True):
        stage = _stage(first, end, list(_running(first, deepest, forked)), before)
        stages.append(stage)
        before = (stage.packed, stage.lanes)
    return stages


def _fork(lane: Lane, depth: int, forks: Mapping[str, int]) -> int | None:
    """The layer at which a lane leaves its trunk; None where it never does."""
    fork = forks[lane.adapter] if lane.adapter is not None else depth
    return fork if fork < depth else None


def _running(layer: int, deepest: Mapping[Lane, int], forked: Mapping[Lane, int | None]) -> Iterator[Lane]:
    """The lanes that a layer has to run, trunks first, then adapter by adapter, each in the order of the batch."""
    trunks: set[int] = set()
    apart: list[Lane] = []
    for lane, fork in forked.items():
        if layer < (deepest[lane] if fork is None else fork):
            trunks.add(lane.sequence)
        elif fork is not None and fork <= layer < deepest[lane]:
            apart.append(lane)
    yield from (Lane(sequence) for sequence in sorted(trunks))
    yield from sorted(apart, key=lambda lane: (lane.adapter or "", lane.sequence))


def _stage(first: int, end: int, lanes: Sequence[Lane], before: tuple[Packed, Mapping[Lane, int]]) -> Stage:
    old, places = before
    order = [places[lane] if lane in places else places[lane.trunk] for lane in lanes]
    same = order == list(range(len(old.offsets) - 1))
    packed, rows = (old, None) if same else old.select(order)
    return Stage(first, end, {lane: index for index, lane in enumerate(lanes)}, packed, rows, _slices(lanes, packed))


def _slices(lanes: Sequence[Lane], packed: Packed) -> dict[str, slice]:
    found: dict[str, slice] = {}
    bounds = packed.offsets.tolist()
    for index, lane in enumerate(lanes):
        if lane.adapter is not None:
            start = found[lane.adapter].start if lane.adapter in found else bounds[index]
            found[lane.adapter] = slice(start, bounds[index + 1])
    return found


def walk(
    encoder: Encoder,
    packed: Packed,
    stages: Sequence[Stage],
    *,
    exits: Collection[int],
    changes: Callable[[Stage, int], RowChanges | None],
) -> dict[int, tuple[Stage, Tensor]]:
    """Run the stages: for each exit, counted from 1, the stage it lies in and its states ``[tokens, hidden]``.

    :param changes: what adapters change in a layer, counted from 0, of a stage.
    """
    found: dict[int, tuple[Stage, Tensor]] = {}
    with torch.inference_mode():
        x = encoder.embed(packed)
        for stage in stages:
            x, step = _regrouped(x, stage), encoder.steps(stage.packed)
            for index in range(stage.first, stage.end):
                x = step(index, x, changes(stage, index))
                if index + 1 in exits:
                    found[index + 1] = (stage, encoder.leave(x[: stage.packed.tokens]))
    return found


def _regrouped(x: Tensor, stage: Stage) -> Tensor:
    """States ``[rows, hidden]`` in the order of a stage, with as many rows of padding as the kernels like."""
    if stage.rows is None:
        return x
    padding = stage.rows.new_zeros(stage.packed.padded_tokens - len(stage.rows))
    return x.index_select(0, torch.cat([stage.rows, padding]))
