"""The adapters of one base: read once, kept as the kernels like them, and counted by who uses them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vsr_core.local import LoraAdapter

from .changes import Change, LayerChanges, LayerStacks, stack
from .heads import Head
from .packed import Encoder

__all__ = ["AdapterShelf", "ShelvedAdapter"]

_KEPT_STACKS = 2
"""Sets of adapters whose stacks are kept: they are a second copy, and the same tasks tend to be asked for together."""


@dataclass(frozen=True, slots=True, eq=False)
class ShelvedAdapter:
    """An adapter ready to run.

    :param first: the first layer it changes, counted from 0; the number of layers where it changes none.
    :param layers: what it does to each layer.
    :param head: the head it answers with, None for one of vectors.
    """

    first: int
    layers: tuple[LayerChanges, ...]
    head: Head | None


class AdapterShelf:
    """The adapters that rows may name. Readers take no lock: a batch works on the mapping it found.

    :param read_head: makes the head of an adapter, None for one that has none.
    """

    def __init__(self, encoder: Encoder, read_head: Callable[[LoraAdapter], Head | None]) -> None:
        self._encoder = encoder
        self._read_head = read_head
        self._lock = threading.Lock()
        self._uses: dict[str, int] = {}
        self._adapters: Mapping[str, ShelvedAdapter] = MappingProxyType({})
        self._stacks: OrderedDict[tuple[str, ...], tuple[LayerStacks, ...]] = OrderedDict()

    @property
    def adapters(self) -> Mapping[str, ShelvedAdapter]:
        """What is there now, by key; a mapping that never changes."""
        return self._adapters

    def attach(self, adapter: LoraAdapter) -> None:
        """Put an adapter there, or count one more use of it."""
        fresh = None if adapter.key in self._adapters else self._prepare(adapter)
        with self._lock:
            self._uses[adapter.key] = self._uses.get(adapter.key, 0) + 1
            if adapter.key not in self._adapters:
                made = fresh or self._prepare(adapter)
                self._adapters = MappingProxyType({**self._adapters, adapter.key: made})

    def detach(self, key: str) -> None:
        """Give one use up; the last one takes the adapter away."""
        with self._lock:
            left = self._uses.get(key, 0) - 1
            if left > 0:
                self._uses[key] = left
                return
            self._uses.pop(key, None)
            self._adapters = MappingProxyType({name: kept for name, kept in self._adapters.items() if name != key})
            for keys in [keys for keys in self._stacks if key in keys]:
                del self._stacks[keys]

    def stacks(self, adapters: Mapping[str, ShelvedAdapter]) -> tuple[LayerStacks, ...]:
        """What these adapters do to each layer, side by side; kept for the sets that were asked for last.

        :param adapters: of a mapping that :attr:`adapters` gave, in the order of their rows.
        """
        keys = tuple(adapters)
        with self._lock:
            if keys in self._stacks:
                self._stacks.move_to_end(keys)
                return self._stacks[keys]
        each = [adapter.layers for adapter in adapters.values()]
        made = tuple(stack([layers[index] for layers in each]) for index in range(self._encoder.layers))
        with self._lock:
            if all(key in self._adapters for key in keys):
                self._stacks[keys] = made
                while len(self._stacks) > _KEPT_STACKS:
                    self._stacks.popitem(last=False)
        return made

    def _prepare(self, adapter: LoraAdapter) -> ShelvedAdapter:
        dtype = self._encoder.dtype
        layers = tuple(
            {name: Change.of(low, dtype) for name, low in layer.items()}
            for layer in self._encoder.adapt(adapter.changes)
        )
        first = next((index for index, layer in enumerate(layers) if layer), len(layers))
        return ShelvedAdapter(first, layers, self._read_head(adapter))
