"""Attention over packed sequences, neighbours of equal length together, so that nothing is masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor

__all__ = ["EqualRun", "attend", "equal_runs"]

_AREA = 16384
"""Scores per head of one block, sequences times length squared: with a dozen heads they fit a core's L2 cache."""

_LONG = 1024
"""Above this length the scores are not written out: memory would grow with its square."""


@dataclass(frozen=True, slots=True)
class EqualRun:
    """``count`` neighbouring sequences of ``length`` tokens each, from sequence ``first`` and packed row ``row``."""

    first: int
    row: int
    count: int
    length: int

    @property
    def end(self) -> int:
        """The packed row after the last."""
        return self.row + self.count * self.length


def equal_runs(lengths: Sequence[int]) -> tuple[EqualRun, ...]:
    """Split consecutive sequences into runs of one length."""
    runs, first, row = [], 0, 0
    for length, group in groupby(lengths):
        run = EqualRun(first, row, len(list(group)), length)
        runs.append(run)
        first, row = first + run.count, run.end
    return tuple(runs)


def attend(qkv: Tensor, runs: Sequence[EqualRun], *, heads: int) -> Tensor:
    """Softmax attention of every sequence over itself.

    :param qkv: queries, keys and values side by side, ``[rows, 3 * hidden]``; rows after the last run are padding.
    :returns: ``[rows, hidden]``, the padding zero.
    """
    hidden = qkv.shape[1] // 3
    context = qkv.new_empty(qkv.shape[0], hidden)
    for run in runs:
        step = max(1, _AREA // (run.length * run.length))
        for done in range(0, run.count, step):
            count = min(step, run.count - done)
            start = run.row + done * run.length
            rows = slice(start, start + count * run.length)
            grid = qkv[rows].view(count, run.length, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            mixed = _fused(grid) if run.length > _LONG else _written_out(grid)
            context[rows].view(count, run.length, heads, hidden // heads).copy_(mixed.transpose(1, 2))
    # Memory that was never written may hold NaN, which the layers after would carry along, or slow denormals.
    context[runs[-1].end :] = 0
    return context


def _fused(grid: Tensor) -> Tensor:
    """``[3, count, heads, length, width]`` to ``[count, heads, length, width]``, never holding all scores."""
    query, key, value = grid.unbind(0)
    return F.scaled_dot_product_attention(query, key, value)


def _written_out(grid: Tensor) -> Tensor:
    """As :func:`_fused`, in float32 whatever the dtype; quicker for short sequences."""
    _, count, heads, length, width = grid.shape
    if count > 1 or grid.dtype != torch.float32:
        # One sequence in float32 needs no copy: the product takes its heads as strided matrices.
        grid = grid.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
    query, key, value = grid.reshape(3, count * heads, length, width).unbind(0)
    scores = torch.baddbmm(query.new_empty(1), query, key.transpose(1, 2), beta=0, alpha=width**-0.5)
    return torch.bmm(torch.softmax(scores, -1), value).view(count, heads, length, width)
