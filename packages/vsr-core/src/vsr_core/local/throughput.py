"""What a batcher has done lately, and how busy it is."""

from __future__ import annotations

from dataclasses import dataclass

from .engine import BatchShape

__all__ = ["BatcherStats", "Throughput"]

_WEIGHT = 0.2
_UNKNOWN_WAIT = 1.0
_WAITS = (0.05, 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatcherStats:
    """A look at a batcher.

    :param running_items: texts in the engine now; ``running_batches`` is in how many batches.
    :param batches: batches run since the start; ``items`` and ``tokens`` are what was in them.
    :param padded_tokens: what the tokens of those batches come to when each is padded to its longest.
    :param heartbeat_age: seconds since the slowest busy worker last gave a sign of life; 0 where none is busy.
    :param workers: worker threads alive; fewer than the engine's concurrency means that one died.
    """

    queued_items: int
    queued_tokens: int
    running_items: int
    running_batches: int
    batches: int
    items: int
    tokens: int
    padded_tokens: int
    heartbeat_age: float
    workers: int


class Throughput:
    """Running totals and recent speed. Its owner holds a lock around every call."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._token_rate = 0.0
        self._item_rate = 0.0
        self.batches = 0
        self.items = 0
        self.tokens = 0
        self.padded_tokens = 0

    def record(self, shape: BatchShape, seconds: float) -> None:
        """Count a batch that ran for ``seconds``."""
        self.batches += 1
        self.items += shape.sequences
        self.tokens += shape.tokens
        self.padded_tokens += shape.sequences * shape.longest
        seconds = max(seconds, 1e-6)
        self._token_rate = self._blend(self._token_rate, self._concurrency * shape.tokens / seconds)
        self._item_rate = self._blend(self._item_rate, self._concurrency * shape.sequences / seconds)

    def wait_for(self, items: int, tokens: int) -> float:
        """Seconds until ``items`` and ``tokens`` of the queue will have been worked off, within reason."""
        if not self.batches:
            return _UNKNOWN_WAIT
        wait = max(items / self._item_rate, tokens / self._token_rate)
        return round(min(max(wait, _WAITS[0]), _WAITS[1]), 3)

    def _blend(self, average: float, value: float) -> float:
        return value if not self.batches or average == 0.0 else average + _WEIGHT * (value - average)
