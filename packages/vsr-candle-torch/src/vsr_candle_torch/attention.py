"""Attention over packed sequences, neighbours of equal length together, so that no padding is ever looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor

__all__ = ["EqualRun", "attend", "attention_bytes", "equal_runs"]

_AREA = 16384
"""Scores per head of one block, sequences times length squared: with a dozen heads they fit a core's L2 cache."""

_LONG = 1024
"""Above this length the scores are not written out: memory would grow with its square."""

_BLOCK = 128
"""How many queries of a windowed sequence are taken at once: few, so that little beside the window is computed."""


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


def attend(qkv: Tensor, runs: Sequence[EqualRun], *, heads: int, window: int | None = None) -> Tensor:
    """Softmax attention of every sequence over itself.

    :param qkv: queries, keys and values side by side, ``[rows, 3 * hidden]``; rows after the last run are padding.
    :param window: how far to either side a token looks, itself not counted; None is everywhere.
    :returns: ``[rows, hidden]``, the padding zero.
    """
    hidden = qkv.shape[1] // 3
    context = qkv.new_empty(qkv.shape[0], hidden)
    for run in runs:
        if window is not None and run.length > window + 1:
            _attend_near(qkv, run, context, heads=heads, window=window)
        else:
            _attend_all(qkv, run, context, heads=heads)
    # Memory that was never written may hold NaN, which the layers after would carry along, or slow denormals.
    context[runs[-1].end :] = 0
    return context


def attention_bytes(length: int, *, heads: int, window: int | None = None) -> int:
    """Working memory for the longest sequence, in bytes: its scores, where they are written out, twice."""
    if window is not None and length > window + 1:
        return 8 * heads * _BLOCK * min(length, _BLOCK + 2 * window)
    return 8 * heads * max(_AREA, length * length) if length <= _LONG else 0


def _attend_all(qkv: Tensor, run: EqualRun, context: Tensor, *, heads: int) -> None:
    width = context.shape[1] // heads
    step = max(1, _AREA // (run.length * run.length))
    for done in range(0, run.count, step):
        count = min(step, run.count - done)
        start = run.row + done * run.length
        rows = slice(start, start + count * run.length)
        grid = qkv[rows].view(count, run.length, 3, heads, width).permute(2, 0, 3, 1, 4)
        mixed = _fused(grid) if run.length > _LONG else _written_out(grid)
        context[rows].view(count, run.length, heads, width).copy_(mixed.transpose(1, 2))


def _attend_near(qkv: Tensor, run: EqualRun, context: Tensor, *, heads: int, window: int) -> None:
    """Block by block of queries, each over the keys its window reaches: time and memory grow with the length alone."""
    width = context.shape[1] // heads
    inner = _band(window, _BLOCK, _BLOCK + 2 * window, window=window)
    for start in range(run.row, run.end, run.length):
        grid = qkv[start : start + run.length].view(run.length, 3, heads, width).permute(1, 2, 0, 3)
        mixed = context[start : start + run.length].view(run.length, heads, width).transpose(0, 1)
        for first in range(0, run.length, _BLOCK):
            last = min(first + _BLOCK, run.length)
            low, high = max(0, first - window), min(run.length, last + window)
            size = (last - first, high - low)
            band = inner if size == inner.shape else _band(first - low, *size, window=window)
            query, key, value = (part.float() for part in (grid[0, :, first:last], *grid[1:, :, low:high]))
            scores = torch.baddbmm(band, query, key.transpose(1, 2), alpha=width**-0.5)
            mixed[:, first:last].copy_(torch.bmm(torch.softmax(scores, -1), value))


def _band(offset: int, queries: int, keys: int, *, window: int) -> Tensor:
    """What is added to the scores ``[queries, keys]``: 0 within the window, minus infinity beyond it.

    :param offset: the key that stands at the place of the first query.
    """
    distance = torch.arange(keys) - torch.arange(offset, offset + queries)[:, None]
    nothing = torch.zeros(queries, keys, dtype=torch.float32)
    return nothing.masked_fill_(distance.abs() > window, -torch.inf)


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
