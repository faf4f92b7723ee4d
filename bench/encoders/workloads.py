"""The batches that are timed: one text of each length, and one batch of mixed lengths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LENGTHS", "MIXED", "Workload", "memory_lengths", "mixed_workload", "single_workloads", "write_ids"]

LENGTHS = (32, 128, 512, 2048, 8192)
"""Tokens of the texts, unless told otherwise."""

MIXED = tuple(round(16 + index * (512 - 16) / 15) for index in range(16))
"""Tokens of the sixteen texts of one batch, evenly from 16 to 512."""

_FIRST_ID = 5
_WARM_TOKENS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One batch, and how often it is run.

    :param lengths: tokens of each of its texts.
    :param rounds: over which a median is taken; :param calls: within one round and of one contestant, one after the
        other, of which the median counts.
    """

    name: str
    lengths: tuple[int, ...]
    rounds: int
    calls: int = 1

    @property
    def tokens(self) -> int:
        """Of all texts."""
        return sum(self.lengths)

    @property
    def needs_warm_up(self) -> bool:
        """Whether a first call would be seen to be slower than those after it."""
        return self.tokens <= _WARM_TOKENS


def single_workloads(lengths: Sequence[int], *, rounds: int | None = None) -> tuple[Workload, ...]:
    """One text of each length; without ``rounds``, the longer a text the fewer of them.

    :raises ValueError: there are no lengths, or not in rising order.
    """
    if not lengths or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"lengths must rise, not {', '.join(map(str, lengths)) or 'be missing'}")
    return tuple(
        Workload(
            name=str(length),
            lengths=(length,),
            rounds=rounds or (5 if length <= 512 else 3 if length <= 2048 else 2),
            calls=min(8, max(1, 1024 // length)),
        )
        for length in lengths
    )


def mixed_workload(*, rounds: int | None = None) -> Workload:
    """The batch of mixed lengths."""
    return Workload(name="mixed", lengths=MIXED, rounds=rounds or 3)


def memory_lengths(lengths: Sequence[int]) -> tuple[int, ...]:
    """The lengths, and 4096 where its neighbours are there to say how memory grows."""
    between = {4096} if {2048, 8192} <= set(lengths) else set()
    return tuple(sorted(between.union(lengths)))


def write_ids(lengths: Sequence[int], path: Path, *, vocabulary: int) -> Path:
    """Write random token ids where a worker can read them: a JSON list of lists; the same for the same lengths."""
    import numpy as np

    source = np.random.default_rng(list(lengths))
    sequences = [source.integers(_FIRST_ID, vocabulary, length).tolist() for length in lengths]
    path.write_text(json.dumps(sequences), encoding="utf-8")
    return path
