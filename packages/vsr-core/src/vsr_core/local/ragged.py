"""Entries of the queue into one batch for the engine, and the engine's rows back to their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..contract import FloatArray
from .engine import BatchRow, BatchShape, EngineOutput, RaggedBatch
from .tickets import Entry, ItemResult

__all__ = ["assemble", "distribute", "shape_of"]


@dataclass(frozen=True, slots=True)
class _Sequences:
    """The distinct sequences of a batch, and which of them each entry has."""

    distinct: list[Entry]
    number: list[int]


def assemble(entries: Sequence[Entry], *, threads: int | None) -> RaggedBatch:
    """Build one batch; entries with the same tokens share one sequence."""
    found = _share(entries)
    items = [entry.item for entry in found.distinct]
    offsets = np.zeros(len(items) + 1, np.int32)
    if len(items) == 1:
        ids, type_ids = items[0].ids, items[0].type_ids
        offsets[1] = found.distinct[0].length
    else:
        ids = np.concatenate([item.ids for item in items])
        type_ids = np.concatenate([item.type_ids for item in items])
        np.cumsum([entry.length for entry in found.distinct], out=offsets[1:])
    return RaggedBatch(
        ids=ids,
        type_ids=type_ids,
        offsets=offsets,
        prompt_tokens=np.array([item.prompt_tokens for item in items], np.int32),
        rows=tuple(
            [
                BatchRow(number, row.want, row.layer, row.adapter)
                for entry, number in zip(entries, found.number, strict=True)
                for row in entry.item.rows
            ]
        ),
        threads=threads,
    )


def distribute(output: EngineOutput, entries: Sequence[Entry]) -> list[ItemResult]:
    """Give each entry its rows, as float32.

    :raises ValueError: the engine answered another number of rows than it was asked.
    """
    wanted = sum([len(entry.item.rows) for entry in entries])
    if len(output.rows) != wanted:
        raise ValueError(f"the engine gave {len(output.rows)} rows for {wanted}")
    rows: list[FloatArray] = [np.asarray(row, np.float32) for row in output.rows]
    if wanted == len(entries):
        return [(row,) for row in rows]
    results, start = [], 0
    for entry in entries:
        end = start + len(entry.item.rows)
        results.append(tuple(rows[start:end]))
        start = end
    return results


def shape_of(entries: Sequence[Entry]) -> BatchShape:
    """What decides the memory and the padding of a batch of these entries."""
    lengths = [entry.length for entry in entries]
    return BatchShape(len(lengths), max(lengths), sum(lengths))


def _share(entries: Sequence[Entry]) -> _Sequences:
    if len(entries) == 1:
        return _Sequences(list(entries), [0])
    numbers: dict[tuple[bytes, bytes, int], int] = {}
    distinct: list[Entry] = []
    number: list[int] = []
    for entry in entries:
        item = entry.item
        key = (item.ids.tobytes(), item.type_ids.tobytes(), item.prompt_tokens)
        place = numbers.setdefault(key, len(distinct))
        if place == len(distinct):
            distinct.append(entry)
        number.append(place)
    return _Sequences(distinct, number)
