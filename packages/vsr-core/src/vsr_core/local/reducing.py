"""Pooling in numpy for engines that do not pool themselves, batch by batch, so that no hidden states pile up."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from ..contract import FloatArray, PoolingMode
from .engine import (
    BatchRow,
    BatchShape,
    EncoderEngine,
    EngineOutput,
    RaggedBatch,
    Reduction,
    WantHidden,
    WantPooled,
)
from .pooling import pool

__all__ = ["PoolingEngine"]

_MODES: frozenset[Reduction] = frozenset(get_args(PoolingMode))


class PoolingEngine:
    """An engine that pools every mode: where the inner one cannot, it is asked for hidden states instead."""

    def __init__(self, inner: EncoderEngine) -> None:
        self._inner = inner
        self._native = inner.reduces

    @property
    def reduces(self) -> frozenset[Reduction]:
        """Every pooling mode, and what the inner engine reduces beside them."""
        return self._native | _MODES

    @property
    def concurrency(self) -> int:
        """That of the inner engine."""
        return self._inner.concurrency

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run a batch on the inner engine and pool what that could not."""
        prompted = bool(batch.prompt_tokens.any())
        asked = [self._ask(row, prompted=prompted) for row in batch.rows]
        if all(mine is row for mine, row in zip(asked, batch.rows, strict=True)):
            return self._inner.run(batch)
        output = self._inner.run(replace(batch, rows=tuple(asked)))
        if len(output.rows) != len(batch.rows):
            return output
        answers = [
            answer if mine is row else _pooled(answer, row, batch)
            for mine, row, answer in zip(asked, batch.rows, output.rows, strict=True)
        ]
        return EngineOutput(answers)

    def plan_bytes(self, shape: BatchShape) -> int:
        """That of the inner engine."""
        return self._inner.plan_bytes(shape)

    def close(self) -> None:
        """Close the inner engine."""
        self._inner.close()

    def _ask(self, row: BatchRow, *, prompted: bool) -> BatchRow:
        """What to ask the inner engine for: it pools whole sequences, and does not know of prompts to leave out."""
        if not isinstance(row.want, WantPooled):
            return row
        spec = row.want.spec
        if self._native.issuperset(spec.modes) and (spec.include_prompt or not prompted):
            return row
        return replace(row, want=WantHidden())


def _pooled(hidden: FloatArray, row: BatchRow, batch: RaggedBatch) -> FloatArray:
    if not isinstance(row.want, WantPooled):
        return hidden
    return pool(hidden, row.want.spec, prompt_tokens=int(batch.prompt_tokens[row.sequence]))
