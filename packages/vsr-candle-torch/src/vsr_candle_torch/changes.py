"""What adapters add to the linear layers of an encoder: each row of a batch gets the change of its own adapter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.local import LowRank

from .linear import Activation, Linear, activate

__all__ = [
    "Change",
    "LayerChanges",
    "LayerStacks",
    "LinearName",
    "RowChanges",
    "Sliced",
    "Stacked",
    "activated",
    "changed",
    "join",
    "stack",
]

LinearName = Literal["qkv", "attention_out", "inner", "down"]
"""The linear layers of one layer, as the forwards call them; ``inner`` may be two side by side."""


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

LayerStacks = Mapping[LinearName, tuple[Tensor, Tensor]]
"""What several adapters do to one layer: ``down [adapters, in, r]`` and ``up [adapters, r, out]``, zero beyond a rank."""


class RowChanges(Protocol):
    """What a layer does to its products, row by row."""

    def touches(self, name: LinearName) -> bool:
        """Whether any row's adapter changes that linear layer."""
        ...

    def add_(self, name: LinearName, ys: Sequence[Tensor], x: Tensor, *, first: int = 0) -> None:
        """Add the changes to the product of ``x [rows, in]`` in place.

        :param ys: the product, ``[rows, out]``, or the parts it is held in, in order.
        :param first: which row of the batch the first one is.
        """
        ...


def changed(y: Tensor, x: Tensor, name: LinearName, changes: RowChanges | None, *, first: int = 0) -> Tensor:
    """``y``, the product of ``x``, with the changes added in place."""
    if changes is not None:
        changes.add_(name, (y,), x, first=first)
    return y


def activated(
    linear: Linear, x: Tensor, activation: Activation, changes: RowChanges | None, *, first: int = 0
) -> Tensor:
    """The product of the inner layer, the changes, then the activation; in one step where nothing changes."""
    if changes is None or not changes.touches("inner"):
        return linear.apply_activation(x, activation)
    return activate(changed(linear.apply(x), x, "inner", changes, first=first), activation)


def join(parts: Sequence[tuple[LowRank | None, int]], *, width: int) -> LowRank | None:
    """The changes of linear layers that are computed as one, side by side; None where there is none.

    :param parts: for each layer in order its change and its number of outputs; :param width: their common input.
    """
    starts = [sum(out for _, out in parts[:index]) for index in range(len(parts))]
    found = [(low, start) for (low, _), start in zip(parts, starts, strict=True) if low is not None]
    if not found:
        return None
    down = torch.cat([torch.from_numpy(low.a) for low, _ in found])
    up = torch.zeros(sum(out for _, out in parts), down.shape[0])
    column = 0
    for low, start in found:
        up[start : start + low.b.shape[0], column : column + low.rank] = torch.from_numpy(low.b)
        column += low.rank
    return LowRank(down.view(-1, width).numpy(), up.numpy())


class Sliced:
    """Adapter by adapter, each on its own rows.

    :param parts: for each adapter in the batch its rows, which lie together, and what it does to this layer.
    """

    def __init__(self, parts: Sequence[tuple[slice, LayerChanges]]) -> None:
        self._parts = parts

    def touches(self, name: LinearName) -> bool:
        return any(name in changes for _, changes in self._parts)

    def add_(self, name: LinearName, ys: Sequence[Tensor], x: Tensor, *, first: int = 0) -> None:
        for rows, changes in self._parts:
            low, high = max(rows.start - first, 0), min(rows.stop - first, len(x))
            change = changes.get(name)
            if change is not None and low < high:
                inner = F.linear(x[low:high], change.down)
                for y, up in _columns(ys, change.up):
                    y[low:high].addmm_(inner, up)


class Stacked:
    """All adapters in one batched product: quicker where each has few rows, and possible where all have equally many.

    :param rows: those of all adapters, in the order of the stacks.
    """

    def __init__(self, rows: slice, stacks: LayerStacks) -> None:
        self._rows = rows
        self._stacks = stacks

    def touches(self, name: LinearName) -> bool:
        return name in self._stacks

    def add_(self, name: LinearName, ys: Sequence[Tensor], x: Tensor, *, first: int = 0) -> None:
        if name not in self._stacks:
            return
        if first or self._rows.stop > len(x):
            raise ValueError("stacked adapters change all rows at once")
        down, up = self._stacks[name]
        count = len(down)
        inner = torch.bmm(x[self._rows].view(count, -1, x.shape[1]), down)
        for y, part in _columns(ys, up):
            y[self._rows].view(count, -1, y.shape[1]).baddbmm_(inner, part)


def stack(changes: Sequence[LayerChanges]) -> LayerStacks:
    """What several adapters do to one layer, as :class:`Stacked` takes it."""
    found: dict[LinearName, tuple[Tensor, Tensor]] = {}
    for name in dict.fromkeys(name for each in changes for name in each):
        own = [each.get(name) for each in changes]
        some = next(change for change in own if change is not None)
        rank = max(len(change.down) for change in own if change is not None)
        down = some.down.new_zeros(len(own), some.down.shape[1], rank)
        up = some.up.new_zeros(len(own), rank, some.up.shape[1])
        for index, change in enumerate(own):
            if change is not None:
                down[index, :, : len(change.down)] = change.down.t()
                up[index, : len(change.up)] = change.up
        found[name] = (down, up)
    return found


def _columns(ys: Sequence[Tensor], up: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Each part of a product with the columns of ``up`` that are its own."""
    if len(ys) == 1:
        yield ys[0], up
        return
    yield from zip(ys, torch.split(up, [y.shape[-1] for y in ys], dim=-1), strict=True)
