"""How texts are put together in the raw loops: by length, within a bound on what a batch comes to when it is padded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["BATCH_TOKENS", "batches_of"]

BATCH_TOKENS = 1024
"""Tokens of a batch with its padding."""


def batches_of(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices in batches, shortest texts first, none of more than ``max_tokens`` tokens if its texts were padded.

    A text longer than that is a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
