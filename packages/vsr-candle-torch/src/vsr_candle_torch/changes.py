"""What adapters add to the linear layers of an encoder: each row of a batch gets the change of its own adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.local import LowRank

from .linear import Activation, Linear, activate

__all__ = ["Change", "LayerChanges", "LinearName", "RowChanges", "activated", "changed", "join", "layer_changes"]

LinearName = Literal["qkv", "attention_out", "up", "gate", "down"]
"""The linear layers of one layer, as the forwards call them."""

_FEW_ROWS = 24
"""With fewer rows of each adapter than this, on average, one wide product beats a small one for each."""

_MAX_RANKS = 256
"""Ranks side by side beyond which the products that are thrown away would cost more than they save."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """``y += (x @ down.T) @ up``: ``down`` is ``[r, in]`` and ``up`` ``[r, out]``, both in the dtype of the encoder."""

    down: Tensor
    up: Tensor

    @classmethod
    def of(cls, low: LowRank, dtype: torch.dtype) -> Self:
        """The change as the kernels like it."""
        down, up = torch.from_numpy(low.a).to(dtype), torch.from_numpy(low.b).to(dtype)
        return cls(down.contiguous(), up.t().contiguous())


LayerChanges = Mapping[LinearName, Change]
"""What one adapter does to one layer."""


class RowChanges(Protocol):
    """What a layer does to its products, row by row."""

    def touches(self, name: LinearName) -> bool:
        """Whether any row's adapter changes that linear layer."""
        ...

    def add_(self, name: LinearName, y: Tensor, x: Tensor, *, first: int = 0) -> None:
        """Add the changes to ``y [rows, out]``, the product of ``x [rows, in]``, in place.

        :param first: which row of the batch the first one is.
        """
        ...


def changed(y: Tensor, x: Tensor, name: LinearName, changes: RowChanges | None, *, first: int = 0) -> Tensor:
    """``y``, the product of ``x``, with the changes added in place."""
    if changes is not None:
        changes.add_(name, y, x, first=first)
    return y


def activated(
    linear: Linear,
    x: Tensor,
    activation: Activation,
    name: LinearName,
    changes: RowChanges | None,
    *,
    first: int = 0,
) -> Tensor:
    """The product, the changes, then the activation; in one step where nothing changes."""
    if changes is None or not changes.touches(name):
        return linear.apply_activation(x, activation)
    return activate(changed(linear.apply(x), x, name, changes, first=first), activation)


def join(parts: Sequence[tuple[LowRank | None, int]], *, width: int) -> LowRank | None:
    """The changes of linear layers that are computed as one, side by side; None where there is none.

    :param parts: for each layer in order its change and its number of outputs; :param width: their common input.
    """
    found = [(low, start) for (low, _), start in zip(parts, _starts(parts), strict=True) if low is not None]
    if not found:
        return None
    down = torch.cat([torch.from_numpy(low.a) for low, _ in found])
    up = torch.zeros(sum(out for _, out in parts), down.shape[0])
    column = 0
    for low, start in found:
        up[start : start + low.b.shape[0], column : column + low.rank] = torch.from_numpy(low.b)
        column += low.rank
    return LowRank(down.view(-1, width).numpy(), up.numpy())


def _starts(parts: Sequence[tuple[LowRank | None, int]]) -> list[int]:
    starts = [0]
    for _, out in parts[:-1]:
        starts.append(starts[-1] + out)
    return starts


def layer_changes(parts: Sequence[tuple[slice, LayerChanges]]) -> RowChanges | None:
    """The changes of one layer, by the form that is quicker for their shape; None where no adapter changes it.

    :param parts: for each adapter in the batch its rows, which lie together, and what it does to this layer.
    """
    found = [(rows, changes) for rows, changes in parts if changes]
    if not found:
        return None
    rows = sum(where.stop - where.start for where, _ in found)
    ranks = max(change.down.shape[0] for _, changes in found for change in changes.values()) * len(found)
    if len(found) > 2 and rows < _FEW_ROWS * len(found) and ranks <= _MAX_RANKS:
        return _Stacked(found)
    return _Sliced(found)


class _Sliced:
    """Adapter by adapter, each on its own rows."""

    def __init__(self, parts: Sequence[tuple[slice, LayerChanges]]) -> None:
        self._parts = parts

    def touches(self, name: LinearName) -> bool:
        return any(name in changes for _, changes in self._parts)

    def add_(self, name: LinearName, y: Tensor, x: Tensor, *, first: int = 0) -> None:
        for rows, changes in self._parts:
            low, high = max(rows.start - first, 0), min(rows.stop - first, len(x))
            change = changes.get(name)
            if change is not None and low < high:
                y[low:high].addmm_(F.linear(x[low:high], change.down), change.up)


class _Stacked:
    """All adapters at once: the ranks of all of them side by side, and of each row those that are not its own zero."""

    def __init__(self, parts: Sequence[tuple[slice, LayerChanges]]) -> None:
        self._parts = parts

    def touches(self, name: LinearName) -> bool:
        return any(name in changes for _, changes in self._parts)

    def add_(self, name: LinearName, y: Tensor, x: Tensor, *, first: int = 0) -> None:
        here = [(rows, changes[name]) for rows, changes in self._parts if name in changes]
        if not here:
            return
        inner = F.linear(x, torch.cat([change.down for _, change in here]))
        kept = torch.zeros_like(inner)
        column = 0
        for rows, change in here:
            low, high, rank = max(rows.start - first, 0), min(rows.stop - first, len(x)), change.down.shape[0]
            if low < high:
                kept[low:high, column : column + rank] = inner[low:high, column : column + rank]
            column += rank
        y.addmm_(kept, torch.cat([change.up for _, change in here]))
